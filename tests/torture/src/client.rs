//! The client of one host: keeps random calls in flight until the host is gone.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::time::Instant;

use anyhow::Context as _;
use fastrand::Rng;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::known::{Acknowledged, Known, Outcome, Shared, Told};
use crate::load::{ALL, ENVELOPE, Kind, Load, Request};
use crate::place::hex;
use crate::promise::{Broken, Promise};
use crate::task;

/// Maximum calls in flight.
const IN_FLIGHT: usize = 12;
/// Error codes of internal failures of the host. No request of a client may cause one.
const FAILURES: [&str; 10] = [
    "HOST_FAILED",
    "HOST_STOPPING",
    "STORAGE_FAILED",
    "STORAGE_FULL",
    "STORAGE_BUSY",
    UNREACHABLE,
    UNKNOWN,
    "GUEST_TRAPPED",
    "BAD_REPLY",
    "MEMORY_LIMIT",
];

/// Error codes of calls that the database's server did not answer. An outage excuses them.
const UNREACHABLE: &str = "STORAGE_UNREACHABLE";
const UNKNOWN: &str = "OUTCOME_UNKNOWN";

/// A connection after its handshake.
pub(crate) struct Client {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    random: Rng,
    next_id: u64,
    waiting: HashMap<u64, (Waiting, Instant)>,
    /// True for a client of the newest era, which supports tasks and makes its calls without a session.
    has_tasks: bool,
}

/// A request without a reply.
enum Waiting {
    Call(&'static dyn Load, Request),
    /// A request for the task with this id.
    Task(String),
}

/// One of this many requests of clients with tasks asks for a task.
const LOOKS: u8 = 12;

impl Client {
    /// Starts a session. `None` if the host was killed before.
    pub(crate) fn begin(
        input: ChildStdin,
        output: ChildStdout,
        mut random: Rng,
    ) -> anyhow::Result<Option<Client>> {
        let has_tasks = random.bool();
        Client::begin_as(input, output, random, has_tasks)
    }

    /// Starts a session of a client with or without tasks.
    pub(crate) fn begin_as(
        input: ChildStdin,
        output: ChildStdout,
        random: Rng,
        has_tasks: bool,
    ) -> anyhow::Result<Option<Client>> {
        let mut client = Client {
            input,
            output: BufReader::new(output),
            random,
            next_id: 1,
            waiting: HashMap::new(),
            has_tasks,
        };
        if has_tasks {
            let params = with_meta(json!({}));
            let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": params});
            let is_there = client.send(&hello) && client.receive()?.is_some();
            return Ok(is_there.then_some(client));
        }
        let about = json!({"name": "torture", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        if !client.send(&hello) || client.receive()?.is_none() {
            return Ok(None);
        }
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        Ok(client.send(&ready).then_some(client))
    }

    /// Makes calls until the host is gone. Once the host is `stopping`, makes no new calls, and ends the session after
    /// the last reply.
    pub(crate) fn run(mut self, shared: &Shared, stopping: &dyn Fn() -> bool) -> anyhow::Result<()> {
        loop {
            let wanted = if stopping() {
                0
            } else {
                self.random.usize(1..=IN_FLIGHT)
            };
            while self.waiting.len() < wanted {
                if !self.call(shared) {
                    break;
                }
            }
            if self.waiting.is_empty() {
                return Ok(());
            }
            let Some(reply) = self.receive()? else {
                return Ok(());
            };
            self.acknowledge(&reply, shared)?;
        }
    }

    /// Requests every known thing, makes the last calls, and ends the session. Things that are missing or older than
    /// acknowledged are recorded as broken.
    pub(crate) fn ask(mut self, shared: &Shared, last: Vec<Request>) -> anyhow::Result<()> {
        let things = shared.known().all();
        let ask = |thing| ALL.iter().find_map(|load| Some((*load, load.ask(thing)?)));
        let asked: Vec<(&'static dyn Load, Request)> = things.iter().filter_map(ask).collect();
        for (load, request) in asked
            .into_iter()
            .chain(last.into_iter().map(|last| (ALL[0], last)))
        {
            let answered = self.request(load, request);
            let reply = self.receive()?.filter(|_| answered);
            let reply = reply.context("a host ended while it was asked")?;
            self.acknowledge(&reply, shared)?;
        }
        let tasks: Vec<String> = shared.known().tasks.iter().map(|task| task.id.clone()).collect();
        for id in tasks {
            let reply = match self.look(id) {
                true => self.receive()?,
                false => None,
            };
            let reply = reply.context("a host ended while it was asked for a task")?;
            self.acknowledge(&reply, shared)?;
        }
        Ok(())
    }

    /// Asks for a task. False if the host is gone.
    fn look(&mut self, task: String) -> bool {
        let params = with_meta(json!({ "taskId": task }));
        self.ask_for("tasks/get", params, Waiting::Task(task))
    }

    fn call(&mut self, shared: &Shared) -> bool {
        if self.has_tasks && self.random.u8(..LOOKS) == 0 {
            let task = shared.known().any_task(&mut self.random);
            if let Some(task) = task {
                return self.look(task);
            }
        }
        let load = ALL[self.random.usize(..ALL.len())];
        let request = {
            let known = shared.known();
            let mut request = load.next(&mut self.random, &known);
            if request.kind == Kind::Write
                && self.random.bool()
                && let Some(envelope) = known.any(ENVELOPE, &mut self.random)
            {
                request.arguments["envelope_id"] = envelope.id.into();
            }
            request
        };
        self.request(load, request)
    }

    /// Sends a request. False if the host is gone.
    fn request(&mut self, load: &'static dyn Load, request: Request) -> bool {
        let mut params = json!({"name": request.tool, "arguments": request.arguments});
        if self.has_tasks {
            params = with_meta(params);
        }
        self.ask_for("tools/call", params, Waiting::Call(load, request))
    }

    fn ask_for(&mut self, method: &str, params: Value, waiting: Waiting) -> bool {
        let id = self.next_id;
        self.next_id += 1;
        self.waiting.insert(id, (waiting, Instant::now()));
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// Records the promise of a reply.
    fn acknowledge(&mut self, reply: &Value, shared: &Shared) -> anyhow::Result<()> {
        let id = reply["id"].as_u64();
        let (waiting, sent) = id
            .and_then(|id| self.waiting.remove(&id))
            .with_context(|| format!("a reply that nobody waits for: {reply}"))?;
        let mut known = shared.known();
        let is_excused = known.outage.excuses(sent);
        let (load, request) = match waiting {
            Waiting::Call(load, request) => (load, request),
            Waiting::Task(task) => {
                let code = reply["error"]["data"]["error"]["code"].as_str();
                if is_excused && code == Some(UNREACHABLE) {
                    known.unreached += 1;
                    return Ok(());
                }
                task::seen(&task, reply, &mut known);
                return Ok(());
            }
        };
        let result = &reply["result"];
        if result["resultType"] == "task" {
            task::begun(request.tool, reply, &mut known);
            return Ok(());
        }
        let body = &result["structuredContent"];
        let Some(op_id) = result["_meta"]["tollgate/op_id"].as_str() else {
            let what = format!("{} was answered without an operation: {reply}", request.tool);
            known.broken.push(Broken::new(Promise::Serving, what));
            return Ok(());
        };
        let outcome = match body["error"]["code"]
            .as_str()
            .filter(|_| result["isError"] == true)
        {
            None => {
                learn(&request, load.told(&request, body), &mut known);
                if body["stale"] == true {
                    let what = format!("{} could not write files: {}", request.tool, body["warnings"]);
                    known.broken.push(Broken::new(Promise::Serving, what));
                }
                Outcome::Done(hash(request.tool, body))
            }
            Some(UNKNOWN) if is_excused => {
                known.unknown += 1;
                Outcome::Unknown
            }
            Some(UNREACHABLE) if is_excused => {
                known.unreached += 1;
                Outcome::Unreached
            }
            Some(code) => {
                let said = format!("{} was answered {}", request.tool, body["error"]);
                let is_lost = request.about.is_some() && load.lost(code);
                if is_lost || code == "UNKNOWN_ENVELOPE" {
                    known.broken.push(Broken::new(Promise::Visible, said));
                } else if FAILURES.contains(&code) {
                    known.broken.push(Broken::new(Promise::Serving, said));
                }
                Outcome::Refused(code.to_owned())
            }
        };
        // A host that cannot record a refusal still refuses.
        let is_refused_meanwhile = is_excused && matches!(outcome, Outcome::Refused(_));
        known.replies.push(Acknowledged {
            op_id: op_id.to_owned(),
            tool: request.tool.to_owned(),
            may_miss: request.kind == Kind::Read || is_refused_meanwhile,
            outcome,
        });
        Ok(())
    }

    /// Sends a message. False if the host no longer reads.
    fn send(&mut self, message: &Value) -> bool {
        self.input.write_all(format!("{message}\n").as_bytes()).is_ok()
    }

    /// The next message. `None` once the host is gone; an incomplete line is not a message.
    fn receive(&mut self) -> anyhow::Result<Option<Value>> {
        let mut line = Vec::new();
        let read = self.output.read_until(b'\n', &mut line);
        if read.is_err() || line.pop() != Some(b'\n') {
            return Ok(None);
        }
        let message = serde_json::from_slice(&line);
        message
            .map(Some)
            .with_context(|| format!("the host wrote {}", String::from_utf8_lossy(&line)))
    }
}

/// Parameters of a stateless request from a client with tasks.
fn with_meta(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "torture", "version": env!("CARGO_PKG_VERSION")},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    });
    params
}

/// Records the things in a reply, unless one is older than acknowledged before the call.
fn learn(request: &Request, told: Vec<Told>, known: &mut Known) {
    if let Some(about) = &request.about {
        let now = told.iter().filter(|told| told.is(about)).map(|told| told.version);
        let now = now.max();
        if now.map_or(request.tells, |now| now < about.version) {
            let what = format!(
                "{} tells of {} {} as of {now:?}, and {} was acknowledged before",
                request.tool, about.kind, about.id, about.version
            );
            known.broken.push(Broken::new(Promise::Visible, what));
        }
    }
    for told in told {
        known.learn(told);
    }
}

/// Hash of a reply, as the ledger has it.
pub(crate) fn hash(tool: &str, reply: &Value) -> String {
    hex(&Sha256::digest(recorded(tool, reply).to_string()))
}

/// Reply as the ledger hashes it, without the remaining limits of the envelope that the host adds.
fn recorded(tool: &str, reply: &Value) -> Value {
    let mut reply = reply.clone();
    if let Some(members) = reply.as_object_mut().filter(|_| !tool.starts_with("envelope_")) {
        members.remove("left");
    }
    reply
}
