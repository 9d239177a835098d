//! Completing tasks and slices.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tollgate_kit::runs::{Look, TestRun};
use tollgate_sdk::{DbError, ToolError};

use super::change_tool;
use crate::act::{Act, Applied, Change, UnitStatus};
use crate::arguments::{MAX_ENTRIES, MAX_LINE_CHARS, MAX_TEXT_CHARS};
use crate::files::Touched;
use crate::guard::{self, Action};
use crate::header::{Header, SliceKey, TaskKey, header};
use crate::model::{MilestoneId, SliceId, Status, Unit};
use crate::next::Suggestion;
use crate::store::log::Event;
use crate::store::{Closed, Closing, claim, milestone, slice, task};
use crate::violation::{Refusals, Violation};

/// Check that was run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evidence {
    /// Command line that was run.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    command: String,
    /// Exit code of the command, for example 1.
    exit_code: i32,
    /// Result, for example `pass`.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    verdict: String,
    /// Duration in milliseconds.
    duration_ms: Option<u32>,
    /// Operation id of a test_run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LINE_CHARS))]
    operation_id: Option<String>,
}

/// Declares that the host looks at the work tree before a call where evidence is required.
fn looks() -> Json {
    json!({"setting": "evidence", "is": "required"})
}

/// Complete a task and release its claim. Fails if it or its parents are closed, a dependency is open, or another
/// actor claimed or started it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-looks" = looks()))]
pub(crate) struct CompleteTask {
    #[serde(flatten)]
    at: TaskKey,
    /// One-line summary of the result.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    one_liner: String,
    /// Full description of the result.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    narrative: String,
    /// Steps that showed that the work is correct.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    verification: String,
    /// Checks that were run as proof.
    #[serde(default)]
    #[schemars(length(max = MAX_ENTRIES))]
    verification_evidence: Vec<Evidence>,
    /// Deviations from the plan.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    deviations: Option<String>,
    /// Known issues that remain.
    #[schemars(length(max = MAX_TEXT_CHARS))]
    known_issues: Option<String>,
    /// Files that later work should read.
    #[schemars(length(max = MAX_ENTRIES))]
    key_files: Option<Vec<String>>,
    /// Decisions that later work depends on.
    #[schemars(length(max = MAX_ENTRIES))]
    key_decisions: Option<Vec<String>>,
    /// True if the slice's plan no longer works. Call gsd_replan_slice next.
    blocker_discovered: Option<bool>,
    #[serde(flatten)]
    header: Header,
}
change_tool!(CompleteTask, "gsd_task_complete", "Complete a task", Core, ADDITIVE, alias "gsd_complete_task");

fn short(command: &str) -> String {
    command.chars().take(80).collect()
}

/// Reason why a test run does not prove what the work tree does.
fn doubt(act: &Act<'_>, operation: &str, look: Look) -> Option<String> {
    match TestRun::find(act.cx.ledger(), operation, act.workspace()) {
        Ok(Ok(run)) => run.doubt(look),
        Ok(Err(fault)) => Some(fault),
        Err(_) => Some("cannot be looked up: the ledger cannot be read".to_owned()),
    }
}

/// Reason why an operation is not what its caller says, where evidence is optional.
fn told(act: &Act<'_>, operation: &str) -> Option<String> {
    match TestRun::find(act.cx.ledger(), operation, act.workspace()) {
        Ok(Ok(run)) if !run.passed() => Some("did not pass".to_owned()),
        Ok(Ok(run)) => run.elsewhere(),
        Ok(Err(fault)) => Some(fault),
        Err(_) => None,
    }
}

/// Adds to an ALREADY_COMPLETE refusal whether actor and content are the same, so that a repeated call
/// differs from a conflicting one.
pub(super) fn same_content(act: &Act<'_>, closed: Option<&Closed>, refusals: &mut Refusals) {
    if let Some(Closed { by, hash }) = closed.filter(|_| refusals.has("ALREADY_COMPLETE")) {
        refusals.fact("same_content", *hash == act.hash && by == act.actor());
        refusals.fact("completed_by", by.as_str());
    }
}

/// Closing of a unit by a call.
pub(super) fn closing<'a>(call: &impl Serialize, act: &'a Act<'_>, event: &'a Event) -> Closing<'a> {
    Closing {
        summary: summary(call, act),
        by: act.actor(),
        hash: &event.hash,
    }
}

/// Summary of a completion, stored with the unit.
fn summary(call: &impl Serialize, act: &Act<'_>) -> Json {
    let mut summary = serde_json::to_value(call).unwrap_or_default();
    if let Some(summary) = summary.as_object_mut() {
        summary.retain(|name, value| {
            !value.is_null()
                && !matches!(
                    name.as_str(),
                    "workspace"
                        | "actor"
                        | "actor_name"
                        | "trigger_reason"
                        | "milestone_id"
                        | "slice_id"
                        | "task_id"
                )
        });
        summary.insert("completed_by".to_owned(), json!(act.actor()));
        summary.insert("completed_at".to_owned(), json!(act.now()));
    }
    summary
}

impl CompleteTask {
    fn check_text(&self, refusals: &mut Refusals) {
        refusals.line("one_liner", &self.one_liner, MAX_LINE_CHARS);
        refusals.text("narrative", &self.narrative);
        refusals.text("verification", &self.verification);
        refusals.at_most(
            "verification_evidence",
            self.verification_evidence.len(),
            MAX_ENTRIES,
            "entries",
        );
        for (index, evidence) in self.verification_evidence.iter().enumerate().take(MAX_ENTRIES) {
            refusals.text(
                &format!("verification_evidence[{index}].command"),
                &evidence.command,
            );
            refusals.line(
                &format!("verification_evidence[{index}].verdict"),
                &evidence.verdict,
                MAX_LINE_CHARS,
            );
        }
        for (field, text) in [
            ("deviations", &self.deviations),
            ("known_issues", &self.known_issues),
        ] {
            refusals.prose(field, text.as_deref().unwrap_or_default());
        }
        for (field, list) in [
            ("key_files", &self.key_files),
            ("key_decisions", &self.key_decisions),
        ] {
            refusals.lines(field, list.as_deref().unwrap_or_default());
        }
    }

    /// Requires a test run that passed on the work tree of now, and no check that failed, where the workspace says so.
    fn check_proof(&self, act: &Act<'_>, refusals: &mut Refusals) {
        if !act.config.requires_evidence(act.workspace()) {
            return;
        }
        let mut faults = Vec::new();
        let mut runs = 0;
        for evidence in &self.verification_evidence {
            if evidence.exit_code != 0 {
                let command = short(&evidence.command);
                faults.push(format!(
                    "has `{command}` as evidence, which exited with {}",
                    evidence.exit_code
                ));
            }
            if let Some(operation) = &evidence.operation_id {
                runs += 1;
                faults.extend(
                    doubt(act, operation, Look::Now)
                        .map(|why| format!("has {operation} as evidence, which {why}")),
                );
            }
        }
        if runs == 0 {
            faults.push("has no test_run as evidence".to_owned());
        }
        refusals.extend(faults.into_iter().map(|fault| Violation::Unproven {
            unit: act.unit.clone(),
            fault,
        }));
    }

    fn warnings(&self, act: &Act<'_>) -> Vec<String> {
        let unit = self.unit();
        let mut warnings = Vec::new();
        if self.verification_evidence.is_empty() {
            warnings.push(format!("{unit} was completed without verification_evidence"));
        }
        for evidence in self
            .verification_evidence
            .iter()
            .filter(|evidence| evidence.exit_code != 0)
        {
            let command = short(&evidence.command);
            warnings.push(format!("{unit}: `{command}` exited with {}", evidence.exit_code));
        }
        // Where they are required, the call was refused for them.
        if !act.config.requires_evidence(act.workspace()) {
            let named = self.verification_evidence.iter();
            for operation in named.filter_map(|evidence| evidence.operation_id.as_deref()) {
                let why = told(act, operation);
                warnings.extend(why.map(|why| format!("{unit}: {operation} {why}")));
            }
        }
        if self.blocker_discovered == Some(true) {
            warnings.push(format!(
                "{unit} found a blocker; replan the slice with gsd_replan_slice"
            ));
        }
        warnings
    }
}

impl Change for CompleteTask {
    const CMD: &'static str = "complete-task";
    type Facts = ();

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        let found = act.task_scene(Action::CompleteTask, refusals)?;
        self.check_text(refusals);
        self.check_proof(act, refusals);
        same_content(
            act,
            found.task.as_ref().and_then(|task| task.head.closed.as_ref()),
            refusals,
        );
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        task::complete(db, workspace, self.at.path(), &closing(self, act, event))?;
        let began = slice::begin(db, workspace, self.at.slice())?;
        let claims = claim::release(db, workspace, &act.unit)?;
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        Ok(Applied {
            status: Status::Complete.to_string(),
            also: began_slice(began, &self.at.milestone_id, &self.at.slice_id),
            warnings: self.warnings(act),
            next: (self.blocker_discovered == Some(true)).then(|| self.replan(act)),
            touched: Touched {
                claims,
                ..Touched::tasks(&self.at.slice_id, [self.at.task_id.clone()])
            },
        })
    }
}

impl CompleteTask {
    /// The replanning that a blocker requires.
    fn replan(&self, act: &Act<'_>) -> Suggestion {
        let slice = Unit::slice(&self.at.milestone_id, &self.at.slice_id);
        Suggestion {
            action: format!("replan slice {slice} around the blocker"),
            tool: "gsd_replan_slice".to_owned(),
            arguments: act.arguments(json!({"unit": slice.to_string(), "blocker_task_id": self.at.task_id})),
            needs: ["blocker_description", "what_changed"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}

/// The slice's new status, if it was started by its first task.
pub(super) fn began_slice(began: bool, milestone: &MilestoneId, slice: &SliceId) -> Vec<UnitStatus> {
    let status = began.then(|| UnitStatus {
        unit: Unit::slice(milestone, slice).to_string(),
        status: Status::InProgress.to_string(),
    });
    status.into_iter().collect()
}

/// Complete a slice. Fails if the slice has no tasks or open ones, depends on an open slice, or is claimed by
/// another actor.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CompleteSlice {
    #[serde(flatten)]
    at: SliceKey,
    /// One-line summary of the result.
    #[schemars(length(min = 1, max = MAX_LINE_CHARS))]
    one_liner: String,
    /// Full description of the result.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    narrative: String,
    /// Steps that showed that the work is correct.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    verification: String,
    /// Steps for a person to try the result.
    #[schemars(length(min = 1, max = MAX_TEXT_CHARS))]
    uat_content: String,
    #[serde(flatten)]
    header: Header,
}
change_tool!(CompleteSlice, "gsd_slice_complete", "Complete a slice", Core, ADDITIVE, alias "gsd_complete_slice");

impl Change for CompleteSlice {
    const CMD: &'static str = "complete-slice";
    type Facts = ();

    header!(at);

    fn check(&self, act: &Act<'_>, refusals: &mut Refusals) -> Result<Option<()>, DbError> {
        let found = act.unblocked_scene(Action::CompleteSlice, &act.unit, refusals)?;
        if let Some(slice) = found.slice.as_ref().filter(|slice| !slice.status.is_closed()) {
            act.slice_dependencies(slice, refusals)?;
            let tasks = task::heads(act.db(), act.workspace(), self.at.path())?;
            let tasks: Vec<_> = tasks
                .into_iter()
                .map(|task| (task.slice, task.id, task.status))
                .collect();
            refusals.extend(guard::tasks_closed(&act.unit, &tasks));
            let is_done = |(_, _, status): &(_, _, Status)| *status == Status::Complete;
            let is_required = act.config.requires_evidence(act.workspace());
            if is_required && !tasks.is_empty() && !tasks.iter().any(is_done) {
                let fault = "has no complete task, but this workspace requires evidence".to_owned();
                let unit = act.unit.clone();
                refusals.extend([Violation::Unproven { unit, fault }]);
            }
        }
        act.ownership(&act.unit, refusals)?;
        refusals.line("one_liner", &self.one_liner, MAX_LINE_CHARS);
        refusals.text("narrative", &self.narrative);
        refusals.text("verification", &self.verification);
        refusals.text("uat_content", &self.uat_content);
        same_content(
            act,
            found.slice.as_ref().and_then(|slice| slice.closed.as_ref()),
            refusals,
        );
        Ok(Some(()))
    }

    fn apply(&self, act: &Act<'_>, (): (), event: &Event) -> Result<Applied, ToolError> {
        let (db, workspace) = (act.db(), act.workspace());
        let closing = closing(self, act, event);
        slice::close(db, workspace, self.at.path(), Status::Complete, &closing)?;
        claim::release_within(db, workspace, &act.unit.to_string())?;
        milestone::touch(db, workspace, &self.at.milestone_id, event.id)?;
        Ok(Applied {
            status: Status::Complete.to_string(),
            touched: Touched {
                claims: true,
                ..Touched::slices([self.at.slice_id.clone()])
            },
            ..Applied::default()
        })
    }
}
