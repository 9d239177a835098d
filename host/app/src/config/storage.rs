//! The `[storage]` table: the database.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;
use tollgate_gate::telemetry::SecretIn;
use tollgate_store::storage::{Roles, Server, ServerError};

/// The `[storage]` table. Without a URL the database is a file of the data directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StorageConfig {
    url: Option<String>,
    roles: Roles,
    lanes: Option<NonZeroUsize>,
}

/// Reason why the named database cannot be used. Contains no password.
#[derive(Debug, Error)]
pub enum StorageError {
    /// The URL could not be read from its variable or file.
    #[error("the URL of the database (storage.url, --database) cannot be read: {0}")]
    Unread(String),
    /// The URL is malformed, or its server must not be used.
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl StorageConfig {
    /// Database server according to a flag or the file. `environment` has the variables that are named.
    pub fn server(
        &self,
        flag: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Server>, StorageError> {
        // An empty variable counts as unset.
        let said = flag.filter(|said| !said.is_empty()).or(self.url.as_deref());
        let Some(said) = said else {
            return Ok(None);
        };
        let url = match SecretIn::parse(said) {
            Some(place) => place.read(&environment).map_err(StorageError::Unread)?,
            None => said.to_owned(),
        };
        Ok(Some(
            Server::from_url(url.trim())?
                .with_roles(self.roles)
                .with_lanes(self.lanes),
        ))
    }

    /// File with the database's password: the configuration itself, or a file that it names.
    pub fn file_with_password(&self, configuration: &Path) -> Option<PathBuf> {
        let url = self.url.as_deref()?;
        match SecretIn::parse(url) {
            Some(SecretIn::File(path)) => Some(path),
            Some(SecretIn::Variable(_)) => None,
            None => {
                let has_password = url::Url::parse(url.trim()).is_ok_and(|url| url.password().is_some());
                has_password.then(|| configuration.to_owned())
            }
        }
    }

    /// Resolves a relative path against a directory.
    pub(super) fn rebase(&mut self, base: &Path) {
        if let Some(url) = &mut self.url
            && let Some(SecretIn::File(path)) = SecretIn::parse(url)
        {
            *url = format!("file:{}", base.join(path).display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: Option<&str>, flag: Option<&str>) -> Result<Option<String>, String> {
        let config = StorageConfig {
            url: url.map(str::to_owned),
            ..StorageConfig::default()
        };
        let variables = |name: &str| (name == "DB").then(|| "postgres://ada:secret@localhost/t\n".to_owned());
        let server = config.server(flag, variables);
        server
            .map(|server| server.map(|server| server.to_string()))
            .map_err(|err| err.to_string())
    }

    #[test]
    fn a_flag_comes_before_the_file_and_secrets_may_be_elsewhere() {
        assert_eq!(server(None, None), Ok(None));
        let here = Ok(Some("postgres://localhost:5432/t".to_owned()));
        assert_eq!(server(Some("env:DB"), None), here);
        assert_eq!(server(Some("env:DB"), Some("")), here);
        assert_eq!(server(Some("mysql://x"), Some("postgres://localhost/t")), here);
        for (url, says) in [
            ("env:NONE", "the variable NONE is not set"),
            ("file:/nowhere/url", "/nowhere/url"),
            ("mysql://ada:secret@x", "the database URL is malformed"),
        ] {
            let refused = server(Some(url), None).unwrap_err();
            assert!(refused.contains(says) && !refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn a_password_is_in_a_file_or_not() {
        let held = |url: &str| {
            let config = StorageConfig {
                url: Some(url.to_owned()),
                ..StorageConfig::default()
            };
            config.file_with_password(Path::new("tollgate.toml"))
        };
        let file = |path: &str| Some(PathBuf::from(path));
        assert_eq!(held("postgres://ada:secret@db/t"), file("tollgate.toml"));
        assert_eq!(held("file:/run/secrets/url"), file("/run/secrets/url"));
        assert_eq!(held("postgres://ada@db/t"), None);
        assert_eq!(held("env:DATABASE_URL"), None);
        assert_eq!(
            StorageConfig::default().file_with_password(Path::new("tollgate.toml")),
            None
        );
    }

    #[test]
    fn the_path_of_a_file_starts_where_the_configuration_is() {
        let mut config = StorageConfig {
            url: Some("file:url".to_owned()),
            ..StorageConfig::default()
        };
        config.rebase(Path::new("/etc/tollgate"));
        assert_eq!(config.url.as_deref(), Some("file:/etc/tollgate/url"));
    }
}
