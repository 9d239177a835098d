//! Facts that all packages of a release share.

use anyhow::Context as _;

use crate::run::root;

/// Version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Licence expression of the workspace.
pub(crate) const LICENCE: &str = env!("CARGO_PKG_LICENSE");
/// Server name of a release without a repository. `example.com` is reserved, so no registry accepts it.
const UNPUBLISHED: &str = "com.example/tollgate";

/// A release of this version.
pub(crate) struct Release {
    /// Repository of the release, if it has one yet.
    pub(crate) repository: Option<Repository>,
    /// True if npm's registry has the packages of all platforms.
    pub(crate) is_published: bool,
}

/// A public repository.
#[derive(Debug)]
pub(crate) struct Repository {
    /// `https://HOST/OWNER/NAME`.
    pub(crate) url: String,
    host: String,
    owner: String,
}

impl Release {
    /// Creates a release in the repository with this address, or in the workspace's.
    pub(crate) fn new(url: Option<&str>, is_published: bool) -> anyhow::Result<Release> {
        let url = match url {
            Some(url) => Some(url.to_owned()),
            None => of_workspace()?,
        };
        Ok(Release {
            repository: url.as_deref().map(Repository::read).transpose()?,
            is_published,
        })
    }

    /// Name in MCP's registry. Owners on GitHub have names of the form `io.github.OWNER/…`.
    pub(crate) fn server_name(&self) -> String {
        match &self.repository {
            Some(repository) if repository.host == "github.com" => {
                format!("io.github.{}/tollgate", repository.owner)
            }
            _ => UNPUBLISHED.to_owned(),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn of_workspace() -> anyhow::Result<Option<String>> {
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
    let package = manifest
        .get("workspace")
        .and_then(|workspace| workspace.get("package"));
    let repository = package.and_then(|package| package.get("repository")?.as_str());
    Ok(repository.map(str::to_owned))
}

impl Repository {
    fn read(url: &str) -> anyhow::Result<Repository> {
        let parts = || {
            let rest = url.strip_prefix("https://")?;
            let mut parts = rest.split('/').filter(|part| is_plain(part));
            let found = (parts.next()?, parts.next()?, parts.next()?);
            // A difference means that characters were filtered out.
            (rest == format!("{}/{}/{}", found.0, found.1, found.2)).then_some(found)
        };
        let (host, owner, _) = parts()
            .with_context(|| format!("{url} is not the address of a repository: https://HOST/OWNER/NAME"))?;
        Ok(Repository {
            url: url.to_owned(),
            host: host.to_owned(),
            owner: owner.to_owned(),
        })
    }

    /// Name of the hosting service in MCP's registry.
    pub(crate) fn service(&self) -> &str {
        self.host.strip_suffix(".com").unwrap_or(&self.host)
    }
}

/// Returns whether a text only has letters, digits, `-`, `_` and `.`, which need no escaping in any of the files.
fn is_plain(part: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !part.is_empty() && part.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_has_a_host_an_owner_and_a_name() {
        let release = Release::new(Some("https://github.com/some-owner/tollgate"), false).unwrap();
        assert_eq!(release.server_name(), "io.github.some-owner/tollgate");
        let elsewhere = Release::new(Some("https://codeberg.org/owner/tollgate"), false).unwrap();
        assert_eq!(elsewhere.server_name(), UNPUBLISHED);
        for url in [
            "",
            "github.com/owner/name",
            "http://github.com/owner/name",
            "https://github.com/owner",
            "https://github.com/owner/",
            "https://github.com//owner/name",
            "https://github.com/owner/name/tree",
            "https://github.com/owner/name/",
            "https://user@github.com/owner/name",
            "https://github.com/owner/na me",
            "https://github.com/owner/na\"me",
        ] {
            let refused = Release::new(Some(url), false).err().map(|err| err.to_string());
            assert!(
                refused.is_some_and(|text| text.contains("https://HOST/OWNER/NAME")),
                "{url}"
            );
        }
    }
}
