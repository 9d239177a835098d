//! The policy `require-actor`: a call that changes something says who makes it.
//!
//! The actor is the identity that the transport proved, else what the arguments `actor` or
//! `actor_name` claim.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, export_policy};

/// Wants to know who calls.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RequireActor {
    /// Effects of the tools that want an actor.
    effects: Vec<Effect>,
    /// Only a proven identity counts, not what an argument claims.
    proven: bool,
    /// The only actors there are; empty lets every name pass.
    known: Vec<String>,
}

impl Default for RequireActor {
    fn default() -> RequireActor {
        RequireActor {
            effects: vec![Effect::Write, Effect::Run],
            proven: false,
            known: Vec::new(),
        }
    }
}

impl Policy for RequireActor {
    const NAME: &'static str = "require-actor";
    const SUMMARY: &'static str = "A call that changes something says who makes it.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        if self.effects.is_empty() {
            return vec![Problem::new(
                "effects",
                "names no effect, so the policy does nothing",
            )];
        }
        Vec::new()
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        if !self.effects.contains(&request.effect) {
            return Ok(Verdict::Pass);
        }
        let actor = if self.proven {
            request.identity.as_deref()
        } else {
            request.actor()
        };
        Ok(match actor {
            None if self.proven => Denial::new("ACTOR_REQUIRED", "only a proven identity may do this")
                .remediation("Connect over HTTP with a token that names you.")
                .into(),
            None => Denial::new("ACTOR_REQUIRED", "the call does not say who makes it")
                .remediation(
                    "Say who you are in the argument `actor`, or `actor_name` where the tool has that.",
                )
                .into(),
            Some(actor) if !self.known.is_empty() && !self.known.iter().any(|known| known == actor) => {
                Denial::new("ACTOR_UNKNOWN", format!("nobody here is called `{actor}`"))
                    .remediation(format!("Known actors: {}.", self.known.join(", ")))
                    .into()
            }
            Some(_) => Verdict::Pass,
        })
    }
}
export_policy!(RequireActor);

#[cfg(test)]
mod tests {
    use tollgate_sdk::native::Judge;

    use super::*;

    fn code(settings: &str, request: &Request) -> String {
        match Judge::<RequireActor>::new(settings)
            .unwrap()
            .before(request)
            .verdict
        {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Deny(denial) => denial.code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn somebody_must_answer_for_a_change() {
        let anonymous = Request::of("task_create", "{}");
        let blank = Request::of("task_create", r#"{"actor": " "}"#);
        let named = Request::of("task_create", r#"{"actor": "ada"}"#);
        let reading = Request {
            effect: Effect::Read,
            ..anonymous.clone()
        };
        assert_eq!(code("{}", &anonymous), "ACTOR_REQUIRED");
        assert_eq!(code("{}", &blank), "ACTOR_REQUIRED");
        assert_eq!(code("{}", &named), "pass");
        assert_eq!(code("{}", &reading), "pass");
        assert_eq!(code(r#"{"known": ["bob"]}"#, &named), "ACTOR_UNKNOWN");
        assert_eq!(code(r#"{"effects": ["run"]}"#, &anonymous), "pass");
    }

    #[test]
    fn a_claim_proves_nothing() {
        let named = Request::of("task_create", r#"{"actor": "ada"}"#);
        let proven = Request {
            identity: Some("ada".to_owned()),
            ..named.clone()
        };
        assert_eq!(code(r#"{"proven": true}"#, &named), "ACTOR_REQUIRED");
        assert_eq!(code(r#"{"proven": true}"#, &proven), "pass");
    }

    #[test]
    fn settings_that_do_nothing_are_a_mistake() {
        let problems = Judge::<RequireActor>::new(r#"{"effects": []}"#).err().unwrap();
        assert_eq!(problems[0].key, "effects");
        assert!(Judge::<RequireActor>::new(r#"{"efects": []}"#).is_err());
    }
}
