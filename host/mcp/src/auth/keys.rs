//! Public keys of an issuer: read from a file, or fetched and cached. They are fetched again when a token names an
//! unknown key.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use thiserror::Error;
use tokio::sync::Mutex;
use ureq::tls::{RootCerts, TlsConfig};
use url::Url;

/// Timeout for an answer of the issuer.
const ISSUER_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest answer, in bytes.
const MAX_ANSWER: u64 = 1 << 20;
/// Keys older than this are fetched again before use.
const FRESH_AGE_LIMIT: Duration = Duration::from_secs(3600);
/// Keys older than this are not used even if the issuer does not answer.
const STALE_AGE_LIMIT: Duration = Duration::from_secs(24 * 3600);
/// Minimum time between two attempts, however many tokens name unknown keys.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Source of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The address in the issuer's metadata.
    Discovered,
    /// This address.
    Url(String),
    /// This file.
    File(PathBuf),
}

/// Reason why no keys are available.
#[derive(Debug, Error)]
pub enum KeyError {
    /// Keys may not come from this address.
    #[error("{0} is neither an https address nor an address of this machine")]
    Address(String),
    /// The issuer did not answer, or not with keys.
    #[error("cannot fetch {url}")]
    Fetch {
        /// Requested address.
        url: String,
        #[source]
        source: ureq::Error,
    },
    /// The server's answer is not usable.
    #[error("{url}: {problem}")]
    Answer {
        /// Requested address.
        url: String,
        /// Problem with the answer.
        problem: String,
    },
    /// The file cannot be read.
    #[error("cannot read the keys in {path}")]
    File {
        /// Path of the file.
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// The last attempt failed, and the next is not due yet.
    #[error("the last attempt to fetch the issuer's keys failed; the next follows within 30 s")]
    JustFailed,
}

/// Cached keys, and the means to fetch them.
#[derive(Debug)]
pub(super) struct Keys {
    issuer: String,
    source: KeySource,
    held: RwLock<Option<Held>>,
    /// Time of the last attempt. The lock ensures that only one attempt runs at a time.
    attempt: Mutex<Option<Instant>>,
}

#[derive(Debug, Clone)]
struct Held {
    keys: Arc<[Jwk]>,
    since: Instant,
}

/// Next step for a token, based on the age of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Use the cached keys.
    Use,
    /// Fetch first. If that fails, use the cached keys.
    Refresh,
    /// Fetch first. If that fails, there are no keys.
    Fetch,
    /// No keys are cached, and the next attempt is not due yet.
    Wait,
}

/// Decides the next step. `age` is the age of the cached keys, and `attempt` the time since the last fetch began.
fn step(is_known: bool, age: Option<Duration>, attempt: Option<Duration>) -> Step {
    let may_ask = attempt.is_none_or(|ago| ago >= RETRY_INTERVAL);
    match age.filter(|age| *age < STALE_AGE_LIMIT) {
        Some(age) if is_known && (age < FRESH_AGE_LIMIT || !may_ask) => Step::Use,
        Some(_) if may_ask => Step::Refresh,
        Some(_) => Step::Use,
        None if may_ask => Step::Fetch,
        None => Step::Wait,
    }
}

impl Keys {
    pub(super) fn new(issuer: &str, source: KeySource) -> Result<Keys, KeyError> {
        let mut addresses = vec![issuer];
        if let KeySource::Url(url) = &source {
            addresses.push(url);
        }
        for address in addresses {
            checked(address)?;
        }
        Ok(Keys {
            issuer: issuer.to_owned(),
            source,
            held: RwLock::new(None),
            attempt: Mutex::new(None),
        })
    }

    /// Key for a token's header. `None` if the issuer publishes no such key.
    pub(super) async fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Option<Jwk>, KeyError> {
        let known = |held: &Option<Held>| {
            let held = held.as_ref()?;
            held.keys.iter().find(|key| fits(key, id, algorithm)).cloned()
        };
        let held = self.held();
        if let Some(key) = known(&held)
            && held
                .as_ref()
                .is_some_and(|held| held.since.elapsed() < FRESH_AGE_LIMIT)
        {
            return Ok(Some(key));
        }
        let mut attempt = self.attempt.lock().await;
        // Another request may have fetched the keys while this one waited for the lock.
        let held = self.held();
        let age = held.as_ref().map(|held| held.since.elapsed());
        let ago = attempt.map(|at| at.elapsed());
        match step(known(&held).is_some(), age, ago) {
            Step::Use => Ok(known(&held)),
            Step::Wait => Err(KeyError::JustFailed),
            asked @ (Step::Refresh | Step::Fetch) => {
                *attempt = Some(Instant::now());
                match self.load().await {
                    Ok(()) => Ok(known(&self.held())),
                    Err(err) if asked == Step::Refresh => {
                        tracing::warn!(%err, "refreshing the issuer's keys failed");
                        Ok(known(&held))
                    }
                    Err(err) => Err(err),
                }
            }
        }
    }

    /// Fetches keys if none are cached.
    pub(super) async fn refresh_if_none(&self) -> Result<(), KeyError> {
        if self.held().is_some() {
            return Ok(());
        }
        let mut attempt = self.attempt.lock().await;
        match step(
            false,
            self.held().map(|held| held.since.elapsed()),
            attempt.map(|at| at.elapsed()),
        ) {
            Step::Use | Step::Refresh => Ok(()),
            Step::Wait => Err(KeyError::JustFailed),
            Step::Fetch => {
                *attempt = Some(Instant::now());
                self.load().await
            }
        }
    }

    fn held(&self) -> Option<Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn load(&self) -> Result<(), KeyError> {
        let (from, text) = match &self.source {
            KeySource::File(path) => (path.display().to_string(), read_file(path)?),
            KeySource::Url(url) => (url.clone(), self.fetch(url).await?),
            KeySource::Discovered => {
                let url = self.discover().await?;
                let text = self.fetch(&url).await?;
                (url, text)
            }
        };
        let keys = parse(&from, &text)?;
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(Held {
            keys,
            since: Instant::now(),
        });
        Ok(())
    }

    /// Address of the keys, from the issuer's metadata according to RFC 8414 or OpenID Connect.
    async fn discover(&self) -> Result<String, KeyError> {
        let mut last = KeyError::Address(self.issuer.clone());
        for url in metadata_addresses(&self.issuer) {
            match self.fetch(&url).await {
                Ok(text) => return self.keys_address(&url, &text),
                Err(err) => last = err,
            }
        }
        Err(last)
    }

    fn keys_address(&self, url: &str, text: &[u8]) -> Result<String, KeyError> {
        #[derive(Deserialize)]
        struct Metadata {
            issuer: String,
            jwks_uri: String,
        }
        let answer = |problem: String| KeyError::Answer {
            url: url.to_owned(),
            problem,
        };
        let metadata: Metadata = serde_json::from_slice(text).map_err(|err| answer(err.to_string()))?;
        if metadata.issuer != self.issuer {
            return Err(answer(format!(
                "it names the issuer {}, not the configured one",
                metadata.issuer
            )));
        }
        checked(&metadata.jwks_uri)?;
        Ok(metadata.jwks_uri)
    }

    async fn fetch(&self, url: &str) -> Result<Vec<u8>, KeyError> {
        let from = url.to_owned();
        let fetching = tokio::task::spawn_blocking(move || get(&from));
        let stopped = |err| ureq::Error::Io(std::io::Error::other(err));
        let failed = |source| KeyError::Fetch {
            url: url.to_owned(),
            source,
        };
        fetching.await.map_err(stopped).flatten().map_err(failed)
    }
}

/// Fetches an address without following redirects.
fn get(url: &str) -> Result<Vec<u8>, ureq::Error> {
    // If this fails, another caller has already installed the same provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trust = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
    let agent = ureq::Agent::config_builder()
        .tls_config(trust.build())
        .max_redirects(0)
        .timeout_global(Some(ISSUER_TIMEOUT))
        .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent();
    let mut response = agent.get(url).header("accept", "application/json").call()?;
    response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec()
}

/// Returns whether a key may have made a signature. A key without an id matches tokens without a key id.
fn fits(key: &Jwk, id: Option<&str>, algorithm: Algorithm) -> bool {
    let common = &key.common;
    let is_for_signing = !matches!(common.public_key_use, Some(PublicKeyUse::Encryption));
    let is_for_algorithm = common
        .key_algorithm
        .is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    let is_named = id.is_none_or(|id| common.key_id.as_deref() == Some(id));
    is_for_signing && is_for_algorithm && is_named
}

/// Parses a key set. Keys of unknown kinds are left out.
fn parse(from: &str, text: &[u8]) -> Result<Arc<[Jwk]>, KeyError> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<serde_json::Value>,
    }
    let answer = |problem: String| KeyError::Answer {
        url: from.to_owned(),
        problem,
    };
    let set: Set = serde_json::from_slice(text).map_err(|err| answer(err.to_string()))?;
    let keys: Vec<Jwk> = set
        .keys
        .into_iter()
        .filter_map(|key| serde_json::from_value::<Jwk>(key).ok())
        .filter(|key| DecodingKey::from_jwk(key).is_ok())
        .collect();
    if keys.is_empty() {
        return Err(answer("there is no usable key".to_owned()));
    }
    Ok(keys.into())
}

fn read_file(path: &std::path::Path) -> Result<Vec<u8>, KeyError> {
    #[allow(clippy::disallowed_methods, reason = "the operator names the file")]
    std::fs::read(path).map_err(|source| KeyError::File {
        path: path.display().to_string(),
        source,
    })
}

/// Possible addresses of an issuer's metadata.
fn metadata_addresses(issuer: &str) -> Vec<String> {
    let Ok(url) = Url::parse(issuer) else {
        return Vec::new();
    };
    let origin = url.origin().ascii_serialization();
    let path = url.path().trim_end_matches('/');
    vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
        format!("{origin}{path}/.well-known/openid-configuration"),
    ]
}

/// Checks that an address is trustworthy: it uses https or is on this machine. It must have no fragment, because
/// identities separate the subject with `#`.
fn checked(address: &str) -> Result<Url, KeyError> {
    let url = Url::parse(address).ok().filter(|url| {
        let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_local);
        is_safe && url.host_str().is_some() && url.fragment().is_none()
    });
    url.ok_or_else(|| KeyError::Address(address.to_owned()))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn when_keys_are_fetched() {
        let mut matrix = String::new();
        for is_known in [true, false] {
            for age in [None, Some(1), Some(3600), Some(86_400)] {
                for attempt in [None, Some(1), Some(30)] {
                    let seconds = |time: Option<u64>| time.map(Duration::from_secs);
                    let step = step(is_known, seconds(age), seconds(attempt));
                    matrix += &format!("known {is_known} age {age:?} attempt {attempt:?}: {step:?}\n");
                }
            }
        }
        expect![[r#"
            known true age None attempt None: Fetch
            known true age None attempt Some(1): Wait
            known true age None attempt Some(30): Fetch
            known true age Some(1) attempt None: Use
            known true age Some(1) attempt Some(1): Use
            known true age Some(1) attempt Some(30): Use
            known true age Some(3600) attempt None: Refresh
            known true age Some(3600) attempt Some(1): Use
            known true age Some(3600) attempt Some(30): Refresh
            known true age Some(86400) attempt None: Fetch
            known true age Some(86400) attempt Some(1): Wait
            known true age Some(86400) attempt Some(30): Fetch
            known false age None attempt None: Fetch
            known false age None attempt Some(1): Wait
            known false age None attempt Some(30): Fetch
            known false age Some(1) attempt None: Refresh
            known false age Some(1) attempt Some(1): Use
            known false age Some(1) attempt Some(30): Refresh
            known false age Some(3600) attempt None: Refresh
            known false age Some(3600) attempt Some(1): Use
            known false age Some(3600) attempt Some(30): Refresh
            known false age Some(86400) attempt None: Fetch
            known false age Some(86400) attempt Some(1): Wait
            known false age Some(86400) attempt Some(30): Fetch
        "#]]
        .assert_eq(&matrix);
    }

    #[test]
    fn metadata_is_looked_for_where_issuers_put_it() {
        assert_eq!(
            metadata_addresses("https://id.example/tenant/"),
            [
                "https://id.example/.well-known/oauth-authorization-server/tenant",
                "https://id.example/.well-known/openid-configuration/tenant",
                "https://id.example/tenant/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn keys_come_over_https_or_from_this_machine() {
        for good in [
            "https://id.example",
            "http://127.0.0.1:9/x",
            "http://localhost",
            "http://[::1]:1",
        ] {
            assert!(checked(good).is_ok(), "{good}");
        }
        for bad in [
            "http://id.example",
            "http://127.0.0.1.evil.example",
            "https://id.example#x",
            "file:///etc/passwd",
            "id.example",
        ] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_of_unknown_kinds_are_left_out() {
        let set = br#"{"keys": [{"kty": "new", "kid": "1"},
            {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "2"}]}"#;
        let keys = parse("test", set).unwrap();
        assert_eq!(keys.len(), 1);
        assert!(fits(&keys[0], Some("2"), Algorithm::EdDSA));
        assert!(fits(&keys[0], None, Algorithm::EdDSA));
        assert!(!fits(&keys[0], Some("1"), Algorithm::EdDSA));
        assert!(parse("test", br#"{"keys": []}"#).is_err());
    }
}
