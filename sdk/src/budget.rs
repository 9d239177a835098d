//! Limits of the envelope around a call, and named budgets from which a call can reserve units.

use serde_json::json;
use thiserror::Error;

#[cfg(target_family = "wasm")]
use crate::Host;
use crate::host::HostRef;
use crate::{NextCall, ToolError};

/// A counter with its limit, in whole units.
///
/// ```
/// # use tollgate_sdk::Counter;
/// let approvals = Counter { name: "approvals".to_owned(), used: 2, limit: Some(5) };
/// assert_eq!(approvals.limit.map(|limit| limit - approvals.used), Some(3));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// `mutations`, `test_runs`, or the name of a configured budget.
    pub name: String,
    /// Units that are used or are reserved by running calls.
    pub used: u64,
    /// Maximum; `None` if the units are counted but not limited.
    pub limit: Option<u64>,
}

/// Envelope around a call.
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// session.set_envelope(Some("env_1"));
/// let envelope = cx.budget().current().expect("the call belongs to one");
/// assert_eq!(envelope.counter("mutations").map(|counter| counter.used), Some(0));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Envelope id, `env_…`.
    pub id: String,
    /// Counters of the envelope.
    pub counters: Vec<Counter>,
    /// Whole seconds until the deadline; `None` without one.
    pub remaining_seconds: Option<u64>,
}

impl Envelope {
    /// Finds a counter by name.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<&Counter> {
        self.counters.iter().find(|counter| counter.name == name)
    }
}

/// Reason why a reservation failed.
///
/// ```
/// # use tollgate_sdk::{BudgetError, ToolError};
/// let refusal = ToolError::from(BudgetError::NoEnvelope);
/// assert_eq!(refusal.next_call.map(|call| call.tool).as_deref(), Some("envelope_open"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BudgetError {
    /// The call does not belong to an open envelope.
    #[error("the call does not belong to an open envelope")]
    NoEnvelope,
    /// The operator configured no budget of this name, or did not grant the budget.
    #[error("budget `{0}` does not exist or is not granted to this pack")]
    Unknown(String),
    /// Fewer units are left than requested.
    #[error("budget `{}` has {} of {} units in use", .0.name, .0.used, .0.limit.unwrap_or_default())]
    Exhausted(Counter),
    /// A `Read` tool cannot reserve.
    #[error("this tool is read-only")]
    ReadOnly,
    /// A `Run` tool has an open transaction.
    #[error("a transaction is open; reserve before the transaction begins")]
    TransactionOpen,
    /// The host failed.
    #[error("the budget cannot be used; the host's log has the reason")]
    Internal,
}

impl From<BudgetError> for ToolError {
    fn from(err: BudgetError) -> ToolError {
        let error = |code: &str| ToolError::new(code, err.to_string());
        match &err {
            BudgetError::NoEnvelope => error("ENVELOPE_REQUIRED")
                .remediation("Open an envelope and pass its id as envelope_id.")
                .next_call(NextCall::new("envelope_open", json!({}))),
            BudgetError::Unknown(name) => error("BUDGET_UNKNOWN")
                .remediation("Ask the operator to configure the budget as `[envelope] budgets.NAME` and to grant it to \
                    the pack. Envelopes opened earlier do not have the budget.")
                .context("budget", name.as_str()),
            BudgetError::Exhausted(counter) => error("BUDGET_EXHAUSTED")
                .remediation("Report your progress to the user. To continue, open a new envelope with envelope_open.")
                .context("budget", counter.name.as_str())
                .context("used", counter.used)
                .context("limit", counter.limit),
            BudgetError::ReadOnly | BudgetError::TransactionOpen | BudgetError::Internal => {
                error("BUDGET_FAILED").remediation("Search the host's log for the operation's id.")
            }
        }
    }
}

/// Reserved units of a backend. Dropping the value returns all of them.
///
/// ```
/// use tollgate_sdk::BudgetError;
/// use tollgate_sdk::budget::Reserved;
///
/// /// Reservation of a custom backend.
/// struct Free;
///
/// impl Reserved for Free {
///     fn commit(self: Box<Self>, _used: u64) -> Result<(), BudgetError> {
///         Ok(())
///     }
/// }
/// # assert!(Box::new(Free).commit(1).is_ok());
/// ```
pub trait Reserved {
    /// Uses `used` units and returns the rest.
    fn commit(self: Box<Self>, used: u64) -> Result<(), BudgetError>;
}

/// Units reserved until they are committed. Dropping the value returns all of them.
///
/// ```
/// # use tollgate_sdk::{Cx, Effect, Hints, Pack, Tool, ToolError, Want, native::Session, tools};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Ask {}
/// # #[derive(serde::Serialize, schemars::JsonSchema)]
/// # struct Asked {}
/// impl Tool for Ask {
/// #     const NAME: &'static str = "approvals_ask";
/// #     const TITLE: &'static str = "Ask";
/// #     const EFFECT: Effect = Effect::Write;
/// #     type Output = Asked;
///     // …
///     fn run(self, cx: &Cx<'_>) -> Result<Asked, ToolError> {
///         let approval = cx.budget().reserve("approvals", 1)?;
///         // An error from here on would drop the reservation, and nothing would be used.
///         approval.commit(1)?;
///         Ok(Asked {})
///     }
/// }
/// # const PACK: Pack = Pack { name: "approvals", wants: &[Want::Budget("approvals")], tools: tools![Ask], ..Pack::EMPTY };
/// # let session = Session::new(&PACK);
/// # session.set_envelope(Some("env_1"));
/// session.set_budget("approvals", 1);
/// assert!(session.call("approvals_ask", "{}").is_ok());
/// assert_eq!(session.call("approvals_ask", "{}").unwrap_err().code, "BUDGET_EXHAUSTED");
/// ```
#[must_use = "dropping a reservation gives it back"]
pub struct Reservation<'a>(Box<dyn Reserved + 'a>);

impl Reservation<'_> {
    /// Uses `used` units and returns the rest. If `used` exceeds the reservation, the result is `Exhausted` and
    /// all reserved units count as used.
    pub fn commit(self, used: u64) -> Result<(), BudgetError> {
        self.0.commit(used)
    }
}

/// Access to budgets from a call. Created by [`Cx::budget`](crate::Cx::budget).
///
/// ```
/// # use tollgate_sdk::{CallInfo, Cx, Pack, native::Session};
/// # let (session, call) = (Session::new(&Pack::EMPTY), CallInfo::default());
/// # let cx = Cx::new(session.backend(), &call);
///
/// assert_eq!(cx.budget().current(), None, "the call belongs to no envelope");
/// assert!(cx.budget().reserve("approvals", 1).is_err());
/// ```
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    host: HostRef<'a>,
    mutations_ahead: u64,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(host: HostRef<'a>, mutations_ahead: u64) -> Budget<'a> {
        Budget {
            host,
            mutations_ahead,
        }
    }

    /// Envelope around this call, with its counters.
    #[must_use]
    pub fn current(&self) -> Option<Envelope> {
        let mut envelope = self.host.envelope()?;
        let mutations = envelope
            .counters
            .iter_mut()
            .filter(|counter| counter.name == "mutations");
        for counter in mutations {
            counter.used = counter.used.saturating_sub(self.mutations_ahead);
        }
        Some(envelope)
    }

    /// Reserves units of a named budget, in a `Write` tool, or in a `Run` tool outside any transaction.
    ///
    /// In a `Write` tool, used units belong to the call's own transaction: a tool error rolls them back.
    pub fn reserve(&self, name: &str, amount: u64) -> Result<Reservation<'a>, BudgetError> {
        self.host.reserve(name, amount).map(Reservation)
    }
}
