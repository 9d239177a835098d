//! Access to `ledger`, `artifacts` and `budget` through the component's imports.

use super::bindings::tollgate::host::{
    artifacts as wit_artifacts, budget as wit_budget, ledger as wit_ledger,
};
use crate::budget::Reserved;
use crate::{
    ArtifactError, ArtifactKind, BudgetError, Counter, Envelope, Event, FoundOperation, LedgerError,
    Operation, OperationFilter, SeenWorkTree, Slot, TestOutcome, TestResult, TestedTree, WorkTreeChange,
};

pub(super) fn append(event: &Event) -> Result<(), LedgerError> {
    wit_ledger::append(&wit_ledger::Event {
        event_type: event.event_type.clone(),
        changed: event.changed.clone(),
        note: event.note.clone(),
        failure_fingerprint: event.failure_fingerprint.clone(),
        mutation_fingerprint: event.mutation_fingerprint.clone(),
        failing_tests: event.failing_tests.clone(),
        diff_stats: event.diff_stats.clone(),
        short_diff: event.short_diff.clone(),
    })
    .map_err(ledger_error)
}

pub(super) fn set_test_outcome(outcome: &TestOutcome) -> Result<(), LedgerError> {
    wit_ledger::set_test_outcome(&wit_ledger::TestOutcome {
        test_result: match outcome.result {
            TestResult::Passed => wit_ledger::TestResult::Passed,
            TestResult::Failed => wit_ledger::TestResult::Failed,
            TestResult::Error => wit_ledger::TestResult::Error,
            TestResult::NoTests => wit_ledger::TestResult::NoTests,
            TestResult::TimedOut => wit_ledger::TestResult::TimedOut,
            TestResult::Killed => wit_ledger::TestResult::Killed,
        },
        failed: outcome.failed,
        total: outcome.total,
        message: outcome.message.clone(),
    })
    .map_err(ledger_error)
}

pub(super) fn seen_work_tree(workspace: &str) -> Result<SeenWorkTree, LedgerError> {
    let seen = wit_ledger::seen_work_tree(workspace).map_err(ledger_error)?;
    Ok(SeenWorkTree {
        state: seen.state,
        unseen: seen.unseen,
        edits: seen.edits,
        observed_edits: seen.observed_edits,
        has_baseline: seen.has_baseline,
        oscillation: seen.oscillation,
    })
}

pub(super) fn edits_over_envelopes(workspace: &str) -> Result<Option<u64>, LedgerError> {
    wit_ledger::edits_over_envelopes(workspace).map_err(ledger_error)
}

pub(super) fn changed_since(workspace: &str, edits: u64) -> Result<Option<WorkTreeChange>, LedgerError> {
    let change = wit_ledger::changed_since(workspace, edits).map_err(ledger_error)?;
    Ok(change.map(|change| WorkTreeChange {
        paths: change.paths,
        more_paths: change.more_paths,
        insertions: change.insertions,
        deletions: change.deletions,
        uncounted_files: change.uncounted_files,
        uncompared_files: change.uncompared_files,
    }))
}

pub(super) fn query(filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
    let found = wit_ledger::query(&wire_filter(filter)).map_err(ledger_error)?;
    Ok(found.into_iter().map(operation).collect())
}

pub(super) fn query_whole(filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
    let found = wit_ledger::query_whole(&wire_filter(filter)).map_err(ledger_error)?;
    Ok(found.into_iter().map(operation).collect())
}

pub(super) fn find(op_id: &str) -> Result<Option<FoundOperation>, LedgerError> {
    let found = wit_ledger::find(op_id).map_err(ledger_error)?;
    Ok(found.map(|found| FoundOperation {
        operation: operation(found.operation),
        tests: found.tests.map(tests),
        mutations: found.mutations,
        edits: found.edits,
    }))
}

pub(super) fn compare_work_tree(op_id: &str, workspace: &str) -> Result<TestedTree, LedgerError> {
    let tree = wit_ledger::compare_work_tree(op_id, workspace).map_err(ledger_error)?;
    Ok(TestedTree {
        workspace: tree.workspace,
        unchanged: tree.unchanged,
        looked: tree.looked,
        unseen: tree.unseen,
    })
}

fn tests(outcome: wit_ledger::TestOutcome) -> TestOutcome {
    TestOutcome {
        result: match outcome.test_result {
            wit_ledger::TestResult::Passed => TestResult::Passed,
            wit_ledger::TestResult::Failed => TestResult::Failed,
            wit_ledger::TestResult::Error => TestResult::Error,
            wit_ledger::TestResult::NoTests => TestResult::NoTests,
            wit_ledger::TestResult::TimedOut => TestResult::TimedOut,
            wit_ledger::TestResult::Killed => TestResult::Killed,
        },
        failed: outcome.failed,
        total: outcome.total,
        message: outcome.message,
    }
}

pub(super) fn wire_filter(filter: &OperationFilter) -> wit_ledger::Filter {
    wit_ledger::Filter {
        envelope_id: filter.envelope_id.clone(),
        pack: filter.pack.clone(),
        tool: filter.tool.clone(),
        success: filter.success,
        failure_fingerprint: filter.failure_fingerprint.clone(),
        effect: filter.effect.map(super::wire_effect),
        connection: filter.connection.clone(),
        actor: filter.actor.clone(),
        args_hash: filter.args_hash.clone(),
        after: filter.after,
        since: filter.since_ms,
        newest_first: filter.newest_first,
        limit: filter.limit,
    }
}

pub(super) fn take_once(key: &str, until_ms: i64) -> Result<bool, LedgerError> {
    wit_ledger::take_once(key, until_ms).map_err(ledger_error)
}

pub(super) fn take_slot(slot: &Slot) -> Result<Option<u64>, LedgerError> {
    wit_ledger::take_slot(&wit_ledger::Slot {
        key: slot.key.clone(),
        slots: slot.slots,
        milliseconds: slot.milliseconds,
        kept_by_failed: slot.kept_by_failed,
        reads_by_host: slot.reads_by_host,
        code: slot.code.clone(),
        reason: slot.reason.clone(),
        remediation: slot.remediation.clone(),
    })
    .map_err(ledger_error)
}

pub(super) fn operation(found: wit_ledger::Operation) -> Operation {
    Operation {
        seq: found.seq,
        op_id: found.op_id,
        envelope_id: found.envelope_id,
        pack: found.pack,
        tool: found.tool,
        at_ms: found.at,
        success: found.success,
        error_code: found.error_code,
        failure_fingerprint: found.failure_fingerprint,
        mutation_fingerprint: found.mutation_fingerprint,
        effect: Some(super::read_effect(found.effect)),
        actor: found.actor,
        connection: found.connection,
        args_hash: found.args_hash,
        result_hash: found.result_hash,
    }
}

pub(super) fn ledger_error(err: wit_ledger::Error) -> LedgerError {
    match err {
        wit_ledger::Error::Denied => LedgerError::Denied,
        wit_ledger::Error::TooLarge(why) => LedgerError::TooLarge(why),
        wit_ledger::Error::Invalid(why) => LedgerError::Invalid(why),
        wit_ledger::Error::Internal => LedgerError::Internal,
    }
}

pub(super) fn keep(kind: ArtifactKind, content: &[u8]) -> Result<Option<String>, ArtifactError> {
    let kind = match kind {
        ArtifactKind::Log => wit_artifacts::Kind::Log,
        ArtifactKind::Diff => wit_artifacts::Kind::Diff,
    };
    wit_artifacts::keep(kind, content).map_err(|err| match err {
        wit_artifacts::Error::Denied => ArtifactError::Denied,
        wit_artifacts::Error::ReadOnly => ArtifactError::ReadOnly,
        wit_artifacts::Error::TooLarge(why) => ArtifactError::TooLarge(why),
        wit_artifacts::Error::TooMany(count) => ArtifactError::TooMany(count),
    })
}

pub(super) fn envelope() -> Option<Envelope> {
    let current = wit_budget::current()?;
    Some(Envelope {
        id: current.id,
        counters: current.counters.into_iter().map(counter).collect(),
        remaining_seconds: current.remaining_seconds,
    })
}

pub(super) fn reserve(name: &str, amount: u64) -> Result<Box<dyn Reserved>, BudgetError> {
    let reservation = wit_budget::reserve(name, amount).map_err(budget_error)?;
    Ok(Box::new(reservation))
}

impl Reserved for wit_budget::Reservation {
    fn commit(self: Box<Self>, used: u64) -> Result<(), BudgetError> {
        wit_budget::Reservation::commit(*self, used).map_err(budget_error)
    }
}

fn counter(counter: wit_budget::Counter) -> Counter {
    Counter {
        name: counter.name,
        used: counter.used,
        limit: counter.limit,
    }
}

fn budget_error(err: wit_budget::Error) -> BudgetError {
    match err {
        wit_budget::Error::NoEnvelope => BudgetError::NoEnvelope,
        wit_budget::Error::Unknown(name) => BudgetError::Unknown(name),
        wit_budget::Error::Exhausted(at) => BudgetError::Exhausted(counter(at)),
        wit_budget::Error::ReadOnly => BudgetError::ReadOnly,
        wit_budget::Error::TransactionOpen => BudgetError::TransactionOpen,
        wit_budget::Error::Internal => BudgetError::Internal,
    }
}
