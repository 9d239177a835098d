//! Tokens of an OAuth 2 issuer: JWTs whose signature, issuer, audience, time and scopes are right.

use std::collections::BTreeSet;

use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde::Deserialize;

use super::keys::{KeyError, KeySource, Keys};
use super::{Identity, Refused};

/// Signatures that are taken: those that only the holder of a private key can make.
const ALGORITHMS: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];
/// How far clocks may be apart, in seconds.
const LEEWAY: u64 = 30;
/// Longest token, in bytes.
const LONGEST: usize = 16 << 10;
/// Longest subject, in bytes.
const LONGEST_SUBJECT: usize = 160;

/// What an issuer's tokens must say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSettings {
    /// The issuer, as its tokens name it.
    pub issuer: String,
    /// This server, as tokens name it: any of these.
    pub audience: Vec<String>,
    /// Scopes that a token must have, all of them.
    pub scopes: Vec<String>,
    /// Where its keys are.
    pub keys: KeySource,
}

/// An issuer whose tokens are taken.
#[derive(Debug)]
pub struct Issuer {
    settings: IssuerSettings,
    keys: Keys,
}

/// What is read of a token. Whatever else it claims is nobody's business.
#[derive(Deserialize)]
struct Claims {
    sub: Option<String>,
    /// OAuth's form: names with spaces between them.
    scope: Option<Scopes>,
    /// What some issuers write instead.
    scp: Option<Scopes>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Scopes {
    Words(String),
    List(Vec<String>),
}

impl Scopes {
    fn names(&self) -> BTreeSet<&str> {
        match self {
            Scopes::Words(words) => words.split_whitespace().collect(),
            Scopes::List(names) => names.iter().map(String::as_str).collect(),
        }
    }
}

impl Issuer {
    /// An issuer. Its keys are fetched when they are first needed.
    pub fn new(settings: IssuerSettings) -> Result<Issuer, KeyError> {
        Ok(Issuer {
            keys: Keys::new(&settings.issuer, settings.keys.clone())?,
            settings,
        })
    }

    /// What its tokens must say.
    pub fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// Whether its keys are here, after an attempt to get them.
    pub async fn has_keys(&self) -> Result<(), KeyError> {
        self.keys.refresh_if_none().await
    }

    /// Who a token was issued to.
    pub async fn verify(&self, token: &str) -> Result<Identity, Refused> {
        if token.len() > LONGEST {
            return Err(invalid("it is too long"));
        }
        let header = jsonwebtoken::decode_header(token).map_err(|err| invalid(&err.to_string()))?;
        check_header(&header)?;
        let key = match self.keys.find(header.kid.as_deref(), header.alg).await {
            Ok(Some(key)) => key,
            Ok(None) => {
                return Err(invalid(
                    "it is signed with a key that the issuer does not publish",
                ));
            }
            Err(err) => {
                tracing::error!(%err, "a token cannot be checked");
                return Err(Refused::NoKeys);
            }
        };
        let key = DecodingKey::from_jwk(&key).map_err(|err| invalid(&err.to_string()))?;
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &self.validation(header.alg))
            .map_err(|err| invalid(&err.to_string()))?
            .claims;
        self.admit(&claims)
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&self.settings.audience);
        validation
    }

    fn admit(&self, claims: &Claims) -> Result<Identity, Refused> {
        let granted: BTreeSet<&str> = [&claims.scope, &claims.scp]
            .into_iter()
            .flatten()
            .flat_map(Scopes::names)
            .collect();
        let missing: Vec<&str> = self
            .settings
            .scopes
            .iter()
            .map(String::as_str)
            .filter(|scope| !granted.contains(scope))
            .collect();
        if !missing.is_empty() {
            return Err(Refused::Scope(missing.join(" ")));
        }
        let subject = claims.sub.as_deref().unwrap_or_default();
        // It is a name in the ledger and on terminals, and is compared byte by byte.
        let is_name = !subject.is_empty()
            && subject.len() <= LONGEST_SUBJECT
            && subject.chars().all(|c| !c.is_control() && !c.is_whitespace())
            && crate::text::clean(subject) == subject;
        if is_name {
            Ok(Identity::of_subject(&self.settings.issuer, subject))
        } else {
            Err(invalid("its subject cannot be a name"))
        }
    }
}

fn check_header(header: &Header) -> Result<(), Refused> {
    if !ALGORITHMS.contains(&header.alg) {
        return Err(invalid("its algorithm is not taken"));
    }
    let kind = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    if !matches!(kind, "jwt" | "at+jwt") {
        return Err(invalid("it is not an access token"));
    }
    Ok(())
}

fn invalid(why: &str) -> Refused {
    Refused::Invalid(crate::text::clean(crate::text::cut(why, 200)))
}
