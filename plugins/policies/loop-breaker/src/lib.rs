//! The policy `loop-breaker`: denies calls that repeat without progress.
//!
//! Three kinds of loops are detected (`circle`): the same call with the same outcome, a few calls that
//! alternate with the same outcomes, and a tool with the same outcome for any arguments. Past calls are read in
//! two scopes (`past`): those of the envelope, or of the connection without one, and those of the caller over
//! all envelopes and connections. Simultaneous calls have no outcome yet, so equal ones share `repeats` slots.
//!
//! A call that runs others is checked as a whole, and the calls inside it among all others; their outcome is
//! that of the whole. The calls of the current request have no outcome yet, and count like the same call
//! before.

mod circle;
mod past;

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, LedgerError, OperationFilter, Slot, Want, export_policy};

use circle::Circle;
use past::{Past, Scope};

/// Error code of its denials.
const CODE: &str = "LOOP_DETECTED";
/// Maximum number of repetitions.
const MAX_REPETITIONS: u32 = 50;
/// Maximum number of alternating calls.
const MAX_CALLS: u32 = 8;
/// Time for which a call counts as simultaneous with others, in seconds: for reads, and for others.
const SIMULTANEOUS_SEC: (u32, u32) = (5, 60);

/// Denies calls that repeat without progress.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoopBreaker {
    /// Number of times in a row, or at once, that the same call may have the same outcome; the next is denied.
    /// 0 disables this check. Default 3.
    repeats: u32,
    /// Number of times that a few calls may alternate with the same outcomes; the next is denied. 0 disables
    /// this check. Default 3.
    turns: u32,
    /// Maximum number of alternating calls, 2 to 8. Default 4.
    rotation: u32,
    /// Number of times in a row that a tool may have the same outcome, whatever the arguments; its next call is
    /// denied. 0 disables this check. Default twice `repeats`.
    results: Option<u32>,
    /// Age in seconds after which past calls no longer count. Default 600.
    seconds: u32,
}

impl Default for LoopBreaker {
    fn default() -> LoopBreaker {
        LoopBreaker {
            repeats: 3,
            turns: 3,
            rotation: 4,
            results: None,
            seconds: 600,
        }
    }
}

impl Policy for LoopBreaker {
    const NAME: &'static str = "loop-breaker";
    const SUMMARY: &'static str = "Denies calls that repeat without progress.";
    const PHASE: Phase = Phase::Request;
    const WANTS: &'static [Want] = &[Want::LedgerQuery];

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let counts = [
            ("repeats", self.repeats, MAX_REPETITIONS),
            ("turns", self.turns, MAX_REPETITIONS),
            ("results", self.results(), 2 * MAX_REPETITIONS),
        ];
        for (key, value, most) in counts {
            if value == 1 || value > most {
                problems.push(Problem::new(key, format!("must be 0 or from 2 to {most}")));
            }
        }
        if self.repeats == 0 && self.turns == 0 && self.results() == 0 {
            problems.push(Problem::new(
                "repeats",
                "is 0, like `turns` and `results`, so the policy has no effect",
            ));
        }
        if !(2..=MAX_CALLS).contains(&self.rotation) {
            problems.push(Problem::new("rotation", format!("must be from 2 to {MAX_CALLS}")));
        }
        if self.seconds == 0 {
            problems.push(Problem::new("seconds", "must be at least 1"));
        }
        problems
    }

    fn before(&self, cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let near = Scope::near(request);
        let past = self.past(cx, request, &near)?;
        if let Some(circle) = self.circle_in(cx, request, &near, &past)? {
            return Ok(denial(circle.reason()).into());
        }
        let caller = Scope::of_caller(request);
        let past = self.past(cx, request, &caller)?;
        if let Some(circle) = self.circle_in(cx, request, &caller, &past)? {
            return Ok(denial(circle.reason()).into());
        }
        self.simultaneous(cx, request, &caller, &past)
    }
}
export_policy!(LoopBreaker);

impl LoopBreaker {
    fn results(&self) -> u32 {
        self.results.unwrap_or(2 * self.repeats)
    }

    /// Number of past calls to read.
    fn depth(&self) -> u32 {
        let turns = self.rotation * self.turns.max(self.results());
        turns.max(self.repeats)
    }

    fn since_ms(&self, request: &Request) -> i64 {
        request.at - i64::from(self.seconds) * 1_000
    }

    fn past(&self, cx: &PolicyCx<'_>, request: &Request, scope: &Scope) -> Result<Past, LedgerError> {
        let query = |filter: &OperationFilter| cx.ledger().query(filter);
        scope.past(self.since_ms(request), self.depth(), query)
    }

    /// Loop that a call continues in the past of a scope, if any.
    fn circle_in(
        &self,
        cx: &PolicyCx<'_>,
        request: &Request,
        scope: &Scope,
        past: &Past,
    ) -> Result<Option<Circle>, CannotJudge> {
        if past.is_flooded_by(request) {
            return Ok(Some(Circle::Flood));
        }
        let (calls, has_wholes) = past.calls();
        let circle = circle::find(self, &calls, request);
        if circle.is_some() || !has_wholes {
            return Ok(circle);
        }
        let query = |filter: &OperationFilter| cx.ledger().query_whole(filter);
        let past = scope.past(self.since_ms(request), self.depth(), query)?;
        Ok(circle::find(self, &past.wholes(), request))
    }

    /// Permits at most `repeats` equal calls before the first of them is in the ledger.
    fn simultaneous(
        &self,
        cx: &PolicyCx<'_>,
        request: &Request,
        scope: &Scope,
        past: &Past,
    ) -> Result<Verdict, CannotJudge> {
        // Calls inside a call are simultaneous only if the outer calls are.
        if self.repeats == 0 || past.is_of_member() {
            return Ok(Verdict::Pass);
        }
        let seconds = match request.effect {
            Effect::Read => SIMULTANEOUS_SEC.0,
            Effect::Write | Effect::Run => SIMULTANEOUS_SEC.1,
        };
        let denial = denial(format!(
            "this call was made more than {} times at once",
            self.repeats
        ));
        let key = format!(
            "{} {} {} {}: {}",
            self.repeats,
            past.before_repeats(request),
            request.tool,
            request.args_hash,
            scope.key()
        );
        let slot = Slot {
            kept_by_failed: true,
            reads_by_host: true,
            ..Slot::new(
                &key,
                self.repeats,
                u64::from(seconds.min(self.seconds)) * 1_000,
                &denial,
            )
        };
        Ok(cx
            .ledger()
            .take_slot(&slot)?
            .map_or(Verdict::Pass, |_| denial.into()))
    }
}

fn denial(reason: String) -> Denial {
    Denial::new(CODE, reason)
        .remediation("The call makes no progress: do something else, change the arguments, or ask the user.")
}

#[cfg(test)]
mod tests;
