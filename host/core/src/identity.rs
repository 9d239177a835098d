//! Proven callers and their rights.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::scopes::Rights;

/// Caller as the transport proved it: `token:NAME` or `ISSUER#SUBJECT`. Without one the
/// caller has the machine itself: the command line, stdio, or HTTP that asks nobody who they are.
///
/// Identities are the same if their names are: rights are those of the token that one request brought.
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
    /// The holder of one of the operator's tokens.
    pub fn of_token(name: &str, rights: Rights) -> Identity {
        Identity {
            name: format!("token:{name}").into(),
            rights,
        }
    }

    /// An issuer's subject. Issuers contain no `#`, so that no two subjects are called alike.
    pub fn of_subject(issuer: &str, subject: &str) -> Identity {
        Identity {
            name: format!("{issuer}#{subject}").into(),
            rights: Rights::default(),
        }
    }

    /// Its scopes.
    pub fn rights(&self) -> Rights {
        self.rights
    }

    /// True for a name that is written as identities are. Nobody who only claims one gets a name like that.
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

    /// As ledger, policies and packs see it.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
