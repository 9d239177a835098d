//! Tokens of an OAuth 2 issuer: JWTs with valid signature, issuer, audience, time and scopes.

use std::collections::BTreeSet;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use tollgate_core::clock::{Clock as _, SystemClock};

use super::keys::{KeyError, KeySource, Keys};
use super::signatures;
use super::{Identity, Refused};

/// Accepted signature algorithms: those that require a private key.
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
/// Header parameters that change what is signed, or how: critical extensions (RFC 7515, 4.1.11; RFC 7797), compression
/// and encryption (RFC 7516), and keys embedded in the token. Only the issuer provides keys: addresses and certificates
/// in a header (`jku`, `x5u`, `x5c`, `x5t`) are ignored.
const REFUSED_PARAMETERS: &[&str] = &["crit", "b64", "zip", "enc", "epk", "jwk"];
/// Tolerated clock difference, in seconds.
const LEEWAY_SEC: u64 = 30;
/// Longest token, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;
/// Longest subject, in bytes.
const MAX_SUBJECT_BYTES: usize = 160;

/// Requirements of an issuer's tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerSettings {
    /// Issuer as named in its tokens.
    pub issuer: String,
    /// Names of this server in tokens. A token must contain one of them.
    pub audience: Vec<String>,
    /// Scopes that a token must have. All are required.
    pub scopes: Vec<String>,
    /// Source of the issuer's keys.
    pub keys: KeySource,
}

/// An issuer whose tokens are accepted.
#[derive(Debug)]
pub struct Issuer {
    settings: IssuerSettings,
    keys: Keys,
}

/// One part of a token: a JSON object without duplicate names. With duplicates, different parsers would use different
/// values.
struct Part(Map<String, Value>);

impl Issuer {
    /// Creates an issuer. Its keys are fetched when first needed.
    pub fn new(settings: IssuerSettings) -> Result<Issuer, KeyError> {
        signatures::install();
        Ok(Issuer {
            keys: Keys::new(&settings.issuer, settings.keys.clone())?,
            settings,
        })
    }

    /// Requirements of the tokens.
    pub fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// Checks that the issuer's keys are available, and tries to fetch them if not.
    pub async fn has_keys(&self) -> Result<(), KeyError> {
        self.keys.refresh_if_none().await
    }

    /// Identity that a token was issued to, and the time at which the token expires.
    pub async fn verify(&self, token: &str) -> Result<(Identity, i64), Refused> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(invalid("it is too long"));
        }
        let header = jsonwebtoken::decode_header(token).map_err(|err| invalid(&err.to_string()))?;
        check_header(&header, &Part::of(token, 0)?)?;
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
        jsonwebtoken::decode::<serde::de::IgnoredAny>(token, &key, &self.validation(header.alg))
            .map_err(|err| invalid(&err.to_string()))?;
        let claims = Part::of(token, 1)?;
        self.check_claims(&claims, SystemClock.now_ms())?;
        Ok((self.admit(&claims)?, claims.ends_at_ms()))
    }

    /// Checks claims that the library accepts in invalid forms, or ignores if they have the wrong type.
    fn check_claims(&self, claims: &Part, now_ms: i64) -> Result<(), Refused> {
        if claims.text("iss") != Some(self.settings.issuer.as_str()) {
            return Err(invalid(
                "its issuer is not the configured one, or is not a string",
            ));
        }
        let audience = claims.0.get("aud").and_then(names);
        let is_for_us = audience.is_some_and(|named| {
            let known = &self.settings.audience;
            named.iter().any(|name| known.iter().any(|known| known == name))
        });
        if !is_for_us {
            return Err(invalid(
                "its audience is not a configured one, or is not a list of strings",
            ));
        }
        #[allow(clippy::cast_precision_loss, reason = "milliseconds of this age of the world")]
        let now = now_ms as f64 / 1_000.0;
        #[allow(clippy::cast_precision_loss, reason = "a few seconds")]
        let leeway = LEEWAY_SEC as f64;
        let time = |name: &str| match claims.0.get(name) {
            None => Ok(None),
            Some(said) => said
                .as_f64()
                .map(Some)
                .ok_or_else(|| invalid(&format!("its {name} is not a number"))),
        };
        if time("exp")?.is_none_or(|end| end <= now - leeway) {
            return Err(invalid("it has expired, or has no expiry"));
        }
        for name in ["nbf", "iat"] {
            if time(name)?.is_some_and(|start| start > now + leeway) {
                return Err(invalid(&format!("its {name} is in the future")));
            }
        }
        Ok(())
    }

    fn validation(&self, algorithm: Algorithm) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.leeway = LEEWAY_SEC;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&self.settings.audience);
        validation
    }

    fn admit(&self, claims: &Part) -> Result<Identity, Refused> {
        // OAuth separates scopes with spaces. Some issuers use a list under another name.
        let said = ["scope", "scp"].into_iter().filter_map(|name| claims.0.get(name));
        let granted: BTreeSet<&str> = said
            .filter_map(names)
            .flatten()
            .flat_map(str::split_whitespace)
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
        let subject = claims.text("sub").unwrap_or_default();
        // The subject is a name in the ledger and on terminals, and is compared byte by byte.
        let is_name = !subject.is_empty()
            && subject.len() <= MAX_SUBJECT_BYTES
            && subject.chars().all(|c| !c.is_control() && !c.is_whitespace())
            && !tollgate_core::text::hides(subject)
            && tollgate_core::text::clean(subject) == subject;
        if is_name {
            Ok(Identity::of_subject(&self.settings.issuer, subject))
        } else {
            Err(invalid("its subject is not a valid name"))
        }
    }
}

impl Part {
    /// Expiry time of a token with these claims, including the leeway of the check.
    fn ends_at_ms(&self) -> i64 {
        let end = self.0.get("exp").and_then(Value::as_f64).unwrap_or_default();
        #[allow(clippy::cast_possible_truncation, reason = "a cast from a float saturates")]
        let end_ms = (end * 1_000.0) as i64;
        let leeway_ms = i64::try_from(LEEWAY_SEC).unwrap_or_default() * 1_000;
        end_ms.saturating_add(leeway_ms)
    }

    /// Parses a part of a token. Part 0 is the header, part 1 the claims.
    fn of(token: &str, number: usize) -> Result<Part, Refused> {
        let encoded = token.split('.').nth(number).unwrap_or_default();
        let json = URL_SAFE_NO_PAD
            .decode(encoded)
            .map_err(|err| invalid(&err.to_string()))?;
        serde_json::from_slice(&json).map_err(|err| invalid(&err.to_string()))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Part, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Part;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Part, A::Error> {
                let mut part = Map::new();
                while let Some((name, value)) = members.next_entry::<String, Value>()? {
                    if part.insert(name, value).is_some() {
                        return Err(serde::de::Error::custom("a name occurs twice"));
                    }
                }
                Ok(Part(part))
            }
        }
        json.deserialize_map(Once)
    }
}

/// Names from a text, or from a list that contains only texts.
fn names(said: &Value) -> Option<Vec<&str>> {
    match said {
        Value::String(one) => Some(vec![one]),
        Value::Array(several) => several.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

fn check_header(header: &Header, said: &Part) -> Result<(), Refused> {
    if let Some(name) = REFUSED_PARAMETERS.iter().find(|name| said.0.contains_key(**name)) {
        return Err(invalid(&format!(
            "its header has {name}, and such tokens are not accepted"
        )));
    }
    // The signed content must be claims, not another token (RFC 7519, 5.2).
    let content = said
        .0
        .get("cty")
        .map(|content| content.as_str().unwrap_or_default());
    if content.is_some_and(|content| !is_media_type(content, &["json"])) {
        return Err(invalid("its header says that its content is not JSON"));
    }
    if !ALGORITHMS.contains(&header.alg) {
        return Err(invalid("its algorithm is not accepted"));
    }
    if !is_media_type(header.typ.as_deref().unwrap_or("JWT"), &["jwt", "at+jwt"]) {
        return Err(invalid("it is not an access token"));
    }
    Ok(())
}

/// Returns whether a media type is one of these, with or without `application/`.
fn is_media_type(said: &str, known: &[&str]) -> bool {
    let said = said.to_ascii_lowercase();
    known.contains(&said.strip_prefix("application/").unwrap_or(&said))
}

fn invalid(why: &str) -> Refused {
    Refused::Invalid(tollgate_core::text::clean(tollgate_core::text::cut(why, 200)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn issuer() -> Issuer {
        Issuer::new(IssuerSettings {
            issuer: "https://id.example".to_owned(),
            audience: vec!["tollgate".to_owned()],
            scopes: Vec::new(),
            keys: KeySource::Discovered,
        })
        .unwrap()
    }

    fn claims(with: Value) -> Part {
        let claims = json!({"iss": "https://id.example", "aud": "tollgate", "sub": "ada", "exp": NOW + 60});
        let (Value::Object(mut claims), Value::Object(with)) = (claims, with) else {
            panic!("objects")
        };
        claims.extend(with);
        Part(claims)
    }

    #[test]
    fn claims_are_taken_in_the_shape_that_the_standard_gives_them() {
        let check = |with: Value| issuer().check_claims(&claims(with), NOW * 1_000);
        for good in [
            json!({}),
            json!({"aud": ["other", "tollgate"]}),
            json!({"exp": NOW - 29, "nbf": NOW + 29, "iat": NOW}),
            json!({"exp": 1.9e9}),
        ] {
            assert_eq!(check(good.clone()), Ok(()), "{good}");
        }
        for bad in [
            json!({"iss": ["https://id.example"]}),
            json!({"iss": ["https://id.example", "https://evil.example"]}),
            json!({"iss": "https://id.example/"}),
            json!({"iss": null}),
            json!({"aud": []}),
            json!({"aud": ["tollgate", 1]}),
            json!({"aud": {"tollgate": true}}),
            json!({"aud": "Tollgate"}),
            json!({"exp": NOW - 31}),
            json!({"exp": (NOW + 60).to_string()}),
            json!({"exp": null}),
            json!({"nbf": NOW + 31}),
            json!({"nbf": (NOW + 3600).to_string()}),
            json!({"iat": NOW + 31}),
            json!({"iat": {}}),
        ] {
            assert!(check(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_with_extensions_are_refused() {
        let check = |header: Value| {
            let json = header.to_string();
            let token = format!("{}.x.y", URL_SAFE_NO_PAD.encode(&json));
            check_header(
                &serde_json::from_str(&json).unwrap(),
                &Part::of(&token, 0).unwrap(),
            )
        };
        for good in [
            json!({"alg": "ES256", "typ": "at+jwt", "kid": "1", "x": 1}),
            json!({"alg": "ES256", "cty": "json"}),
            json!({"alg": "ES256", "cty": "application/JSON"}),
            json!({"alg": "ES256", "jku": "https://evil.example/jwks", "x5u": "https://evil.example/x5u", "x5t": "0"}),
        ] {
            assert_eq!(check(good.clone()), Ok(()), "{good}");
        }
        for bad in [
            json!({"alg": "ES256", "crit": ["exp"], "exp": 1}),
            json!({"alg": "ES256", "crit": []}),
            json!({"alg": "ES256", "b64": false}),
            json!({"alg": "ES256", "b64": true}),
            json!({"alg": "ES256", "zip": "DEF"}),
            json!({"alg": "ES256", "zip": null}),
            json!({"alg": "ES256", "enc": "A256GCM"}),
            json!({"alg": "ES256", "epk": {}}),
            json!({"alg": "ES256", "jwk": {"kty": "EC"}}),
            json!({"alg": "ES256", "cty": "JWT"}),
            json!({"alg": "ES256", "cty": "application/jwt"}),
            json!({"alg": "ES256", "cty": "jose+json"}),
            json!({"alg": "HS256"}),
            json!({"alg": "ES256", "typ": "secevent+jwt"}),
        ] {
            assert!(check(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_that_come_twice_are_refused() {
        for part in [
            r#"{"sub":"ada","sub":"bob"}"#,
            r#"{"sub":"ada","s\u0075b":"bob"}"#,
            "[]",
            "null",
            "{",
        ] {
            let token = format!("x.{}.y", URL_SAFE_NO_PAD.encode(part));
            assert!(Part::of(&token, 1).is_err(), "{part}");
        }
    }

    #[test]
    fn a_subject_is_a_name_that_people_see() {
        let admit = |sub: Value| issuer().admit(&claims(json!({"sub": sub})));
        assert_eq!(admit(json!("ada")).unwrap().as_str(), "https://id.example#ada");
        for bad in [
            json!(""),
            json!("a\u{ad}da"),
            json!("ada\u{e0041}"),
            json!("a da"),
            json!(["ada"]),
            json!(1),
        ] {
            assert!(admit(bad.clone()).is_err(), "{bad}");
        }
    }
}
