//! Packages of the tree by name: their entries, exports and imports, mapped from build output to sources.

use std::collections::BTreeMap;

use serde_json::Value;

use super::places::{index_of, is_output, module_at, source_of};
use crate::manifest::Manifest;
use crate::path;
use crate::resolve::Index;

/// Fields that name the entry of a package, in the order of their use.
const ENTRY_FIELDS: [&str; 5] = ["source", "module", "main", "types", "browser"];

/// Packages of a tree.
#[derive(Default)]
pub(super) struct Packages<'a> {
    /// Content of the manifest in each directory.
    manifests: BTreeMap<&'a str, Value>,
    /// Directory of each package.
    names: BTreeMap<&'a str, &'a str>,
}

/// Result of looking for a subpath of a package.
pub(super) enum Subpath {
    File(usize),
    /// The manifest names build output without a known source.
    Built,
    Missing,
}

impl<'a> Packages<'a> {
    pub(super) fn of(index: &Index<'a>) -> Packages<'a> {
        let mut packages = Packages::default();
        for (file, manifest) in index.manifests() {
            let Manifest::Npm(npm) = manifest else {
                continue;
            };
            let directory = path::parent(index.path(file));
            if let Some(name) = &npm.name {
                packages.names.entry(name.as_str()).or_insert(directory);
            }
            packages
                .manifests
                .insert(directory, serde_json::from_str(&npm.json).unwrap_or_default());
        }
        packages
    }

    /// Directory of the package of the tree that a specifier starts with, and the rest of the specifier.
    pub(super) fn named<'s>(&self, specifier: &'s str) -> Option<(&'a str, &'s str)> {
        let name = super::package_name(specifier);
        let directory = self.names.get(name)?;
        Some((directory, specifier.get(name.len()..)?.trim_start_matches('/')))
    }

    /// Directory of the nearest manifest above a file.
    pub(super) fn around(&self, file: &'a str) -> Option<&'a str> {
        path::ancestors(file).find(|directory| self.manifests.contains_key(directory))
    }

    /// File of a subpath of a package, `""` for the package itself.
    pub(super) fn subpath(&self, index: &Index<'_>, directory: &str, rest: &str) -> Subpath {
        let Some(manifest) = self.manifests.get(directory) else {
            return Subpath::Missing;
        };
        let key = if rest.is_empty() {
            ".".to_owned()
        } else {
            format!("./{rest}")
        };
        let mut targets = Vec::new();
        match manifest.get("exports") {
            Some(Value::Object(exports)) if exports.keys().any(|key| key.starts_with('.')) => {
                fitting(exports, &key, &mut targets);
            }
            Some(exports) if rest.is_empty() => leaves(exports, "", &mut targets),
            _ => {}
        }
        if rest.is_empty() {
            let main = ENTRY_FIELDS
                .iter()
                .filter_map(|field| manifest.get(*field).and_then(Value::as_str));
            targets.extend(main.map(str::to_owned));
        }
        if let Some(found) = targets
            .iter()
            .find_map(|target| source_of(index, directory, target))
        {
            return Subpath::File(found);
        }
        let inside = if rest.is_empty() { "index" } else { rest };
        let guesses = ["src/", "lib/", ""].map(|folder| path::below(directory, &format!("{folder}{inside}")));
        let found = guesses.iter().find_map(|guess| module_at(index, guess));
        match found.or_else(|| index_of(index, &path::below(directory, rest))) {
            Some(found) => Subpath::File(found),
            None if targets.iter().any(|target| is_output(target)) => Subpath::Built,
            None => Subpath::Missing,
        }
    }

    /// File of a specifier with `#`, by the field `imports` of the package around a file.
    pub(super) fn internal(&self, index: &Index<'_>, directory: &str, specifier: &str) -> Option<Subpath> {
        let imports = self.manifests.get(directory)?.get("imports")?.as_object()?;
        let mut targets = Vec::new();
        fitting(imports, specifier, &mut targets);
        let found = targets
            .iter()
            .find_map(|target| source_of(index, directory, target));
        let is_built = targets.iter().any(|target| is_output(target));
        match found {
            Some(found) => Some(Subpath::File(found)),
            None => is_built.then_some(Subpath::Built),
        }
    }
}

/// Adds the targets of a key: its own, or those of the longest pattern that fits.
fn fitting(map: &serde_json::Map<String, Value>, key: &str, targets: &mut Vec<String>) {
    if let Some(value) = map.get(key) {
        return leaves(value, "", targets);
    }
    let star = |pattern: &str| {
        let (before, after) = pattern.split_once('*')?;
        let star = key.strip_prefix(before)?.strip_suffix(after)?;
        Some((before.len(), star.to_owned()))
    };
    let best = map
        .iter()
        .filter_map(|(pattern, value)| Some((star(pattern)?, value)));
    if let Some(((_, star), value)) = best.max_by_key(|((length, _), _)| *length) {
        leaves(value, &star, targets);
    }
}

/// Adds all paths of conditions, with the `*` filled in. The parser limits the depth.
fn leaves(value: &Value, star: &str, targets: &mut Vec<String>) {
    match value {
        Value::String(target) if target.starts_with("./") => targets.push(target.replace('*', star)),
        Value::Object(map) => map.values().for_each(|value| leaves(value, star, targets)),
        Value::Array(list) => list.iter().for_each(|value| leaves(value, star, targets)),
        _ => {}
    }
}
