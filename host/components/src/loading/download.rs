//! Download of components: over HTTPS only, up to a size limit, and stored under their hash.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use thiserror::Error;
use tollgate_core::hash::sha256_hex;
use tollgate_registry::{Evidence, Reference, RegistryError};
use tollgate_store::data_dir::{DataDir, DataDirError, open_private};
use ureq::tls::{RootCerts, TlsConfig};

use super::registry::{Fetched, Registries, evidence_name};
use super::version::MAX_SIZE;

/// Directory inside the data directory.
const DIR: &str = "components";
/// Time limit for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for the whole download.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Most bytes of a manifest with its signatures, as they are kept.
const EVIDENCE_LIMIT: u64 = 32 << 20;

/// Reason for which a component was not downloaded. Nothing was stored.
#[derive(Debug, Error)]
pub enum DownloadError {
    /// The server was not reached, is not trusted, or closed the connection.
    #[error("cannot download {url}{}", tollgate_registry::connection_remedy(source))]
    Unreachable {
        /// Address.
        url: String,
        #[source]
        source: ureq::Error,
    },
    /// The server answered with an error status.
    #[error("{url} returned {status}")]
    Status {
        /// Address.
        url: String,
        /// HTTP status.
        status: u16,
    },
    /// The component is larger than allowed.
    #[error("{url} is larger than the {MAX_SIZE} bytes that are accepted")]
    TooLarge {
        /// Address.
        url: String,
    },
    /// The content differs from the pinned hash.
    #[error(
        "{url} has SHA-256 {found}, but the pinned one is {pinned}; pin the new one if you trust the change"
    )]
    OtherHash {
        /// Address.
        url: String,
        /// Hash of the received content.
        found: String,
        /// Hash that the component must have.
        pinned: String,
    },
    /// The registry has no such component, or no trusted key signed it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// No registry is configured.
    #[error("cannot pull {0}: this command does not use registries")]
    NoRegistries(String),
}

/// Components that were downloaded to a data directory, by their hash.
pub struct Downloads {
    /// The directory, if it exists.
    dir: Option<Dir>,
    /// True if nothing is stored.
    is_frozen: bool,
    /// Registries and trust of the configuration in force.
    registries: RwLock<Option<Arc<Registries>>>,
}

impl Downloads {
    /// Opens the directory and creates it if it is missing.
    pub fn open(data: &DataDir) -> Result<Downloads, DataDirError> {
        Ok(Downloads {
            dir: Some(data.private_dir(DIR)?),
            is_frozen: false,
            registries: RwLock::default(),
        })
    }

    /// Opens an existing directory read-only.
    pub(super) fn frozen(data: &DataDir) -> Result<Downloads, DataDirError> {
        let dir = data.has(DIR).then(|| data.private_dir(DIR)).transpose()?;
        Ok(Downloads {
            dir,
            is_frozen: true,
            registries: RwLock::default(),
        })
    }

    /// Component with a hash, from here or from its server.
    pub async fn get_or_fetch(&self, url: &str, sha256: &str) -> Result<Vec<u8>, DownloadError> {
        if let Some(bytes) = self.get(sha256) {
            return Ok(bytes);
        }
        let bytes = fetch(url).await?;
        let found = sha256_hex(&bytes);
        if !found.eq_ignore_ascii_case(sha256) {
            return Err(DownloadError::OtherHash {
                url: url.to_owned(),
                found,
                pinned: sha256.to_owned(),
            });
        }
        self.put(&found, &bytes);
        Ok(bytes)
    }

    /// Sets the registries and the trust for later loads.
    pub fn use_registries(&self, registries: Arc<Registries>) {
        *self.registries.write().unwrap_or_else(PoisonError::into_inner) = Some(registries);
    }

    /// Component of a pinned reference, from here or from its registry. Signatures are verified in both cases, so
    /// that a change of the trusted keys also applies to stored components.
    pub async fn get_or_pull(&self, reference: &Reference, sha256: &str) -> Result<Vec<u8>, DownloadError> {
        let registries = self
            .registries
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let registries = registries.ok_or_else(|| DownloadError::NoRegistries(reference.to_string()))?;
        if let (Some(bytes), Some(evidence)) = (self.get(sha256), self.evidence(reference)) {
            registries.trust.judge(reference, sha256, &evidence)?;
            return Ok(bytes);
        }
        let mut fetched = registries.fetch(reference).await?;
        if !fetched.sha256.eq_ignore_ascii_case(sha256) {
            return Err(DownloadError::OtherHash {
                url: reference.to_string(),
                found: fetched.sha256,
                pinned: sha256.to_owned(),
            });
        }
        let verdict = std::mem::replace(&mut fetched.verdict, Ok(tollgate_registry::Verdict::Unknown(0)));
        tracing::info!("{reference} is {}", verdict?);
        self.put_fetched(&fetched);
        Ok(fetched.bytes)
    }

    /// Stores a pulled component with its signatures.
    pub fn put_fetched(&self, fetched: &Fetched) {
        self.put(&fetched.sha256, &fetched.bytes);
        if let Ok(text) = serde_json::to_vec(&fetched.evidence) {
            self.keep(&evidence_name(&fetched.pulled.digest), &text);
        }
    }

    /// Manifest and signatures of a pinned reference, if they are stored here.
    fn evidence(&self, reference: &Reference) -> Option<Evidence> {
        let file = open_private(self.dir.as_ref()?, &evidence_name(reference.digest()?)).ok()??;
        let mut bytes = Vec::new();
        file.take(EVIDENCE_LIMIT).read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Stores a component. Without space for it the next start downloads it again.
    pub fn put(&self, sha256: &str, bytes: &[u8]) {
        self.keep(&name(sha256), bytes);
    }

    fn keep(&self, name: &str, bytes: &[u8]) {
        let Some(dir) = self.dir.as_ref().filter(|_| !self.is_frozen) else {
            return;
        };
        let draft = format!("{name}.{}", std::process::id());
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = dir.open_with(&draft, &options).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()?;
            dir.rename(&draft, dir, name)
        });
        if let Err(err) = written {
            tracing::warn!(name, %err, "cannot cache a downloaded component");
            let _ = dir.remove_file(&draft);
        }
    }

    /// Removes a component. Returns whether there was one.
    pub fn remove(&self, sha256: &str) -> bool {
        let dir = self.dir.as_ref().filter(|_| !self.is_frozen);
        dir.is_some_and(|dir| dir.remove_file(name(sha256)).is_ok())
    }

    /// Removes the manifest and the signatures of a pinned reference.
    pub fn remove_evidence(&self, reference: &Reference) {
        let dir = self.dir.as_ref().filter(|_| !self.is_frozen);
        if let (Some(dir), Some(digest)) = (dir, reference.digest()) {
            // Fails if the file does not exist, which is fine.
            let _ = dir.remove_file(evidence_name(digest));
        }
    }

    /// Downloaded content with a hash, if it still has that hash.
    pub fn get(&self, sha256: &str) -> Option<Vec<u8>> {
        let file = open_private(self.dir.as_ref()?, &name(sha256)).ok()??;
        let mut bytes = Vec::new();
        file.take(MAX_SIZE as u64 + 1).read_to_end(&mut bytes).ok()?;
        sha256_hex(&bytes).eq_ignore_ascii_case(sha256).then_some(bytes)
    }
}

fn name(sha256: &str) -> String {
    format!("{}.wasm", sha256.to_ascii_lowercase())
}

/// Downloads a component. Redirects are followed if they lead to HTTPS.
pub async fn fetch(url: &str) -> Result<Vec<u8>, DownloadError> {
    let from = url.to_owned();
    let fetching = tokio::task::spawn_blocking(move || fetch_here(&from));
    let failed = |err: ureq::Error| match err {
        ureq::Error::StatusCode(status) => DownloadError::Status {
            url: url.to_owned(),
            status,
        },
        ureq::Error::BodyExceedsLimit(_) => DownloadError::TooLarge { url: url.to_owned() },
        source => DownloadError::Unreachable {
            url: url.to_owned(),
            source,
        },
    };
    let stopped = |err| ureq::Error::Io(std::io::Error::other(err));
    fetching.await.map_err(stopped).flatten().map_err(failed)
}

/// Downloads on the current thread.
fn fetch_here(url: &str) -> Result<Vec<u8>, ureq::Error> {
    // Fails if a provider is installed already, which is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trust = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
    let agent = ureq::Agent::config_builder()
        .https_only(true)
        .tls_config(trust.build())
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_global(Some(DOWNLOAD_TIMEOUT))
        .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent();
    let mut response = agent.get(url).call()?;
    response
        .body_mut()
        .with_config()
        .limit(MAX_SIZE as u64 + 1)
        .read_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test damages a file")]
    fn what_is_kept_has_the_hash_it_is_kept_under() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(place.path()).unwrap();
        let downloads = Downloads::open(&data).unwrap();
        let hash = sha256_hex(b"component");
        assert_eq!(downloads.get(&hash), None);
        downloads.put(&hash, b"component");
        assert_eq!(
            downloads.get(&hash.to_uppercase()).as_deref(),
            Some(&b"component"[..])
        );
        let file = place.path().join("components").join(format!("{hash}.wasm"));
        std::fs::write(file, b"damaged").unwrap();
        assert_eq!(downloads.get(&hash), None);
        assert!(downloads.remove(&hash));
        assert!(!downloads.remove(&hash));
    }

    #[tokio::test]
    async fn nothing_is_asked_for_in_the_clear() {
        let err = fetch("http://127.0.0.1:9/x.wasm").await.unwrap_err();
        assert!(matches!(err, DownloadError::Unreachable { .. }), "{err}");
    }
}
