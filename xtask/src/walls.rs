//! Layers of the host's crates: each depends on those below it, libraries stay where the architecture has them, and the
//! folders of a crate depend on each other one way.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use toml::Table;

    use crate::arrows::Arrows;
    use crate::run::root;

    /// The host's crates, the lowest first.
    const CRATES: [&str; 9] = [
        "core",
        "store",
        "console",
        "sandbox",
        "registry",
        "components",
        "gate",
        "mcp",
        "app",
    ];
    /// Libraries, and the only crates that depend on them.
    const WALLS: [(&str, &[&str]); 8] = [
        ("rusqlite", &["store"]),
        ("tokio-postgres", &["store"]),
        ("wasmtime", &["sandbox", "components"]),
        ("wasmtime-wasi", &["sandbox"]),
        ("rmcp", &["mcp"]),
        ("axum", &["console", "mcp"]),
        ("maud", &["console"]),
        ("sigstore-verify", &["registry"]),
    ];

    #[allow(clippy::disallowed_methods, reason = "the test reads manifests")]
    fn dependencies(name: &str) -> Vec<String> {
        let manifest = root().join("host").join(name).join("Cargo.toml");
        let manifest: Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
        manifest["dependencies"]
            .as_table()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    }

    #[test]
    fn crates_depend_on_those_below_and_libraries_stay_behind_their_walls() {
        for (floor, name) in CRATES.iter().enumerate() {
            for dependency in dependencies(name) {
                let own = dependency.strip_prefix("tollgate-");
                if let Some(other) = own.and_then(|own| CRATES.iter().position(|name| *name == own)) {
                    assert!(other < floor, "{name} depends on {dependency}");
                }
                if let Some((_, allowed)) = WALLS.iter().find(|(library, _)| *library == dependency) {
                    assert!(allowed.contains(name), "{name} depends on {dependency}");
                }
            }
        }
    }

    #[test]
    fn folders_of_a_crate_use_each_other_one_way() {
        for name in CRATES {
            let arrows = Arrows::of(&root().join("host").join(name).join("src"));
            let circles = arrows.circles();
            assert!(circles.is_empty(), "{name}: {circles:?}");
        }
    }

    /// The folder in which the store names the libraries of its engines. Tests may name SQLite's elsewhere.
    const SEAM: &str = "host/store/src/storage/engine";
    const ENGINES: [&str; 2] = ["rusqlite", "tokio_postgres"];

    #[allow(clippy::disallowed_methods, reason = "the test reads sources")]
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(sources(&path));
            } else {
                found.push(path);
            }
        }
        found
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test reads sources")]
    fn only_the_engines_of_the_store_name_their_libraries() {
        let seam = root().join(SEAM);
        for path in sources(&root().join("host/store/src")) {
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            let is_test = path.ends_with("tampering/of_sqlite.rs") || path.ends_with("tests.rs");
            for library in ENGINES {
                let is_named = code.contains(library) && !is_test;
                assert!(
                    !is_named || path.starts_with(&seam),
                    "{} names {library}",
                    path.display()
                );
            }
        }
    }
}
