//! Tasks in `execution_ready`: startable and waiting ones.

use tollgate_sdk::{Db, DbError, Row, Timestamp};

use super::Where;
use super::task::{HEAD, HEAD_COLUMNS, TaskHead};
use crate::model::AttemptId;
use crate::retry::Policy;

/// Selection of tasks in `execution_ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Tasks whose next attempt may start.
    Ready,
    /// Tasks whose next attempt must wait.
    Waiting,
}

/// A task in `execution_ready` with its running attempt.
#[derive(Debug)]
pub(crate) struct Queued {
    pub task: TaskHead,
    pub running: Option<AttemptId>,
}

impl TryFrom<Row> for Queued {
    type Error = DbError;

    fn try_from(row: Row) -> Result<Queued, DbError> {
        Ok(Queued {
            task: TaskHead::read(&row)?,
            running: row.get(HEAD_COLUMNS)?,
        })
    }
}

/// Filter of the queue, with the facts that decide whether an attempt may start.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub policy: &'a Policy,
    pub now: Timestamp,
    pub workspace: Option<&'a String>,
}

/// Up to `limit` tasks in `execution_ready` after the cursor, oldest first. The condition expresses
/// [`holds`](crate::retry::holds) in SQL.
pub(crate) fn list(
    db: &Db<'_>,
    wanted: &Wanted<'_>,
    queue: Queue,
    after: Option<&String>,
    limit: u32,
) -> Result<Vec<Queued>, DbError> {
    let mut tasks = Where::new("t.phase = 'execution_ready'");
    let startable = format!(
        "a.id IS NULL AND t.attempt_count - t.retry_base < {} AND coalesce(t.next_retry_at, '') <= {}",
        tasks.param(&wanted.policy.max_attempts.get()),
        tasks.param(&wanted.now),
    );
    tasks.and_if("t.workspace =", wanted.workspace);
    tasks.and_if("t.id >", after);
    let not = match queue {
        Queue::Ready => "",
        Queue::Waiting => "NOT",
    };
    let limit = tasks.param(&limit);
    db.query_as(
        &format!(
            "SELECT {HEAD}, a.id FROM task_store_tasks t \
             LEFT JOIN task_store_attempts a ON a.task_id = t.id AND a.status = 'running' \
             WHERE {} AND {not} ({startable}) ORDER BY t.id LIMIT {limit}",
            tasks.sql
        ),
        &tasks.params,
    )
}
