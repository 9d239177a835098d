//! A minimal client over HTTP: one connection, one request at a time. Of a reply, it reads only whether the call
//! succeeded.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::workload::{Request, Tools};

/// Protocol revision of the client, in which each request is independent.
const PROTOCOL: &str = "2026-07-28";
/// Method of calls.
const CALL: &str = "tools/call";

/// A server over HTTP in a child process.
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts a server, and waits until it prints its address.
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Server> {
        command.args(["--http", "127.0.0.1:0"]).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("{command:?} could not be started"))?;
        let mut said = BufReader::new(child.stderr.take().context("the server has no log")?);
        let mut line = String::new();
        let address = loop {
            line.clear();
            anyhow::ensure!(said.read_line(&mut line)? > 0, "the server ended");
            if let Some((_, url)) = line.split_once("http://") {
                break url.split('/').next().unwrap_or_default().trim().to_owned();
            }
        };
        // The output must be read, or a server with much output would block.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Ok(Server { child, address })
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Id of the process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// A connection with this token.
    pub(crate) fn connect(&self, token: &str) -> anyhow::Result<Connection> {
        let connection = TcpStream::connect(&self.address).context("the server cannot be reached")?;
        connection.set_nodelay(true)?;
        Ok(Connection {
            head: format!(
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 accept: application/json, text/event-stream\r\nauthorization: Bearer {token}\r\n\
                 mcp-protocol-version: {PROTOCOL}\r\n"
            ),
            capabilities: json!({}),
            stream: BufReader::new(connection),
            body: Vec::new(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One connection to a server.
pub(crate) struct Connection {
    head: String,
    capabilities: Value,
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
}

impl Connection {
    /// The same connection for a client with these capabilities.
    pub(crate) fn with(self, capabilities: Value) -> Connection {
        Connection { capabilities, ..self }
    }

    /// Result and duration of a request. A refused call has a result as well.
    pub(crate) fn ask(
        &mut self,
        method: &str,
        name: &str,
        params: Value,
    ) -> anyhow::Result<(Value, Duration)> {
        let message = self.message(method, params);
        let started = Instant::now();
        let status = self.exchange(method, name, &message)?;
        let took = started.elapsed();
        let mut answer = self.answer()?;
        let result = answer.get_mut("result").map(Value::take);
        let result = result.with_context(|| format!("{method} of {name} failed with {status}: {answer}"))?;
        Ok((result, took))
    }

    /// Duration of a call, which must succeed.
    pub(crate) fn time(&mut self, request: &Request) -> anyhow::Result<Duration> {
        let message = self.call_message(request);
        let started = Instant::now();
        let status = self.exchange(CALL, request.tool, &message)?;
        let took = started.elapsed();
        let failed = self.body.windows(14).any(|part| part == b"\"isError\":true");
        anyhow::ensure!(
            status == 200 && !failed,
            "{} failed with {status}: {}",
            request.tool,
            String::from_utf8_lossy(&self.body)
        );
        Ok(took)
    }

    /// Makes a call, and returns whether it succeeded.
    pub(crate) fn attempt(&mut self, request: &Request) -> anyhow::Result<bool> {
        let message = self.call_message(request);
        Ok(self.exchange(CALL, request.tool, &message)? == 200)
    }

    fn call_message(&self, request: &Request) -> String {
        let params = json!({"name": request.tool, "arguments": request.arguments});
        self.message(CALL, params)
    }

    fn message(&self, method: &str, mut params: Value) -> String {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": PROTOCOL,
            "io.modelcontextprotocol/clientInfo": {"name": "tollgate-bench", "version": env!("CARGO_PKG_VERSION")},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    }

    /// The last answer as JSON.
    fn answer(&self) -> anyhow::Result<Value> {
        let text = String::from_utf8_lossy(&self.body);
        let events = text
            .lines()
            .map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        let mut answers = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
        answers.next_back().context("the server wrote no JSON")
    }

    fn exchange(&mut self, method: &str, name: &str, message: &str) -> anyhow::Result<u16> {
        let (head, length) = (&self.head, message.len());
        let request = format!(
            "{head}mcp-method: {method}\r\nmcp-name: {name}\r\ncontent-length: {length}\r\n\r\n{message}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length, mut is_chunked) = (0, 0, false);
        let mut line = String::new();
        loop {
            line.clear();
            anyhow::ensure!(
                self.stream.read_line(&mut line)? > 0,
                "the server closed the connection"
            );
            let text = line.trim().to_ascii_lowercase();
            if text.is_empty() {
                break;
            }
            if let Some(rest) = text.strip_prefix("http/1.1 ") {
                status = rest
                    .get(..3)
                    .and_then(|code| code.parse().ok())
                    .unwrap_or_default();
            } else if let Some(rest) = text.strip_prefix("content-length:") {
                length = rest.trim().parse().context("a length that is none")?;
            } else if text == "transfer-encoding: chunked" {
                is_chunked = true;
            }
        }
        self.body.clear();
        if is_chunked {
            while self.chunk()? {}
        } else {
            self.take(length)?;
        }
        Ok(status)
    }

    fn chunk(&mut self) -> anyhow::Result<bool> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).context("a chunk without a length")?;
        self.take(length)?;
        line.clear();
        self.stream.read_line(&mut line)?;
        Ok(length > 0)
    }

    fn take(&mut self, length: usize) -> anyhow::Result<()> {
        let start = self.body.len();
        self.body.resize(start + length, 0);
        let rest = self.body.get_mut(start..).unwrap_or_default();
        self.stream.read_exact(rest).context("an answer broke off")
    }
}

impl Tools for Connection {
    fn call(&mut self, request: &Request) -> anyhow::Result<Value> {
        self.time(request)?;
        let mut answer = self.answer()?;
        let structured = answer.pointer_mut("/result/structuredContent");
        Ok(structured.map(Value::take).unwrap_or_default())
    }
}
