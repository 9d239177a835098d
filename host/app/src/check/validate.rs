//! Faults in the outcome of a call. No I/O.

use jsonschema::Validator;
use serde_json::Value;
use tollgate_gate::Reply;
use tollgate_sdk::ToolError;

use super::report::Finding;

/// Codes for failures of a component, reported by the host or the SDK.
const FAILURE_CODES: &[&str] = &[
    "BAD_REPLY",
    "BUDGET_FAILED",
    "DEADLINE_EXCEEDED",
    "GUEST_TRAPPED",
    "HANDLE_LIMIT",
    "HOST_FAILED",
    "INTERNAL",
    "LEDGER_FAILED",
    "MEMORY_LIMIT",
    "PROCESS_FAILED",
    "STACK_OVERFLOW",
    "STORAGE_FAILED",
    "TABLE_LIMIT",
    "UNKNOWN_TOOL",
    "WORKSPACE_FAILED",
];
/// Code of a component's error without a code.
const UNNAMED_ERROR: &str = "UNNAMED_ERROR";
/// Code of the SDK for arguments that do not fit a tool's struct.
const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";
/// Maximum number of reported positions in one reply.
const MAX_POSITIONS: usize = 10;

/// All faults in the outcome of a call. A refusal with a code and a remediation is not a fault.
pub(super) fn faults(about: &str, result: &Result<Reply, ToolError>, output: &Validator) -> Vec<Finding> {
    match result {
        Ok(reply) => {
            let reply = Value::Object(reply.structured());
            let errors = output.iter_errors(&reply).take(MAX_POSITIONS);
            let told = errors.map(|err| {
                let place = err.instance_path().to_string();
                let place = if place.is_empty() {
                    String::new()
                } else {
                    format!("{place}: ")
                };
                format!(
                    "the reply does not match the output schema: {place}{}",
                    err.masked()
                )
            });
            told.map(|problem| Finding::new(about, problem)).collect()
        }
        Err(err) => refused(about, err),
    }
}

fn refused(about: &str, err: &ToolError) -> Vec<Finding> {
    let code = err.code.as_str();
    if FAILURE_CODES.contains(&code) {
        let failed = Finding::new(about, format!("a call failed with {code}: {}", err.message));
        return vec![failed.remedy("`--log tollgate=debug` shows what happened")];
    }
    let mut found = Vec::new();
    if code == UNNAMED_ERROR {
        found.push(
            Finding::new(about, "an error has no code").remedy("give each error a code in UPPER_SNAKE_CASE"),
        );
    }
    if err.message.trim().is_empty() {
        found.push(Finding::new(about, format!("error {code} has no message")));
    }
    if err.remediation.trim().is_empty() {
        let silent = Finding::new(about, format!("error {code} does not say what the caller can do"));
        found.push(silent.remedy("give the error a remediation"));
    }
    found
}

/// Note on a result that is not a fault but deserves attention.
pub(super) fn note(about: &str, result: &Result<Reply, ToolError>) -> Option<Finding> {
    let err = result
        .as_ref()
        .err()
        .filter(|err| err.code == INVALID_ARGUMENTS)?;
    let note = Finding::new(
        about,
        format!(
            "a call was refused although its arguments match the input schema: {}",
            err.message
        ),
    );
    Some(note.remedy("state the restriction in the schema, so that clients know it before they call"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_is_an_answer_and_a_failure_is_none() {
        let schema = json!({
            "type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "string"}}}
        });
        let output = jsonschema::validator_for(&schema).unwrap();
        let reply = |json: &str| {
            let json = json.to_owned();
            Ok(Reply {
                json,
                ..Reply::default()
            })
        };
        let error = |code: &str, message: &str, remediation: &str| {
            Err(ToolError::new(code, message).remediation(remediation))
        };
        let ends = [
            reply(r#"{"a": 1, "b": ["x"]}"#),
            reply(r#"{"b": ["x", 2, 3]}"#),
            error("NOTE_NOT_FOUND", "there is none", "List them."),
            error("NOTE_NOT_FOUND", "", ""),
            error(UNNAMED_ERROR, "no", "Do."),
            error("GUEST_TRAPPED", "it crashed", "Report it."),
            error("DEADLINE_EXCEEDED", "no time is left", "Ask for less."),
            error(INVALID_ARGUMENTS, "text must not be blank", "Give one."),
        ];
        let mut told = String::new();
        for end in &ends {
            let found = faults("note_get", end, &output)
                .into_iter()
                .chain(note("note_get", end));
            let lines: Vec<String> = found.map(|finding| format!("    {finding}\n")).collect();
            let end = end
                .as_ref()
                .map_or_else(|err| err.code.as_str(), |reply| reply.json.as_str());
            told += &format!("{end}\n{}", lines.concat());
        }
        expect![[r#"
            {"a": 1, "b": ["x"]}
            {"b": ["x", 2, 3]}
                note_get: the reply does not match the output schema: "a" is a required property
                note_get: the reply does not match the output schema: /b/1: value is not of type "string"
                note_get: the reply does not match the output schema: /b/2: value is not of type "string"
            NOTE_NOT_FOUND
            NOTE_NOT_FOUND
                note_get: error NOTE_NOT_FOUND has no message
                note_get: error NOTE_NOT_FOUND does not say what the caller can do; give the error a remediation
            UNNAMED_ERROR
                note_get: an error has no code; give each error a code in UPPER_SNAKE_CASE
            GUEST_TRAPPED
                note_get: a call failed with GUEST_TRAPPED: it crashed; `--log tollgate=debug` shows what happened
            DEADLINE_EXCEEDED
                note_get: a call failed with DEADLINE_EXCEEDED: no time is left; `--log tollgate=debug` shows what happened
            INVALID_ARGUMENTS
                note_get: a call was refused although its arguments match the input schema: text must not be blank; state the restriction in the schema, so that clients know it before they call
        "#]].assert_eq(&told);
    }
}
