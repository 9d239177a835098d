//! What the operator lets a component touch. Pure: it compares, it opens nothing.

use serde::Deserialize;

use crate::sandbox::bindings::tollgate::host::component::Want;

/// The `grants` table of one component in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grants {
    /// Workspaces it may read, `*` being all; writing follows each workspace's own `write`.
    pub workspaces: Vec<String>,
    /// Programs it may run.
    pub process: Vec<String>,
    /// Whether it may query past operations.
    pub ledger: bool,
    /// Named budgets it may reserve from.
    pub budgets: Vec<String>,
}

/// What a component may use beside its own tables: what it asks for in its manifest. One that was not
/// granted all of that is not loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Granted {
    /// It may query past operations.
    pub ledger_query: bool,
    /// Budgets it may reserve from, `*` being all.
    pub budgets: Vec<String>,
}

impl Granted {
    /// What a loaded component's manifest asks for.
    pub(super) fn of(wants: &[Want]) -> Granted {
        let mut granted = Granted::default();
        for want in wants {
            match want {
                Want::LedgerQuery => granted.ledger_query = true,
                Want::Budget(name) => granted.budgets.push(name.clone()),
                Want::WorkspaceRead(_) | Want::WorkspaceWrite(_) | Want::Process(_) => {}
            }
        }
        granted
    }

    /// Whether it may reserve from a budget.
    pub fn may_reserve(&self, name: &str) -> bool {
        self.budgets.iter().any(|grant| grant == name || grant == "*")
    }
}

/// Everything a component wants and was not granted: what it is, and the line that grants it.
pub(super) fn missing(wants: &[Want], grants: &Grants) -> Vec<Missing> {
    wants
        .iter()
        .filter_map(|want| missing_one(want, grants))
        .collect()
}

/// One thing that was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    /// What the component wants, for people.
    pub(super) what: String,
    /// The configuration line that grants it.
    pub(super) line: String,
}

fn missing_one(want: &Want, grants: &Grants) -> Option<Missing> {
    let granted = |list: &[String], name: &str| list.iter().any(|grant| grant == name || grant == "*");
    let (ok, what, line) = match want {
        Want::WorkspaceRead(name) => (
            granted(&grants.workspaces, name),
            format!("read workspace `{name}`"),
            format!("grants.workspaces = [{name:?}]"),
        ),
        Want::WorkspaceWrite(prefix) => (
            !grants.workspaces.is_empty(),
            format!("write below `{prefix}` in its workspaces"),
            "grants.workspaces = [\"default\"]".to_owned(),
        ),
        Want::Process(program) => (
            granted(&grants.process, program),
            format!("run `{program}`"),
            format!("grants.process = [{program:?}]"),
        ),
        Want::LedgerQuery => (
            grants.ledger,
            "query the ledger".to_owned(),
            "grants.ledger = true".to_owned(),
        ),
        Want::Budget(name) => (
            granted(&grants.budgets, name),
            format!("reserve from budget `{name}`"),
            format!("grants.budgets = [{name:?}]"),
        ),
    };
    (!ok).then_some(Missing { what, line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_is_named_with_its_line() {
        let wants = [
            Want::Process("cargo".into()),
            Want::LedgerQuery,
            Want::Budget("approvals".into()),
        ];
        let grants = Grants {
            budgets: vec!["approvals".to_owned()],
            ..Grants::default()
        };
        let lines: Vec<String> = missing(&wants, &grants)
            .into_iter()
            .map(|missing| missing.line)
            .collect();
        assert_eq!(lines, ["grants.process = [\"cargo\"]", "grants.ledger = true"]);
    }
}
