//! `tollgate approvals`

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use tollgate::user;
use tollgate_core::text;
use tollgate_gate::Gate;
use tollgate_gate::core_tools::RESOLVE;
use tollgate_sdk::ToolError;

use super::call::{open, through};
use super::{Filters, Global, out};

/// Requests of one page.
const PAGE_APPROVALS: u32 = 100;

/// Approval requests of packs and policies. Servers can keep running.
#[derive(Debug, Subcommand)]
pub(super) enum Approvals {
    /// Show waiting requests, oldest first
    List(List),
    /// Show one request with everything that an approval allows
    Show(Show),
    /// Approve a request
    Allow(Answer),
    /// Reject a request
    Deny(Answer),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Show requests with this status instead
    #[arg(long, default_value = "pending",
        value_parser = ["pending", "approved", "rejected", "withdrawn", "expired", "any"])]
    status: String,
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The request's id
    id: String,
}

#[derive(Debug, Args)]
pub(super) struct Answer {
    /// The request's id
    id: String,
    /// A comment, kept with the answer
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Name of the person who answers [default: the user's name]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

impl Approvals {
    /// Exit code 1 on a tool error.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let gate = open(global, &Filters::default()).await?;
        let said = match self {
            Approvals::List(list) => list.run(&gate, global).await,
            Approvals::Show(show) => show.run(&gate, global).await,
            Approvals::Allow(answer) => answer.run(&gate, global, "approve").await,
            Approvals::Deny(answer) => answer.run(&gate, global, "reject").await,
        };
        gate.catch_up().await;
        gate.flush().await;
        match said? {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(refusal) => {
                out::refuse_call(&refusal, global.json);
                Ok(ExitCode::FAILURE)
            }
        }
    }
}

/// Result of a command, or the refusal of its call.
type Said = anyhow::Result<Result<(), ToolError>>;

impl List {
    async fn run(self, gate: &Gate, global: &Global) -> Said {
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let left = self
                .limit
                .saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            let mut arguments = object(json!({"status": self.status, "limit": left.min(PAGE_APPROVALS)}));
            arguments.extend(cursor.take().map(|cursor: Value| ("cursor".to_owned(), cursor)));
            let page = match called(gate, "approval_list", arguments).await? {
                Ok(page) => page,
                Err(refusal) => return Ok(Err(refusal)),
            };
            found.extend(list(&page));
            cursor = page.get("next_cursor").cloned();
            if cursor.is_none() {
                break;
            }
        }
        if global.json {
            out::print_json(&json!({ "approvals": found }));
            return Ok(Ok(()));
        }
        let columns = [
            "approval_id",
            "status",
            "asked_at",
            "requested_by",
            "component",
            "title",
        ];
        let row = |found: &Value| columns.map(|name| word(found, name)).to_vec();
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        out::print(&out::table(
            &["APPROVAL", "STATUS", "ASKED", "BY", "FROM", "TITLE"],
            &rows,
        ));
        if cursor.is_some() {
            out::warn("more requests exist; raise `--limit` to see them");
        }
        if rows.is_empty() {
            out::warn("no request waits for approval; `--status any` also shows answered requests");
        }
        Ok(Ok(()))
    }
}

impl Show {
    async fn run(self, gate: &Gate, global: &Global) -> Said {
        Ok(one(gate, &self.id).await?.map(|found| {
            if global.json {
                out::print_json(&found);
            } else {
                out::print(&described(&found));
            }
        }))
    }
}

impl Answer {
    async fn run(self, gate: &Gate, global: &Global, decision: &str) -> Said {
        let asked = match one(gate, &self.id).await? {
            Ok(asked) => asked,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut arguments = object(json!({"approval_id": self.id, "decision": decision}));
        let name = self.name.or_else(user::name);
        arguments.extend(name.map(|name| ("actor".to_owned(), Value::from(name))));
        arguments.extend(self.note.map(|note| ("note".to_owned(), Value::from(note))));
        let said = called(gate, RESOLVE, arguments).await?;
        Ok(said.map(|reply| {
            if global.json {
                out::print_json(&reply);
            } else {
                let title = word(&asked, "title");
                let done = if decision == "approve" {
                    "approved"
                } else {
                    "rejected"
                };
                out::print(&format!("{done}: {title}"));
            }
        }))
    }
}

/// One request.
async fn one(gate: &Gate, id: &str) -> anyhow::Result<Result<Value, ToolError>> {
    let page = called(gate, "approval_list", object(json!({"approval_id": id}))).await?;
    match page {
        Ok(page) => list(&page)
            .pop()
            .map(Ok)
            .context("the host's answer does not contain the request"),
        Err(refusal) => Ok(Err(refusal)),
    }
}

async fn called(
    gate: &Gate,
    tool: &str,
    arguments: Map<String, Value>,
) -> anyhow::Result<Result<Value, ToolError>> {
    let outcome = through(gate, tool, &arguments).await?;
    Ok(outcome.result.map(|reply| Value::Object(reply.structured())))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn list(page: &Value) -> Vec<Value> {
    let found = page.get("approvals").and_then(Value::as_array);
    found.cloned().unwrap_or_default()
}

/// Field as text that is safe to print on a terminal.
fn word(found: &Value, name: &str) -> String {
    text::clean(found.get(name).and_then(Value::as_str).unwrap_or_default())
}

/// Everything about a request as text for people.
fn described(found: &Value) -> String {
    let fields = [
        ("status", "status"),
        ("asked by", "requested_by"),
        ("identity", "identity"),
        ("asked at", "asked_at"),
        ("open until", "until"),
        ("component", "component"),
        ("operation", "op_id"),
        ("tool", "tool"),
        ("envelope", "envelope_id"),
        ("answered by", "answered_by"),
        ("answered at", "answered_at"),
        ("note", "note"),
        ("answer runs", "answered_with"),
    ];
    let mut lines = format!("{}\n{}\n", word(found, "title"), word(found, "approval_id"));
    for (label, name) in fields {
        let value = word(found, name);
        if !value.is_empty() {
            lines += &format!("  {label:<12} {value}\n");
        }
    }
    let detail = found.get("detail").cloned().unwrap_or_default();
    let detail = serde_json::to_string_pretty(&detail).unwrap_or_default();
    lines + &text::escape_json(&detail)
}
