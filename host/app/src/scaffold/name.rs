//! Names of new components.

use thiserror::Error;
use tollgate_components::builtin;
use tollgate_components::names::{RESERVED_NAMES, is_component_name, prefixes_clash};

use super::Kind;

/// Names of crates that a new crate depends on, or that Rust provides.
const RESERVED_CRATES: &[&str] = &[
    "alloc",
    "core",
    "proc-macro",
    "schemars",
    "serde",
    "serde-json",
    "std",
    "test",
    "tollgate-sdk",
];
/// Words that Rust does not accept as the name of a crate.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// A valid name for a new component and its crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

/// All reasons why a text cannot be the name of a new component.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name:?} is not a valid name: {}", .problems.join("; "))]
pub struct BadName {
    /// Requested name.
    pub name: String,
    /// Problems of the name, with remedies.
    pub problems: Vec<String>,
}

impl Name {
    /// Checks a name for a component of this kind.
    pub fn new(text: &str, kind: Kind) -> Result<Name, BadName> {
        let problems = problems(text, kind);
        if problems.is_empty() {
            return Ok(Name(text.to_owned()));
        }
        Err(BadName {
            name: tollgate_core::text::cut(text, 64).to_owned(),
            problems,
        })
    }

    /// Name as given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name with underscores, for Rust and SQL.
    pub fn snake(&self) -> String {
        self.0.replace('-', "_")
    }
}

fn problems(text: &str, kind: Kind) -> Vec<String> {
    if !is_component_name(text) {
        return vec![
            "a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`"
                .to_owned(),
        ];
    }
    let mut problems = Vec::new();
    if KEYWORDS.contains(&text) {
        problems.push("a reserved word of Rust cannot be the name of a crate".to_owned());
    }
    if RESERVED_CRATES.contains(&text) {
        problems.push("a crate that the new crate depends on has this name".to_owned());
    }
    match kind {
        Kind::Pack => problems.extend(taken_by_a_pack(text)),
        Kind::Policy if builtin::policy(text).is_some() => {
            problems.push("a built-in policy has this name".to_owned());
        }
        Kind::Policy => {}
    }
    problems
}

/// Reports a pack whose table prefix would overlap, because tables start with the name.
fn taken_by_a_pack(text: &str) -> Option<String> {
    if RESERVED_NAMES
        .iter()
        .any(|reserved| prefixes_clash(text, reserved))
    {
        return Some("the host reserves this name".to_owned());
    }
    let other = builtin::names().find(|builtin| prefixes_clash(text, builtin))?;
    Some(if other == text {
        "a built-in pack has this name".to_owned()
    } else {
        format!("the tables could clash with those of the built-in pack `{other}`")
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_name_is_refused_with_everything_that_is_wrong_with_it() {
        let long = "x".repeat(33);
        let mut said = String::new();
        for name in [
            "notes", "a-1", "", "Notes", "a_b", "../notes", &long, "fn", "serde", "core", "tasks", "task",
            "cel",
        ] {
            for kind in [Kind::Pack, Kind::Policy] {
                let made = match Name::new(name, kind) {
                    Ok(name) => format!("ok {}", name.snake()),
                    Err(bad) => bad.problems.join("; "),
                };
                said += &format!("{} {name:?}: {made}\n", kind.as_str());
            }
        }
        expect![[r#"
            pack "notes": ok notes
            policy "notes": ok notes
            pack "a-1": ok a_1
            policy "a-1": ok a_1
            pack "": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            policy "": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            pack "Notes": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            policy "Notes": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            pack "a_b": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            policy "a_b": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            pack "../notes": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            policy "../notes": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            pack "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            policy "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": a name starts with a lower-case letter, and has at most 32 lower-case letters, digits and `-`
            pack "fn": a reserved word of Rust cannot be the name of a crate
            policy "fn": a reserved word of Rust cannot be the name of a crate
            pack "serde": a crate that the new crate depends on has this name
            policy "serde": a crate that the new crate depends on has this name
            pack "core": a crate that the new crate depends on has this name; the host reserves this name
            policy "core": a crate that the new crate depends on has this name
            pack "tasks": a built-in pack has this name
            policy "tasks": ok tasks
            pack "task": the tables could clash with those of the built-in pack `task-store`
            policy "task": ok task
            pack "cel": ok cel
            policy "cel": a built-in policy has this name
        "#]].assert_eq(&said);
    }
}
