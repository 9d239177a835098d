//! Tasks that wait for somebody: to start an attempt, or to go on after an approval.

use tollgate_sdk::{Db, DbError, Timestamp};

use super::Where;
use super::standing::{self, Standing};
use crate::retry::Policy;

/// Selection of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Tasks in `execution_ready` whose next attempt may start.
    Ready,
    /// Tasks in `execution_ready` whose next attempt must wait.
    Waiting,
    /// Tasks whose approvals have been answered.
    Answered,
}

/// Filter of the queue, with the facts that decide whether an attempt may start.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub policy: &'a Policy,
    pub now: Timestamp,
    pub workspace: Option<&'a String>,
}

/// The condition of tasks with approvals of the current attempt, all of them answered, in phases that wait for it.
fn answered() -> String {
    let approval = standing::gating();
    format!(
        "t.phase IN ('awaiting_approval', 'ready_to_resume') \
         AND EXISTS (SELECT 1 FROM task_store_approvals p WHERE {approval}) \
         AND NOT EXISTS (SELECT 1 FROM task_store_approvals p WHERE {approval} AND p.status = 'pending')"
    )
}

/// Up to `limit` tasks after the cursor, oldest first.
pub(crate) fn list(
    db: &Db<'_>,
    wanted: &Wanted<'_>,
    queue: Queue,
    after: Option<&String>,
    limit: u32,
) -> Result<Vec<Standing>, DbError> {
    let mut tasks = match queue {
        Queue::Ready | Queue::Waiting => Where::new("t.phase = 'execution_ready'"),
        Queue::Answered => Where::new(&answered()),
    };
    let startable = match queue {
        Queue::Ready => startable(&mut tasks, wanted),
        Queue::Waiting => format!("NOT ({})", startable(&mut tasks, wanted)),
        Queue::Answered => "1 = 1".to_owned(),
    };
    tasks.and_if("t.workspace =", wanted.workspace);
    tasks.and_if("t.id >", after);
    let limit = tasks.param(&limit);
    db.query_as(
        &format!(
            "SELECT {} FROM task_store_tasks t WHERE {} AND {startable} ORDER BY t.id LIMIT {limit}",
            standing::columns(),
            tasks.sql
        ),
        &tasks.params,
    )
}

/// The condition that no reason of [`start_blockers`](crate::tools::start_blockers) holds an attempt back, in SQL.
fn startable(tasks: &mut Where, wanted: &Wanted<'_>) -> String {
    let attempts = tasks.param(&wanted.policy.max_attempts.get());
    let now = tasks.param(&wanted.now);
    format!(
        "NOT EXISTS (SELECT 1 FROM task_store_attempts a WHERE a.task_id = t.id AND a.status = 'running') \
         AND t.attempt_count - t.retry_base < {attempts} AND coalesce(t.next_retry_at, '') <= {now} \
         AND t.acceptance_json <> '[]' AND coalesce({}, '') = 'approved'",
        standing::spec_verdict()
    )
}
