//! Resumption of tasks whose hosts are gone, by the host that their owner polls.
//!
//! Only calls of idempotent tools are repeated, and only if the operator enabled it. The owner has just
//! authenticated, so the repeated call has the caller's current rights. The call is admitted, judged and counted like
//! any other.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tollgate_components::catalog::Body;
use tollgate_core::deadline::Cancel;
use tollgate_sdk::ToolError;
use tollgate_store::storage::StoredTask;

use super::attend::Again;
use super::attending::{Attending, MAX_ROUNDS};
use super::waiting::CanAnswer;
use super::{TaskReply, dispatch};
use crate::Gate;
use crate::call::Caller;
use crate::task_slot::TaskSlot;

/// Size limit of a stored call, in bytes of JSON.
const MAX_CALL: usize = 256 << 10;

impl Gate {
    /// Task with an id, like [`task`](Gate::task). A task whose host is gone is first taken over for its owner, if
    /// its call may be repeated.
    pub async fn task_for(
        self: &Arc<Gate>,
        id: &str,
        caller: &Caller,
        can: CanAnswer,
    ) -> Result<TaskReply, ToolError> {
        let seen = self.task(id, caller.identity.as_ref()).await?;
        if !self.is_abandoned(&seen.task) {
            return Ok(seen);
        }
        // Tasks that no host may take over were ended by the read.
        self.take_up(seen.task, caller, can).await?;
        self.seen(self.owned(id, caller.identity.as_ref()).await?).await
    }

    /// Call of a task as stored for other hosts. `None` unless it may be repeated.
    pub(super) fn kept_call(&self, again: &Again) -> Option<String> {
        if !self.may_resume(&again.tool, &again.arguments) {
            return None;
        }
        let kept = json!({"tool": again.tool, "arguments": again.arguments, "envelope": again.envelope});
        Some(kept.to_string()).filter(|kept| kept.len() <= MAX_CALL)
    }

    /// True if a tool is idempotent and the operator enabled repeating its calls.
    fn may_resume(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        let catalog = self.catalog();
        catalog.find(tool).is_some_and(|tool| {
            let target = dispatch::target_of(&catalog, tool, arguments);
            match &target.body {
                Body::Guest(pack) => pack.resume && target.spec.idempotent,
                Body::Core(_) => false,
            }
        })
    }

    /// Takes a task over, unless another host is faster. Ends it if its call may not be repeated here.
    async fn take_up(
        self: &Arc<Gate>,
        task: StoredTask,
        caller: &Caller,
        can: CanAnswer,
    ) -> Result<(), ToolError> {
        self.introduced().await;
        let again = again(&task, caller, can).filter(|again| self.may_resume(&again.tool, &again.arguments));
        let (seen, now_ms) = (task.clone(), self.clock.now_ms());
        let Some(again) = again else {
            if !self.catalog().preparing().packs.is_empty() {
                // The tools are not known yet. The next poll decides.
                return Ok(());
            }
            let ended = self.change_task(move |session| session.tasks().give_up(&seen, now_ms));
            return ended.await.map(drop);
        };
        let attending = Attending {
            gate: Arc::clone(self),
            slot: TaskSlot::of(&task),
            again,
            cancel: Cancel::default(),
            first_round: task
                .resumed
                .saturating_add(1)
                .saturating_mul(MAX_ROUNDS)
                .saturating_add(1),
        };
        let host = self.host_id().to_owned();
        let (gate, id) = (Arc::clone(self), task.id.clone());
        // Separate task, so that a client that leaves in between leaves no task that is not followed.
        let taken = tokio::spawn(async move {
            let claimed = gate.change_task(move |session| session.tasks().take_up(&seen, &host, now_ms));
            if !claimed.await? {
                return Ok(());
            }
            tracing::info!(task = id, "taking over a task whose host died");
            let registration = attending.enter();
            tokio::spawn(attending.resume(registration));
            Ok(())
        });
        taken.await.unwrap_or(Ok(()))
    }
}

/// Call of a task, for the polling caller.
fn again(task: &StoredTask, caller: &Caller, can: CanAnswer) -> Option<Again> {
    let mut kept: Value = serde_json::from_str(task.arguments.as_deref()?).ok()?;
    let arguments = match kept["arguments"].take() {
        Value::Object(arguments) => arguments,
        _ => return None,
    };
    Some(Again {
        tool: kept["tool"].as_str()?.to_owned(),
        arguments,
        envelope: Some(kept["envelope"].take()).filter(|envelope| !envelope.is_null()),
        caller: Caller {
            is_repeated: false,
            ..caller.clone()
        },
        can,
    })
}
