//! An envelope as clients see it: its limits, what is used of them, and repetitions among its operations.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_core::budget::Budget;
use tollgate_core::envelope::{Limits, State};
use tollgate_sdk::Timestamp;
use tollgate_store::storage::{Envelope, Session, StoreResult};

use crate::left::Left;

/// An envelope as clients see it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct EnvelopeView {
    /// Id of the envelope, for other calls.
    pub(super) envelope_id: String,
    /// The same as `envelope_id`.
    pub(super) id: String,
    /// OPEN or how it was closed.
    pub(super) state: State,
    /// Workspace of the envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<String>,
    /// Label that its owner gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) label: Option<String>,
    /// Note of the owner at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    /// Limits of the envelope.
    pub(super) limits: Limits,
    /// Used units of the limits.
    pub(super) counters: Counters,
    /// Unused part of each limit, while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left: Option<Left>,
    /// Parent envelope, whose limits its calls use as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<String>,
    /// True if it outlives its connection.
    pub(super) detached: bool,
    /// Named budgets.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) budgets: BTreeMap<String, BudgetView>,
    /// Used part of each limit, in percent.
    pub(super) used_percent: Percents,
    /// True if its time is over. The next call closes it.
    pub(super) expired: bool,
    /// Repository at the opening and closing of the envelope.
    pub(super) repo_snapshot: RepoSnapshot,
    /// Time of opening.
    pub(super) opened_at: String,
    /// Time of closing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) closed_at: Option<String>,
    /// Reason for closing, if not by its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) closed_by: Option<String>,
    /// Actor who closed the envelope, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) closed_actor: Option<String>,
    /// Fingerprint of the newest mutation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_mutation_fingerprint: Option<String>,
    /// Fingerprint of the newest failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_failure_fingerprint: Option<String>,
    /// Repetitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) flags: Option<Flags>,
}

/// Use of a named budget.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct BudgetView {
    /// Maximum number of units.
    limit: i64,
    /// Used units.
    used: i64,
    /// Units that running calls have reserved.
    reserved: i64,
    /// Units that can still be reserved.
    left: i64,
    /// Used part in percent.
    used_percent: i64,
}

/// Repetitions among an envelope's operations.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Flags {
    /// True if the newest mutation left the state unchanged.
    no_op: bool,
    /// Number of mutations since the state that the newest mutation restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    oscillation_period: Option<usize>,
    /// True if the newest failure persists after a mutation.
    non_progress: bool,
    /// True if the newest test run of a workspace differs from an earlier one without an edit in between.
    #[serde(skip_serializing_if = "is_false")]
    flaky: bool,
    /// True if the newest test run of a workspace failed after one that passed, with an edit in between.
    #[serde(skip_serializing_if = "is_false")]
    regression: bool,
    /// Number of times that the newest failure was seen.
    failure_seen: i64,
    /// Edits between the first and last occurrence of the newest failure, or mutations if no work tree was read.
    failure_mutations: i64,
}

/// Counters of an envelope.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Counters {
    /// Calls that may have changed something.
    pub(super) mutation_count: i64,
    /// Number of started test runs.
    pub(super) test_run_count: i64,
    /// Edits of the work tree that no call made.
    pub(super) observed_edits: i64,
    /// Seconds that the envelope has been or was open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) open_sec: Option<i64>,
}

/// Use of each limit there is, in percent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Percents {
    /// Used part of `max_mutations`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mutations: Option<i64>,
    /// Used part of `max_test_runs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    test_runs: Option<i64>,
    /// Used part of `max_edits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    edits: Option<i64>,
    /// Used part of `max_duration_sec`.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<i64>,
}

/// The repository when the envelope was opened and when it was closed.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct RepoSnapshot {
    /// Commit at the opening, if the envelope is about a Git work tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) git_head: Option<String>,
    /// State number of the work tree at the opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index_version: Option<i64>,
    /// After a restart: true if the work tree was changed after the last call, false if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) changed_before_restart: Option<bool>,
    /// Commit at the closing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) closed_git_head: Option<String>,
}

impl EnvelopeView {
    pub(super) fn of(session: &Session, envelope: Envelope, boot_ms: i64) -> StoreResult<EnvelopeView> {
        // An envelope whose time is up is closed for everyone, although the next call has yet to record that.
        let envelope = session.envelopes().as_at(envelope, boot_ms)?;
        let budgets = session.budgets().list(&envelope.id, None)?;
        let standing = envelope.standing;
        let is_open = standing.state == State::Open;
        let open_sec = match envelope.over_boot_ms {
            Some(over) => Some(standing.open_sec(over)),
            None if is_open => Some(standing.open_sec(boot_ms)),
            None => open_between(&envelope.opened_at, envelope.closed_at.as_deref()),
        };
        let (left, _) = Left::of(&standing, &budgets, boot_ms);
        let percent = |used: i64, limit: Option<i64>| limit.map(|limit| percent(used, limit));
        Ok(EnvelopeView {
            budgets: budgets
                .into_iter()
                .map(|(name, budget)| (name, BudgetView::of(budget)))
                .collect(),
            flags: None,
            envelope_id: envelope.id.clone(),
            id: envelope.id,
            state: standing.state,
            left: is_open.then_some(left).filter(|left| !left.is_empty()),
            parent: envelope.parent,
            detached: envelope.detached_until_ms.is_some(),
            workspace: envelope.workspace,
            label: envelope.label,
            note: envelope.note,
            limits: standing.limits,
            used_percent: Percents {
                mutations: percent(standing.mutations, standing.limits.max_mutations),
                test_runs: percent(standing.test_runs, standing.limits.max_test_runs),
                edits: percent(standing.edits, standing.limits.max_edits),
                duration: open_sec.and_then(|used| percent(used, standing.limits.max_duration_sec)),
            },
            counters: Counters {
                mutation_count: standing.mutations,
                test_run_count: standing.test_runs,
                observed_edits: standing.edits,
                open_sec,
            },
            expired: envelope.over_boot_ms.is_some(),
            repo_snapshot: RepoSnapshot {
                git_head: envelope.git_head,
                index_version: envelope.index_version,
                changed_before_restart: envelope.restart_moved,
                closed_git_head: envelope.closed_git_head,
            },
            opened_at: envelope.opened_at,
            closed_at: envelope.closed_at,
            closed_by: envelope.closed_by,
            closed_actor: envelope.closed_actor,
            last_mutation_fingerprint: envelope.last_mutation_fingerprint,
            last_failure_fingerprint: envelope.last_failure_fingerprint,
        })
    }

    /// View with repetitions, which takes a query of the ledger.
    pub(super) fn with_flags(mut self, session: &Session) -> StoreResult<EnvelopeView> {
        let period = session.evidence().newest_mutation_repeated(&self.id)?;
        let failure = match &self.last_failure_fingerprint {
            Some(fingerprint) => session.evidence().repeated_failure(&self.id, fingerprint)?,
            None => None,
        };
        let said = session.evidence().said_of_tests(&self.id)?;
        self.flags = Some(Flags {
            no_op: period == Some(1),
            oscillation_period: period.filter(|&period| period > 1),
            non_progress: said.map_or_else(
                || failure.is_some_and(|failure| failure.seen > 1 && failure.mutations > 0 && failure.stands),
                |said| said.non_progress,
            ),
            flaky: said.is_some_and(|said| said.flaky),
            regression: said.is_some_and(|said| said.regression),
            failure_seen: failure.map_or(0, |failure| failure.seen),
            failure_mutations: failure.map_or(0, |failure| failure.mutations),
        });
        Ok(self)
    }
}

impl BudgetView {
    fn of(budget: Budget) -> BudgetView {
        BudgetView {
            limit: budget.limit,
            used: budget.used,
            reserved: budget.reserved,
            left: budget.left(),
            used_percent: percent(budget.used, budget.limit),
        }
    }
}

/// Whole seconds between two times. `None` if the clock was set back in between.
fn open_between(opened_at: &str, closed_at: Option<&str>) -> Option<i64> {
    let opened = Timestamp::parse(opened_at)?.as_ms();
    let closed = Timestamp::parse(closed_at?)?.as_ms();
    (closed >= opened).then(|| (closed - opened) / 1_000)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

fn percent(used: i64, limit: i64) -> i64 {
    used.saturating_mul(100) / limit.max(1)
}
