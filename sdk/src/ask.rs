//! Questions to the client and its user: a refusal that an answer lifts.
//!
//! A tool that needs an answer returns [`ToolError::ask`]. Everything it wrote is rolled back, nothing
//! waits, and if the client can answer, the same call comes again with the answer in
//! [`Cx::answer`](crate::Cx::answer). A client that can answer none of the questions gets the refusal.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ToolError, schema};

/// A question to the client.
///
/// ```
/// use tollgate_sdk::{Cx, Question, ToolError};
///
/// /// Which name to use.
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
    /// What the answer is called: `^[a-z][a-z0-9_]{0,39}$`.
    pub key: String,
    /// What the user or the model reads.
    pub message: String,
    /// Who answers, and how.
    pub by: AnsweredBy,
}

/// Who answers a question, and how.
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
    /// The client's model goes on from the message, in at most so many tokens.
    Model(u32),
    /// The client names its folders.
    Roots,
}

impl Question {
    /// A question with the form that a type describes.
    pub fn new<T: JsonSchema>(key: &str, message: impl Into<String>) -> Question {
        Question::with_form(key, message, schema::config_schema::<T>())
    }

    /// A question with a form of one's own.
    pub fn with_form(key: &str, message: impl Into<String>, form: Value) -> Question {
        Question {
            key: key.to_owned(),
            message: message.into(),
            by: AnsweredBy::Form(form),
        }
    }

    /// A question to the client's model. Wants [`Want::Client`](crate::Want::Client).
    pub fn to_model(key: &str, message: impl Into<String>, max_tokens: u32) -> Question {
        Question {
            key: key.to_owned(),
            message: message.into(),
            by: AnsweredBy::Model(max_tokens),
        }
    }

    /// A question for the client's folders. Wants [`Want::Client`](crate::Want::Client).
    #[must_use]
    pub fn for_roots(key: &str) -> Question {
        Question {
            key: key.to_owned(),
            message: String::new(),
            by: AnsweredBy::Roots,
        }
    }
}

/// What a refused call asks, and what it wants to know when it comes again.
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
    /// The questions.
    pub questions: Vec<Question>,
    /// Comes back with the answers, unchanged. The client can read it.
    pub state: Option<String>,
}

/// What became of a question.
///
/// ```
/// # use tollgate_sdk::Action;
/// assert_eq!(Action::Decline.as_str(), "decline");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It was answered.
    Accept,
    /// The user said no.
    Decline,
    /// The user walked away.
    Cancel,
}

impl Action {
    /// As MCP writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::Accept => "accept",
            Action::Decline => "decline",
            Action::Cancel => "cancel",
        }
    }
}

/// The answer to a question, through a client that could make it up.
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
    /// The question's key.
    pub key: String,
    /// What became of it.
    pub action: Action,
    /// The form, the model's message or the folders, as MCP has them.
    pub content: Value,
}

impl Answer {
    /// The form as a type, if it was filled in and fits.
    #[must_use]
    pub fn form<T: DeserializeOwned>(&self) -> Option<T> {
        match self.action {
            Action::Accept => serde_json::from_value(self.content.clone()).ok(),
            Action::Decline | Action::Cancel => None,
        }
    }

    /// What the model said, if it said text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.content.pointer("/content/text")?.as_str()
    }

    /// The addresses of the client's folders.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        let roots = self.content.get("roots").and_then(Value::as_array);
        let roots = roots.into_iter().flatten();
        roots.filter_map(|root| root.get("uri").and_then(Value::as_str))
    }
}

impl ToolError {
    /// Asks the client, and lets the call come again with the answer.
    #[must_use]
    pub fn ask(mut self, question: Question) -> ToolError {
        self.asking.get_or_insert_default().questions.push(question);
        self
    }

    /// Beside questions: what comes back with the answers.
    #[must_use]
    pub fn remember(mut self, state: impl Into<String>) -> ToolError {
        self.asking.get_or_insert_default().state = Some(state.into());
        self
    }
}
