//! What a tool adds to the record of its call, and what it may read of others.

use thiserror::Error;

use crate::policy::Denial;
use crate::{Effect, Host, ToolError};

/// Names and fingerprints that describe what a call did. Never content.
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
    /// A dotted type such as `task.created`.
    pub event_type: String,
    /// The entities that changed, such as `gsd/M01/S01/T02`.
    pub changed: Vec<String>,
    /// One short line for a reader of the ledger.
    pub note: Option<String>,
    /// Hex SHA-256 of a normalised failure.
    pub failure_fingerprint: Option<String>,
    /// Hex SHA-256 of what was changed.
    pub mutation_fingerprint: Option<String>,
    /// Names of failing tests.
    pub failing_tests: Vec<String>,
    /// How much of files changed, as JSON.
    pub diff_stats: Option<String>,
    /// Which files changed, one line each.
    pub short_diff: Option<String>,
}

impl Event {
    /// An event of a dotted type.
    #[must_use]
    pub fn new(event_type: &str) -> Event {
        Event {
            event_type: event_type.to_owned(),
            ..Event::default()
        }
    }

    /// Names entities that changed.
    #[must_use]
    pub fn changed<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Event {
        self.changed.extend(names.into_iter().map(Into::into));
        self
    }

    /// Says something in a line.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Event {
        self.note = Some(note.into());
        self
    }

    /// Names a failure and the tests that fail.
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

    /// Names a change.
    #[must_use]
    pub fn mutation(mut self, fingerprint: &str) -> Event {
        self.mutation_fingerprint = Some(fingerprint.to_owned());
        self
    }
}

/// Which operations to return; absent fields do not restrict. Without an envelope or a fingerprint only
/// the newest 10,000 operations are looked at.
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
    /// Of this envelope.
    pub envelope_id: Option<String>,
    /// Of this pack.
    pub pack: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// With this outcome.
    pub success: Option<bool>,
    /// That failed in this way.
    pub failure_fingerprint: Option<String>,
    /// With this effect.
    pub effect: Option<Effect>,
    /// Over this connection.
    pub connection: Option<String>,
    /// By this actor: a proven identity, or a name as calls claim it, with or without `claimed:`.
    pub actor: Option<String>,
    /// With arguments of this hash.
    pub args_hash: Option<String>,
    /// Only after this sequence number.
    pub after: Option<u64>,
    /// Only from this time on, in milliseconds since 1970 UTC.
    pub since_ms: Option<i64>,
    /// The newest first, instead of the oldest.
    pub newest_first: bool,
    /// At most this many, 1 to 200.
    pub limit: u32,
}

/// One past operation.
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
    /// Its place in the ledger.
    pub seq: u64,
    /// Its id.
    pub op_id: String,
    /// The envelope it belongs to.
    pub envelope_id: Option<String>,
    /// Whose tool.
    pub pack: String,
    /// The tool.
    pub tool: String,
    /// Milliseconds since 1970 UTC.
    pub at_ms: i64,
    /// Absent: the outcome is unknown.
    pub success: Option<bool>,
    /// The refusal's or failure's code.
    pub error_code: Option<String>,
    /// The fingerprint of how it failed.
    pub failure_fingerprint: Option<String>,
    /// The fingerprint of what it changed.
    pub mutation_fingerprint: Option<String>,
    /// How the host ran it.
    pub effect: Option<Effect>,
    /// Who called: a proven identity, or `claimed:` and what the argument `actor` or `actor_name` says.
    pub actor: Option<String>,
    /// The connection it came over.
    pub connection: String,
    /// Hex SHA-256 of its arguments.
    pub args_hash: String,
    /// Hex SHA-256 of its structured result, if it succeeded.
    pub result_hash: Option<String>,
}

impl Operation {
    /// Whether both are of one row: the calls inside a call are operations beside it.
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

/// One of the slots that calls of one key share, for [`Ledger::take_slot`].
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
    /// What the calls have in common, 1 to 4,000 bytes. Each policy has its own.
    pub key: String,
    /// At most so many calls have one at a time, 1 to 1,000.
    pub slots: u32,
    /// How long a call has its slot, from its admission on, in milliseconds.
    pub milliseconds: u64,
    /// A call that fails keeps its slot. Otherwise it gives it back, as with [`Ledger::take_once`].
    pub kept_by_failed: bool,
    /// Calls that read are counted by this host alone, which spares each of them a commit. Others are counted over all
    /// hosts of the data directory in any case.
    pub reads_by_host: bool,
    /// The code of the refusal for a call that others were faster than.
    pub code: String,
    /// Its reason.
    pub reason: String,
    /// What the caller can do. Absent: the host says when to call again.
    pub remediation: Option<String>,
}

impl Slot {
    /// A slot with the code and reason of a denial. The host says when to call again, if the denial has no remediation.
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

/// Why a request to the ledger failed.
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
    /// The component was not granted queries, or is a policy that would append.
    #[error("this component may not do that with the ledger")]
    Denied,
    /// The event, or all of the call's events together, are larger than the host records.
    #[error("the event is too large: {0}")]
    TooLarge(String),
    /// A field does not hold what it should.
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
                "The operator grants it with `grants.ledger = true` of the pack.",
            ),
            LedgerError::TooLarge(_) | LedgerError::Invalid(_) => (
                "LEDGER_EVENT_INVALID",
                "Report the operation's id to the pack's author.",
            ),
            LedgerError::Internal => (
                "LEDGER_FAILED",
                "Look at the host's log under the operation's id.",
            ),
        };
        ToolError::new(code, err.to_string()).remediation(remediation)
    }
}

/// The ledger, as far as a call may use it. [`Cx::ledger`](crate::Cx::ledger) hands it out.
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
    host: &'a dyn Host,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Ledger<'a> {
        Ledger { host }
    }

    /// Adds to the record of this call. It is kept even when the call is a tool error. Of several events
    /// the last fingerprint counts; names add up.
    pub fn append(&self, event: &Event) -> Result<(), LedgerError> {
        self.host.append_event(event)
    }

    /// Past operations of every pack, oldest first unless asked otherwise, if granted.
    ///
    /// A policy gets the calls inside a call as well, after the call that they are in and with its `seq`, `op_id` and
    /// outcome. While it judges a call inside another, those of the same request that were judged before are the
    /// newest: with `seq` 0, and as if they had succeeded.
    pub fn query(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        self.host.query_ledger(filter)
    }

    /// As [`query`](Ledger::query), without the calls inside calls.
    pub fn query_whole(&self, filter: &OperationFilter) -> Result<Vec<Operation>, LedgerError> {
        self.host.query_whole(filter)
    }

    /// Takes something that counts once, such as an approval, for the call that a policy judges before it runs. Returns
    /// false if another call has it until `until_ms`, or another call inside the same one.
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

    /// Takes a slot for the call that a policy judges before it runs. `None` if one is free for it. If all are taken, by
    /// other calls or by calls inside the same one, after how many milliseconds the next one is free; the policy then
    /// denies the call.
    ///
    /// The call takes it in its own commit, from that moment on. If others took all of them since, it is refused with the
    /// slot's code and runs nothing, so that at no time more calls of a key have slots than there are.
    pub fn take_slot(&self, slot: &Slot) -> Result<Option<u64>, LedgerError> {
        self.host.take_slot(slot)
    }
}
