//! The caller: check of the claimed role, events of the caller, and suggested next calls.

use serde_json::{Value as Json, json};
use tollgate_sdk::{Cx, Event, NextCall, ToolError};

use crate::arguments::MAX_REFERENCE_CHARS;
use crate::config::Config;
use crate::error::{Reason, Refusals};
use crate::model::{AttemptId, AttemptOutcome, EventType, ExecutorKind, Runtime, TaskId};
use crate::phase::Phase;
use crate::role::{Action, Role};
use crate::store::approval::CIRCUIT_RESET;
use crate::store::event::{self, NewEvent};
use crate::store::task;

/// An authorized caller with the configuration.
#[derive(Debug)]
pub(crate) struct Caller {
    pub actor: String,
    role: Role,
    pub config: Config,
}

/// A change to log.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub event_type: EventType,
    pub task_id: &'a TaskId,
    pub attempt_id: Option<&'a AttemptId>,
    /// Id of the attempt, review, artifact or approval that changed, if the task itself did not.
    pub part: Option<&'a str>,
    /// Details as a JSON object.
    pub payload: Json,
}

impl<'a> Change<'a> {
    /// A change of a task itself, outside of any attempt.
    pub(crate) fn of(event_type: EventType, task_id: &'a TaskId, payload: Json) -> Change<'a> {
        Change {
            event_type,
            task_id,
            attempt_id: None,
            part: None,
            payload,
        }
    }

    /// Names the attempt that the change belongs to.
    pub(crate) fn in_attempt(self, attempt_id: Option<&'a AttemptId>) -> Change<'a> {
        Change { attempt_id, ..self }
    }

    /// Names the attempt, review, artifact or approval that changed.
    pub(crate) fn part(self, id: &'a str) -> Change<'a> {
        Change {
            part: Some(id),
            ..self
        }
    }
}

/// The name of a caller: the given one, else the proven identity, else the role.
fn named(cx: &Cx<'_>, actor: Option<&str>, role: Role) -> String {
    match (actor, cx.identity()) {
        (Some(actor), _) => actor.to_owned(),
        (None, Some(identity)) => identity.chars().take(MAX_REFERENCE_CHARS).collect(),
        (None, None) => role.as_str().to_owned(),
    }
}

impl Caller {
    /// The caller of a change. Fails with `ROLE_FORBIDDEN` if the role may not make it, or may not be claimed
    /// by the caller.
    pub(crate) fn writer(
        cx: &Cx<'_>,
        action: Action,
        actor: Option<&str>,
        role: Role,
    ) -> Result<Caller, ToolError> {
        let config: Config = cx.config()?;
        let mut refusals = Refusals::default();
        if !action.roles().contains(&role) {
            refusals.add(Reason::RoleForbidden { role, action });
        }
        refusals.claim(cx, &config, role, action.tool());
        refusals.finish()?;
        Ok(Caller {
            actor: named(cx, actor, role),
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
            actor: named(cx, actor, role),
            role,
            config,
        })
    }

    /// The claimed role.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// Starts the checks of a call with the check of the actor.
    pub(crate) fn check(&self) -> Refusals {
        let mut refusals = Refusals::default();
        refusals.text("actor", &self.actor, MAX_REFERENCE_CHARS);
        refusals
    }

    /// Logs a change, names what changed in the ledger, and returns the event's id.
    pub(crate) fn log(&self, cx: &Cx<'_>, change: Change<'_>) -> Result<i64, ToolError> {
        let event = NewEvent {
            task_id: change.task_id,
            attempt_id: change.attempt_id,
            event_type: change.event_type,
            actor: &self.actor,
            actor_role: self.role,
            payload: change.payload,
            created_at: cx.now(),
        };
        if change.event_type != EventType::TaskCreated {
            task::touch(&cx.db, change.task_id, event.created_at)?;
        }
        let id = event::append(&cx.db, &event)?;
        let task = format!("task_store/{}", change.task_id);
        let part = change.part.map(|part| format!("{task}/{part}"));
        let names = std::iter::once(task).chain(part);
        cx.ledger()
            .append(&Event::new(change.event_type.as_str()).changed(names))?;
        Ok(id)
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
            json!({"task_id": id, "reason": "all attempts are used up"}),
        )
    }

    /// The call that asks a person for another reset of a task's circuit.
    pub(crate) fn request_reset(&self, id: &TaskId, attempt: &AttemptId) -> NextCall {
        self.call(
            Action::RequestApproval,
            json!({
                "task_id": id,
                "attempt_id": attempt,
                "requested_action": "Close the circuit and allow further attempts",
                "side_effect_kind": CIRCUIT_RESET,
                "idempotency_key": attempt,
            }),
        )
    }

    /// The call that ends an attempt.
    pub(crate) fn finish_attempt(&self, id: &AttemptId, status: AttemptOutcome) -> NextCall {
        self.call(Action::FinishAttempt, json!({"attempt_id": id, "status": status}))
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
