//! Who calls over HTTP: bearer tokens that the operator hands out, and those of an issuer.

mod issuer;
mod keys;
mod tokens;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

pub use issuer::{Issuer, IssuerSettings};
pub use keys::{KeyError, KeySource};
pub use tokens::{TokenError, Tokens};

/// Who a call is for, as the transport proved it: `token:NAME` or `ISSUER#SUBJECT`. Without one the
/// caller has the machine itself: the command line, stdio, or HTTP that asks nobody who they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(Arc<str>);

impl Identity {
    /// The holder of one of the operator's tokens.
    fn of_token(name: &str) -> Identity {
        Identity(format!("token:{name}").into())
    }

    /// An issuer's subject. Issuers contain no `#`, so that no two subjects are called alike.
    fn of_subject(issuer: &str, subject: &str) -> Identity {
        Identity(format!("{issuer}#{subject}").into())
    }

    /// Whether a name is written as identities are. Nobody who only claims one gets a name like that.
    pub fn could_be(name: &str) -> bool {
        name.starts_with("token:") || name.contains('#')
    }

    /// Any.
    #[cfg(test)]
    pub(crate) fn for_tests(name: &str) -> Identity {
        Identity(name.into())
    }

    /// As ledger, policies and packs see it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a request does not get in.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// It brings no bearer token.
    #[error("a bearer token is needed")]
    NoToken,
    /// The token is not one that opens this door. What exactly is wrong is for the log.
    #[error("the bearer token is not valid: {0}")]
    Invalid(String),
    /// The token is good, but not for this.
    #[error("the bearer token lacks the scope {0}")]
    Scope(String),
    /// Nobody can say whether it is good, because the issuer's keys cannot be had.
    #[error("the issuer's keys cannot be had")]
    NoKeys,
}

/// What opens the door: the operator's tokens, an issuer's, or both. With neither, it is open.
#[derive(Debug, Default)]
pub struct Doorkeeper {
    tokens: Option<Tokens>,
    issuer: Option<Issuer>,
}

impl Doorkeeper {
    /// A doorkeeper that knows these.
    pub fn new(tokens: Option<Tokens>, issuer: Option<Issuer>) -> Doorkeeper {
        Doorkeeper { tokens, issuer }
    }

    /// Whether everybody gets in.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && self.issuer.is_none()
    }

    /// The issuer whose tokens are taken.
    pub fn issuer(&self) -> Option<&Issuer> {
        self.issuer.as_ref()
    }

    /// Who brings this `Authorization` header. `None` if the door is open.
    pub async fn identify(&self, authorization: Option<&str>) -> Result<Option<Identity>, Refused> {
        if self.is_open() {
            return Ok(None);
        }
        let token = authorization.and_then(bearer).ok_or(Refused::NoToken)?;
        if let Some(identity) = self.tokens.as_ref().and_then(|tokens| tokens.find(token)) {
            return Ok(Some(identity));
        }
        match &self.issuer {
            Some(issuer) => issuer.verify(token).await.map(Some),
            None => Err(Refused::Invalid("it is none of those configured".to_owned())),
        }
    }
}

/// The token of a `Bearer` header.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_header_is_read_in_any_case() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("Bearer "), None);
        assert_eq!(bearer("Bearer"), None);
    }

    #[tokio::test]
    async fn an_open_door_asks_nobody_and_a_closed_one_everybody() {
        let open = Doorkeeper::default();
        assert_eq!(open.identify(Some("Bearer whatever")).await, Ok(None));
        let token = "0123456789abcdef0123456789abcdef";
        let tokens = Tokens::parse(&format!("ada {token}\n")).unwrap();
        let closed = Doorkeeper::new(Some(tokens), None);
        let right = closed.identify(Some(&format!("Bearer {token}"))).await;
        assert_eq!(right.unwrap().unwrap().as_str(), "token:ada");
        assert_eq!(closed.identify(None).await, Err(Refused::NoToken));
        let wrong = closed
            .identify(Some("Bearer 1123456789abcdef0123456789abcdef"))
            .await;
        assert!(matches!(wrong, Err(Refused::Invalid(_))), "{wrong:?}");
    }
}
