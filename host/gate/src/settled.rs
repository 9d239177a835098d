//! End of a call.

use std::collections::BTreeMap;

use tollgate_components::policies::Verdict;
use tollgate_core::budget::Budget;
use tollgate_core::envelope::{Refusal, Standing};
use tollgate_sandbox::annotations::Annotations;
use tollgate_sandbox::progress::Line;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::storage::{PolicyRow, TestRun};

use super::consent::Pending;
use super::ended::Ended;
use super::mutation::Mutation;
use super::reply::Reply;
use super::told::Told;

/// End of a call, with the statements of the ledger and the reply beside the result.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) result: Result<Reply, ToolError>,
    pub(super) standing: Option<Standing>,
    pub(super) limit: Option<Refusal>,
    /// Code of the limit that refused one of its programs, if it is not one of the envelope's own.
    pub(super) other_limit: Option<&'static str>,
    /// The counters of its envelope and of those around it, for its row.
    pub(super) counters: Option<String>,
    /// Milliseconds until the time of its envelope is over.
    pub(super) remaining_ms: Option<i64>,
    /// Statements of the row about envelopes.
    pub(super) told: Told,
    pub(super) budgets: BTreeMap<String, Budget>,
    pub(super) mutation: Option<Mutation>,
    pub(super) additions: Annotations,
    pub(super) stale: Vec<String>,
    /// Verdicts on the result.
    pub(super) verdicts: Vec<Verdict>,
    /// All that policies remember of the call, if one judged the result.
    pub(super) remembered: Option<Vec<PolicyRow>>,
    pub(super) question: Option<Pending>,
    /// Open requests for approval that its refusal is about.
    pub(super) approvals: Vec<String>,
    /// Another call used the permit that let the call pass, and nothing was run.
    pub(super) is_overtaken: bool,
    /// The call was not admitted: nothing was run, and nothing counted.
    pub(super) is_turned_away: bool,
    /// Registered tests that the call started, as the host saw them end.
    pub(super) tests: Vec<TestRun>,
    /// Log lines of the component, if they waited for policies that judge the result.
    pub(super) lines: Vec<Line>,
}

impl Settled {
    pub(super) fn of(result: Result<Reply, ToolError>) -> Settled {
        Settled {
            result,
            standing: None,
            limit: None,
            counters: None,
            remaining_ms: None,
            told: Told::default(),
            budgets: BTreeMap::new(),
            mutation: None,
            additions: Annotations::default(),
            stale: Vec::new(),
            verdicts: Vec::new(),
            remembered: None,
            question: None,
            approvals: Vec::new(),
            is_overtaken: false,
            is_turned_away: false,
            tests: Vec::new(),
            other_limit: None,
            lines: Vec::new(),
        }
    }

    /// Takes over what a guest came to.
    pub(super) fn end(&mut self, ended: Ended) {
        self.result = ended.result;
        self.additions = ended.additions;
        self.verdicts = ended.verdicts;
        self.lines = ended.lines;
        self.remembered = ended.remembered;
        // What was undone is not told.
        if self.result.is_ok() {
            self.told.add(ended.told);
        }
    }

    pub(super) fn refused(refusal: ToolError) -> Settled {
        Settled::of(Err(refusal))
    }

    /// The end of a call that was not admitted.
    pub(super) fn turned_away(refusal: ToolError) -> Settled {
        Settled {
            is_turned_away: true,
            ..Settled::refused(refusal)
        }
    }

    /// Refusal, if the call was refused.
    pub(super) fn refusal(&self) -> Option<&ToolError> {
        match &self.result {
            Ok(reply) => reply.refusal.as_deref(),
            Err(refusal) => Some(refusal),
        }
    }
}

/// Names the envelope whose named budget is used up, and the call that tells what used it.
pub(super) fn name_envelope(mut refusal: ToolError, envelope: Option<&str>) -> ToolError {
    let Some(envelope) = envelope.filter(|_| refusal.code == "BUDGET_EXHAUSTED") else {
        return refusal;
    };
    if !refusal.context.contains_key("envelope_id") {
        refusal = refusal.context("envelope_id", envelope);
    }
    if refusal.next_call.is_none() {
        let arguments = serde_json::json!({ "envelope_id": envelope });
        refusal = refusal.next_call(NextCall::new("ledger_report", arguments));
    }
    refusal
}

/// Answer for the caller.
pub(super) fn answer(result: Result<Reply, ToolError>) -> Result<Reply, ToolError> {
    match result? {
        Reply {
            refusal: Some(refusal),
            ..
        } => Err(*refusal),
        reply => Ok(reply),
    }
}
