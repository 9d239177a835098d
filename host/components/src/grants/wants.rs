//! Capabilities that a component may request. Pure. The operator reads and grants requests by name, so a name must
//! not contain invisible or misleading characters.

use tollgate_core::text;
use tollgate_core::text::is_name;
use tollgate_sandbox::bindings::tollgate::host::component::Want;
use tollgate_sdk::tree;

use super::ANY;

/// Most requests of one component.
const MAX_WANTS: usize = 64;
/// Longest name of a program, in bytes.
const MAX_PROGRAM: usize = 64;
/// Words of `grants.process` that are not programs.
const PROCESS_WORDS: &[(&str, &str)] = &[("git", "git access"), ("tests", "the registered tests")];

/// Problems of a component's requests.
pub fn problems(wants: &[Want]) -> Vec<String> {
    if wants.len() > MAX_WANTS {
        return vec![format!(
            "it has {} requests (`wants`); at most {MAX_WANTS} are allowed",
            wants.len()
        )];
    }
    wants.iter().filter_map(problem).collect()
}

fn problem(want: &Want) -> Option<String> {
    match want {
        Want::Process(program) => program_problem(program),
        Want::WorkspaceRead(name) if !is_name(name) && name != ANY => Some(format!(
            "it requests to read workspace {}; write * or a name of letters, digits, `-`, `_` and `.`",
            shown(name)
        )),
        Want::WorkspaceWrite(prefix) if !is_prefix(prefix) => Some(format!(
            "it requests to write below {}; write a relative path without `..`",
            shown(prefix)
        )),
        Want::Budget(name) if !is_name(name) && name != ANY => Some(format!(
            "it requests to reserve from budget {}; write a name of letters, digits, `-`, `_` and `.`",
            shown(name)
        )),
        _ => None,
    }
}

/// Problem of a program's name. Programs are looked up on the host's PATH. A path could name any file, even one in a
/// workspace.
fn program_problem(program: &str) -> Option<String> {
    if let Some((_, meant)) = PROCESS_WORDS.iter().find(|(word, _)| *word == program) {
        return Some(format!(
            "it requests to run a program `{program}`, which would be granted as {meant}; request {meant} instead"
        ));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
    let starts_well = program.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let is_program = starts_well && program.len() <= MAX_PROGRAM && program.chars().all(is_plain);
    (!is_program).then(|| {
        format!(
            "it requests to run {}; write a program's name without its path, of at most {MAX_PROGRAM} letters, digits, \
             `.`, `_`, `+` and `-`",
            shown(program)
        )
    })
}

fn is_prefix(prefix: &str) -> bool {
    !prefix.is_empty() && tree::path(prefix).is_ok() && text::clean(prefix) == prefix
}

fn shown(said: &str) -> String {
    format!("{:?}", text::cut(said, MAX_PROGRAM))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_program_is_a_name_and_no_path() {
        let long = "x".repeat(65);
        for bad in [
            "/bin/sh",
            "./run",
            "../sh",
            "a/b",
            "sub\\x",
            "",
            "-c",
            "..",
            ".",
            ".hidden",
            "a b",
            "a\nb",
            "a\0b",
            "*",
            "g\u{200b}it",
            "git",
            "tests",
            "$HOME",
            "sh;id",
            &long,
        ] {
            assert_eq!(problems(&[Want::Process(bad.to_owned())]).len(), 1, "{bad:?}");
        }
        for good in ["sh", "g++", "clang-format-15", "python3.12", "_x", "7z"] {
            assert_eq!(problems(&[Want::Process(good.to_owned())]), [""; 0], "{good:?}");
        }
    }

    #[test]
    fn places_and_budgets_are_named_as_the_operator_names_them() {
        let read = |name: &str| Want::WorkspaceRead(name.to_owned());
        let write = |prefix: &str| Want::WorkspaceWrite(prefix.to_owned());
        let budget = |name: &str| Want::Budget(name.to_owned());
        let good = [
            read("*"),
            read("main"),
            write("."),
            write(".gsd/"),
            budget("tokens"),
            Want::Tests,
        ];
        assert_eq!(problems(&good), [""; 0]);
        let bad = [
            read("../x"),
            read("a b"),
            write("/etc"),
            write("a/../.."),
            write("a\u{202e}b"),
            budget(""),
        ];
        assert_eq!(problems(&bad).len(), bad.len());
        assert_eq!(problems(&vec![Want::Tests; 65]).len(), 1);
    }
}
