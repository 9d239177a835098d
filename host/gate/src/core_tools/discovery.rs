//! `tool_search`, `tool_describe`, `tool_call`: access to tools that are not listed.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_components::catalog::{Catalog, ToolEntry};
use tollgate_components::tools::Tier;
use tollgate_core::effect::Effect;
use tollgate_sdk::{Blocker, NextCall, ToolError};

use super::{CoreCx, CoreError, Tool};

/// Name of the tool that shows the arguments of other tools.
pub(crate) const DESCRIBE: &str = "tool_describe";
/// Tool that calls other tools. The gate replaces it by the requested tool.
pub const TOOL_CALL: &str = "tool_call";
/// Most tools that are described at once.
const MOST_DESCRIBED: usize = 10;
/// Longest summary of a tool in a search, in bytes.
const MAX_SUMMARY: usize = 160;

/// Find tools by purpose, described in a few words. Without a query, lists all by name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    /// Words for what you want to do, for example `claim a task`.
    #[schemars(length(max = 400))]
    query: Option<String>,
    /// Pack to search in, for example `gsd`. Its guide is included in the reply.
    #[schemars(length(max = 64))]
    pack: Option<String>,
    /// Maximum number of tools, 1 to 50. Default 8.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 50))]
    limit: u32,
    /// `next_cursor` of the previous page.
    cursor: Option<u32>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(extend("deprecated" = true))]
    offset: Option<u32>,
}

fn default_limit() -> u32 {
    8
}

/// Matching tools, best first.
#[derive(Serialize, JsonSchema)]
pub(super) struct Found {
    /// Best match first, or by name.
    tools: Vec<Summary>,
    /// Number of matching tools.
    total: usize,
    /// Cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<usize>,
    /// Guide to the named pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    guide: Option<String>,
}

/// Summary of a tool.
#[derive(Serialize, JsonSchema)]
struct Summary {
    /// Name of the tool.
    tool: String,
    /// Pack of the tool.
    pack: String,
    /// read, write or run.
    effect: &'static str,
    /// Summary of the tool.
    summary: String,
    /// Required arguments.
    required: Vec<String>,
    /// Optional arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    optional: Vec<String>,
}

impl Tool for Search {
    const NAME: &'static str = "tool_search";
    const TITLE: &'static str = "Find tools";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    const DISCOVERS: bool = true;
    type Output = Found;

    fn run(self, cx: &CoreCx<'_>) -> Result<Found, CoreError> {
        let is_wanted = |tool: &&Arc<ToolEntry>| {
            !tool.is_discovery() && self.pack.as_deref().is_none_or(|pack| pack == tool.pack_name())
        };
        let query = self.query.as_deref().unwrap_or_default();
        let fitting: Vec<&Arc<ToolEntry>> = if query.trim().is_empty() {
            cx.catalog.all().filter(is_wanted).collect()
        } else {
            let names = cx.catalog.index().search(query).into_iter();
            names
                .filter_map(|name| cx.catalog.find(name))
                .filter(is_wanted)
                .collect()
        };
        if fitting.is_empty() {
            return Err(nothing_fits(cx.catalog, self.pack.as_deref()).into());
        }
        let start = self.cursor.or(self.offset).unwrap_or_default() as usize;
        let limit = self.limit.clamp(1, 50) as usize;
        let end = start.saturating_add(limit);
        Ok(Found {
            total: fitting.len(),
            next_cursor: (end < fitting.len()).then_some(end),
            guide: self.pack.as_deref().and_then(|pack| guide(cx.catalog, pack)),
            tools: fitting
                .into_iter()
                .skip(start)
                .take(limit)
                .map(|tool| summary(tool))
                .collect(),
        })
    }
}

/// Guide to a pack, from the pack.
fn guide(catalog: &Catalog, name: &str) -> Option<String> {
    let pack = catalog.packs().iter().find(|pack| pack.manifest.name == name)?;
    let guide = pack.manifest.instructions.trim();
    (!guide.is_empty()).then(|| guide.to_owned())
}

fn summary(tool: &ToolEntry) -> Summary {
    let (required, optional) = arguments(&tool.spec.input_schema);
    Summary {
        tool: tool.spec.name.clone(),
        pack: tool.pack_name().to_owned(),
        effect: tool.spec.effect.as_str(),
        summary: first_sentence(&tool.spec.description),
        required,
        optional,
    }
}

/// Names of required and of optional arguments.
fn arguments(schema: &Map<String, Value>) -> (Vec<String>, Vec<String>) {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flatten().map(|(name, _)| name.clone());
    names.partition(|name| is_required(name))
}

fn first_sentence(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<&str>>().join(" ");
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    let sentence = line.get(..end).unwrap_or(&line);
    if sentence.len() <= MAX_SUMMARY {
        return sentence.to_owned();
    }
    format!("{}…", tollgate_core::text::cut(sentence, MAX_SUMMARY).trim_end())
}

fn nothing_fits(catalog: &Catalog, pack: Option<&str>) -> ToolError {
    let packs: std::collections::BTreeSet<&str> = catalog
        .all()
        .filter(|tool| !tool.is_discovery())
        .map(|tool| tool.pack_name())
        .collect();
    let message = match pack {
        Some(pack) if !packs.contains(pack) => {
            format!(
                "there is no pack {} with tools",
                tollgate_core::text::clean(tollgate_core::text::cut(pack, 64))
            )
        }
        _ => "no tool matches".to_owned(),
    };
    ToolError::new("NO_TOOL_FITS", message)
        .remediation("Use other words, or omit query and pack to see the names of all tools.")
        .context("packs", packs.into_iter().collect::<Vec<&str>>())
        .next_call(NextCall::new(Search::NAME, json!({ "limit": 50 })))
}

/// Show what tools do and which arguments they take, before you call them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Describe {
    /// Names of tools, from tool_search or a next_call.
    #[schemars(length(min = 1, max = MOST_DESCRIBED))]
    tools: Vec<String>,
    /// If true, also show the schemas of results. Default false.
    #[serde(default)]
    output: bool,
}

/// Tools as tools/list shows them.
#[derive(Serialize, JsonSchema)]
pub(super) struct Described {
    /// In the order of the request.
    tools: Vec<Description>,
}

/// Full description of a tool.
#[derive(Serialize, JsonSchema)]
struct Description {
    /// Name of the tool.
    tool: String,
    /// Pack of the tool.
    pack: String,
    /// A short title.
    title: String,
    /// Description of the tool.
    description: String,
    /// read, write or run.
    effect: &'static str,
    /// True if the tool may delete or overwrite.
    destructive: bool,
    /// True if a repeated call has no further effect.
    idempotent: bool,
    /// JSON Schema of the arguments.
    input_schema: Map<String, Value>,
    /// JSON Schema of the result, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Map<String, Value>>,
}

impl Tool for Describe {
    const NAME: &'static str = DESCRIBE;
    const TITLE: &'static str = "Describe tools";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    const DISCOVERS: bool = true;
    type Output = Described;

    fn run(self, cx: &CoreCx<'_>) -> Result<Described, CoreError> {
        let mut tools = Vec::new();
        let mut unknown = Vec::new();
        for (place, name) in self.tools.iter().take(MOST_DESCRIBED).enumerate() {
            match cx.catalog.find(name) {
                Some(tool) => tools.push(description(tool, self.output)),
                None => unknown.push((format!("tools[{place}]"), name.as_str())),
            }
        }
        if unknown.is_empty() {
            Ok(Described { tools })
        } else {
            Err(unknown_tools(cx.catalog, &unknown).into())
        }
    }
}

fn description(tool: &ToolEntry, output: bool) -> Description {
    let spec = &tool.spec;
    Description {
        tool: spec.name.clone(),
        pack: tool.pack_name().to_owned(),
        title: spec.title.clone(),
        description: spec.description.clone(),
        effect: spec.effect.as_str(),
        destructive: spec.destructive,
        idempotent: spec.idempotent,
        input_schema: tool.described_schema(),
        output_schema: output.then(|| spec.output_schema.as_ref().clone()),
    }
}

/// Call a tool by its name, with the arguments that tool_describe shows. A refusal's next_call can be passed unchanged.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolCall {
    /// Tool name from tool_search, for example `task_list`.
    tool: String,
    /// Arguments, as tool_describe shows.
    #[serde(default)]
    #[schemars(with = "Map<String, Value>", extend("x-accepts" = text()))]
    arguments: Value,
}

fn text() -> Value {
    json!({"type": "string"})
}

impl Tool for ToolCall {
    const NAME: &'static str = TOOL_CALL;
    const TITLE: &'static str = "Call a tool";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Core;
    const DISCOVERS: bool = true;
    type Output = Map<String, Value>;

    /// Runs only if the gate found no tool to call in its place, and explains why.
    fn run(self, cx: &CoreCx<'_>) -> Result<Map<String, Value>, CoreError> {
        let name = tollgate_core::text::clean(tollgate_core::text::cut(&self.tool, 64));
        let error = match cx.catalog.find(&self.tool) {
            None => unknown_tools(cx.catalog, &[("tool".to_owned(), &self.tool)]),
            Some(tool) if tool.spec.name == TOOL_CALL => {
                ToolError::new("TOOL_CALL_NESTED", "tool_call cannot call itself")
                    .remediation("Pass the name of the tool to call.")
                    .blocker(Blocker::new("INVALID_FIELD", "must not be tool_call").field("tool"))
            }
            Some(_) => ToolError::new(
                "INVALID_ARGUMENTS",
                format!(
                    "the arguments of {name} are {}, not a JSON object",
                    kind(&self.arguments)
                ),
            )
            .remediation("Pass the arguments as an object, not as text.")
            .blocker(Blocker::new("INVALID_FIELD", "must be a JSON object").field("arguments"))
            .next_call(NextCall::new(Describe::NAME, json!({ "tools": [name] }))),
        };
        Err(error.into())
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Refusal of unknown tool names, with the most similar known names.
fn unknown_tools(catalog: &Catalog, unknown: &[(String, &str)]) -> ToolError {
    let mut near_all: Vec<&str> = Vec::new();
    let blockers: Vec<Blocker> = unknown
        .iter()
        .map(|(field, name)| {
            let near = catalog.index().near(name);
            for name in &near {
                if !near_all.contains(name) {
                    near_all.push(name);
                }
            }
            let name = tollgate_core::text::clean(tollgate_core::text::cut(name, 64));
            let meant = match near.as_slice() {
                [] => String::new(),
                near => format!("; did you mean {}?", near.join(", ")),
            };
            Blocker::new("UNKNOWN_TOOL", format!("there is no tool `{name}`{meant}")).field(field)
        })
        .collect();
    let message = blockers
        .first()
        .map_or(String::new(), |blocker| blocker.message.clone());
    let next = if near_all.is_empty() {
        NextCall::new(Search::NAME, json!({}))
    } else {
        near_all.truncate(MOST_DESCRIBED);
        NextCall::new(Describe::NAME, json!({ "tools": near_all }))
    };
    ToolError::new("UNKNOWN_TOOL", message)
        .remediation("Find the tool's name with tool_search.")
        .blockers(blockers)
        .next_call(next)
}
