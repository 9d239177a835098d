//! `ledger`: additions to the current operation's record, and queries of past operations.

use tollgate_core::clock::Clock;
use tollgate_core::effect::Effect;
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{
    Namespace, OperationFilter, Ran, SaidByPolicy, Session, Slots, StoreResult, StoredOperation,
    StoredTestOutcome,
};
use wasmtime::component::{HasData, Linker};

use super::compare;
use crate::annotations::{Annotations, BadEvent};
use crate::bindings::tollgate::host::component;
use crate::bindings::tollgate::host::ledger::{
    self, Event, Filter, FoundOperation, Operation, Slot as WireSlot, TestOutcome, TestResult, TestedTree,
    WorkTree, WorkTreeChange,
};
use crate::bound_types::LedgerError;
use crate::facts::{Facts, Transactions};
use crate::permit::Slot;
use crate::process::Launcher;
use crate::work_tree::{self, Change};
use crate::workspaces::Access;

/// Most operations in one answer.
const MAX_LIMIT: u32 = 200;
/// Number of newest operations that are searched if no index leads to the requested ones.
const MAX_SEARCHED_ROWS: i64 = 10_000;

pub(crate) struct View<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) session: &'a Session,
    pub(crate) annotations: &'a mut Annotations,
    pub(crate) namespace: &'a Namespace,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) access: &'a Access,
    pub(crate) launcher: &'a Launcher,
    pub(crate) transactions: Transactions,
}

impl ledger::Host for View<'_> {
    fn append(&mut self, event: Event) -> Result<(), LedgerError> {
        if self.facts.is_policy {
            return Err(LedgerError::Denied);
        }
        Ok(self.annotations.add(event)?)
    }

    fn set_test_outcome(&mut self, outcome: TestOutcome) -> Result<(), LedgerError> {
        if self.facts.is_policy {
            return Err(LedgerError::Denied);
        }
        Ok(self.annotations.set_outcome(outcome)?)
    }

    fn seen_work_tree(&mut self, workspace: String) -> Result<WorkTree, LedgerError> {
        let nothing = |why: String| WorkTree {
            state: None,
            unseen: Some(why),
            edits: 0,
            observed_edits: 0,
            has_baseline: false,
            oscillation: None,
        };
        let Ok(reach) = self.access.workspace(&workspace) else {
            return Ok(nothing(
                "the workspace is not registered or not granted".to_owned(),
            ));
        };
        let session = self.session;
        let Some(envelope) = &self.facts.envelope_id else {
            let seen = self
                .facts
                .seen
                .as_ref()
                .filter(|seen| seen.workspace == workspace);
            let edits = session.as_host(|| session.work_trees().edits_of_workspace(&workspace))?;
            let (Some(seen), Some(edits)) = (seen, edits) else {
                let why = || "outside envelopes, only calls that run tests inspect the work tree".to_owned();
                return Ok(nothing(self.facts.unseen.clone().unwrap_or_else(why)));
            };
            return Ok(WorkTree {
                state: Some(seen.state.clone()),
                unseen: None,
                edits,
                observed_edits: 0,
                has_baseline: false,
                oscillation: None,
            });
        };
        let progress = session.as_host(|| session.work_trees().progress(envelope, &workspace))?;
        let Some(progress) = progress else {
            let without_git = || match reach.workspace.info.git {
                None => format!("workspace {workspace} has no Git access (git = \"read\")"),
                Some(_) => "no call has inspected the work tree yet".to_owned(),
            };
            return Ok(nothing(self.facts.unseen.clone().unwrap_or_else(without_git)));
        };
        Ok(WorkTree {
            state: Some(progress.state),
            unseen: self.facts.unseen.clone(),
            edits: progress.edits,
            observed_edits: progress.observed_edits,
            has_baseline: progress.has_baseline,
            oscillation: progress.oscillation,
        })
    }

    fn edits_over_envelopes(&mut self, workspace: String) -> Result<Option<u64>, LedgerError> {
        if self.access.workspace(&workspace).is_err() {
            return Ok(None);
        }
        let session = self.session;
        Ok(session.as_host(|| session.work_trees().edits_of_workspace(&workspace))?)
    }

    fn changed_since(
        &mut self,
        workspace: String,
        edits: u64,
    ) -> Result<Option<WorkTreeChange>, LedgerError> {
        let reach = self.access.workspace(&workspace).ok();
        let now = self
            .facts
            .seen
            .as_ref()
            .filter(|seen| seen.workspace == workspace);
        // Runs Git, for which no transaction may wait.
        let (Some(reach), Some(envelope), Some(now), Transactions::None) =
            (reach, &self.facts.envelope_id, now, self.transactions)
        else {
            return Ok(None);
        };
        let session = self.session;
        let Some(before) = session.as_host(|| {
            session
                .work_trees()
                .state_after_edits(envelope, &workspace, edits)
        })?
        else {
            return Ok(None);
        };
        match work_tree::change(&reach.workspace, self.launcher, &before, now) {
            Ok(change) => Ok(Some(told(&change))),
            Err(why) => {
                tracing::warn!(
                    op_id = self.facts.op_id,
                    why,
                    "cannot report a change of the work tree"
                );
                Ok(None)
            }
        }
    }

    fn query(&mut self, filter: Filter) -> Result<Vec<Operation>, LedgerError> {
        self.operations(filter, self.facts.is_policy)
    }

    fn query_whole(&mut self, filter: Filter) -> Result<Vec<Operation>, LedgerError> {
        self.operations(filter, false)
    }

    fn find(&mut self, op_id: String) -> Result<Option<FoundOperation>, LedgerError> {
        if !self.facts.granted.ledger_query {
            return Err(LedgerError::Denied);
        }
        let found = self.session.as_host(|| self.session.operations().find(&op_id))?;
        let may_see = |actor: &Option<String>| {
            let me = self.facts.looks_at.as_deref();
            me.is_none_or(|me| actor.as_deref() == Some(me))
        };
        let found = found.filter(|found| may_see(&found.operation.actor));
        Ok(found.map(|mut found| FoundOperation {
            tests: found.operation.outcome.take().map(tests),
            mutations: found.mutations,
            edits: found.edits,
            operation: operation(found.operation),
        }))
    }

    fn compare_work_tree(&mut self, op_id: String, workspace: String) -> Result<TestedTree, LedgerError> {
        if self.find(op_id.clone())?.is_none() {
            return Ok(compare::unknown("the operation is not in the ledger"));
        }
        self.compare(&op_id, &workspace)
    }

    fn take_once(&mut self, key: String, until: i64) -> Result<bool, LedgerError> {
        let Some(sitting) = &self.facts.sitting else {
            return Err(LedgerError::Denied);
        };
        let policy = self.namespace.pack();
        let (session, now_ms) = (self.session, self.clock.now_ms());
        // A call does not need a key that it cannot get: the policy may let it through for another reason.
        let is_free = session.as_host(|| session.permits().is_free(policy, &key, now_ms))?;
        Ok(is_free && sitting.take(policy, &key, until)?)
    }

    fn take_slot(&mut self, wanted: WireSlot) -> Result<Option<u64>, LedgerError> {
        let Some(sitting) = &self.facts.sitting else {
            return Err(LedgerError::Denied);
        };
        let policy = self.namespace.pack();
        let (key, slot) = wanted_slot(wanted);
        let slots = Slots {
            policy,
            key: &key,
            slots: slot.slots,
            held_ms: slot.held_ms,
        };
        let others = sitting.take_slot(policy, &key, slot)?;
        let now_ms = self.clock.now_ms();
        let session = self.session;
        let wait_ms = session.as_host(|| session.permits().slots_wait(slots, others, now_ms))?;
        Ok(wait_ms.map(|wait_ms| u64::try_from(wait_ms).unwrap_or_default().max(1)))
    }

    fn convert_error(&mut self, err: LedgerError) -> wasmtime::Result<ledger::Error> {
        Ok(self.wire_error(err))
    }
}

impl View<'_> {
    pub(super) fn wire_error(&self, err: LedgerError) -> ledger::Error {
        match err {
            LedgerError::Denied => ledger::Error::Denied,
            LedgerError::Event(err @ BadEvent::TooLarge { .. }) => ledger::Error::TooLarge(err.to_string()),
            LedgerError::Event(err @ BadEvent::Invalid(_)) => ledger::Error::Invalid(err.to_string()),
            LedgerError::Permit(err) => ledger::Error::Invalid(err.to_string()),
            LedgerError::Storage(err) => {
                tracing::error!(op_id = self.facts.op_id, %err, "a component's query of the ledger failed");
                ledger::Error::Internal
            }
        }
    }

    /// Operations as a policy sees them, including error codes and all verdicts.
    pub(super) fn judged_rows(
        &self,
        filter: Filter,
        error_code: Option<String>,
    ) -> Result<Vec<(Vec<SaidByPolicy>, Operation)>, LedgerError> {
        if !self.facts.granted.ledger_query {
            return Err(LedgerError::Denied);
        }
        let limit = filter.limit.clamp(1, MAX_LIMIT);
        let found = self.session.as_host(|| {
            let filter = OperationFilter {
                error_code,
                ..bounded(filter, self.session)?
            };
            self.judged(&filter, limit)
        })?;
        let rows = found.into_iter();
        Ok(rows
            .map(|mut row| (std::mem::take(&mut row.verdicts), operation(row)))
            .collect())
    }

    fn operations(&self, filter: Filter, with_members: bool) -> Result<Vec<Operation>, LedgerError> {
        if !self.facts.granted.ledger_query {
            return Err(LedgerError::Denied);
        }
        let limit = filter.limit.clamp(1, MAX_LIMIT);
        let found = self.session.as_host(|| {
            let filter = bounded(filter, self.session)?;
            if with_members {
                self.judged(&filter, limit)
            } else {
                self.session.operations().list(&filter, limit)
            }
        })?;
        Ok(found.into_iter().map(operation).collect())
    }

    /// Operations as a policy sees them, including members of batches and the calls of the request that were judged
    /// before.
    fn judged(&self, filter: &OperationFilter, limit: u32) -> StoreResult<Vec<StoredOperation>> {
        let mut earlier = match &self.facts.sitting {
            Some(sitting) => sitting.earlier(filter),
            None => Vec::new(),
        };
        let mut found = self.session.operations().judged(filter, limit)?;
        if earlier.is_empty() {
            return Ok(found);
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if filter.newest_first {
            earlier.reverse();
            earlier.append(&mut found);
            earlier.truncate(limit);
            return Ok(earlier);
        }
        found.append(&mut earlier);
        found.truncate(limit);
        Ok(found)
    }
}

fn told(change: &Change) -> WorkTreeChange {
    let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let paths = change.paths.iter().take(work_tree::MAX_PATHS);
    WorkTreeChange {
        paths: paths.map(|(mark, path)| format!("{mark} {path}")).collect(),
        more_paths: count(change.paths.len().saturating_sub(work_tree::MAX_PATHS)),
        insertions: change.insertions,
        deletions: change.deletions,
        uncounted_files: change.uncounted,
        uncompared_files: change.uncompared,
    }
}

/// Filter of a component, restricted so that the response time does not depend on the size of the ledger.
fn bounded(filter: Filter, session: &Session) -> StoreResult<OperationFilter> {
    let mut after = filter
        .after
        .map_or(0, |after| i64::try_from(after).unwrap_or(i64::MAX));
    if filter.envelope_id.is_none() && filter.failure_fingerprint.is_none() {
        after = after.max(session.ledger().head()?.seq.saturating_sub(MAX_SEARCHED_ROWS));
    }
    let since = filter.since.map(|ms| Timestamp::from_ms(ms).to_string());
    if let Some(since) = &since {
        after = after.max(session.operations().place_before(since)?);
    }
    Ok(OperationFilter {
        envelope_id: filter.envelope_id,
        pack: filter.pack,
        tool: filter.tool,
        success: filter.success,
        failure_fingerprint: filter.failure_fingerprint,
        effect: filter.effect.map(|effect| effect_of(effect).as_str().to_owned()),
        connection: filter.connection,
        actor: filter.actor,
        args_hash: filter.args_hash,
        after: Some(after),
        since,
        newest_first: filter.newest_first,
        ..OperationFilter::default()
    })
}

/// Key and slot from a component's request.
fn wanted_slot(wanted: WireSlot) -> (String, Slot) {
    let slot = Slot {
        slots: wanted.slots,
        held_ms: i64::try_from(wanted.milliseconds).unwrap_or(i64::MAX),
        kept_by_failed: wanted.kept_by_failed,
        reads_by_host: wanted.reads_by_host,
        code: wanted.code,
        reason: wanted.reason,
        remediation: wanted.remediation,
    };
    (wanted.key, slot)
}

fn tests(outcome: StoredTestOutcome) -> TestOutcome {
    TestOutcome {
        test_result: match outcome.result {
            Ran::Passed => TestResult::Passed,
            Ran::Failed => TestResult::Failed,
            Ran::Error => TestResult::Error,
            Ran::NoTests => TestResult::NoTests,
            Ran::TimedOut => TestResult::TimedOut,
            Ran::Killed => TestResult::Killed,
        },
        failed: outcome.failed,
        total: outcome.total,
        message: outcome.message,
    }
}

fn effect_of(effect: component::Effect) -> Effect {
    match effect {
        component::Effect::Read => Effect::Read,
        component::Effect::Write => Effect::Write,
        component::Effect::Run => Effect::Run,
    }
}

fn operation(stored: StoredOperation) -> Operation {
    Operation {
        seq: u64::try_from(stored.seq).unwrap_or_default(),
        op_id: stored.op_id,
        envelope_id: stored.envelope_id,
        pack: stored.pack,
        tool: stored.tool,
        at: Timestamp::parse(&stored.timestamp).map_or(0, Timestamp::as_ms),
        success: stored.success,
        error_code: stored.error_code,
        failure_fingerprint: stored.failure_fingerprint,
        mutation_fingerprint: stored.mutation_fingerprint,
        effect: match stored.effect.as_str() {
            "write" => component::Effect::Write,
            "run" => component::Effect::Run,
            _ => component::Effect::Read,
        },
        actor: stored.actor,
        connection: stored.connection,
        args_hash: stored.args_hash,
        result_hash: stored.result_hash,
    }
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    ledger::add_to_linker::<_, HasView>(linker, view)
}
