//! Checks of a pack's tool table as clients see it, for the one test that walks it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

use crate::surface::{self, Surface};
use crate::{Entry, Pack};

/// Faults of a pack's tools: names, descriptions and schemas that some client refuses or that readers would not
/// understand. Every field of arguments and replies is checked. Empty if there are no faults.
///
/// ```
/// # use tollgate_sdk::{Pack, native::table};
/// const PACK: Pack = Pack { name: "notes", ..Pack::EMPTY };
/// assert_eq!(table::faults(&PACK), Vec::<String>::new());
/// ```
#[must_use]
pub fn faults(pack: &Pack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for tool in pack.tools {
        if !seen.insert(tool.name) {
            faults.push(format!("{} occurs twice", tool.name));
        }
        faults.extend(of_tool(tool));
    }
    faults
}

fn of_tool(tool: &Entry) -> Vec<String> {
    let (input, output) = ((tool.input_schema)(), (tool.output_schema)());
    let described = input.get("description").and_then(Json::as_str);
    let nothing = Map::new();
    let found = surface::faults(&Surface {
        names: std::iter::once(&tool.name).chain(tool.aliases).copied().collect(),
        title: tool.title,
        description: described.unwrap_or_default(),
        effect: tool.effect,
        destructive: tool.hints.destructive,
        input: input.as_object().unwrap_or(&nothing),
        output: output.as_object().unwrap_or(&nothing),
    });
    found
        .into_all()
        .map(|fault| format!("{}: {fault}", tool.name))
        .collect()
}

/// Text of the tools' input schemas and the configuration's schema, for a snapshot. Each property has a line, and `!`
/// marks the required ones.
///
/// ```
/// # use tollgate_sdk::{Cx, Effect, Entry, Hints, Pack, Tier, Tool, ToolError, tools};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Clear {}
/// # #[derive(serde::Serialize, schemars::JsonSchema)]
/// # struct Cleared {}
/// # impl Tool for Clear {
/// #     const NAME: &'static str = "notes_clear";
/// #     const TITLE: &'static str = "Throw all notes away";
/// #     const EFFECT: Effect = Effect::Write;
/// #     const TIER: Tier = Tier::Full;
/// #     const HINTS: Hints = Hints::DESTRUCTIVE;
/// #     type Output = Cleared;
/// #     fn run(self, _: &Cx<'_>) -> Result<Cleared, ToolError> { Ok(Cleared {}) }
/// #     // …
/// # }
/// # use tollgate_sdk::native::table;
/// const PACK: Pack = Pack { name: "notes", tools: tools![Clear], ..Pack::EMPTY };
/// assert!(table::text(&PACK).starts_with("notes_clear (Write, Full, destructive true"));
/// ```
#[must_use]
pub fn text(pack: &Pack) -> String {
    let mut text = String::new();
    for tool in pack.tools {
        let _ = writeln!(
            text,
            "{} ({:?}, {:?}, destructive {}, idempotent {})",
            tool.name, tool.effect, tool.tier, tool.hints.destructive, tool.hints.idempotent,
        );
        schema(&mut text, (tool.input_schema)(), 1);
        text.push('\n');
    }
    if let Some(config) = pack.config_schema {
        text.push_str("config\n");
        schema(&mut text, config(), 1);
    }
    text
}

/// Prints a schema on one line, and below it a line for each property of the object or of the listed objects.
fn schema(text: &mut String, mut schema: Json, depth: usize) {
    let in_list = schema.get("properties").is_none();
    let object = if in_list {
        schema.get_mut("items")
    } else {
        Some(&mut schema)
    };
    let mut object = object.and_then(Json::as_object_mut);
    let mut take = |key| object.as_mut().and_then(|object| object.shift_remove(key));
    let (properties, required) = (take("properties"), take("required").unwrap_or_default());
    let _ = writeln!(text, "{schema}");
    for (name, property) in properties
        .as_ref()
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
    {
        let is_required = required
            .as_array()
            .is_some_and(|names| names.iter().any(|known| known == name));
        let mark = if is_required { "!" } else { "" };
        let _ = write!(text, "{:indent$}{name}{mark} ", "", indent = depth * 4);
        self::schema(text, property.clone(), depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::{Cx, Effect, Hints, Tool, ToolError, tools};

    #[derive(Deserialize, JsonSchema)]
    struct Sloppy {
        number: u32,
    }

    /// Nothing that anybody could read.
    #[derive(Serialize, JsonSchema)]
    struct Out {
        row: u32,
    }

    impl Tool for Sloppy {
        const NAME: &'static str = "Sloppy-Tool";
        const TITLE: &'static str = "";
        const EFFECT: Effect = Effect::Read;
        const HINTS: Hints = Hints::DESTRUCTIVE;
        type Output = Out;

        fn run(self, _cx: &Cx<'_>) -> Result<Out, ToolError> {
            Ok(Out { row: self.number })
        }
    }

    #[test]
    fn everything_wrong_is_named() {
        const PACK: Pack = Pack {
            tools: tools![Sloppy, Sloppy],
            ..Pack::EMPTY
        };
        expect_test::expect![[r#"
            Sloppy-Tool: the name "Sloppy-Tool" does not match ^[a-z][a-z0-9_]{0,39}$
            Sloppy-Tool: the tool has no title
            Sloppy-Tool: the tool has no description
            Sloppy-Tool: the tool has the effect read and is marked as destructive
            Sloppy-Tool: the input schema accepts unknown arguments; set additionalProperties to false
            Sloppy-Tool: input.number has no description
            Sloppy-Tool: output.row has no description
            Sloppy-Tool occurs twice"#]]
        .assert_eq(&faults(&PACK)[..8].join("\n"));
    }
}
