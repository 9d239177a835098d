//! Tools for the devlog and decisions.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_sdk::{Cx, Db, DbError, Effect, Tool, ToolError};

use super::{find_job, known_step};
use crate::arguments::{MAX_ENTRY_CHARS, MAX_TEXT_CHARS};
use crate::error::{Reason, Refusals};
use crate::model::{JobId, LogId, LogType, StepId};
use crate::page::{self, Cursor};
use crate::store::attempt::{self, Attempt};
use crate::store::job;
use crate::store::log::{self, LogEntry};
use crate::submission::is_hash;

/// Append an entry to a job's log: a line about a change, or a postmortem. Accepted submissions add their devlog_line
/// automatically.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct DevlogAppend {
    job_id: JobId,
    /// Text of the entry, for example "Write a header row".
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    content: String,
    /// Type of the entry. Default DEVLOG.
    #[schemars(extend("x-accepts" = super::any_text()))]
    log_type: Option<LogType>,
    /// Step that the entry is about, for example S1. Default none.
    step_id: Option<StepId>,
    /// Hash of the commit that the entry is about. Default none.
    commit_hash: Option<String>,
}

impl Tool for DevlogAppend {
    const NAME: &'static str = "devlog_append";
    const TITLE: &'static str = "Append to the devlog";
    const EFFECT: Effect = Effect::Write;
    type Output = LogEntry;

    fn run(self, cx: &Cx<'_>) -> Result<LogEntry, ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("content", &self.content, MAX_TEXT_CHARS);
        if self.commit_hash.as_deref().is_some_and(|hash| !is_hash(hash)) {
            refusals.add(Reason::argument("commit_hash", "is not a commit hash"));
        }
        if self.log_type == Some(LogType::System) {
            refusals.add(Reason::argument(
                "log_type",
                "cannot be SYSTEM: those entries are the pack's own, such as changes of the plan",
            ));
        }
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        known_step(&cx.db, &job.id, self.step_id.as_ref())?;
        job::touch(&cx.db, &job.id, cx.now())?;
        let kind = self.log_type.unwrap_or(LogType::Devlog);
        let (step, commit) = (self.step_id.as_ref(), self.commit_hash.as_deref());
        Ok(log::append(
            cx,
            &cx.db,
            &job.id,
            kind,
            step,
            commit,
            &self.content,
        )?)
    }
}

/// Read the latest entries of a job's log, oldest first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevlogList {
    job_id: JobId,
    /// Only entries of this type. Default: all types.
    #[schemars(extend("x-accepts" = super::any_text()))]
    log_type: Option<LogType>,
    /// Only entries about this step. Default: all steps.
    step_id: Option<StepId>,
    /// Maximum number of entries, 1 to 200. Default 50.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// next_cursor of the previous page, for older entries. Default: the latest.
    cursor: Option<Cursor>,
}

/// Entries of a log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entries {
    /// Entries, oldest first.
    entries: Vec<LogEntry>,
    /// True if there are older entries.
    truncated: bool,
    /// Value of `cursor` for older entries, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for DevlogList {
    const NAME: &'static str = "devlog_list";
    const TITLE: &'static str = "Read the devlog";
    const EFFECT: Effect = Effect::Read;
    type Output = Entries;

    fn run(self, cx: &Cx<'_>) -> Result<Entries, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 50);
        let job = find_job(&cx.db, &self.job_id)?;
        let before = self.cursor.map(Cursor::id::<LogId>);
        if let Some(before) = &before
            && !log::exists(&cx.db, before)?
        {
            page::unknown(&mut refusals);
        }
        refusals.finish()?;
        let of = log::Filter {
            log_type: self.log_type,
            step: self.step_id.as_ref(),
            before: before.as_ref(),
        };
        let (entries, truncated) = log::latest(&cx.db, &job.id, of, limit)?;
        let oldest = entries.first().filter(|_| truncated);
        Ok(Entries {
            next_cursor: oldest.map(|entry| entry.log_id.to_string()),
            entries,
            truncated,
        })
    }
}

/// Return the whole devlog of a job as Markdown, ready for a DEVLOG.md.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses()))]
pub(crate) struct DevlogExport {
    job_id: JobId,
}

fn addresses() -> Value {
    serde_json::json!([{
        "path": "jobs/{job_id}/devlog.md",
        "name": "devlog",
        "title": "Devlog",
        "description": "The whole devlog of a job.",
        "mime_type": "text/markdown",
    }])
}

/// A log as a document.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Document {
    /// Number of entries.
    entries: usize,
    /// Document in Markdown.
    markdown: String,
}

impl Tool for DevlogExport {
    const NAME: &'static str = "devlog_export";
    const TITLE: &'static str = "Export the devlog";
    const EFFECT: Effect = Effect::Read;
    type Output = Document;

    fn run(self, cx: &Cx<'_>) -> Result<Document, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        let entries = log::all(&cx.db, &job.id)?;
        Ok(Document {
            markdown: markdown("Devlog", &job.title, &entries, &TestsRun::read(&cx.db, &job.id)?),
            entries: entries.len(),
        })
    }

    fn text(output: &Document) -> Option<String> {
        Some(output.markdown.clone())
    }
}

/// Tests of the accepted submissions, by step.
#[derive(Debug, Default)]
pub(crate) struct TestsRun(BTreeMap<String, String>);

impl TestsRun {
    /// Reads the tests of a job's submissions.
    pub(crate) fn read(db: &Db<'_>, job: &JobId) -> Result<TestsRun, DbError> {
        Ok(TestsRun::of(&attempt::all(db, job)?))
    }

    /// Tests of submissions.
    pub(crate) fn of(attempts: &[Attempt]) -> TestsRun {
        let accepted = attempts.iter().filter(|attempt| attempt.accepted);
        TestsRun(
            accepted
                .filter_map(|attempt| Some((attempt.step_id.to_string(), tests_of(attempt)?)))
                .collect(),
        )
    }
}

/// Tests of a submission: those that gates ran with their results, and those that were claimed.
fn tests_of(attempt: &Attempt) -> Option<String> {
    let ran = attempt
        .commands
        .iter()
        .map(|(command, ending)| format!("{command}: {ending}"));
    let mut tests: Vec<String> = ran.collect();
    let claimed = attempt.evidence.get("tests_run").and_then(Value::as_array);
    let claimed: Vec<&str> = claimed.into_iter().flatten().filter_map(Value::as_str).collect();
    if !claimed.is_empty() {
        let result = match attempt.evidence.get("tests_passed") {
            Some(Value::Bool(true)) => "passed",
            Some(Value::Bool(false)) => "failed",
            _ => "no result",
        };
        tests.push(format!("claimed {}: {result}", claimed.join(", ")));
    }
    (!tests.is_empty()).then(|| tests.join("; "))
}

/// Log as Markdown, with a heading and the title of its job. Devlog lines of accepted steps name the tests that were
/// run.
pub(crate) fn markdown(heading: &str, title: &str, entries: &[LogEntry], tests: &TestsRun) -> String {
    let mut text = format!("# {heading}: {title}\n\n");
    for entry in entries {
        let _ = write!(text, "- {} {}", entry.at, entry.log_type);
        if let Some(step) = &entry.step_id {
            let _ = write!(text, " {step}");
        }
        if let Some(commit) = &entry.commit_hash {
            let _ = write!(text, " ({commit})");
        }
        let _ = write!(text, ": {}", entry.content.replace('\n', "\n  "));
        let step = entry
            .step_id
            .as_ref()
            .filter(|_| entry.log_type == LogType::Devlog);
        if let Some(run) = step.and_then(|step| tests.0.get(step.as_str())) {
            let _ = write!(text, " [tests: {run}]");
        }
        text.push('\n');
    }
    text
}

/// Record a decision with its rationale and alternatives, so that later steps keep to it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace(), "x-scope" = super::scope()))]
pub(crate) struct DecisionRecord {
    job_id: JobId,
    /// Decision, in one or two sentences.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    decision: String,
    /// Reasons for the decision. Default none.
    rationale: Option<String>,
    /// Options that were not chosen, each with the reason.
    #[serde(default)]
    alternatives: Vec<String>,
    /// Step that the decision is about, for example S1. Default none.
    step_id: Option<StepId>,
}

impl Tool for DecisionRecord {
    const NAME: &'static str = "decision_record";
    const TITLE: &'static str = "Record a decision";
    const EFFECT: Effect = Effect::Write;
    type Output = LogEntry;

    fn run(self, cx: &Cx<'_>) -> Result<LogEntry, ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("decision", &self.decision, MAX_ENTRY_CHARS);
        refusals.optional_text("rationale", self.rationale.as_deref(), MAX_TEXT_CHARS);
        refusals.texts("alternatives", &self.alternatives, MAX_ENTRY_CHARS);
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        known_step(&cx.db, &job.id, self.step_id.as_ref())?;
        let mut content = self.decision.trim().to_owned();
        if let Some(rationale) = &self.rationale {
            let _ = write!(content, "\nWhy: {}", rationale.trim());
        }
        for alternative in &self.alternatives {
            let _ = write!(content, "\nNot chosen: {}", alternative.trim());
        }
        job::touch(&cx.db, &job.id, cx.now())?;
        let step = self.step_id.as_ref();
        Ok(log::append(
            cx,
            &cx.db,
            &job.id,
            LogType::Decision,
            step,
            None,
            &content,
        )?)
    }
}
