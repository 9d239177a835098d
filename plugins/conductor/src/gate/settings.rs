//! Files that decide how tests run, and settings of tests inside of other files: pure.

use serde_json::Value;

/// Globs of files that decide how tests run, or that stand in the way of a test tool.
pub(super) const TEST_SETTINGS: &[&str] = &[
    "**/conftest.py",
    "**/pytest.{ini,toml}",
    "**/.pytest.{ini,toml}",
    "**/noxfile.py",
    "**/{pytest,unittest,_pytest,pluggy}.py",
    "**/{pytest,unittest,_pytest,pluggy}/**",
    "**/{sitecustomize,usercustomize}.py",
    "**/*.pth",
    "**/{jest,vitest,playwright,karma,cypress,ava,wdio}.{conf,config,workspace,setup}.*",
    "**/.mocharc*",
    "**/phpunit.xml*",
    "**/.rspec",
    "**/nextest.toml",
    "**/.cargo/config*",
];

/// Keys of a `package.json` that decide how tests run.
const KEYS: [&str; 6] = ["scripts", "jest", "vitest", "mocha", "ava", "type"];
/// Parts of the names of sections that decide how tests run.
const SECTIONS: [&str; 5] = ["pytest", "testenv", "tox", "nose", "unittest"];
/// Programs that take a script as their first argument.
const INTERPRETERS: [&str; 10] = [
    "sh", "bash", "dash", "zsh", "python", "python3", "node", "ruby", "perl", "php",
];

/// Settings of tests in a file that has others as well; `None` for other files.
pub(super) fn of(path: &str, text: &str) -> Option<String> {
    match path.rsplit('/').next()? {
        "package.json" => {
            let json: Value = serde_json::from_str(text).unwrap_or_default();
            let kept = KEYS.map(|key| json.get(key).cloned().unwrap_or_default());
            Some(Value::from(kept.to_vec()).to_string())
        }
        "pyproject.toml" | "setup.cfg" | "tox.ini" => Some(sections(text)),
        _ => None,
    }
}

fn sections(text: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = SECTIONS.iter().any(|name| line.contains(name));
        }
        // A dotted key outside of its section, as in `tool.pytest.ini_options.testpaths = []`.
        let dotted = line.split('=').next().is_some_and(|key| key.contains("pytest."));
        if (inside || dotted) && !line.is_empty() {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// Checks whether a command names a file as the script that runs the tests.
pub(super) fn runs(command: &[String], path: &str) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_path = |word: &str| word.trim_start_matches("./") == path;
    let tool = match name {
        "make" | "gmake" => {
            path.eq_ignore_ascii_case("makefile") || path == "GNUmakefile" || path.ends_with(".mk")
        }
        "just" => path.trim_start_matches('.').eq_ignore_ascii_case("justfile"),
        "tox" => path == "tox.ini",
        _ => false,
    };
    let script = arguments.iter().find(|word| !word.starts_with('-'));
    let by_interpreter = INTERPRETERS.contains(&name) && script.is_some_and(|script| is_path(script));
    let by_shell = arguments.iter().any(|word| {
        let words = word.split(|c: char| c.is_whitespace() || ";&|()\"'`".contains(c));
        let is_script = |word: &str| word.starts_with("./") || word.ends_with(".sh");
        words.into_iter().any(|word| is_script(word) && is_path(word))
    });
    let inner: Vec<String> = match arguments {
        [option, line, ..] if option == "-c" => line.split_whitespace().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    is_path(program) || tool || by_interpreter || by_shell || runs(&inner, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_files_of_build_tools_run_tests() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        for (command, path, expected) in [
            ("./run.sh all", "run.sh", true),
            ("bash -e run.sh", "run.sh", true),
            ("python check.py", "check.py", true),
            ("make test", "Makefile", true),
            ("pytest calc.py", "calc.py", false),
            ("cat suite", "suite", false),
        ] {
            assert_eq!(runs(&words(command), path), expected, "{command} {path}");
        }
        let shell = ["sh", "-c", "cd x; ./ci/run.sh && make test"].map(str::to_owned);
        assert!(runs(&shell, "ci/run.sh"));
        let shell = ["sh", "-c", "make test"].map(str::to_owned);
        assert!(runs(&shell, "Makefile"));
    }

    #[test]
    fn settings_of_tests_are_told_from_others() {
        let old = "[project]\nname = 'a'\n[tool.pytest.ini_options]\ntestpaths = ['t']\n";
        let renamed = old.replace("'a'", "'b'");
        let moved = old.replace("'t'", "'u'");
        assert_eq!(of("pyproject.toml", old), of("pyproject.toml", &renamed));
        assert_ne!(of("pyproject.toml", old), of("pyproject.toml", &moved));
        let package = r#"{"version": "1", "scripts": {"test": "jest"}}"#;
        assert_eq!(
            of("a/package.json", package),
            of("a/package.json", &package.replace('1', "2"))
        );
        assert_ne!(
            of("package.json", package),
            of("package.json", &package.replace("jest", "true"))
        );
        assert_eq!(of("calc.py", "x"), None);
    }
}
