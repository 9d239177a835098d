//! Prompts that people use to start work, and the table that lists them.

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Content, Cx, Reply, ToolError, schema};

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt",
    label = "a prompt is the struct of its arguments",
    note = "derive `Deserialize` of serde and `JsonSchema` of schemars for `{Self}`, and write `impl Prompt for {Self}`"
)]
/// A prompt. The struct's fields are its arguments, all of them text. Clients show the doc comments of the struct and
/// its fields. A prompt may read storage and cannot change anything.
///
/// ```
/// use tollgate_sdk::{Cx, Prompt, ToolError};
///
/// /// Write down what was learned.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Learn {
///     /// Subject of what was learned, for example builds.
///     topic: String,
/// }
///
/// impl Prompt for Learn {
///     const NAME: &'static str = "notes_learn";
///     const TITLE: &'static str = "Write down what was learned";
///
///     fn say(self, _: &Cx<'_>) -> Result<String, ToolError> {
///         Ok(format!("Keep with notes_add what you learned about {}.", self.topic))
///     }
/// }
/// # const PACK: tollgate_sdk::Pack = tollgate_sdk::Pack { prompts: tollgate_sdk::prompts![Learn], ..tollgate_sdk::Pack::EMPTY };
/// let session = tollgate_sdk::native::Session::new(&PACK);
/// let said = session.prompt("notes_learn", r#"{"topic": "builds"}"#)?;
/// assert_eq!(said, "Keep with notes_add what you learned about builds.");
/// # Ok::<(), ToolError>(())
/// ```
pub trait Prompt: DeserializeOwned + JsonSchema {
    /// Name, `^[a-z][a-z0-9_]{0,39}$`, different from all tool names.
    const NAME: &'static str;
    /// Short title for people.
    const TITLE: &'static str;

    /// Returns the text for the model.
    fn say(self, cx: &Cx<'_>) -> Result<String, ToolError>;

    /// Returns content to show before the text.
    fn show(&self, _cx: &Cx<'_>) -> Vec<Content> {
        Vec::new()
    }
}

/// A row of a pack's prompt table.
///
/// ```
/// # use tollgate_sdk::{Cx, Prompt, ToolError};
/// #
/// # /// Write down what was learned.
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # #[serde(deny_unknown_fields)]
/// # struct Learn {
/// #     /// Subject of what was learned, for example builds.
/// #     topic: String,
/// # }
/// #
/// # impl Prompt for Learn {
/// #     const NAME: &'static str = "notes_learn";
/// #     const TITLE: &'static str = "Write down what was learned";
/// #
/// #     fn say(self, _: &Cx<'_>) -> Result<String, ToolError> {
/// #         Ok(format!("Keep with notes_add what you learned about {}.", self.topic))
/// #     }
/// # }
/// # use tollgate_sdk::PromptEntry;
/// const ENTRY: PromptEntry = PromptEntry::of::<Learn>();
/// assert_eq!(ENTRY.description(), "Write down what was learned.");
/// ```
#[derive(Clone, Copy)]
pub struct PromptEntry {
    /// See [`Prompt::NAME`].
    pub name: &'static str,
    /// See [`Prompt::TITLE`].
    pub title: &'static str,
    /// Generates the schema of the arguments. Its `description` is the prompt's description.
    pub schema: fn() -> Value,
    /// Parses the arguments and runs the prompt. The reply's text is the prompt's text.
    pub call: fn(&Cx<'_>, &str) -> Result<Reply, ToolError>,
}

/// An argument of a prompt.
///
/// ```
/// # use tollgate_sdk::{Cx, Prompt, ToolError};
/// #
/// # /// Write down what was learned.
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # #[serde(deny_unknown_fields)]
/// # struct Learn {
/// #     /// Subject of what was learned, for example builds.
/// #     topic: String,
/// # }
/// #
/// # impl Prompt for Learn {
/// #     const NAME: &'static str = "notes_learn";
/// #     const TITLE: &'static str = "Write down what was learned";
/// #
/// #     fn say(self, _: &Cx<'_>) -> Result<String, ToolError> {
/// #         Ok(format!("Keep with notes_add what you learned about {}.", self.topic))
/// #     }
/// # }
/// # use tollgate_sdk::{PromptArgument, PromptEntry};
/// let about = PromptArgument { name: "topic".to_owned(), description: "Subject of what was learned, for example builds.".to_owned(), required: true };
/// assert_eq!(PromptEntry::of::<Learn>().arguments(), [about]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    /// Name of the argument.
    pub name: String,
    /// Description of the argument.
    pub description: String,
    /// True if the prompt requires the argument.
    pub required: bool,
}

impl PromptEntry {
    /// Row of one prompt. Used by [`prompts!`](crate::prompts).
    #[must_use]
    pub const fn of<P: Prompt>() -> PromptEntry {
        PromptEntry {
            name: P::NAME,
            title: P::TITLE,
            schema: schema::input_schema::<P>,
            call: call::<P>,
        }
    }

    /// Description of the prompt.
    #[must_use]
    pub fn description(&self) -> String {
        text_of(&(self.schema)(), "description")
    }

    /// Arguments, in the order of the struct's fields.
    #[must_use]
    pub fn arguments(&self) -> Vec<PromptArgument> {
        let schema = (self.schema)();
        let is_required = |name: &str| {
            let required = schema.get("required").and_then(Value::as_array);
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let arguments = properties
            .into_iter()
            .flatten()
            .map(|(name, property)| PromptArgument {
                name: name.clone(),
                description: text_of(property, "description"),
                required: is_required(name),
            });
        arguments.collect()
    }
}

impl fmt::Debug for PromptEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptEntry")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn text_of(schema: &Value, key: &str) -> String {
    schema
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn call<P: Prompt>(cx: &Cx<'_>, arguments: &str) -> Result<Reply, ToolError> {
    let prompt: P = serde_json::from_str(arguments).map_err(|err| {
        ToolError::new(
            "INVALID_ARGUMENTS",
            format!("the arguments do not match the prompt {}: {err}", P::NAME),
        )
        .remediation("Pass the arguments that the prompt lists, as text.")
    })?;
    let content = prompt.show(cx);
    let text = prompt.say(cx)?;
    Ok(Reply {
        structured: json!({"prompt": P::NAME}).to_string(),
        text: Some(text),
        content,
    })
}

/// Declares a pack's prompt table: `prompts![PlanJob, ExecuteJob]`.
///
/// ```
/// # use tollgate_sdk::{Cx, Prompt, ToolError};
/// #
/// # /// Write down what was learned.
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # #[serde(deny_unknown_fields)]
/// # struct Learn {
/// #     /// Subject of what was learned, for example builds.
/// #     topic: String,
/// # }
/// #
/// # impl Prompt for Learn {
/// #     const NAME: &'static str = "notes_learn";
/// #     const TITLE: &'static str = "Write down what was learned";
/// #
/// #     fn say(self, _: &Cx<'_>) -> Result<String, ToolError> {
/// #         Ok(format!("Keep with notes_add what you learned about {}.", self.topic))
/// #     }
/// # }
/// # use tollgate_sdk::{Pack, prompts};
/// const PACK: Pack = Pack { name: "notes", prompts: prompts![Learn], ..Pack::EMPTY };
/// assert!(PACK.prompt("notes_learn").is_some());
/// ```
#[macro_export]
macro_rules! prompts {
    ($($prompt:ty),+ $(,)?) => {
        &[$($crate::PromptEntry::of::<$prompt>()),+]
    };
}
