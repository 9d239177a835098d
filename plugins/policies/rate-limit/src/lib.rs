//! The policy `rate-limit`: a maximum number of calls per time.
//!
//! Each permitted call takes one of `calls` slots for `seconds`, in the commit that admits it. At no time do
//! more calls of one key hold slots, however many requests arrive at once over any connections and hosts. So no
//! window of that length has more calls, wherever it begins. Failed calls release their slots.
//!
//! The ledger is checked as well: it has the calls of tools that this policy does not evaluate, and calls from
//! before it did.

mod group;

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, OperationFilter, Slot, Want, export_policy};

use group::Group;

/// Maximum number of calls in one query of the ledger.
const MAX_CALLS: u32 = 200;

/// Limits the number of calls per time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Maximum number of calls within `seconds`, 1 to 200.
    calls: u32,
    /// Length of the time window in seconds, for example 60.
    seconds: u32,
    /// Calls that are counted together: everybody, connection, actor or envelope. Default everybody.
    #[serde(default)]
    of: Whose,
    /// Count the calls of each tool separately. Default false.
    #[serde(default)]
    each_tool: bool,
    /// Effects of the tools that are limited; others are neither denied nor counted. Default: write and run.
    #[serde(default = "changes")]
    effects: Vec<Effect>,
}

/// Calls that are counted together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Whose {
    /// Calls of everybody.
    #[default]
    Everybody,
    /// Calls over one connection.
    Connection,
    /// Calls of one proven identity. Without one, calls over one connection, whatever actors they claim. Calls
    /// without a claimed actor also count together over all connections.
    Actor,
    /// Calls in one envelope; calls without an envelope count together.
    Envelope,
}

fn changes() -> Vec<Effect> {
    vec![Effect::Write, Effect::Run]
}

impl Policy for RateLimit {
    const NAME: &'static str = "rate-limit";
    const SUMMARY: &'static str = "Limits the number of calls per time.";
    const PHASE: Phase = Phase::Request;
    const WANTS: &'static [Want] = &[Want::LedgerQuery];

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if !(1..=MAX_CALLS).contains(&self.calls) {
            problems.push(Problem::new("calls", format!("must be from 1 to {MAX_CALLS}")));
        }
        if self.seconds == 0 {
            problems.push(Problem::new("seconds", "must be at least 1"));
        }
        if self.effects.is_empty() {
            problems.push(Problem::new("effects", "is empty, so nothing is limited"));
        }
        problems
    }

    fn before(&self, cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        if !self.effects.contains(&request.effect) {
            return Ok(Verdict::Pass);
        }
        for group in Group::of(self.of, request) {
            // Both are checked, so that a caller who waits as told does not have to wait again.
            let by_ledger = self.wait_by_ledger(cx, request, &group)?;
            let wait_ms = by_ledger.max(self.wait_by_slots(cx, request, &group)?);
            if let Some(wait_ms) = wait_ms {
                let seconds = wait_ms.max(1).saturating_add(999) / 1_000;
                let denial = self.denial(request, &group);
                return Ok(denial.remediation(format!("Call again in {seconds} s.")).into());
            }
        }
        Ok(Verdict::Pass)
    }
}
export_policy!(RateLimit);

impl RateLimit {
    fn window_ms(&self) -> i64 {
        i64::from(self.seconds) * 1_000
    }

    /// Time for which the calls in the ledger exceed the limit, if they do.
    fn wait_by_ledger(
        &self,
        cx: &PolicyCx<'_>,
        request: &Request,
        group: &Group<'_>,
    ) -> Result<Option<i64>, CannotJudge> {
        let text = |text: &str| Some(text.to_owned());
        let mut times: Vec<i64> = Vec::new();
        for effect in &self.effects {
            let mut filter = OperationFilter {
                tool: self.each_tool.then(|| request.tool.clone()),
                effect: Some(*effect),
                success: Some(true),
                since_ms: Some(request.at - self.window_ms() + 1),
                newest_first: true,
                limit: self.calls,
                ..OperationFilter::default()
            };
            match group {
                Group::Everybody => {}
                Group::Connection(connection) => filter.connection = text(connection),
                Group::Identity(identity) => filter.actor = text(identity),
                Group::Envelope(envelope) => filter.envelope_id = text(envelope),
                Group::NoActor | Group::NoEnvelope => filter.limit = MAX_CALLS,
            }
            let found = cx.ledger().query(&filter)?;
            let of_group = found.iter().filter(|operation| group.has(operation));
            times.extend(of_group.map(|operation| operation.at_ms));
        }
        times.sort_unstable_by(|one, other| other.cmp(one));
        let last = usize::try_from(self.calls).unwrap_or(usize::MAX) - 1;
        Ok(times
            .get(last)
            .map(|oldest| oldest + self.window_ms() - request.at))
    }

    /// Takes a slot. Returns the time until one is free, if none is.
    fn wait_by_slots(
        &self,
        cx: &PolicyCx<'_>,
        request: &Request,
        group: &Group<'_>,
    ) -> Result<Option<i64>, CannotJudge> {
        let tool = if self.each_tool { request.tool.as_str() } else { "" };
        let mut effects = self.effects.clone();
        effects.sort_unstable_by_key(|effect| *effect as u8);
        effects.dedup();
        let key = format!(
            "{} in {} of {effects:?} {tool}: {}",
            self.calls,
            self.seconds,
            group.key()
        );
        let window = self.window_ms().unsigned_abs();
        let slot = Slot::new(&key, self.calls, window, &self.denial(request, group));
        let wait_ms = cx.ledger().take_slot(&slot)?;
        Ok(wait_ms.map(|wait_ms| i64::try_from(wait_ms).unwrap_or(i64::MAX)))
    }

    /// Denial without the time to wait.
    fn denial(&self, request: &Request, group: &Group<'_>) -> Denial {
        let what = if self.each_tool {
            request.tool.as_str()
        } else if self.effects.contains(&Effect::Read) {
            "calls"
        } else {
            "calls that change something"
        };
        let who = group.title();
        Denial::new(
            "RATE_LIMITED",
            format!(
                "the rate limit for {what} is reached: {} in {} s for {who}",
                self.calls, self.seconds
            ),
        )
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
        assert!(denied(r#"{"calls": 2, "seconds": 60, "of": "actor"}"#, past()).is_none());
        assert!(denied(r#"{"calls": 3, "seconds": 60, "of": "envelope"}"#, past()).is_none());
    }

    #[test]
    fn an_agent_has_no_more_calls_by_other_names_for_itself() {
        let settings = r#"{"calls": 2, "seconds": 60, "of": "actor"}"#;
        let judge = Judge::<RateLimit>::new(settings).unwrap();
        let is_denied = |claimed: &str, connection: &str| {
            let request = Request {
                at: NOW,
                connection: connection.to_owned(),
                ..Request::of("task_create", &format!(r#"{{"actor": {claimed:?}}}"#))
            };
            judge.before(&request).is_denied()
        };
        assert!(!is_denied("ada", "con_1"));
        assert!(!is_denied("Ada", "con_1"));
        for name in ["ada", "claimed:ada", "token:ada", "grace", ""] {
            assert!(is_denied(name, "con_1"), "{name}");
        }
        assert!(!is_denied("ada", "con_2"));
    }

    #[test]
    fn calls_without_an_actor_or_an_envelope_count_together() {
        for of in ["actor", "envelope"] {
            let settings = format!(r#"{{"calls": 2, "seconds": 60, "of": "{of}"}}"#);
            let judge = Judge::<RateLimit>::new(&settings).unwrap();
            let is_denied = |connection: &str| {
                let request = Request {
                    at: NOW,
                    connection: connection.to_owned(),
                    ..Request::of("task_create", "{}")
                };
                judge.before(&request).is_denied()
            };
            assert!(!is_denied("con_1") && !is_denied("con_2"), "{of}");
            assert!(is_denied("con_3"), "{of}");
        }
        let none = Operation {
            envelope_id: Some("env_1".to_owned()),
            ..past(1, "task_create", "con_2")
        };
        let both = vec![none, past(1, "task_create", "con_2")];
        assert_eq!(
            denied(r#"{"calls": 2, "seconds": 60, "of": "envelope"}"#, both),
            None
        );
        let two = vec![past(1, "task_create", "con_2"), past(1, "task_create", "con_2")];
        assert!(denied(r#"{"calls": 2, "seconds": 60, "of": "envelope"}"#, two).is_some());
    }

    #[test]
    fn an_identity_has_its_own_calls_wherever_it_calls() {
        let settings = r#"{"calls": 1, "seconds": 60, "of": "actor"}"#;
        let judge = Judge::<RateLimit>::new(settings).unwrap();
        let is_denied = |identity: Option<&str>, connection: &str| {
            let request = Request {
                at: NOW,
                identity: identity.map(str::to_owned),
                connection: connection.to_owned(),
                ..Request::of("task_create", r#"{"actor": "token:ada"}"#)
            };
            judge.before(&request).is_denied()
        };
        assert!(!is_denied(None, "con_1"));
        assert!(!is_denied(Some("token:ada"), "con_1"));
        assert!(is_denied(Some("token:ada"), "con_2"));
        assert!(!is_denied(Some("token:bob"), "con_2"));
    }

    #[test]
    fn each_call_that_passes_takes_a_slot_that_is_refused_in_its_own_words() {
        let judge = Judge::<RateLimit>::new(r#"{"calls": 2, "seconds": 60, "effects": ["read"]}"#).unwrap();
        let read = request(Effect::Read);
        assert_eq!(judge.before(&read).verdict, Verdict::Pass);
        assert_eq!(judge.before(&read).verdict, Verdict::Pass);
        assert_eq!(judge.before(&request(Effect::Write)).verdict, Verdict::Pass);
        let Verdict::Deny(denial) = judge.before(&read).verdict else {
            panic!("a third call passed");
        };
        assert_eq!(
            (denial.code.as_str(), denial.remediation.as_str()),
            ("RATE_LIMITED", "Call again in 60 s.")
        );
        let slots = judge.session().slots();
        assert_eq!(slots.len(), 2);
        assert_eq!(
            (slots[0].slots, slots[0].milliseconds, slots[0].code.as_str()),
            (2, 60_000, "RATE_LIMITED")
        );
        assert!(slots[0].remediation.is_none() && !slots[0].kept_by_failed && !slots[0].reads_by_host);
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
