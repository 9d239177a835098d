//! Manifest of a component, checked.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_core::effect::Effect;
use tollgate_core::text;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::bindings::tollgate::host::component as shared;
use tollgate_store::storage::Step;

use super::{lint, wants, wording};

/// Most tools of one pack.
const MAX_TOOLS: usize = 200;
/// Most arguments of one prompt.
const MAX_ARGUMENTS: usize = 20;
/// Longest one-line text, in bytes.
const MAX_LINE: usize = 200;
/// Longest instructions, in bytes.
const MAX_INSTRUCTIONS: usize = 4 << 10;
/// Names that belong to the host; tables of policies start with `policy_`.
pub const RESERVED: &[&str] = &["core", "policy", "sqlite", "tollgate"];

/// Extent of the listed surface; each level lists the ones before it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Daily tools.
    Core,
    /// Tools for ordinary work as well.
    Standard,
    /// Everything.
    Full,
}

/// A pack's manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Its name, which its tables start with.
    pub name: String,
    /// Its own version.
    pub version: String,
    /// Summary in one line.
    pub summary: String,
    /// For agents.
    pub instructions: String,
    /// Requests beside the pack's own storage.
    pub wants: Vec<shared::Want>,
    /// Its schema.
    pub migrations: Vec<Step>,
    /// Its tools.
    pub tools: Vec<ToolSpec>,
    /// Its prompts: each is asked for like a tool that reads, with texts as arguments.
    pub prompts: Vec<ToolSpec>,
    /// The JSON Schema of its `config` table.
    pub config_schema: Option<Value>,
    /// The tool that writes its files in a workspace anew.
    pub render_tool: Option<String>,
}

/// One tool.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    /// `family_verb`.
    pub name: String,
    /// For people.
    pub title: String,
    /// For agents.
    pub description: String,
    /// Effect of a call.
    pub effect: Effect,
    /// Tier from which the tool is listed.
    pub tier: Tier,
    /// True if a call may delete or overwrite.
    pub destructive: bool,
    /// Twice is once.
    pub idempotent: bool,
    /// True if a call reaches beyond this host.
    pub open_world: bool,
    /// The argument that lists the tools it runs, if it runs any.
    pub members: Option<String>,
    /// Its arguments' JSON Schema.
    pub input_schema: Map<String, Value>,
    /// Its reply's JSON Schema.
    pub output_schema: Map<String, Value>,
    /// Other names it answers to.
    pub aliases: Vec<String>,
}

impl Manifest {
    /// Checks what a component said. The error lists everything that is wrong with it.
    pub fn check(said: wit::Manifest) -> Result<Manifest, Vec<String>> {
        let mut problems = Vec::new();
        if !is_component_name(&said.name) {
            problems.push(format!(
                "the pack's name {:?} does not match ^[a-z][a-z0-9-]{{0,31}}$",
                text::cut(&said.name, 64)
            ));
        } else if RESERVED
            .iter()
            .any(|reserved| prefixes_clash(&said.name, reserved))
        {
            problems.push(format!("the pack's name {:?} is reserved", said.name));
        }
        if said.tools.len() > MAX_TOOLS {
            problems.push(format!(
                "it has {} tools, more than {MAX_TOOLS}",
                said.tools.len()
            ));
        }
        problems.extend(wants::problems(&said.wants));
        let config_schema = match said.config_schema.as_deref().map(serde_json::from_str::<Value>) {
            Some(Err(err)) => {
                problems.push(format!("its config schema is not JSON: {err}"));
                None
            }
            Some(Ok(mut schema)) => {
                let cleaned = schema.as_object_mut().map_or(Ok(()), wording::clean_schema);
                let hidden = cleaned.err().into_iter().flatten();
                problems.extend(hidden.map(|problem| format!("its config schema: {problem}")));
                Some(schema)
            }
            None => None,
        };
        let mut tools = Vec::new();
        for tool in said.tools {
            match check_tool(tool) {
                Ok(tool) => tools.push(tool),
                Err(found) => problems.extend(found),
            }
        }
        let mut prompts = Vec::new();
        for prompt in said.prompts {
            match check_prompt(prompt) {
                Ok(prompt) => prompts.push(prompt),
                Err(found) => problems.extend(found),
            }
        }
        problems.extend(repeated_names(tools.iter().chain(&prompts)));
        if let Some(name) = &said.render_tool
            && !tools
                .iter()
                .any(|tool| tool.name == *name && tool.effect == Effect::Run)
        {
            let name = text::cut(name, 64);
            problems.push(format!(
                "{name:?}, which is to write its files, is no `run` tool of its own"
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Manifest {
            name: said.name,
            version: line(&said.version),
            summary: line(&said.summary),
            instructions: text::clean_lines(text::cut(&said.instructions, MAX_INSTRUCTIONS)),
            wants: said.wants,
            migrations: said
                .migrations
                .into_iter()
                .map(|step| Step {
                    name: line(&step.name),
                    sql: step.sql,
                })
                .collect(),
            tools,
            prompts,
            config_schema,
            render_tool: said.render_tool,
        })
    }

    /// Everything of it that has a name which nothing else may have.
    pub(super) fn named(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().chain(&self.prompts)
    }
}

/// True if one name's tables could start with the other's prefix.
pub fn prefixes_clash(one: &str, other: &str) -> bool {
    let prefix = |name: &str| format!("{}_", name.replace('-', "_"));
    let (one, other) = (prefix(one), prefix(other));
    one.starts_with(&other) || other.starts_with(&one)
}

fn check_tool(said: wit::Tool) -> Result<ToolSpec, Vec<String>> {
    let name = line(&said.name);
    let mut problems = Vec::new();
    let mut schema = |kind: &str, text: &str| match serde_json::from_str(text) {
        Ok(Value::Object(mut schema)) => {
            let hidden = wording::clean_schema(&mut schema).err().into_iter().flatten();
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
        output_schema,
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

/// A prompt as a tool that reads and takes texts.
fn check_prompt(said: wit::Prompt) -> Result<ToolSpec, Vec<String>> {
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
        output_schema: Map::from_iter([("type".to_owned(), "object".into())]),
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

/// The schema of a prompt's arguments, which are texts.
fn prompt_schema(arguments: &[wit::PromptArgument], problems: &mut Vec<String>) -> Map<String, Value> {
    let mut properties = Map::new();
    for argument in arguments {
        if text::hides(&argument.name) {
            let name = line(&argument.name);
            problems.push(format!(
                "the name of its argument {name} holds characters that nobody sees"
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

fn repeated_names<'a>(tools: impl Iterator<Item = &'a ToolSpec>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    tools
        .flat_map(|tool| std::iter::once(&tool.name).chain(&tool.aliases))
        .filter(|name| !seen.insert(name.as_str()))
        .map(|name| format!("two of its tools or prompts are called {name}"))
        .collect()
}

/// True if a text can be a component's name.
pub fn is_component_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// Text of a component as one line.
pub fn line(said: &str) -> String {
    text::clean(text::cut(said, MAX_LINE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_by_a_tool_that_runs() {
        let said = |render_tool: Option<&str>| wit::Manifest {
            name: "notes".to_owned(),
            version: "1.0.0".to_owned(),
            summary: String::new(),
            instructions: String::new(),
            wants: Vec::new(),
            migrations: Vec::new(),
            tools: Vec::new(),
            prompts: Vec::new(),
            config_schema: None,
            render_tool: render_tool.map(str::to_owned),
        };
        assert!(Manifest::check(said(None)).is_ok());
        let problems = Manifest::check(said(Some("notes_render"))).unwrap_err();
        assert_eq!(
            problems,
            ["\"notes_render\", which is to write its files, is no `run` tool of its own"]
        );
    }

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
        let checked = check_tool(tool(hostile, "plain")).unwrap();
        let schemas = json!([checked.input_schema, checked.output_schema]).to_string();
        for text in [&checked.title, &checked.description, &schemas] {
            let hidden = |c: char| c.is_control() && c != '\n' || text::hides(&c.to_string());
            assert!(text.contains("all notes") && !text.contains(hidden), "{text:?}");
            assert!(!text.contains("\\u"), "{text:?}");
        }
        // Without what nobody sees it would be another word.
        let problems = check_tool(tool("List all notes.", "pla\u{200b}in")).unwrap_err();
        assert!(
            problems[0].contains("/properties/kind/enum holds characters that nobody sees"),
            "{problems:?}"
        );
    }

    #[test]
    fn prefixes_that_start_alike_clash() {
        assert!(prefixes_clash("task", "task-store"));
        assert!(prefixes_clash("core", "core"));
        assert!(!prefixes_clash("tasks", "task-store"));
        assert!(!prefixes_clash("corex", "core"));
    }
}
