//! Detection of the tool in a command line.

use super::Reader;

/// Reader of the first test tool in a command line. Wrappers such as `npx`, `env`, `uv run` or `timeout 60`
/// are skipped. Scripts such as `npm test` do not name a tool.
pub(super) fn reader(command: &str) -> Option<Reader> {
    let words: Vec<&str> = command
        .split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')' | '\'' | '"'))
        .filter(|word| !word.is_empty())
        .collect();
    (0..words.len()).find_map(|start| tool(words.get(start..)?))
}

fn tool(words: &[&str]) -> Option<Reader> {
    let (program, rest) = words.split_first()?;
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = name
        .trim_end_matches(".exe")
        .trim_end_matches(".cmd")
        .trim_end_matches(".js");
    let python = name
        .strip_prefix("python")
        .is_some_and(|version| !version.contains(|c: char| c.is_alphabetic()));
    match name {
        "cargo" => cargo(rest),
        "cargo-nextest" => Some(Reader::Nextest),
        "pytest" | "py.test" => Some(Reader::Pytest),
        "jest" => Some(Reader::Jest),
        "vitest" => flag(rest, "--reporter", "tap")
            .or(flag(rest, "--reporter", "junit"))
            .or(Some(Reader::Vitest)),
        "node" if rest.contains(&"--test") => {
            let reporter = |format| flag(rest, "--test-reporter", format);
            reporter("tap").or(reporter("junit")).or(Some(Reader::NodeTest))
        }
        "go" if rest.first() == Some(&"test") => Some(Reader::GoTest),
        "tape" | "tap" | "bats" => Some(Reader::Tap),
        _ if python || name == "py" => module(rest),
        _ => None,
    }
}

/// `cargo +nightly --locked test`: the first word that is not an option.
fn cargo(rest: &[&str]) -> Option<Reader> {
    match *rest.iter().find(|word| !word.starts_with(['-', '+']))? {
        "test" | "t" => Some(Reader::CargoTest),
        "nextest" => Some(Reader::Nextest),
        _ => None,
    }
}

fn module(rest: &[&str]) -> Option<Reader> {
    let at = rest.iter().position(|word| *word == "-m")?;
    match *rest.get(at.checked_add(1)?)? {
        "pytest" => Some(Reader::Pytest),
        "unittest" => Some(Reader::Unittest),
        _ => None,
    }
}

/// The reader of a reporter chosen with `--reporter=tap` or `--reporter tap`.
fn flag(words: &[&str], option: &str, value: &str) -> Option<Reader> {
    let spaced = || {
        words
            .windows(2)
            .any(|pair| matches!(pair, [name, given] if *name == option && given.starts_with(value)))
    };
    let joined = || {
        let of = |word: &&str| {
            word.strip_prefix(option)
                .and_then(|rest| rest.strip_prefix('='))
                .is_some_and(|given| given.starts_with(value))
        };
        words.iter().any(of)
    };
    let reader = if value == "tap" {
        Reader::Tap
    } else {
        Reader::JunitXml
    };
    (spaced() || joined()).then_some(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_their_reader() {
        for (command, expected) in [
            ("cargo test --workspace", Some(Reader::CargoTest)),
            ("RUST_BACKTRACE=1 cargo +nightly t", Some(Reader::CargoTest)),
            ("cd x && cargo nextest run -p a", Some(Reader::Nextest)),
            ("timeout 60 cargo-nextest nextest run", Some(Reader::Nextest)),
            ("cargo build", None),
            ("uv run pytest -q", Some(Reader::Pytest)),
            ("/usr/bin/python3.11 -X dev -m pytest", Some(Reader::Pytest)),
            ("python -m unittest -v", Some(Reader::Unittest)),
            ("python setup.py", None),
            ("npx jest --ci", Some(Reader::Jest)),
            ("./node_modules/.bin/vitest run", Some(Reader::Vitest)),
            ("npx vitest run --reporter=tap-flat", Some(Reader::Tap)),
            ("npx vitest run --reporter junit", Some(Reader::JunitXml)),
            ("node --test test/", Some(Reader::NodeTest)),
            ("node --test --test-reporter=tap", Some(Reader::Tap)),
            ("node tap.js", Some(Reader::Tap)),
            ("sh -c 'go test -json ./...'", Some(Reader::GoTest)),
            ("npm test", None),
            ("", None),
        ] {
            assert_eq!(reader(command), expected, "{command}");
        }
    }
}
