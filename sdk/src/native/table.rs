//! The tool table of a pack as clients see it, for the one test that walks it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value as Json;

use crate::{Effect, Entry, Pack};

/// Longest name of a tool and longest title, in bytes.
const LONGEST_NAME: usize = 40;
/// Longest description, in bytes.
const LONGEST_DESCRIPTION: usize = 1 << 10;
/// Largest schema, in bytes of JSON.
const LARGEST_SCHEMA: usize = 16 << 10;
/// Deepest nesting of a schema.
const DEEPEST: usize = 5;
/// What some client refuses the whole list for.
const BANNED: [&str; 8] = [
    "oneOf", "anyOf", "allOf", "$ref", "$defs", "$schema", "not", "const",
];

/// Everything about a pack's tools that some client refuses or that nobody would understand: names,
/// descriptions of tools and of every field in and out, schemas. Empty if all is well.
#[must_use]
pub fn faults(pack: &Pack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for tool in pack.tools {
        if !seen.insert(tool.name) {
            faults.push(format!("{} is there twice", tool.name));
        }
        of_tool(tool, &mut |fault| faults.push(format!("{}: {fault}", tool.name)));
    }
    faults
}

/// The tools with their input schemas, and the configuration's schema, as text for a snapshot.
#[must_use]
pub fn text(pack: &Pack) -> String {
    let mut text = String::new();
    for tool in pack.tools {
        let _ = writeln!(
            text,
            "{} ({:?}, {:?}, destructive {}, idempotent {})\n{:#}\n",
            tool.name,
            tool.effect,
            tool.tier,
            tool.hints.destructive,
            tool.hints.idempotent,
            (tool.input_schema)()
        );
    }
    if let Some(schema) = pack.config_schema {
        let _ = writeln!(text, "config\n{:#}", schema());
    }
    text
}

fn of_tool(tool: &Entry, fault: &mut dyn FnMut(String)) {
    let is_plain = tool.name.starts_with(|c: char| c.is_ascii_lowercase())
        && tool
            .name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !is_plain || tool.name.len() > LONGEST_NAME {
        fault("its name is not one that every client takes".to_owned());
    }
    if !(1..=LONGEST_NAME).contains(&tool.title.len()) {
        fault(format!("its title {:?} is missing or too long", tool.title));
    }
    if tool.effect == Effect::Read && tool.hints.destructive {
        fault("it reads and calls itself destructive".to_owned());
    }
    let (input, output) = ((tool.input_schema)(), (tool.output_schema)());
    let described = input["description"].as_str().map_or(0, str::len);
    if !(1..=LONGEST_DESCRIPTION).contains(&described) {
        fault(format!("its description has {described} bytes"));
    }
    if input["additionalProperties"] != Json::Bool(false) {
        fault("it takes arguments that it does not know".to_owned());
    }
    for (side, schema) in [("input", &input), ("output", &output)] {
        let size = schema.to_string().len();
        if size > LARGEST_SCHEMA {
            fault(format!("its {side} schema has {size} bytes"));
        }
        if schema["type"] != "object" {
            fault(format!("its {side} schema is no object"));
        }
        walk(schema, side, 0, fault);
    }
}

fn walk(schema: &Json, path: &str, depth: usize, fault: &mut dyn FnMut(String)) {
    if depth > DEEPEST {
        return fault(format!("{path} is nested deeper than {DEEPEST}"));
    }
    for banned in BANNED.iter().filter(|key| schema.get(key).is_some()) {
        fault(format!("{path} uses {banned}"));
    }
    match schema["type"].as_str() {
        None => fault(format!("{path} has no single type")),
        Some("array") => walk(&schema["items"], &format!("{path}[]"), depth + 1, fault),
        Some(_) => {}
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if property["description"].as_str().is_none_or(str::is_empty) {
            fault(format!("{path} has no description"));
        }
        walk(property, &path, depth + 1, fault);
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{Cx, Hints, Tool, ToolError, tools};

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Sloppy {
        number: u32,
    }

    #[derive(Serialize, JsonSchema)]
    struct Out {
        /// Deep.
        rows: Vec<Vec<Vec<Vec<Vec<Vec<u32>>>>>>,
    }

    impl Tool for Sloppy {
        const NAME: &'static str = "Sloppy-Tool";
        const TITLE: &'static str = "";
        const EFFECT: Effect = Effect::Read;
        const HINTS: Hints = Hints::DESTRUCTIVE;
        type Output = Out;

        fn run(self, _cx: &Cx<'_>) -> Result<Out, ToolError> {
            Ok(Out { rows: Vec::new() })
        }
    }

    #[test]
    fn everything_wrong_is_named() {
        const PACK: Pack = Pack {
            tools: tools![Sloppy, Sloppy],
            ..Pack::EMPTY
        };
        expect_test::expect![[r#"
            Sloppy-Tool: its name is not one that every client takes
            Sloppy-Tool: its title "" is missing or too long
            Sloppy-Tool: it reads and calls itself destructive
            Sloppy-Tool: its description has 0 bytes
            Sloppy-Tool: it takes arguments that it does not know
            Sloppy-Tool: input.number has no description
            Sloppy-Tool: output.rows[][][][][] is nested deeper than 5
            Sloppy-Tool is there twice"#]]
        .assert_eq(&faults(&PACK)[..8].join("\n"));
    }
}
