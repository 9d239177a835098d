//! What the operator lets a component touch. Pure: it compares, it opens nothing.

use serde::Deserialize;
use tollgate_sdk::GitAccess;
use tollgate_sdk::permit::Asked;

use crate::sandbox::bindings::tollgate::host::component::{self, Want};

/// What `grants.process` calls the registered test commands.
const TESTS: &str = "tests";
/// And git.
const GIT: &str = "git";

/// The `grants` table of one component in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Workspaces it may use, `*` being all; writing, git and tests follow each workspace's own table.
    /// Absent: all for a built-in pack, none for others.
    pub workspaces: Option<Vec<String>>,
    /// Programs it may run, `tests` being the registered test commands. Absent: what a built-in pack
    /// asks for, nothing for others.
    pub process: Option<Vec<String>>,
    /// Whether it may query past operations. Absent: if a built-in pack asks for it.
    pub ledger: Option<bool>,
    /// Whether it may keep artifacts. Absent: if a built-in pack asks for it.
    pub artifacts: Option<bool>,
    /// Named budgets it may reserve from. Absent: those that a built-in pack asks for, none for others.
    pub budgets: Option<Vec<String>>,
}

/// What a component may use of ledger, artifacts and budgets: what it asks for and was granted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// It may query past operations.
    pub ledger_query: bool,
    /// It may keep artifacts.
    pub artifacts: bool,
    /// Budgets it may reserve from, `*` being all.
    pub budgets: Vec<String>,
}

impl Granted {
    /// What of a component's wishes is granted.
    pub(super) fn of(wants: &[Want], grants: &Grants, trust: Trust) -> Granted {
        let mut granted = Granted::default();
        for want in wants {
            match want {
                Want::LedgerQuery => granted.ledger_query = grants.ledger(trust),
                Want::Artifacts => granted.artifacts = grants.artifacts(trust),
                Want::Budget(name) if grants.budget(name, trust) => granted.budgets.push(name.clone()),
                _ => {}
            }
        }
        granted
    }

    /// Whether it may reserve from a budget.
    pub fn may_reserve(&self, name: &str) -> bool {
        self.budgets.iter().any(|grant| grant == name || grant == "*")
    }
}

/// How a component is met before the operator says anything about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// It is part of this program: it gets what it asks for.
    Builtin,
    /// It gets nothing.
    Foreign,
}

impl Grants {
    /// Whether a component may use a workspace.
    pub(super) fn workspace(&self, name: &str, trust: Trust) -> bool {
        match &self.workspaces {
            Some(granted) => lists(granted, name),
            None => trust == Trust::Builtin,
        }
    }

    fn program(&self, name: &str, trust: Trust) -> bool {
        match &self.process {
            Some(granted) => lists(granted, name),
            None => trust == Trust::Builtin,
        }
    }

    fn ledger(&self, trust: Trust) -> bool {
        self.ledger.unwrap_or(trust == Trust::Builtin)
    }

    fn artifacts(&self, trust: Trust) -> bool {
        self.artifacts.unwrap_or(trust == Trust::Builtin)
    }

    fn budget(&self, name: &str, trust: Trust) -> bool {
        match &self.budgets {
            Some(granted) => lists(granted, name),
            None => trust == Trust::Builtin,
        }
    }

    /// What of a component's wishes for workspaces and programs is granted.
    pub(super) fn asked(&self, wants: &[Want], trust: Trust) -> Asked {
        let mut asked = Asked::default();
        for want in wants {
            match want {
                Want::WorkspaceRead(name) => asked.read.push(name.clone()),
                Want::WorkspaceWrite(prefix) => asked.write.push(prefix.clone()),
                Want::Process(program) if self.program(program, trust) => {
                    asked.programs.push(program.clone())
                }
                Want::Tests => asked.tests |= self.program(TESTS, trust),
                Want::Git(access) if self.program(GIT, trust) => {
                    asked.git = asked.git.max(Some(git_access(*access)));
                }
                Want::Process(_) | Want::Git(_) | Want::LedgerQuery | Want::Budget(_) | Want::Artifacts => {}
            }
        }
        asked
    }
}

fn git_access(access: component::GitAccess) -> GitAccess {
    match access {
        component::GitAccess::Read => GitAccess::Read,
        component::GitAccess::Write => GitAccess::Write,
    }
}

fn lists(granted: &[String], name: &str) -> bool {
    granted.iter().any(|grant| grant == name || grant == "*")
}

/// Everything a component wants and was not granted: what it is, and the line that grants it. A
/// built-in pack does without what the operator took from it.
pub(super) fn missing(wants: &[Want], grants: &Grants, trust: Trust) -> Vec<Missing> {
    let wants = wants.iter().filter(|_| trust == Trust::Foreign);
    let missing = wants.filter_map(|want| missing_one(want, grants)).collect();
    joined(missing)
}

/// One thing that was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    /// What the component wants, for people.
    pub(super) what: String,
    /// The configuration line that grants it.
    pub(super) line: String,
}

fn missing_one(want: &Want, grants: &Grants) -> Option<(&'static str, String, String)> {
    let any = grants
        .workspaces
        .as_ref()
        .is_some_and(|granted| !granted.is_empty());
    let program = |name: &str| grants.program(name, Trust::Foreign);
    let (ok, key, name, what) = match want {
        Want::WorkspaceRead(name) if name == "*" => {
            (any, "workspaces", "default", "read workspaces".to_owned())
        }
        Want::WorkspaceRead(name) => (
            grants.workspace(name, Trust::Foreign),
            "workspaces",
            name.as_str(),
            format!("read workspace `{name}`"),
        ),
        Want::WorkspaceWrite(prefix) => (
            any,
            "workspaces",
            "default",
            format!("write below `{prefix}` in its workspaces"),
        ),
        Want::Process(name) => (program(name), "process", name.as_str(), format!("run `{name}`")),
        Want::Tests => (
            program(TESTS),
            "process",
            TESTS,
            "run registered tests".to_owned(),
        ),
        Want::Git(_) => (program(GIT), "process", GIT, "run git".to_owned()),
        Want::LedgerQuery => (
            grants.ledger(Trust::Foreign),
            "ledger",
            "",
            "query the ledger".to_owned(),
        ),
        Want::Artifacts => (
            grants.artifacts(Trust::Foreign),
            "artifacts",
            "",
            "keep artifacts".to_owned(),
        ),
        Want::Budget(name) => (
            grants.budget(name, Trust::Foreign),
            "budgets",
            name.as_str(),
            format!("reserve from budget `{name}`"),
        ),
    };
    (!ok).then(|| (key, name.to_owned(), what))
}

/// One line for each key, with all that it has to name.
fn joined(missing: Vec<(&'static str, String, String)>) -> Vec<Missing> {
    ["workspaces", "process", "ledger", "artifacts", "budgets"]
        .into_iter()
        .filter(|key| missing.iter().any(|(other, ..)| other == key))
        .map(|key| {
            let of_key = missing.iter().filter(move |(other, ..)| *other == key);
            let mut names: Vec<String> = of_key.clone().map(|(_, name, _)| format!("{name:?}")).collect();
            names.dedup();
            let whats: Vec<&str> = of_key.map(|(.., what)| what.as_str()).collect();
            Missing {
                what: whats.join(" and "),
                line: match key {
                    "ledger" | "artifacts" => format!("grants.{key} = true"),
                    key => format!("grants.{key} = [{}]", names.join(", ")),
                },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants() -> [Want; 7] {
        [
            Want::WorkspaceRead("*".into()),
            Want::WorkspaceWrite(".gsd/".into()),
            Want::Process("cargo".into()),
            Want::Tests,
            Want::LedgerQuery,
            Want::Artifacts,
            Want::Budget("approvals".into()),
        ]
    }

    #[test]
    fn everything_that_is_missing_is_named_with_its_line() {
        let grants = Grants {
            budgets: Some(vec!["approvals".to_owned()]),
            ..Grants::default()
        };
        let told: Vec<String> = missing(&wants(), &grants, Trust::Foreign)
            .into_iter()
            .map(|missing| format!("{}: {}", missing.what, missing.line))
            .collect();
        assert_eq!(
            told,
            [
                "read workspaces and write below `.gsd/` in its workspaces: grants.workspaces = [\"default\"]",
                "run `cargo` and run registered tests: grants.process = [\"cargo\", \"tests\"]",
                "query the ledger: grants.ledger = true",
                "keep artifacts: grants.artifacts = true",
            ]
        );
    }

    #[test]
    fn a_built_in_pack_gets_what_it_asks_for_unless_the_operator_says_otherwise() {
        let default = Grants::default();
        assert!(default.asked(&wants(), Trust::Builtin).tests);
        assert!(default.workspace("default", Trust::Builtin));
        assert!(!default.asked(&wants(), Trust::Foreign).tests);
        assert!(!default.workspace("default", Trust::Foreign));
        let less = Grants {
            workspaces: Some(vec!["main".to_owned()]),
            process: Some(vec!["cargo".to_owned()]),
            ..Grants::default()
        };
        let asked = less.asked(&wants(), Trust::Builtin);
        assert_eq!((asked.programs, asked.tests), (vec!["cargo".to_owned()], false));
        assert!(!less.workspace("default", Trust::Builtin));
        assert!(missing(&wants(), &less, Trust::Builtin).is_empty());
        assert!(Granted::of(&wants(), &default, Trust::Builtin).may_reserve("approvals"));
        assert_eq!(
            Granted::of(&wants(), &default, Trust::Foreign),
            Granted::default()
        );
        let less = Grants {
            ledger: Some(false),
            ..Grants::default()
        };
        let granted = Granted::of(&wants(), &less, Trust::Builtin);
        assert_eq!((granted.ledger_query, granted.artifacts), (false, true));
    }
}
