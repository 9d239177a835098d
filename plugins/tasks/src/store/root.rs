//! Index of plans and tasks: revisions and the columns that lists filter and count by.

use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use super::rows;
use crate::model::{Priority, RootKind, Status, Workspace};

/// Index entry of a plan or task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Head {
    pub id: String,
    pub kind: RootKind,
    pub plan: Option<String>,
    pub number: i64,
    /// Status, `None` if the plan or task was deleted or its creation undone.
    pub status: Option<Status>,
    pub revision: i64,
    pub touched_at: Timestamp,
    pub title: String,
    pub priority: Priority,
}

const COLUMNS: &str = "id, kind, plan, number, status, revision, touched_at, title, priority";

from_row! {
    Head {
        id,
        kind,
        plan,
        number,
        status = |status: String| status.parse().ok(),
        revision,
        touched_at,
        title,
        priority = Priority::of_rank,
    }
}

/// Index entry of a plan or task, deleted ones included.
pub(crate) fn head(db: &Db<'_>, workspace: &Workspace, id: &str) -> Result<Option<Head>, DbError> {
    db.query_one(
        &format!("SELECT {COLUMNS} FROM tasks_roots WHERE workspace = ?1 AND id = ?2"),
        params![workspace, id],
    )
}

/// Sets a root's status (`None` for deleted) and advances its revision. Returns the new revision.
pub(crate) fn advance(db: &Db<'_>, workspace: &Workspace, head: &Head) -> Result<i64, DbError> {
    let status = head.status.map_or("ABSENT", Status::as_str);
    db.query_row(
        "INSERT INTO tasks_roots (workspace, id, kind, plan, number, status, revision, touched_at, title, priority) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7, ?8, ?9) \
         ON CONFLICT (workspace, id) DO UPDATE SET status = excluded.status, \
             revision = tasks_roots.revision + 1, touched_at = excluded.touched_at, title = excluded.title, \
             priority = excluded.priority \
         RETURNING revision",
        params![
            workspace,
            head.id,
            head.kind,
            head.plan,
            head.number,
            status,
            head.touched_at,
            head.title,
            head.priority.rank()
        ],
    )?
    .ok_or(DbError::Internal)?
    .get(0)
}

/// Filter of a list of roots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub kind: RootKind,
    pub plan: Option<&'a str>,
    pub statuses: &'a [Status],
    /// Lower bound of the number, exclusive.
    pub after: i64,
    pub limit: usize,
}

/// Plans or tasks by number. Each status is an index range, so rows with other statuses are not read.
pub(crate) fn page(db: &Db<'_>, workspace: &Workspace, wanted: &Wanted<'_>) -> Result<Vec<Head>, DbError> {
    let mut heads = Vec::new();
    for status in wanted.statuses {
        heads.extend(with_status(db, workspace, wanted, *status)?);
    }
    heads.sort_by_key(|head| head.number);
    heads.truncate(wanted.limit);
    Ok(heads)
}

fn with_status(
    db: &Db<'_>,
    workspace: &Workspace,
    wanted: &Wanted<'_>,
    status: Status,
) -> Result<Vec<Head>, DbError> {
    let limit = rows(wanted.limit);
    match wanted.plan.filter(|_| wanted.kind == RootKind::Task) {
        Some(plan) => db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM tasks_roots WHERE workspace = ?1 AND plan = ?2 AND status = ?3 \
                 AND number > ?4 ORDER BY number LIMIT ?5"
            ),
            params![workspace, plan, status, wanted.after, limit],
        ),
        None => db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM tasks_roots WHERE workspace = ?1 AND kind = ?2 AND status = ?3 \
                 AND number > ?4 ORDER BY number LIMIT ?5"
            ),
            params![workspace, wanted.kind, status, wanted.after, limit],
        ),
    }
}

/// Number of a plan's tasks by status (`None` for deleted).
pub(crate) fn count_tasks(
    db: &Db<'_>,
    workspace: &Workspace,
    plan: &str,
) -> Result<Vec<(Option<Status>, usize)>, DbError> {
    db.query(
        "SELECT status, count(*) FROM tasks_roots WHERE workspace = ?1 AND plan = ?2 GROUP BY status ORDER BY status",
        params![workspace, plan],
    )?
    .iter()
    .map(|row| Ok((row.get::<String>(0)?.parse().ok(), row.get(1)?)))
    .collect()
}

/// Number of a plan's unfinished tasks without a change since a time.
pub(crate) fn count_stale(
    db: &Db<'_>,
    workspace: &Workspace,
    plan: &str,
    since: Timestamp,
) -> Result<usize, DbError> {
    db.query_row(
        "SELECT count(*) FROM tasks_roots \
         WHERE workspace = ?1 AND plan = ?2 AND status IN ('TODO', 'ACTIVE') AND touched_at < ?3",
        params![workspace, plan, since],
    )?
    .ok_or(DbError::Internal)?
    .get(0)
}

/// Number of a workspace's plans or tasks with a status.
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

/// Place in the order of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rank {
    pub status: Status,
    pub priority: Priority,
    /// Lower bound of the number, exclusive.
    pub after: i64,
}

/// Tasks of one rank by number, of a plan or of the workspace.
pub(crate) fn ranked(
    db: &Db<'_>,
    workspace: &Workspace,
    plan: Option<&str>,
    rank: Rank,
    limit: usize,
) -> Result<Vec<Head>, DbError> {
    let limit = rows(limit);
    let (status, priority, after) = (rank.status, rank.priority.rank(), rank.after);
    match plan {
        Some(plan) => db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM tasks_roots WHERE workspace = ?1 AND plan = ?2 AND status = ?3 \
                 AND priority = ?4 AND number > ?5 ORDER BY number LIMIT ?6"
            ),
            params![workspace, plan, status, priority, after, limit],
        ),
        None => db.query_as(
            &format!(
                "SELECT {COLUMNS} FROM tasks_roots WHERE workspace = ?1 AND kind = 'task' AND status = ?2 \
                 AND priority = ?3 AND number > ?4 ORDER BY number LIMIT ?5"
            ),
            params![workspace, status, priority, after, limit],
        ),
    }
}

/// Started plans all of whose tasks are finished, by rank. A plan without tasks is not among them.
pub(crate) fn completable(db: &Db<'_>, workspace: &Workspace, limit: usize) -> Result<Vec<Head>, DbError> {
    db.query_as(
        &format!(
            "SELECT {COLUMNS} FROM tasks_roots AS plan WHERE plan.workspace = ?1 AND plan.kind = 'plan' \
             AND plan.status IN ('TODO', 'ACTIVE') \
             AND EXISTS (SELECT 1 FROM tasks_roots AS task WHERE task.workspace = plan.workspace \
                 AND task.plan = plan.id AND task.status IN ('DONE', 'CANCELED')) \
             AND NOT EXISTS (SELECT 1 FROM tasks_roots AS task WHERE task.workspace = plan.workspace \
                 AND task.plan = plan.id AND task.status IN ('TODO', 'ACTIVE', 'PARKED')) \
             ORDER BY plan.priority DESC, plan.number LIMIT ?2"
        ),
        params![workspace, rows(limit)],
    )
}

/// Unfinished tasks of a plan, parked ones included.
pub(crate) fn count_open(db: &Db<'_>, workspace: &Workspace, plan: &str) -> Result<usize, DbError> {
    db.query_row(
        "SELECT count(*) FROM tasks_roots \
         WHERE workspace = ?1 AND plan = ?2 AND status IN ('TODO', 'ACTIVE', 'PARKED')",
        params![workspace, plan],
    )?
    .ok_or(DbError::Internal)?
    .get(0)
}
