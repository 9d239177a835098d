//! Edges of each text and number that a tool takes, one after another.

use serde_json::{Map, Value, json};
use tollgate_sdk::Pack;
use tollgate_sdk::native::Session;

use crate::arguments::Arguments;

/// Whole numbers that overflow where nobody thought of them.
const EDGE_NUMBERS: [i64; 8] = [i64::MIN, -1, 0, 1 << 31, 1 << 32, 1 << 53, i64::MAX - 1, i64::MAX];

/// Levels of objects and lists below the arguments whose values are tried.
const MAX_DEPTH: usize = 3;

/// Calls every tool with each edge in each of its arguments, with every word of the pack in the others that are
/// required. No call may fail instead of being refused. At least one call of each pack has to be accepted.
pub fn edges_never_fail(pack: &'static Pack, arguments: &Arguments, session: impl Fn() -> Session) {
    let mut faults = Vec::new();
    let mut accepted = 0_usize;
    for tool in pack.tools {
        let schema = (tool.input_schema)();
        let session = session();
        for call in calls(arguments, &schema) {
            match session.call(tool.name, &call.to_string()) {
                Ok(_) => accepted += 1,
                Err(err) if is_failure(&err.code) => {
                    let shown: String = call.to_string().chars().take(300).collect();
                    faults.push(format!("{} {shown}: {err}", tool.name));
                }
                Err(_) => {}
            }
        }
    }
    assert!(
        faults.is_empty(),
        "{} failed:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(accepted > 0, "no call of {} was accepted", pack.name);
}

impl Arguments {
    /// Arguments that a tool requires, all made of the first word, and those with a fixed value.
    #[must_use]
    pub fn required(&self, pack: &Pack, tool: &str) -> Value {
        let Some(entry) = pack.tool(tool) else {
            panic!("{} has no tool {tool}", pack.name);
        };
        let word = self.words.first().copied().unwrap_or_default();
        Value::Object(base(self, &(entry.input_schema)(), word))
    }
}

fn is_failure(code: &str) -> bool {
    code.starts_with("STORAGE") || code == "INTERNAL"
}

/// Texts at the edges of limits, of encodings and of what a text may stand for.
fn texts() -> Vec<Value> {
    let mut texts: Vec<String> = [
        "",
        " ",
        "\u{0}",
        "a\u{0}b",
        "%",
        "_!",
        "\"\\",
        "1",
        "9223372036854775807",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push("9223372036854775808".to_owned());
    for length in [200, 255, 257, 500, 2_000, 8_000, 60_000] {
        texts.push("x".repeat(length));
    }
    texts.push("!".repeat(200));
    texts.push("ä".repeat(500));
    texts.push("x ".repeat(4_000));
    texts.into_iter().map(Value::from).collect()
}

/// Every call with one edge.
fn calls(arguments: &Arguments, schema: &Value) -> Vec<Value> {
    let mut calls = Vec::new();
    let mut tried = Vec::new();
    for word in arguments.words {
        let base = base(arguments, schema, word);
        if tried.contains(&base) {
            continue;
        }
        tried.push(base.clone());
        for (name, property) in properties(schema) {
            for edge in edges(property, word, MAX_DEPTH) {
                let mut call = base.clone();
                call.insert(name.clone(), edge);
                calls.push(Value::Object(call));
            }
        }
    }
    calls
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// Required arguments, each made of one word, and those with a fixed value.
fn base(arguments: &Arguments, schema: &Value, word: &str) -> Map<String, Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut base = Map::new();
    for (name, property) in properties(schema) {
        if let Some(fixed) = arguments.fixed.get(name) {
            base.insert(name.clone(), fixed.clone());
        } else if required.contains(&json!(name)) {
            base.insert(name.clone(), plain(property, word));
        }
    }
    base
}

/// A value that fits a schema, without an edge.
fn plain(schema: &Value, word: &str) -> Value {
    if let Some(choice) = schema["enum"].as_array().and_then(|choices| choices.first()) {
        return choice.clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!(word),
        Some("integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([plain(&schema["items"], word)]),
        _ => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            properties(schema)
                .filter(|(name, _)| required.contains(&json!(name)))
                .map(|(name, property)| (name.clone(), plain(property, word)))
                .collect::<Map<_, _>>()
                .into()
        }
    }
}

/// Values of a schema with one edge each.
fn edges(schema: &Value, word: &str, depth: usize) -> Vec<Value> {
    match schema["type"].as_str() {
        Some("string") if schema["enum"].is_null() => texts(),
        Some("integer") => EDGE_NUMBERS.map(Value::from).to_vec(),
        Some("array") if depth > 0 => {
            let one = plain(&schema["items"], word);
            let distinct: Vec<Value> = (0..100).map(|place| json!(format!("{word}{place}"))).collect();
            let mut lists = vec![json!([]), Value::from(vec![one; 100])];
            if schema["items"]["type"] == "string" {
                lists.push(Value::from(distinct[..50].to_vec()));
                lists.push(Value::from(distinct));
            }
            let inner = edges(&schema["items"], word, depth - 1);
            lists.extend(inner.into_iter().map(|edge| json!([edge])));
            lists
        }
        Some("object") if depth > 0 => properties(schema)
            .flat_map(|(name, property)| {
                edges(property, word, depth - 1).into_iter().map(move |edge| {
                    let mut object = plain(schema, word);
                    object[name.as_str()] = edge;
                    object
                })
            })
            .collect(),
        _ => Vec::new(),
    }
}
