//! Authentication over HTTP with bearer tokens of the operator or of an OAuth 2 issuer.

mod issuer;
mod keyring;
mod keys;
mod settings;
mod signatures;
mod tokens;

use std::sync::Arc;

use thiserror::Error;
use tokio_util::sync::CancellationToken;
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::identity::Identity;

use keyring::Found;

pub use issuer::{Issuer, IssuerSettings};
pub use keyring::{Keyring, Refreshed, TokenError, new_token};
pub use keys::{KeyError, KeySource};
pub use settings::Auth;
pub use tokens::{TokenHash, TokenLine, TokenLines};

/// Reason why a request is not admitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refused {
    /// The request has no bearer token.
    #[error("a bearer token is needed")]
    NoToken,
    /// The token is not accepted. The details are only logged.
    #[error("the bearer token is not valid: {0}")]
    Invalid(String),
    /// The token has expired.
    #[error("the bearer token has expired")]
    Expired,
    /// The token is valid but lacks a scope.
    #[error("the bearer token lacks the scope {0}")]
    Scope(String),
    /// The token cannot be checked, because the issuer's keys are unavailable.
    #[error("cannot fetch the issuer's keys")]
    NoKeys,
}

/// Bearer of a token.
#[derive(Debug, Clone)]
pub struct Bearer {
    /// Proven identity of the bearer.
    pub identity: Identity,
    /// Cancelled when the token is removed or expires. `None` for tokens of an issuer, which only expire.
    pub revoked: Option<CancellationToken>,
    /// Expiry time of an issuer's token. Tokens of the operator's file are revoked at their expiry.
    pub until_ms: Option<i64>,
}

/// Accepted tokens: the operator's, an issuer's, or both. With neither, everyone is admitted.
#[derive(Debug, Default)]
pub struct Authenticator {
    tokens: Option<Arc<Keyring>>,
    issuer: Option<Issuer>,
}

impl Authenticator {
    /// Creates an authenticator that accepts these tokens.
    pub fn new(tokens: Option<Arc<Keyring>>, issuer: Option<Issuer>) -> Authenticator {
        Authenticator { tokens, issuer }
    }

    /// Returns whether everyone is admitted.
    pub fn is_open(&self) -> bool {
        self.tokens.is_none() && self.issuer.is_none()
    }

    /// Issuer whose tokens are accepted.
    pub fn issuer(&self) -> Option<&Issuer> {
        self.issuer.as_ref()
    }

    /// Operator's tokens.
    pub fn keyring(&self) -> Option<&Keyring> {
        self.tokens.as_deref()
    }

    /// Identity proven by an `Authorization` header. `None` if everyone is admitted.
    pub async fn identify(&self, authorization: Option<&str>) -> Result<Option<Bearer>, Refused> {
        if self.is_open() {
            return Ok(None);
        }
        let token = authorization.and_then(bearer).ok_or(Refused::NoToken)?;
        let found = self
            .tokens
            .as_ref()
            .map(|tokens| tokens.find(token, SystemClock.now_ms()));
        match found {
            Some(Found::Valid(bearer)) => return Ok(Some(bearer)),
            Some(Found::Expired) => return Err(Refused::Expired),
            Some(Found::Unknown) | None => {}
        }
        match &self.issuer {
            Some(issuer) => {
                let (identity, until_ms) = issuer.verify(token).await?;
                Ok(Some(Bearer {
                    identity,
                    revoked: None,
                    until_ms: Some(until_ms),
                }))
            }
            None => Err(Refused::Invalid(
                "it is not one of the configured tokens".to_owned(),
            )),
        }
    }
}

/// Token of a `Bearer` header.
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
        let open = Authenticator::default();
        assert!(open.identify(Some("Bearer whatever")).await.unwrap().is_none());
        let token = "0123456789abcdef0123456789abcdef";
        let tokens = Keyring::open(None, Some(&format!("ada {token}\n")), |_| ()).unwrap();
        let closed = Authenticator::new(tokens.map(Arc::new), None);
        let right = closed.identify(Some(&format!("Bearer {token}"))).await;
        assert_eq!(right.unwrap().unwrap().identity.as_str(), "token:ada");
        assert_eq!(closed.identify(None).await.unwrap_err(), Refused::NoToken);
        let wrong = closed
            .identify(Some("Bearer 1123456789abcdef0123456789abcdef"))
            .await;
        assert!(matches!(wrong, Err(Refused::Invalid(_))), "{wrong:?}");
    }
}
