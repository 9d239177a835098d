//! Workspaces: counters and focus.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::rows;
use crate::model::Workspace;

/// The counters of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub plans: i64,
    pub tasks: i64,
    pub events: i64,
    pub operations: i64,
    pub mutations: i64,
    pub focus: Option<String>,
}

from_row! {
    Counters { plans, tasks, events, operations, mutations, focus }
}

/// Counters of a workspace, `None` if it is new.
pub(crate) fn counters(db: &Db<'_>, workspace: &Workspace) -> Result<Option<Counters>, DbError> {
    db.query_one(
        "SELECT plans, tasks, events, operations, mutations, focus FROM tasks_workspaces WHERE name = ?1",
        params![workspace],
    )
}

/// Writes the counters, and the workspace if it is new.
pub(crate) fn save(db: &Db<'_>, workspace: &Workspace, counters: &Counters) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO tasks_workspaces (name, plans, tasks, events, operations, mutations, focus) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
         ON CONFLICT (name) DO UPDATE SET plans = excluded.plans, tasks = excluded.tasks, \
             events = excluded.events, operations = excluded.operations, mutations = excluded.mutations, \
             focus = excluded.focus",
        params![
            workspace,
            counters.plans,
            counters.tasks,
            counters.events,
            counters.operations,
            counters.mutations,
            counters.focus
        ],
    )
    .map(drop)
}

/// A workspace in a list.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub name: String,
    pub plans: i64,
    pub tasks: i64,
    pub touched_at: Option<Timestamp>,
}

from_row! {
    Listed { name, plans, tasks, touched_at }
}

/// Workspaces by name, after one of them.
pub(crate) fn list(db: &Db<'_>, after: &str, limit: usize) -> Result<Vec<Listed>, DbError> {
    db.query_as(
        "SELECT name, plans, tasks, \
             (SELECT max(touched_at) FROM tasks_roots AS root WHERE root.workspace = tasks_workspaces.name) \
         FROM tasks_workspaces WHERE name > ?1 ORDER BY name LIMIT ?2",
        params![after, rows(limit)],
    )
}

/// The workspace whose name differs least from a mistyped one, if it differs in little.
pub(crate) fn similar(db: &Db<'_>, name: &str) -> Result<Option<String>, DbError> {
    const MAX_SEARCHED: i64 = 1_000;
    let rows = db.query(
        "SELECT name FROM tasks_workspaces ORDER BY name LIMIT ?1",
        params![MAX_SEARCHED],
    )?;
    let mut nearest: Option<(usize, String)> = None;
    for row in &rows {
        let known: String = row.get(0)?;
        let edits = edits(&known.to_ascii_lowercase(), &name.to_ascii_lowercase());
        let is_near = edits <= 2 && edits * 2 < known.len();
        if is_near && nearest.as_ref().is_none_or(|(least, _)| edits < *least) {
            nearest = Some((edits, known));
        }
    }
    Ok(nearest.map(|(_, known)| known))
}

/// Number of characters to insert, remove or replace to make one text the other.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (place, here) in one.chars().enumerate() {
        let mut next = vec![place + 1];
        for (column, there) in other.iter().enumerate() {
            let replaced = row.get(column).copied().unwrap_or_default() + usize::from(here != *there);
            let removed = row.get(column + 1).copied().unwrap_or_default() + 1;
            let inserted = next.last().copied().unwrap_or_default() + 1;
            next.push(replaced.min(removed).min(inserted));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::edits;

    #[test]
    fn edits_are_counted() {
        for (one, other, count) in [
            ("", "", 0),
            ("acme", "acme", 0),
            ("acme", "amce", 2),
            ("acme/repo", "acme-repo", 1),
            ("a", "", 1),
        ] {
            assert_eq!(edits(one, other), count, "{one} {other}");
        }
    }
}
