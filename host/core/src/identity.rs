//! Authenticated callers and their rights.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::scopes::Rights;

/// Caller as the transport authenticated it: `token:NAME` or `ISSUER#SUBJECT`. A caller without an identity is a user
/// of this machine: the command line, stdio, or HTTP without authentication.
///
/// Identities are equal if their names are. Rights belong to the token of a single request.
#[derive(Debug, Clone)]
pub struct Identity {
    name: Arc<str>,
    rights: Rights,
}

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        self.name == other.name
    }
}

impl Eq for Identity {}

impl Hash for Identity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for Identity {
    fn partial_cmp(&self, other: &Identity) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Identity {
    fn cmp(&self, other: &Identity) -> std::cmp::Ordering {
        self.name.cmp(&other.name)
    }
}

impl Identity {
    /// Identity of the holder of one of the operator's tokens.
    pub fn of_token(name: &str, rights: Rights) -> Identity {
        Identity {
            name: format!("token:{name}").into(),
            rights,
        }
    }

    /// Identity of an issuer's subject. Issuers contain no `#`, so that no two subjects get the same name.
    pub fn of_subject(issuer: &str, subject: &str) -> Identity {
        Identity {
            name: format!("{issuer}#{subject}").into(),
            rights: Rights::default(),
        }
    }

    /// Rights of the identity.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// True for a name in the form of an identity. Claimed names never have that form.
    pub fn could_be(name: &str) -> bool {
        name.starts_with("token:") || name.contains('#')
    }

    /// An identity of any name, for tests.
    #[doc(hidden)]
    pub fn for_tests(name: &str) -> Identity {
        Identity {
            name: name.into(),
            rights: Rights::default(),
        }
    }

    /// Name as the ledger, policies and packs see it.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
