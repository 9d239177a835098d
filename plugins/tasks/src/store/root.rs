//! Plans and tasks: their revisions, and what lists of them are filtered and counted by.

use tollgate_sdk::{Db, DbError, Row, Timestamp, ToValue, Value, params};

use super::list;
use crate::model::{RootKind, Status, Workspace};

/// What is known of a plan or task beside its record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Head {
    pub id: String,
    pub kind: RootKind,
    pub plan: Option<String>,
    pub number: i64,
    /// Nothing if it was deleted, or if its creation was undone.
    pub status: Option<Status>,
    pub revision: i64,
    pub touched_at: Timestamp,
}

const COLUMNS: &str = "id, kind, plan, number, status, revision, touched_at";

impl TryFrom<Row> for Head {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Head, DbError> {
        Ok(Head {
            id: row.get(0)?,
            kind: row.get(1)?,
            plan: row.get(2)?,
            number: row.get(3)?,
            status: row.get::<String>(4)?.parse().ok(),
            revision: row.get(5)?,
            touched_at: row.get(6)?,
        })
    }
}

/// A plan or task that was ever there.
pub(crate) fn head(db: &Db<'_>, workspace: &Workspace, id: &str) -> Result<Option<Head>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM tasks_roots WHERE workspace = ?1 AND id = ?2"),
        params![workspace, id],
    )
}

/// Sets a root's status, `None` being absent, and counts its revision on. Returns the new one.
pub(crate) fn advance(db: &Db<'_>, workspace: &Workspace, head: &Head) -> Result<i64, DbError> {
    let status = head.status.map_or("ABSENT", Status::as_str);
    db.query_row(
        "INSERT INTO tasks_roots (workspace, id, kind, plan, number, status, revision, touched_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7) \
         ON CONFLICT (workspace, id) DO UPDATE SET status = excluded.status, \
             revision = tasks_roots.revision + 1, touched_at = excluded.touched_at \
         RETURNING revision",
        params![
            workspace,
            head.id,
            head.kind,
            head.plan,
            head.number,
            status,
            head.touched_at
        ],
    )?
    .ok_or(DbError::Internal)?
    .get(0)
}

/// Which roots a list wants.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub kind: RootKind,
    pub plan: Option<&'a str>,
    pub statuses: &'a [Status],
    /// Only those with a higher number.
    pub after: i64,
    pub limit: usize,
}

/// Plans or tasks by number.
pub(crate) fn page(db: &Db<'_>, workspace: &Workspace, wanted: &Wanted<'_>) -> Result<Vec<Head>, DbError> {
    let mut params: Vec<Value> = vec![
        workspace.to_value(),
        wanted.kind.to_value(),
        wanted.after.to_value(),
    ];
    let statuses = list(&mut params, wanted.statuses.iter().map(ToValue::to_value));
    let mut sql = format!(
        "SELECT {COLUMNS} FROM tasks_roots \
         WHERE workspace = ?1 AND kind = ?2 AND number > ?3 AND status IN ({statuses})"
    );
    if let Some(plan) = wanted.plan {
        params.push(plan.to_value());
        sql.push_str(&format!(" AND plan = ?{}", params.len()));
    }
    params.push(i64::try_from(wanted.limit).unwrap_or(i64::MAX).to_value());
    sql.push_str(&format!(" ORDER BY number LIMIT ?{}", params.len()));
    db.query_as(&sql, &params)
}

/// How many tasks a plan has of a status, and how many of them nobody touched since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count {
    pub status: Option<Status>,
    pub count: usize,
    pub untouched: usize,
}

/// The tasks of a plan by status.
pub(crate) fn count_tasks(
    db: &Db<'_>,
    workspace: &Workspace,
    plan: &str,
    since: Timestamp,
) -> Result<Vec<Count>, DbError> {
    db.query(
        "SELECT status, count(*), sum(CASE WHEN touched_at < ?3 THEN 1 ELSE 0 END) FROM tasks_roots \
         WHERE workspace = ?1 AND plan = ?2 GROUP BY status ORDER BY status",
        params![workspace, plan, since],
    )?
    .iter()
    .map(|row| {
        Ok(Count {
            status: row.get::<String>(0)?.parse().ok(),
            count: row.get(1)?,
            untouched: row.get(2)?,
        })
    })
    .collect()
}

/// How many plans or tasks of a workspace are ACTIVE.
pub(crate) fn count(
    db: &Db<'_>,
    workspace: &Workspace,
    kind: RootKind,
    status: Status,
) -> Result<usize, DbError> {
    db.query_row(
        "SELECT count(*) FROM tasks_roots WHERE workspace = ?1 AND kind = ?2 AND status = ?3",
        params![workspace, kind, status],
    )?
    .ok_or(DbError::Internal)?
    .get(0)
}
