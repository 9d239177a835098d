//! Tools: an argument struct with a `run`, and the table that lists them.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Content, Cx, ToolError, arguments, schema};

/// Effect of a tool: how the host runs it, and what it may do.
///
/// ```
/// # use tollgate_sdk::Effect;
/// assert_eq!(serde_json::to_string(&Effect::Read).unwrap(), r#""read""#);
/// ```
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

/// Tier of a tool: the listing in which it appears. Every tool can be called, whatever its tier.
///
/// ```
/// # use tollgate_sdk::{Cx, Effect, Entry, Hints, Pack, Tier, Tool, ToolError, tools};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Clear {}
/// # #[derive(serde::Serialize, schemars::JsonSchema)]
/// # struct Cleared {}
/// impl Tool for Clear {
///     const NAME: &'static str = "notes_clear";
///     const TITLE: &'static str = "Throw all notes away";
///     const EFFECT: Effect = Effect::Write;
///     const TIER: Tier = Tier::Full;
///     const HINTS: Hints = Hints::DESTRUCTIVE;
///     type Output = Cleared;
/// #     fn run(self, _: &Cx<'_>) -> Result<Cleared, ToolError> { Ok(Cleared {}) }
///     // …
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Tools for daily use, listed by default.
    Core,
    /// Listed with `--tier standard`.
    Standard,
    /// Listed with `--tier full`.
    Full,
}

/// Hints for clients about a tool, besides its effect.
///
/// ```
/// # use tollgate_sdk::{Cx, Effect, Entry, Hints, Pack, Tier, Tool, ToolError, tools};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Clear {}
/// # #[derive(serde::Serialize, schemars::JsonSchema)]
/// # struct Cleared {}
/// impl Tool for Clear {
///     const NAME: &'static str = "notes_clear";
///     const TITLE: &'static str = "Throw all notes away";
///     const EFFECT: Effect = Effect::Write;
///     const TIER: Tier = Tier::Full;
///     const HINTS: Hints = Hints::DESTRUCTIVE;
///     type Output = Cleared;
/// #     fn run(self, _: &Cx<'_>) -> Result<Cleared, ToolError> { Ok(Cleared {}) }
///     // …
/// }
/// assert!(Clear::HINTS.destructive && !Clear::HINTS.idempotent);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// True if the tool may delete or overwrite data.
    pub destructive: bool,
    /// True if repeating a call with the same arguments has no further effect.
    pub idempotent: bool,
    /// True if the tool reaches beyond this host.
    pub open_world: bool,
    /// For a tool that runs other tools of its pack: the argument that lists them, an array of objects with
    /// `tool` and `args`. Before the call, the gate evaluates and counts each under its own name.
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
    /// Has no further effect when repeated.
    pub const IDEMPOTENT: Hints = Hints {
        idempotent: true,
        ..Hints::ADDITIVE
    };
    /// Overwrites or removes data.
    pub const DESTRUCTIVE: Hints = Hints {
        destructive: true,
        ..Hints::ADDITIVE
    };
    /// Overwrites data with the arguments, and has no further effect when repeated.
    pub const REPLACING: Hints = Hints {
        destructive: true,
        ..Hints::IDEMPOTENT
    };
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "a tool is the struct of its arguments",
    note = "derive `Deserialize` of serde and `JsonSchema` of schemars for `{Self}`, and write `impl Tool for {Self}`, or write \
            the tool as a function with `tool!`"
)]
/// A tool. The struct's fields are its parameters. Clients read the doc comments of fields and struct. Derive
/// `Deserialize` with `deny_unknown_fields`, and `JsonSchema`.
///
/// ```
/// use tollgate_sdk::{Cx, Effect, Tool, ToolError};
///
/// /// Add numbers.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Add {
///     /// Numbers to add, for example [1, 2].
///     numbers: Vec<i64>,
/// }
///
/// /// Sum of numbers.
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Sum {
///     /// Sum of all numbers.
///     sum: i64,
/// }
///
/// impl Tool for Add {
///     const NAME: &'static str = "sum_add";
///     const TITLE: &'static str = "Add numbers";
///     const EFFECT: Effect = Effect::Read;
///     type Output = Sum;
///
///     fn run(self, _: &Cx<'_>) -> Result<Sum, ToolError> {
///         let sum = self.numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number));
///         let too_large = || ToolError::new("TOO_LARGE", "the sum is too large").remediation("Add less.");
///         Ok(Sum { sum: sum.ok_or_else(too_large)? })
///     }
///
///     fn text(output: &Sum) -> Option<String> {
///         Some(format!("= {}", output.sum))
///     }
/// }
/// # const PACK: tollgate_sdk::Pack = tollgate_sdk::Pack { tools: tollgate_sdk::tools![Add], ..tollgate_sdk::Pack::EMPTY };
/// let reply = tollgate_sdk::native::Session::new(&PACK).call("sum_add", r#"{"numbers": [1, 2]}"#)?;
/// assert_eq!(reply.text.as_deref(), Some("= 3"));
/// # Ok::<(), ToolError>(())
/// ```
pub trait Tool: DeserializeOwned + JsonSchema {
    /// Name, `family_verb`, `^[a-z][a-z0-9_]{0,39}$`.
    const NAME: &'static str;
    /// Short title for people.
    const TITLE: &'static str;
    /// Effect of the tool.
    const EFFECT: Effect;
    /// Listing in which the tool appears.
    const TIER: Tier = Tier::Standard;
    /// Hints for clients besides the effect. The host ignores `destructive` for a `Read` tool.
    const HINTS: Hints = Hints::ADDITIVE;
    /// Other names under which the tool can be called. They are not listed.
    const ALIASES: &'static [&'static str] = &[];

    /// Structured reply, which serialises to a JSON object.
    type Output: Serialize + JsonSchema;

    /// Runs the tool. An error rolls back all rows that the call wrote.
    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError>;

    /// Text for people instead of the JSON, if the JSON is hard to read.
    fn text(_output: &Self::Output) -> Option<String> {
        None
    }

    /// Content for people after the text.
    fn content(_output: &Self::Output) -> Vec<Content> {
        Vec::new()
    }
}

/// A successful reply, serialised.
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
/// # const PACK: Pack = Pack { tools: tools![Clear], ..Pack::EMPTY };
/// # let session = tollgate_sdk::native::Session::new(&PACK);
/// let reply = session.call("notes_clear", "{}")?;
/// assert_eq!(reply.structured, "{}");
/// # Ok::<(), ToolError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Structured reply as a JSON object.
    pub structured: String,
    /// Text from [`Tool::text`].
    pub text: Option<String>,
    /// Content from [`Tool::content`].
    pub content: Vec<Content>,
}

/// A row of a pack's tool table.
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
/// const ENTRY: Entry = Entry::of::<Clear>();
/// assert_eq!((ENTRY.name, ENTRY.effect), ("notes_clear", Effect::Write));
/// ```
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
    /// Generates the input schema. Its `description` is the tool's description.
    pub input_schema: fn() -> Value,
    /// Generates the output schema.
    pub output_schema: fn() -> Value,
    /// Parses the arguments, runs the tool and serialises the reply.
    pub call: fn(&Cx<'_>, &str) -> Result<Reply, ToolError>,
}

impl Entry {
    /// Row of one tool. Used by [`tools!`](crate::tools).
    #[must_use]
    pub const fn of<T: Tool>() -> Entry {
        Entry {
            name: T::NAME,
            title: T::TITLE,
            effect: T::EFFECT,
            tier: T::TIER,
            hints: T::HINTS,
            aliases: T::ALIASES,
            input_schema: arguments::schema::<T>,
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
    let tool: T = arguments::read(arguments, cx.is_checked()).map_err(|err| {
        ToolError::new(
            "INVALID_ARGUMENTS",
            format!(
                "the arguments of {} do not match the tool's input schema: {err}",
                T::NAME
            ),
        )
        .remediation("Compare the arguments with the tool's input schema.")
    })?;
    let output = tool.run(cx)?;
    let (text, content) = (T::text(&output), T::content(&output));
    let structured = serde_json::to_string(&output).map_err(|err| {
        ToolError::new(
            "INTERNAL",
            format!("the reply of {} cannot be serialised: {err}", T::NAME),
        )
    })?;
    Ok(Reply {
        structured,
        text,
        content,
    })
}

/// Declares a pack's tool table: `tools![CreateTask, ListTasks]`.
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
/// const PACK: Pack = Pack { name: "notes", tools: tools![Clear], ..Pack::EMPTY };
/// assert!(PACK.tool("notes_clear").is_some());
/// ```
#[macro_export]
macro_rules! tools {
    ($($tool:ty),+ $(,)?) => {
        &[$($crate::Entry::of::<$tool>()),+]
    };
}
