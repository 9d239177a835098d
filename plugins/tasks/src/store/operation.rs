//! The journal: operations in order, with their changes.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{Db, DbError, Row, Timestamp, ToValue, Value, params, text_enum};

use super::Kind;
use crate::model::Workspace;

text_enum! {
    /// Undo state of an operation.
    pub(crate) enum State {
        /// The operation can be undone.
        Done = "done",
        /// The operation was undone and can be redone.
        Undone = "undone",
        /// The operation was undone, and a later write made redo impossible.
        Dropped = "dropped",
        /// The operation cannot be undone.
        Final = "final",
    }
}

/// Journal entry of a write.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Operation {
    /// Sequence number in the workspace's journal.
    pub seq: i64,
    /// Name of the tool.
    pub tool: String,
    /// True if the operation can be undone or redone.
    pub state: State,
    /// Time of creation.
    pub at: Timestamp,
}

impl TryFrom<Row> for Operation {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Operation, DbError> {
        Ok(Operation {
            seq: row.get(0)?,
            tool: row.get(1)?,
            state: row.get(2)?,
            at: row.get(3)?,
        })
    }
}

/// A record before and after an operation, as JSON. `before` is absent if the record was created, `after` if
/// it was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub kind: Kind,
    pub id: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl TryFrom<Row> for Change {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Change, DbError> {
        Ok(Change {
            kind: row.get(0)?,
            id: row.get(1)?,
            before: row.get(2)?,
            after: row.get(3)?,
        })
    }
}

/// Adds an operation with the roots that it changed.
pub(crate) fn insert<'a>(
    db: &Db<'_>,
    workspace: &Workspace,
    operation: &Operation,
    roots: impl IntoIterator<Item = &'a String>,
) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO tasks_operations (workspace, seq, tool, state, at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            workspace,
            operation.seq,
            operation.tool,
            operation.state,
            operation.at
        ],
    )?;
    for root in roots {
        db.execute(
            "INSERT INTO tasks_operation_roots (workspace, root, state, seq) VALUES (?1, ?2, ?3, ?4)",
            params![workspace, root, operation.state, operation.seq],
        )?;
    }
    Ok(())
}

/// Adds a change to an operation.
pub(crate) fn insert_change(
    db: &Db<'_>,
    workspace: &Workspace,
    operation: i64,
    place: i64,
    change: &Change,
) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO tasks_changes (workspace, operation, place, kind, id, before, after) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            workspace,
            operation,
            place,
            change.kind,
            change.id,
            change.before,
            change.after
        ],
    )
    .map(drop)
}

/// Changes of an operation, in order.
pub(crate) fn changes(db: &Db<'_>, workspace: &Workspace, operation: i64) -> Result<Vec<Change>, DbError> {
    db.query_as(
        "SELECT kind, id, before, after FROM tasks_changes \
         WHERE workspace = ?1 AND operation = ?2 ORDER BY place",
        params![workspace, operation],
    )
}

/// The latest operation that can be undone, of a root or of the workspace.
pub(crate) fn to_undo(
    db: &Db<'_>,
    workspace: &Workspace,
    root: Option<&str>,
) -> Result<Option<Operation>, DbError> {
    match root {
        Some(root) => db.query_one(
            "SELECT o.seq, o.tool, o.state, o.at FROM tasks_operation_roots AS r \
             JOIN tasks_operations AS o ON o.workspace = r.workspace AND o.seq = r.seq \
             WHERE r.workspace = ?1 AND r.root = ?2 AND r.state = 'done' ORDER BY r.seq DESC LIMIT 1",
            params![workspace, root],
        ),
        None => db.query_one(
            "SELECT seq, tool, state, at FROM tasks_operations \
             WHERE workspace = ?1 AND state = 'done' ORDER BY seq DESC LIMIT 1",
            params![workspace],
        ),
    }
}

/// The operation that was undone last, of a root or of the workspace.
pub(crate) fn to_redo(
    db: &Db<'_>,
    workspace: &Workspace,
    root: Option<&str>,
) -> Result<Option<Operation>, DbError> {
    let mut params: Vec<Value> = vec![workspace.to_value()];
    let mut of_root = "";
    if let Some(root) = root {
        params.push(root.to_value());
        of_root = " AND EXISTS (SELECT 1 FROM tasks_operation_roots AS r \
             WHERE r.workspace = o.workspace AND r.root = ?2 AND r.seq = o.seq)";
    }
    db.query_one(
        &format!(
            "SELECT o.seq, o.tool, o.state, o.at FROM tasks_operations AS o \
             WHERE o.workspace = ?1 AND o.state = 'undone'{of_root} ORDER BY o.undone_at DESC LIMIT 1"
        ),
        &params,
    )
}

/// Operation that must be undone or redone first, with the root that both changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Before {
    pub seq: i64,
    pub root: String,
}

impl TryFrom<Row> for Before {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Before, DbError> {
        Ok(Before {
            seq: row.get(0)?,
            root: row.get(1)?,
        })
    }
}

/// The latest later operation that changed one of the same roots and is not undone.
pub(crate) fn later(db: &Db<'_>, workspace: &Workspace, seq: i64) -> Result<Option<Before>, DbError> {
    db.query_one(
        "SELECT later.seq, later.root FROM tasks_operation_roots AS own JOIN tasks_operation_roots AS later \
             ON later.workspace = own.workspace AND later.root = own.root AND later.state = 'done' \
                 AND later.seq > own.seq \
         WHERE own.workspace = ?1 AND own.seq = ?2 ORDER BY later.seq DESC, later.root LIMIT 1",
        params![workspace, seq],
    )
}

/// The first earlier operation that changed one of the same roots and is undone.
pub(crate) fn earlier(db: &Db<'_>, workspace: &Workspace, seq: i64) -> Result<Option<Before>, DbError> {
    db.query_one(
        "SELECT earlier.seq, earlier.root FROM tasks_operation_roots AS own \
         JOIN tasks_operation_roots AS earlier \
             ON earlier.workspace = own.workspace AND earlier.root = own.root AND earlier.state = 'undone' \
                 AND earlier.seq < own.seq \
         WHERE own.workspace = ?1 AND own.seq = ?2 ORDER BY earlier.seq, earlier.root LIMIT 1",
        params![workspace, seq],
    )
}

/// The roots that an operation changed.
pub(crate) fn roots(db: &Db<'_>, workspace: &Workspace, seq: i64) -> Result<Vec<String>, DbError> {
    db.query(
        "SELECT root FROM tasks_operation_roots WHERE workspace = ?1 AND seq = ?2 ORDER BY root",
        params![workspace, seq],
    )?
    .iter()
    .map(|row| row.get(0))
    .collect()
}

/// Marks an operation as undone or done again.
pub(crate) fn set_state(
    db: &Db<'_>,
    workspace: &Workspace,
    seq: i64,
    state: State,
    event: i64,
) -> Result<(), DbError> {
    db.execute(
        "UPDATE tasks_operations SET state = ?3, undone_at = ?4 WHERE workspace = ?1 AND seq = ?2",
        params![workspace, seq, state, event],
    )?;
    db.execute(
        "UPDATE tasks_operation_roots SET state = ?3 WHERE workspace = ?1 AND seq = ?2",
        params![workspace, seq, state],
    )
    .map(drop)
}

/// Makes all operations of a deleted root final.
pub(crate) fn seal(db: &Db<'_>, workspace: &Workspace, root: &str) -> Result<(), DbError> {
    for seq in of_state(db, workspace, root, State::Done, 0)? {
        set_state(db, workspace, seq, State::Final, 0)?;
    }
    Ok(())
}

/// Drops the undone operations of some roots after a new write, and later operations that built on them.
pub(crate) fn drop_undone<'a>(
    db: &Db<'_>,
    workspace: &Workspace,
    roots: impl IntoIterator<Item = &'a String>,
) -> Result<(), DbError> {
    let mut open: Vec<(String, i64)> = roots.into_iter().map(|root| (root.clone(), 0)).collect();
    while let Some((root, after)) = open.pop() {
        for seq in of_state(db, workspace, &root, State::Undone, after)? {
            set_state(db, workspace, seq, State::Dropped, 0)?;
            let shared = self::roots(db, workspace, seq)?;
            open.extend(shared.into_iter().map(|root| (root, seq)));
        }
    }
    Ok(())
}

/// The operations of a root in one state, after one of them.
fn of_state(
    db: &Db<'_>,
    workspace: &Workspace,
    root: &str,
    state: State,
    after: i64,
) -> Result<Vec<i64>, DbError> {
    db.query(
        "SELECT seq FROM tasks_operation_roots \
         WHERE workspace = ?1 AND root = ?2 AND state = ?3 AND seq > ?4 ORDER BY seq",
        params![workspace, root, state, after],
    )?
    .iter()
    .map(|row| row.get(0))
    .collect()
}

/// Latest operations, newest first.
pub(crate) fn latest(
    db: &Db<'_>,
    workspace: &Workspace,
    root: Option<&str>,
    limit: usize,
) -> Result<Vec<Operation>, DbError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    match root {
        Some(root) => db.query_as(
            "SELECT o.seq, o.tool, o.state, o.at FROM tasks_operation_roots AS r \
             JOIN tasks_operations AS o ON o.workspace = r.workspace AND o.seq = r.seq \
             WHERE r.workspace = ?1 AND r.root = ?2 ORDER BY r.seq DESC LIMIT ?3",
            params![workspace, root, limit],
        ),
        None => db.query_as(
            "SELECT seq, tool, state, at FROM tasks_operations WHERE workspace = ?1 ORDER BY seq DESC LIMIT ?2",
            params![workspace, limit],
        ),
    }
}
