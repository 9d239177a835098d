//! The policy `loop-breaker`: a caller that goes round in circles is stopped.
//!
//! Three circles are seen (`circle`): the same call with the same outcome again and again, a few calls that take turns and
//! bring nothing new, and one tool whose answer stays the same whatever it is asked. The past is read twice (`past`):
//! that of the envelope, or of the connection without one, and that of the caller over all envelopes and connections.
//! Calls at the same moment have no outcome yet, so that equal ones take one of `repeats` slots.
//!
//! A call that runs others is looked for as a whole, and those inside it among all others; their outcome is that of the
//! whole. Those of the request that is judged have none yet, and count as the same call did before.

mod circle;
mod past;

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, LedgerError, OperationFilter, Slot, Want, export_policy};

use circle::Circle;
use past::{Past, Scope};

/// The code of its denials.
const CODE: &str = "LOOP_DETECTED";
/// Most repetitions that can be waited for.
const MOST: u32 = 50;
/// Most calls that can take turns.
const MOST_CALLS: u32 = 8;
/// How long a call counts as simultaneous with others, in seconds: those that read, and others.
const SIMULTANEOUS: (u32, u32) = (5, 60);

/// Breaks loops.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoopBreaker {
    /// The same call with the same outcome so often in a row, or so often at once: the next is denied. 0 looks for none.
    repeats: u32,
    /// A few calls by turns, each with the same outcome so often: the next is denied. 0 looks for none.
    turns: u32,
    /// At most so many calls take turns, 2 to 8.
    rotation: u32,
    /// A tool with the same outcome so often in a row, whatever its arguments: its next call is denied. 0 looks for
    /// none. By default twice `repeats`.
    results: Option<u32>,
    /// What is older, in seconds, is over.
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
    const SUMMARY: &'static str = "A caller that goes round in circles is stopped.";
    const PHASE: Phase = Phase::Request;
    const WANTS: &'static [Want] = &[Want::LedgerQuery];

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let counts = [
            ("repeats", self.repeats, MOST),
            ("turns", self.turns, MOST),
            ("results", self.results(), 2 * MOST),
        ];
        for (key, value, most) in counts {
            if value == 1 || value > most {
                problems.push(Problem::new(key, format!("must be 0 or from 2 to {most}")));
            }
        }
        if self.repeats == 0 && self.turns == 0 && self.results() == 0 {
            problems.push(Problem::new(
                "repeats",
                "and `turns` are 0, so nothing is looked for",
            ));
        }
        if !(2..=MOST_CALLS).contains(&self.rotation) {
            problems.push(Problem::new(
                "rotation",
                format!("must be from 2 to {MOST_CALLS}"),
            ));
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

    /// How many calls of the past are looked at.
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

    /// The circle that a call goes on with in the past of a scope, if it does.
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

    /// Lets at most `repeats` equal calls through before the first of them is in the ledger.
    fn simultaneous(
        &self,
        cx: &PolicyCx<'_>,
        request: &Request,
        scope: &Scope,
        past: &Past,
    ) -> Result<Verdict, CannotJudge> {
        // The calls inside a call are simultaneous with nothing but what their whole is, too.
        if self.repeats == 0 || past.is_of_member() {
            return Ok(Verdict::Pass);
        }
        let seconds = match request.effect {
            Effect::Read => SIMULTANEOUS.0,
            Effect::Write | Effect::Run => SIMULTANEOUS.1,
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
        .remediation("Nothing new came of it: do something else, change the arguments, or ask your owner.")
}

#[cfg(test)]
mod tests;
