//! The devlog and decisions.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use super::{find_job, known_step};
use crate::arguments::{ENTRY, TEXT};
use crate::error::{Reason, Refusals};
use crate::model::{JobId, LogType, StepId};
use crate::store::job;
use crate::store::log::{self, LogEntry};
use crate::submission::is_hash;

/// Append an entry to a job's log: a line on what changed, or a postmortem. Accepted submissions add
/// their devlog_line by themselves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevlogAppend {
    /// The job.
    job_id: JobId,
    /// What it says.
    #[schemars(length(min = 1, max = TEXT))]
    content: String,
    /// What it is; DEVLOG if left out.
    log_type: Option<LogType>,
    /// The step it is about.
    step_id: Option<StepId>,
    /// The commit it is about.
    commit_hash: Option<String>,
}

impl Tool for DevlogAppend {
    const NAME: &'static str = "devlog_append";
    const TITLE: &'static str = "Append to the devlog";
    const EFFECT: Effect = Effect::Write;
    type Output = LogEntry;

    fn run(self, cx: &Cx<'_>) -> Result<LogEntry, ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("content", &self.content, TEXT);
        if self.commit_hash.as_deref().is_some_and(|hash| !is_hash(hash)) {
            refusals.add(Reason::argument("commit_hash", "is no commit hash"));
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

/// Read a job's log, the latest entries in the order they were made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DevlogList {
    /// The job.
    job_id: JobId,
    /// Only entries of this type.
    log_type: Option<LogType>,
    /// Only entries about this step.
    step_id: Option<StepId>,
    /// At most so many, 1 to 200; 50 if left out.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// A part of a log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entries {
    /// The entries, oldest first.
    entries: Vec<LogEntry>,
    /// There are older ones.
    truncated: bool,
}

impl Tool for DevlogList {
    const NAME: &'static str = "devlog_list";
    const TITLE: &'static str = "Read the devlog";
    const EFFECT: Effect = Effect::Read;
    type Output = Entries;

    fn run(self, cx: &Cx<'_>) -> Result<Entries, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 50);
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        let (entries, truncated) = log::latest(&cx.db, &job.id, self.log_type, self.step_id.as_ref(), limit)?;
        Ok(Entries { entries, truncated })
    }
}

/// Write the whole devlog of a job as Markdown, ready for a DEVLOG.md.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses()))]
pub(crate) struct DevlogExport {
    /// The job.
    job_id: JobId,
}

fn addresses() -> serde_json::Value {
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
    /// How many entries there are.
    entries: usize,
    /// The document.
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
            markdown: markdown("Devlog", &job.title, &entries),
            entries: entries.len(),
        })
    }

    fn text(output: &Document) -> Option<String> {
        Some(output.markdown.clone())
    }
}

/// A log as Markdown, headed by what it is and the title of its job.
pub(crate) fn markdown(heading: &str, title: &str, entries: &[LogEntry]) -> String {
    let mut text = format!("# {heading}: {title}\n\n");
    for entry in entries {
        let _ = write!(text, "- {} {}", entry.at, entry.log_type);
        if let Some(step) = &entry.step_id {
            let _ = write!(text, " {step}");
        }
        if let Some(commit) = &entry.commit_hash {
            let _ = write!(text, " ({commit})");
        }
        let _ = writeln!(text, ": {}", entry.content.replace('\n', "\n  "));
    }
    text
}

/// Record a decision with its reasons, so that nobody takes it again differently.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionRecord {
    /// The job.
    job_id: JobId,
    /// What was decided.
    #[schemars(length(min = 1, max = ENTRY))]
    decision: String,
    /// Why.
    rationale: Option<String>,
    /// What was not chosen, and why not.
    #[serde(default)]
    alternatives: Vec<String>,
    /// The step it is about.
    step_id: Option<StepId>,
}

impl Tool for DecisionRecord {
    const NAME: &'static str = "decision_record";
    const TITLE: &'static str = "Record a decision";
    const EFFECT: Effect = Effect::Write;
    type Output = LogEntry;

    fn run(self, cx: &Cx<'_>) -> Result<LogEntry, ToolError> {
        let mut refusals = Refusals::default();
        refusals.text("decision", &self.decision, ENTRY);
        refusals.optional_text("rationale", self.rationale.as_deref(), TEXT);
        refusals.texts("alternatives", &self.alternatives, ENTRY);
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
