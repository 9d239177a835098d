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
    /// Commands by name.
    pub scripts: BTreeMap<String, String>,
}

/// Content of a `tsconfig.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TsConfig {
    /// Fields that resolving reads, as JSON without comments.
    pub json: String,
}

const RESOLVED: [&str; 8] = [
    "name", "type", "main", "module", "browser", "types", "exports", "imports",
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
    if let Some(Value::Object(scripts)) = root.get("scripts") {
        let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
        npm.scripts = scripts.iter().filter_map(text).collect();
    }
    root.retain(|key, _| RESOLVED.contains(&key.as_str()));
    npm.json = Value::Object(root).to_string();
    Some(npm)
}

/// Paths in a field, at any depth of conditions. The parser limits the depth.
fn files(field: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(path) if !path.contains('*') => found.push((field.to_owned(), path.clone())),
        Value::Object(map) => map.values().for_each(|value| files(field, value, found)),
        Value::Array(list) => list.iter().for_each(|value| files(field, value, found)),
        _ => {}
    }
}

pub(super) fn read_tsconfig(text: &str) -> Option<TsConfig> {
    let mut text = text.to_owned();
    json_strip_comments::strip(&mut text).ok()?;
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
    let json = Value::Object(root).to_string();
    Some(TsConfig { json })
}
