//! The policy `rate-limit`: so many calls in so much time.
//!
//! What was called is read from the ledger, so that several hosts on one data directory count together and
//! nothing is forgotten by a restart. Calls that succeeded count, those inside others too, and those of the same request
//! that are judged before. Requests that arrive at the same moment are judged by the same ledger; where not one may pass
//! too many, give the envelope a budget.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, OperationFilter, Want, export_policy};

/// Most calls that one look at the ledger shows.
const MOST: u32 = 200;

/// Limits how often is called.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// So many calls, at most 200.
    calls: u32,
    /// In so many seconds.
    seconds: u32,
    /// Whose calls are counted together.
    #[serde(default)]
    of: Whose,
    /// Each tool has a count of its own.
    #[serde(default)]
    each_tool: bool,
    /// Effects of the tools that are limited; calls of others are neither refused nor counted.
    #[serde(default = "changes")]
    effects: Vec<Effect>,
}

/// Whose calls are counted together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Whose {
    /// Everybody's.
    #[default]
    Everybody,
    /// Those over one connection.
    Connection,
    /// Those by one actor; calls that name none count together.
    Actor,
    /// Those in one envelope; calls in none are not limited.
    Envelope,
}

fn changes() -> Vec<Effect> {
    vec![Effect::Write, Effect::Run]
}

impl Policy for RateLimit {
    const NAME: &'static str = "rate-limit";
    const SUMMARY: &'static str = "So many calls in so much time.";
    const PHASE: Phase = Phase::Request;
    const WANTS: &'static [Want] = &[Want::LedgerQuery];

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !(1..=MOST).contains(&self.calls) {
            problems.push(Problem::new("calls", format!("must be from 1 to {MOST}")));
        }
        if self.seconds == 0 {
            problems.push(Problem::new("seconds", "must be at least 1"));
        }
        if self.effects.is_empty() {
            problems.push(Problem::new("effects", "names no effect, so nothing is limited"));
        }
        problems
    }

    fn before(&self, cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let unlimited = self.of == Whose::Envelope && request.envelope_id.is_none();
        if unlimited || !self.effects.contains(&request.effect) {
            return Ok(Verdict::Pass);
        }
        let window = i64::from(self.seconds) * 1_000;
        // Without an actor the filter would not restrict, and nobody's calls would count as everybody's.
        let actor = request.recorded_actor().unwrap_or_default();
        let mut times: Vec<i64> = Vec::new();
        for effect in &self.effects {
            let found = cx.ledger().query(&OperationFilter {
                tool: self.each_tool.then(|| request.tool.clone()),
                effect: Some(*effect),
                success: Some(true),
                connection: (self.of == Whose::Connection).then(|| request.connection.clone()),
                actor: (self.of == Whose::Actor).then(|| actor.clone()),
                envelope_id: request.envelope_id.clone().filter(|_| self.of == Whose::Envelope),
                since_ms: Some(request.at - window + 1),
                newest_first: true,
                limit: self.calls,
                ..OperationFilter::default()
            })?;
            times.extend(found.iter().map(|operation| operation.at_ms));
        }
        times.sort_unstable_by(|one, other| other.cmp(one));
        let last = usize::try_from(self.calls).unwrap_or(usize::MAX) - 1;
        Ok(times.get(last).map_or(Verdict::Pass, |oldest| {
            self.denial(request, (oldest + window - request.at).max(1)).into()
        }))
    }
}
export_policy!(RateLimit);

impl RateLimit {
    fn denial(&self, request: &Request, wait_ms: i64) -> Denial {
        let whose = match self.of {
            Whose::Everybody => "all callers together",
            Whose::Connection => "each connection",
            Whose::Actor => "each actor",
            Whose::Envelope => "each envelope",
        };
        let what = if self.each_tool {
            request.tool.as_str()
        } else {
            "calls that change something"
        };
        let reason = format!("{whose} may make {} {what} in {} s", self.calls, self.seconds);
        Denial::new("RATE_LIMITED", reason)
            .remediation(format!("Call again in {} s.", (wait_ms + 999) / 1_000))
    }
}

#[cfg(test)]
mod tests {
    use tollgate_sdk::Operation;
    use tollgate_sdk::native::Judge;

    use super::*;

    const NOW: i64 = tollgate_sdk::native::EPOCH_MS;

    fn past(seconds_ago: i64, tool: &str, connection: &str) -> Operation {
        Operation {
            tool: tool.to_owned(),
            connection: connection.to_owned(),
            effect: Some(Effect::Write),
            at_ms: NOW - seconds_ago * 1_000,
            success: Some(true),
            ..Operation::default()
        }
    }

    fn request(effect: Effect) -> Request {
        Request {
            at: NOW,
            effect,
            ..Request::of("task_create", r#"{"actor": "ada"}"#)
        }
    }

    fn denied(settings: &str, past: Vec<Operation>) -> Option<String> {
        let judge = Judge::<RateLimit>::new(settings).unwrap();
        judge.session().set_operations(past);
        match judge.before(&request(Effect::Write)).verdict {
            Verdict::Pass => None,
            Verdict::Deny(denial) => Some(denial.remediation),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_call_after_the_last_waits_for_the_first_to_be_over() {
        let two = r#"{"calls": 2, "seconds": 60}"#;
        let calls = |ages: &[i64]| {
            ages.iter()
                .map(|age| past(*age, "task_create", "con_1"))
                .collect()
        };
        assert_eq!(denied(two, calls(&[70, 65, 50])), None);
        assert_eq!(
            denied(two, calls(&[50, 10])).as_deref(),
            Some("Call again in 10 s.")
        );
        assert_eq!(
            denied(two, calls(&[55, 50, 10])).as_deref(),
            Some("Call again in 10 s.")
        );
        assert_eq!(denied(two, calls(&[60, 59])), None);
    }

    #[test]
    fn what_counts_together_is_the_operators_choice() {
        let past = || vec![past(1, "task_create", "con_2"), past(1, "task_update", "con_1")];
        assert!(denied(r#"{"calls": 2, "seconds": 60}"#, past()).is_some());
        assert!(denied(r#"{"calls": 2, "seconds": 60, "of": "connection"}"#, past()).is_none());
        assert!(denied(r#"{"calls": 1, "seconds": 60, "of": "connection"}"#, past()).is_some());
        assert!(denied(r#"{"calls": 2, "seconds": 60, "each_tool": true}"#, past()).is_none());
        assert!(denied(r#"{"calls": 1, "seconds": 60, "of": "actor"}"#, past()).is_none());
        assert!(denied(r#"{"calls": 1, "seconds": 60, "of": "envelope"}"#, past()).is_none());
    }

    #[test]
    fn a_claim_uses_up_its_own_calls_and_no_identitys() {
        let settings = r#"{"calls": 1, "seconds": 60, "of": "actor"}"#;
        let is_denied = |identity: Option<&str>, claimed: &str, recorded: &str| {
            let judge = Judge::<RateLimit>::new(settings).unwrap();
            judge.session().set_operations(vec![Operation {
                actor: Some(recorded.to_owned()),
                ..past(1, "task_create", "con_1")
            }]);
            let request = Request {
                at: NOW,
                identity: identity.map(str::to_owned),
                ..Request::of("task_create", &format!(r#"{{"actor": {claimed:?}}}"#))
            };
            judge.before(&request).verdict != Verdict::Pass
        };
        assert!(is_denied(None, "ada", "claimed:ada"));
        assert!(is_denied(None, "token:ada", "claimed:token:ada"));
        assert!(!is_denied(None, "token:ada", "token:ada"));
        assert!(is_denied(Some("token:ada"), "x", "token:ada"));
        assert!(!is_denied(Some("token:ada"), "x", "claimed:token:ada"));
    }

    #[test]
    fn other_effects_are_free() {
        let judge = Judge::<RateLimit>::new(r#"{"calls": 1, "seconds": 60}"#).unwrap();
        judge
            .session()
            .set_operations(vec![past(1, "task_create", "con_1")]);
        assert_eq!(judge.before(&request(Effect::Read)).verdict, Verdict::Pass);
    }

    #[test]
    fn every_mistake_is_named() {
        let problems = Judge::<RateLimit>::new(r#"{"calls": 0, "seconds": 0, "effects": []}"#)
            .err()
            .unwrap();
        let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["calls", "seconds", "effects"]);
    }
}
