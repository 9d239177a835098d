//! The measured workload: many simple tasks, and one with a history.

use anyhow::Context as _;
use serde_json::{Value, json};

/// Tasks in the database before the measurement.
const TASKS: usize = 200;

/// The pack's settings: no waits between attempts.
pub(crate) const PACK_CONFIG: &str = r#"{"retry":{"backoff_ms":[]}}"#;
/// The same setting for the server's configuration file.
pub(crate) const CONFIG_FILE: &str = "[packs.task-store.config.retry]\nbackoff_ms = []\n";

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

/// Interface of anything that answers calls: the pack itself, the gate, or a server.
pub(crate) trait Tools {
    /// Returns the structured reply. A refusal is an error.
    fn call(&mut self, request: &Request) -> anyhow::Result<Value>;
}

/// The tasks that the reads use.
#[derive(Debug, Clone)]
pub(crate) struct Seeded {
    /// Task with attempts, reviews, artifacts and approvals.
    pub(crate) past: String,
    /// Task that was only created.
    pub(crate) new: String,
}

/// Kinds of calls that are measured separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reading the task with a history.
    Get,
    /// Reading the new task: the cost of a call with little work.
    GetNew,
    /// Creating a task.
    Create,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Get, Kind::GetNew, Kind::Create];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Get => "task_get",
            Kind::GetNew => "task_get of a new task",
            Kind::Create => "task_create",
        }
    }

    /// One call of this kind.
    pub(crate) fn request(self, seeded: &Seeded, number: usize) -> Request {
        match self {
            Kind::Get => get(&seeded.past),
            Kind::GetNew => get(&seeded.new),
            Kind::Create => create(number),
        }
    }
}

/// Fills a database with tasks.
pub(crate) fn seed(tools: &mut impl Tools) -> anyhow::Result<Seeded> {
    for number in 0..TASKS / 2 {
        tools.call(&create(number))?;
    }
    let past = with_a_past(tools).context("the workload could not be prepared")?;
    for number in TASKS / 2 + 2..TASKS {
        tools.call(&create(number))?;
    }
    let created = tools.call(&create(TASKS))?;
    Ok(Seeded {
        past,
        new: text(&created, "/task/id")?,
    })
}

/// A call that creates a task.
pub(crate) fn create(number: usize) -> Request {
    let arguments = json!({
        "title": format!("Task {number}: export all notes of an account as one file"),
        "spec_markdown": SPEC,
        "workspace": "notes-app",
        "initial_phase": "spec_review",
        "labels": ["export", "backend"],
    });
    by("orchestrator", "task_create", arguments)
}

/// A call that reads a task.
fn get(task: &str) -> Request {
    Request {
        tool: "task_get",
        arguments: json!({"task_id": task}),
    }
}

/// A realistic mix of calls: nine reads for each write.
pub(crate) fn mix(seeded: &Seeded, calls: usize) -> Vec<Request> {
    let kind = |number: usize| {
        if number.is_multiple_of(10) {
            Kind::Create
        } else {
            Kind::Get
        }
    };
    (0..calls)
        .map(|number| kind(number).request(seeded, number))
        .collect()
}

/// A task in quality_gate after three attempts, with reviews, artifacts and approvals.
fn with_a_past(tools: &mut impl Tools) -> anyhow::Result<String> {
    let created = tools.call(&create(TASKS / 2))?;
    let task = text(&created, "/task/id")?;
    review(tools, &task, "spec", None)?;
    transition(tools, &task, "spec_review", "execution_ready")?;
    let first = attempt(tools, &task)?;
    transition(tools, &task, "execution_ready", "executing")?;
    finish(tools, &first, "failed")?;
    let second = attempt(tools, &task)?;
    finish(tools, &second, "failed")?;
    let third = attempt(tools, &task)?;
    finish(tools, &third, "succeeded")?;
    transition(tools, &task, "executing", "spec_gate")?;
    review(tools, &task, "spec", Some(&third))?;
    transition(tools, &task, "spec_gate", "quality_gate")?;
    review(tools, &task, "quality", Some(&third))?;
    for number in 0..2 {
        let request = json!({
            "task_id": task,
            "attempt_id": third,
            "requested_action": "publish the export to the staging environment",
            "side_effect_kind": "release",
            "idempotency_key": format!("export-{number}"),
        });
        tools.call(&by("orchestrator", "task_request_approval", request))?;
    }
    Ok(task)
}

/// Starts an attempt that leaves a checkpoint and two artifacts. Returns its id.
fn attempt(tools: &mut impl Tools, task: &str) -> anyhow::Result<String> {
    let start = json!({
        "task_id": task,
        "phase": "executing",
        "runtime": "acp",
        "executor_kind": "external_coder",
        "worker_ref": "builder-7",
        "external_session_ref": "session-2f6c1c1e",
    });
    let started = tools.call(&by("orchestrator", "task_start_attempt", start))?;
    let attempt = text(&started, "/attempt/id")?;
    let checkpoint = json!({
        "task_id": task,
        "attempt_id": attempt,
        "checkpoint_type": "execution_summary",
        "payload": {"done": ["query", "writer"], "next": "tests"},
    });
    tools.call(&by("executor", "task_record_checkpoint", checkpoint))?;
    for (kind, uri) in [
        ("primary_output", "src/export.rs"),
        ("test_report", "target/report.xml"),
    ] {
        let artifact = json!({
            "task_id": task,
            "attempt_id": attempt,
            "kind": kind,
            "uri": uri,
            "summary": "what the attempt left behind, for whoever looks at it next",
            "produced_by": "builder-7",
        });
        tools.call(&by("executor", "task_record_artifact", artifact))?;
    }
    Ok(attempt)
}

fn finish(tools: &mut impl Tools, attempt: &str, status: &str) -> anyhow::Result<()> {
    let mut arguments = json!({"attempt_id": attempt, "status": status});
    if status == "failed" {
        arguments["error_summary"] = json!("the export of a large account ran out of memory");
    }
    tools
        .call(&by("executor", "task_finish_attempt", arguments))
        .map(drop)
}

fn review(tools: &mut impl Tools, task: &str, kind: &str, attempt: Option<&str>) -> anyhow::Result<()> {
    let mut arguments = json!({
        "task_id": task,
        "review_type": kind,
        "reviewer_ref": "reviewer-2",
        "verdict": "approved",
        "summary": "It does what it should; two remarks that do not stop it.",
        "findings": [
            {"severity": "minor", "message": "The batch size is a constant.", "file": "src/export.rs", "line": 81},
            {"severity": "major", "message": "Pictures are left out silently.", "file": "src/export.rs", "line": 120},
        ],
    });
    if let Some(attempt) = attempt {
        arguments["attempt_id"] = json!(attempt);
    }
    let role = if kind == "spec" {
        "spec_reviewer"
    } else {
        "quality_reviewer"
    };
    tools.call(&by(role, "task_append_review", arguments)).map(drop)
}

fn transition(tools: &mut impl Tools, task: &str, from: &str, to: &str) -> anyhow::Result<()> {
    let arguments = json!({"task_id": task, "from_phase": from, "to_phase": to, "reason": "as planned"});
    tools
        .call(&by("orchestrator", "task_transition", arguments))
        .map(drop)
}

fn by(role: &str, tool: &'static str, mut arguments: Value) -> Request {
    arguments["actor"] = json!(role);
    arguments["actor_role"] = json!(role);
    Request { tool, arguments }
}

fn text(value: &Value, pointer: &str) -> anyhow::Result<String> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .with_context(|| format!("the reply has no {pointer}: {value}"))
}

/// A typical spec of an agent.
const SPEC: &str = "## Goal\nEverybody can take their notes with them, in a format that other programs read.\n\n\
    ## Scope\n### In\n- all notes of an account as one Markdown file\n- tags as front matter\n- a command line flag\n\
    ### Out\n- pictures and other attachments\n- an import\n\n\
    ## Inputs\n- the notes table\n- the tags table\n\n\
    ## Outputs\n- export.md\n- a line in the audit log\n\n\
    ## Acceptance\n- an export of 10,000 notes takes less than 5 s\n- no note is missing\n\
    - memory stays below 64 MiB\n- the file passes a Markdown linter\n\n\
    ## Risks\n- very large accounts\n- notes that are not valid UTF-8\n";
