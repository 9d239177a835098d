//! A minimal client, so that its own cost does not affect the figures.
//!
//! The client writes lines of JSON-RPC into a child process's pipe and keeps a number of calls in flight. It reads each
//! reply just far enough to match its id and to check that it is not a refusal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::workload::{Request, Tools};

/// Protocol version of the client.
const PROTOCOL: &str = "2025-11-25";
/// Size of the read buffer, in bytes.
const BUFFER: usize = 256 << 10;

/// A server in a child process, and the session with it.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    next_id: usize,
    notes: usize,
}

/// The fields of a reply that the client reads.
#[derive(Deserialize)]
struct Reply {
    id: Option<usize>,
    result: Option<Outcome>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct ListReply {
    id: usize,
    result: ListPage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListPage {
    tools: Vec<IgnoredAny>,
    next_cursor: Option<String>,
}

impl Client {
    /// Starts a server and begins a session.
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Client> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("{command:?} could not be started"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut client = Client {
            child,
            input,
            output: BufReader::with_capacity(BUFFER, output.context("the server has no output")?),
            line: Vec::new(),
            next_id: 0,
            notes: 0,
        };
        let about = json!({"name": "tollgate-bench", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about});
        client.request("initialize", params)?;
        client.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        Ok(client)
    }

    /// Lists the tools and returns their number.
    pub(crate) fn list_tools(&mut self) -> anyhow::Result<usize> {
        let listed = self.request("tools/list", json!({}))?;
        listed
            .pointer("/tools")
            .and_then(Value::as_array)
            .map(Vec::len)
            .context("no tools were listed")
    }

    /// Lists all pages and returns the number of tools and of bytes. Definitions of tools are not parsed, because
    /// parsing would count as the server's time.
    pub(crate) fn list_all(&mut self) -> anyhow::Result<(usize, usize)> {
        let (mut tools, mut bytes, mut params) = (0, 0, json!({}));
        loop {
            let id = self.take_id();
            let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params});
            self.send(format!("{request}\n").as_bytes())?;
            self.read_line()?;
            let page: ListReply = serde_json::from_slice(&self.line).context("no tools were listed")?;
            anyhow::ensure!(page.id == id, "another reply came than that to the list");
            bytes += self.line.len();
            tools += page.result.tools.len();
            match page.result.next_cursor {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok((tools, bytes)),
            }
        }
    }

    /// Makes calls with `in_flight` of them at a time, and returns the total duration.
    pub(crate) fn run(&mut self, requests: &[Request], in_flight: usize) -> anyhow::Result<Duration> {
        let first = self.next_id;
        let lines: Vec<Vec<u8>> = requests.iter().map(|request| self.call_line(request)).collect();
        let mut open = vec![true; lines.len()];
        let started = Instant::now();
        let mut left = lines.iter();
        let mut ready: Vec<&[u8]> = left.by_ref().take(in_flight).map(Vec::as_slice).collect();
        let mut awaited = 0;
        for _ in &lines {
            // Replies that have already arrived are read before anything is sent, so that sending wakes the server once
            // for several calls, as it would with many clients. If no call is in flight, the data is a notification,
            // and no reply will follow.
            if !ready.is_empty() && (awaited == 0 || !self.output.buffer().contains(&b'\n')) {
                self.send(&ready.concat())?;
                awaited += ready.len();
                ready.clear();
            }
            let id = self.read_outcome()?;
            awaited -= 1;
            let expected = id.checked_sub(first).and_then(|index| open.get_mut(index));
            anyhow::ensure!(
                expected.is_some_and(std::mem::take),
                "a reply to {id}, which is not open"
            );
            ready.extend(left.next().map(Vec::as_slice));
        }
        Ok(started.elapsed())
    }

    /// Makes a call without waiting for its reply.
    pub(crate) fn begin(&mut self, request: &Request) -> anyhow::Result<()> {
        let line = self.call_line(request);
        self.send(&line)
    }

    /// Number of notifications between replies.
    pub(crate) fn notes(&self) -> usize {
        self.notes
    }

    /// The process id of the server.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends the session and waits for the server's exit.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.input = None;
        let status = self.child.wait().context("the server cannot be waited for")?;
        anyhow::ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }

    fn request(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.take_id();
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(format!("{request}\n").as_bytes())?;
        loop {
            self.read_line()?;
            let mut reply: Value = serde_json::from_slice(&self.line).context("the server wrote no JSON")?;
            if reply.get("id") == Some(&json!(id)) {
                return match reply.get_mut("result") {
                    Some(result) => Ok(result.take()),
                    None => Err(anyhow::anyhow!("{method} failed: {reply}")),
                };
            }
        }
    }

    fn call_line(&mut self, request: &Request) -> Vec<u8> {
        let params = json!({"name": request.tool, "arguments": request.arguments});
        let id = self.take_id();
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        format!("{call}\n").into_bytes()
    }

    /// Reads up to the next reply, and returns its id.
    fn read_outcome(&mut self) -> anyhow::Result<usize> {
        loop {
            self.read_line()?;
            let reply: Reply = serde_json::from_slice(&self.line).context("the server wrote no reply")?;
            let failed = reply.error.is_some() || reply.result.is_some_and(|outcome| outcome.is_error);
            anyhow::ensure!(!failed, "a call failed: {}", String::from_utf8_lossy(&self.line));
            match reply.id {
                Some(id) => return Ok(id),
                None => self.notes += 1,
            }
        }
    }

    fn read_line(&mut self) -> anyhow::Result<()> {
        self.line.clear();
        let read = self
            .output
            .read_until(b'\n', &mut self.line)
            .context("the server cannot be read")?;
        anyhow::ensure!(read > 0, "the server closed its output");
        Ok(())
    }

    fn send(&mut self, lines: &[u8]) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("the session has ended")?;
        input.write_all(lines).context("the server does not read")
    }

    fn take_id(&mut self) -> usize {
        self.next_id += 1;
        self.next_id - 1
    }
}

impl Tools for Client {
    fn call(&mut self, request: &Request) -> anyhow::Result<Value> {
        let params = json!({"name": request.tool, "arguments": request.arguments});
        let mut result = self.request("tools/call", params)?;
        anyhow::ensure!(
            result.get("isError") != Some(&json!(true)),
            "{} failed: {result}",
            request.tool
        );
        Ok(result
            .get_mut("structuredContent")
            .map(Value::take)
            .unwrap_or_default())
    }
}

impl Drop for Client {
    /// Kills the server if the bench fails.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
