//! `package.json` and `tsconfig.json`, reduced to the fields that resolving reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Content of a `package.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Npm {
    /// Name of the package.
    pub name: Option<String>,
    /// Fields that resolving reads, as JSON.
    pub json: String,
    /// Entry files, each with the field that names it.
    pub entries: Vec<(String, String)>,
    /// Exported paths with a `*`.
    pub patterns: Vec<String>,
    /// Commands by name.
    pub scripts: BTreeMap<String, String>,
    /// Names of the packages that it depends on, sorted.
    pub dependencies: Vec<String>,
}

/// Content of a `tsconfig.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TsConfig {
    /// Fields that resolving reads, as JSON without comments.
    pub json: String,
}

const RESOLVED_FIELDS: [&str; 9] = [
    "name", "type", "main", "module", "browser", "types", "exports", "imports", "source",
];

pub(super) fn read(text: &str) -> Option<Npm> {
    let mut root: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut npm = Npm {
        name: root.get("name").and_then(Value::as_str).map(str::to_owned),
        ..Npm::default()
    };
    for field in ["main", "module", "browser", "types", "bin", "exports"] {
        if let Some(value) = root.get(field) {
            files(field, value, &mut npm.entries);
        }
    }
    npm.entries.sort();
    npm.entries.dedup();
    let entries = std::mem::take(&mut npm.entries).into_iter();
    let (patterns, entries): (Vec<_>, Vec<_>) = entries.partition(|(_, path)| path.contains('*'));
    npm.entries = entries;
    npm.patterns = patterns.into_iter().map(|(_, path)| path).collect();
    if let Some(Value::Object(scripts)) = root.get("scripts") {
        let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        npm.scripts = scripts.iter().filter_map(text).collect();
    }
    for field in [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
    ] {
        let names = root.get(field).and_then(Value::as_object);
        npm.dependencies
            .extend(names.into_iter().flat_map(Map::keys).cloned());
    }
    npm.dependencies.sort();
    npm.dependencies.dedup();
    root.retain(|key, _| RESOLVED_FIELDS.contains(&key.as_str()));
    npm.json = Value::Object(root).to_string();
    Some(npm)
}

/// Paths in a field, at any depth of conditions. The parser limits the depth.
fn files(field: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(path) => found.push((field.to_owned(), path.clone())),
        Value::Object(map) => map.values().for_each(|value| files(field, value, found)),
        Value::Array(list) => list.iter().for_each(|value| files(field, value, found)),
        _ => {}
    }
}

pub(super) fn read_tsconfig(text: &str) -> Option<TsConfig> {
    let mut text = text.to_owned();
    json_strip_comments::strip(&mut text).ok()?;
    if text.trim().is_empty() {
        text = "{}".to_owned();
    }
    let mut root: Map<String, Value> = serde_json::from_str(&text).ok()?;
    root.retain(|key, _| {
        matches!(
            key.as_str(),
            "extends" | "compilerOptions" | "references" | "files" | "include"
        )
    });
    if let Some(Value::Object(options)) = root.get_mut("compilerOptions") {
        options.retain(|key, _| matches!(key.as_str(), "baseUrl" | "paths" | "rootDirs" | "allowJs"));
    }
    root.retain(|key, value| has_its_type(key, value));
    if let Some(Value::Object(options)) = root.get_mut("compilerOptions") {
        options.retain(|key, value| has_its_type(key, value));
    }
    let json = Value::Object(root).to_string();
    Some(TsConfig { json })
}

/// Checks the type of a field: one wrong type would make the whole file unusable.
fn has_its_type(key: &str, value: &Value) -> bool {
    let are_texts = |value: &Value| {
        value
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_string))
    };
    match key {
        "extends" => value.is_string() || are_texts(value),
        "compilerOptions" => value.is_object(),
        "paths" => value
            .as_object()
            .is_some_and(|paths| paths.values().all(are_texts)),
        "baseUrl" => value.is_string(),
        "allowJs" => value.is_boolean(),
        "files" | "include" | "rootDirs" => are_texts(value),
        "references" => {
            let has_path = |reference: &Value| reference.get("path").is_some_and(Value::is_string);
            value.as_array().is_some_and(|list| list.iter().all(has_path))
        }
        _ => true,
    }
}
