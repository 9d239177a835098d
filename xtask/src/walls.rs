//! Layers of the host's crates. Each crate depends only on those below it, libraries are used only where the
//! architecture permits, and the folders of a crate have no cyclic dependencies.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    use serde_json::{Value, json};

    use crate::arrows::Arrows;
    use crate::run::{cargo, root};
    use crate::tokens::{code, files_of_crate, text_of};

    /// The host's crates, lowest first.
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
    /// Packages outside the host that its crates may use. They use no crate of the host.
    const BELOW: [&str; 3] = ["engine", "sdk", "sql"];
    /// Other packages that tests of the host's crates use.
    const OF_TESTS: [(&str, &str); 1] = [("host/app", "tests/proxy")];

    /// A library, with the only packages that may depend on it or on its relatives.
    struct Wall {
        library: &'static str,
        /// Beginnings of the names of the library and its relatives.
        family: &'static [&'static str],
        /// Crates of the host.
        host: &'static [&'static str],
        /// Other packages of the workspace.
        others: &'static [&'static str],
        /// Packages that use it in their tests.
        tests: &'static [&'static str],
    }

    /// The walls. A library belongs to the first family that fits.
    const WALLS: [Wall; 10] = [
        Wall {
            library: "rusqlite",
            family: &["rusqlite", "libsqlite3"],
            host: &["store"],
            others: &["sdk", "tests/bench", "tests/demo", "tests/fuzz", "tests/torture"],
            tests: &["host/app", "plugins/tasks", "sql"],
        },
        Wall {
            library: "tokio-postgres",
            family: &["tokio-postgres", "postgres"],
            host: &["store"],
            others: &["tests/torture"],
            tests: &["host/app", "sql"],
        },
        Wall {
            library: "wasmtime-wasi",
            family: &["wasmtime-wasi"],
            host: &["sandbox"],
            others: &["engine"],
            tests: &[],
        },
        Wall {
            library: "wasmtime",
            family: &["wasmtime"],
            host: &["sandbox", "components"],
            others: &["engine"],
            tests: &[],
        },
        Wall {
            library: "rmcp",
            family: &["rmcp"],
            host: &["mcp"],
            others: &["tests/bench", "tests/demo"],
            tests: &["host/app"],
        },
        Wall {
            library: "axum",
            family: &["axum"],
            host: &["console", "mcp"],
            others: &[],
            tests: &["host/app"],
        },
        Wall {
            library: "maud",
            family: &["maud"],
            host: &["console"],
            others: &[],
            tests: &[],
        },
        Wall {
            library: "sigstore-verify",
            family: &["sigstore"],
            host: &["registry"],
            others: &[],
            tests: &[],
        },
        Wall {
            library: "clap",
            family: &["clap"],
            host: &["app", "components"],
            others: &["tests/bench", "tests/demo", "tests/torture", "xtask"],
            tests: &[],
        },
        Wall {
            library: "toml",
            family: &["toml"],
            host: &["app"],
            others: &["plugins/conductor/repo", "xtask"],
            tests: &[],
        },
    ];

    impl Wall {
        /// Wall of a library. Names in sources have underscores in place of hyphens.
        fn of(library: &str) -> Option<&'static Wall> {
            let library = library.replace('_', "-");
            let is_relative = |wall: &&Wall| wall.family.iter().any(|start| library.starts_with(start));
            WALLS.iter().find(is_relative)
        }

        fn admits(&self, package: &str, kind: &str) -> bool {
            let host = package.strip_prefix("host/");
            host.is_some_and(|name| self.host.contains(&name))
                || self.others.contains(&package)
                || (kind == "dev" && self.tests.contains(&package))
        }
    }

    /// Folder of a package in the workspace, such as `host/core`.
    fn folder<'a>(workspace: &str, path: &'a str) -> &'a str {
        let inside = path.strip_prefix(workspace).unwrap_or(path);
        inside.trim_start_matches('/').trim_end_matches("/Cargo.toml")
    }

    /// Faults in the dependencies of a workspace, from the output of `cargo metadata`.
    fn faults(metadata: &Value) -> Vec<String> {
        let workspace = metadata["workspace_root"].as_str().unwrap();
        let mut faults = Vec::new();
        for package in metadata["packages"].as_array().unwrap() {
            let user = folder(workspace, package["manifest_path"].as_str().unwrap());
            if user
                .strip_prefix("host/")
                .is_some_and(|name| floor(name).is_none())
            {
                faults.push(format!("{user} is not in CRATES"));
            }
            for dependency in package["dependencies"].as_array().unwrap() {
                let kind = dependency["kind"].as_str().unwrap_or("normal");
                let name = dependency["name"].as_str().unwrap();
                let used = dependency["path"].as_str().map(|path| folder(workspace, path));
                if used.is_some_and(|used| !may_use(user, used, kind)) {
                    faults.push(format!("{user} depends on {name} ({kind})"));
                }
                if let Some(wall) = Wall::of(name) {
                    if !wall.admits(user, kind) {
                        faults.push(format!("{user} depends on {name} ({kind})"));
                    }
                    if dependency["rename"].is_string() {
                        faults.push(format!("{user} renames {name}"));
                    }
                }
            }
        }
        faults
    }

    fn floor(name: &str) -> Option<usize> {
        CRATES.iter().position(|other| *other == name)
    }

    /// True if a package may use another one of the workspace.
    fn may_use(user: &str, used: &str, kind: &str) -> bool {
        match (user.strip_prefix("host/"), used.strip_prefix("host/")) {
            (Some(user), Some(used)) => floor(used) < floor(user),
            (Some(_), None) => BELOW.contains(&used) || (kind == "dev" && OF_TESTS.contains(&(user, used))),
            (None, Some(_)) => !BELOW.contains(&user),
            (None, None) => true,
        }
    }

    #[test]
    fn crates_depend_on_those_below_and_libraries_stay_behind_their_walls() {
        let mut metadata = cargo();
        metadata.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
        let output = metadata.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(faults(&serde_json::from_slice(&output.stdout).unwrap()), [""; 0]);
    }

    #[test]
    fn dependencies_of_every_kind_are_seen() {
        let package = |folder: &str, dependencies: Value| {
            let manifest = format!("/w/{folder}/Cargo.toml");
            json!({"manifest_path": manifest, "dependencies": dependencies})
        };
        let own =
            |folder: &str, kind: &str| json!({"name": folder, "kind": kind, "path": format!("/w/{folder}")});
        let metadata = json!({"workspace_root": "/w", "packages": [
            package("host/other", json!([])),
            package("host/store", json!([
                own("host/core", "build"),
                own("host/gate", "dev"),
                own("sdk", "dev"),
                own("plugins/tasks", "dev"),
                {"name": "rusqlite", "kind": null, "rename": "lite"},
                {"name": "libsqlite3-sys", "kind": "build"},
            ])),
            package("host/app", json!([
                own("tests/proxy", "dev"),
                own("tests/proxy", "build"),
                {"name": "rmcp", "kind": "dev"},
                {"name": "rmcp-macros", "kind": null},
            ])),
            package("sdk", json!([own("host/core", "dev")])),
            package("plugins/tasks", json!([{"name": "wasmtime-wasi", "kind": "dev"}])),
        ]});
        assert_eq!(
            faults(&metadata),
            [
                "host/other is not in CRATES",
                "host/store depends on host/gate (dev)",
                "host/store depends on plugins/tasks (dev)",
                "host/store renames rusqlite",
                "host/app depends on tests/proxy (build)",
                "host/app depends on rmcp-macros (normal)",
                "sdk depends on host/core (dev)",
                "plugins/tasks depends on wasmtime-wasi (dev)",
            ]
        );
    }

    /// Crates of the table in the architecture, and the crates that it names for each library.
    fn table(page: &str) -> (Vec<&str>, BTreeMap<&str, BTreeSet<&str>>) {
        let rows = page
            .split("| crate | purpose | libraries that only this crate uses (and crates that share them) |")
            .nth(1)
            .unwrap();
        let rows = rows.lines().skip(2).take_while(|line| line.starts_with('|'));
        let (mut crates, mut libraries) = (Vec::new(), BTreeMap::new());
        for row in rows {
            let cells: Vec<&str> = row.split('|').collect();
            let name = cells[1].trim().trim_matches('`');
            crates.push(name);
            for group in cells[3].split(';') {
                let (own, others) = group.split_once(", with ").unwrap_or((group, ""));
                let with = std::iter::once(name).chain(in_quotes(others));
                let with: BTreeSet<&str> = with.collect();
                for library in in_quotes(own) {
                    let before = libraries.insert(library, with.clone());
                    assert!(
                        before.is_none_or(|before| before == with),
                        "rows differ about {library}"
                    );
                }
            }
        }
        (crates, libraries)
    }

    fn in_quotes(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    #[test]
    fn the_architecture_has_the_same_crates_and_walls() {
        let page = text_of(&root().join("docs/ARCHITECTURE.md"));
        let (mut crates, libraries) = table(&page);
        crates.reverse();
        assert_eq!(crates, CRATES);
        let walls = WALLS
            .iter()
            .map(|wall| (wall.library, wall.host.iter().copied().collect()));
        assert_eq!(libraries, walls.collect());
    }

    /// Root files of a crate of the host: of its library, and of its program if there is one.
    fn roots(name: &str) -> impl Iterator<Item = PathBuf> {
        let src = root().join("host").join(name).join("src");
        let files = ["lib.rs", "main.rs"].map(|file| src.join(file));
        files.into_iter().filter(|file| file.exists())
    }

    #[test]
    fn folders_of_a_crate_use_each_other_one_way() {
        for name in CRATES {
            for file in roots(name) {
                let arrows = Arrows::of(
                    file.parent().unwrap(),
                    file.file_name().unwrap().to_str().unwrap(),
                );
                let circles = arrows.circles();
                assert!(circles.is_empty(), "{name}: {circles:?}");
                assert_eq!(arrows.hidden, [""; 0], "dependencies cannot be followed");
            }
        }
    }

    /// Libraries behind walls that a source passes on, or to which it gives another name.
    fn passed_on(code: &[String]) -> Vec<&str> {
        let word = |at: usize| code.get(at).map_or("", String::as_str);
        let is_own = |name: &str| code.windows(2).any(|pair| pair == ["mod", name]);
        let is_word = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let begins_path = |at: usize| word(at - 1) != "::" || word(at - 2) == "use" || !is_word(word(at - 2));
        let mut found = Vec::new();
        for at in 1..code.len() {
            if !matches!(word(at), "use" | "type" | "crate") {
                continue;
            }
            let is_public = ["pub", ")"].contains(&word(at - 1));
            let is_refused = |place: usize| match word(at) {
                "use" => is_public || word(place + 1) == "as" || word(place + 3) == "self",
                "type" => is_public,
                "crate" => word(at - 1) == "extern",
                _ => false,
            };
            let length = code[at..].iter().position(|token| token == ";").unwrap_or(0);
            let libraries = (at + 1..at + length).filter(|place| {
                let is_library = Wall::of(word(*place)).is_some() && !is_own(word(*place));
                is_library && begins_path(*place) && is_refused(*place)
            });
            found.extend(libraries.map(word));
        }
        found
    }

    #[test]
    fn libraries_are_not_passed_on() {
        for name in CRATES {
            for (path, code) in roots(name).flat_map(|file| files_of_crate(&file)) {
                assert_eq!(passed_on(&code), [""; 0], "{}", path.display());
            }
        }
    }

    #[test]
    fn libraries_are_passed_on_by_public_and_other_names() {
        for source in [
            "; pub use rusqlite;",
            "; pub(crate) use ::tokio_postgres::Client;",
            "; pub use {core::mem, wasmtime_wasi::WasiCtx};",
            "; use rusqlite as lite;",
            "; use rmcp::{self as sdk, model};",
            "; extern crate maud as m;",
            "; pub type Row = rusqlite::Row<'static>;",
        ] {
            assert_eq!(passed_on(&code(source)).len(), 1, "{source}");
        }
        let others = "; use rusqlite::{Row as SqliteRow, Error}; mod postgres; pub use postgres::Server;";
        assert_eq!(passed_on(&code(others)), [""; 0]);
    }

    /// Folder in which the store may name its engines' libraries. Tests may name SQLite's elsewhere.
    const SEAM: &str = "host/store/src/storage/engine";
    const ENGINES: [&str; 4] = ["rusqlite", "libsqlite3", "tokio_postgres", "postgres_protocol"];

    #[test]
    fn only_the_engines_of_the_store_name_their_libraries() {
        for (path, code) in files_of_crate(&root().join("host/store/src/lib.rs")) {
            let is_named = |token: &String| ENGINES.iter().any(|library| token.contains(library));
            let named: Vec<&String> = code.iter().filter(|token| is_named(token)).collect();
            assert!(
                named.is_empty() || path.starts_with(root().join(SEAM)),
                "{} names {named:?}",
                path.display()
            );
        }
    }

    /// Folders of the engines below [`SEAM`]. What both need is beside them.
    const FOLDERS: [&str; 2] = ["sqlite", "postgres"];
    /// Folders of the store that use the engines, and that the engines do not use.
    const ABOVE: [&str; 7] = [
        "approvals",
        "ledger",
        "operations",
        "recount",
        "stats",
        "tasks",
        "work_trees",
    ];

    #[test]
    fn the_engines_of_the_store_name_neither_each_other_nor_folders_above() {
        for (path, code) in files_of_crate(&root().join("host/store/src/lib.rs")) {
            if !path.starts_with(root().join(SEAM)) {
                continue;
            }
            let is_own = |folder: &&&str| path.starts_with(root().join(SEAM).join(folder));
            let own = FOLDERS.iter().find(is_own);
            let named = code.windows(3).filter(|words| {
                let [from, to] = [words[0].as_str(), words[2].as_str()];
                let is_other = own.is_some_and(|own| FOLDERS.contains(&to) && to != *own);
                words[1] == "::"
                    && match from {
                        "engine" | "super" if is_other => true,
                        "storage" | "super" => ABOVE.contains(&to),
                        _ => false,
                    }
            });
            assert_eq!(named.count(), 0, "{}", path.display());
        }
    }
}
