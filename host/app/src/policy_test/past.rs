//! History before a case: rows of the ledger, and results that the policy evaluated.

use serde_json::Value;
use tollgate_core::clock;
use tollgate_core::hash::sha256_hex;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::bindings::tollgate::host::component;
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Operation, StoredOperation, claimed_actor};

use super::cases::{self, CALL_KEYS};
use super::fields::Fields;

/// Maximum number of calls that one line of a history can represent.
const MAX_TIMES: i64 = 10_000;
/// Keys of a line of a history, in addition to those of the call.
const PAST_KEYS: [&str; 8] = [
    "ago",
    "at",
    "times",
    "error_code",
    "actor",
    "result_hash",
    "mutation_fingerprint",
    "failure_fingerprint",
];

/// An earlier call.
#[derive(Debug, Clone)]
pub(super) struct Past {
    /// Row of the call in the ledger.
    pub(super) operation: Operation,
    pub(super) request: wit::Request,
    /// Outcome as the policy evaluated it, if it did.
    pub(super) outcome: Option<wit::Outcome>,
}

/// Lines of the tables under `history`, oldest first. Absent keys are those of the evaluated call.
pub(super) fn history(fields: &Fields<'_, '_>, now: Option<&wit::Request>, at: i64) -> Vec<Past> {
    let mut history = Vec::new();
    for (place, (start, table)) in fields.tables("history").into_iter().enumerate() {
        let name = format!("history {}", place + 1);
        let line = Fields::new(fields.sheet(), &name, start, table);
        history.extend(past(&line, now, at, place));
    }
    history.sort_by_key(|past| past.request.at);
    history
}

fn past(line: &Fields<'_, '_>, now: Option<&wit::Request>, at: i64, place: usize) -> Vec<Past> {
    line.only(&PAST_KEYS.iter().chain(&CALL_KEYS).copied().collect::<Vec<_>>());
    if !line.has("tool") {
        line.report("requires a tool");
    }
    let when = match (line.has("ago"), line.has("at")) {
        (true, false) => line
            .read(
                "ago",
                "a length of time, such as \"90s\", \"10m\", \"2h\" or \"1d\"",
                |value| clock::span_ms(value.as_str()?),
            )
            .map(|ago| at - ago),
        (false, true) => cases::moment(line, "at"),
        _ => {
            line.report("requires either `ago` or `at`");
            None
        }
    };
    let times = line.number("times", 1..MAX_TIMES + 1).unwrap_or(1);
    let outcome = cases::outcome(line);
    let request = cases::request(line, when.unwrap_or(at)).map(|request| as_now(line, request, now));
    let row = request
        .as_ref()
        .and_then(|request| row(line, request, outcome.as_ref()).operation());
    let (Some(request), Some(row), Some(_)) = (request, row, when) else {
        return Vec::new();
    };
    let one = |time: i64| {
        let op_id = format!("op_{place}_{time}");
        Past {
            operation: Operation {
                op_id: op_id.clone(),
                ..row.clone()
            },
            request: wit::Request {
                op_id,
                ..request.clone()
            },
            outcome: outcome.clone(),
        }
    };
    (0..times).map(one).collect()
}

/// Call with the connection and envelope of the evaluated call, unless its line sets others.
fn as_now(line: &Fields<'_, '_>, mut request: wit::Request, now: Option<&wit::Request>) -> wit::Request {
    if let Some(now) = now.filter(|_| !line.has("connection")) {
        request.connection.clone_from(&now.connection);
    }
    if let Some(now) = now.filter(|_| !line.has("envelope_id")) {
        request.envelope_id.clone_from(&now.envelope_id);
    }
    request
}

/// Row that a line represents.
fn row(line: &Fields<'_, '_>, request: &wit::Request, outcome: Option<&wit::Outcome>) -> StoredOperation {
    let error_code = line.text("error_code").or_else(|| outcome?.error_code.clone());
    let claimed = || {
        let arguments: Value = serde_json::from_str(&request.arguments).ok()?;
        claimed_actor(arguments.get("actor")?.as_str()?)
    };
    let hash_of_body = || {
        Some(sha256_hex(
            outcome.filter(|outcome| outcome.success)?.body.as_bytes(),
        ))
    };
    let (effect, op_type) = match request.effect {
        component::Effect::Read => ("read", "query"),
        component::Effect::Write => ("write", "mutation"),
        component::Effect::Run => ("run", "mutation"),
    };
    StoredOperation {
        timestamp: Timestamp::from_ms(request.at).to_string(),
        duration_ms: 1.0,
        op_type: op_type.to_owned(),
        success: Some(error_code.is_none()),
        pack: request.pack.clone(),
        tool: request.tool.clone(),
        effect: effect.to_owned(),
        actor: line
            .text("actor")
            .or_else(|| request.identity.clone())
            .or_else(claimed),
        client: request.client.clone(),
        connection: request.connection.clone(),
        envelope_id: request.envelope_id.clone(),
        args_hash: request.args_hash.clone(),
        result_hash: line.text("result_hash").or_else(hash_of_body),
        mutation_fingerprint: line.text("mutation_fingerprint"),
        failure_fingerprint: line.text("failure_fingerprint"),
        error_code,
        ..StoredOperation::default()
    }
}
