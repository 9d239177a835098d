//! The agent: an MCP client that knows only the balancer's address.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::http::{self, Answer};

/// Path of MCP.
const PATH: &str = "/mcp";
/// Header with which the balancer names the host that answered.
const HOST: &str = "tollgate-host";
/// Protocol version with stateless requests.
const NEWEST: &str = "2026-07-28";
/// Protocol version with sessions.
const OLDER: &str = "2025-11-25";

/// A client with its token.
#[derive(Debug)]
pub(super) struct Agent {
    balancer: SocketAddr,
    authorization: String,
    /// Number of requests so far, for unique ids.
    requests: AtomicU64,
}

/// Reply to a call.
#[derive(Debug)]
pub(super) struct Reply {
    /// Id of the call in the ledger.
    pub(super) op_id: String,
    /// Host that answered.
    pub(super) host: String,
    pub(super) content: Value,
}

impl Reply {
    /// Code of the refusal, if the reply is a refusal.
    pub(super) fn code(&self) -> Option<&str> {
        self.content["error"]["code"].as_str()
    }
}

/// A session of an older protocol version.
#[derive(Debug)]
pub(super) struct Session {
    id: String,
    /// Host that has the session in memory.
    pub(super) host: String,
}

/// A call without a reply.
#[derive(Debug)]
pub(super) struct Lost {
    /// Host that had the call, if the balancer knows.
    pub(super) host: Option<String>,
    pub(super) why: String,
}

impl Agent {
    pub(super) fn new(balancer: SocketAddr, token: &str) -> Agent {
        Agent {
            balancer,
            authorization: format!("Bearer {token}"),
            requests: AtomicU64::new(0),
        }
    }

    /// Unique id for the next request.
    pub(super) fn next_id(&self) -> String {
        format!("r{}", self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Calls a tool in a stateless request.
    pub(super) fn call(&self, id: &str, tool: &str, arguments: &Value) -> Result<Reply, Lost> {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientInfo": {"name": "cluster", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let headers = [
            ("MCP-Protocol-Version", NEWEST),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        let answer = self.post(&headers, &message).map_err(|err| Lost {
            host: None,
            why: format!("{err:#}"),
        })?;
        let host = answer.header(HOST).map(str::to_owned);
        reply(&answer).map_err(|err| Lost {
            host,
            why: format!("{} {err:#}", answer.status),
        })
    }

    /// Calls a tool while no host is killed. The call must succeed.
    pub(super) fn ok(&self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let reply = self.call(&self.next_id(), tool, arguments);
        let reply = reply.map_err(|lost| anyhow::anyhow!("{tool} was lost: {}", lost.why))?;
        ensure!(reply.code().is_none(), "{tool} was refused: {}", reply.content);
        Ok(reply.content)
    }

    /// Starts a session of an older protocol version.
    pub(super) fn session(&self) -> anyhow::Result<Session> {
        let params = json!({"protocolVersion": OLDER, "capabilities": {},
            "clientInfo": {"name": "cluster", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let begun = self.post(&[], &message)?;
        let id = begun.header("mcp-session-id").context("no session was started")?;
        let host = begun.header(HOST).context("the answer does not name its host")?;
        let session = Session {
            id: id.to_owned(),
            host: host.to_owned(),
        };
        self.within(
            &session,
            &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        )?;
        Ok(session)
    }

    /// Makes a number of requests in a session. All must reach its host.
    pub(super) fn list_in(&self, session: &Session, requests: u32) -> anyhow::Result<()> {
        for id in 1..=requests {
            let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
            let answer = self.within(session, &list)?;
            ensure!(
                answer.status == 200,
                "request {id} of a session: {}",
                answer.text()
            );
            let now = answer.header(HOST);
            ensure!(
                now == Some(&session.host),
                "a session of host {} was routed to host {now:?}",
                session.host
            );
        }
        Ok(())
    }

    /// Checks that a session has ended for its client, with a `404` that asks for a new one.
    pub(super) fn is_over(&self, session: &Session) -> anyhow::Result<()> {
        let list = json!({"jsonrpc": "2.0", "id": "last", "method": "tools/list"});
        let answer = self.within(session, &list)?;
        let now = answer.header(HOST);
        ensure!(
            answer.status == 404 && now != Some(&session.host),
            "a session of a killed host: {} of host {now:?}",
            answer.status
        );
        Ok(())
    }

    fn within(&self, session: &Session, message: &Value) -> anyhow::Result<Answer> {
        let headers = [("MCP-Protocol-Version", OLDER), ("Mcp-Session-Id", &session.id)];
        self.post(&headers, message)
    }

    fn post(&self, headers: &[(&str, &str)], message: &Value) -> anyhow::Result<Answer> {
        let mut all = vec![
            ("Authorization", self.authorization.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        all.extend(headers);
        http::ask(self.balancer, "POST", PATH, &all, &message.to_string())
    }
}

/// Reply in an answer. Anything other than a call's result means that the call is lost.
fn reply(answer: &Answer) -> anyhow::Result<Reply> {
    ensure!(answer.status == 200, "{}", answer.text());
    let message = answer.message()?;
    let op_id = message["result"]["_meta"]["tollgate/op_id"].as_str();
    Ok(Reply {
        op_id: op_id
            .with_context(|| format!("no call was made: {message}"))?
            .to_owned(),
        host: answer.header(HOST).unwrap_or_default().to_owned(),
        content: message["result"]["structuredContent"].clone(),
    })
}
