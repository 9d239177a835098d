//! The gate: the one path that every call takes, whichever way it came in.
//!
//! `find tool → check arguments → run in its lane → ledger row → commit → reply`. A write and its
//! row commit together; a read's row follows on the writer's queue.

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
use crate::deadline::Cancel;
use crate::hash;
use crate::packs::{Catalog, Effect, ToolEntry};
use crate::sandbox::Sandbox;
use crate::sandbox::bindings::exports::tollgate::host::pack::Context;
use crate::storage::{Database, OpenError, Operation};

use guest::GuestCall;
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
    /// Who calls.
    pub caller: Caller,
    /// Lets the caller give up.
    pub cancel: Cancel,
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
}

/// A successful reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The structured result.
    pub structured: Map<String, Value>,
    /// The same as the component wrote it.
    pub json: String,
    /// What to show instead of the JSON.
    pub text: Option<String>,
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
    host_id: String,
    lanes: Lanes,
}

impl Gate {
    /// Opens the gate.
    pub fn open(
        catalog: Arc<Catalog>,
        sandbox: Arc<Sandbox>,
        database: &Database,
        clock: Arc<dyn Clock>,
    ) -> Result<Gate, OpenError> {
        Ok(Gate {
            catalog,
            host_id: clock.new_id("hst"),
            lanes: Lanes::open(database, &sandbox, &clock)?,
            clock,
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
        let started = Instant::now();
        let (draft, admitted) = self.admit(tool, call, started);
        let op_id = draft.operation.op_id.clone();
        let result = match admitted {
            Err(refusal) => self.lanes.refuse(draft, refusal).await,
            Ok(guest) => match tool.spec.effect {
                Effect::Read => self.lanes.read(guest, draft).await,
                Effect::Write => self.lanes.write(guest, draft).await,
                Effect::Run => self.lanes.run(guest, draft).await,
            },
        };
        Ok(Outcome {
            op_id,
            result,
            duration: started.elapsed(),
        })
    }

    /// Waits until every row that was queued is on disk. For the end of the process.
    pub async fn flush(&self) {
        self.lanes.flush().await;
    }

    /// Checks what can be checked before any guest runs.
    fn admit(
        &self,
        tool: &Arc<ToolEntry>,
        call: Call,
        started: Instant,
    ) -> (Draft, Result<GuestCall, ToolError>) {
        let arguments = arguments::normalised(tool, call.arguments);
        let text = arguments::text(&arguments);
        let draft = self.draft(tool, &arguments, &call.caller, started);
        if let Err(refusal) = arguments::check(tool, &arguments, &text, &call.malformed) {
            return (draft, Err(refusal));
        }
        let limits = &tool.pack.limits;
        let guest = GuestCall {
            pack: Arc::clone(&tool.pack),
            tool: tool.spec.name.clone(),
            arguments: text,
            context: Context {
                op_id: draft.operation.op_id.clone(),
                envelope_id: None,
                identity: call.caller.identity,
                client: call.caller.client,
                config: tool.pack.config.clone(),
            },
            time: match tool.spec.effect {
                Effect::Read => limits.read,
                Effect::Write => limits.write,
                Effect::Run => limits.run,
            },
            cancel: call.cancel,
        };
        (draft, Ok(guest))
    }

    fn draft(&self, tool: &ToolEntry, arguments: &Value, caller: &Caller, started: Instant) -> Draft {
        Draft {
            started,
            operation: Operation {
                op_id: self.clock.new_id("op"),
                at: Timestamp::from_ms(self.clock.now_ms()).to_string(),
                duration_us: 0,
                pack: tool.pack.manifest.name.clone(),
                tool: tool.spec.name.clone(),
                effect: tool.spec.effect,
                success: false,
                error_code: None,
                identity: caller.identity.clone(),
                client: caller.client.clone(),
                connection: caller.connection.clone(),
                request_id: caller.request_id.clone(),
                host_id: self.host_id.clone(),
                args_hash: hash::sha256_hex(hash::canonical(arguments).as_bytes()),
                result_hash: None,
            },
        }
    }
}

/// The row of a call whose end is not known yet.
#[derive(Debug, Clone)]
struct Draft {
    started: Instant,
    operation: Operation,
}

impl Draft {
    /// The row, now that the end is known.
    fn settle(&self, result: &Result<Reply, ToolError>) -> Operation {
        let mut operation = self.operation.clone();
        operation.duration_us = i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX);
        operation.success = result.is_ok();
        match result {
            Ok(reply) => operation.result_hash = Some(hash::sha256_hex(reply.json.as_bytes())),
            Err(err) => operation.error_code = Some(err.code.clone()),
        }
        operation
    }
}
