//! Checks of dependencies: licences, sources, and duplicate versions, by the rules in `deny.toml`. That file belongs to
//! `cargo deny`, which also checks advisories. This module applies the rules that need neither a network nor another
//! tool.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::run::{cargo, root};

/// Prefix of registry sources in the output of `cargo metadata`.
const REGISTRY: &str = "registry+";

#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    sources: Sources,
    bans: Bans,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<Named>,
    skip: Vec<Named>,
}

/// A crate, as `name` or `name@version`.
#[derive(Deserialize)]
struct Named {
    #[serde(rename = "crate")]
    name: String,
}

/// A dependency.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Dependency {
    name: String,
    version: String,
    source: String,
    license: String,
}

/// Checks dependencies, reports everything that is wrong, and returns a summary.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn check() -> anyhow::Result<String> {
    let text = std::fs::read_to_string(root().join("deny.toml"))?;
    let rules: Rules = toml::from_str(&text).context("deny.toml")?;
    let mut dependencies = BTreeSet::new();
    for target in &rules.graph.targets {
        dependencies.extend(dependencies_for(target)?);
    }
    let problems = rules.problems(&dependencies);
    ensure!(
        problems.is_empty(),
        "deny.toml does not allow\n{}",
        problems.join("\n")
    );
    Ok(format!(
        "licences, sources and versions of {} crates comply with deny.toml",
        dependencies.len()
    ))
}

/// All packages of a build for a target, including those of tests and build scripts.
fn dependencies_for(target: &str) -> anyhow::Result<Vec<Dependency>> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let output = metadata.args(["--filter-platform", target]).output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let nodes = told["resolve"]["nodes"].as_array().into_iter().flatten();
    let used: BTreeSet<&str> = nodes.filter_map(|node| node["id"].as_str()).collect();
    let packages = told["packages"].as_array().into_iter().flatten();
    let packages = packages.filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id)));
    // Packages of the workspace have no source.
    let others = packages.filter(|package| !package["source"].is_null());
    let text = |package: &Value, name: &str| package[name].as_str().unwrap_or_default().to_owned();
    Ok(others
        .map(|package| Dependency {
            name: text(package, "name"),
            version: text(package, "version"),
            source: text(package, "source"),
            license: text(package, "license"),
        })
        .collect())
}

impl Rules {
    fn problems(&self, dependencies: &BTreeSet<Dependency>) -> Vec<String> {
        let mut problems = Vec::new();
        for dependency in dependencies {
            let Dependency { name, version, .. } = dependency;
            if !self.allows(&dependency.license, name) {
                problems.push(format!(
                    "{name} {version}: its licence is {:?}",
                    dependency.license
                ));
            }
            let from = dependency.source.strip_prefix(REGISTRY);
            if !from.is_some_and(|from| self.sources.allow_registry.iter().any(|one| one == from)) {
                problems.push(format!("{name} {version}: it comes from {}", dependency.source));
            }
            if names(&self.bans.deny, dependency) {
                problems.push(format!("{name} {version}: it is banned"));
            }
        }
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let counted = dependencies.iter().filter(|one| !names(&self.bans.skip, one));
        for dependency in counted {
            versions
                .entry(&dependency.name)
                .or_default()
                .push(&dependency.version);
        }
        let doubled = versions.iter().filter(|(_, versions)| versions.len() > 1);
        problems
            .extend(doubled.map(|(name, versions)| format!("{name}: {} together", versions.join(" and "))));
        problems
    }

    /// Returns whether a licence, or one of its alternatives, is allowed.
    fn allows(&self, license: &str, name: &str) -> bool {
        let exception = self.licenses.exceptions.iter().find(|one| one.name == name);
        let is_allowed = |asked: &str| {
            self.licenses.allow.contains(asked) || exception.is_some_and(|one| one.allow.contains(asked))
        };
        // The older notation for OR is accepted as well.
        let expression = Expression::parse_mode(license, ParseMode::LAX);
        expression.is_ok_and(|expression| expression.evaluate(|asked| is_allowed(&asked.to_string())))
    }
}

fn names(list: &[Named], dependency: &Dependency) -> bool {
    let with_version = format!("{}@{}", dependency.name, dependency.version);
    list.iter()
        .any(|one| one.name == dependency.name || one.name == with_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        toml::from_str(
            r#"
            graph.targets = []
            licenses.allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
            licenses.exceptions = [{ crate = "list", allow = ["CDLA-Permissive-2.0"] }]
            sources.allow-registry = ["https://registry"]
            bans.deny = [{ crate = "openssl" }]
            bans.skip = [{ crate = "old@1.0.0" }]
            "#,
        )
        .unwrap()
    }

    fn crates(all: &[(&str, &str, &str)]) -> BTreeSet<Dependency> {
        all.iter()
            .map(|(name, version, license)| Dependency {
                name: (*name).to_owned(),
                version: (*version).to_owned(),
                source: "registry+https://registry".to_owned(),
                license: (*license).to_owned(),
            })
            .collect()
    }

    #[test]
    fn licences_are_read_as_expressions() {
        let rules = rules();
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "MIT AND (GPL-2.0-only OR Apache-2.0)",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0-only",
        ] {
            assert!(rules.allows(good, "any"), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "CDLA-Permissive-2.0",
            "mine",
        ] {
            assert!(!rules.allows(bad, "any"), "{bad}");
        }
        assert!(rules.allows("CDLA-Permissive-2.0", "list"));
    }

    #[test]
    fn everything_that_is_wrong_is_named() {
        let rules = rules();
        let good = crates(&[
            ("a", "1.0.0", "MIT"),
            ("old", "1.0.0", "MIT"),
            ("old", "2.0.0", "MIT"),
        ]);
        assert_eq!(rules.problems(&good), Vec::<String>::new());
        let mut bad = crates(&[
            ("openssl", "1.0.0", "MIT"),
            ("twice", "1.0.0", "MIT"),
            ("twice", "2.0.0", "GPL-3.0-only"),
        ]);
        bad.insert(Dependency {
            source: "git+https://elsewhere".to_owned(),
            ..crates(&[("other", "1.0.0", "MIT")]).pop_first().unwrap()
        });
        assert_eq!(
            rules.problems(&bad),
            [
                "openssl 1.0.0: it is banned",
                "other 1.0.0: it comes from git+https://elsewhere",
                "twice 2.0.0: its licence is \"GPL-3.0-only\"",
                "twice: 1.0.0 and 2.0.0 together",
            ]
        );
    }
}
