//! Questions to the client and its user (elicitation), attached to an error that an answer can resolve.
//!
//! A tool that needs an answer returns [`ToolError::ask`]. All its writes are rolled back and no resource is
//! held. If the client can answer, the call is repeated with the answer in [`Cx::answer`](crate::Cx::answer). A
//! client that can answer none of the questions gets the error.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ToolError, schema};

/// A question to the client.
///
/// ```
/// use tollgate_sdk::{Cx, Question, ToolError};
///
/// /// Form for the name of a note.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Naming {
///     /// The name.
///     name: String,
/// }
///
/// fn name(cx: &Cx<'_>) -> Result<String, ToolError> {
///     match cx.answer("naming").and_then(|answer| answer.form::<Naming>()) {
///         Some(naming) => Ok(naming.name),
///         None => Err(ToolError::new("NAME_WANTED", "the note has no name")
///             .remediation("Call again with a name.")
///             .ask(Question::new::<Naming>("naming", "What is the note called?"))),
///     }
/// }
/// # let _ = name;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Key of the answer: `^[a-z][a-z0-9_]{0,39}$`.
    pub key: String,
    /// Text for the user or the model.
    pub message: String,
    /// Recipient of the question, and the form of the answer.
    pub by: AnsweredBy,
}

/// Recipient of a question, and the form of the answer.
///
/// ```
/// # use tollgate_sdk::{AnsweredBy, Question};
/// let question = Question::to_model("summary", "Sum the note up in a line.", 100);
/// assert_eq!(question.by, AnsweredBy::Model(100));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum AnsweredBy {
    /// The user fills in a form: a JSON Schema of an object of texts, numbers, booleans and choices.
    Form(Value),
    /// The client's model continues the message, in at most this many tokens.
    Model(u32),
    /// The client lists its folders.
    Roots,
}

impl Question {
    /// Creates a question with a form described by a type.
    pub fn new<T: JsonSchema>(key: &str, message: impl Into<String>) -> Question {
        Question::with_form(key, message, schema::config_schema::<T>())
    }

    /// Creates a question with the given form.
    pub fn with_form(key: &str, message: impl Into<String>, form: Value) -> Question {
        Question {
            key: key.to_owned(),
            message: message.into(),
            by: AnsweredBy::Form(form),
        }
    }

    /// Creates a question to the client's model. Needs [`Want::Client`](crate::Want::Client).
    pub fn to_model(key: &str, message: impl Into<String>, max_tokens: u32) -> Question {
        Question {
            key: key.to_owned(),
            message: message.into(),
            by: AnsweredBy::Model(max_tokens),
        }
    }

    /// Creates a question for the client's folders. Needs [`Want::Client`](crate::Want::Client).
    #[must_use]
    pub fn for_roots(key: &str) -> Question {
        Question {
            key: key.to_owned(),
            message: String::new(),
            by: AnsweredBy::Roots,
        }
    }
}

/// Questions of a refused call, and the state that is returned with the answers.
///
/// ```
/// # use tollgate_sdk::{Question, ToolError};
/// let refusal = ToolError::new("FOLDER_WANTED", "where to look is not known")
///     .ask(Question::for_roots("where"))
///     .remember("page 2");
/// assert_eq!(refusal.asking.and_then(|asking| asking.state).as_deref(), Some("page 2"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asking {
    /// Questions of the call.
    pub questions: Vec<Question>,
    /// State that is returned unchanged with the answers. The client can read the state.
    pub state: Option<String>,
}

/// Reaction of the user to a question.
///
/// ```
/// # use tollgate_sdk::Action;
/// assert_eq!(Action::Decline.as_str(), "decline");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The question was answered.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the question.
    Cancel,
}

impl Action {
    /// Name of the action in MCP.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::Accept => "accept",
            Action::Decline => "decline",
            Action::Cancel => "cancel",
        }
    }
}

/// Answer to a question. Do not trust the answer: a client can invent one.
///
/// ```
/// # use tollgate_sdk::{Action, Answer};
/// let answer = Answer {
///     key: "where".to_owned(),
///     action: Action::Accept,
///     content: serde_json::json!({"roots": [{"uri": "file:///home/ada/notes"}]}),
/// };
/// assert_eq!(answer.roots().collect::<Vec<_>>(), ["file:///home/ada/notes"]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Key of the question.
    pub key: String,
    /// Reaction of the user.
    pub action: Action,
    /// Form, model message or folders, as in MCP.
    pub content: Value,
}

impl Answer {
    /// Parses the form into a type, if the form was filled in and is valid.
    #[must_use]
    pub fn form<T: DeserializeOwned>(&self) -> Option<T> {
        match self.action {
            Action::Accept => serde_json::from_value(self.content.clone()).ok(),
            Action::Decline | Action::Cancel => None,
        }
    }

    /// Text of the model's message, if the message is text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.content.pointer("/content/text")?.as_str()
    }

    /// URIs of the client's folders.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        let roots = self.content.get("roots").and_then(Value::as_array);
        let roots = roots.into_iter().flatten();
        roots.filter_map(|root| root.get("uri").and_then(Value::as_str))
    }
}

impl ToolError {
    /// Asks the client. The call is repeated with the answer.
    #[must_use]
    pub fn ask(mut self, question: Question) -> ToolError {
        self.asking.get_or_insert_default().questions.push(question);
        self
    }

    /// Stores a state with the questions. The state is returned with the answers.
    #[must_use]
    pub fn remember(mut self, state: impl Into<String>) -> ToolError {
        self.asking.get_or_insert_default().state = Some(state.into());
        self
    }
}
