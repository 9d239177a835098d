//! `Cargo.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// Content of a `Cargo.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cargo {
    /// Name of the package; `None` in a workspace without one.
    pub package: Option<String>,
    /// Library, if it has a name or path.
    pub library: Option<Target>,
    /// Path of the build script, if given.
    pub build: Option<String>,
    /// Explicit targets, by kind: `bin`, `example`, `test`, `bench`.
    pub targets: BTreeMap<String, Vec<Target>>,
    /// Kinds whose targets are not discovered in their folders.
    pub searched_not: Vec<String>,
    /// Packages by the name that code uses.
    pub dependencies: BTreeMap<String, String>,
    /// Packages of `[workspace.dependencies]` by the name that code uses.
    pub workspace_dependencies: BTreeMap<String, String>,
}

/// A build target of Cargo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Target {
    /// Name of the target.
    pub name: Option<String>,
    /// Path of the target.
    pub path: Option<String>,
}

pub(super) fn read(text: &str) -> Option<Cargo> {
    let root: Table = text.parse().ok()?;
    let package = root.get("package").and_then(Value::as_table);
    let mut cargo = Cargo {
        package: package.and_then(|package| text_of(package, "name")),
        library: root.get("lib").and_then(Value::as_table).map(target),
        build: package.and_then(|package| text_of(package, "build")),
        ..Cargo::default()
    };
    for kind in ["bin", "example", "test", "bench"] {
        let tables = root.get(kind).and_then(Value::as_array);
        let targets = tables
            .into_iter()
            .flatten()
            .filter_map(Value::as_table)
            .map(target);
        cargo.targets.insert(kind.to_owned(), targets.collect());
        let key = format!("auto{kind}{}", if kind == "bench" { "es" } else { "s" });
        let searches = package
            .and_then(|package| package.get(&key))
            .and_then(Value::as_bool);
        cargo
            .searched_not
            .extend((searches == Some(false)).then(|| kind.to_owned()));
    }
    cargo.targets.retain(|_, targets| !targets.is_empty());
    dependencies(&root, &mut cargo.dependencies);
    for (_, target) in root.get("target").and_then(Value::as_table).into_iter().flatten() {
        target
            .as_table()
            .into_iter()
            .for_each(|target| dependencies(target, &mut cargo.dependencies));
    }
    if let Some(workspace) = root.get("workspace").and_then(Value::as_table) {
        dependencies(workspace, &mut cargo.workspace_dependencies);
    }
    Some(cargo)
}

fn dependencies(table: &Table, found: &mut BTreeMap<String, String>) {
    for key in ["dependencies", "dev-dependencies", "build-dependencies"] {
        for (name, value) in table.get(key).and_then(Value::as_table).into_iter().flatten() {
            let renamed = value.as_table().and_then(|value| text_of(value, "package"));
            found.insert(in_code(name), renamed.unwrap_or_else(|| name.clone()));
        }
    }
}

fn target(table: &Table) -> Target {
    Target {
        name: text_of(table, "name"),
        path: text_of(table, "path"),
    }
}

fn text_of(table: &Table, key: &str) -> Option<String> {
    table.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Name of a package as code writes it.
pub(crate) fn in_code(name: &str) -> String {
    name.replace('-', "_")
}
