//! Workspaces: counters and focus.

use tollgate_sdk::{Db, DbError, Row, params};

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

impl TryFrom<Row> for Counters {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Counters, DbError> {
        Ok(Counters {
            plans: row.get(0)?,
            tasks: row.get(1)?,
            events: row.get(2)?,
            operations: row.get(3)?,
            mutations: row.get(4)?,
            focus: row.get(5)?,
        })
    }
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
