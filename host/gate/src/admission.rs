//! Which envelope a call belongs to, and what it is told when the envelope does not admit it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tollgate_components::packs::{Body, ENVELOPE_ARGUMENT, ToolEntry};
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Charge, Refusal, Standing};
use tollgate_core::scopes::Calls;
use tollgate_sdk::{Blocker, NextCall, ToolError};
use tollgate_store::storage::OpType;

use super::Caller;
use super::batch::Member;
use crate::core_tools::{self, Require};

/// The envelope that each stateful connection opened last and has not closed.
#[derive(Default)]
pub(super) struct Connections(Mutex<HashMap<String, String>>);

impl Connections {
    pub(super) fn opened(&self, connection: &str, envelope: &str) {
        self.map().insert(connection.to_owned(), envelope.to_owned());
    }

    pub(super) fn closed(&self, connection: &str, envelope: &str) {
        let mut map = self.map();
        if map.get(connection).is_some_and(|current| current == envelope) {
            map.remove(connection);
        }
    }

    pub(super) fn ended(&self, connection: &str) {
        self.map().remove(connection);
    }

    fn current(&self, connection: &str) -> Option<String> {
        self.map().get(connection).cloned()
    }

    fn map(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call of a tool costs its envelope. One that runs members costs what they cost, and at least one.
pub(super) fn charge(tool: &ToolEntry, members: &[Member]) -> Charge {
    match (&tool.body, tool.spec.effect) {
        (Body::Core(_), _) | (_, Effect::Read) => Charge::Nothing,
        _ if tool.runs_tests => Charge::TestRun,
        _ => {
            let writes = members
                .iter()
                .filter(|member| member.tool.spec.effect != Effect::Read);
            Charge::Mutations(i64::try_from(writes.count()).unwrap_or(i64::MAX).max(1))
        }
    }
}

/// What a call of a tool is recorded as.
pub(super) fn op_type(tool: &ToolEntry) -> OpType {
    match (&tool.body, charge(tool, &[])) {
        (Body::Core(_), _) => OpType::Control,
        (_, Charge::Nothing) => OpType::Query,
        (_, Charge::Mutations(_)) => OpType::Mutation,
        (_, Charge::TestRun) => OpType::TestRun,
    }
}

/// A request runs once: one whose id the session used before is refused.
pub(super) fn first(caller: &Caller) -> Result<(), ToolError> {
    if !caller.is_repeated {
        return Ok(());
    }
    let id = caller.request_id.as_deref().unwrap_or_default();
    Err(ToolError::new(
        "REQUEST_ID_REPEATED",
        "this session sent a request with this id before; nothing was run",
    )
    .remediation("Give each request of a session an id of its own. To learn how the first one ended, look it up in the ledger.")
    .context("request_id", tollgate_core::text::clean(id)))
}

/// Whether the caller's token is for calls of tools like this one.
pub(super) fn may_call(tool: &ToolEntry, caller: &Caller) -> Result<(), ToolError> {
    let calls = caller
        .identity
        .as_ref()
        .map_or(Calls::All, |identity| identity.rights().calls);
    let may = match (calls, tool.spec.effect) {
        (Calls::All, _) | (Calls::Reads, Effect::Read) => true,
        (Calls::Reads | Calls::None, _) => false,
    };
    if may {
        return Ok(());
    }
    Err(ToolError::new(
        "SCOPE_MISSING",
        "the bearer token is for tools that read, and this one does not only read; nothing was run",
    )
    .remediation("Call tools that read. For others, ask the operator for another token: tollgate tokens add NAME --scope write.")
    .context("scope", "write"))
}

/// Takes the envelope out of the arguments, or out of the request's `_meta`, or from the connection.
pub(super) fn correlate(
    tool: &ToolEntry,
    arguments: &mut Map<String, Value>,
    meta: Option<Value>,
    caller: &Caller,
    connections: &Connections,
    require: Require,
) -> Result<Option<String>, ToolError> {
    if matches!(tool.body, Body::Core(_)) {
        return Ok(None);
    }
    let argument = if tool.correlated {
        arguments.remove(ENVELOPE_ARGUMENT)
    } else {
        None
    };
    let argument = id(text("the argument envelope_id", argument)?)?;
    let meta = id(text("_meta tollgate/envelope_id", meta)?)?;
    if let (Some(argument), Some(meta)) = (&argument, &meta)
        && argument != meta
    {
        return Err(ToolError::new(
            "ENVELOPE_CONFLICT",
            "the argument and the _meta name different envelopes",
        )
        .remediation("Name the envelope once, or the same twice.")
        .context("argument", argument.as_str())
        .context("meta", meta.as_str()));
    }
    let default = || {
        if caller.stateful {
            connections.current(&caller.connection)
        } else {
            None
        }
    };
    let envelope = argument.or(meta).or_else(default);
    let required = match require {
        Require::Never => false,
        Require::Writes => tool.spec.effect != Effect::Read,
        Require::Always => true,
    };
    if envelope.is_none() && required {
        return Err(
            ToolError::new("ENVELOPE_REQUIRED", "calls must belong to an envelope here")
                .remediation("Open an envelope and pass its id as envelope_id.")
                .next_call(NextCall::new("envelope_open", json!({}))),
        );
    }
    Ok(envelope)
}

/// An envelope's id as it is written, whether there is such an envelope or not. Anything else is not kept.
fn id(named: Option<String>) -> Result<Option<String>, ToolError> {
    let is_id = |named: &str| {
        let rest = named.strip_prefix("env_").unwrap_or_default();
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        (1..=ULID).contains(&rest.len()) && rest.bytes().all(is_letter)
    };
    match named {
        Some(named) if !is_id(&named) => Err(core_tools::unknown_envelope(&tollgate_core::text::clean(
            tollgate_core::text::cut(&named, 64),
        ))),
        named => Ok(named),
    }
}

/// Letters of an id after its prefix.
const ULID: usize = 26;

fn text(what: &str, value: Option<Value>) -> Result<Option<String>, ToolError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(
            ToolError::new("INVALID_ARGUMENTS", format!("{what} must be text"))
                .remediation("Pass the id that envelope_open returned.")
                .blocker(
                    Blocker::new("INVALID_FIELD", format!("{what} must be text")).field(ENVELOPE_ARGUMENT),
                ),
        ),
    }
}

/// A refusal by an envelope.
pub(super) fn refused(envelope: &str, standing: &Standing, refusal: Refusal) -> ToolError {
    let message = match refusal {
        Refusal::Closed(state) => format!("envelope {envelope} is {}", state.as_str()),
        Refusal::Mutations { limit, left: 0 } => {
            format!("envelope {envelope} had {limit} mutations and all are used; it is closed now")
        }
        Refusal::Mutations { limit, left } => {
            format!("envelope {envelope} has {left} of {limit} mutations left, fewer than the call wants")
        }
        Refusal::TestRuns { limit } => {
            format!("envelope {envelope} had {limit} test runs and all are used; other calls go on")
        }
        Refusal::Duration { limit, .. } => {
            format!("envelope {envelope} had {limit} s and they are over; it is closed now")
        }
    };
    let (limit, used) = match refusal {
        Refusal::Closed(_) => (None, None),
        Refusal::Mutations { limit, .. } => (Some(limit), Some(standing.mutations)),
        Refusal::TestRuns { limit } => (Some(limit), Some(standing.test_runs)),
        Refusal::Duration { limit, used } => (Some(limit), Some(used)),
    };
    let mut err = ToolError::new(refusal.code(), message)
        .remediation("Report what was reached to your owner; more work wants another envelope.")
        .context("envelope_id", envelope)
        .next_call(NextCall::new("ledger_report", json!({ "envelope_id": envelope })));
    if let (Some(limit), Some(used)) = (limit, used) {
        err = err.context("limit", limit).context("used", used);
    }
    err
}
