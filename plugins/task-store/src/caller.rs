//! The caller: check of the claimed role, events of the caller, and suggested next calls.

use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, DbError, NextCall, ToolError};

use crate::arguments::REFERENCE;
use crate::config::Config;
use crate::error::{Reason, Refusals};
use crate::model::{AttemptId, EventType, ExecutorKind, Runtime, TaskId};
use crate::phase::Phase;
use crate::role::{Action, Role};
use crate::store::event::{self, NewEvent};
use crate::store::task;

/// An authorized caller with the configuration.
#[derive(Debug)]
pub(crate) struct Caller {
    pub actor: String,
    role: Role,
    pub config: Config,
}

impl Caller {
    /// The caller of a change. Fails with `ROLE_FORBIDDEN` if the role may not make it, or may not be claimed
    /// by the caller.
    pub(crate) fn writer(cx: &Cx<'_>, action: Action, actor: &str, role: Role) -> Result<Caller, ToolError> {
        let config: Config = cx.config()?;
        let mut refusals = Refusals::default();
        if !action.roles().contains(&role) {
            refusals.add(Reason::RoleForbidden { role, action });
        }
        refusals.claim(cx, &config, role, action.tool());
        refusals.finish()?;
        Ok(Caller {
            actor: actor.to_owned(),
            role,
            config,
        })
    }

    /// The caller of a read. Every role may read, but a claimed role must be allowed for the caller.
    pub(crate) fn reader(
        cx: &Cx<'_>,
        tool: &'static str,
        actor: Option<&str>,
        role: Option<Role>,
    ) -> Result<Caller, ToolError> {
        let config: Config = cx.config()?;
        let mut refusals = Refusals::default();
        if let Some(role) = role {
            refusals.claim(cx, &config, role, tool);
        }
        refusals.finish()?;
        let role = role.unwrap_or(Role::Orchestrator);
        Ok(Caller {
            actor: actor.unwrap_or(role.as_str()).to_owned(),
            role,
            config,
        })
    }

    /// Starts the checks of a call with the check of the actor.
    pub(crate) fn check(&self) -> Refusals {
        let mut refusals = Refusals::default();
        refusals.text("actor", &self.actor, REFERENCE);
        refusals
    }

    /// Logs a change and returns the event's id.
    pub(crate) fn log(
        &self,
        cx: &Cx<'_>,
        event_type: EventType,
        task_id: &TaskId,
        attempt_id: Option<&AttemptId>,
        payload: Json,
    ) -> Result<i64, DbError> {
        let event = NewEvent {
            task_id,
            attempt_id,
            event_type,
            actor: &self.actor,
            actor_role: self.role,
            payload,
            created_at: cx.now(),
        };
        task::touch(&cx.db, task_id, event.created_at)?;
        event::append(&cx.db, &event)
    }

    /// The call that moves a task.
    pub(crate) fn transition(&self, id: &TaskId, from: Phase, to: Phase, reason: &str) -> NextCall {
        self.call(
            Action::Transition,
            json!({"task_id": id, "from_phase": from, "to_phase": to, "reason": reason}),
        )
    }

    /// The call that starts an attempt.
    pub(crate) fn start_attempt(&self, id: &TaskId) -> NextCall {
        self.call(
            Action::StartAttempt,
            json!({
                "task_id": id,
                "phase": Phase::Executing,
                "runtime": Runtime::Local,
                "executor_kind": ExecutorKind::Builder,
            }),
        )
    }

    /// The call that opens a task's circuit because no retry is left.
    pub(crate) fn open_circuit(&self, id: &TaskId) -> NextCall {
        self.call(
            Action::OpenCircuit,
            json!({"task_id": id, "reason": "all attempts are used"}),
        )
    }

    /// A call in the caller's own role or, if that role may not make it, in the first role that may.
    fn call(&self, action: Action, mut arguments: Json) -> NextCall {
        let own = action.roles().iter().find(|&&role| role == self.role);
        let role = own.or(action.roles().first());
        if let Json::Object(arguments) = &mut arguments {
            arguments.insert("actor".to_owned(), json!(self.actor));
            arguments.insert("actor_role".to_owned(), json!(role));
        }
        NextCall::new(action.tool(), arguments)
    }
}

impl Refusals {
    /// Requires a role that the configuration lets this caller claim.
    fn claim(&mut self, cx: &Cx<'_>, config: &Config, role: Role, tool: &'static str) {
        if let Err(why) = config.claim(role, cx.client(), cx.identity()) {
            self.add(Reason::RoleMisclaimed { role, tool, why });
        }
    }
}
