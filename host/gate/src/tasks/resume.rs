//! Tasks whose hosts are gone, taken up by the host at which their owners look.
//!
//! Only calls of idempotent tools are made again, and only if the operator wants it. The owner has just proven its
//! identity, so that the call has today's rights of its caller. It is admitted, judged and counted like every other.

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

/// Longest call that is kept, in bytes of JSON.
const MAX_CALL: usize = 256 << 10;

impl Gate {
    /// The task with an id, as [`task`](Gate::task). A task whose host is gone is taken up for its owner first, if its call
    /// may be made again.
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
        // Whatever no host may take up was ended by the look.
        self.take_up(seen.task, caller, can).await?;
        self.seen(self.owned(id, caller.identity.as_ref()).await?).await
    }

    /// The call of a task as it is kept for other hosts. `None` unless it may be made again.
    pub(super) fn kept_call(&self, again: &Again) -> Option<String> {
        if !self.may_resume(&again.tool, &again.arguments) {
            return None;
        }
        let kept = json!({"tool": again.tool, "arguments": again.arguments, "envelope": again.envelope});
        Some(kept.to_string()).filter(|kept| kept.len() <= MAX_CALL)
    }

    /// True if a tool is idempotent and the operator has its calls made again.
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

    /// Takes a task up, unless another host is faster. Ends it if its call may not be made again here.
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
                // Nobody knows yet which tools there are. The next look does.
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
        // By itself, so that a client that leaves in between leaves no task that nobody follows.
        let taken = tokio::spawn(async move {
            let claimed = gate.change_task(move |session| session.tasks().take_up(&seen, &host, now_ms));
            if !claimed.await? {
                return Ok(());
            }
            tracing::info!(task = id, "takes up a task whose host is gone");
            let place = attending.enter();
            tokio::spawn(attending.resume(place));
            Ok(())
        });
        taken.await.unwrap_or(Ok(()))
    }
}

/// The call of a task, for the caller that looks.
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
