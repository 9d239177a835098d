//! The policy `require-actor`: denies changes without an actor.
//!
//! The actor is the identity that the transport proved, else the claim in the arguments `actor` or
//! `actor_name`.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, export_policy};

/// Denies calls without an actor.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RequireActor {
    /// Effects of the tools that require an actor. Default: write and run.
    effects: Vec<Effect>,
    /// Accept only a proven identity, not a claimed actor. Default false.
    proven: bool,
    /// Permitted actors. Default: every actor.
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
    const SUMMARY: &'static str = "Denies changes without an actor.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        if self.effects.is_empty() {
            return vec![Problem::new("effects", "is empty, so the policy has no effect")];
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
            None if self.proven => Denial::new("ACTOR_REQUIRED", "this call requires a proven identity")
                .remediation("Connect over HTTP with a token of your own.")
                .into(),
            None => Denial::new("ACTOR_REQUIRED", "the call has no actor")
                .remediation("Pass your name in the argument `actor`, or `actor_name` if the tool has that.")
                .into(),
            Some(actor) if !self.known.is_empty() && !self.known.iter().any(|known| known == actor) => {
                Denial::new("ACTOR_UNKNOWN", format!("`{actor}` is not a known actor"))
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
