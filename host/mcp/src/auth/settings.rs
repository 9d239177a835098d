//! Operator's settings for access over HTTP.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{IssuerSettings, KeySource};

/// The `[server.auth]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// The operator's own tokens.
    pub token_file: Option<PathBuf>,
    /// OAuth 2 issuer whose tokens are accepted.
    pub issuer: Option<String>,
    /// This server's address, as its clients know it.
    pub resource: Option<String>,
    /// Audience in tokens, if it is not the address.
    pub audience: Vec<String>,
    /// Scopes that every token must have.
    pub scopes: Vec<String>,
    /// Source of the issuer's keys: an address or a file.
    pub jwks: Option<String>,
}

impl Auth {
    /// Requirements for the issuer's tokens, if an issuer is configured. `resource` is the server's address.
    pub fn issuer(&self, resource: &str) -> Option<IssuerSettings> {
        let issuer = self.issuer.clone()?;
        Some(IssuerSettings {
            issuer,
            audience: match &self.audience[..] {
                [] => vec![resource.to_owned()],
                named => named.to_vec(),
            },
            scopes: self.scopes.clone(),
            keys: match &self.jwks {
                None => KeySource::Discovered,
                Some(url) if is_url(url) => KeySource::Url(url.clone()),
                Some(path) => KeySource::File(path.into()),
            },
        })
    }

    /// Resolves relative paths against a directory.
    pub fn rebase(&mut self, base: &Path) {
        if let Some(path) = &mut self.token_file {
            *path = base.join(&*path);
        }
        if let Some(path) = self.jwks.as_mut().filter(|jwks| !is_url(jwks)) {
            *path = base.join(&*path).display().to_string();
        }
    }
}

fn is_url(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}
