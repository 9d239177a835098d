//! Commands that run tests, followed into the scripts that they call.

use std::collections::BTreeMap;

use serde_json::Value;

use super::commands::{self, SHELLS};
use crate::git::Git;

/// Levels of scripts that are followed.
const MAX_SCRIPT_LEVELS: usize = 2;
/// Maximum commands in all.
const MAX_COMMANDS: usize = 2_000;
/// Programs that run scripts of a `package.json`.
const PACKAGE_RUNNERS: [&str; 4] = ["npm", "yarn", "pnpm", "bun"];

/// A command, and whether tests are its purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Runner {
    pub words: Vec<String>,
    pub is_test: bool,
}

impl Runner {
    /// Checks whether the command runs a file.
    pub(super) fn runs(&self, path: &str) -> bool {
        commands::runs(&self.words, self.is_test, path)
    }

    /// Line of a script, as a shell would run it.
    fn line(&self, line: &str) -> Runner {
        Runner {
            words: ["sh", "-c", line].map(str::to_owned).to_vec(),
            is_test: self.is_test,
        }
    }
}

/// Commands with those that their scripts call, as the scripts were in a commit.
pub(super) fn followed(git: &Git<'_>, base: Option<&str>, commands: &[Runner]) -> Vec<Runner> {
    let mut texts = Texts {
        git,
        base,
        known: BTreeMap::new(),
    };
    let mut all = commands.to_vec();
    let mut from = 0;
    for _ in 0..MAX_SCRIPT_LEVELS {
        let level: Vec<Runner> = all.iter().skip(from).cloned().collect();
        from = all.len();
        for called in level.iter().flat_map(|runner| called(runner, &mut texts)) {
            if all.len() < MAX_COMMANDS && !all.contains(&called) {
                all.push(called);
            }
        }
    }
    all
}

/// Commands that a command calls.
fn called(runner: &Runner, texts: &mut Texts<'_, '_>) -> Vec<Runner> {
    let mut found = Vec::new();
    for words in commands::simple(&runner.words) {
        let program = words.first().map_or("", |program| commands::name_of(program));
        if PACKAGE_RUNNERS.contains(&program) {
            let (directory, script) = package_script(&words);
            let text = texts.of(&format!("{directory}package.json"));
            let scripts = scripts(&text, &script);
            found.extend(scripts.iter().map(|line| runner.line(line)));
        } else if matches!(program, "make" | "gmake") {
            for name in ["Makefile", "makefile", "GNUmakefile"] {
                let text = texts.of(name);
                let recipes = text.lines().filter_map(|line| line.strip_prefix('\t'));
                found.extend(recipes.map(|line| runner.line(line.trim_start_matches(['@', '-', '+']))));
            }
        } else if let Some(path) = commands::script(&words) {
            let text = texts.of(path);
            let first = text.lines().next().unwrap_or_default();
            let by_shell = SHELLS.contains(&program)
                || path.ends_with(".sh")
                || (first.starts_with("#!") && first.trim_end().ends_with("sh"));
            let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
            let lines = lines.filter(|line| by_shell && !line.is_empty());
            found.extend(lines.map(|line| runner.line(line)));
        }
    }
    found
}

/// Directory of the package, with a slash or empty, and the name of the script that a runner of packages is given.
fn package_script(words: &[String]) -> (String, String) {
    let mut directory = String::new();
    let mut names: Vec<&str> = Vec::new();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--prefix" | "-C" | "--cwd" | "--dir" => {
                let given = rest.next().map_or("", |given| given.trim_start_matches("./"));
                directory = format!("{}/", given.trim_end_matches('/'));
            }
            "run" | "run-script" => {}
            "--" => break,
            option if option.starts_with('-') => {}
            name => names.push(name),
        }
    }
    let name = match names.first().copied() {
        Some("t" | "tst") => "test",
        Some(name) => name,
        None => "",
    };
    (directory, name.to_owned())
}

/// A script of a `package.json`, with those before and after it.
fn scripts(text: &str, name: &str) -> Vec<String> {
    let read: Value = serde_json::from_str(text).unwrap_or_default();
    let names = [format!("pre{name}"), name.to_owned(), format!("post{name}")];
    let found = names
        .iter()
        .filter_map(|name| read.get("scripts")?.get(name)?.as_str());
    found.map(str::to_owned).collect()
}

/// Texts of scripts, read once each.
struct Texts<'g, 'a> {
    git: &'g Git<'a>,
    base: Option<&'g str>,
    known: BTreeMap<String, String>,
}

impl Texts<'_, '_> {
    fn of(&mut self, path: &str) -> String {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let text = match crate::root::stays_inside(path) {
            true => self
                .base
                .and_then(|base| self.git.text_in(base, path))
                .or_else(|| self.git.text_now(path)),
            false => None,
        };
        let text = text.unwrap_or_default();
        self.known.insert(path.to_owned(), text.clone());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_packages_are_found_by_their_names() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        for (line, directory, name) in [
            ("npm test", "", "test"),
            ("npm run --silent check -- -x", "", "check"),
            ("pnpm -C web run test", "web/", "test"),
            ("yarn --cwd ./web test", "web/", "test"),
        ] {
            assert_eq!(
                package_script(&words(line)),
                (directory.to_owned(), name.to_owned()),
                "{line}"
            );
        }
        let text = r#"{"scripts": {"pretest": "a", "test": "b", "posttest": 1}}"#;
        assert_eq!(scripts(text, "test"), ["a", "b"]);
    }
}
