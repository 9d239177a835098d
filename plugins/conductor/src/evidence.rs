//! Evidence: the keys that a step requires, and the errors in a submission.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::arguments::is_placeholder;
use crate::model::{EvidenceMode, EvidenceType};
use crate::plan::Plan;
use crate::policy::Policies;

/// Keys with a meaning to the pack, with their types.
pub(crate) const KNOWN_KEYS: &[(&str, EvidenceType)] = &[
    ("changed_files", EvidenceType::Array),
    ("diff_summary", EvidenceType::String),
    ("commands_run", EvidenceType::Array),
    ("tests_run", EvidenceType::Array),
    ("tests_passed", EvidenceType::Boolean),
    ("lint_run", EvidenceType::Boolean),
    ("lint_passed", EvidenceType::Boolean),
    ("artifacts_created", EvidenceType::Array),
    ("criteria_checklist", EvidenceType::Object),
    ("invariants_checked", EvidenceType::Boolean),
    ("file_descriptions", EvidenceType::Object),
    ("notes", EvidenceType::String),
];

/// Phrases without content, in the normal form of [`plain`].
const EMPTY_PHRASES: &[&str] = &[
    "all done",
    "all good",
    "all tests pass",
    "as requested",
    "complete",
    "completed",
    "completed the step",
    "completed the task",
    "did it",
    "did the step",
    "done",
    "everything done",
    "everything works",
    "finished",
    "finished the step",
    "finished the task",
    "fixed",
    "fixed it",
    "fixed the bug",
    "fixed the issue",
    "implemented",
    "implemented it",
    "it is done",
    "it works",
    "it works now",
    "made changes",
    "made the changes",
    "ok",
    "see above",
    "see diff",
    "step complete",
    "step completed",
    "step done",
    "success",
    "tests pass",
    "updated files",
    "updated the code",
    "various changes",
    "works",
    "works now",
];

/// Key of the commit's hash, which is a field of the submission as well. Either one is enough.
pub(crate) const COMMIT_KEY: &str = "commit_hash";

/// Minimum length of a summary and of a diff_summary in strict mode.
const MIN_SUMMARY_CHARS: usize = 15;
const MIN_DIFF_SUMMARY_CHARS: usize = 20;

/// An error in the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Key with the error.
    pub key: String,
    /// True if the key is absent.
    pub missing: bool,
    /// Error in one sentence.
    pub message: String,
}

/// Type that a key must have, if the pack knows the key.
pub(crate) fn known_type(key: &str) -> Option<EvidenceType> {
    KNOWN_KEYS
        .iter()
        .find(|(known, _)| *known == key)
        .map(|&(_, kind)| kind)
}

/// All keys that a submission must have: those of the step, of the policies and of the invariants.
pub(crate) fn required(
    wanted: &BTreeMap<String, EvidenceType>,
    policies: &Policies,
    plan: &Plan,
) -> BTreeMap<String, EvidenceType> {
    let mut all = wanted.clone();
    let mut add = |condition: bool, keys: &[&str]| {
        for (key, kind) in KNOWN_KEYS
            .iter()
            .filter(|(key, _)| condition && keys.contains(key))
        {
            all.entry((*key).to_owned()).or_insert(*kind);
        }
    };
    add(policies.require_tests_evidence, &["tests_run", "tests_passed"]);
    add(policies.require_diff_summary, &["diff_summary"]);
    add(
        policies.evidence_schema_mode == EvidenceMode::Strict,
        &["criteria_checklist"],
    );
    add(
        plan.invariants.as_ref().is_some_and(|rules| !rules.is_empty()),
        &["invariants_checked"],
    );
    all
}

/// Object for a model to fill in. Every value has the right type and claims nothing. Texts such as `<what changed>`
/// are refused until they are replaced.
pub(crate) fn template(required: &BTreeMap<String, EvidenceType>, criteria: usize) -> Value {
    let mut object = Map::new();
    // The order of the known keys reads better than the alphabetical one.
    let known = KNOWN_KEYS
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| required.contains_key(*key));
    let others = required
        .keys()
        .map(String::as_str)
        .filter(|key| known_type(key).is_none() && *key != COMMIT_KEY);
    for key in known.chain(others) {
        let value = match (key, required.get(key)) {
            ("diff_summary", _) => {
                json!("<what changed and why, or that nothing changed; at least 20 characters>")
            }
            ("tests_passed" | "lint_passed", _) => Value::Null,
            ("criteria_checklist", _) => {
                let entries = (1..=criteria).map(|number| (format!("c{number}"), json!(false)));
                Value::Object(entries.collect())
            }
            ("notes", _) => json!("<findings, doubts, what fails>"),
            (_, Some(EvidenceType::Boolean)) => json!(false),
            (_, Some(EvidenceType::Number)) => json!(0),
            (_, Some(EvidenceType::Array)) => json!([]),
            (_, Some(EvidenceType::Object)) => json!({}),
            _ => json!(format!("<text for {key}>")),
        };
        object.insert(key.to_owned(), value);
    }
    Value::Object(object)
}

/// All errors in the evidence and the summary of a submission.
pub(crate) fn faults(
    required: &BTreeMap<String, EvidenceType>,
    evidence: &Map<String, Value>,
    summary: &str,
    mode: EvidenceMode,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    // The commit has a field of its own, which is checked with the other records.
    for (key, kind) in required.iter().filter(|(key, _)| *key != COMMIT_KEY) {
        match evidence.get(key) {
            None => faults.push(fault(key, true, format!("{key} is missing"))),
            Some(value) => faults.extend(mistyped(key, value, *kind, evidence)),
        }
    }
    // Keys that were not required must have the right type too, because gates read them.
    for (key, value) in evidence.iter().filter(|(key, _)| !required.contains_key(*key)) {
        let is_blank = value.as_str().is_some_and(|text| text.trim().is_empty());
        if let Some(kind) = known_type(key).filter(|_| !value.is_null() && !is_blank) {
            faults.extend(mistyped(key, value, kind, evidence));
        }
    }
    if mode == EvidenceMode::Strict {
        for key in required.keys().filter(|key| *key != "diff_summary") {
            let text = evidence.get(key).and_then(Value::as_str);
            if let Some(text) = text.filter(|text| !text.trim().is_empty() && !says_something(text)) {
                faults.push(fault(key, false, format!("{key} has no content: {text:?}")));
            }
        }
        faults.extend(poor("summary", summary, MIN_SUMMARY_CHARS));
        if let Some(text) = evidence.get("diff_summary").and_then(Value::as_str) {
            faults.extend(poor("diff_summary", text, MIN_DIFF_SUMMARY_CHARS));
        }
    }
    faults
}

fn fault(key: &str, missing: bool, message: String) -> Fault {
    Fault {
        key: key.to_owned(),
        missing,
        message,
    }
}

fn mistyped(key: &str, value: &Value, kind: EvidenceType, evidence: &Map<String, Value>) -> Option<Fault> {
    if value.is_null() && may_be_null(key, evidence) {
        return None;
    }
    let fits = match kind {
        EvidenceType::String => value.is_string(),
        EvidenceType::Boolean => value.is_boolean(),
        EvidenceType::Number => value.is_number(),
        EvidenceType::Array => value.is_array(),
        EvidenceType::Object => value.is_object(),
    };
    let message = match (fits, value) {
        (false, _) => format!("{key} must be of type {kind}, not {}", type_name(value)),
        (true, Value::String(text)) if text.trim().is_empty() => format!("{key} is blank"),
        (true, Value::String(text)) if is_placeholder(text) => {
            format!("{key} is still a placeholder: {text}")
        }
        (true, Value::Array(entries)) if is_text_list(key) => {
            let place = entries.iter().position(|entry| !entry.is_string())?;
            format!("{key}[{place}] must be of type string")
        }
        (true, Value::Object(entries)) if key == "criteria_checklist" => {
            let (name, _) = entries.iter().find(|(_, value)| !value.is_boolean())?;
            format!("{key}.{name} must be of type boolean")
        }
        (true, Value::Object(entries)) if key == "file_descriptions" => {
            let (name, _) = entries.iter().find(|(_, value)| !value.is_string())?;
            format!("{key}.{name} must be of type string")
        }
        (true, _) => return None,
    };
    Some(fault(key, false, message))
}

fn is_text_list(key: &str) -> bool {
    matches!(
        key,
        "changed_files" | "commands_run" | "tests_run" | "artifacts_created"
    )
}

/// Checks whether a key may be null: a test or lint result without a run has no value.
fn may_be_null(key: &str, evidence: &Map<String, Value>) -> bool {
    match key {
        "tests_passed" => evidence
            .get("tests_run")
            .is_none_or(|run| run.as_array().is_some_and(Vec::is_empty)),
        "lint_passed" => evidence.get("lint_run") != Some(&Value::Bool(true)),
        _ => false,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Error for text that is too short or has no content.
fn poor(key: &str, text: &str, least: usize) -> Option<Fault> {
    let plain = plain(text);
    let length = plain.chars().count();
    let message = if plain.is_empty() || EMPTY_PHRASES.contains(&plain.as_str()) {
        format!("{key} has no content: {text:?}")
    } else if length < least {
        format!("{key} has {length} characters, counting only its words, but at least {least} are required")
    } else {
        return None;
    };
    Some(fault(key, false, message))
}

/// Lower-case words with single spaces and without punctuation.
fn plain(text: &str) -> String {
    let words: Vec<String> = text
        .split(|c: char| !is_meaningful(c))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

/// Checks whether a character is part of a word. Letters that nobody sees are none.
fn is_meaningful(c: char) -> bool {
    c.is_alphanumeric() && !is_invisible(c)
}

/// Checks whether a text has a word.
pub(crate) fn says_something(text: &str) -> bool {
    text.chars().any(is_meaningful)
}

/// Checks whether a character is shown as nothing, though it is no blank.
pub(crate) fn is_invisible(c: char) -> bool {
    let is_control = c.is_control() && !c.is_whitespace();
    is_control
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn check(evidence: Value, summary: &str, mode: EvidenceMode) -> String {
        let wanted = BTreeMap::from([
            ("changed_files".to_owned(), EvidenceType::Array),
            ("speed".to_owned(), EvidenceType::Number),
        ]);
        let policies = Policies {
            evidence_schema_mode: mode,
            ..Policies::default()
        };
        let found = faults(
            &required(&wanted, &policies, &Plan::default()),
            evidence.as_object().unwrap(),
            summary,
            mode,
        );
        found
            .iter()
            .map(|fault| {
                format!(
                    "{}{}\n",
                    if fault.missing { "missing: " } else { "" },
                    fault.message
                )
            })
            .collect()
    }

    #[test]
    fn everything_missing_or_mistyped_is_named_at_once() {
        let loose = EvidenceMode::Loose;
        expect![[r#"
            missing: changed_files is missing
            missing: diff_summary is missing
            missing: speed is missing
            missing: tests_passed is missing
            missing: tests_run is missing
        "#]]
        .assert_eq(&check(json!({}), "", loose));
        expect![[r#"
            changed_files[1] must be of type string
            diff_summary is blank
            speed must be of type number, not string
            tests_passed must be of type boolean, not null
            tests_run must be of type array, not string
            lint_passed must be of type boolean, not string
        "#]]
        .assert_eq(&check(
            json!({"changed_files": ["a", 1], "speed": "fast", "tests_run": "all", "tests_passed": null,
                "diff_summary": " ", "lint_passed": "yes", "lint_run": true}),
            "",
            loose,
        ));
    }

    #[test]
    fn strict_mode_looks_at_the_words() {
        let evidence = json!({"changed_files": [], "speed": 1, "tests_run": [], "tests_passed": null,
            "diff_summary": "Fixed it!", "criteria_checklist": {"c1": 1}});
        expect![[r#"
            criteria_checklist.c1 must be of type boolean
            summary has no content: "Done."
            diff_summary has no content: "Fixed it!"
        "#]]
        .assert_eq(&check(evidence.clone(), "Done.", EvidenceMode::Strict));
        let unseen = json!({"changed_files": [], "speed": 1, "tests_run": [], "tests_passed": null,
            "diff_summary": "\u{3164}\u{200b}, ................................", "criteria_checklist": {"c1": true}});
        expect![[r#"
            summary has no content: "...............!"
            diff_summary has no content: "ㅤ\u{200b}, ................................"
        "#]]
        .assert_eq(&check(unseen, "...............!", EvidenceMode::Strict));
        let fine = json!({"changed_files": [], "speed": 1, "tests_run": [], "tests_passed": null,
            "diff_summary": "the exporter writes a header row", "criteria_checklist": {"c1": true}});
        expect![[""]].assert_eq(&check(fine, "wrote the CSV exporter", EvidenceMode::Strict));
    }

    #[test]
    fn the_template_follows_the_required_keys() {
        let all = required(
            &BTreeMap::from([("speed".to_owned(), EvidenceType::Number)]),
            &Policies::default(),
            &Plan::default(),
        );
        expect![[r#"{"diff_summary":"<what changed and why, or that nothing changed; at least 20 characters>","tests_run":[],"tests_passed":null,"speed":0}"#]].assert_eq(&template(&all, 2).to_string());
    }
}
