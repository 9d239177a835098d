//! The journal: operations in order, with their changes.

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, ToValue, Value, params, text_enum};

use super::{Kind, rows};
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
    /// State of the operation: done, undone, dropped (cannot be redone) or final (cannot be undone).
    pub state: State,
    /// Time of creation.
    pub at: Timestamp,
    /// Name of the caller, as given in `actor` or proven by the transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Changes of the operation in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// First operation of the batch that the operation is part of. A batch is undone as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<i64>,
}

const COLUMNS: &str = "o.seq, o.tool, o.state, o.at, o.actor, o.summary, o.batch";

from_row! {
    Operation { seq, tool, state, at, actor, summary, batch }
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

from_row! {
    Change { kind, id, before, after }
}

/// Adds an operation with the roots that it changed.
pub(crate) fn insert<'a>(
    db: &Db<'_>,
    workspace: &Workspace,
    operation: &Operation,
    roots: impl IntoIterator<Item = &'a String>,
) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO tasks_operations (workspace, seq, tool, state, at, actor, summary) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            workspace,
            operation.seq,
            operation.tool,
            operation.state,
            operation.at,
            operation.actor,
            operation.summary
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

/// Operations to choose from for undo and redo.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OperationFilter<'a> {
    /// Only operations that changed this plan or task.
    pub root: Option<&'a str>,
    /// Only operations of this caller.
    pub actor: Option<&'a str>,
}

/// The latest operation that can be undone.
pub(crate) fn to_undo(
    db: &Db<'_>,
    workspace: &Workspace,
    filter: &OperationFilter<'_>,
) -> Result<Option<Operation>, DbError> {
    choose(db, workspace, filter, State::Done, "o.seq DESC")
}

/// The operation that was undone last. Of a batch, this is its first operation.
pub(crate) fn to_redo(
    db: &Db<'_>,
    workspace: &Workspace,
    filter: &OperationFilter<'_>,
) -> Result<Option<Operation>, DbError> {
    choose(db, workspace, filter, State::Undone, "o.undone_at DESC, o.seq")
}

fn choose(
    db: &Db<'_>,
    workspace: &Workspace,
    filter: &OperationFilter<'_>,
    state: State,
    order: &str,
) -> Result<Option<Operation>, DbError> {
    let mut params: Vec<Value> = vec![workspace.to_value(), state.to_value()];
    let mut sql = format!("SELECT {COLUMNS} FROM ");
    match filter.root {
        // The index of roots leads to the latest operation of a root at once.
        Some(root) => {
            params.push(root.to_value());
            sql.push_str(
                "tasks_operation_roots AS r \
                 JOIN tasks_operations AS o ON o.workspace = r.workspace AND o.seq = r.seq \
                 WHERE r.workspace = ?1 AND r.state = ?2 AND r.root = ?3",
            );
        }
        None => sql.push_str("tasks_operations AS o WHERE o.workspace = ?1 AND o.state = ?2"),
    }
    if let Some(actor) = filter.actor {
        params.push(actor.to_value());
        sql.push_str(&format!(" AND o.actor = ?{}", params.len()));
    }
    sql.push_str(&format!(" ORDER BY {order} LIMIT 1"));
    db.query_one(&sql, &params)
}

/// An operation by its sequence number.
pub(crate) fn get(db: &Db<'_>, workspace: &Workspace, seq: i64) -> Result<Option<Operation>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM tasks_operations AS o WHERE o.workspace = ?1 AND o.seq = ?2"),
        params![workspace, seq],
    )
}

/// An operation and the others of its batch that are in the same state, in order. They are undone and redone
/// together.
pub(crate) fn unit(
    db: &Db<'_>,
    workspace: &Workspace,
    operation: Operation,
) -> Result<Vec<Operation>, DbError> {
    let Some(batch) = operation.batch else {
        return Ok(vec![operation]);
    };
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM tasks_operations AS o \
             WHERE o.workspace = ?1 AND o.batch = ?2 AND o.state = ?3 ORDER BY o.seq"
        ),
        params![workspace, batch, operation.state],
    )
}

/// Joins the operations after one into a batch.
pub(crate) fn join(db: &Db<'_>, workspace: &Workspace, after: i64) -> Result<(), DbError> {
    db.execute(
        "UPDATE tasks_operations SET batch = ?2 + 1 WHERE workspace = ?1 AND seq > ?2",
        params![workspace, after],
    )
    .map(drop)
}

/// The latest operation in a state that made a record.
pub(crate) fn maker(
    db: &Db<'_>,
    workspace: &Workspace,
    id: &str,
    state: State,
) -> Result<Option<i64>, DbError> {
    // The kinds are listed, so that the index by record is used.
    db.query_row(
        "SELECT max(o.seq) FROM tasks_changes AS c \
         JOIN tasks_operations AS o ON o.workspace = c.workspace AND o.seq = c.operation \
         WHERE c.workspace = ?1 AND c.kind IN ('plan', 'task', 'step', 'node', 'evidence', 'note', 'lease') \
             AND c.id = ?2 AND c.before IS NULL AND o.state = ?3",
        params![workspace, id, state],
    )?
    .map_or(Ok(None), |row| row.get(0))
}

/// The latest operation that changed a record and is not undone.
pub(crate) fn latest_of(
    db: &Db<'_>,
    workspace: &Workspace,
    kind: Kind,
    id: &str,
) -> Result<Option<Operation>, DbError> {
    db.query_one(
        &format!(
            "SELECT {COLUMNS} FROM tasks_changes AS c \
             JOIN tasks_operations AS o ON o.workspace = c.workspace AND o.seq = c.operation \
             WHERE c.workspace = ?1 AND c.kind = ?2 AND c.id = ?3 AND o.state = 'done' ORDER BY o.seq DESC LIMIT 1"
        ),
        params![workspace, kind, id],
    )
}

/// Operation that must be undone or redone first, with the root that both changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Before {
    pub seq: i64,
    pub root: String,
}

from_row! {
    Before { seq, root }
}

/// The latest operation beyond `after` that changed one of the roots of `seq` and is not undone.
pub(crate) fn later(
    db: &Db<'_>,
    workspace: &Workspace,
    seq: i64,
    after: i64,
) -> Result<Option<Before>, DbError> {
    db.query_one(
        "SELECT later.seq, later.root FROM tasks_operation_roots AS own JOIN tasks_operation_roots AS later \
             ON later.workspace = own.workspace AND later.root = own.root AND later.state = 'done' \
                 AND later.seq > ?3 \
         WHERE own.workspace = ?1 AND own.seq = ?2 ORDER BY later.seq DESC, later.root LIMIT 1",
        params![workspace, seq, after],
    )
}

/// The first operation below `before` that changed one of the roots of `seq` and is undone.
pub(crate) fn earlier(
    db: &Db<'_>,
    workspace: &Workspace,
    seq: i64,
    before: i64,
) -> Result<Option<Before>, DbError> {
    db.query_one(
        "SELECT earlier.seq, earlier.root FROM tasks_operation_roots AS own \
         JOIN tasks_operation_roots AS earlier \
             ON earlier.workspace = own.workspace AND earlier.root = own.root AND earlier.state = 'undone' \
                 AND earlier.seq < ?3 \
         WHERE own.workspace = ?1 AND own.seq = ?2 ORDER BY earlier.seq, earlier.root LIMIT 1",
        params![workspace, seq, before],
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

/// Makes all operations of a deleted root final, with the batches that they are part of.
pub(crate) fn seal(db: &Db<'_>, workspace: &Workspace, root: &str) -> Result<(), DbError> {
    for seq in of_state(db, workspace, root, State::Done, 0)? {
        for operation in whole(db, workspace, seq)? {
            set_state(db, workspace, operation.seq, State::Final, 0)?;
        }
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
            let unit = whole(db, workspace, seq)?;
            let first = unit.first().map_or(seq, |operation| operation.seq);
            for operation in unit {
                set_state(db, workspace, operation.seq, State::Dropped, 0)?;
                let shared = self::roots(db, workspace, operation.seq)?;
                open.extend(shared.into_iter().map(|root| (root, first)));
            }
        }
    }
    Ok(())
}

/// An operation with the rest of its batch.
fn whole(db: &Db<'_>, workspace: &Workspace, seq: i64) -> Result<Vec<Operation>, DbError> {
    match get(db, workspace, seq)? {
        Some(operation) => unit(db, workspace, operation),
        None => Ok(Vec::new()),
    }
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
    let limit = rows(limit);
    match root {
        Some(root) => db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM tasks_operation_roots AS r \
                 JOIN tasks_operations AS o ON o.workspace = r.workspace AND o.seq = r.seq \
                 WHERE r.workspace = ?1 AND r.root = ?2 ORDER BY r.seq DESC LIMIT ?3"
            ),
            params![workspace, root, limit],
        ),
        None => db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM tasks_operations AS o \
                 WHERE o.workspace = ?1 ORDER BY o.seq DESC LIMIT ?2"
            ),
            params![workspace, limit],
        ),
    }
}
