//! Sources of policies: the places that the key `source` of a policy can name.

use tollgate_components::builtin;
use tollgate_components::loading::Origin;
use tollgate_core::text;

use super::packs::pinned;
use super::{HTTPS, OCI};

/// Prefix of the source of a built-in policy.
const BUILTIN: &str = "builtin:";

/// Place that a policy comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicySource<'a> {
    /// No source: the built-in policy with the name of the table.
    Unnamed,
    /// Name of a built-in policy, after `builtin:`.
    Builtin(&'a str),
    /// An https address, which needs a hash.
    Https(&'a str),
    /// An http address, which is refused.
    Http,
    /// A reference to a registry, which needs a digest and a hash.
    Oci(&'a str),
    /// A path.
    File(&'a str),
}

impl<'a> PolicySource<'a> {
    /// Parses a source as configurations write it.
    pub fn parse(text: &'a str) -> PolicySource<'a> {
        if let Some(name) = text.strip_prefix(BUILTIN) {
            PolicySource::Builtin(name)
        } else if text.starts_with(HTTPS) {
            PolicySource::Https(text)
        } else if text.starts_with("http://") {
            PolicySource::Http
        } else if text.starts_with(OCI) {
            PolicySource::Oci(text)
        } else {
            PolicySource::File(text)
        }
    }

    /// Origin of the policy `name`, which has this source and may have a hash.
    ///
    /// # Errors
    ///
    /// Fails with a message that names the policy, if the source does not lead to a component.
    pub fn origin(self, name: &str, sha256: Option<&str>) -> Result<Origin, String> {
        match self {
            PolicySource::Unnamed => builtin::policy(name).map(Origin::Builtin).ok_or_else(|| {
                format!(
                    "policies.{name} has no source and is not built in; add source = \"PATH\", or \"builtin:NAME\" \
                     with one of {}",
                    all()
                )
            }),
            PolicySource::Builtin(own) => builtin_policy(own).map(Origin::Builtin),
            PolicySource::Https(url) => match sha256 {
                Some(sha256) => Ok(Origin::Https {
                    url: url.to_owned(),
                    sha256: sha256.to_owned(),
                }),
                None => Err(format!(
                    "policies.{name} comes from another machine and needs a sha256, which `tollgate policies add {}` prints",
                    text::clean(url)
                )),
            },
            PolicySource::Http => {
                Err(format!("policies.{name}.source must start with {HTTPS}, or be a path"))
            }
            PolicySource::Oci(reference) => pinned(&format!("policies.{name}"), reference, sha256),
            PolicySource::File(path) => Ok(Origin::File(path.into())),
        }
    }
}

/// Bytes of a built-in policy.
///
/// # Errors
///
/// Fails with a message that lists the built-in policies, if none has the name.
pub fn builtin_policy(name: &str) -> Result<&'static [u8], String> {
    builtin::policy(name).ok_or_else(|| {
        format!(
            "there is no built-in policy {name}; the built-in policies are {}",
            all()
        )
    })
}

/// Names of the built-in policies.
fn all() -> String {
    builtin::policies().collect::<Vec<_>>().join(", ")
}
