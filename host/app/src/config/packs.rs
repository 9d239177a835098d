//! Checks of a `[packs.NAME]` table as a whole: its source.

use tollgate_components::builtin;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::Problem;
use super::{BUILTIN, HTTPS, OCI, unpinned};

/// Every pack whose component cannot be found by what its table says.
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
        // Something else than text is reported where values are checked.
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
                "packs.{name} comes from another machine and needs a sha256, which `tollgate packs add {}` tells",
                tollgate_core::text::clean(url)
            ),
        )),
        Some(Some(source)) if source.starts_with(OCI) => {
            let problem = unpinned(&format!("packs.{name}"), source, table.contains_key("sha256"));
            problem.map(|problem| (at_source, problem))
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
