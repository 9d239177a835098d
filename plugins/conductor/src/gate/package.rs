//! Settings of tests in a `package.json`, compared by their values. Pure.
//!
//! A script counts only if a command that runs tests may come to it: who adds `lint` changes no test.

use serde_json::{Map, Value};

use super::commands;
use super::runners::Runner;

/// Keys that decide how tests run.
const TEST_KEYS: [&str; 10] = [
    "jest", "vitest", "mocha", "ava", "tap", "nyc", "babel", "imports", "type", "wireit",
];
/// Keys of dependencies by name. A version is nobody's setting, but another place is.
const DEPENDENCY_KEYS: [&str; 5] = [
    "dependencies",
    "devDependencies",
    "peerDependencies",
    "overrides",
    "resolutions",
];
/// Programs that run scripts of a `package.json`.
const SCRIPT_RUNNERS: [&str; 14] = [
    "npm",
    "yarn",
    "pnpm",
    "bun",
    "turbo",
    "nx",
    "lerna",
    "rush",
    "wireit",
    "concurrently",
    "run-s",
    "run-p",
    "npm-run-all",
    "npm-run-all2",
];
/// Scripts that run by themselves when packages are installed.
const INSTALL_SCRIPTS: [&str; 3] = ["install", "prepare", "dependencies"];

/// Parts that differ between two texts of a `package.json` and may change how these commands run tests.
pub(super) fn differing(old: &str, new: &str, commands: &[Runner]) -> Vec<String> {
    let (Some(old), Some(new)) = (read(old), read(new)) else {
        return match old == new {
            true => Vec::new(),
            false => vec!["the whole file, which is not a JSON object".to_owned()],
        };
    };
    let mut found: Vec<String> = TEST_KEYS
        .iter()
        .filter(|key| old.get(**key) != new.get(**key))
        .map(|key| (*key).to_owned())
        .collect();
    for table in DEPENDENCY_KEYS {
        let (before, after) = (entries(&old, table), entries(&new, table));
        let moved = after
            .iter()
            .filter(|(name, value)| is_place(value) && before.get(*name).is_some_and(|was| was != *value));
        found.extend(moved.map(|(name, _)| format!("{table}.{name}")));
    }
    let (before, after) = (entries(&old, "scripts"), entries(&new, "scripts"));
    let counts =
        |name: &String| is_reached(name, commands) || (before.contains_key(name) && runs_scripts(commands));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let scripts = names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name) && counts(name));
    found.extend(scripts.map(|name| format!("scripts.{name}")));
    found
}

fn read(text: &str) -> Option<Map<String, Value>> {
    match text.trim().is_empty() {
        true => Some(Map::new()),
        false => serde_json::from_str(text).ok(),
    }
}

fn entries(package: &Map<String, Value>, key: &str) -> Map<String, Value> {
    match package.get(key) {
        Some(Value::Object(entries)) => entries.clone(),
        _ => Map::new(),
    }
}

/// Checks whether a dependency comes from a place of the machine instead of a registry.
fn is_place(value: &Value) -> bool {
    let text = value.to_string();
    ["file:", "link:", "portal:", "./", "../"]
        .iter()
        .any(|place| text.contains(place))
}

/// Checks whether commands may come to a script: by its name, before or after another one, or by a pattern.
fn is_reached(name: &str, commands: &[Runner]) -> bool {
    let plain = name
        .strip_prefix("pre")
        .or_else(|| name.strip_prefix("post"))
        .unwrap_or(name);
    if [name, plain]
        .iter()
        .any(|name| INSTALL_SCRIPTS.contains(name) || name.starts_with("prepublish"))
    {
        return true;
    }
    if !runs_scripts(commands) {
        return false;
    }
    let parts = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|part| !part.is_empty())
            .map(str::to_lowercase)
            .collect()
    };
    let own = parts(plain);
    let mut words = commands.iter().flat_map(|runner| &runner.words);
    name.to_lowercase().contains("test")
        || words.any(|word| {
            let known = parts(word);
            (word.contains('*') && own.iter().any(|part| known.contains(part)))
                || own.iter().all(|part| known.contains(part))
        })
}

fn runs_scripts(commands: &[Runner]) -> bool {
    let mut all = commands.iter().flat_map(|runner| commands::simple(&runner.words));
    all.any(|words| {
        let program = words.first().map_or("", |program| commands::name_of(program));
        let is_of_node = program == "node" && words.iter().any(|word| word.starts_with("--run"));
        is_of_node || SCRIPT_RUNNERS.contains(&program)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(lines: &[&str]) -> Vec<Runner> {
        let runner = |line: &&str| Runner {
            words: line.split(' ').map(str::to_owned).collect(),
            is_test: true,
        };
        lines.iter().map(runner).collect()
    }

    #[test]
    fn scripts_count_if_commands_may_come_to_them() {
        let old = r#"{"version": "1", "scripts": {"test": "node --test", "lint": "eslint ."}}"#;
        let with = |part: &str| old.replace("\"lint\"", &format!("{part}, \"lint\""));
        let npm = commands(&["npm test", "node --test"]);
        let all = commands(&["npm-run-all check:*"]);
        let plain = commands(&["node --test"]);
        for (new, commands, expected) in [
            (with(r#""start": "node a.js""#), &npm, ""),
            (with(r#""build": "tsc", "format": "x""#), &npm, ""),
            (with(r#""pretest": "rm -rf test""#), &npm, "scripts.pretest"),
            (with(r#""test:unit": "x""#), &npm, "scripts.test:unit"),
            (with(r#""prepare": "x""#), &plain, "scripts.prepare"),
            (with(r#""check:a": "x""#), &all, "scripts.check:a"),
            (old.replace("eslint .", "eslint src"), &npm, "scripts.lint"),
            (old.replace("eslint .", "eslint src"), &plain, ""),
            (old.replace("node --test", "true"), &npm, "scripts.test"),
            (old.replace("node --test", "true"), &plain, ""),
            (old.replace("\"1\"", "\"2\""), &npm, ""),
            (
                old.replace("\"version\": \"1\"", "\"type\": \"module\""),
                &plain,
                "type",
            ),
            (
                "{".to_owned(),
                &plain,
                "the whole file, which is not a JSON object",
            ),
        ] {
            assert_eq!(differing(old, &new, commands).join(" "), expected, "{new}");
        }
    }

    #[test]
    fn a_dependency_that_comes_from_elsewhere_is_a_setting() {
        let old = r#"{"devDependencies": {"kit": "^1", "own": "file:./own"}}"#;
        let plain = commands(&["node --test"]);
        assert!(differing(old, &old.replace("^1", "^2"), &plain).is_empty());
        assert_eq!(
            differing(old, &old.replace("^1", "file:./soft"), &plain),
            ["devDependencies.kit"]
        );
        assert_eq!(
            differing(old, &old.replace("./own", "./soft"), &plain),
            ["devDependencies.own"]
        );
    }
}
