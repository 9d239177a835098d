//! The `[packs.NAME]` tables, and a check of each table's source.

use serde::Deserialize;
use tollgate_components::builtin;
use tollgate_components::grants::Grants;
use tollgate_components::loading::Origin;
use tollgate_registry::Reference;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::Problem;
use super::limits::LimitsConfig;
use super::{BUILTIN, HTTPS, OCI};

/// One `[packs.NAME]` table.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PackConfig {
    /// True if the pack is loaded. Default true.
    pub enabled: Option<bool>,
    /// `builtin`, a path, or an address that starts with `https://` or `oci://`.
    pub source: Option<String>,
    /// Hash that its bytes must have.
    pub sha256: Option<String>,
    /// Globs of tools that must not exist.
    pub exclude: Vec<String>,
    /// True if the pack's schemas may use all of JSON Schema, although some clients refuse such lists.
    pub full_schemas: bool,
    /// True if tasks of the pack's idempotent tools are run again when their host is gone.
    pub resume: bool,
    /// Grants of the pack.
    pub grants: Grants,
    /// Limits of the pack's calls.
    pub limits: LimitsConfig,
    /// Pack's own settings.
    pub config: serde_json::Map<String, serde_json::Value>,
}

impl PackConfig {
    /// Origin of the pack's bytes. `None` if it has no source and is not built in, which the check of the file has
    /// reported.
    pub fn origin(&self, builtin: Option<&'static [u8]>) -> Option<Origin> {
        match self.source.as_deref() {
            None | Some(BUILTIN) => builtin.map(Origin::Builtin),
            Some(url) if url.starts_with(HTTPS) => Some(Origin::Https {
                url: url.to_owned(),
                sha256: self.sha256.clone()?,
            }),
            Some(source) if source.starts_with(OCI) => pinned("packs", source, self.sha256.as_deref()).ok(),
            Some(path) => Some(Origin::File(path.into())),
        }
    }
}

/// Origin in a registry. Fails if the source is not pinned. `path` is that of the component's table.
pub(super) fn pinned(path: &str, source: &str, sha256: Option<&str>) -> Result<Origin, String> {
    let parsed = source.parse::<Reference>();
    let reference = parsed.map_err(|err| format!("{path}.source: {err}"))?;
    match sha256.filter(|_| reference.digest().is_some()) {
        Some(sha256) => Ok(Origin::Oci {
            reference,
            sha256: sha256.to_owned(),
        }),
        None => {
            let (section, _) = path.split_once('.').unwrap_or((path, ""));
            Err(format!(
                "{path} comes from a registry and needs the digest of its manifest in source, after @, and sha256; \
                 `tollgate {section} add {reference}` writes both"
            ))
        }
    }
}

/// Hash in a component's table. Empty if the value is not text, which the check of values reports.
pub(super) fn sha256<'t>(table: &'t DeTable<'_>) -> Option<&'t str> {
    let value = table.get("sha256")?;
    Some(value.get_ref().as_str().unwrap_or_default())
}

/// Every pack whose table does not lead to a component.
pub(super) fn check(text: &str, whole: &DeTable<'_>) -> Vec<Problem> {
    let Some(DeValue::Table(packs)) = whole.get("packs").map(Spanned::get_ref) else {
        return Vec::new();
    };
    packs
        .iter()
        .filter_map(|(name, pack)| {
            let DeValue::Table(table) = pack.get_ref() else {
                return None;
            };
            let (at, problem) = check_one(name.get_ref(), name.span().start, table)?;
            Some(Problem::at(text, at, problem))
        })
        .collect()
}

fn check_one(name: &str, at: usize, table: &DeTable<'_>) -> Option<(usize, String)> {
    let is_off = matches!(
        table.get("enabled").map(Spanned::get_ref),
        Some(DeValue::Boolean(false))
    );
    let source = table.get("source");
    let at_source = source.map_or(at, |source| source.span().start);
    let source = source.map(|source| source.get_ref().as_str());
    match source {
        // The check of values reports anything that is not text.
        Some(None | Some("")) => None,
        Some(Some(BUILTIN)) | None if builtin::component(name).is_some() || is_off => None,
        Some(Some(BUILTIN)) => Some((
            at_source,
            format!("there is no built-in pack {name}{}", nearest(name)),
        )),
        None => Some((
            at,
            format!(
                "packs.{name} needs a source, a path or an address that starts with {HTTPS}, as it is not built in{}",
                nearest(name)
            ),
        )),
        Some(Some(url)) if url.starts_with("http://") => Some((
            at_source,
            format!("packs.{name}.source must start with {HTTPS}, or be a path"),
        )),
        Some(Some(url)) if url.starts_with(HTTPS) && !table.contains_key("sha256") => Some((
            at_source,
            format!(
                "packs.{name} comes from another machine and needs a sha256, which `tollgate packs add {}` prints",
                tollgate_core::text::clean(url)
            ),
        )),
        Some(Some(source)) if source.starts_with(OCI) => {
            let problem = pinned(&format!("packs.{name}"), source, sha256(table)).err()?;
            Some((at_source, problem))
        }
        Some(Some(_)) => None,
    }
}

fn nearest(name: &str) -> String {
    match tollgate_core::text::nearest(name, builtin::names()) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!(" (built in: {})", builtin::names().collect::<Vec<_>>().join(", ")),
    }
}
