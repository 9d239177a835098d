//! The policy `cel`: a rule in one CEL expression.
//!
//! CEL is the Common Expression Language. The expression sees the call and is true for the calls that the rule
//! applies to: `tool.startsWith("task_") && !("actor" in arguments)`. An expression that fails, for example by
//! reading an absent argument, denies the call.

use cel::common::ast::{EntryExpr, Expr};
use cel::{Context, IdedExpr, Program, Value};
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::export_policy;
use tollgate_sdk::policy::{
    CannotJudge, Denial, Facts, Phase, Policy, PolicyCx, Problem, Question, Request, Verdict,
};

/// Applies a rule written as an expression.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cel {
    /// CEL expression that is true or false. Variables: `tool`, `pack`, `effect` ("read", "write", "run"),
    /// `arguments`, `actor`, `identity`, `client`, `envelope_id`, `connection`, `notes`, and `at` in
    /// milliseconds since 1970 UTC. Unknown values are null.
    when: String,
    /// Action for calls for which the expression is true: deny or ask. Default deny.
    #[serde(default)]
    then: Then,
    /// Error code of the denial in UPPER_SNAKE_CASE. Default DENIED_BY_RULE.
    #[serde(default = "code")]
    code: String,
    /// Reason in the denial, or the text of the question.
    message: String,
    /// Remediation in the denial: what the caller can do. Default none.
    #[serde(default)]
    remediation: String,
}

/// Action for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Then {
    /// The call is denied.
    #[default]
    Deny,
    /// The client's user is asked.
    Ask,
}

fn code() -> String {
    "DENIED_BY_RULE".to_owned()
}

impl Policy for Cel {
    const NAME: &'static str = "cel";
    const SUMMARY: &'static str = "Denies calls, or asks the user, by one CEL expression.";
    const PHASE: Phase = Phase::Request;

    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match Program::compile(&self.when) {
            Err(err) => problems.push(Problem::new("when", err.to_string())),
            Ok(program) => problems.extend(unknown_names(&program).into_iter().map(|name| {
                let all = Facts::NAMES.join(", ");
                Problem::new("when", format!("`{name}` is not a variable; use one of {all}"))
            })),
        }
        let is_code = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if self.code.is_empty() || !self.code.chars().all(is_code) {
            problems.push(Problem::new(
                "code",
                format!("`{}` is not in UPPER_SNAKE_CASE", self.code),
            ));
        }
        problems
    }

    fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
        if !self.is_about(request)? {
            return Ok(Verdict::Pass);
        }
        let denial = Denial::new(&self.code, &self.message).remediation(&self.remediation);
        Ok(match self.then {
            Then::Deny => Verdict::Deny(denial),
            Then::Ask => Verdict::Ask(Question::new(&self.message, denial)),
        })
    }
}
export_policy!(Cel);

impl Cel {
    fn is_about(&self, request: &Request) -> Result<bool, CannotJudge> {
        let program = Program::compile(&self.when)?;
        let mut context = Context::default();
        let Value::Map(fields) = cel::to_value(Facts::of(request))? else {
            return Err(CannotJudge("the call is not a map".to_owned()));
        };
        for &name in Facts::NAMES {
            let value = fields
                .get(&cel::objects::Key::from(name))
                .cloned()
                .unwrap_or(Value::Null);
            context.add_variable_from_value(name, value);
        }
        match program.execute(&context)? {
            Value::Bool(is_about) => Ok(is_about),
            other => Err(CannotJudge(format!(
                "the expression must return a bool, but returned {}",
                other.type_of()
            ))),
        }
    }
}

/// Variables that an expression uses and that do not exist.
fn unknown_names(program: &Program) -> Vec<String> {
    let mut known = Facts::NAMES.to_vec();
    add_bound(program.expression(), &mut known);
    let references = program.references();
    let mut unknown = references.variables();
    unknown.retain(|name| !known.contains(name));
    unknown.sort_unstable();
    unknown.into_iter().map(str::to_owned).collect()
}

/// Adds the names bound by `exists`, `map` and similar macros.
fn add_bound<'a>(expression: &'a IdedExpr, names: &mut Vec<&'a str>) {
    match &expression.expr {
        Expr::Comprehension(loops) => {
            names.extend([loops.iter_var.as_str(), &loops.accu_var]);
            names.extend(loops.iter_var2.as_deref());
            for part in [
                &loops.iter_range,
                &loops.accu_init,
                &loops.loop_cond,
                &loops.loop_step,
                &loops.result,
            ] {
                add_bound(part, names);
            }
        }
        Expr::Call(call) => {
            let parts = call.target.as_deref().into_iter().chain(&call.args);
            parts.for_each(|part| add_bound(part, names));
        }
        Expr::List(list) => list.elements.iter().for_each(|item| add_bound(item, names)),
        Expr::Select(select) => add_bound(&select.operand, names),
        Expr::Map(map) => {
            for entry in &map.entries {
                match &entry.expr {
                    EntryExpr::StructField(field) => add_bound(&field.value, names),
                    EntryExpr::MapEntry(entry) => {
                        add_bound(&entry.key, names);
                        add_bound(&entry.value, names);
                    }
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tollgate_sdk::Effect;
    use tollgate_sdk::native::Judge;

    use super::*;

    fn judge(when: &str) -> Judge<Cel> {
        let settings = json!({"when": when, "message": "no"}).to_string();
        Judge::new(&settings).unwrap_or_else(|problems| panic!("{when}: {problems:?}"))
    }

    fn denied(when: &str, request: &Request) -> bool {
        judge(when).before(request).is_denied()
    }

    #[test]
    fn an_expression_sees_the_call() {
        let request = Request {
            client: Some("claude".to_owned()),
            ..Request::of(
                "task_transition",
                r#"{"to": "failed", "tags": ["a"], "depth": 3}"#,
            )
        };
        for (when, expected) in [
            ("tool == 'task_transition' && arguments.to == 'failed'", true),
            ("tool.startsWith('gsd_')", false),
            ("effect != 'read' && actor == null", true),
            ("'actor' in arguments", false),
            ("arguments.tags.exists(tag, tag == 'a')", true),
            ("arguments.depth > 2", true),
            ("client == 'claude' && identity == null", true),
            ("tool.matches('^task_(transition|create)$')", true),
        ] {
            assert_eq!(denied(when, &request), expected, "{when}");
        }
    }

    #[test]
    #[should_panic(expected = "cannot evaluate")]
    fn an_expression_that_fails_does_not_pass() {
        denied("arguments.missing == 1", &Request::of("task_get", "{}"));
    }

    #[test]
    #[should_panic(expected = "must return a bool")]
    fn an_expression_that_is_no_question_does_not_pass() {
        denied("tool", &Request::of("task_get", "{}"));
    }

    #[test]
    fn it_can_ask_instead() {
        let settings = r#"{"when": "effect == 'run'", "then": "ask", "message": "Run it?"}"#;
        let request = Request {
            effect: Effect::Run,
            ..Request::of("test_run", "{}")
        };
        let verdict = Judge::<Cel>::new(settings).unwrap().before(&request).verdict;
        assert!(matches!(verdict, Verdict::Ask(question) if question.message == "Run it?"));
    }

    #[test]
    fn every_mistake_in_the_settings_is_named() {
        let settings =
            json!({"when": "tol == 'x' && args.y", "code": "bad code", "message": "m"}).to_string();
        let problems = Judge::<Cel>::new(&settings).err().unwrap();
        let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["when", "when", "code"]);
        let broken = json!({"when": "tool ==", "message": "m"}).to_string();
        assert_eq!(Judge::<Cel>::new(&broken).err().unwrap()[0].key, "when");
    }
}
