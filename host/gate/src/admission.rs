//! Assignment of calls to envelopes, and the refusals of calls that an envelope does not admit.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tollgate_components::catalog::{Body, Catalog, ENVELOPE_ARGUMENT, ToolEntry};
use tollgate_components::tools::DeclaredCharge;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::Charge;
use tollgate_core::scopes::Calls;
use tollgate_sdk::{Blocker, NextCall, ToolError};
use tollgate_store::storage::OpType;

use super::batch::Member;
use super::{Call, Caller};
use crate::core_tools::DESCRIBE;
use crate::envelope_refusal;
use crate::envelope_settings::{EnvelopeSettings, Require};

/// Envelopes that stateful connections opened last and have not closed.
#[derive(Default)]
pub(super) struct Connections(Mutex<Known>);

/// State of stateful connections.
#[derive(Default)]
pub(super) struct Known {
    current: HashMap<String, String>,
    /// Connections with a call in an envelope. Their end affects envelopes.
    touched: HashSet<String>,
    /// Envelopes in which a connection has read.
    joined: HashMap<String, HashSet<String>>,
}

/// Most envelopes that are remembered for one connection.
const MAX_JOINED: usize = 1_000;

impl Connections {
    pub(super) fn opened(&self, connection: &str, envelope: &str) {
        let mut known = self.known();
        known.current.insert(connection.to_owned(), envelope.to_owned());
        known.touched.insert(connection.to_owned());
    }

    /// Records that a call of the connection was admitted to an envelope.
    pub(super) fn touched(&self, connection: &str) {
        let mut known = self.known();
        if !known.touched.contains(connection) {
            known.touched.insert(connection.to_owned());
        }
    }

    /// Records that a connection read in an envelope. Returns whether this is the first time and the envelope is not
    /// its own.
    pub(super) fn joins(&self, connection: &str, envelope: &str) -> bool {
        let mut known = self.known();
        if known
            .current
            .get(connection)
            .is_some_and(|current| current == envelope)
        {
            return false;
        }
        let joined = known.joined.entry(connection.to_owned()).or_default();
        if joined.len() >= MAX_JOINED {
            joined.clear();
        }
        joined.insert(envelope.to_owned())
    }

    pub(super) fn closed(&self, connection: &str, envelope: &str) {
        let current = &mut self.known().current;
        if current.get(connection).is_some_and(|current| current == envelope) {
            current.remove(connection);
        }
    }

    /// Forgets a connection. Returns whether its end affects envelopes.
    pub(super) fn ended(&self, connection: &str) -> bool {
        let mut known = self.known();
        known.current.remove(connection);
        known.joined.remove(connection);
        known.touched.remove(connection)
    }

    pub(super) fn current(&self, connection: &str) -> Option<String> {
        self.known().current.get(connection).cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cost of a tool's call for its envelope. A call that runs members costs as much as they do, and at least one
/// mutation.
pub(super) fn charge(tool: &ToolEntry, members: &[Member]) -> Charge {
    match (&tool.body, tool.spec.effect) {
        (Body::Core(_), _) | (_, Effect::Read) => Charge::Nothing,
        _ => match tool.charge {
            Some(DeclaredCharge::Nothing) => Charge::Nothing,
            Some(DeclaredCharge::TestRun) => Charge::TestRun,
            None => {
                let writes = members
                    .iter()
                    .filter(|member| member.tool.spec.effect != Effect::Read);
                Charge::Mutations(i64::try_from(writes.count()).unwrap_or(i64::MAX).max(1))
            }
        },
    }
}

/// Operation type under which a tool's call is recorded.
pub(super) fn op_type(tool: &ToolEntry) -> OpType {
    match (&tool.body, charge(tool, &[])) {
        (Body::Core(_), _) => OpType::Control,
        (_, Charge::Nothing) => OpType::Query,
        (_, Charge::Mutations(_)) => OpType::Mutation,
        (_, Charge::TestRun) => OpType::TestRun,
    }
}

/// Refuses a request whose id the session used before, so that each request runs once.
pub(super) fn first(caller: &Caller) -> Result<(), ToolError> {
    if !caller.is_repeated {
        return Ok(());
    }
    let id = caller.request_id.as_deref().unwrap_or_default();
    Err(ToolError::new(
        "REQUEST_ID_REPEATED",
        "this session sent a request with this id before; nothing was run",
    )
    .remediation(
        "Give each request of a session its own id. To learn how the first request ended, look it up in the \
        ledger.",
    )
    .context("request_id", tollgate_core::text::clean(id)))
}

/// Checks that the caller's token allows calls of such tools.
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
        "the token allows only `read` tools, but this tool can make changes; nothing was run",
    )
    .remediation(
        "Call only `read` tools, or ask the operator for another token: tollgate tokens add NAME --scope \
        write.",
    )
    .context("scope", "write"))
}

/// Adds the call that describes a tool to a refusal of its arguments, if the caller may make that call.
pub(super) fn describing(
    refusal: ToolError,
    tool: &ToolEntry,
    catalog: &Catalog,
    caller: &Caller,
) -> ToolError {
    let name = &tool.spec.name;
    let can_describe = catalog
        .find(DESCRIBE)
        .is_some_and(|describe| may_call(describe, caller).is_ok());
    // Prompts have arguments too, but cannot be described.
    let is_tool = catalog
        .find(name)
        .is_some_and(|found| std::ptr::eq(&**found, tool));
    if refusal.next_call.is_some() || !can_describe || !is_tool {
        return refusal;
    }
    refusal.next_call(NextCall::new(DESCRIBE, json!({ "tools": [name] })))
}

/// Takes the envelope from the arguments, from the request's `_meta`, or from the connection.
pub(super) fn correlate(
    tool: &ToolEntry,
    arguments: &mut Map<String, Value>,
    meta: Option<Value>,
    caller: &Caller,
    connections: &Connections,
    settings: &EnvelopeSettings,
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
            "the argument envelope_id and _meta name different envelopes",
        )
        .remediation("Name the envelope in one of the two places, or the same envelope in both.")
        .context("argument", argument.as_str())
        .context("meta", meta.as_str()));
    }
    let default = || {
        if caller.stateful || settings.auto {
            connections.current(&caller.connection)
        } else {
            None
        }
    };
    let envelope = argument.or(meta).or_else(default);
    let required = match settings.require {
        Require::Never => false,
        Require::Writes => tool.spec.effect != Effect::Read,
        Require::Always => true,
    };
    if envelope.is_none() && required {
        return Err(
            ToolError::new("ENVELOPE_REQUIRED", "this call requires an open envelope")
                .remediation("Open an envelope and pass its id as envelope_id.")
                .next_call(NextCall::new("envelope_open", json!({}))),
        );
    }
    Ok(envelope)
}

/// True if a call names an envelope itself.
pub(super) fn names_envelope(call: &Call) -> bool {
    let is_named = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    is_named(call.envelope.as_ref()) || is_named(call.arguments.get(ENVELOPE_ARGUMENT))
}

/// Adds a note to an envelope's refusal that the call did not name the envelope.
pub(super) fn of_connection(mut refusal: ToolError, envelope: Option<&str>) -> ToolError {
    let is_of_envelope = envelope.is_some()
        && refusal.context.get("envelope_id").and_then(Value::as_str) == envelope
        && ["ENVELOPE_CLOSED", "DURATION_EXCEEDED"].contains(&refusal.code.as_str());
    if is_of_envelope {
        refusal
            .message
            .push_str("; the call named no envelope, so its connection's default applies");
        refusal = refusal.context("is_default", true);
    }
    refusal
}

/// Envelope id in its canonical spelling, whether such an envelope exists or not. Anything else is discarded.
fn id(named: Option<String>) -> Result<Option<String>, ToolError> {
    let is_id = |named: &str| {
        let rest = named.strip_prefix("env_").unwrap_or_default();
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        (1..=ULID_CHARS).contains(&rest.len()) && rest.bytes().all(is_letter)
    };
    match named {
        Some(named) if !is_id(&named) => Err(envelope_refusal::unknown(&tollgate_core::text::clean(
            tollgate_core::text::cut(&named, 64),
        ))),
        named => Ok(named),
    }
}

/// Number of letters after an id's prefix.
const ULID_CHARS: usize = 26;

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
