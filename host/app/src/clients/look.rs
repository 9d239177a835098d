//! Check of what a client would see: starts an entry as the client does, and lists the tools.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use ureq::tls::{RootCerts, TlsConfig};

use super::{Entry, Server, Token};

/// Variables that clients pass to the programs that they start, as in the official SDKs.
const INHERITED_VARIABLES: [&str; 6] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
const PROTOCOL_VERSION: &str = "2025-11-25";
/// Time for a server to end after its client disconnected.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes of a reply, and of a program's standard error.
const REPLY_LIMIT: u64 = 16 << 20;
const STDERR_LIMIT: u64 = 4 << 10;
/// Maximum pages of a list of tools.
const PAGE_LIMIT: usize = 100;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Number of listed tools.
    pub tools: usize,
    /// Time until the tools were listed.
    pub took: Duration,
}

/// Reason why the tools could not be listed.
#[derive(Debug, Error)]
pub enum LookError {
    /// The program cannot be started.
    #[error("cannot start {command}")]
    NotStarted {
        /// Program.
        command: String,
        #[source]
        source: std::io::Error,
    },
    /// The program ended, or closed its output.
    #[error("{command} ended before it answered{said}")]
    Ended {
        /// Program.
        command: String,
        /// Standard error of the program.
        said: String,
    },
    /// No answer arrived in time.
    #[error("no answer within {seconds} s, the time limit of this client")]
    TooLate {
        /// Timeout of the client, in seconds.
        seconds: u64,
    },
    /// The answer is not valid MCP.
    #[error("the answer to {method} is malformed: {answer}")]
    Answer {
        /// Method of the request.
        method: &'static str,
        /// Answer.
        answer: String,
    },
    /// The server was not reached.
    #[error("cannot reach {url}; `tollgate serve` must run there: {why}")]
    NotReached {
        /// Address.
        url: String,
        /// Fault.
        why: String,
    },
    /// The server requires a token.
    #[error("{url} answers {status}: {remedy}")]
    Refused {
        /// Address.
        url: String,
        /// HTTP status.
        status: u16,
        /// Remedy.
        remedy: String,
    },
    /// The variable for the token is not set.
    #[error("the environment variable {0} is not set here; set the variable where the client is started")]
    NoVariable(String),
    /// The file with the token cannot be read.
    #[error("cannot read the token file {0}")]
    NoFile(String),
    /// Only the client knows the token.
    #[error("the client asks its user for the token, so Tollgate cannot check it")]
    Asked,
}

/// Starts an entry, or connects to its address, and lists the tools.
pub async fn look(entry: &Entry, variable: impl Fn(&str) -> Option<String>) -> Result<Seen, LookError> {
    let started = Instant::now();
    let limit = Duration::from_secs(entry.start_sec);
    let tools = match &entry.server {
        Server::Stdio { command, args } => {
            let mut program = Program::start(command, args, &entry.env, &variable)?;
            let looked = timeout(limit, program.tools()).await;
            let said = program.stop().await;
            match looked {
                Err(_) => Err(LookError::TooLate {
                    seconds: entry.start_sec,
                }),
                Ok(Err(LookError::Ended { command, .. })) => Err(LookError::Ended { command, said }),
                Ok(looked) => looked,
            }
        }
        Server::Http { url, token } => {
            let token = token
                .as_ref()
                .map(|token| value_of(token, &variable))
                .transpose()?;
            let url = url.clone();
            let asked = tokio::task::spawn_blocking(move || Connection::new(url, token, limit).tools());
            asked.await.unwrap_or_else(|err| {
                Err(LookError::Answer {
                    method: "initialize",
                    answer: err.to_string(),
                })
            })
        }
    }?;
    Ok(Seen {
        tools,
        took: started.elapsed(),
    })
}

fn value_of(token: &Token, variable: impl Fn(&str) -> Option<String>) -> Result<String, LookError> {
    match token {
        Token::Variable(name) => variable(name).ok_or_else(|| LookError::NoVariable(name.clone())),
        Token::Literal(token) => Ok(token.clone()),
        Token::Asked => Err(LookError::Asked),
        #[allow(
            clippy::disallowed_methods,
            reason = "the entry names the file, for its client to read"
        )]
        Token::File(file) => std::fs::read_to_string(file)
            .map(|text| text.trim().to_owned())
            .map_err(|_| LookError::NoFile(file.clone())),
    }
}

fn initialize() -> Value {
    let client = json!({ "name": "tollgate-clients-check", "version": env!("CARGO_PKG_VERSION") });
    json!({ "protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client })
}

fn request(id: usize, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

fn page(cursor: Option<&Value>) -> Value {
    cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }))
}

fn result(method: &'static str, reply: &Value) -> Result<Value, LookError> {
    let answer = || LookError::Answer {
        method,
        answer: tollgate_core::text::cut(&reply.to_string(), 300).to_owned(),
    };
    reply.get("result").cloned().ok_or_else(answer)
}

/// Tools on a page, and the cursor of the next one.
fn listed(reply: &Value) -> Result<(usize, Option<Value>), LookError> {
    let page = result("tools/list", reply)?;
    let tools = page["tools"].as_array().map_or(0, Vec::len);
    Ok((
        tools,
        page.get("nextCursor")
            .filter(|cursor| cursor.is_string())
            .cloned(),
    ))
}

/// A program started in the way that clients do.
struct Program {
    command: String,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: tokio::task::JoinHandle<String>,
}

impl Program {
    fn start(
        command: &str,
        args: &[String],
        env: &[(String, String)],
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Program, LookError> {
        let not_started = |source| LookError::NotStarted {
            command: command.to_owned(),
            source,
        };
        let inherited = INHERITED_VARIABLES
            .iter()
            .filter_map(|name| Some((*name, variable(name)?)));
        let mut child = Command::new(command)
            .args(args)
            .env_clear()
            .envs(inherited)
            .envs(env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(not_started)?;
        let gone = || not_started(std::io::ErrorKind::BrokenPipe.into());
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().ok_or_else(gone)?);
        let mut stderr = child.stderr.take().ok_or_else(gone)?;
        let stderr = tokio::spawn(async move {
            let mut said = Vec::new();
            let _ = (&mut stderr).take(STDERR_LIMIT).read_to_end(&mut said).await;
            // A program with a full standard error would block.
            let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            String::from_utf8_lossy(&said).into_owned()
        });
        Ok(Program {
            command: command.to_owned(),
            child,
            stdin,
            stdout,
            stderr,
        })
    }

    async fn tools(&mut self) -> Result<usize, LookError> {
        result("initialize", &self.ask(1, "initialize", &initialize()).await?)?;
        self.send(&initialized()).await?;
        let (mut tools, mut cursor) = (0, None);
        for id in 2..2 + PAGE_LIMIT {
            let (more, next) = listed(&self.ask(id, "tools/list", &page(cursor.as_ref())).await?)?;
            tools += more;
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        Ok(tools)
    }

    async fn ask(&mut self, id: usize, method: &str, params: &Value) -> Result<Value, LookError> {
        self.send(&request(id, method, params)).await?;
        loop {
            let mut line = Vec::new();
            let read = (&mut self.stdout)
                .take(REPLY_LIMIT)
                .read_until(b'\n', &mut line)
                .await;
            if !read.is_ok_and(|read| read > 0) {
                return Err(self.ended());
            }
            // Notifications and requests of the server can come in between.
            let message: Value = serde_json::from_slice(&line).unwrap_or_default();
            if message["id"] == json!(id) && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), LookError> {
        let line = format!("{message}\n");
        let Some(stdin) = &mut self.stdin else {
            return Err(self.ended());
        };
        let sent = match stdin.write_all(line.as_bytes()).await {
            Ok(()) => stdin.flush().await,
            failed => failed,
        };
        sent.map_err(|_| self.ended())
    }

    fn ended(&self) -> LookError {
        LookError::Ended {
            command: self.command.clone(),
            said: String::new(),
        }
    }

    /// Disconnects as clients do: closes the input, and lets the program end. Returns its standard error.
    async fn stop(mut self) -> String {
        drop(self.stdin.take());
        if timeout(STOP_TIMEOUT, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
        let said = timeout(Duration::from_secs(1), self.stderr).await;
        let said = said.ok().and_then(Result::ok).unwrap_or_default();
        match said.trim() {
            "" => String::new(),
            said => format!(": {said}"),
        }
    }
}

/// A connection to a running server.
struct Connection {
    agent: ureq::Agent,
    url: String,
    token: Option<String>,
    session: Option<String>,
}

impl Connection {
    fn new(url: String, token: Option<String>, limit: Duration) -> Connection {
        // Fails if the same provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let trust = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier);
        let agent = ureq::Agent::config_builder()
            .tls_config(trust.build())
            .max_redirects(0)
            .http_status_as_error(false)
            .timeout_global(Some(limit))
            .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Connection {
            agent,
            url,
            token,
            session: None,
        }
    }

    fn tools(mut self) -> Result<usize, LookError> {
        result(
            "initialize",
            &self.post("initialize", &request(1, "initialize", &initialize()))?,
        )?;
        self.post("notifications/initialized", &initialized())?;
        let (mut tools, mut cursor) = (0, None);
        for id in 2..2 + PAGE_LIMIT {
            let asked = request(id, "tools/list", &page(cursor.as_ref()));
            let (more, next) = listed(&self.post("tools/list", &asked)?)?;
            tools += more;
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        self.leave();
        Ok(tools)
    }

    fn post(&mut self, method: &'static str, message: &Value) -> Result<Value, LookError> {
        let mut asked = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(token) = &self.token {
            asked = asked.header("authorization", format!("Bearer {token}"));
        }
        if let Some(session) = &self.session {
            asked = asked
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", PROTOCOL_VERSION);
        }
        let not_reached = |why: ureq::Error| LookError::NotReached {
            url: self.url.clone(),
            why: why.to_string(),
        };
        let mut answer = asked.send(message.to_string()).map_err(not_reached)?;
        let status = answer.status();
        if !status.is_success() {
            return Err(self.refused(status.as_u16()));
        }
        let session = answer
            .headers()
            .get("mcp-session-id")
            .and_then(|id| id.to_str().ok())
            .map(str::to_owned);
        let body = answer
            .body_mut()
            .with_config()
            .limit(REPLY_LIMIT)
            .read_to_string()
            .map_err(not_reached)?;
        self.session = session.or(self.session.take());
        let Some(id) = message.get("id") else {
            return Ok(Value::Null);
        };
        let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let messages = std::iter::once(body.as_str()).chain(events);
        let mut messages = messages.filter_map(|text| serde_json::from_str::<Value>(text.trim()).ok());
        messages
            .find(|message| message["id"] == *id)
            .ok_or_else(|| LookError::Answer {
                method,
                answer: tollgate_core::text::cut(&body, 300).to_owned(),
            })
    }

    fn refused(&self, status: u16) -> LookError {
        let remedy = match (status, &self.token) {
            (401, None) => "the server requires a token; add the client again with --bearer-env NAME --force",
            (401 | 403, Some(_)) => "the server does not accept this token",
            (403, None) => "the server does not accept this host name; add the name to server.allowed_hosts",
            _ => "this is not the MCP address of a Tollgate server, which ends in /mcp",
        };
        LookError::Refused {
            url: self.url.clone(),
            status,
            remedy: remedy.to_owned(),
        }
    }

    /// Ends the session. A server without sessions ignores this.
    fn leave(&self) {
        let Some(session) = &self.session else { return };
        let mut asked = self.agent.delete(&self.url).header("mcp-session-id", session);
        if let Some(token) = &self.token {
            asked = asked.header("authorization", format!("Bearer {token}"));
        }
        let _ = asked.call();
    }
}
