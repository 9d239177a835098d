//! Events that a tool adds to the record of its call, and access to past operations.

use thiserror::Error;

#[cfg(target_family = "wasm")]
use crate::Host;
use crate::host::HostRef;
use crate::policy::Denial;
use crate::{Effect, FoundOperation, TestedTree, ToolError};

/// Names and fingerprints that describe the effect of a call, never content.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Event, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// let event = Event::new("note.published").changed(["notes/note_1"]).note("by Ada");
/// cx.ledger().append(&event)?;
/// assert_eq!(session.events(), [event]);
/// # Ok::<(), tollgate_sdk::LedgerError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Dotted type, for example `task.created`.
    pub event_type: String,
    /// Changed entities, for example `gsd/M01/S01/T02`.
    pub changed: Vec<String>,
    /// One short line for readers of the ledger.
    pub note: Option<String>,
    /// SHA-256 of a normalised failure, in hexadecimal.
    pub failure_fingerprint: Option<String>,
    /// SHA-256 of the change, in hexadecimal.
    pub mutation_fingerprint: Option<String>,
    /// Names of failing tests.
    pub failing_tests: Vec<String>,
    /// Size of the change to files, as JSON.
    pub diff_stats: Option<String>,
    /// Changed files, one line each.
    pub short_diff: Option<String>,
}

/// Result of tests that a call ran or reported.
///
/// ```
/// # use tollgate_sdk::{TestOutcome, TestResult};
/// assert_eq!(TestOutcome::new(TestResult::NoTests).result, TestResult::NoTests);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestResult {
    /// All passed.
    Passed,
    /// At least one failed.
    Failed,
    /// The run itself failed, for example because the code does not compile.
    Error,
    /// No test was found.
    NoTests,
    /// The time limit ended the run.
    TimedOut,
    /// A signal ended the run.
    Killed,
}

/// Outcome of tests, independent of whether the call itself succeeded.
///
/// ```
/// # use tollgate_sdk::{TestOutcome, TestResult};
/// let outcome = TestOutcome {
///     failed: Some(2),
///     total: Some(14),
///     ..TestOutcome::new(TestResult::Failed)
/// };
/// # assert_eq!(outcome.message, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestOutcome {
    /// Result of the run.
    pub result: TestResult,
    /// Number of tests that failed, if known.
    pub failed: Option<u32>,
    /// Number of all tests, if known.
    pub total: Option<u32>,
    /// Message of the first failure, at most 500 bytes.
    pub message: Option<String>,
}

impl TestOutcome {
    /// Creates an outcome of which only the result is known.
    #[must_use]
    pub const fn new(result: TestResult) -> TestOutcome {
        TestOutcome {
            result,
            failed: None,
            total: None,
            message: None,
        }
    }
}

/// State of a workspace's work tree, as observed by the calls of an envelope.
///
/// ```
/// # use tollgate_sdk::SeenWorkTree;
/// let nobody_looked = SeenWorkTree::default();
/// assert_eq!((nobody_looked.state, nobody_looked.edits), (None, 0));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenWorkTree {
    /// SHA-256 of the paths, modes and contents of the files that Git does not ignore. `None` if no call scanned them.
    pub state: Option<String>,
    /// Reason why the work tree was not scanned.
    pub unseen: Option<String>,
    /// Edits since the envelope's first scan, by calls and by others. Files that test runs leave are not edits.
    pub edits: u64,
    /// Edits that no call made.
    pub observed_edits: u64,
    /// True if the state at the start of the envelope is known.
    pub has_baseline: bool,
    /// Number of edits since the work tree last had its newest state, if there were other states in between.
    pub oscillation: Option<u32>,
}

/// Change of a work tree from one state to a later one.
///
/// ```
/// # use tollgate_sdk::WorkTreeChange;
/// let change = WorkTreeChange { paths: vec!["~ src/lib.rs".to_owned()], ..WorkTreeChange::default() };
/// assert_eq!(change.files_changed(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkTreeChange {
    /// Changed paths, at most 500, each after `+ `, `~ ` or `- `.
    pub paths: Vec<String>,
    /// Number of changed paths that are not listed.
    pub more_paths: u64,
    /// Number of added lines.
    pub insertions: u64,
    /// Number of removed lines.
    pub deletions: u64,
    /// Number of changed files whose lines are not counted: not text, too large, or without their old content.
    pub uncounted_files: u64,
    /// Number of files that were not compared, because too many differ from the last commit.
    pub uncompared_files: u64,
}

impl WorkTreeChange {
    /// Number of changed paths, listed or not.
    #[must_use]
    pub fn files_changed(&self) -> u64 {
        self.more_paths.saturating_add(self.paths.len() as u64)
    }
}

impl Event {
    /// Creates an event with a dotted type.
    #[must_use]
    pub fn new(event_type: &str) -> Event {
        Event {
            event_type: event_type.to_owned(),
            ..Event::default()
        }
    }

    /// Adds changed entities.
    #[must_use]
    pub fn changed<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Event {
        self.changed.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Event {
        self.note = Some(note.into());
        self
    }

    /// Sets the fingerprint of a failure and the failing tests.
    #[must_use]
    pub fn failure<N: Into<String>>(
        mut self,
        fingerprint: &str,
        failing_tests: impl IntoIterator<Item = N>,
    ) -> Event {
        self.failure_fingerprint = Some(fingerprint.to_owned());
        self.failing_tests
            .extend(failing_tests.into_iter().map(Into::into));
        self
    }

    /// Sets the fingerprint of a change.
    #[must_use]
    pub fn mutation(mut self, fingerprint: &str) -> Event {
        self.mutation_fingerprint = Some(fingerprint.to_owned());
        self
    }
}

/// Filter for operations; `None` fields do not restrict. Without an envelope or a fingerprint, only the newest
/// 10,000 operations are searched.
///
/// ```
/// # use tollgate_sdk::OperationFilter;
/// let failures = OperationFilter {
///     tool: Some("note_publish".to_owned()),
///     success: Some(false),
///     newest_first: true,
///     limit: 10,
///     ..OperationFilter::default()
/// };
/// # assert_eq!(failures.limit, 10);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// Only operations of this envelope.
    pub envelope_id: Option<String>,
    /// Only operations of this pack.
    pub pack: Option<String>,
    /// Only operations of this tool.
    pub tool: Option<String>,
    /// Only operations with this outcome.
    pub success: Option<bool>,
    /// Only operations with this failure fingerprint.
    pub failure_fingerprint: Option<String>,
    /// Only operations with this effect.
    pub effect: Option<Effect>,
    /// Only operations over this connection.
    pub connection: Option<String>,
    /// Only operations by this actor: a proven identity, or a claimed name with or without `claimed:`.
    pub actor: Option<String>,
    /// Only operations with arguments of this hash.
    pub args_hash: Option<String>,
    /// Only operations after this sequence number.
    pub after: Option<u64>,
    /// Only operations since this time, in milliseconds since 1970 UTC.
    pub since_ms: Option<i64>,
    /// Sorts the newest first instead of the oldest.
    pub newest_first: bool,
    /// Maximum number of operations, 1 to 200.
    pub limit: u32,
}

/// A past operation.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Operation, OperationFilter, Pack, Want, native::Session};
/// # const PACK: Pack = Pack { wants: &[Want::LedgerQuery], ..Pack::EMPTY };
/// # let (session, call) = (Session::new(&PACK), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// let before = Operation { tool: "note_publish".to_owned(), success: Some(true), ..Operation::default() };
/// session.set_operations(vec![before.clone()]);
/// let found = cx.ledger().query(&OperationFilter { limit: 10, ..OperationFilter::default() })?;
/// assert_eq!(found, [before]);
/// # Ok::<(), tollgate_sdk::LedgerError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operation {
    /// Sequence number in the ledger.
    pub seq: u64,
    /// Id of the operation.
    pub op_id: String,
    /// Envelope that the operation belongs to.
    pub envelope_id: Option<String>,
    /// Pack of the tool.
    pub pack: String,
    /// Name of the tool.
    pub tool: String,
    /// Time in milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// Outcome, or `None` if unknown.
    pub success: Option<bool>,
    /// Code of the error.
    pub error_code: Option<String>,
    /// Fingerprint of the failure.
    pub failure_fingerprint: Option<String>,
    /// Fingerprint of the change.
    pub mutation_fingerprint: Option<String>,
    /// Effect with which the host ran the tool.
    pub effect: Option<Effect>,
    /// Caller: a proven identity, or `claimed:` and the value of the argument `actor` or `actor_name`.
    pub actor: Option<String>,
    /// Connection of the call.
    pub connection: String,
    /// SHA-256 of the arguments, in hexadecimal.
    pub args_hash: String,
    /// SHA-256 of the structured result, if the call succeeded, in hexadecimal.
    pub result_hash: Option<String>,
}

impl Operation {
    /// Checks whether two operations come from the same row. Calls inside a call are separate operations of its row.
    ///
    /// ```
    /// # use tollgate_sdk::Operation;
    /// let whole = Operation { seq: 7, op_id: "op_1".to_owned(), ..Operation::default() };
    /// let inside = Operation { tool: "note_publish".to_owned(), ..whole.clone() };
    /// assert!(inside.is_of_same_row(&whole));
    /// ```
    #[must_use]
    pub fn is_of_same_row(&self, other: &Operation) -> bool {
        !self.op_id.is_empty() && self.seq == other.seq && self.op_id == other.op_id
    }
}

/// One of the slots that calls with the same key share, for [`Ledger::take_slot`].
///
/// ```
/// use tollgate_sdk::policy::{CannotJudge, Denial, PolicyCx, Request, Verdict};
/// use tollgate_sdk::Slot;
///
/// /// At most two calls over a connection within any minute.
/// fn before(cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
///     let denial = Denial::new("TOO_OFTEN", "two calls a minute are enough");
///     let slot = Slot::new(&request.connection, 2, 60_000, &denial);
///     Ok(match cx.ledger().take_slot(&slot)? {
///         None => Verdict::Pass,
///         Some(wait_ms) => denial.remediation(format!("Call again in {wait_ms} ms.")).into(),
///     })
/// }
/// # let _ = before;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slot {
    /// Key that the calls share, 1 to 4,000 bytes. Each policy has its own keys.
    pub key: String,
    /// Maximum number of calls that hold a slot at a time, 1 to 1,000.
    pub slots: u32,
    /// Time for which a call holds its slot, from its admission on, in milliseconds.
    pub milliseconds: u64,
    /// If true, a failed call keeps its slot. Otherwise a failed call releases its slot, as with [`Ledger::take_once`].
    pub kept_by_failed: bool,
    /// If true, read calls are counted by this host alone, without a commit each. Other calls are always
    /// counted over all hosts of the data directory.
    pub reads_by_host: bool,
    /// Error code for a call that lost the race for the last slot.
    pub code: String,
    /// Reason in that error.
    pub reason: String,
    /// Remediation in that error. If `None`, the host says when to call again.
    pub remediation: Option<String>,
}

impl Slot {
    /// Creates a slot with the code and reason of a denial. If the denial has no remediation, the host says when to
    /// call again.
    #[must_use]
    pub fn new(key: &str, slots: u32, milliseconds: u64, denial: &Denial) -> Slot {
        Slot {
            key: key.to_owned(),
            slots,
            milliseconds,
            code: denial.code.clone(),
            reason: denial.reason.clone(),
            remediation: Some(denial.remediation.clone()).filter(|remediation| !remediation.is_empty()),
            ..Slot::default()
        }
    }
}

/// Reason why a request to the ledger failed.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, LedgerError, OperationFilter, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// // This pack does not ask for `Want::LedgerQuery`.
/// assert_eq!(cx.ledger().query(&OperationFilter::default()), Err(LedgerError::Denied));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LedgerError {
    /// The component has no grant for queries, or a policy tried to append.
    #[error("this component has no permission for this ledger operation")]
    Denied,
    /// The event, or all events of the call together, are too large.
    #[error("the event is too large: {0}")]
    TooLarge(String),
    /// A field has an invalid value.
    #[error("the event is not well-formed: {0}")]
    Invalid(String),
    /// The host failed.
    #[error("the ledger cannot be used; the host's log has the reason")]
    Internal,
}

impl From<LedgerError> for ToolError {
    fn from(err: LedgerError) -> ToolError {
        let (code, remediation) = match &err {
            LedgerError::Denied => (
                "LEDGER_DENIED",
                "Ask the operator to set `grants.ledger = true` for the pack.",
            ),
            LedgerError::TooLarge(_) | LedgerError::Invalid(_) => (
                "LEDGER_EVENT_INVALID",
                "Report the operation's id to the pack's author.",
            ),
            LedgerError::Internal => (
                "LEDGER_FAILED",
                "Read the host's log; search for the operation id.",
            ),
        };
        ToolError::new(code, err.to_string()).remediation(remediation)
    }
}

/// Access to the ledger from a call. Created by [`Cx::ledger`](crate::Cx::ledger).
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Event, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// cx.ledger().append(&Event::new("note.read").changed(["notes/note_1"]))?;
/// # Ok::<(), tollgate_sdk::ToolError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Ledger<'a> {
    host: HostRef<'a>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(host: HostRef<'a>) -> Ledger<'a> {
        Ledger { host }
    }

    /// Adds to the record of this call, even if the call ends with a tool error. If a call adds several events, the
    /// last fingerprint counts and names accumulate.
    pub fn append(&self, event: &Event) -> Result<(), LedgerError> {
        self.host.append_event(event)
    }

    /// Records the outcome of tests that this call ran or reported, independent of whether the call itself succeeds. If
    /// called several times, the last outcome counts.
    ///
    /// ```
    /// # use tollgate_sdk::{CallInfo, Cx, Pack, TestOutcome, TestResult, native::Session};
    /// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
    /// # let cx = Cx::new(session.backend(), &call);
    /// let mut outcome = TestOutcome::new(TestResult::Failed);
    /// (outcome.failed, outcome.total) = (Some(2), Some(14));
    /// cx.ledger().set_test_outcome(&outcome)?;
    /// # Ok::<(), tollgate_sdk::ToolError>(())
    /// ```
    pub fn set_test_outcome(&self, outcome: &TestOutcome) -> Result<(), LedgerError> {
        self.host.set_test_outcome(outcome)
    }

    /// State of a workspace's work tree, as observed by the calls of this call's envelope.
    ///
    /// ```
    /// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
    /// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
    /// # let cx = Cx::new(session.backend(), &call);
    /// let seen = cx.ledger().seen_work_tree("default")?;
    /// assert_eq!(seen.state, None);
    /// # Ok::<(), tollgate_sdk::ToolError>(())
    /// ```
    pub fn seen_work_tree(&self, workspace: &str) -> Result<SeenWorkTree, LedgerError> {
        self.host.seen_work_tree(workspace)
    }

    /// Number of observed edits of a workspace, by calls and by others, in all envelopes and between them. The number
    /// never decreases. `None` if no call scanned the work tree.
    ///
    /// ```
    /// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
    /// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
    /// # let cx = Cx::new(session.backend(), &call);
    /// assert_eq!(cx.ledger().edits_over_envelopes("default")?, None);
    /// # Ok::<(), tollgate_sdk::ToolError>(())
    /// ```
    pub fn edits_over_envelopes(&self, workspace: &str) -> Result<Option<u64>, LedgerError> {
        self.host.edits_over_envelopes(workspace)
    }

    /// Changes in a workspace from the envelope's state after `edits` edits ([`SeenWorkTree::edits`]) until this call.
    /// `None` if one of the states is unknown, inside a transaction, or in a tool that is not a `Run` tool.
    ///
    /// ```
    /// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
    /// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
    /// # let cx = Cx::new(session.backend(), &call);
    /// let since_the_opening = cx.ledger().changed_since("default", 0)?;
    /// assert_eq!(since_the_opening, None);
    /// # Ok::<(), tollgate_sdk::ToolError>(())
    /// ```
    pub fn changed_since(&self, workspace: &str, edits: u64) -> Result<Option<WorkTreeChange>, LedgerError> {
        self.host.changed_since(workspace, edits)
    }

    /// Past operations of all packs, oldest first by default, if granted.
    ///
    /// A policy also gets the calls inside a call. These follow that call and have its `seq`, `op_id` and outcome.
    /// While a policy evaluates a call inside another, the calls of the same request that were already evaluated are
    /// the newest operations. Their `seq` is 0, and they count as successful.
    pub fn query(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        self.host.query_ledger(filter)
    }

    /// Like [`query`](Ledger::query), without the calls inside calls.
    pub fn query_whole(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        self.host.query_whole(filter)
    }

    /// Finds the operation with this id, if granted. `None` if the operation does not exist or was pruned. Also `None`
    /// if the caller may see only its own operations and this is another caller's.
    ///
    /// ```
    /// # use tollgate_sdk::{CallInfo, Cx, Pack, Want, native::Session};
    /// # const PACK: Pack = Pack { wants: &[Want::LedgerQuery], ..Pack::EMPTY };
    /// # let (session, call) = (Session::new(&PACK), CallInfo::default());
    /// # let cx = Cx::new(session.backend(), &call);
    /// assert_eq!(cx.ledger().find("op_unknown")?, None);
    /// # Ok::<(), tollgate_sdk::ToolError>(())
    /// ```
    pub fn find(&self, op_id: &str) -> Result<Option<FoundOperation>, LedgerError> {
        self.host.find_operation(op_id)
    }

    /// Compares the work tree of a workspace with the one in which an operation ran, if granted. The result is empty
    /// for an operation that [`find`](Ledger::find) does not return.
    ///
    /// ```
    /// # use tollgate_sdk::{CallInfo, Cx, Pack, Want, native::Session};
    /// # const PACK: Pack = Pack { wants: &[Want::LedgerQuery], ..Pack::EMPTY };
    /// # let (session, call) = (Session::new(&PACK), CallInfo::default());
    /// # let cx = Cx::new(session.backend(), &call);
    /// assert_eq!(cx.ledger().compare_work_tree("op_unknown", "main")?.unchanged, None);
    /// # Ok::<(), tollgate_sdk::ToolError>(())
    /// ```
    pub fn compare_work_tree(&self, op_id: &str, workspace: &str) -> Result<TestedTree, LedgerError> {
        self.host.compare_work_tree(op_id, workspace)
    }

    /// Takes something that counts once, such as an approval, for the call that a policy is about to admit. Returns
    /// false if another call holds the key until `until_ms`, or if another call inside the same call holds it.
    ///
    /// ```
    /// use tollgate_sdk::policy::{CannotJudge, Denial, PolicyCx, Request, Verdict};
    ///
    /// fn before(cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
    ///     let hour = 3_600_000;
    ///     if cx.ledger().take_once(&request.args_hash, request.at + hour)? {
    ///         return Ok(Verdict::Pass);
    ///     }
    ///     Ok(Denial::new("SAME_AGAIN", "the same call was made within the hour").into())
    /// }
    /// # let _ = before;
    /// ```
    pub fn take_once(&self, key: &str, until_ms: i64) -> Result<bool, LedgerError> {
        self.host.take_once(key, until_ms)
    }

    /// Takes a slot for the call that a policy is about to admit. Returns `None` if a slot is free. Otherwise returns
    /// the milliseconds until a slot is free, and the policy should deny the call. Calls inside the same call count as
    /// well.
    ///
    /// The slot is taken in the commit that admits the call, and held from then on. If other calls took all slots in
    /// between, the call is refused with the slot's code and does not run. A key therefore never has more holders than
    /// slots.
    pub fn take_slot(&self, slot: &Slot) -> Result<Option<u64>, LedgerError> {
        self.host.take_slot(slot)
    }
}
