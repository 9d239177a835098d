//! Files of test cases: calls and results for a policy, and the expected verdicts.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use thiserror::Error;
use tollgate_components::policies::{Cause, Phase};
use tollgate_core::effect::Effect;
use tollgate_core::hash::sha256_hex;
use tollgate_core::text::counted;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::bindings::tollgate::host::component;
use tollgate_sdk::policy::MemoryChange;
use tollgate_sdk::{Timestamp, canonical_json};
use toml::de::{DeTable, DeValue};

use super::compare::Expected;
use super::fields::{self, Fields, Sheet};
use super::past::{self, Past};
use super::remembered;
use crate::config::Problem;

/// Default time of a call: a Monday at noon.
const DEFAULT_TIME: &str = "2026-01-05T12:00:00Z";
/// Keys that describe a call.
pub(super) const CALL_KEYS: [&str; 9] = [
    "tool",
    "pack",
    "effect",
    "arguments",
    "identity",
    "client",
    "connection",
    "envelope_id",
    "result",
];
/// Further keys of a case.
const CASE_KEYS: [&str; 9] = [
    "name",
    "settings",
    "phase",
    "at",
    "notes",
    "history",
    "memory",
    "input_schema",
    "expect",
];

/// All mistakes in a file of cases.
#[derive(Debug, Error)]
#[error("{} in the cases:\n{}", counted(.0.len(), "mistake"),
    .0.iter().map(|problem| format!("  {problem}")).collect::<Vec<_>>().join("\n"))]
pub struct BadCases(pub Vec<Problem>);

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Description of the case.
    pub name: String,
    pub(super) phase: Phase,
    pub(super) settings: Map<String, Value>,
    pub(super) request: wit::Request,
    /// Outcome of the call, if its result is evaluated.
    pub(super) outcome: wit::Outcome,
    /// Earlier calls, oldest first.
    pub(super) history: Vec<Past>,
    /// Changes that create the policy's memory before its history.
    pub(super) memory: Vec<(String, MemoryChange)>,
    /// Input schema of the tool as JSON.
    pub(super) input_schema: Option<String>,
    pub(super) expected: Expected,
}

/// Parses a file of cases, or returns all mistakes in it.
pub fn read(text: &str) -> Result<Vec<Case>, BadCases> {
    let (whole, errors) = DeTable::parse_recoverable(text);
    let errors: Vec<Problem> = errors.iter().map(|err| Problem::from_toml(text, err)).collect();
    if !errors.is_empty() {
        // Further mistakes in a file that is not valid TOML would be misleading.
        return Err(BadCases(errors));
    }
    let sheet = Sheet::new(text, errors);
    let file = Fields::new(&sheet, "the file", 0, whole.get_ref());
    file.only(&["defaults", "case"]);
    let defaults = defaults(&file);
    let tables = file.tables("case");
    if tables.is_empty() && !file.has("case") {
        file.report("no [[case]] found");
    }
    let mut names = BTreeSet::new();
    let mut cases = Vec::new();
    for (place, (at, table)) in tables.into_iter().enumerate() {
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        let name = name.map_or_else(|| format!("case {}", place + 1), |name| format!("case {name:?}"));
        let fields = Fields::new(&sheet, &name, at, table).or(defaults);
        if !names.insert(name.clone()) {
            fields.report("another case has this name");
        }
        cases.extend(case(&fields));
    }
    match sheet.into_problems() {
        problems if problems.is_empty() => Ok(cases),
        problems => Err(BadCases(problems)),
    }
}

/// Default keys of all cases.
fn defaults<'d>(file: &Fields<'_, 'd>) -> Option<&'d DeTable<'d>> {
    let entry = file.entry("defaults")?;
    let DeValue::Table(table) = entry.get_ref() else {
        file.report("defaults must be a table");
        return None;
    };
    let legal: Vec<&str> = CALL_KEYS.iter().chain(&CASE_KEYS[1..8]).copied().collect();
    Fields::new(file.sheet(), "defaults", entry.span().start, table).only(&legal);
    Some(table)
}

/// Parses a case. `None` if it has mistakes.
fn case(fields: &Fields<'_, '_>) -> Option<Case> {
    fields.only(&CASE_KEYS.iter().chain(&CALL_KEYS).copied().collect::<Vec<_>>());
    for (key, wanted) in [("name", "a name"), ("tool", "a tool"), ("expect", "an expect")] {
        if !fields.has(key) {
            fields.report(&format!("requires {wanted}"));
        }
    }
    let phase = fields.read("phase", "\"before\" or \"after\"", |value| {
        match value.as_str()? {
            "before" => Some(Phase::Request),
            "after" => Some(Phase::Response),
            _ => None,
        }
    });
    let phase = phase.unwrap_or(Phase::Request);
    match (phase, fields.has("result")) {
        (Phase::Request, true) => {
            fields.report("has a result, but phase is \"before\"; set phase = \"after\"")
        }
        (Phase::Response, false) => fields.report("requires a result, because phase = \"after\""),
        _ => {}
    }
    let at = moment(fields, "at")
        .or_else(|| moment_of(DEFAULT_TIME))
        .unwrap_or_default();
    let request = request(fields, at);
    let history = past::history(fields, request.as_ref(), at);
    let memory = remembered::memory(fields, at);
    let input_schema = fields.table("input_schema").map(Value::Object);
    let expected = expected(fields, phase);
    Some(Case {
        name: fields.text("name")?,
        phase,
        settings: fields.table("settings").unwrap_or_default(),
        request: request?,
        outcome: outcome(fields).unwrap_or_else(|| read_outcome(&Map::new())),
        history,
        memory,
        input_schema: input_schema.map(|schema| schema.to_string()),
        expected: expected?,
    })
}

/// Call that a table describes.
pub(super) fn request(fields: &Fields<'_, '_>, at: i64) -> Option<wit::Request> {
    let tool = fields.text("tool");
    let pack = fields.text("pack").or_else(|| {
        let first = tool.as_deref()?.split('_').next()?;
        Some(first.to_owned())
    });
    let effect = fields.read("effect", "\"read\", \"write\" or \"run\"", |value| {
        Effect::parse(value.as_str()?)
    });
    let arguments = Value::Object(fields.table("arguments").unwrap_or_default());
    let notes = fields
        .table("notes")
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| wit::Note {
            value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            key,
        });
    let request = wit::Request {
        op_id: "op_case".to_owned(),
        pack: pack.unwrap_or_default(),
        tool: tool.clone().unwrap_or_default(),
        effect: match effect.unwrap_or(Effect::Write) {
            Effect::Read => component::Effect::Read,
            Effect::Write => component::Effect::Write,
            Effect::Run => component::Effect::Run,
        },
        args_hash: sha256_hex(canonical_json(&arguments).as_bytes()),
        arguments: arguments.to_string(),
        envelope_id: fields.text("envelope_id"),
        identity: fields.text("identity"),
        client: fields.text("client"),
        connection: fields.text("connection").unwrap_or_else(|| "con_case".to_owned()),
        at,
        notes: notes.collect(),
        settings: String::new(),
    };
    tool.map(|_| request)
}

/// Result that a table describes.
pub(super) fn outcome(fields: &Fields<'_, '_>) -> Option<wit::Outcome> {
    let entry = fields.entry("result")?;
    let DeValue::Table(table) = entry.get_ref() else {
        fields.report("result must be a table");
        return None;
    };
    let of_result = Fields::new(fields.sheet(), "result", entry.span().start, table);
    of_result.only(&["success", "error_code", "body", "text", "duration_ms"]);
    let mut said = Map::new();
    let success = of_result.flag("success").map(Value::from);
    let duration = of_result
        .number("duration_ms", 0..i64::from(u32::MAX))
        .map(Value::from);
    let body = of_result.table("body").map(Value::from);
    let texts = ["error_code", "text"].map(|key| (key, of_result.text(key).map(Value::from)));
    let rest = [("success", success), ("duration_ms", duration), ("body", body)];
    for (key, value) in texts.into_iter().chain(rest) {
        said.extend(value.map(|value| (key.to_owned(), value)));
    }
    if said.get("success") == Some(&Value::Bool(true)) && said.contains_key("error_code") {
        of_result.report("a result with success = true cannot have an error_code");
    }
    Some(read_outcome(&said))
}

fn read_outcome(said: &Map<String, Value>) -> wit::Outcome {
    let text = |key: &str| said.get(key).and_then(Value::as_str).map(str::to_owned);
    let error_code = text("error_code");
    let success = said
        .get("success")
        .and_then(Value::as_bool)
        .unwrap_or(error_code.is_none());
    let body = match (said.get("body"), &error_code) {
        (Some(body), _) => body.clone(),
        (None, Some(code)) => json!({ "error": { "code": code } }),
        (None, None) => json!({}),
    };
    wit::Outcome {
        error_code: error_code.or((!success).then(|| "FAILED".to_owned())),
        success,
        body: body.to_string(),
        text: text("text"),
        duration_ms: said.get("duration_ms").and_then(Value::as_u64).unwrap_or(1),
    }
}

/// A time as RFC 3339 text or a TOML date, in milliseconds.
pub(super) fn moment(fields: &Fields<'_, '_>, key: &str) -> Option<i64> {
    fields.read(key, "a time such as \"2026-01-05T12:00:00Z\"", |value| {
        moment_of(fields::json(value).as_str()?)
    })
}

pub(super) fn moment_of(text: &str) -> Option<i64> {
    Timestamp::parse(text).map(Timestamp::as_ms)
}

/// Expected verdict. `None` if it is unclear.
fn expected(fields: &Fields<'_, '_>, phase: Phase) -> Option<Expected> {
    let entry = fields.entry("expect")?;
    let at = entry.span().start;
    let table = match entry.get_ref() {
        DeValue::String(word) if word == "pass" => return Some(Expected::Pass),
        DeValue::Table(table) => table,
        _ => {
            fields.sheet().report(at, unclear());
            return None;
        }
    };
    let of = Fields::new(fields.sheet(), "expect", at, table);
    let kinds = ["deny", "amend", "ask", "fail", "bad_settings"];
    let named: Vec<&str> = kinds.into_iter().filter(|kind| of.has(kind)).collect();
    let [kind] = named[..] else {
        fields.sheet().report(at, unclear());
        return None;
    };
    let with: &[&str] = match kind {
        "deny" => &["deny", "text"],
        "ask" => &["ask", "otherwise"],
        only => &[only],
    };
    of.only(with);
    if phase == Phase::Response && ["amend", "ask"].contains(&kind) {
        of.report("amend and ask are not possible with phase = \"after\"");
    }
    match kind {
        "deny" => Some(Expected::Deny {
            code: of.text("deny")?,
            texts: of.texts("text"),
        }),
        "amend" => of
            .table("amend")
            .map(|table| Expected::Amend(Value::Object(table))),
        "ask" => Some(Expected::Ask {
            texts: of.texts("ask"),
            otherwise: of.text("otherwise"),
        }),
        "fail" => of
            .read(
                "fail",
                "\"crash\", \"deadline\", \"memory\" or \"cannot_judge\"",
                |value| Cause::parse(value.as_str()?),
            )
            .map(Expected::Fail),
        _ => Some(Expected::BadSettings(of.texts("bad_settings"))),
    }
}

fn unclear() -> String {
    "expect must be \"pass\", or a table with one of deny, amend, ask, fail and bad_settings".to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn every_mistake_is_told_at_once() {
        let text = r#"
defaults = { tol = "x" }
[[case]]
name = "one"
tool = 3
phase = "later"
expect = "maybe"
[[case]]
name = "one"
tool = "t"
effect = "wirte"
result = { succes = true }
at = "yesterday"
expect = { deny = "A", amend = {} }
[[case]]
tool = "t"
phase = "after"
settings = 4
input_schema = "object"
memory = { a = true, b = { until = "soon" }, c = { number = 1, texts = "x" } }
arguments = []
history = [{ ago = "1y", times = 0 }, 7]
expect = { ask = "?", text = "x" }
[[case]]
expect = { fail = "boredom" }
[[cases]]
"#;
        let BadCases(problems) = read(text).unwrap_err();
        let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
        expect![[r#"
            2:14: defaults: there is no key "tol"; did you mean tool?
            5:8: case "one": tool must be a string
            6:9: case "one": phase must be "before" or "after"
            7:10: expect must be "pass", or a table with one of deny, amend, ask, fail and bad_settings
            8:1: case "one": another case has this name
            8:1: case "one": has a result, but phase is "before"; set phase = "after"
            11:10: case "one": effect must be "read", "write" or "run"
            12:12: result: there is no key "succes"; did you mean success?
            13:6: case "one": at must be a time such as "2026-01-05T12:00:00Z"
            14:10: expect must be "pass", or a table with one of deny, amend, ask, fail and bad_settings
            15:1: case 3: requires a name
            15:1: case 3: requires a result, because phase = "after"
            19:16: case 3: input_schema must be a table
            20:16: memory.a must be a number, a string or a table
            20:26: memory.b: requires `number` or `text`
            20:36: memory.b: until must be a time, or a length of time after the call, such as "10m"
            20:64: memory.c: there is no key "texts"; did you mean text?
            21:13: case 3: arguments must be a table
            22:12: history 1: requires a tool
            22:20: history 1: ago must be a length of time, such as "90s", "10m", "2h" or "1d"
            22:34: history 1: times must be a whole number from 1 to 10000
            22:39: case 3: history must contain only tables
            23:10: expect: amend and ask are not possible with phase = "after"
            23:23: expect: there is no key "text"; valid keys here: ask, otherwise
            24:1: case 4: requires a name
            24:1: case 4: requires a tool
            25:19: expect: fail must be "crash", "deadline", "memory" or "cannot_judge"
            26:3: the file: there is no key "cases"; did you mean case?"#]]
        .assert_eq(&found.join("\n"));
    }

    #[test]
    fn what_a_case_leaves_out_is_plain() {
        let cases = read("[[case]]\nname = \"n\"\ntool = \"task_get\"\nexpect = \"pass\"").unwrap();
        let [case] = &cases[..] else { panic!("{cases:?}") };
        assert_eq!(
            (case.request.pack.as_str(), case.request.at),
            ("task", 1_767_614_400_000)
        );
        assert_eq!(case.expected, Expected::Pass);
        assert!(read("").is_err() && read("[[case").is_err());
    }
}
