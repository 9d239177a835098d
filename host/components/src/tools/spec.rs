//! Validated definition of a tool.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_core::effect::Effect;
use tollgate_core::text;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::bindings::tollgate::host::component as shared;

use super::lint;
use super::wording::{MAX_LINE, clean_schema, line};

/// Most arguments of one prompt.
const MAX_ARGUMENTS: usize = 20;
/// Tools that are listed. Each level includes the previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Tools for everyday work.
    Core,
    /// Also tools for occasional work.
    Standard,
    /// All tools.
    Full,
}

/// One tool.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// `family_verb`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Description for agents.
    pub description: String,
    /// Effect of a call.
    pub effect: Effect,
    /// Tier from which the tool is listed.
    pub tier: Tier,
    /// True if a call may delete or overwrite.
    pub destructive: bool,
    /// True if repeating a call has no further effect.
    pub idempotent: bool,
    /// True if a call reaches beyond this host.
    pub open_world: bool,
    /// Argument that lists the batch members, if the tool runs any.
    pub members: Option<String>,
    /// JSON Schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// JSON Schema of its reply, shared by all copies of the definition because nothing changes it.
    pub output_schema: Arc<Map<String, Value>>,
    /// Aliases.
    pub aliases: Vec<String>,
}

/// Validates a tool from a pack. The error lists all problems.
pub(crate) fn check(said: wit::Tool) -> Result<ToolSpec, Vec<String>> {
    let name = line(&said.name);
    let mut problems = Vec::new();
    let mut schema = |kind: &str, text: &str| match serde_json::from_str(text) {
        Ok(Value::Object(mut schema)) => {
            let hidden = clean_schema(&mut schema).err().into_iter().flatten();
            problems.extend(hidden.map(|problem| format!("tool {name}: its {kind} schema: {problem}")));
            schema
        }
        Ok(_) => {
            problems.push(format!("tool {name}: its {kind} schema is not an object"));
            Map::new()
        }
        Err(err) => {
            problems.push(format!("tool {name}: its {kind} schema is not JSON: {err}"));
            Map::new()
        }
    };
    let input_schema = schema("input", &said.input_schema);
    let output_schema = schema("output", &said.output_schema);
    if !problems.is_empty() {
        return Err(problems);
    }
    let effect = match said.effect {
        shared::Effect::Read => Effect::Read,
        shared::Effect::Write => Effect::Write,
        shared::Effect::Run => Effect::Run,
    };
    let tool = ToolSpec {
        title: line(&said.title),
        description: text::clean_lines(&said.description),
        effect,
        tier: match said.tier {
            wit::Tier::Core => Tier::Core,
            wit::Tier::Standard => Tier::Standard,
            wit::Tier::Full => Tier::Full,
        },
        destructive: said.destructive && effect != Effect::Read,
        idempotent: said.idempotent || effect == Effect::Read,
        open_world: said.open_world,
        members: said.members,
        input_schema,
        output_schema: Arc::new(output_schema),
        aliases: said.aliases,
        name,
    };
    let problems = lint::check(&tool);
    if problems.is_empty() {
        Ok(tool)
    } else {
        Err(problems)
    }
}

/// Validates a prompt from a pack, as a tool that reads and takes text arguments.
pub(crate) fn check_prompt(said: wit::Prompt) -> Result<ToolSpec, Vec<String>> {
    let name = line(&said.name);
    let mut problems = Vec::new();
    if said.arguments.len() > MAX_ARGUMENTS {
        problems.push(format!("it has more than {MAX_ARGUMENTS} arguments"));
    }
    let prompt = ToolSpec {
        title: line(&said.title),
        description: text::clean_lines(&said.description),
        effect: Effect::Read,
        tier: Tier::Core,
        destructive: false,
        idempotent: true,
        open_world: false,
        input_schema: prompt_schema(&said.arguments, &mut problems),
        output_schema: Arc::new(Map::from_iter([("type".to_owned(), "object".into())])),
        members: None,
        aliases: Vec::new(),
        name,
    };
    problems.extend(lint::check(&prompt));
    if problems.is_empty() {
        return Ok(prompt);
    }
    let name = &prompt.name;
    let told = problems.into_iter().map(|problem| {
        let problem = problem
            .strip_prefix(&format!("tool {name}: "))
            .unwrap_or(&problem);
        format!("prompt {name}: {problem}")
    });
    Err(told.collect())
}

/// Schema of a prompt's arguments, which are texts.
fn prompt_schema(arguments: &[wit::PromptArgument], problems: &mut Vec<String>) -> Map<String, Value> {
    let mut properties = Map::new();
    for argument in arguments {
        if text::hides(&argument.name) {
            let name = line(&argument.name);
            problems.push(format!(
                "the name of its argument {name} contains invisible characters"
            ));
        }
        let description = text::clean_lines(text::cut(&argument.description, MAX_LINE));
        let property = json!({"type": "string", "description": description});
        if properties.insert(line(&argument.name), property).is_some() {
            problems.push(format!(
                "two of its arguments are called {}",
                line(&argument.name)
            ));
        }
    }
    let required = arguments.iter().filter(|argument| argument.required);
    let required: Vec<Value> = required.map(|argument| line(&argument.name).into()).collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    schema.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(description: &str, word: &str) -> wit::Tool {
        let input = json!({
            "type": "object",
            "properties": {"kind": {"type": "string", "description": description, "enum": [word]}},
            "additionalProperties": false,
        });
        let output = json!({
            "type": "object",
            "properties": {"result": {"type": "string", "title": description, "description": description}},
        });
        wit::Tool {
            name: "notes_list".to_owned(),
            title: description.to_owned(),
            description: description.to_owned(),
            effect: shared::Effect::Read,
            tier: wit::Tier::Core,
            destructive: false,
            idempotent: true,
            open_world: false,
            members: None,
            input_schema: input.to_string(),
            output_schema: output.to_string(),
            aliases: Vec::new(),
        }
    }

    #[test]
    fn no_agent_reads_what_people_do_not_see() {
        let hostile = "List\u{1b}[31m all\u{202e} notes\u{e0049}\u{e0067}\u{61c}\u{ad}\u{2028}now.";
        let checked = check(tool(hostile, "plain")).unwrap();
        let schemas = json!([checked.input_schema, checked.output_schema]).to_string();
        for text in [&checked.title, &checked.description, &schemas] {
            let hidden = |c: char| c.is_control() && c != '\n' || text::hides(&c.to_string());
            assert!(text.contains("all notes") && !text.contains(hidden), "{text:?}");
            assert!(!text.contains("\\u"), "{text:?}");
        }
        // Without its invisible characters it would be another word.
        let problems = check(tool("List all notes.", "pla\u{200b}in")).unwrap_err();
        assert!(
            problems[0].contains("/properties/kind/enum contains invisible characters"),
            "{problems:?}"
        );
    }
}
