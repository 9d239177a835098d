//! Tasks: calls whose clients do not wait for the reply, and their outcomes. Every host of the data directory can
//! answer for each of them.

mod lost;
mod stored;

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tollgate_core::hash;
use tollgate_core::task::{TaskEvent, TaskState};
use tollgate_sdk::ApprovalStatus;

use self::stored::{COLUMNS, stored};
use super::approvals::{Answered, NewApproval};
use super::engine::{Once, borrowed, sql};
use super::error::{StoreResult, exactly_one};
use super::handles::Tasks;

pub use lost::MAX_RESUMED;
pub use stored::{NewTask, StoredTask, TaskCounts, TaskEnd, TaskFilter};

/// Bytes of one part of a reply, well below the longest value.
const PART_BYTES: usize = 400_000;
/// Size limit of a reply that is stored with a task, in bytes of JSON.
pub const MAX_REPLY: usize = 8 << 20;
/// Component name for requests for approval that are questions of tasks, with the task's id as key. No pack can have
/// this name.
pub const QUESTIONS_OF_TASKS: &str = "mcp/tasks";
/// Most expired tasks that are removed for each new one.
const EXPIRED_BATCH: u32 = 16;

impl Tasks<'_> {
    /// Stores a new task, unless its call is over. Returns whether it is stored. Requires a write transaction.
    pub fn insert(self, new: &NewTask) -> StoreResult<bool> {
        self.forget(new.now_ms, EXPIRED_BATCH)?;
        if new.asked.is_none() && self.0.operations().find(&new.op_id)?.is_some() {
            return Ok(false);
        }
        let state = match &new.asked {
            None => TaskState::Working,
            Some(_) => TaskState::InputRequired,
        };
        let sql = "INSERT INTO core_tasks (id, owner, tool, args_hash, envelope_id, op_id, state, created_at, updated_at,
                until_ms, poll_ms, host_id, asked, arguments)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?11, ?12, ?13)";
        self.0.engine.change_one(
            sql,
            sql![
                new.id,
                new.owner,
                new.tool,
                new.args_hash,
                new.envelope_id,
                new.op_id,
                state.as_str(),
                new.now_ms,
                new.now_ms.saturating_add(new.ttl_ms),
                new.poll_ms,
                new.host_id,
                new.asked.as_ref().map(Value::to_string),
                new.arguments,
            ],
        )?;
        Ok(true)
    }

    /// Task with an id, unless it is over and has expired.
    pub fn get(self, id: &str, now_ms: i64) -> StoreResult<Option<StoredTask>> {
        let found = self.0.engine.maybe(
            &format!("SELECT {COLUMNS} FROM core_tasks WHERE id = ?1"),
            sql![id],
            stored,
        )?;
        Ok(found.filter(|task| !task.is_forgotten(now_ms)))
    }

    /// Stored reply of a task.
    pub fn reply(self, id: &str) -> StoreResult<Option<String>> {
        let parts: Vec<String> = self.0.engine.all(
            "SELECT content FROM core_task_replies WHERE task_id = ?1 ORDER BY part",
            sql![id],
            |row| row.get(0),
        )?;
        Ok((!parts.is_empty()).then(|| parts.concat()))
    }

    /// Stores a task's progress. Does nothing if the task is over. Requires a write transaction.
    pub fn note(self, id: &str, note: &str, now_ms: i64) -> StoreResult<()> {
        let sql = "UPDATE core_tasks SET note = ?2, updated_at = ?3 WHERE id = ?1 AND state = 'working'";
        self.0.engine.run(sql, sql![id, note, now_ms]).map(drop)
    }

    /// Stores the current call of a task. Requires a write transaction.
    pub fn note_call(self, id: &str, op_id: &str) -> StoreResult<()> {
        self.0
            .engine
            .run(
                "UPDATE core_tasks SET op_id = ?2 WHERE id = ?1 AND state = 'working'",
                sql![id, op_id],
            )
            .map(drop)
    }

    /// Makes a task wait for answers. Returns whether it was working. Requires a write transaction.
    pub fn ask(self, id: &str, asked: &Value, now_ms: i64) -> StoreResult<bool> {
        self.transition(id, TaskEvent::Asked, now_ms, |task| {
            task.asked = Some(asked.clone());
            task.answers = Map::new();
            task.note = None;
        })
    }

    /// Records that a waiting task's question, for which there was no room before, is in the list of approvals.
    /// Returns whether the task still waits for it. Requires a write transaction.
    pub fn note_listed(self, id: &str, new: &NewApproval, now_ms: i64) -> StoreResult<bool> {
        let Some(mut task) = self.get(id, now_ms)? else {
            return Ok(false);
        };
        let is_same = task.state == TaskState::InputRequired && task.op_id == new.by.op_id;
        let is_free = !task.is_cancelled && task.answers.is_empty() && task.approvals().next().is_none();
        let Some(asked) = task.asked.as_mut().filter(|_| is_same && is_free) else {
            return Ok(false);
        };
        asked["approvals"] = json!([new.id]);
        self.write(&task, TaskState::InputRequired, now_ms)
    }

    /// Continues a waiting task. Returns whether it waited. Requires a write transaction.
    pub fn resume(self, id: &str, now_ms: i64) -> StoreResult<bool> {
        let mut waited = None;
        let moved = self.transition(id, TaskEvent::Answered, now_ms, |task| {
            waited = Some(task.clone());
            task.asked = None;
            task.answers = Map::new();
        })?;
        if let Some(task) = waited.filter(|_| moved) {
            self.withdraw_question(&task, now_ms)?;
        }
        Ok(moved)
    }

    /// Withdraws the question of a task that waits no longer from the list of approvals, if it is there. Requires a
    /// write transaction.
    fn withdraw_question(self, task: &StoredTask, now_ms: i64) -> StoreResult<()> {
        if task.approvals().next().is_none() {
            return Ok(());
        }
        let withdrawn = Answered {
            status: ApprovalStatus::Withdrawn,
            by: None,
            identity: task.owner.clone(),
            op_id: task.op_id.clone(),
            note: Some("the task is no longer waiting".to_owned()),
            at_ms: now_ms,
        };
        self.0
            .approvals()
            .settle(QUESTIONS_OF_TASKS, &task.id, &withdrawn)
            .map(drop)
    }

    /// Stores an answer that a task waits for. Returns whether it was requested and not answered before. Requires a
    /// write transaction.
    pub fn answer(self, id: &str, key: &str, answer: &Value, now_ms: i64) -> StoreResult<bool> {
        let Some(mut task) = self.get(id, now_ms)? else {
            return Ok(false);
        };
        if task.state != TaskState::InputRequired || !task.is_outstanding(key) {
            return Ok(false);
        }
        task.answers.insert(key.to_owned(), answer.clone());
        self.write(&task, TaskState::InputRequired, now_ms)
    }

    /// Ends a task with its reply. Returns whether it was still open. Requires a write transaction.
    pub fn end(self, id: &str, end: &TaskEnd, now_ms: i64) -> StoreResult<bool> {
        let mut waited = None;
        let moved = self.transition(id, end.event, now_ms, |task| {
            waited = Some(task.clone()).filter(|task| task.asked.is_some());
            task.asked = None;
            task.answers = Map::new();
            if let Some(op_id) = &end.op_id {
                task.op_id.clone_from(op_id);
            }
            task.note.clone_from(&end.note);
            task.error_code.clone_from(&end.error_code);
            task.reply_hash = Some(hash::sha256_hex(end.reply.as_bytes()));
            task.reply_bytes = i64::try_from(end.reply.len()).unwrap_or(i64::MAX);
        })?;
        if moved {
            self.keep_reply(id, &end.reply)?;
            if let Some(task) = waited {
                self.withdraw_question(&task, now_ms)?;
            }
        }
        Ok(moved)
    }

    /// Records a request to cancel a task. Returns whether it is still open. Requires a write transaction.
    pub fn want_cancelled(self, id: &str, now_ms: i64) -> StoreResult<bool> {
        let sql = "UPDATE core_tasks SET cancel = 1, updated_at = ?2
            WHERE id = ?1 AND state IN ('working', 'input_required')";
        let changed = self.0.engine.run(sql, sql![id, now_ms])?;
        Ok(changed == 1)
    }

    /// Records a request to cancel all tasks of an envelope that ended. Requires a write transaction.
    pub(super) fn want_all_cancelled(self, envelope: &str) -> StoreResult<()> {
        let sql = "UPDATE core_tasks SET cancel = 1
            WHERE state IN ('working', 'input_required') AND envelope_id = ?1";
        self.0.engine.run(sql, sql![envelope]).map(drop)
    }

    /// Open tasks of a host that must be cancelled or have all their answers.
    pub fn to_wake(self, host_id: &str) -> StoreResult<Vec<StoredTask>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM core_tasks WHERE state IN ('working', 'input_required') AND host_id = ?1
            AND (cancel = 1 OR answers IS NOT NULL) ORDER BY created_at, id"
        );
        let found: Vec<StoredTask> = self.0.engine.all(&sql, sql![host_id], stored)?;
        Ok(found
            .into_iter()
            .filter(|task| task.is_cancelled || task.has_all_answers())
            .collect())
    }

    /// Tasks that match a filter, newest first.
    pub fn list(self, filter: &TaskFilter, limit: u32) -> StoreResult<Vec<StoredTask>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM core_tasks WHERE (CAST(?1 AS TEXT) IS NULL OR state = ?1) AND (CAST(?2 AS TEXT) IS NULL OR owner = ?2)
               AND (CAST(?3 AS TEXT) IS NULL OR envelope_id = ?3)
               AND (until_ms > ?4 OR state IN ('working', 'input_required'))
             ORDER BY created_at DESC, id LIMIT {limit}"
        );
        let state = filter.state.map(TaskState::as_str);
        let values = sql![state, filter.owner, filter.envelope, filter.now_ms];
        self.0.engine.all(&sql, values, stored)
    }

    /// Ids of the tasks whose latest calls are among the given operations, by operation.
    pub fn of_operations<'a>(
        self,
        op_ids: impl Iterator<Item = &'a str>,
    ) -> StoreResult<HashMap<String, String>> {
        let mut task = self
            .0
            .engine
            .prepare("SELECT id FROM core_tasks WHERE op_id = ?1")?;
        let mut found = HashMap::new();
        for op_id in op_ids {
            let id: Option<String> = task.maybe(sql![op_id], |row| row.get(0))?;
            found.extend(id.map(|id| (op_id.to_owned(), id)));
        }
        Ok(found)
    }

    /// Numbers of an owner's tasks.
    pub fn count(self, owner: Option<&str>) -> StoreResult<TaskCounts> {
        let sql = "SELECT coalesce(sum(CASE WHEN state IN ('working', 'input_required') THEN 1 ELSE 0 END), 0), count(*), coalesce(sum(reply_bytes), 0)
            FROM core_tasks WHERE owner IS NOT DISTINCT FROM ?1";
        self.0.engine.one(sql, sql![owner], |row| {
            Ok(TaskCounts {
                open: row.get(0)?,
                all: row.get(1)?,
                bytes: row.get(2)?,
            })
        })
    }

    /// Removes tasks that are over and have expired. Requires a write transaction.
    pub fn forget(self, now_ms: i64, limit: u32) -> StoreResult<usize> {
        let sql =
            "SELECT id FROM core_tasks WHERE state NOT IN ('working', 'input_required') AND until_ms <= ?1
            ORDER BY until_ms LIMIT ?2";
        let ids: Vec<String> = self.0.engine.all(sql, sql![now_ms, limit], |row| row.get(0))?;
        for batch in ids.chunks(50) {
            let places = vec!["?"; batch.len()].join(", ");
            for (table, column) in [("core_task_replies", "task_id"), ("core_tasks", "id")] {
                let sql = format!("DELETE FROM {table} WHERE {column} IN ({places})");
                self.0.engine.run(Once(&sql), &borrowed(batch))?;
            }
        }
        Ok(ids.len())
    }

    /// Applies an event to a task, if its state allows it, with further changes.
    fn transition(
        self,
        id: &str,
        event: TaskEvent,
        now_ms: i64,
        change: impl FnOnce(&mut StoredTask),
    ) -> StoreResult<bool> {
        let found = self.0.engine.maybe(
            &format!("SELECT {COLUMNS} FROM core_tasks WHERE id = ?1"),
            sql![id],
            stored,
        )?;
        let Some(mut task) = found else { return Ok(false) };
        let seen = task.state;
        let Some(next) = seen.on(event) else {
            return Ok(false);
        };
        task.state = next;
        change(&mut task);
        self.write(&task, seen, now_ms)
    }

    /// Writes a task, if it is still in the state in which it was read. Returns whether it was.
    fn write(self, task: &StoredTask, seen: TaskState, now_ms: i64) -> StoreResult<bool> {
        let answers = (!task.answers.is_empty()).then(|| Value::Object(task.answers.clone()).to_string());
        let sql = "UPDATE core_tasks SET state = ?3, note = ?4, updated_at = ?5, asked = ?6, answers = ?7,
                error_code = ?8, reply_hash = ?9, reply_bytes = ?10, op_id = ?11,
                arguments = CASE WHEN ?3 IN ('working', 'input_required') THEN arguments END
            WHERE id = ?1 AND state = ?2";
        let changed = self.0.engine.run(
            sql,
            sql![
                task.id,
                seen.as_str(),
                task.state.as_str(),
                task.note,
                now_ms.max(task.updated_ms),
                task.asked.as_ref().map(Value::to_string),
                answers,
                task.error_code,
                task.reply_hash,
                task.reply_bytes,
                task.op_id,
            ],
        )?;
        Ok(changed == 1)
    }

    fn keep_reply(self, id: &str, reply: &str) -> StoreResult<()> {
        let sql = "INSERT INTO core_task_replies (task_id, part, content) VALUES (?1, ?2, ?3)";
        let mut insert = self.0.engine.prepare(sql)?;
        let mut rest = reply;
        let mut part = 0_i64;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
            insert.run(sql![id, part, now]).and_then(exactly_one)?;
            (rest, part) = (later, part + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
