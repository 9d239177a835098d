//! Templates: chains of steps for common work, built in or saved from finished jobs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::policy::PolicyChanges;
use crate::step::StepSpec;

/// Content of a template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Body {
    pub invariants: Vec<String>,
    pub definition_of_done: Vec<String>,
    pub policies: PolicyChanges,
    pub steps: Vec<StepSpec>,
}

/// A built-in template.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Builtin {
    pub name: &'static str,
    pub summary: &'static str,
    body: &'static str,
}

macro_rules! builtin {
    ($name:literal, $summary:literal) => {
        Builtin {
            name: $name,
            summary: $summary,
            body: include_str!(concat!("../templates/", $name, ".json")),
        }
    };
}

/// Built-in templates.
pub(crate) const BUILTIN: &[Builtin] = &[
    builtin!(
        "strict_feature",
        "A feature in small, strictly evidenced steps with commits"
    ),
    builtin!(
        "tdd_loop",
        "Failing test first, then minimal code, then refactoring"
    ),
    builtin!("bug_fix", "Reproduce, find the cause, fix it, keep it fixed"),
    builtin!(
        "refactor",
        "Change structure without changing behaviour, proved by tests"
    ),
    builtin!("docs", "Documentation whose examples were run"),
    builtin!(
        "dependency_upgrade",
        "Upgrade one dependency and prove that nothing broke"
    ),
    builtin!(
        "pre_merge_checklist",
        "One step: a checklist before a change is merged; apply it with append"
    ),
    builtin!(
        "debug_checklist",
        "One step: a checklist before a fault is fixed; apply it with append"
    ),
];

/// Keys whose values are names known to the pack, not words of a job. Their values are never variables.
const FIXED_KEYS: &[&str] = &["gate", "key", "policies", "required_evidence"];

/// Finds a built-in template.
pub(crate) fn builtin(name: &str) -> Option<&'static Builtin> {
    BUILTIN.iter().find(|template| template.name == name)
}

impl Builtin {
    /// Content of the template.
    pub(crate) fn body(&self) -> Body {
        serde_json::from_str(self.body).unwrap_or_default()
    }
}

/// Variables of a template: each `{{name}}` in it, once, sorted by name.
pub(crate) fn variables(body: &Body) -> Vec<String> {
    let mut names = BTreeSet::new();
    let mut collect = |text: &str| {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else {
                break;
            };
            if is_name(name.trim()) {
                names.insert(name.trim().to_owned());
            }
            rest = after;
        }
    };
    if let Ok(value) = serde_json::to_value(body) {
        each_text(&value, &mut collect);
    }
    names.into_iter().collect()
}

/// Template with its variables filled in. A text is scanned once, so that values are not searched for
/// variables.
pub(crate) fn filled(body: &Body, values: &BTreeMap<String, String>) -> Body {
    mapped(body, &|text| {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            out += before;
            let named = after.split_once("}}");
            match named.and_then(|(name, after)| Some((values.get(name.trim())?, after))) {
                Some((value, after)) => {
                    out += value;
                    rest = after;
                }
                None => {
                    out += "{{";
                    rest = after;
                }
            }
        }
        out + rest
    })
}

/// Template with each of the given texts replaced by a variable, the longest first. A text is scanned once, so
/// that names of variables are not replaced in turn.
pub(crate) fn generalised(body: &Body, variables: &BTreeMap<String, String>) -> Body {
    let mut pairs: Vec<(&String, &String)> = variables.iter().collect();
    pairs.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    mapped(body, &|text| {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let found = pairs
                .iter()
                .find_map(|(name, value)| Some((name, rest.strip_prefix(value.as_str())?)));
            if let Some((name, after)) = found {
                out.push_str("{{");
                out.push_str(name);
                out.push_str("}}");
                rest = after;
            } else {
                out.push(next);
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
            }
        }
        out
    })
}

/// Checks whether text can be the name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=40).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Applies a change to every text of a body. Keys and values under [`FIXED_KEYS`] stay as they are.
fn mapped(body: &Body, change: &dyn Fn(&str) -> String) -> Body {
    let value = serde_json::to_value(body).unwrap_or_default();
    serde_json::from_value(map_texts(value, change)).unwrap_or_else(|_| body.clone())
}

fn map_texts(value: Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(&text)),
        Value::Array(items) => items.into_iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                let value = match FIXED_KEYS.contains(&key.as_str()) {
                    true => value,
                    false => map_texts(value, change),
                };
                (key, value)
            });
            Value::Object(fields.collect())
        }
        other => other,
    }
}

fn each_text(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => {
            let varying = fields
                .iter()
                .filter(|(key, _)| !FIXED_KEYS.contains(&key.as_str()));
            varying.for_each(|(_, value)| each_text(value, visit));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;
    use crate::error::Refusals;

    #[test]
    fn built_in_templates_are_whole() {
        let mut log = String::new();
        for template in BUILTIN {
            let body: Body = serde_json::from_str(template.body).unwrap();
            let mut refusals = Refusals::default();
            for step in &body.steps {
                step.check("step", &mut refusals);
                assert_eq!(step.gaps(), [], "{}: {}", template.name, step.title);
                assert!(
                    !step.remediation_prompt.is_empty(),
                    "{}: {}",
                    template.name,
                    step.title
                );
            }
            refusals.finish().unwrap();
            let _ = writeln!(
                log,
                "{}: {} steps, variables {}",
                template.name,
                body.steps.len(),
                variables(&body).join(" ")
            );
        }
        expect![[r#"
            strict_feature: 5 steps, variables area feature
            tdd_loop: 3 steps, variables behaviour
            bug_fix: 3 steps, variables bug
            refactor: 3 steps, variables target
            docs: 3 steps, variables audience topic
            dependency_upgrade: 3 steps, variables dependency version
            pre_merge_checklist: 1 steps, variables change
            debug_checklist: 1 steps, variables fault
        "#]]
        .assert_eq(&log);
    }

    #[test]
    fn only_words_become_variables_and_each_once() {
        let body = Body {
            steps: vec![StepSpec {
                title: "Test the CSV export, a string".to_owned(),
                required_evidence: BTreeMap::from([("notes".to_owned(), crate::model::EvidenceType::String)]),
                gates: vec![
                    crate::gate::GateSpec {
                        gate: "tests_passed".to_owned(),
                        ..crate::gate::GateSpec::default()
                    },
                    crate::gate::GateSpec {
                        gate: "evidence_bool_true".to_owned(),
                        key: Some("tests_passed".to_owned()),
                        ..crate::gate::GateSpec::default()
                    },
                ],
                ..StepSpec::default()
            }],
            ..Body::default()
        };
        let texts = [
            ("feature", "CSV export"),
            ("kind", "CSV"),
            ("type", "string"),
            ("what", "feature"),
            ("suite", "tests"),
        ];
        let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let general = generalised(&body, &BTreeMap::from(texts));
        assert_eq!(general.steps[0].title, "Test the {{feature}}, a {{type}}");
        assert_eq!(general.steps[0].gates, body.steps[0].gates);
        assert_eq!(
            general.steps[0].required_evidence,
            body.steps[0].required_evidence
        );
        assert_eq!(variables(&general), ["feature", "type"]);
    }

    #[test]
    fn values_are_not_searched_again() {
        let body = Body {
            invariants: vec!["{{a}} and {{ b }} and {{C}}".to_owned()],
            ..Body::default()
        };
        assert_eq!(variables(&body), ["a", "b"]);
        let values = BTreeMap::from([
            ("a".to_owned(), "{{b}}".to_owned()),
            ("b".to_owned(), "x".to_owned()),
        ]);
        assert_eq!(filled(&body, &values).invariants, ["{{b}} and x and {{C}}"]);
    }
}
