//! `tollgate tasks`

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tollgate_core::task::TaskState;
use tollgate_core::text;
use tollgate_gate::{Gate, TaskReply};
use tollgate_sdk::{Timestamp, ToolError};
use tollgate_store::storage::{StoredTask, TaskFilter};

use super::call::open;
use super::{Filters, Global, out};

/// Calls that continue without their clients: MCP's tasks. Servers can keep running.
#[derive(Debug, Subcommand)]
pub(super) enum Tasks {
    /// Show tasks, newest first
    List(List),
    /// Show one task with its reply
    Show(One),
    /// Ask a task to end
    Cancel(One),
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Show only tasks in this state
    #[arg(long, value_parser = ["working", "input_required", "completed", "cancelled", "failed"])]
    state: Option<String>,
    /// Show only tasks of this identity
    #[arg(long, value_name = "IDENTITY")]
    owner: Option<String>,
    /// Show only tasks in this envelope
    #[arg(long, value_name = "ID")]
    envelope: Option<String>,
    #[arg(short = 'n', long, default_value_t = 20)]
    limit: u32,
}

#[derive(Debug, Args)]
pub(super) struct One {
    /// The task's id
    id: String,
}

impl Tasks {
    /// Exit code 1 on a tool error.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let gate = open(global, &Filters::default()).await?;
        let said = match self {
            Tasks::List(list) => list.run(&gate, global).await,
            Tasks::Show(one) => one.show(&gate, global).await,
            Tasks::Cancel(one) => one.cancel(&gate, global).await,
        };
        gate.catch_up().await;
        gate.flush().await;
        match said {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(refusal) => {
                out::refuse_call(&refusal, global.json);
                Ok(ExitCode::FAILURE)
            }
        }
    }
}

impl List {
    async fn run(self, gate: &Gate, global: &Global) -> Result<(), ToolError> {
        let filter = TaskFilter {
            state: self.state.as_deref().and_then(TaskState::parse),
            owner: self.owner,
            envelope: self.envelope,
            now_ms: 0,
        };
        let found = gate.tasks(filter, self.limit).await?;
        if global.json {
            let found: Vec<Value> = found.iter().map(described).collect();
            out::print_json(&json!({ "tasks": found }));
            return Ok(());
        }
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        out::print(&out::table(
            &["TASK", "STATE", "CREATED", "OWNER", "TOOL", "NOTE"],
            &rows,
        ));
        if rows.is_empty() {
            out::warn(
                "no task matches; calls become tasks only if their client supports MCP's tasks extension",
            );
        }
        Ok(())
    }
}

impl One {
    async fn show(self, gate: &Gate, global: &Global) -> Result<(), ToolError> {
        let TaskReply { task, outcome } = gate.any_task(&self.id).await?;
        let mut whole = described(&task);
        match outcome.map(|outcome| outcome.result) {
            Some(Ok(reply)) => whole["reply"] = Value::Object(reply.structured()),
            Some(Err(refusal)) => whole["error"] = json!(refusal),
            None => {}
        }
        if global.json {
            out::print_json(&whole);
        } else {
            out::print(&text::escape_json(
                &serde_json::to_string_pretty(&whole).unwrap_or_default(),
            ));
        }
        Ok(())
    }

    async fn cancel(self, gate: &Gate, global: &Global) -> Result<(), ToolError> {
        let found = gate.any_task(&self.id).await?;
        let is_open = gate.cancel_any_task(&self.id).await?;
        if global.json {
            out::print_json(&json!({"task_id": self.id, "cancelled": is_open}));
        } else if is_open {
            out::print(&format!("cancel requested: {} of {}", self.id, found.task.tool));
        } else {
            out::print(&format!(
                "already ended: {} is {}",
                self.id,
                found.task.state.as_str()
            ));
        }
        Ok(())
    }
}

fn time(ms: i64) -> String {
    Timestamp::from_ms(ms).to_string()
}

fn row(task: &StoredTask) -> Vec<String> {
    vec![
        task.id.clone(),
        task.state.as_str().to_owned(),
        time(task.created_ms),
        text::clean(task.owner.as_deref().unwrap_or("-")),
        text::clean(&task.tool),
        text::clean(&task.status_line().unwrap_or_default()),
    ]
}

fn described(task: &StoredTask) -> Value {
    let approvals: Vec<&str> = task.approvals().collect();
    let questions: Vec<&Value> = task.questions().map(|(_, question)| question).collect();
    json!({
        "task_id": task.id,
        "state": task.state,
        "tool": task.tool,
        "owner": task.owner,
        "envelope_id": task.envelope_id,
        "op_id": task.op_id,
        "host_id": task.host_id,
        "resumed": task.resumed,
        "args_hash": task.args_hash,
        "note": task.note,
        "error_code": task.error_code,
        "questions": questions,
        "approvals": approvals,
        "reply_hash": task.reply_hash,
        "reply_bytes": task.reply_bytes,
        "created_at": time(task.created_ms),
        "updated_at": time(task.updated_ms),
        "kept_until": time(task.until_ms),
    })
}
