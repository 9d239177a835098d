//! Report on an envelope, as a person would write it afterwards: its outcome and limits, its steps in order, refusals
//! with reasons, repeated failures, and changes.

mod evidence;
mod judged;
mod text;

use crate::storage::StoreResult;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::storage::{
    Envelope, OperationFilter, Restored, SaidByPolicy, Session, StoredOperation, StoredTestOutcome,
};

pub use evidence::{NewestRun, Part, Untested};
pub use judged::Judged;
pub use text::explain;

/// Operations that are read at once.
const PAGE_ROWS: u32 = 500;
/// Most steps, refusals and changes that are listed individually.
const MAX_STEPS: usize = 150;
const MAX_REFUSALS: usize = 30;
const MAX_CHANGES: usize = 60;
/// Most tests that are named for one failure.
const MAX_TESTS: usize = 20;

/// Report on an envelope.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Story {
    /// Number of operations.
    pub operations: i64,
    /// Number of operations that were refused or failed.
    pub failed: i64,
    /// Number of operations that ended with a policy's question to the user. The answer arrives with another operation.
    #[serde(skip_serializing_if = "is_zero")]
    pub asked: i64,
    /// Number of operations whose outcome is unknown.
    pub unknown: i64,
    /// Tools of calls that have not ended, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<String>,
    /// Total time of all calls, in milliseconds.
    pub busy_ms: f64,
    /// First steps, oldest first. Equal consecutive steps are merged.
    pub steps: Vec<Step>,
    /// Refused and failed calls, by code.
    pub refusals: Vec<Refused>,
    /// Verdicts of policies other than passes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Judged>,
    /// Failures that occurred more than once.
    pub repeated_failures: Vec<Repeated>,
    /// Changes that were made more than once.
    pub repeated_changes: Vec<Repeated>,
    /// Changes that the calls made.
    pub changes: Vec<Changed>,
    /// The newest test run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_tests: Option<LastTests>,
    /// Newest run of each test command in each workspace, child envelopes included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<NewestRun>,
    /// Edits that no test run followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<Untested>,
    /// Work trees that could not be read when the envelope was closed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Unseen>,
    /// Workspaces whose edits returned to earlier states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circles: Vec<Circle>,
    /// Child envelopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A work tree that could not be read when the envelope was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unseen {
    /// Name of the workspace.
    pub workspace: String,
    /// Reason why the work tree could not be read.
    pub why: String,
}

/// Edits of a workspace that went in circles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Circle {
    /// Name of the workspace.
    pub workspace: String,
    /// Number of edits that restored an earlier state.
    pub count: i64,
    /// Number of edits from the earlier state back to the same state, the last time.
    pub period: i64,
}

impl From<Restored> for Circle {
    fn from(restored: Restored) -> Circle {
        Circle {
            workspace: restored.workspace,
            count: restored.count,
            period: restored.period,
        }
    }
}

/// The newest test run of an envelope.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LastTests {
    /// Sequence number of the run in the ledger.
    pub seq: i64,
    /// True if tests ran and all passed.
    pub passed: bool,
    /// Outcome, such as `failed 2 of 14: AssertionError`.
    pub outcome: String,
}

/// Consecutive operations that differ only in their time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Sequence number of the first operation in the ledger.
    pub seq: i64,
    /// Time of the call.
    pub timestamp: String,
    /// Name of the tool.
    pub tool: String,
    /// Workspace that the call was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Name of the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Name of the client, with its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// `done`, `asked` if it ended with a policy's question, `unknown`, or the code of the refusal or failure.
    pub outcome: String,
    /// Outcome of the tests that the call ran, such as `failed 2 of 14: AssertionError`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<String>,
    /// Note of the caller or of the pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Size of the change to files, such as `1 file, +2 -1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Ids of the stored content, for artifact_get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifact_ids: Vec<String>,
    /// Number of calls.
    pub count: i64,
    /// Total time of the calls, in milliseconds.
    pub duration_ms: f64,
    /// Limit that refused the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// Refusals and failures of one code.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Refused {
    /// Code of the error.
    pub code: String,
    /// Number of calls.
    pub count: i64,
    /// Names of the tools.
    pub tools: BTreeSet<String>,
    /// Sequence number of the first operation in the ledger.
    pub first_seq: i64,
    /// Sequence number of the last operation in the ledger.
    pub last_seq: i64,
}

/// A fingerprint that occurred more than once.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Repeated {
    /// Fingerprint that the cases share.
    pub fingerprint: String,
    /// Name of the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Number of occurrences.
    pub count: i64,
    /// Number of mutations between the first and the last occurrence.
    pub mutations_between: i64,
    /// Number of edits of the work tree between these, by calls and by others. Absent if the work tree was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits_between: Option<i64>,
    /// Sequence number of the first operation in the ledger.
    pub first_seq: i64,
    /// Sequence number of the last operation in the ledger.
    pub last_seq: i64,
    /// Names of the tools.
    pub tools: BTreeSet<String>,
    /// Failing tests, if tests failed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub failing_tests: BTreeSet<String>,
}

/// A path or an entity that was changed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Changed {
    /// The path or the entity.
    pub what: String,
    /// Number of calls that changed it.
    pub calls: i64,
    /// Tools of these calls.
    pub tools: BTreeSet<String>,
}

impl Story {
    /// Creates an envelope's story at a time, in milliseconds since the machine's boot.
    pub fn of(session: &Session, envelope_id: &str, boot_ms: i64) -> StoreResult<Story> {
        let mut teller = Teller::default();
        let mut filter = OperationFilter {
            envelope_id: Some(envelope_id.to_owned()),
            after: Some(0),
            ..OperationFilter::default()
        };
        loop {
            let page = session.operations().list(&filter, PAGE_ROWS)?;
            let Some(last) = page.last() else {
                let mut story = teller.finish();
                let repeated = story.repeated_failures.iter_mut();
                for one in repeated.chain(&mut story.repeated_changes) {
                    one.edits_between =
                        session
                            .evidence()
                            .edits_over_rows(envelope_id, one.first_seq, one.last_seq)?;
                }
                story.running = session.intents().running_in(envelope_id)?;
                story.tests = evidence::newest_runs(
                    envelope_id,
                    &session.evidence().test_rows(envelope_id)?,
                    &session.evidence().newest_states(envelope_id)?,
                );
                story.untested = evidence::untested(session, envelope_id, &story.tests)?;
                story.unseen = session
                    .work_trees()
                    .unseen_at_closing(envelope_id)?
                    .into_iter()
                    .map(|(workspace, why)| Unseen { workspace, why })
                    .collect();
                story.circles = session
                    .evidence()
                    .restored_states(envelope_id)?
                    .into_iter()
                    .map(Circle::from)
                    .collect();
                for part in session.evidence().parts_of(envelope_id)? {
                    story
                        .parts
                        .push(Part::of(session.envelopes().as_at(part, boot_ms)?));
                }
                return Ok(story);
            };
            filter.after = Some(last.seq);
            page.iter().for_each(|operation| teller.hear(operation));
        }
    }

    /// Summary of the story in at most ten lines.
    pub fn summary(&self, envelope: &Envelope, boot_ms: i64) -> String {
        text::summarise(self, envelope, boot_ms)
    }

    /// Full text of the story.
    pub fn text(&self, envelope: &Envelope, boot_ms: i64) -> String {
        text::tell(self, envelope, boot_ms)
    }
}

impl Step {
    fn of(operation: &StoredOperation) -> Step {
        let tests = operation.outcome.as_ref().map(StoredTestOutcome::in_words);
        Step {
            seq: operation.seq,
            timestamp: operation.timestamp.clone(),
            tool: operation.tool.clone(),
            workspace: operation.workspace.clone(),
            actor: operation.actor.clone(),
            client: operation.client.clone(),
            outcome: outcome(operation).to_owned(),
            // The event of a test run repeats its outcome.
            note: operation.notes.first().filter(|_| tests.is_none()).cloned(),
            tests,
            diff: operation.diff_stats.as_ref().and_then(size_of_diff),
            artifact_ids: operation.artifact_ids.clone().unwrap_or_default(),
            count: 1,
            duration_ms: operation.duration_ms,
            limit: operation.limit_triggered.clone(),
        }
    }
}

impl LastTests {
    /// Test run of an operation. `None` if it ran no tests, or was refused.
    fn of(operation: &StoredOperation) -> Option<LastTests> {
        let is_lost = operation.op_type == "test_run" && operation.success.is_none();
        let outcome = match &operation.outcome {
            Some(outcome) => outcome.in_words(),
            None if is_lost => "outcome unknown".to_owned(),
            None => return None,
        };
        Some(LastTests {
            seq: operation.seq,
            passed: operation
                .outcome
                .as_ref()
                .is_some_and(|outcome| !outcome.is_failure()),
            outcome,
        })
    }
}

/// Size of a change to files in words. `None` if nothing changed.
fn size_of_diff(stats: &Value) -> Option<String> {
    let number = |name: &str| stats.get(name).and_then(Value::as_i64).unwrap_or(0);
    let (files, more, less) = (number("files_changed"), number("insertions"), number("deletions"));
    let files = match files {
        0 => return None,
        1 => "1 file".to_owned(),
        many => format!("{many} files"),
    };
    let cut = match stats.get("cut").and_then(Value::as_bool) {
        Some(true) => ", and lines that were not counted",
        _ => "",
    };
    Some(format!("{files}, +{more} -{less}{cut}"))
}

/// Outcome of an operation that ended with a question.
const ASKED: &str = "asked";

/// True if an operation ended with a policy's question to the user, or with the refusal for a client that cannot ask.
fn is_question(operation: &StoredOperation) -> bool {
    let is_open = |said: &SaidByPolicy| said.verdict == "ask" && said.answer.as_deref() == Some("none");
    operation.success == Some(false) && operation.verdicts.iter().any(is_open)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Outcome of an operation in one word.
fn outcome(operation: &StoredOperation) -> &str {
    match (operation.success, &operation.error_code) {
        (Some(true), _) => "done",
        (Some(false), _) if is_question(operation) => ASKED,
        (Some(false), Some(code)) => code,
        (Some(false), None) => "failed",
        (None, _) => "unknown",
    }
}

/// Builds a story from operations in order.
#[derive(Default)]
struct Teller {
    story: Story,
    refusals: BTreeMap<String, Refused>,
    verdicts: judged::Verdicts,
    failures: Seen,
    mutations: Seen,
    changes: BTreeMap<String, Changed>,
    /// Mutations so far.
    mutated: i64,
}

impl Teller {
    fn hear(&mut self, operation: &StoredOperation) {
        let story = &mut self.story;
        story.operations += 1;
        let is_question = is_question(operation);
        story.asked += i64::from(is_question);
        story.failed += i64::from(operation.success == Some(false) && !is_question);
        story.unknown += i64::from(operation.success.is_none());
        story.busy_ms += operation.duration_ms;
        if operation.op_type == "mutation" && operation.limit_triggered.is_none() {
            self.mutated += 1;
        }
        story.last_tests = LastTests::of(operation).or(story.last_tests.take());
        self.step(operation);
        self.refusal(operation);
        self.verdicts.hear(operation);
        self.failures
            .see(operation.failure_fingerprint.as_ref(), operation, self.mutated);
        self.mutations
            .see(operation.mutation_fingerprint.as_ref(), operation, self.mutated);
        for what in operation.changed_paths.iter().flatten() {
            let changed = self.changes.entry(what.clone()).or_insert_with(|| Changed {
                what: what.clone(),
                calls: 0,
                tools: BTreeSet::new(),
            });
            changed.calls += 1;
            changed.tools.insert(operation.tool.clone());
        }
    }

    fn step(&mut self, operation: &StoredOperation) {
        let outcome = outcome(operation);
        let told = Step::of(operation);
        let steps = &mut self.story.steps;
        if let Some(last) = steps.last_mut()
            && last.tool == told.tool
            && last.actor == operation.actor
            && last.outcome == outcome
            && last.limit == operation.limit_triggered
            && last.client == operation.client
            && last.tests == told.tests
            && last.note == told.note
            && last.workspace == told.workspace
            // Each change is a separate edit, even if equally many lines change.
            && last.diff.is_none()
            && told.diff.is_none()
            && last.artifact_ids.is_empty()
            && told.artifact_ids.is_empty()
        {
            last.count += 1;
            last.duration_ms += operation.duration_ms;
            return;
        }
        // One more than is listed, to show that there are more.
        if steps.len() <= MAX_STEPS {
            steps.push(told);
        }
    }

    fn refusal(&mut self, operation: &StoredOperation) {
        if operation.success != Some(false) || is_question(operation) {
            return;
        }
        let code = outcome(operation);
        let refused = self.refusals.entry(code.to_owned()).or_insert_with(|| Refused {
            code: code.to_owned(),
            count: 0,
            tools: BTreeSet::new(),
            first_seq: operation.seq,
            last_seq: operation.seq,
        });
        refused.count += 1;
        refused.last_seq = operation.seq;
        refused.tools.insert(operation.tool.clone());
    }

    fn finish(self) -> Story {
        let mut story = self.story;
        story.steps.truncate(MAX_STEPS);
        story.refusals = self.refusals.into_values().collect();
        story
            .refusals
            .sort_by_key(|refused| (-refused.count, refused.first_seq));
        story.refusals.truncate(MAX_REFUSALS);
        story.verdicts = self.verdicts.finish();
        story.repeated_failures = self.failures.repeated();
        story.repeated_changes = self.mutations.repeated();
        story.changes = self.changes.into_values().collect();
        story.changes.sort_by_key(|changed| -changed.calls);
        story.changes.truncate(MAX_CHANGES);
        story
    }
}

/// Fingerprints, and when each was first seen.
#[derive(Default)]
struct Seen(BTreeMap<(String, Option<String>), (i64, Repeated)>);

impl Seen {
    fn see(&mut self, fingerprint: Option<&String>, operation: &StoredOperation, mutated: i64) {
        let Some(fingerprint) = fingerprint else {
            return;
        };
        let workspace = operation.workspace.clone();
        let entry = self.0.entry((fingerprint.clone(), workspace.clone()));
        let (since, repeated) = entry.or_insert_with(|| {
            let repeated = Repeated {
                fingerprint: fingerprint.clone(),
                workspace,
                count: 0,
                mutations_between: 0,
                edits_between: None,
                first_seq: operation.seq,
                last_seq: operation.seq,
                tools: BTreeSet::new(),
                failing_tests: operation
                    .failing_tests
                    .iter()
                    .flatten()
                    .take(MAX_TESTS)
                    .cloned()
                    .collect(),
            };
            (mutated, repeated)
        });
        repeated.count += 1;
        repeated.mutations_between = mutated - *since;
        repeated.last_seq = operation.seq;
        repeated.tools.insert(operation.tool.clone());
    }

    fn repeated(self) -> Vec<Repeated> {
        let mut repeated: Vec<Repeated> = self
            .0
            .into_values()
            .map(|(_, repeated)| repeated)
            .filter(|repeated| repeated.count > 1)
            .collect();
        repeated.sort_by_key(|repeated| -repeated.count);
        repeated.truncate(MAX_REFUSALS);
        repeated
    }
}
