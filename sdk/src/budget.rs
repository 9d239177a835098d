//! The limits of the envelope around a call, and named budgets to reserve from.

use serde_json::json;
use thiserror::Error;

use crate::{Host, NextCall, ToolError};

/// One counter with its limit, in whole units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// `mutations`, `test_runs`, or the name of a configured budget.
    pub name: String,
    /// Booked, and set aside by calls that are running.
    pub used: u64,
    /// Absent: counted, not limited.
    pub limit: Option<u64>,
}

/// The envelope around a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// `env_…`
    pub id: String,
    /// Its counters.
    pub counters: Vec<Counter>,
    /// Whole seconds until its deadline; absent without one.
    pub remaining_seconds: Option<u64>,
}

impl Envelope {
    /// One of its counters.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<&Counter> {
        self.counters.iter().find(|counter| counter.name == name)
    }
}

/// Why a reservation failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BudgetError {
    /// The call belongs to no open envelope.
    #[error("the call belongs to no open envelope")]
    NoEnvelope,
    /// The operator configured no budget of this name, or did not grant it.
    #[error("there is no budget `{0}` for this pack")]
    Unknown(String),
    /// Fewer units are left than asked for.
    #[error("of budget `{}` {} of {} are used", .0.name, .0.used, .0.limit.unwrap_or_default())]
    Exhausted(Counter),
    /// A `Read` tool cannot reserve.
    #[error("this tool only reads")]
    ReadOnly,
    /// In a `Run` tool: a transaction is open.
    #[error("a transaction is open; reserve before it begins")]
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
                .remediation("The operator configures it as `[envelope] budgets.NAME` and grants it to the pack; envelopes opened before do not have it.")
                .context("budget", name.as_str()),
            BudgetError::Exhausted(counter) => error("BUDGET_EXHAUSTED")
                .remediation("Report what was reached to your owner; more wants another envelope.")
                .context("budget", counter.name.as_str())
                .context("used", counter.used)
                .context("limit", counter.limit),
            BudgetError::ReadOnly | BudgetError::TransactionOpen | BudgetError::Internal => {
                error("BUDGET_FAILED").remediation("Look at the host's log under the operation's id.")
            }
        }
    }
}

/// Units set aside, as a backend keeps them. Dropping it gives all of them back.
pub trait Reserved {
    /// Books `used` units and gives back the rest.
    fn commit(self: Box<Self>, used: u64) -> Result<(), BudgetError>;
}

/// Units set aside until committed. Dropping it gives all of them back.
#[must_use = "dropping a reservation gives it back"]
pub struct Reservation<'a>(Box<dyn Reserved + 'a>);

impl Reservation<'_> {
    /// Books `used` units and gives back the rest. More than was reserved is `Exhausted`, and all that
    /// was reserved counts as used.
    pub fn commit(self, used: u64) -> Result<(), BudgetError> {
        self.0.commit(used)
    }
}

/// Budgets, as far as a call may use them. [`Cx::budget`](crate::Cx::budget) hands it out.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    host: &'a dyn Host,
    mutations_ahead: u64,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(host: &'a dyn Host, mutations_ahead: u64) -> Budget<'a> {
        Budget {
            host,
            mutations_ahead,
        }
    }

    /// The envelope around this call, with its counters.
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

    /// Sets units of a named budget aside, in a `Write` tool, or in a `Run` tool outside any
    /// transaction.
    ///
    /// In a `Write` tool what is booked belongs to the call's own transaction: a tool error undoes it.
    pub fn reserve(&self, name: &str, amount: u64) -> Result<Reservation<'a>, BudgetError> {
        self.host.reserve(name, amount).map(Reservation)
    }
}
