//! Software bill of materials (SBOM) of the program, in CycloneDX.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde_json::{Map, Value, json};

use crate::components::{self, WASM};
use crate::run::{cargo, root};

/// Name of the file in packages.
pub(crate) const FILE: &str = "sbom.cdx.json";

/// Version of CycloneDX.
const SPEC: &str = "1.6";

/// SBOM with every crate that is linked into the host or into one of its components.
pub(crate) fn bill() -> anyhow::Result<Value> {
    let mut crates = BTreeMap::new();
    let native = Graph::of(None)?;
    native.collect("tollgate", &mut crates)?;
    let wasm = Graph::of(Some(WASM))?;
    for package in components::names() {
        wasm.collect(package, &mut crates)?;
    }
    let host = crates.remove("tollgate").context("the host is not a package")?;
    let checksums = checksums()?;
    let components: Vec<Value> = crates.values().map(|found| found.component(&checksums)).collect();
    let mut application = host.component(&checksums);
    application["type"] = "application".into();
    let dependencies = crates.values().chain([&host]).map(Crate::dependencies);
    Ok(json!({
        "$schema": format!("http://cyclonedx.org/schema/bom-{SPEC}.schema.json"),
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "version": 1,
        "metadata": {"component": application, "tools": {"components": [
            {"type": "application", "name": "cargo xtask", "version": env!("CARGO_PKG_VERSION")}
        ]}},
        "components": components,
        "dependencies": dependencies.collect::<Vec<Value>>(),
    }))
}

/// Packages of the workspace and their dependencies, from cargo's metadata for one target.
struct Graph {
    packages: BTreeMap<String, Value>,
    nodes: BTreeMap<String, Value>,
}

impl Graph {
    fn of(target: Option<&str>) -> anyhow::Result<Graph> {
        let mut metadata = cargo();
        metadata.args(["metadata", "--format-version", "1", "--locked"]);
        let target = match target {
            Some(target) => target.to_owned(),
            None => native()?,
        };
        let output = metadata.args(["--filter-platform", &target]).output()?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut told: Value = serde_json::from_slice(&output.stdout)?;
        Ok(Graph {
            packages: by_id(told["packages"].take()),
            nodes: by_id(told["resolve"]["nodes"].take()),
        })
    }

    /// Adds a package of the workspace, and everything that is linked into it.
    fn collect(&self, package: &str, crates: &mut BTreeMap<String, Crate>) -> anyhow::Result<()> {
        let is_it = |found: &&Value| found["name"] == package && found["source"].is_null();
        let start = self
            .packages
            .values()
            .find(is_it)
            .and_then(|found| found["id"].as_str());
        let mut waiting = vec![start.with_context(|| format!("there is no package {package}"))?];
        let mut seen = BTreeSet::new();
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            let (Some(package), Some(node)) = (self.packages.get(id), self.nodes.get(id)) else {
                continue;
            };
            let linked: Vec<&str> = linked(node).collect();
            let found = Crate::of(package);
            let known = crates.entry(found.key()).or_insert(found);
            let uses = linked.iter().filter_map(|id| self.packages.get(*id));
            known
                .uses
                .extend(uses.map(|package| Crate::of(package).reference()));
            waiting.extend(linked);
        }
        Ok(())
    }
}

/// Target of this machine's programs.
fn native() -> anyhow::Result<String> {
    let told = std::process::Command::new("rustc")
        .arg("-vV")
        .current_dir(root())
        .output()?;
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not report its target")?.to_owned())
}

fn by_id(entries: Value) -> BTreeMap<String, Value> {
    let Value::Array(entries) = entries else {
        return BTreeMap::new();
    };
    let with_id = entries.into_iter();
    with_id
        .filter_map(|entry| Some((entry["id"].as_str()?.to_owned(), entry)))
        .collect()
}

/// Ids of the packages linked into a package, without build and test dependencies.
fn linked(node: &Value) -> impl Iterator<Item = &str> {
    let is_normal = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
    };
    let dependencies = node["deps"].as_array().map(Vec::as_slice).unwrap_or_default();
    dependencies
        .iter()
        .filter(is_normal)
        .filter_map(|dependency| dependency["pkg"].as_str())
}

/// One crate.
struct Crate {
    name: String,
    version: String,
    license: Option<String>,
    description: Option<String>,
    is_own: bool,
    uses: BTreeSet<String>,
}

impl Crate {
    fn of(package: &Value) -> Crate {
        let text = |name: &str| package[name].as_str().map(str::to_owned);
        Crate {
            name: text("name").unwrap_or_default(),
            version: text("version").unwrap_or_default(),
            license: text("license"),
            description: text("description"),
            is_own: package["source"].is_null(),
            uses: BTreeSet::new(),
        }
    }

    /// Unique key of the crate.
    fn key(&self) -> String {
        if self.is_own {
            self.name.clone()
        } else {
            format!("{}@{}", self.name, self.version)
        }
    }

    fn reference(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }

    fn component(&self, checksums: &BTreeMap<String, String>) -> Value {
        let mut component = json!({
            "type": "library",
            "bom-ref": self.reference(),
            "name": self.name,
            "version": self.version,
        });
        // Crates of the workspace are not in a registry.
        if !self.is_own {
            component["purl"] = self.reference().into();
        }
        if let Some(license) = &self.license {
            // An older notation for OR, which is not an SPDX expression.
            component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
        }
        if let Some(description) = &self.description {
            component["description"] = description.trim().into();
        }
        if let Some(checksum) = checksums.get(&self.key()) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    }

    fn dependencies(&self) -> Value {
        json!({"ref": self.reference(), "dependsOn": self.uses})
    }
}

/// Checksums in `Cargo.lock`, by `name@version`.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn checksums() -> anyhow::Result<BTreeMap<String, String>> {
    let lock: Map<String, Value> = toml::from_str(&std::fs::read_to_string(root().join("Cargo.lock"))?)?;
    let packages = lock.get("package").and_then(Value::as_array);
    let found = packages.into_iter().flatten().filter_map(|package| {
        let key = format!("{}@{}", package["name"].as_str()?, package["version"].as_str()?);
        Some((key, package["checksum"].as_str()?.to_owned()))
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bill_names_what_is_linked_and_nothing_twice() {
        let bill = bill().unwrap();
        let components = bill["components"].as_array().unwrap();
        let find = |name: &str| components.iter().find(|component| component["name"] == name);
        for linked in [
            "wasmtime",
            "rmcp",
            "rusqlite",
            "tollgate-sdk",
            "conductor",
            "wit-bindgen",
        ] {
            assert!(find(linked).is_some(), "{linked} is linked");
        }
        for other in ["proptest", "expect-test", "xtask", "bench"] {
            assert!(find(other).is_none(), "{other} is not linked");
        }
        let serde = find("serde").unwrap();
        assert_eq!(serde["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert_eq!(serde["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let mut references = BTreeSet::new();
        for component in components.iter().chain([&bill["metadata"]["component"]]) {
            assert!(
                references.insert(component["bom-ref"].as_str().unwrap()),
                "{component}"
            );
        }
        for dependency in bill["dependencies"].as_array().unwrap() {
            for used in dependency["dependsOn"]
                .as_array()
                .unwrap()
                .iter()
                .chain([&dependency["ref"]])
            {
                assert!(references.contains(used.as_str().unwrap()), "{used} is listed");
            }
        }
    }
}
