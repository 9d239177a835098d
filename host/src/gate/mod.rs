//! The gate: the one path that every call takes, whichever way it came in.
//!
//! `find tool → check arguments → run in its lane → ledger row → commit → reply`. A write and its
//! row commit together; a read's row follows on the writer's queue.

mod admission;
mod arguments;
mod guest;
mod lanes;
mod writer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use thiserror::Error;
use tollgate_sdk::{Timestamp, ToolError};

use crate::clock::Clock;
use crate::core_tools::EnvelopeSettings;
use crate::deadline::Cancel;
use crate::envelope::{Charge, Refusal, Standing};
use crate::hash;
use crate::liveness::Host;
use crate::packs::{Body, Catalog, Effect, ToolEntry};
use crate::process::Launcher;
use crate::progress::Progress;
use crate::sandbox::bindings::exports::tollgate::host::pack::Context;
use crate::sandbox::{Limits, Sandbox};
use crate::storage::{Database, OpenError, Operation};
use crate::workspaces::HeldBack;

use admission::Connections;
use guest::{GuestCall, Runtime};
use lanes::Lanes;

/// One call as it comes in.
#[derive(Debug)]
pub struct Call {
    /// A tool's name or alias.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
    /// What was wrong with the message before it could be read, if anything.
    pub malformed: Vec<String>,
    /// The envelope that the request's `_meta` names, if it does.
    pub envelope: Option<Value>,
    /// Who calls.
    pub caller: Caller,
    /// Lets the caller give up.
    pub cancel: Cancel,
    /// Tells the caller how far it is.
    pub progress: Progress,
}

/// Who calls, as far as the host knows.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// Proven by the transport.
    pub identity: Option<String>,
    /// The client's own name.
    pub client: Option<String>,
    /// Which connection.
    pub connection: String,
    /// Whether later calls come over the same connection, so that it can stand for an envelope.
    pub stateful: bool,
    /// The client's id of the request.
    pub request_id: Option<String>,
}

/// What became of a call that reached the gate.
#[derive(Debug)]
pub struct Outcome {
    /// The operation's id in the ledger.
    pub op_id: String,
    /// The reply, or the refusal.
    pub result: Result<Reply, ToolError>,
    /// From reaching the gate to the reply.
    pub duration: Duration,
    /// The envelope it belongs to.
    pub envelope_id: Option<String>,
    /// That envelope with this call in it, if the call got that far.
    pub standing: Option<Standing>,
    /// What it changed.
    pub mutation: Option<Mutation>,
}

/// What a call changed, as far as the host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// SHA-256 over tool, arguments and the rows changed in each table.
    pub fingerprint: String,
    /// The tables.
    pub changed: Vec<String>,
    /// How many mutations ago the same was done in this envelope, 1 being the one before.
    pub repeated: Option<usize>,
}

/// How a call ended, with what the ledger and the reply say beside the result.
#[derive(Debug, Clone)]
struct Settled {
    result: Result<Reply, ToolError>,
    standing: Option<Standing>,
    limit: Option<Refusal>,
    mutation: Option<Mutation>,
}

impl Settled {
    fn of(result: Result<Reply, ToolError>) -> Settled {
        Settled {
            result,
            standing: None,
            limit: None,
            mutation: None,
        }
    }

    fn refused(refusal: ToolError) -> Settled {
        Settled::of(Err(refusal))
    }
}

/// A successful reply.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The structured result.
    pub structured: Map<String, Value>,
    /// The same as the component wrote it.
    pub json: String,
    /// What to show instead of the JSON.
    pub text: Option<String>,
    /// What is written to workspaces once the call is committed.
    pub held_back: Arc<[HeldBack]>,
}

/// A call that never reached the gate, because it names no tool.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no tool `{name}`{}", .nearest.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
pub struct UnknownTool {
    /// What was called.
    pub name: String,
    /// The name most like it.
    pub nearest: Option<String>,
}

/// The gate over one data directory and one set of packs.
pub struct Gate {
    catalog: Arc<Catalog>,
    clock: Arc<dyn Clock>,
    settings: Arc<EnvelopeSettings>,
    connections: Connections,
    lanes: Lanes,
    /// Let go last: what is queued is written before this process counts as gone.
    host: Host,
}

impl Gate {
    /// Opens the gate of a host that holds its lock.
    pub fn open(
        catalog: Arc<Catalog>,
        sandbox: Arc<Sandbox>,
        launcher: Arc<Launcher>,
        database: &Database,
        clock: Arc<dyn Clock>,
        settings: EnvelopeSettings,
        host: Host,
    ) -> Result<Gate, OpenError> {
        let settings = Arc::new(settings);
        let runtime = Runtime {
            sandbox,
            launcher,
            clock: Arc::clone(&clock),
            settings: Arc::clone(&settings),
            host_id: host.id().into(),
        };
        Ok(Gate {
            catalog,
            settings,
            connections: Connections::default(),
            lanes: Lanes::open(database, runtime)?,
            clock,
            host,
        })
    }

    /// The packs behind the gate.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// A new connection's id.
    pub fn new_connection(&self) -> String {
        self.clock.new_id("con")
    }

    /// Lets one call through, or refuses it. Either way the ledger gets its row.
    pub async fn call(&self, call: Call) -> Result<Outcome, UnknownTool> {
        let Some(tool) = self.catalog.find(&call.tool) else {
            return Err(UnknownTool {
                nearest: self.catalog.nearest(&call.tool).map(str::to_owned),
                name: call.tool,
            });
        };
        // Without a connection that lasts there is nothing to remember, and nobody to forget it.
        let connection = call.caller.stateful.then(|| call.caller.connection.clone());
        let (draft, admitted) = self.admit(tool, call);
        let op_id = draft.operation.op_id.clone();
        let envelope_id = draft.operation.envelope_id.clone();
        let started = draft.started;
        let settled = match admitted {
            Err(refusal) => self.lanes.refuse(draft, refusal).await,
            Ok(guest) => match tool.spec.effect {
                Effect::Read => self.lanes.read(guest, draft).await,
                Effect::Write => self.lanes.write(guest, draft).await,
                Effect::Run => self.lanes.run(guest, draft).await,
            },
        };
        if let Some(connection) = connection {
            self.follow_envelopes(tool, &connection, &settled);
        }
        Ok(Outcome {
            op_id,
            result: settled.result,
            duration: started.elapsed(),
            envelope_id,
            standing: settled.standing,
            mutation: settled.mutation,
        })
    }

    /// Marks what a connection left open as interrupted, now that it is over.
    pub async fn end_connection(&self, connection: &str) {
        self.connections.ended(connection);
        self.lanes.interrupt(connection).await;
    }

    /// Waits until every row that was queued is on disk. For the end of the process.
    pub async fn flush(&self) {
        self.lanes.flush().await;
    }

    /// Remembers which envelope a connection opened or closed.
    fn follow_envelopes(&self, tool: &ToolEntry, connection: &str, settled: &Settled) {
        let (Body::Core(_), Ok(reply)) = (&tool.body, &settled.result) else {
            return;
        };
        let id = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        match tool.spec.name.as_str() {
            "envelope_open" => {
                if let Some(id) = id(reply.structured.get("id")) {
                    self.connections.opened(connection, &id);
                }
            }
            "envelope_close" => {
                if let Some(id) = id(reply
                    .structured
                    .get("envelope")
                    .and_then(|envelope| envelope.get("id")))
                {
                    self.connections.closed(connection, &id);
                }
            }
            _ => {}
        }
    }

    /// Checks what can be checked before any guest runs.
    fn admit(&self, tool: &Arc<ToolEntry>, mut call: Call) -> (Draft, Result<GuestCall, ToolError>) {
        let correlated = admission::correlate(
            tool,
            &mut call.arguments,
            call.envelope.take(),
            &call.caller,
            &self.connections,
            self.settings.require,
        );
        let arguments = arguments::normalised(tool, call.arguments);
        let text = arguments::text(&arguments);
        let envelope = correlated.as_ref().ok().cloned().flatten();
        let draft = self.draft(tool, &arguments, &call.caller, envelope);
        let checked = correlated.and_then(|_| arguments::check(tool, &arguments, &text, &call.malformed));
        if let Err(refusal) = checked {
            return (draft, Err(refusal));
        }
        let (limits, config) = match &tool.body {
            Body::Guest(pack) => (pack.limits.clone(), pack.config.clone()),
            Body::Core(_) => (Limits::default(), String::new()),
        };
        let guest = GuestCall {
            body: tool.body.clone(),
            tool: tool.spec.name.clone(),
            arguments: text,
            context: Context {
                op_id: draft.operation.op_id.clone(),
                envelope_id: draft.operation.envelope_id.clone(),
                identity: call.caller.identity,
                client: call.caller.client,
                config,
            },
            connection: call.caller.connection,
            time: match tool.spec.effect {
                Effect::Read => limits.read,
                Effect::Write => limits.write,
                Effect::Run => limits.run,
            },
            effect: tool.spec.effect,
            cancel: call.cancel,
            progress: call.progress,
        };
        (draft, Ok(guest))
    }

    fn draft(
        &self,
        tool: &ToolEntry,
        arguments: &Value,
        caller: &Caller,
        envelope_id: Option<String>,
    ) -> Draft {
        let claimed = arguments.get("actor").and_then(Value::as_str);
        let claimed = claimed.map(|actor| crate::text::clean(crate::text::cut(actor, 200)));
        Draft {
            started: Instant::now(),
            charge: admission::charge(tool),
            operation: Operation {
                op_id: self.clock.new_id("op"),
                envelope_id,
                timestamp: Timestamp::from_ms(self.clock.now_ms()).to_string(),
                duration_ms: 0.0,
                op_type: admission::op_type(tool),
                success: None,
                pack: tool.pack_name().to_owned(),
                tool: tool.spec.name.clone(),
                effect: tool.spec.effect,
                error_code: None,
                failure_class: None,
                limit_triggered: None,
                actor: caller.identity.clone().or(claimed),
                client: caller.client.clone(),
                connection: caller.connection.clone(),
                request_id: caller.request_id.clone(),
                host_id: self.host.id().to_owned(),
                args_hash: hash::sha256_hex(hash::canonical(arguments).as_bytes()),
                result_hash: None,
                repo_before_hash: None,
                repo_after_hash: None,
                changed_paths: None,
                diff_stats: None,
                short_diff: None,
                mutation_fingerprint: None,
                failure_fingerprint: None,
                failing_tests: None,
                events: None,
                verdicts: None,
                artifact_ids: None,
            },
        }
    }
}

/// The row of a call whose end is not known yet.
#[derive(Debug, Clone)]
struct Draft {
    started: Instant,
    charge: Charge,
    operation: Operation,
}

impl Draft {
    /// The row, now that the end is known.
    fn settle(&self, settled: &Settled) -> Operation {
        let mut operation = self.operation.clone();
        operation.duration_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        operation.success = Some(settled.result.is_ok());
        operation.limit_triggered = settled
            .limit
            .filter(|limit| limit.is_limit())
            .map(|limit| limit.code().to_owned());
        if let Some(mutation) = &settled.mutation {
            operation.mutation_fingerprint = Some(mutation.fingerprint.clone());
            operation.changed_paths = serde_json::to_string(&mutation.changed).ok();
        }
        match &settled.result {
            Ok(reply) => operation.result_hash = Some(hash::sha256_hex(reply.json.as_bytes())),
            Err(err) => {
                operation.error_code = Some(err.code.clone());
                operation.failure_class = Some(failure_class(&err.code).to_owned());
            }
        }
        operation
    }
}

/// What kind of failure a code is.
fn failure_class(code: &str) -> &'static str {
    match code {
        "DEADLINE_EXCEEDED" => "timeout",
        "CANCELLED" => "cancelled",
        "GUEST_TRAPPED" | "MEMORY_LIMIT" | "TABLE_LIMIT" | "STACK_OVERFLOW" | "BAD_REPLY" => "trap",
        "HOST_FAILED" | "HOST_STOPPING" | "STORAGE_FAILED" | "STORAGE_FULL" | "STORAGE_BUSY" => "host",
        "INVALID_ARGUMENTS"
        | "MALFORMED_ARGUMENTS"
        | "ARGUMENTS_TOO_LARGE"
        | "ARGUMENTS_TOO_DEEP"
        | "ENVELOPE_REQUIRED"
        | "ENVELOPE_CONFLICT"
        | "ENVELOPE_CLOSED"
        | "UNKNOWN_ENVELOPE"
        | "MUTATION_BUDGET_EXHAUSTED"
        | "TEST_BUDGET_EXHAUSTED"
        | "DURATION_EXCEEDED" => "refused",
        _ => "tool_error",
    }
}
