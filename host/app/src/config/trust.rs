//! The `[registries]` and `[trust]` tables, including docker's credentials and the keys of signers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use tollgate_components::loading::Registries;
use tollgate_core::file;
use tollgate_registry::{Client, Credentials, Signer, Trust, Unsigned};

use super::{Config, OCI};

/// Maximum bytes of a key, a root of trust, or docker's configuration.
const FILE_LIMIT: u64 = 1 << 20;

/// The `[trust]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrustConfig {
    unsigned: Unsigned,
    signers: BTreeMap<String, SignerConfig>,
}

/// One `[trust.signers.NAME]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SignerConfig {
    sources: Vec<String>,
    key: Option<PathBuf>,
    identity: Option<String>,
    issuer: Option<String>,
    root: Option<PathBuf>,
}

impl TrustConfig {
    /// Resolves relative paths against the configuration's folder.
    pub(super) fn rebase(&mut self, base: &Path) {
        for signer in self.signers.values_mut() {
            for path in [&mut signer.key, &mut signer.root].into_iter().flatten() {
                *path = base.join(&*path);
            }
        }
    }

    fn open(&self) -> anyhow::Result<Trust> {
        let signers = self.signers.iter().map(|(name, signer)| signer.open(name));
        Ok(Trust {
            unsigned: self.unsigned,
            signers: signers.collect::<anyhow::Result<_>>()?,
        })
    }
}

impl SignerConfig {
    fn open(&self, name: &str) -> anyhow::Result<Signer> {
        let root = self
            .root
            .as_deref()
            .map(|path| read(name, "root", path))
            .transpose()?;
        let root = root.as_deref();
        match (&self.key, &self.identity, &self.issuer) {
            (Some(key), None, None) => {
                let pem = read(name, "key", key)?;
                Ok(Signer::key(name, &self.sources, &pem, root)?)
            }
            (None, Some(identity), Some(issuer)) => {
                Ok(Signer::identity(name, &self.sources, (issuer, identity), root)?)
            }
            _ => anyhow::bail!(
                "trust.signers.{name} needs either key, or identity and issuer; set one of them"
            ),
        }
    }
}

fn read(name: &str, key: &str, path: &Path) -> anyhow::Result<String> {
    let text = file::read(path, FILE_LIMIT).map(|(text, _)| text);
    text.with_context(|| format!("trust.signers.{name}.{key}: cannot read {}", path.display()))
}

impl Config {
    /// Returns whether a pack or a policy comes from a registry.
    pub fn uses_registries(&self) -> bool {
        let packs = self.packs.values().filter_map(|pack| pack.source.as_deref());
        let policies = self
            .policies
            .values()
            .filter_map(|policy| policy.source.as_deref());
        packs.chain(policies).any(|source| source.starts_with(OCI))
    }

    /// Opens the registries, with the variables of this process.
    pub fn open_registries(
        &self,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> anyhow::Result<Registries> {
        for (host, settings) in &self.registries {
            let is_whole = settings.user.is_none() || settings.password_env.is_some();
            ensure!(
                is_whole,
                "registries.\"{host}\".user needs password_env, the variable with the password"
            );
        }
        let docker = docker(&variables)?;
        let credentials = Credentials::new(self.registries.clone(), docker.as_deref(), Box::new(variables));
        Ok(Registries {
            client: Client::new(credentials),
            trust: self.trust.open()?,
        })
    }
}

/// Docker's configuration, if there is one.
fn docker(variables: &impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<String>> {
    let named = variables("DOCKER_CONFIG")
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    let Some(folder) = named.or_else(|| Some(etcetera::home_dir().ok()?.join(".docker"))) else {
        return Ok(None);
    };
    let path = folder.join("config.json");
    match file::read(&path, FILE_LIMIT) {
        Ok((text, _)) => Ok(Some(text)),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(err) => Err(err).with_context(|| format!("cannot read {}", path.display())),
    }
}
