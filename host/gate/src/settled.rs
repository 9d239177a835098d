//! End of a call: its result, its statements for the ledger and the data of its reply.

use std::collections::BTreeMap;

use tollgate_components::policies::Verdict;
use tollgate_core::budget::Budget;
use tollgate_core::effect::Effect;
use tollgate_core::envelope::{Refusal, Standing};
use tollgate_core::failure_class::FailureClass;
use tollgate_sandbox::annotations::Annotations;
use tollgate_sandbox::progress::Line;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::storage::{PolicyRow, TestRun};

use super::consent::Pending;
use super::ended::{Begun, Ended};
use super::failure::Failure;
use super::mutation::Mutation;
use super::reply::Reply;
use super::told::Told;

/// End of a call, with everything that the ledger and the reply record besides the result.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) result: Result<Reply, Failure>,
    pub(super) standing: Option<Standing>,
    pub(super) limit: Option<Refusal>,
    /// Code of the limit that refused one of its programs, if the limit is not one of the envelope's own.
    pub(super) other_limit: Option<&'static str>,
    /// Counters of its envelope and of enclosing envelopes, for its row.
    pub(super) counters: Option<String>,
    /// Milliseconds until the time of its envelope is up.
    pub(super) remaining_ms: Option<i64>,
    /// Statements about envelopes for the row.
    pub(super) told: Told,
    pub(super) budgets: BTreeMap<String, Budget>,
    pub(super) mutation: Option<Mutation>,
    pub(super) annotations: Annotations,
    pub(super) stale: Vec<String>,
    /// Verdicts on the result.
    pub(super) verdicts: Vec<Verdict>,
    /// Everything that policies remember about the call, if one judged the result.
    pub(super) remembered: Option<Vec<PolicyRow>>,
    pub(super) question: Option<Pending>,
    /// Open requests for approval that the refusal is about.
    pub(super) approvals: Vec<String>,
    /// True if another call used the permit that let the call pass, so that nothing ran.
    pub(super) is_overtaken: bool,
    /// True if the call was not admitted, so that nothing ran and nothing was counted. Its row has the class
    /// [`FailureClass::Refused`], whatever prevented the call.
    pub(super) is_turned_away: bool,
    /// Registered tests that the call started, with their results as observed by the host.
    pub(super) tests: Vec<TestRun>,
    /// Log lines of the component, if they were held back until policies judged the result.
    pub(super) lines: Vec<Line>,
    /// Extent to which its component has begun.
    pub(super) begun: Begun,
}

impl Settled {
    pub(super) fn of(result: Result<Reply, Failure>) -> Settled {
        Settled {
            result,
            standing: None,
            limit: None,
            counters: None,
            remaining_ms: None,
            told: Told::default(),
            budgets: BTreeMap::new(),
            mutation: None,
            annotations: Annotations::default(),
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
            begun: Begun::Anything,
        }
    }

    /// Takes over the outcome of a guest.
    pub(super) fn end(&mut self, ended: Ended) {
        self.result = ended.result;
        self.annotations = ended.annotations;
        self.verdicts = ended.verdicts;
        self.lines = ended.lines;
        self.begun = ended.begun;
        self.remembered = ended.remembered;
        // Changes that were undone are not reported.
        if self.result.is_ok() {
            self.told.add(ended.told);
        }
    }

    pub(super) fn failed(failure: Failure) -> Settled {
        Settled::of(Err(failure))
    }

    /// End of a call whose component was not called.
    pub(super) fn not_begun(failure: Failure) -> Settled {
        Settled {
            begun: Begun::Nothing,
            ..Settled::failed(failure)
        }
    }

    /// End of a call that was not admitted.
    pub(super) fn turned_away(failure: Failure) -> Settled {
        Settled {
            is_turned_away: true,
            ..Settled::not_begun(failure)
        }
    }

    /// Refusal, if the call was refused.
    pub(super) fn refusal(&self) -> Option<&ToolError> {
        match &self.result {
            Ok(reply) => reply.refusal.as_deref(),
            Err(failure) => Some(&failure.error),
        }
    }

    /// True if a `write` call failed and left nothing behind. A tool may keep what it wrote and still return an error.
    pub(super) fn left_nothing(&self) -> bool {
        match &self.result {
            Ok(reply) => reply.refusal.is_some() && self.begun != Begun::Anything,
            Err(_) => true,
        }
    }

    /// True if a call with this effect may have left something that outlasts it, apart from its record.
    pub(super) fn has_effects(&self, effect: Effect) -> bool {
        match effect {
            Effect::Read => false,
            Effect::Write => !self.left_nothing(),
            Effect::Run => self.begun == Begun::Anything,
        }
    }

    /// Class of the failure, whether the call was admitted or not. `None` if the call succeeded.
    pub(super) fn cause(&self) -> Option<FailureClass> {
        match &self.result {
            // Only a tool can be refused and keep its writes.
            Ok(reply) => reply.refusal.as_ref().map(|_| FailureClass::ToolError),
            Err(failure) => Some(failure.class),
        }
    }

    /// Class of the failure for the call's row. `None` if the call succeeded.
    pub(super) fn failure_class(&self) -> Option<FailureClass> {
        let cause = self.cause()?;
        Some(match self.is_turned_away {
            true => FailureClass::Refused,
            false => cause,
        })
    }
}

/// Adds to a refusal the envelope whose named budget is exhausted, and the call that shows its use.
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
pub(super) fn answer(result: Result<Reply, Failure>) -> Result<Reply, ToolError> {
    match result.map_err(|failure| failure.error)? {
        Reply {
            refusal: Some(refusal),
            ..
        } => Err(*refusal),
        reply => Ok(reply),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Class of the row, and class of the failure.
    fn classes(settled: &Settled) -> (Option<FailureClass>, Option<FailureClass>) {
        (settled.failure_class(), settled.cause())
    }

    #[test]
    fn a_call_that_was_not_admitted_is_refused_whatever_prevented_it() {
        let failure = || Failure::host(ToolError::new("STORAGE_FAILED", "storage failed"));
        let (refused, host) = (Some(FailureClass::Refused), Some(FailureClass::Host));
        assert_eq!(classes(&Settled::failed(failure())), (host, host));
        assert_eq!(classes(&Settled::turned_away(failure())), (refused, host));
    }

    #[test]
    fn an_error_of_a_tool_stays_its_own_whatever_its_code() {
        let error = || ToolError::new("STORAGE_FAILED", "nothing was stored");
        let own = Some(FailureClass::ToolError);
        let failed = Settled::failed(Failure::of_tool(error()));
        assert_eq!(classes(&failed), (own, own));
        let kept = Settled::of(Ok(Reply {
            refusal: Some(Box::new(error())),
            ..Reply::default()
        }));
        assert_eq!(classes(&kept), (own, own));
        assert_eq!(classes(&Settled::of(Ok(Reply::default()))), (None, None));
    }

    #[test]
    fn a_failed_call_that_keeps_what_it_wrote_leaves_something_behind() {
        let error = || ToolError::new("AS_ASKED", "no");
        let kept = |begun: Begun| Settled {
            begun,
            ..Settled::of(Ok(Reply {
                refusal: Some(Box::new(error())),
                ..Reply::default()
            }))
        };
        assert!(kept(Begun::NoSideEffect).left_nothing());
        assert!(!kept(Begun::Anything).left_nothing());
        assert!(Settled::failed(Failure::of_tool(error())).left_nothing());
        assert!(!Settled::of(Ok(Reply::default())).left_nothing());
    }

    #[test]
    fn a_call_that_asks_has_effects_if_it_began_something_that_is_not_rolled_back() {
        let asked = |begun: Begun| Settled {
            begun,
            ..Settled::failed(Failure::of_tool(ToolError::new(
                "ANSWER_NEEDED",
                "a name is needed",
            )))
        };
        let effects = [Effect::Read, Effect::Write, Effect::Run];
        let of = |begun| effects.map(|effect| asked(begun).has_effects(effect));
        assert_eq!(of(Begun::NoSideEffect), [false, false, false]);
        assert_eq!(of(Begun::Anything), [false, false, true]);
        let turned_away = Settled::turned_away(Failure::refused(ToolError::new("NOT_ALLOWED", "no")));
        assert!(effects.iter().all(|effect| !turned_away.has_effects(*effect)));
    }
}
