//! Validation of a call's arguments before any guest runs. Reports all problems at once.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};
use tollgate_components::catalog::ToolEntry;
use tollgate_sdk::{Blocker, ToolError};

use super::failure::Failure;
use super::fields;

/// Size limit of arguments, in bytes of JSON.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// Limit on the nesting depth of arguments.
const MAX_DEPTH: usize = 64;
/// Most problems that one refusal lists.
const MAX_PROBLEMS: usize = 50;
/// Longest quotation of an argument in a refusal, in bytes.
const MAX_QUOTE: usize = 300;

/// Arguments without empty members. An optional member given as null counts as absent, because many clients fill
/// every field of a form.
pub(super) fn normalised(tool: &ToolEntry, mut arguments: Map<String, Value>) -> Value {
    let required = tool.spec.input_schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    arguments.retain(|name, value| !value.is_null() || is_required(name));
    Value::Object(arguments)
}

/// Arguments as the guest reads them.
pub(super) fn text(arguments: &Value) -> String {
    // Quicker than `Display`, which formats each part.
    serde_json::to_string(arguments).unwrap_or_default()
}

/// Text value of an argument, or the default that its tool declares.
pub(super) fn given<'a>(tool: &'a ToolEntry, arguments: &'a Value, name: &str) -> Option<&'a str> {
    let given = arguments.get(name);
    let default = || {
        tool.spec
            .input_schema
            .get("properties")?
            .get(name)?
            .get("default")
    };
    given.filter(|given| !given.is_null()).or_else(default)?.as_str()
}

/// Refuses arguments that do not match the tool's schema. Names every problem.
pub(super) fn check(
    tool: &ToolEntry,
    arguments: &Value,
    text: &str,
    malformed: &[String],
) -> Result<(), Failure> {
    let error =
        |code: &str, message: &str| ToolError::new(code, message).context("tool", tool.spec.name.as_str());
    if !malformed.is_empty() {
        let blockers = malformed
            .iter()
            .map(|problem| Blocker::new("MALFORMED", problem.clone()));
        return Err(Failure::refused(
            error("MALFORMED_ARGUMENTS", "the arguments are not well-formed JSON")
                .remediation("Send the arguments as a JSON object in valid UTF-8.")
                .blockers(blockers),
        ));
    }
    if text.len() > MAX_BYTES {
        return Err(Failure::refused(
            error("ARGUMENTS_TOO_LARGE", "the arguments are too large")
                .remediation("Send less at once, or refer to a file or artifact.")
                .context("bytes", text.len())
                .context("limit", MAX_BYTES),
        ));
    }
    if is_deeper(arguments, MAX_DEPTH) {
        return Err(Failure::refused(
            error("ARGUMENTS_TOO_DEEP", "the arguments are nested too deeply")
                .remediation("Send flatter arguments.")
                .context("limit", MAX_DEPTH),
        ));
    }
    let mut places = Vec::new();
    if text.contains("\\u0000") {
        note_nuls(arguments, String::new(), &mut places);
    }
    if !places.is_empty() {
        let what = "the value contains the character U+0000, which the database cannot store";
        let blockers = places.iter().take(MAX_PROBLEMS);
        return Err(Failure::refused(
            error(
                "INVALID_ARGUMENTS",
                "the arguments contain a character that cannot be stored",
            )
            .remediation("Remove the character; send binary data as base64 or as a file.")
            .blockers(blockers.map(|at| problem(at, what.to_owned()))),
        ));
    }
    let Some(validator) = tool.arguments() else {
        return Err(Failure::host(error(
            "HOST_FAILED",
            "the arguments cannot be checked",
        )));
    };
    if validator.is_valid(arguments) {
        return Ok(());
    }
    let blockers: Vec<Blocker> = validator
        .iter_errors(arguments)
        .flat_map(|err| problems(&err, &tool.spec.input_schema))
        .take(MAX_PROBLEMS)
        .collect();
    Err(Failure::refused(
        error(
            "INVALID_ARGUMENTS",
            "the arguments do not match the tool's input schema",
        )
        .remediation("Correct every field named in blockers and call again.")
        .blockers(blockers),
    ))
}

/// Records the places of all texts and names that contain a NUL.
fn note_nuls(value: &Value, at: String, places: &mut Vec<String>) {
    let inside = |name: &dyn std::fmt::Display| match at.as_str() {
        "" => name.to_string(),
        at => format!("{at}.{name}"),
    };
    match value {
        Value::String(text) if text.contains('\0') => places.push(at),
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                note_nuls(value, inside(&number), places);
            }
        }
        Value::Object(members) => {
            if members.keys().any(|name| name.contains('\0')) {
                places.push(at.clone());
            }
            for (name, value) in members {
                note_nuls(value, inside(name), places);
            }
        }
        _ => {}
    }
}

/// Problems of an error, one for each affected field.
fn problems(err: &ValidationError<'_>, schema: &Map<String, Value>) -> Vec<Blocker> {
    let at = err.instance_path().to_string();
    let at = at.trim_start_matches('/').replace('/', ".");
    let field = |name: &str| {
        if at.is_empty() {
            name.to_owned()
        } else {
            format!("{at}.{name}")
        }
    };
    match err.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![problem(&field(name), format!("{name} is required"))]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
            .iter()
            .map(|name| {
                let near = fields::nearest(schema, err.schema_path().as_str(), name);
                let near = near.map(|near| format!("; did you mean {near}?"));
                let near = near.unwrap_or_default();
                problem(
                    &field(name),
                    format!("{name} is not an argument of this tool{near}"),
                )
            })
            .collect(),
        ValidationErrorKind::MaxLength { limit } => {
            vec![problem(
                &at,
                format!("the value is longer than {limit} characters"),
            )]
        }
        // The message follows the value, which may be too long to show.
        _ => match err.to_string() {
            message if message.len() > MAX_QUOTE => {
                vec![problem(&at, err.masked_with("the value").to_string())]
            }
            message => {
                let wanted = fields::wanted(schema, err.schema_path().as_str());
                vec![problem(&at, message + &wanted.unwrap_or_default())]
            }
        },
    }
}

fn problem(field: &str, message: String) -> Blocker {
    let message = tollgate_core::text::clean(tollgate_core::text::cut(&message, MAX_QUOTE));
    let blocker = Blocker::new("INVALID_FIELD", message);
    if field.is_empty() {
        blocker
    } else {
        blocker.field(tollgate_core::text::cut(field, MAX_QUOTE))
    }
}

fn is_deeper(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth == 0 || items.iter().any(|item| is_deeper(item, depth - 1)),
        Value::Object(members) => depth == 0 || members.values().any(|member| is_deeper(member, depth - 1)),
        _ => false,
    }
}
