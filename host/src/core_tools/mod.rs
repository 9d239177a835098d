//! The host's own tools, pack name `core`: envelopes and the ledger. They take the same path as
//! every other tool and cost nothing.

mod artifacts;
mod discovery;
mod envelope_view;
mod envelopes;
mod operations;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tollgate_sdk::{Reply, ToolError};

use crate::artifacts::ArtifactStore;
use crate::auth::Identity;
use crate::envelope::Limits;
use crate::packs::{Catalog, Effect, Tier, ToolSpec};
use crate::storage::Session;
use crate::workspaces::Workspaces;

pub(crate) use discovery::RELAY;
pub(crate) use envelopes::unknown as unknown_envelope;
pub use operations::{ReportView, report};

/// The owner's name of these tools.
pub const PACK: &str = "core";

/// Core tools that a pack may name to list values: they read, and say what their caller may list in any case.
pub const LISTING: &[&str] = &["envelope_list"];

/// What a call of a core tool works with.
pub struct CoreCx<'a> {
    /// In the host's own mode, inside the call's transaction or snapshot.
    pub session: &'a Session,
    /// RFC 3339.
    pub now: String,
    /// See [`Clock::boot_ms`](crate::clock::Clock::boot_ms).
    pub boot_ms: i64,
    /// Makes identifiers.
    pub new_id: &'a dyn Fn(&str) -> String,
    /// What the operator says about envelopes.
    pub settings: &'a EnvelopeSettings,
    /// This host process.
    pub host_id: &'a str,
    /// Who calls: an identity sees what is its own, no identity sees everything.
    pub identity: Option<&'a Identity>,
    /// The caller's connection.
    pub connection: &'a str,
    /// Stored content, if any is kept.
    pub artifacts: Option<&'a ArtifactStore>,
    /// The registered directories.
    pub workspaces: &'a Workspaces,
    /// The tools that exist.
    pub catalog: &'a Catalog,
}

impl CoreCx<'_> {
    /// Whose operations and envelopes the caller may look at: those of one identity, or everybody's.
    fn looks_at(&self) -> Option<&Identity> {
        self.identity.filter(|identity| !identity.rights().sees_all)
    }

    /// The commit that a workspace is at, if it is a registered work tree of Git.
    fn git_head(&self, workspace: Option<&str>) -> Option<String> {
        self.workspaces.get(workspace?)?.git_head()
    }
}

/// Defaults and ceilings of envelopes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvelopeSettings {
    /// Which calls must belong to one.
    pub require: Require,
    /// Limits of one that asks for none.
    pub default: Limits,
    /// Limits that no client gets past.
    pub ceiling: Limits,
    /// Named budgets that each new envelope gets.
    pub budgets: BTreeMap<String, i64>,
}

/// Which calls must belong to an envelope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Require {
    /// None.
    #[default]
    Never,
    /// Those that may change something.
    Writes,
    /// All.
    Always,
}

/// A core tool: like a pack's, but over the host's own session.
trait Tool: DeserializeOwned + JsonSchema {
    const NAME: &'static str;
    const TITLE: &'static str;
    const EFFECT: Effect;
    const TIER: Tier;
    type Output: Serialize + JsonSchema;
    fn run(self, cx: &CoreCx<'_>) -> Result<Self::Output, ToolError>;
    fn text(_output: &Self::Output) -> Option<String> {
        None
    }
}

/// One row of the table.
pub struct CoreTool {
    /// Its name.
    pub name: &'static str,
    /// Its definition.
    pub spec: fn() -> ToolSpec,
    /// Reads the arguments, runs the tool, and returns the reply.
    pub call: fn(&CoreCx<'_>, &str) -> Result<Reply, ToolError>,
}

impl CoreTool {
    const fn of<T: Tool>() -> CoreTool {
        CoreTool {
            name: T::NAME,
            spec: spec::<T>,
            call: call::<T>,
        }
    }
}

/// Every core tool.
pub fn all() -> &'static [CoreTool] {
    static TOOLS: OnceLock<Vec<CoreTool>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        vec![
            CoreTool::of::<envelopes::Open>(),
            CoreTool::of::<envelopes::Close>(),
            CoreTool::of::<envelopes::Get>(),
            CoreTool::of::<envelopes::List>(),
            CoreTool::of::<operations::Query>(),
            CoreTool::of::<operations::Report>(),
            CoreTool::of::<artifacts::Get>(),
        ]
    })
}

/// The tools that find and call others, which exist where not all tools are listed.
pub fn discovery() -> &'static [CoreTool] {
    static TOOLS: OnceLock<Vec<CoreTool>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        vec![
            CoreTool::of::<discovery::Search>(),
            CoreTool::of::<discovery::Describe>(),
            CoreTool::of::<discovery::Relay>(),
        ]
    })
}

fn spec<T: Tool>() -> ToolSpec {
    let mut input = object(tollgate_sdk::input_schema::<T>());
    let description = match input.remove("description") {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    ToolSpec {
        name: T::NAME.to_owned(),
        title: T::TITLE.to_owned(),
        description,
        effect: T::EFFECT,
        tier: T::TIER,
        destructive: false,
        idempotent: T::EFFECT == Effect::Read,
        open_world: false,
        members: None,
        input_schema: input,
        output_schema: object(tollgate_sdk::output_schema::<T::Output>()),
        aliases: Vec::new(),
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn call<T: Tool>(cx: &CoreCx<'_>, arguments: &str) -> Result<Reply, ToolError> {
    let tool: T = serde_json::from_str(arguments).map_err(|err| {
        ToolError::new(
            "INVALID_ARGUMENTS",
            format!("the arguments do not fit {}: {err}", T::NAME),
        )
    })?;
    let output = tool.run(cx)?;
    let text = T::text(&output);
    let structured = serde_json::to_string(&output)
        .map_err(|err| ToolError::new("HOST_FAILED", format!("the reply could not be written: {err}")))?;
    Ok(Reply {
        structured,
        text,
        content: Vec::new(),
    })
}

/// A failure of the host's own storage, as the caller sees it.
fn storage(err: rusqlite::Error) -> ToolError {
    tracing::error!(%err, "a core tool's statement failed");
    ToolError::new("STORAGE_FAILED", "storage failed")
        .remediation("Look at the host's log under the operation's id.")
}
