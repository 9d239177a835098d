//! The policy `rego`: rules in Rego, the language of Open Policy Agent, evaluated by regorus.
//!
//! Rules are in the package `tollgate`. Each member of the set `deny` is a reason why the call is denied: a text, or an object with
//! `message` and optionally `code` and `remediation`. Members of `ask` are questions to the client's user. The call is `input`.

use regorus::{Engine, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::export_policy;
use tollgate_sdk::policy::{
    CannotJudge, Denial, Facts, Phase, Policy, PolicyCx, Problem, Question, Request, Verdict,
};

/// Name of the rules' file in messages.
const RULES_FILE: &str = "rules.rego";
/// Rules that have a meaning.
const DENY_RULE: &str = "data.tollgate.deny";
const ASK_RULE: &str = "data.tollgate.ask";
/// Code of a denial whose rule gives none.
const DEFAULT_CODE: &str = "DENIED_BY_RULE";

/// Denies calls, or asks the user, by rules in Rego.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rego {
    /// Rules in `package tollgate`: `deny contains message if { … }` denies the call, and `ask contains message if { … }` asks the
    /// user. `input` has `tool`, `pack`, `effect`, `arguments`, `actor`, `identity`, `client`, `envelope_id`, `connection`, `notes` and
    /// `at` in milliseconds since 1970 UTC.
    rules: String,
    /// Values that rules read as `data.settings`. Default none.
    #[serde(default)]
    settings: serde_json::Map<String, serde_json::Value>,
}

/// A member of `deny` or `ask`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Reason {
    Text(String),
    Whole {
        message: String,
        code: Option<String>,
        #[serde(default)]
        remediation: String,
    },
}

impl Policy for Rego {
    const NAME: &'static str = "rego";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "Denies calls, or asks the user, by rules in Rego.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        let mut engine = match self.engine() {
            Ok(engine) => engine,
            Err(err) => return vec![Problem::new("rules", err.0)],
        };
        let rules = [DENY_RULE, ASK_RULE].map(|rule| engine.eval_rule(rule.to_owned()));
        // Rules that need a call fail without one. Rules that are not there fail in any case.
        let is_there = |rule: &Result<Value, _>| match rule {
            Ok(_) => true,
            Err(err) => !is_missing(err),
        };
        match rules.iter().any(is_there) {
            true => Vec::new(),
            false => vec![Problem::new(
                "rules",
                "neither `deny` nor `ask` is defined in `package tollgate`",
            )],
        }
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        let mut engine = self.engine()?;
        engine.set_input_json(&serde_json::to_string(&Facts::of(request))?)?;
        if let Some(denial) = denial(&reasons(&mut engine, DENY_RULE)?) {
            return Ok(denial.into());
        }
        let asked = reasons(&mut engine, ASK_RULE)?;
        let Some(otherwise) = denial(&asked) else {
            return Ok(Verdict::Pass);
        };
        let message = otherwise.reason.clone();
        Ok(Verdict::Ask(Question::new(message, otherwise)))
    }
}
export_policy!(Rego);

impl Rego {
    /// The rules, read anew: nothing is kept between calls.
    fn engine(&self) -> Result<Engine, CannotJudge> {
        let mut engine = Engine::new();
        // A built-in function that fails would make its rule silently not apply.
        engine.set_strict_builtin_errors(true);
        engine.add_policy(RULES_FILE.to_owned(), self.rules.clone())?;
        let settings = serde_json::json!({ "settings": self.settings });
        engine.add_data_json(&settings.to_string())?;
        Ok(engine)
    }
}

/// Members of a set of rules, none if no rule has the name.
fn reasons(engine: &mut Engine, rule: &str) -> Result<Vec<Reason>, CannotJudge> {
    let value = match engine.eval_rule(rule.to_owned()) {
        Ok(value) => value,
        Err(err) if is_missing(&err) => return Ok(Vec::new()),
        Err(err) => return Err(err.into()),
    };
    if value == Value::Undefined {
        return Ok(Vec::new());
    }
    let wrong = |_| {
        CannotJudge(format!(
            "{rule} is not a set of strings, or of objects with `message`"
        ))
    };
    serde_json::from_str(&value.to_json_str()?).map_err(wrong)
}

/// True for the error of a rule that is not defined.
fn is_missing(err: &impl std::fmt::Display) -> bool {
    err.to_string().contains("not a valid rule path")
}

/// One denial for all reasons, with the code of the first that has one.
fn denial(reasons: &[Reason]) -> Option<Denial> {
    let (mut messages, mut remediations) = (Vec::new(), Vec::new());
    let mut found = None;
    for reason in reasons {
        match reason {
            Reason::Text(message) => messages.push(message.as_str()),
            Reason::Whole {
                message,
                code,
                remediation,
            } => {
                messages.push(message);
                found = found.or(code.as_deref());
                remediations.extend((!remediation.is_empty()).then_some(remediation.as_str()));
            }
        }
    }
    if messages.is_empty() {
        return None;
    }
    let denial = Denial::new(found.unwrap_or(DEFAULT_CODE), messages.join("; "));
    Some(match remediations.is_empty() {
        true => denial.remediation("Change the call, or ask the operator about the rules."),
        false => denial.remediation(remediations.join(" ")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_sdk::native::Judge;
    use tollgate_sdk::policy::{Request, Verdict};

    use super::Rego;

    const RULES: &str = r#"
        package tollgate
        import rego.v1

        deny contains sprintf("%s may not delete", [input.actor]) if {
            startswith(input.tool, "note_delete")
            not input.actor in data.settings.admins
        }
        deny contains {"code": "NO_KEYS", "message": "keys are secret", "remediation": "Name another file."} if {
            some path in input.arguments.paths
            endswith(path, ".pem")
        }
        ask contains "Publish?" if input.tool == "note_publish"
    "#;

    fn judge(rules: &str) -> Result<Judge<Rego>, Vec<tollgate_sdk::policy::Problem>> {
        Judge::new(&json!({"rules": rules, "settings": {"admins": ["ada"]}}).to_string())
    }

    #[test]
    fn rules_deny_ask_and_let_through() {
        let judge = judge(RULES).unwrap();
        let verdict = |tool: &str, arguments: &str| judge.before(&Request::of(tool, arguments)).verdict;
        let Verdict::Deny(denied) = verdict("note_delete", r#"{"actor": "bob"}"#) else {
            panic!("bob deletes");
        };
        assert_eq!(
            (denied.code.as_str(), denied.reason.as_str()),
            ("DENIED_BY_RULE", "bob may not delete")
        );
        assert_eq!(verdict("note_delete", r#"{"actor": "ada"}"#), Verdict::Pass);
        let Verdict::Deny(denied) = verdict("note_add", r#"{"paths": ["a", "key.pem"]}"#) else {
            panic!("a key is read");
        };
        assert_eq!(
            (denied.code.as_str(), denied.remediation.as_str()),
            ("NO_KEYS", "Name another file.")
        );
        assert!(matches!(verdict("note_publish", "{}"), Verdict::Ask(_)));
        assert_eq!(verdict("note_list", "{}"), Verdict::Pass);
    }

    #[test]
    fn rules_that_cannot_be_read_or_mean_nothing_are_told_at_the_start() {
        let problem = |rules: &str| judge(rules).err().unwrap()[0].message.clone();
        assert!(problem("package tollgate\ndeny contains").contains("rules.rego"));
        assert!(
            problem("package other\nimport rego.v1\ndeny contains 1 if true").contains("package tollgate")
        );
    }

    #[test]
    fn a_rule_that_fails_is_no_verdict() {
        let judge =
            judge("package tollgate\nimport rego.v1\ndeny contains \"x\" if to_number(input.tool) == 1")
                .unwrap();
        assert!(judge.try_before(&Request::of("note_add", "{}")).is_err());
        let odd = self::judge("package tollgate\nimport rego.v1\ndeny := true").unwrap();
        assert!(odd.try_before(&Request::of("note_add", "{}")).is_err());
    }
}
