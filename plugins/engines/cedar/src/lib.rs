//! The policy `cedar`: permissions in Cedar.
//!
//! The principal is `User::"NAME"` of the actor, the action `Action::"TOOL"`, the resource `Pack::"PACK"`. A call runs if a policy
//! permits it and none forbids it. `@code`, `@message` and `@remediation` of a `forbid` are the words of its denial.

use std::collections::HashMap;
use std::str::FromStr as _;

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityId, EntityTypeName, EntityUid, PolicyId, PolicySet,
    RestrictedExpression,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Problem, Request, Verdict};
use tollgate_sdk::{Effect, export_policy};

/// Code of a denial whose policy gives none.
const DEFAULT_CODE: &str = "FORBIDDEN";

/// Permits and forbids calls by policies in Cedar.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cedar {
    /// Policies in Cedar. A call that no policy permits is denied, so begin with `permit(principal, action, resource);`
    /// to deny only what a `forbid` names. `context` has `effect`, `arguments`, `proven` (whether the identity is),
    /// `client`, `envelope_id` and `at` in milliseconds since 1970 UTC. Arguments that are null are absent, and
    /// fractions are strings.
    policies: String,
}

impl Policy for Cedar {
    const NAME: &'static str = "cedar";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "Permits and forbids calls by policies in Cedar.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        match PolicySet::from_str(&self.policies) {
            Ok(policies) if policies.is_empty() => {
                vec![Problem::new(
                    "policies",
                    "contains no policy, so every call would be denied",
                )]
            }
            Ok(_) => Vec::new(),
            Err(errors) => errors
                .iter()
                .map(|err| Problem::new("policies", err.to_string()))
                .collect(),
        }
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let policies = PolicySet::from_str(&self.policies)?;
        let asked = cedar_policy::Request::new(
            entity("User", request.actor().unwrap_or_default())?,
            entity("Action", &request.tool)?,
            entity("Pack", &request.pack)?,
            context(request)?,
            None,
        )?;
        let response = Authorizer::new().is_authorized(&asked, &policies, &Entities::empty());
        let diagnostics = response.diagnostics();
        // Cedar leaves out a policy that fails. A `forbid` that fails must not let a call through.
        if let Some(err) = diagnostics.errors().next() {
            return Err(CannotJudge(err.to_string()));
        }
        Ok(match response.decision() {
            Decision::Allow => Verdict::Pass,
            Decision::Deny => denial(&policies, diagnostics.reason(), request).into(),
        })
    }
}
export_policy!(Cedar);

fn entity(kind: &str, name: &str) -> Result<EntityUid, CannotJudge> {
    Ok(EntityUid::from_type_name_and_id(
        EntityTypeName::from_str(kind)?,
        EntityId::new(name),
    ))
}

/// The context. It is not made of JSON, where `__entity` in an argument would be an entity.
fn context(request: &Request) -> Result<Context, CannotJudge> {
    let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
    let effect = match request.effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Run => "run",
    };
    let arguments = request.arguments.iter();
    let arguments = arguments.filter_map(|(name, value)| Some((name.clone(), expression(value)?)));
    let mut members = vec![
        ("effect".to_owned(), text(effect)),
        (
            "arguments".to_owned(),
            RestrictedExpression::new_record(arguments)?,
        ),
        (
            "proven".to_owned(),
            RestrictedExpression::new_bool(request.identity.is_some()),
        ),
        ("at".to_owned(), RestrictedExpression::new_long(request.at)),
    ];
    let known = [("client", &request.client), ("envelope_id", &request.envelope_id)];
    for (name, value) in known {
        members.extend(value.as_deref().map(|value| (name.to_owned(), text(value))));
    }
    Ok(Context::from_pairs(members)?)
}

/// A value of an argument. Cedar has neither null nor fractions.
fn expression(value: &Value) -> Option<RestrictedExpression> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => RestrictedExpression::new_bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(number) => RestrictedExpression::new_long(number),
            None => RestrictedExpression::new_string(number.to_string()),
        },
        Value::String(text) => RestrictedExpression::new_string(text.clone()),
        Value::Array(items) => RestrictedExpression::new_set(items.iter().filter_map(expression)),
        Value::Object(members) => {
            // Names are unique in a JSON object, so this cannot fail.
            let members: HashMap<String, RestrictedExpression> = members
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), expression(value)?)))
                .collect();
            RestrictedExpression::new_record(members).ok()?
        }
    })
}

/// A denial in the words of the policies that decided, or for want of a permission.
fn denial<'a>(
    policies: &PolicySet,
    reasons: impl Iterator<Item = &'a PolicyId>,
    request: &Request,
) -> Denial {
    let (mut code, mut messages, mut remediations) = (None, Vec::new(), Vec::new());
    for id in reasons {
        code = code.or(policies.annotation(id, "code"));
        let named = policies.annotation(id, "id").map(str::to_owned);
        let named = format!("policy {} forbids it", named.unwrap_or_else(|| id.to_string()));
        messages.push(policies.annotation(id, "message").map_or(named, str::to_owned));
        remediations.extend(policies.annotation(id, "remediation").map(str::to_owned));
    }
    if messages.is_empty() {
        messages.push(format!("no policy permits {} to this caller", request.tool));
    }
    if remediations.is_empty() {
        remediations.push("Change the call, or ask the operator for a permission.".to_owned());
    }
    messages.sort();
    Denial::new(code.unwrap_or(DEFAULT_CODE), messages.join("; ")).remediation(remediations.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_sdk::native::Judge;
    use tollgate_sdk::policy::{Problem, Request, Verdict};

    use super::Cedar;

    const POLICIES: &str = r#"
        permit(principal, action, resource);
        @id("no-deletes")
        @code("NO_DELETES")
        @message("only ada deletes")
        @remediation("Ask ada.")
        forbid(principal, action == Action::"note_delete", resource) unless { principal == User::"ada" };
        forbid(principal, action, resource == Pack::"test") when {
            context.arguments has limit && context.arguments.limit > 100
        };
    "#;

    fn judge(policies: &str) -> Result<Judge<Cedar>, Vec<Problem>> {
        Judge::new(&json!({ "policies": policies }).to_string())
    }

    fn verdict(policies: &str, tool: &str, arguments: &str) -> Verdict {
        judge(policies)
            .unwrap()
            .before(&Request::of(tool, arguments))
            .verdict
    }

    #[test]
    fn a_call_needs_a_permission_and_no_prohibition() {
        assert_eq!(verdict(POLICIES, "note_list", "{}"), Verdict::Pass);
        assert_eq!(
            verdict(POLICIES, "note_delete", r#"{"actor": "ada"}"#),
            Verdict::Pass
        );
        let Verdict::Deny(denied) = verdict(POLICIES, "note_delete", r#"{"actor": "bob"}"#) else {
            panic!("bob deletes");
        };
        assert_eq!(
            (
                denied.code.as_str(),
                denied.reason.as_str(),
                denied.remediation.as_str()
            ),
            ("NO_DELETES", "only ada deletes", "Ask ada.")
        );
        let Verdict::Deny(denied) = verdict(
            "permit(principal == User::\"ada\", action, resource);",
            "note_list",
            "{}",
        ) else {
            panic!("nobody permits it");
        };
        assert_eq!(denied.reason, "no policy permits note_list to this caller");
    }

    #[test]
    fn arguments_are_values_and_never_entities() {
        let trick = r#"{"by": {"__entity": {"type": "User", "id": "ada"}}, "limit": null, "half": 0.5}"#;
        let policies = r#"permit(principal, action, resource) when { context.arguments.by == User::"ada" };"#;
        assert!(matches!(verdict(policies, "note_list", trick), Verdict::Deny(_)));
        let policies = r#"permit(principal, action, resource) when { context.arguments.half == "0.5" && !(context.arguments has limit) };"#;
        assert_eq!(verdict(policies, "note_list", trick), Verdict::Pass);
    }

    #[test]
    fn a_prohibition_that_fails_lets_nothing_through() {
        let policies = "permit(principal, action, resource); forbid(principal, action, resource) when { context.arguments.limit > 1 };";
        assert!(
            judge(policies)
                .unwrap()
                .try_before(&Request::of("note_list", "{}"))
                .is_err()
        );
        assert!(judge("permit(").is_err() && judge("").is_err());
    }
}
