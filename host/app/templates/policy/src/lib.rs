//! A freeze: denies changes, except by listed actors.
//!
//! A policy is its settings: fields are the keys of `[policies.my-policy.config]`, and `before` evaluates a
//! call before it runs.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::Effect;
use tollgate_sdk::policy::{
    CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict,
};

/// Denies changes, except by listed actors.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    /// Reason for the freeze, shown to callers, for example "release day".
    reason: String,
    /// Actors that may make changes nevertheless: identities that the transport proved or, where it proves
    /// none, names that calls give as `actor`. Default none.
    #[serde(default)]
    except: Vec<String>,
}

impl Policy for Freeze {
    const NAME: &'static str = "my-policy";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "Denies changes during a freeze, except by listed actors.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.reason.trim().is_empty() {
            problems.push(Problem::new("reason", "must give a reason for callers"));
        }
        problems
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let may = |actor: &str| self.except.iter().any(|name| name == actor);
        if request.effect == Effect::Read || request.actor().is_some_and(may) {
            return Ok(Verdict::Pass);
        }
        let denial = Denial::new("FROZEN", format!("changes are frozen: {}", self.reason))
            .remediation("Wait until the freeze is over, or ask an actor who may make changes.");
        Ok(denial.into())
    }
}

tollgate_sdk::export_policy!(Freeze);

#[cfg(test)]
mod tests {
    use tollgate_sdk::Effect;
    use tollgate_sdk::native::Judge;
    use tollgate_sdk::policy::{Request, Verdict};

    use super::Freeze;

    #[test]
    fn only_those_who_may_change_something() {
        let judge =
            Judge::<Freeze>::new(r#"{"reason": "release day", "except": ["ada"]}"#).unwrap();
        let change = |arguments: &str| judge.before(&Request::of("task_create", arguments));
        assert!(change(r#"{"title": "x"}"#).is_denied());
        assert!(change(r#"{"title": "x", "actor": "bob"}"#).is_denied());
        assert_eq!(
            change(r#"{"title": "x", "actor": "ada"}"#).verdict,
            Verdict::Pass
        );
        let look = Request {
            effect: Effect::Read,
            ..Request::of("task_list", "{}")
        };
        assert_eq!(judge.before(&look).verdict, Verdict::Pass);
    }

    #[test]
    fn a_reason_is_wanted() {
        let problems = Judge::<Freeze>::new(r#"{"reason": " "}"#)
            .err()
            .unwrap_or_default();
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}
