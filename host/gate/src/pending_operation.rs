//! Ledger row of a call, from its arrival at the gate to its end.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use tollgate_components::catalog::{Body, ToolEntry};
use tollgate_components::policies::Verdict;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::Charge;
use tollgate_core::failure_class::FailureClass;
use tollgate_core::hash;
use tollgate_core::share::Share;
use tollgate_sandbox::annotations::Annotations;
use tollgate_sandbox::permit::Permit;
use tollgate_sandbox::work_tree::Change;
use tollgate_sdk::Timestamp;
use tollgate_store::artifacts::{Artifact, ArtifactKind, CallArtifacts};
use tollgate_store::storage::{
    OpType, Operation, PolicyRow, Ran, StoredTestOutcome, TestRun, claimed_actor, started,
};

use super::call::Caller;
use super::envelope_settings::Window;
use super::failure::Failure;
use super::reply::Reply;
use super::seen::{LookedAt, Seen};
use super::settled::Settled;
use super::task_slot::TaskSlot;
use super::watched::Watch;
use super::window_use::Use;
use super::{Gate, admission, permits};

/// Row of a call whose end is not known yet.
#[derive(Clone)]
pub(super) struct PendingOperation {
    pub(super) started: Instant,
    /// Share of the call, for executors that are shared.
    pub(super) share: Share,
    /// True if its arguments may claim a caller.
    claims: bool,
    pub(super) charge: Charge,
    /// Envelope of the call. Its row may name another one that it is about.
    envelope: Option<String>,
    pub(super) operation: Operation,
    pub(super) recording: Recording,
    /// Time windows that it counts in, and its use of them.
    pub(super) windows: Arc<Vec<Window>>,
    pub(super) window_use: Use,
    /// Name of a registered test from its arguments, or from its tool's default.
    pub(super) test: Option<String>,
    /// Work tree that it is about, if edits of that count.
    pub(super) watch: Option<Watch>,
    /// State of that work tree before the call, or the reason for which it is unknown.
    pub(super) seen: Option<Seen>,
    /// Work trees of the envelope that the call closes.
    pub(super) closing: Vec<LookedAt>,
    /// Changes in that work tree since the last scan, before and during the call.
    pub(super) changes: Vec<Change>,
    /// True if its connection lasts, so that an envelope can be assigned to it.
    pub(super) joins: bool,
    /// Permits that the call must take, as required by the policies that let it through.
    pub(super) permits: Vec<Permit>,
    /// Verdicts before the call.
    pub(super) verdicts: Vec<Verdict>,
    /// Memory of the policies from before the call.
    pub(super) remembered: Vec<PolicyRow>,
    /// The task that the call may become.
    pub(super) task: Option<TaskSlot>,
}

/// Data of a call that is stored beside its row.
#[derive(Clone, Default)]
pub(super) struct Recording {
    pub(super) artifacts: CallArtifacts,
    /// Its arguments, if they are stored.
    pub(super) arguments: Option<(Artifact, Arc<str>)>,
    /// True if neither arguments nor result are stored.
    is_forgotten: bool,
    /// Diffs of the work tree, stored whatever the call's outcome.
    diffs: CallArtifacts,
}

/// Stored form of a result: what the component wrote, or the error.
pub(super) fn content(result: &Result<Reply, Failure>) -> Cow<'_, str> {
    match result {
        Ok(reply) => Cow::Borrowed(&reply.json),
        Err(failure) => Cow::Owned(serde_json::json!({ "error": failure.error }).to_string()),
    }
}

impl Gate {
    /// Row of a call that reached the gate.
    pub(super) fn pending_operation(
        &self,
        tool: &ToolEntry,
        arguments: &Value,
        caller: &Caller,
        envelope_id: Option<String>,
    ) -> PendingOperation {
        let identity = caller
            .identity
            .as_ref()
            .map(|identity| identity.as_str().to_owned());
        let mut pending = PendingOperation {
            started: Instant::now(),
            share: caller.share.clone(),
            // Queries of the host's own tools name an actor as a filter, not as a claim.
            claims: !matches!(tool.body, Body::Core(_)) || tool.spec.effect != Effect::Read,
            charge: admission::charge(tool, &[]),
            recording: Recording {
                artifacts: CallArtifacts::new(self.artifacts.clone(), caller.share.clone()),
                arguments: None,
                is_forgotten: false,
                diffs: CallArtifacts::new(self.artifacts.clone(), caller.share.clone()),
            },
            windows: Arc::default(),
            window_use: Use::default(),
            test: None,
            watch: None,
            seen: None,
            changes: Vec::new(),
            closing: Vec::new(),
            joins: false,
            permits: Vec::new(),
            verdicts: Vec::new(),
            remembered: Vec::new(),
            task: None,
            envelope: envelope_id.clone(),
            operation: Operation {
                op_id: self.clock.new_id("op"),
                envelope_id,
                timestamp: Timestamp::from_ms(self.clock.now_ms()).to_string(),
                duration_ms: 0.0,
                op_type: admission::op_type(tool),
                success: None,
                pack: tool.pack_name().to_owned(),
                tool: tool.spec.name.clone(),
                effect: tool.spec.effect,
                error_code: None,
                failure_class: None,
                limit_triggered: None,
                actor: identity,
                client: caller.recorded_client(),
                connection: caller.connection.clone(),
                request_id: caller.request_id.clone(),
                identity: caller.identity.clone(),
                host_id: self.host.id().to_owned(),
                args_hash: String::new(),
                result_hash: None,
                repo_before_hash: None,
                repo_after_hash: None,
                changed_paths: None,
                diff_stats: None,
                short_diff: None,
                mutation_fingerprint: None,
                failure_fingerprint: None,
                failing_tests: None,
                events: None,
                verdicts: None,
                artifact_ids: None,
                artifacts: Vec::new(),
                policy_rows: Vec::new(),
                gives_permits_back: false,
                members: None,
                outcome: None,
                counters: None,
                workspace: None,
                left_behind: None,
            },
        };
        pending.describe(arguments);
        pending
    }
}

impl PendingOperation {
    /// Records the call's arguments.
    pub(super) fn describe(&mut self, arguments: &Value) {
        // The row has the actor of the amended arguments too.
        if self.operation.identity.is_none() && self.claims {
            self.operation.actor = claimed_in(|key| arguments.get(key));
        }
        let canonical = tollgate_sdk::canonical_json(arguments);
        self.operation.args_hash = hash::sha256_hex(canonical.as_bytes());
        let described = self
            .recording
            .artifacts
            .announce(ArtifactKind::Arguments, &canonical);
        self.recording.arguments = described.map(|described| (described, Arc::from(canonical)));
    }

    /// Discards everything that the caller said: the call was not admitted, perhaps because of its content. An
    /// authenticated identity stays in the row.
    pub(super) fn forget_words(&mut self) {
        self.recording.arguments = None;
        self.recording.is_forgotten = true;
        if self.operation.identity.is_none() {
            self.operation.actor = None;
        }
        // A client may use any text as an id. Most use numbers.
        let is_number = |id: &String| id.bytes().all(|byte| byte.is_ascii_digit());
        self.operation.request_id = self.operation.request_id.take().filter(is_number);
    }

    /// Rows of policies that end requests for approval.
    pub(super) fn answered_requests(&self) -> Vec<PolicyRow> {
        let rows = self.operation.policy_rows.iter();
        rows.filter(|row| matches!(row, PolicyRow::Settle { .. }))
            .cloned()
            .collect()
    }

    /// Discards these rows, once they are written. A later request with the same key is another one.
    pub(super) fn forget_answered_requests(&mut self) {
        let rows = &mut self.operation.policy_rows;
        rows.retain(|row| !matches!(row, PolicyRow::Settle { .. }));
    }

    /// Discards statements about envelopes from an earlier run of the call: its transaction is gone, and with it the
    /// envelope that it opened.
    pub(super) fn run_again(&mut self) {
        self.operation.envelope_id.clone_from(&self.envelope);
    }

    /// The row, now that the end is known.
    pub(super) fn settle(mut self, settled: &Settled) -> Operation {
        self.finish(settled);
        self.operation
    }

    /// Completes the row. A call that runs again is completed again.
    pub(super) fn finish(&mut self, settled: &Settled) -> &Operation {
        let operation = &mut self.operation;
        operation.duration_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        let refusal = settled.refusal();
        operation.success = Some(refusal.is_none());
        operation.limit_triggered = settled
            .limit
            .filter(|limit| limit.is_limit())
            .map(|limit| limit.code())
            .or_else(|| refusal.and_then(|refusal| limit_of_others(&refusal.code)))
            .or(settled.other_limit)
            .map(str::to_owned);
        let mutation = settled.mutation.as_ref();
        operation.mutation_fingerprint = mutation.map(|mutation| mutation.fingerprint.clone());
        operation.changed_paths = mutation.and_then(|mutation| serde_json::to_string(&mutation.changed).ok());
        let done = settled.result.as_ref().ok().filter(|_| refusal.is_none());
        // If a call's files are written after its row, the state is stored when they are written.
        if operation.effect == Effect::Write && done.is_none_or(|reply| reply.deferred_writes.is_empty()) {
            operation.repo_after_hash.clone_from(&operation.repo_before_hash);
        }
        operation.result_hash = done.map(|reply| reply.hash());
        operation.error_code = refusal.map(|err| err.code.clone());
        operation.failure_class = settled.failure_class().map(|class| class.as_str().to_owned());
        operation.verdicts = verdicts(&self.verdicts, &settled.verdicts);
        let is_other = |row: &PolicyRow| !matches!(row, PolicyRow::Remember(_));
        operation.policy_rows.retain(is_other);
        let remembered = settled.remembered.as_ref().unwrap_or(&self.remembered);
        operation.policy_rows.extend(remembered.iter().cloned());
        operation.events = None;
        settled.annotations.fill(operation);
        fill_changes(&self.changes, &settled.annotations, operation);
        fill_runs(settled, operation);
        settled.told.fill(operation);
        operation.counters.clone_from(&settled.counters);
        operation.gives_permits_back = permits::gives_back(operation.effect, settled);
        // The call itself succeeded; the tests that it ran failed.
        let ran_tests = operation.op_type == OpType::TestRun || operation.outcome.is_some();
        if refusal.is_none() && ran_tests && operation.failure_fingerprint.is_some() {
            operation.failure_class = Some(FailureClass::TestFailure.as_str().to_owned());
        }
        operation.artifacts = self.recording.kept(&settled.result);
        let ids: Vec<&str> = operation
            .artifacts
            .iter()
            .map(|artifact| artifact.id.as_str())
            .collect();
        operation.artifact_ids = (!ids.is_empty()).then(|| serde_json::json!(ids).to_string());
        operation
    }
}

impl PendingOperation {
    /// Row for the case that the host dies during the call. It names the test that the call runs.
    pub(super) fn intent(&self) -> Operation {
        let mut operation = self.operation.clone();
        if let (Charge::TestRun, Some(test)) = (self.charge, &self.test) {
            operation.add_events(&[started(test)]);
        }
        operation
    }
}

impl Recording {
    /// True if the result is stored. The result of a call that was not admitted may repeat the call's content.
    pub(super) fn keeps_result(&self) -> bool {
        !self.is_forgotten && self.artifacts.wants(ArtifactKind::Result)
    }

    /// Stores the diff of a change, if diffs are stored. Failures go to the log.
    pub(super) fn keep_diff(&self, change: &Change) {
        let kept = self.diffs.create(ArtifactKind::Diff).and_then(|writer| {
            let Some(mut writer) = writer else { return Ok(None) };
            writer.write_all(change.patch.as_bytes())?;
            if change.patch_is_cut {
                writeln!(
                    writer,
                    "# changed files that are not shown: {}",
                    change.uncounted.max(1)
                )?;
            }
            writer.keep().map(Some)
        });
        if let Err(err) = kept {
            tracing::warn!(%err, "a diff is not kept");
        }
    }

    /// All content that is stored for a call that ended like this.
    fn kept(&self, result: &Result<Reply, Failure>) -> Vec<Artifact> {
        let mut kept = self.artifacts.kept();
        kept.extend(self.diffs.kept());
        kept.extend(self.arguments.iter().map(|(artifact, _)| artifact.clone()));
        if self.keeps_result() {
            kept.extend(self.artifacts.announce(ArtifactKind::Result, &content(result)));
        }
        kept
    }
}

/// Combined outcome of several tests. A failing test outweighs passing ones.
fn outcome_of(runs: &[TestRun]) -> Option<Ran> {
    let failed = runs.iter().find(|run| run.result != Ran::Passed);
    failed.or(runs.first()).map(|run| run.result)
}

/// Adds the tests that the host ran, and their outcome if the component reported none.
fn fill_runs(settled: &Settled, operation: &mut Operation) {
    let Some(result) = outcome_of(&settled.tests) else {
        return;
    };
    let told: Option<StoredTestOutcome> = operation
        .outcome
        .as_deref()
        .and_then(|outcome| serde_json::from_str(outcome).ok());
    let is_told = told.is_some();
    let mut outcome = told.unwrap_or(StoredTestOutcome {
        result,
        ..StoredTestOutcome::default()
    });
    outcome.runs.clone_from(&settled.tests);
    // The component read the output of the only run, for example that there were no tests.
    if let ([run], true) = (outcome.runs.as_mut_slice(), is_told) {
        run.result = outcome.result;
    }
    let is_stopped = settled.refusal().is_some();
    if !is_told && is_stopped && outcome.is_failure() && operation.failure_fingerprint.is_none() {
        // The call was stopped before anything read the failure. Tests that end like this again are the same failure.
        let runs = serde_json::to_string(&outcome.runs).unwrap_or_default();
        operation.failure_fingerprint = Some(hash::sha256_hex(runs.as_bytes()));
    }
    operation.outcome = serde_json::to_string(&outcome).ok();
}

/// Events in which a component reports the whole difference from the last commit.
const DIFFERENCE_EVENTS: [&str; 3] = ["mutation.recorded", "mutation.no_op", "mutation.oscillation"];

/// Adds the changes in the work tree since the last scan. They take precedence over a component's report of the whole
/// difference from the last commit. Other names in the report are kept, such as entities of the component and the
/// paths of a commit.
pub(super) fn fill_changes(changes: &[Change], annotations: &Annotations, operation: &mut Operation) {
    let Some((first, others)) = changes.split_first() else {
        return;
    };
    let mut all = first.clone();
    for change in others {
        all.insertions = all.insertions.saturating_add(change.insertions);
        all.deletions = all.deletions.saturating_add(change.deletions);
        all.uncounted = all.uncounted.saturating_add(change.uncounted);
        all.uncompared = all.uncompared.max(change.uncompared);
        for (mark, path) in &change.paths {
            if !all.paths.iter().any(|(_, known)| known == path) {
                all.paths.push((*mark, path.clone()));
            }
        }
    }
    let tells_difference = DIFFERENCE_EVENTS.iter().any(|event| annotations.has_event(event));
    let named: &[String] = if tells_difference {
        &[]
    } else {
        annotations.changed()
    };
    operation.changed_paths = Some(all.changed_paths_and(named));
    operation.diff_stats = Some(all.stats());
    operation.short_diff = Some(all.short());
}

/// Caller as the ledger names it: the authenticated identity, or the claim in the arguments.
pub(super) fn recorded_actor(caller: &Caller, arguments: &Map<String, Value>) -> Option<String> {
    let identity = caller.identity.as_ref();
    identity
        .map(|identity| identity.as_str().to_owned())
        .or_else(|| claimed_in(|key| arguments.get(key)))
}

/// Claimed name of the caller in the arguments.
fn claimed_in<'a>(argument: impl Fn(&str) -> Option<&'a Value>) -> Option<String> {
    let named = |key: &str| argument(key).and_then(Value::as_str).and_then(claimed_actor);
    named("actor").or_else(|| named("actor_name"))
}

/// Verdicts before and after a call, in the ledger's format.
fn verdicts(before: &[Verdict], after: &[Verdict]) -> Option<String> {
    if before.is_empty() && after.is_empty() {
        return None;
    }
    let all: Vec<&Verdict> = before.iter().chain(after).collect();
    serde_json::to_string(&all).ok()
}

/// The code itself, if it belongs to a limit that is not one of the envelope's own.
fn limit_of_others(code: &str) -> Option<&'static str> {
    ["WINDOW_EXHAUSTED", "BUDGET_EXHAUSTED"]
        .into_iter()
        .find(|limit| *limit == code)
}
