//! Validated manifest of a pack.

use serde_json::Value;
use tollgate_core::effect::Effect;
use tollgate_core::text;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::bindings::tollgate::host::component as shared;
use tollgate_store::storage::MigrationStep;

use crate::grants::wants;
use crate::names::{RESERVED_NAMES, is_component_name, prefixes_clash};
use crate::tools::ToolSpec;
use crate::tools::spec;
use crate::tools::wording::{clean_schema, line};

/// Most tools of one pack.
const MAX_TOOLS: usize = 200;
/// Longest instructions, in bytes.
const MAX_INSTRUCTIONS: usize = 4 << 10;

/// A pack's manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Name, with which its tables start.
    pub name: String,
    /// Version of the pack.
    pub version: String,
    /// Summary in one line.
    pub summary: String,
    /// Instructions for agents.
    pub instructions: String,
    /// Requests beyond the pack's own storage.
    pub wants: Vec<shared::Want>,
    /// Migrations of its tables.
    pub migrations: Vec<MigrationStep>,
    /// Its tools.
    pub tools: Vec<ToolSpec>,
    /// Prompts. Each is requested like a tool that reads, with text arguments.
    pub prompts: Vec<ToolSpec>,
    /// JSON Schema of its `config` table.
    pub config_schema: Option<Value>,
    /// Tool that rewrites its files in a workspace.
    pub render_tool: Option<String>,
}

impl Manifest {
    /// Validates what a component returned. The error lists all problems.
    pub fn check(said: wit::Manifest) -> Result<Manifest, Vec<String>> {
        let mut problems = Vec::new();
        if !is_component_name(&said.name) {
            problems.push(format!(
                "the pack's name {:?} does not match ^[a-z][a-z0-9-]{{0,31}}$",
                text::cut(&said.name, 64)
            ));
        } else if RESERVED_NAMES
            .iter()
            .any(|reserved| prefixes_clash(&said.name, reserved))
        {
            problems.push(format!("the pack's name {:?} is reserved", said.name));
        }
        if said.tools.len() > MAX_TOOLS {
            problems.push(format!(
                "it has {} tools; at most {MAX_TOOLS} are allowed",
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
                let cleaned = schema.as_object_mut().map_or(Ok(()), clean_schema);
                let hidden = cleaned.err().into_iter().flatten();
                problems.extend(hidden.map(|problem| format!("its config schema: {problem}")));
                Some(schema)
            }
            None => None,
        };
        let mut tools = Vec::new();
        for tool in said.tools {
            match spec::check(tool) {
                Ok(tool) => tools.push(tool),
                Err(found) => problems.extend(found),
            }
        }
        let mut prompts = Vec::new();
        for prompt in said.prompts {
            match spec::check_prompt(prompt) {
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
                "the render tool {name:?} is not a `run` tool of this pack"
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
                .map(|step| MigrationStep {
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

    /// Tools and prompts, whose names must be unique.
    pub(crate) fn named(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().chain(&self.prompts)
    }
}

fn repeated_names<'a>(tools: impl Iterator<Item = &'a ToolSpec>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    tools
        .flat_map(|tool| std::iter::once(&tool.name).chain(&tool.aliases))
        .filter(|name| !seen.insert(name.as_str()))
        .map(|name| format!("two of its tools or prompts are called {name}"))
        .collect()
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
            ["the render tool \"notes_render\" is not a `run` tool of this pack"]
        );
    }
}
