//! The policy `read-only-roles`: denies changes by some roles and identities.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, export_policy};

/// Denies changes by some roles and identities.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadOnlyRoles {
    /// Roles that may only read, as given in the arguments in `fields`.
    #[serde(default)]
    roles: Vec<String>,
    /// Identities that may only read, as proven by the transport.
    #[serde(default)]
    identities: Vec<String>,
    /// Names of arguments that hold a role. Default: actor_role and role.
    #[serde(default = "role_fields")]
    fields: Vec<String>,
    /// Tools with a write or run effect that are permitted nevertheless.
    #[serde(default)]
    except: Vec<String>,
}

fn role_fields() -> Vec<String> {
    ["actor_role", "role"].map(str::to_owned).to_vec()
}

impl Policy for ReadOnlyRoles {
    const NAME: &'static str = "read-only-roles";
    const SUMMARY: &'static str = "Denies changes by some roles and identities.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        if self.roles.is_empty() && self.identities.is_empty() {
            return vec![Problem::new(
                "roles",
                "is empty, like `identities`, so the policy has no effect",
            )];
        }
        Vec::new()
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        if request.effect == Effect::Read || self.except.contains(&request.tool) {
            return Ok(Verdict::Pass);
        }
        Ok(match self.reader(request) {
            None => Verdict::Pass,
            Some(who) => Denial::new("READ_ONLY_ROLE", format!("{who} may only read"))
                .remediation("Let an actor whose role permits it make the change.")
                .into(),
        })
    }
}
export_policy!(ReadOnlyRoles);

impl ReadOnlyRoles {
    /// Listed role or identity of the caller. Names are compared without case and surrounding spaces.
    fn reader(&self, request: &Request) -> Option<String> {
        let listed = |list: &[String], name: &str| {
            let name = name.trim();
            list.iter().any(|one| one.trim().eq_ignore_ascii_case(name))
        };
        if let Some(identity) = request.identity.as_deref()
            && listed(&self.identities, identity)
        {
            return Some(format!("`{identity}`"));
        }
        let roles = self
            .fields
            .iter()
            .filter_map(|field| request.arguments.get(field));
        roles
            .filter_map(Value::as_str)
            .find(|role| listed(&self.roles, role))
            .map(|role| format!("the role `{}`", role.trim()))
    }
}

#[cfg(test)]
mod tests {
    use tollgate_sdk::native::Judge;

    use super::*;

    const SETTINGS: &str =
        r#"{"roles": ["reviewer"], "identities": ["auditor"], "except": ["task_append_review"]}"#;

    #[test]
    fn readers_read() {
        let judge = Judge::<ReadOnlyRoles>::new(SETTINGS).unwrap();
        let reviewer = r#"{"actor_role": " Reviewer"}"#;
        assert!(
            judge
                .before(&Request::of("task_transition", reviewer))
                .is_denied()
        );
        assert!(
            !judge
                .before(&Request::of("task_append_review", reviewer))
                .is_denied()
        );
        assert!(
            !judge
                .before(&Request::of("task_transition", r#"{"actor_role": "executor"}"#))
                .is_denied()
        );
        let reading = Request {
            effect: Effect::Read,
            ..Request::of("task_get", reviewer)
        };
        assert!(!judge.before(&reading).is_denied());
        let auditor = Request {
            identity: Some("auditor".to_owned()),
            ..Request::of("task_create", "{}")
        };
        assert!(judge.before(&auditor).is_denied());
    }

    #[test]
    fn settings_that_name_nobody_are_a_mistake() {
        assert!(Judge::<ReadOnlyRoles>::new("{}").is_err());
    }
}
