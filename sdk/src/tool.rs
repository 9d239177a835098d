//! Tools: an argument struct with a `run`, and the table that lists them.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Content, Cx, ToolError, schema};

/// How the host runs a tool, and what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Reads one snapshot of storage.
    Read,
    /// Changes rows: the whole call is one transaction.
    Write,
    /// May start processes; reaches storage through short transactions.
    Run,
}

/// In which listing a tool appears. Every tool can be called whatever its tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Daily tools, listed by default.
    Core,
    /// Listed with `--tier standard`.
    Standard,
    /// Listed with `--tier full`.
    Full,
}

/// What clients are told about a tool beside its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// It may delete or overwrite what was there.
    pub destructive: bool,
    /// Calling it twice with the same arguments is calling it once.
    pub idempotent: bool,
    /// It reaches beyond this host.
    pub open_world: bool,
    /// It runs other tools of its pack: the argument that lists them, an array of objects with `tool` and
    /// `args`. The gate judges and counts each under its own name before the call.
    pub members: Option<&'static str>,
}

impl Hints {
    /// Adds rows, and adds more of them when repeated.
    pub const ADDITIVE: Hints = Hints {
        destructive: false,
        idempotent: false,
        open_world: false,
        members: None,
    };
    /// Repeating it changes nothing more.
    pub const IDEMPOTENT: Hints = Hints {
        idempotent: true,
        ..Hints::ADDITIVE
    };
    /// Overwrites or removes what was there.
    pub const DESTRUCTIVE: Hints = Hints {
        destructive: true,
        ..Hints::ADDITIVE
    };
}

/// A tool. The struct's fields are its parameters; their doc comments, and the struct's own, are
/// what clients read. Derive `Deserialize` with `deny_unknown_fields`, and `JsonSchema`.
pub trait Tool: DeserializeOwned + JsonSchema {
    /// `family_verb`, `^[a-z][a-z0-9_]{0,39}$`.
    const NAME: &'static str;
    /// A short title for people.
    const TITLE: &'static str;
    /// How the host runs it.
    const EFFECT: Effect;
    /// In which listing it appears.
    const TIER: Tier = Tier::Standard;
    /// What clients are told beside the effect. For a `Read` tool the host ignores `destructive`.
    const HINTS: Hints = Hints::ADDITIVE;
    /// Other names that call it and are not listed.
    const ALIASES: &'static [&'static str] = &[];

    /// The structured reply, which serialises to a JSON object.
    type Output: Serialize + JsonSchema;

    /// Does the work. On an error every row it wrote is rolled back.
    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError>;

    /// What people see instead of the JSON text, if that reads badly.
    fn text(_output: &Self::Output) -> Option<String> {
        None
    }

    /// What they see after the text.
    fn content(_output: &Self::Output) -> Vec<Content> {
        Vec::new()
    }
}

/// A successful reply, serialised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// A JSON object.
    pub structured: String,
    /// From [`Tool::text`].
    pub text: Option<String>,
    /// From [`Tool::content`].
    pub content: Vec<Content>,
}

/// One row of a pack's tool table.
#[derive(Clone, Copy)]
pub struct Entry {
    /// See [`Tool::NAME`].
    pub name: &'static str,
    /// See [`Tool::TITLE`].
    pub title: &'static str,
    /// See [`Tool::EFFECT`].
    pub effect: Effect,
    /// See [`Tool::TIER`].
    pub tier: Tier,
    /// See [`Tool::HINTS`].
    pub hints: Hints,
    /// See [`Tool::ALIASES`].
    pub aliases: &'static [&'static str],
    /// Makes the input schema; its `description` is the tool's.
    pub input_schema: fn() -> Value,
    /// Makes the output schema.
    pub output_schema: fn() -> Value,
    /// Reads the arguments, runs the tool, serialises the reply.
    pub call: fn(&Cx<'_>, &str) -> Result<Reply, ToolError>,
}

impl Entry {
    /// The row of one tool. [`tools!`](crate::tools) calls it.
    #[must_use]
    pub const fn of<T: Tool>() -> Entry {
        Entry {
            name: T::NAME,
            title: T::TITLE,
            effect: T::EFFECT,
            tier: T::TIER,
            hints: T::HINTS,
            aliases: T::ALIASES,
            input_schema: schema::input_schema::<T>,
            output_schema: schema::output_schema::<T::Output>,
            call: call::<T>,
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}

fn call<T: Tool>(cx: &Cx<'_>, arguments: &str) -> Result<Reply, ToolError> {
    let tool: T = serde_json::from_str(arguments).map_err(|err| {
        ToolError::new(
            "INVALID_ARGUMENTS",
            format!("the arguments do not fit {}: {err}", T::NAME),
        )
        .remediation("Compare the arguments with the tool's input schema.")
    })?;
    let output = tool.run(cx)?;
    let (text, content) = (T::text(&output), T::content(&output));
    let structured = serde_json::to_string(&output).map_err(|err| {
        ToolError::new(
            "INTERNAL",
            format!("the reply of {} could not be written: {err}", T::NAME),
        )
    })?;
    Ok(Reply {
        structured,
        text,
        content,
    })
}

/// Makes a pack's tool table: `tools![CreateTask, ListTasks]`.
#[macro_export]
macro_rules! tools {
    ($($tool:ty),+ $(,)?) => {
        &[$($crate::Entry::of::<$tool>()),+]
    };
}
