//! Questions to the user: a refusal that the user's answer lifts.
//!
//! A tool that needs an answer returns [`ToolError::ask`]. Everything it wrote is rolled back, nothing
//! waits, and if the client can ask its user, the same call comes again with the answer in
//! [`Cx::answer`](crate::Cx::answer). A client that cannot ask gets the refusal.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ToolError, schema};

/// A question, as a form to fill in.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What the answer is called: `^[a-z][a-z0-9_]{0,39}$`.
    pub key: String,
    /// What the user reads.
    pub message: String,
    /// A JSON Schema of the form: an object of texts, numbers, booleans and choices.
    pub form: Value,
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
            form,
        }
    }
}

/// What a refused call asks, and what it wants to know when it comes again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asking {
    /// The questions.
    pub questions: Vec<Question>,
    /// Comes back with the answers, unchanged. The client can read it.
    pub state: Option<String>,
}

/// What the user did with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Filled the form in.
    Accept,
    /// Said no.
    Decline,
    /// Walked away.
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

/// The user's answer to a question, through a client that could make it up.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question's key.
    pub key: String,
    /// What the user did.
    pub action: Action,
    /// The form, if it was filled in.
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
}

impl ToolError {
    /// Asks the user, and lets the call come again with the answer.
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
