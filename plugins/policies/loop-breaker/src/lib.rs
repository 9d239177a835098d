//! The policy `loop-breaker`: a caller that goes round in circles is stopped.
//!
//! Two circles are seen: the same call with the same outcome again and again, and two calls that take turns and
//! bring each other nothing new. What counts is the envelope's past, or the connection's without an envelope, as
//! the ledger tells it. An outcome is what was changed, else what was answered, else the error's code.
//!
//! A call that runs others is looked for as a whole, and those inside it among all others; their outcome is that of the
//! whole. Those of the request that is judged have none yet, and count as the same call did before.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Operation, OperationFilter, Want, export_policy};

/// The code of its denials.
const CODE: &str = "LOOP_DETECTED";
/// Most repetitions that can be waited for.
const MOST: u32 = 50;

/// Breaks loops.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoopBreaker {
    /// The same call with the same outcome so often in a row: the next is denied. 0 looks for none.
    repeats: u32,
    /// Two calls by turns, each with the same outcome so often: the next is denied. 0 looks for none.
    turns: u32,
    /// What is older, in seconds, is over.
    seconds: u32,
}

impl Default for LoopBreaker {
    fn default() -> LoopBreaker {
        LoopBreaker {
            repeats: 3,
            turns: 3,
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
        for (key, value) in [("repeats", self.repeats), ("turns", self.turns)] {
            if value == 1 || value > MOST {
                problems.push(Problem::new(key, format!("must be 0 or from 2 to {MOST}")));
            }
        }
        if self.repeats == 0 && self.turns == 0 {
            problems.push(Problem::new(
                "repeats",
                "and `turns` are 0, so nothing is looked for",
            ));
        }
        if self.seconds == 0 {
            problems.push(Problem::new("seconds", "must be at least 1"));
        }
        problems
    }

    fn before(&self, cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let envelope_id = request.envelope_id.clone();
        let filter = OperationFilter {
            connection: envelope_id.is_none().then(|| request.connection.clone()),
            envelope_id,
            since_ms: Some(request.at - i64::from(self.seconds) * 1_000),
            newest_first: true,
            // Its own denials stand between, and are passed over.
            limit: 4 * self.repeats.max(self.turns),
            ..OperationFilter::default()
        };
        let past = cx.ledger().query(&filter)?;
        let calls = without_wholes(&past);
        let circle = self.circle(&seen(&calls), request);
        if circle.is_some() || calls.len() == past.len() {
            return Ok(circle.map_or(Verdict::Pass, Verdict::Deny));
        }
        let past = cx.ledger().query_whole(&filter)?;
        let wholes: Vec<&Operation> = past.iter().collect();
        let circle = self.circle(&seen(&wholes), request);
        Ok(circle.map_or(Verdict::Pass, Verdict::Deny))
    }
}
export_policy!(LoopBreaker);

/// The calls by themselves: without those that others are inside. The newest are first, so a whole comes after what is
/// in it.
fn without_wholes(past: &[Operation]) -> Vec<&Operation> {
    let rows = past.chunk_by(|next, operation| operation.is_of_same_row(next));
    rows.flat_map(|row| match row {
        [members @ .., _whole] if !members.is_empty() => members,
        row => row,
    })
    .collect()
}

/// What is compared of past calls, the newest first.
fn seen<'a>(past: &[&'a Operation]) -> Vec<Seen<'a>> {
    let mut seen: Vec<Seen<'a>> = Vec::new();
    for operation in past.iter().rev() {
        let Some(mut call) = Seen::of(operation) else {
            continue;
        };
        if operation.seq == JUDGED_NOW {
            let before = seen.iter().rev().find(|before| before.is_same_call(&call));
            call.outcome = before.map_or("", |before| before.outcome);
        }
        seen.push(call);
    }
    seen.reverse();
    seen
}

/// The place of calls inside the one that is judged, which is not in the ledger yet.
const JUDGED_NOW: u64 = 0;

/// What is compared of a past call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen<'a> {
    tool: &'a str,
    args_hash: &'a str,
    outcome: &'a str,
}

impl<'a> Seen<'a> {
    fn of(operation: &'a Operation) -> Option<Seen<'a>> {
        if operation.error_code.as_deref() == Some(CODE) {
            return None;
        }
        let outcome = operation.mutation_fingerprint.as_deref();
        let outcome = outcome
            .or(operation.result_hash.as_deref())
            .or(operation.error_code.as_deref());
        Some(Seen {
            tool: &operation.tool,
            args_hash: &operation.args_hash,
            outcome: outcome.unwrap_or_default(),
        })
    }

    fn is_same_call(&self, other: &Seen<'_>) -> bool {
        self.tool == other.tool && self.args_hash == other.args_hash
    }

    fn is_call(&self, request: &Request) -> bool {
        self.tool == request.tool && self.args_hash == request.args_hash
    }
}

impl LoopBreaker {
    /// Why a call closes a circle, if it does. `past` begins with the newest.
    fn circle(&self, past: &[Seen<'_>], request: &Request) -> Option<Denial> {
        let newest = past.first()?;
        let repeats = past.iter().take_while(|seen| *seen == newest).count();
        if self.repeats > 0 && newest.is_call(request) && reaches(repeats, self.repeats) {
            let reason = format!("this call had the same outcome {repeats} times in a row");
            return Some(denial(reason));
        }
        let before = past.get(1)?;
        if self.turns == 0 || newest.is_call(request) || !before.is_call(request) {
            return None;
        }
        let by_turns = past
            .chunks_exact(2)
            .take_while(|pair| *pair == [*newest, *before])
            .count();
        reaches(by_turns, self.turns).then(|| {
            denial(format!(
                "this call and {} took turns {by_turns} times, each with the same outcome",
                newest.tool
            ))
        })
    }
}

fn reaches(count: usize, limit: u32) -> bool {
    u32::try_from(count).is_ok_and(|count| count >= limit)
}

fn denial(reason: String) -> Denial {
    Denial::new(CODE, reason)
        .remediation("Nothing new came of it: do something else, change the arguments, or ask your owner.")
}

#[cfg(test)]
mod tests {
    use tollgate_sdk::native::Judge;

    use super::*;

    /// `a1` is a call `a` with outcome `1`; the newest is the last.
    fn denied(settings: &str, past: &str, call: &str) -> bool {
        let judge = Judge::<LoopBreaker>::new(settings).unwrap();
        let request = Request::of("task_get", &format!(r#"{{"id": "{call}"}}"#));
        let mut seq = 0;
        let operation = |word: &str| {
            let (call, outcome) = word.split_at(1);
            // `a1+` is inside the call before it, and `a?` of the request that is judged.
            let is_inside = outcome.ends_with('+');
            let outcome = outcome.trim_end_matches('+');
            seq += u64::from(!is_inside);
            let error_code = (outcome == "!").then(|| CODE.to_owned());
            Operation {
                tool: "task_get".to_owned(),
                op_id: format!("op_{seq}"),
                args_hash: format!(r#"{{"id":"{call}"}}"#),
                connection: request.connection.clone(),
                seq: if outcome == "?" { 0 } else { seq },
                result_hash: (error_code.is_none() && outcome != "?").then(|| outcome.to_owned()),
                error_code,
                ..Operation::default()
            }
        };
        judge
            .session()
            .set_operations(past.split_whitespace().map(operation).collect());
        judge.before(&request).is_denied()
    }

    #[test]
    fn circles_are_closed_and_progress_goes_on() {
        for (past, call, expected) in [
            ("", "a", false),
            ("a1 a1", "a", false),
            ("a1 a1 a1", "a", true),
            ("a1 a1 a1", "b", false),
            ("a1 a1 a2", "a", false),
            ("a1 b1 a1 a1", "a", false),
            // A denial changes nothing about the circle.
            ("a1 a1 a1 a!", "a", true),
            ("a1 a1 a1 a! b1", "a", false),
            ("a1 b1 a1 b1", "a", false),
            ("a1 b1 a1 b1 a1 b1", "a", true),
            ("a1 b1 a1 b1 a1 b1", "c", false),
            ("a1 b1 a1 b1 a1 b2", "a", false),
            ("a1 b1 a1 b1 a1 b1 a! a!", "a", true),
            // What is inside others counts by itself, and the whole as well.
            ("B1 a1+ B1 a1+ B1 a1+", "a", true),
            ("B1 a1+ B1 a1+ B1 a1+", "B", true),
            ("B1 a1+ C1 a1+ a1", "a", true),
            ("B1 a1+ c1+ B1 a1+ c1+ B1 a1+ c1+", "a", true),
            ("B1 a1+ c1+ d1+ B1 a1+ c1+ d1+ B1 a1+ c1+ d1+", "a", false),
            ("B1 a1+ c1+ d1+ B1 a1+ c1+ d1+ B1 a1+ c1+ d1+", "B", true),
            // Nobody knows yet what becomes of those that are judged.
            ("B? a?+ a?+", "a", false),
            ("B? a?+ a?+ a?+", "a", true),
            ("a1 a1 B? a?+", "a", true),
            ("a1 a2 B? a?+", "a", false),
            ("a1 a1 B? b?+", "a", false),
        ] {
            assert_eq!(denied("{}", past, call), expected, "{past} then {call}");
        }
    }

    #[test]
    fn either_circle_can_be_let_alone() {
        assert!(!denied(r#"{"repeats": 0}"#, "a1 a1 a1 a1", "a"));
        assert!(!denied(r#"{"turns": 0}"#, "a1 b1 a1 b1 a1 b1", "a"));
        assert!(denied(r#"{"repeats": 2}"#, "a1 a1", "a"));
    }

    #[test]
    fn every_mistake_is_named() {
        let problems = Judge::<LoopBreaker>::new(r#"{"repeats": 1, "turns": 51, "seconds": 0}"#)
            .err()
            .unwrap();
        let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["repeats", "turns", "seconds"]);
        assert!(Judge::<LoopBreaker>::new(r#"{"repeats": 0, "turns": 0}"#).is_err());
    }
}
