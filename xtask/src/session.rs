//! A server over standard input and output, as a client uses it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use crate::run::run;

/// Timeout for each answer and for the end. A first start compiles components.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(3);

/// A way to end a session.
#[derive(Debug)]
pub(crate) enum End {
    /// The client closes the server's standard input.
    OfInput,
    /// A supervisor sends a signal.
    Signal(&'static str),
}

/// A server that has answered.
pub(crate) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Number of listed tools.
    pub(crate) tools: usize,
}

impl Session {
    /// Starts a server, initialises a session and lists the tools.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Session> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let output = child.stdout.take().context("the server has no standard output")?;
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        let mut session = Session {
            child,
            input,
            lines,
            tools: 0,
        };
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "xtask", "version": "1"}}});
        let greeted = session.request(&initialize)?;
        ensure!(
            greeted["result"]["serverInfo"]["name"] == "tollgate",
            "the server answers {greeted}"
        );
        session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let listed = session.request(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))?;
        session.tools = listed["result"]["tools"].as_array().map_or(0, Vec::len);
        Ok(session)
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("standard input is closed")?;
        writeln!(input, "{message}").context("the server stopped reading")
    }

    /// Sends a request and returns the answer.
    pub(crate) fn request(&mut self, request: &Value) -> anyhow::Result<Value> {
        self.send(request)?;
        loop {
            let line = self
                .lines
                .recv_timeout(ANSWER_TIMEOUT)
                .context("the server does not answer")?;
            let message: Value =
                serde_json::from_str(&line).with_context(|| format!("the server prints {line:?}"))?;
            if message["id"] == request["id"] {
                return Ok(message);
            }
        }
    }

    /// Ends the session and returns the exit status of the server. Its output must end as well, which shows that no
    /// process is left behind.
    pub(crate) fn end(mut self, end: &End) -> anyhow::Result<ExitStatus> {
        match end {
            End::OfInput => drop(self.input.take()),
            End::Signal(name) => run(Command::new("kill").args(["-s", name, &self.child.id().to_string()]))?,
        }
        loop {
            match self.lines.recv_timeout(ANSWER_TIMEOUT) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => bail!("the server still runs after {end:?}"),
            }
        }
        Ok(self.child.wait()?)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The process has already ended, unless a check failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
