//! Rules for all sources and manifests: no test and no lint is switched off, and most of the host names no pack.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use toml::Table;

    use crate::components;
    use crate::run::root;
    use crate::tokens::{attributes, files_of_crate, string, text_of, tokens, tracked};

    /// Parts of paths of sources that belong to other projects: examples for tests, and templates.
    const OF_OTHERS: [&str; 2] = ["/fixtures/", "/templates/"];
    /// Generated sources, which may switch Clippy off, and the modules that contain them.
    const GENERATED: [&str; 4] = [
        "sdk/src/guest.rs",
        "sdk/src/guest/bindings.rs",
        "sdk/src/guest/policy.rs",
        "sdk/src/guest/policy/bindings.rs",
    ];
    /// Folder of a workspace with lints of its own.
    const OTHER_WORKSPACE: &str = "plugins/engines/";
    /// Crates of the host that do not depend on particular packs. The build script of `components`, which declares the
    /// built-in ones, is not part of the crate.
    const NEUTRAL: [&str; 4] = ["components", "gate", "mcp", "sandbox"];

    fn is_of_others(path: &str) -> bool {
        OF_OTHERS.iter().any(|part| path.contains(part))
    }

    /// Attributes of a source that switch off tests or lints as a whole.
    fn switches(source: &str) -> Vec<String> {
        let tokens = tokens(source);
        let is_switch = |attribute: &&[String]| {
            let has = |words: &[&str]| attribute.windows(words.len()).any(|window| window == words);
            let is_about_lints = has(&["allow", "("]) || has(&["expect", "("]);
            let is_never_built = has(&["any", "(", ")"]) || has(&["cfg", "(", "false"]);
            let has_all_lints = has(&["warnings"]) || has(&["clippy", "::", "all"]);
            has(&["ignore"]) || is_never_built || (is_about_lints && has_all_lints)
        };
        let found = attributes(&tokens).filter(is_switch);
        found.map(<[String]>::concat).collect()
    }

    #[test]
    fn no_test_is_ignored_and_no_lint_is_off_as_a_whole() {
        for path in tracked(".rs") {
            if !is_of_others(&path) && !GENERATED.contains(&path.as_str()) {
                assert_eq!(switches(&text_of(&root().join(&path))), [""; 0], "{path}");
            }
        }
    }

    #[test]
    fn switches_are_found_in_attributes_alone() {
        for source in [
            "#[ignore] fn a() {}",
            "#[ignore = \"slow\"] fn a() {}",
            "#[cfg_attr(unix, ignore)] fn a() {}",
            "#[cfg(any())] mod a;",
            "#[cfg(not(any()))] mod a;",
            "#[cfg(false)] mod a;",
            "#![allow(warnings)]",
            "#![expect(dead_code, clippy::all, reason = \"none\")]",
        ] {
            assert_eq!(switches(source).len(), 1, "{source}");
        }
        let others = "#[cfg(any(unix))] #[deny(warnings)] #[allow(clippy::allow_attributes)]
            // #[ignore]
            \"#[ignore]\"";
        assert_eq!(switches(others), [""; 0]);
    }

    #[test]
    fn every_package_has_the_lints_of_the_workspace() {
        for path in tracked("Cargo.toml") {
            let manifest: Table = text_of(&root().join(&path)).parse().unwrap();
            if manifest.contains_key("package") && !is_of_others(&path) && !path.starts_with(OTHER_WORKSPACE)
            {
                let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
                assert_eq!(lints.and_then(toml::Value::as_bool), Some(true), "{path}");
            }
        }
    }

    /// Names of the tools of all packs, from the snapshots of their schemas: lines such as `gsd_show (Read, Core)`.
    fn names_of_tools() -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let snapshots = tracked("/tests/it/snapshots/input_schemas.txt");
        for path in snapshots {
            let snapshot = text_of(&root().join(&path));
            let heads = snapshot
                .lines()
                .filter(|line| line.starts_with(char::is_alphabetic));
            let before = names.len();
            names.extend(heads.filter_map(|head| Some(head.split_once(" (")?.0.to_owned())));
            assert!(names.len() > before, "{path} has no tools");
        }
        names
    }

    #[test]
    fn the_host_names_no_pack_and_no_tool_of_a_pack() {
        let mut names = names_of_tools();
        names.extend(components::names().map(str::to_owned));
        for name in NEUTRAL {
            let files = files_of_crate(&root().join("host").join(name).join("src/lib.rs"));
            for (path, code) in files {
                let named = code.iter().filter_map(|token| string(token));
                let named: Vec<&str> = named.filter(|text| names.contains(*text)).collect();
                assert_eq!(named, [""; 0], "{}", path.display());
            }
        }
    }
}
