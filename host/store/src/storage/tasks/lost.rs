//! Tasks of dead hosts: each becomes failed, with what the ledger knows about its call.

use serde_json::json;
use tollgate_core::task::TaskEvent;
use tollgate_sdk::ToolError;

use super::super::engine::sql;
use super::super::error::StoreResult;
use super::super::handles::Tasks;
use super::COLUMNS;
use super::stored::{StoredTask, TaskEnd, stored};

/// Reason for the end of tasks whose host is gone.
const HOST_GONE: &str = "HOST_GONE";
/// Most times that a task is taken over. A call that crashes its host will do so again.
pub const MAX_RESUMED: u32 = 3;
/// Note of a task that was taken over.
const TAKEN_UP: &str = "its host ended; another host is repeating the call";

/// Knowledge of the ledger about a task's call.
enum Known {
    /// The call left no row, so nothing ran.
    Nothing,
    /// The call was admitted, and its end is unknown.
    Interrupted,
    /// The call succeeded.
    Done,
    /// The call was refused or failed, with a code.
    Refused(String),
}

impl Tasks<'_> {
    /// Hosts of open tasks.
    pub fn hosts(self) -> StoreResult<Vec<String>> {
        let sql = "SELECT DISTINCT host_id FROM core_tasks WHERE state IN ('working', 'input_required')";
        self.0.engine.all(sql, &[], |row| row.get(0))
    }

    /// Ends the open tasks of a host that is dead or stops, after its intents. Returns their number. Tasks that
    /// another host may take over stay open until they expire. Requires a write transaction.
    pub fn give_up_all(self, host_id: &str, why: &str, now_ms: i64) -> StoreResult<usize> {
        let sql = format!(
            "SELECT {COLUMNS} FROM core_tasks WHERE state IN ('working', 'input_required') AND host_id = ?1
            ORDER BY created_at, id"
        );
        let open: Vec<StoredTask> = self.0.engine.all(&sql, sql![host_id], stored)?;
        let mut ended = 0;
        for task in &open {
            let known = self.known(task)?;
            if why == HOST_GONE && now_ms < task.until_ms && may_be_taken_up(task, &known) {
                continue;
            }
            self.end(&task.id, &end(task, &known, why), now_ms)?;
            ended += 1;
        }
        Ok(ended)
    }

    /// Ends an open task of a dead host that no host can take over. Returns whether it was open. Requires a write
    /// transaction.
    pub fn give_up(self, seen: &StoredTask, now_ms: i64) -> StoreResult<bool> {
        match self.get(&seen.id, now_ms)? {
            Some(task) if task.host_id == seen.host_id => {
                let end = end(&task, &self.known(&task)?, HOST_GONE);
                self.end(&task.id, &end, now_ms)
            }
            _ => Ok(false),
        }
    }

    /// Assigns an open task of a dead host to another host, which repeats its call. Returns false if another host was
    /// faster or the call may not be repeated. Requires a write transaction.
    pub fn take_up(self, seen: &StoredTask, host_id: &str, now_ms: i64) -> StoreResult<bool> {
        let Some(task) = self.get(&seen.id, now_ms)? else {
            return Ok(false);
        };
        let is_free = task.host_id == seen.host_id && !task.state.is_over();
        if !is_free || self.has_intent(&task.op_id)? || !may_be_taken_up(&task, &self.known(&task)?) {
            return Ok(false);
        }
        self.withdraw_question(&task, now_ms)?;
        let sql =
            "UPDATE core_tasks SET host_id = ?2, state = 'working', resumed = resumed + 1, asked = NULL,
                answers = NULL, note = ?3, updated_at = CASE WHEN updated_at > ?4 THEN updated_at ELSE ?4 END
            WHERE id = ?1";
        let changed = self.0.engine.run(sql, sql![task.id, host_id, TAKEN_UP, now_ms])?;
        Ok(changed == 1)
    }

    fn has_intent(self, op_id: &str) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM core_intents WHERE op_id = ?1";
        self.0.engine.exists(sql, sql![op_id])
    }

    fn known(self, task: &StoredTask) -> StoreResult<Known> {
        let sql = "SELECT success, error_code FROM core_operations WHERE op_id = ?1";
        let known = self.0.engine.maybe(sql, sql![task.op_id], |row| {
            Ok(match row.get(0)? {
                None => Known::Interrupted,
                Some(true) => Known::Done,
                Some(false) => Known::Refused(row.get::<Option<String>>(1)?.unwrap_or_default()),
            })
        })?;
        Ok(known.unwrap_or(Known::Nothing))
    }
}

/// True if the call of a task may be repeated: it is stored, and did not end.
fn may_be_taken_up(task: &StoredTask, known: &Known) -> bool {
    let is_open = match known {
        Known::Nothing | Known::Interrupted => true,
        Known::Refused(_) => task.asked.is_some(),
        Known::Done => false,
    };
    is_open && task.arguments.is_some() && !task.is_cancelled && task.resumed < MAX_RESUMED
}

fn end(task: &StoredTask, known: &Known, why: &str) -> TaskEnd {
    let error = failure(task.asked.is_some(), known, why).context("op_id", task.op_id.as_str());
    TaskEnd {
        event: TaskEvent::Broke,
        op_id: None,
        note: Some(error.message.clone()),
        error_code: Some(error.code.clone()),
        reply: json!({"op_id": task.op_id, "envelope_id": task.envelope_id, "error": error}).to_string(),
    }
}

fn failure(waited: bool, known: &Known, why: &str) -> ToolError {
    let gone = match why {
        "HOST_STOPPED" => "its host was stopped",
        _ => "its host ended",
    };
    match known {
        Known::Interrupted => ToolError::new(
            "OUTCOME_UNKNOWN",
            format!("{gone}; the call had started, and its progress is unknown"),
        )
        .remediation("Check what the call was meant to change, then call again if it is still wanted."),
        Known::Done => ToolError::new(
            "RESULT_LOST",
            format!("{gone}; the call succeeded, but its reply was not saved"),
        )
        .remediation("Do not repeat the call. Read what it changed."),
        Known::Nothing => ToolError::new(
            why,
            format!("{gone}; the call did not start, the ledger has no row for it, and nothing was changed"),
        )
        .remediation("Call again."),
        Known::Refused(_) if waited => ToolError::new(
            why,
            format!("{gone}; the call waited for an answer, and nothing was changed"),
        )
        .remediation("Call again; an approval that was already given still counts."),
        Known::Refused(code) => ToolError::new(
            why,
            format!("{gone}; the ledger records that the call failed with {code}"),
        )
        .remediation("Read the operation in the ledger, then call again if it is still wanted."),
    }
}
