//! Format of all errors: a stable code, all reasons at once, and a remediation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Asking, DbError};

/// A refused or failed call, as the caller sees it under `"error"`.
///
/// ```
/// use tollgate_sdk::{Blocker, NextCall, ToolError};
///
/// let refusal = ToolError::new("NOT_READY", "the note cannot be published")
///     .remediation("Resolve the blockers, then call again.")
///     .blocker(Blocker::new("NO_TITLE", "it has no title").field("title"))
///     .blocker(Blocker::new("NO_REVIEW", "nobody read it"))
///     .context("note", "note_1")
///     .next_call(NextCall::new("note_review", serde_json::json!({"id": "note_1"})));
/// assert_eq!(refusal.to_string(), "NOT_READY: the note cannot be published");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolError {
    /// Stable code in UPPER_SNAKE_CASE.
    pub code: String,
    /// Message in one sentence.
    pub message: String,
    /// Action that resolves the error.
    pub remediation: String,
    /// Reasons, all of them at once.
    pub blockers: Vec<Blocker>,
    /// Facts by name.
    pub context: Map<String, Value>,
    /// A call that is ready to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_call: Option<NextCall>,
    /// Questions whose answer would resolve the error; see [`ToolError::ask`].
    #[serde(skip)]
    pub asking: Option<Box<Asking>>,
}

/// A reason why a call was refused.
///
/// ```
/// # use tollgate_sdk::{Blocker, NextCall};
/// let blocker = Blocker::new("NO_TITLE", "it has no title")
///     .field("title")
///     .next_call(NextCall::new("note_title", serde_json::json!({"id": "note_1"})));
/// assert_eq!(blocker.field.as_deref(), Some("title"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Blocker {
    /// Stable code in UPPER_SNAKE_CASE.
    pub code: String,
    /// Message of one sentence.
    pub message: String,
    /// Argument with the fault.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Call that removes the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_call: Option<NextCall>,
}

/// A call that is ready to run.
///
/// ```
/// # use tollgate_sdk::NextCall;
/// let call = NextCall::new("note_list", serde_json::json!({"limit": 5}));
/// assert_eq!(call.arguments["limit"], 5);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the tool.
    pub arguments: Map<String, Value>,
}

impl ToolError {
    /// Creates an error with a code and a message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> ToolError {
        ToolError {
            code: code.into(),
            message: message.into(),
            remediation: String::new(),
            blockers: Vec::new(),
            context: Map::new(),
            next_call: None,
            asking: None,
        }
    }

    /// Sets the action that resolves the error.
    #[must_use]
    pub fn remediation(mut self, remediation: impl Into<String>) -> ToolError {
        self.remediation = remediation.into();
        self
    }

    /// Adds a reason.
    #[must_use]
    pub fn blocker(mut self, blocker: Blocker) -> ToolError {
        self.blockers.push(blocker);
        self
    }

    /// Adds reasons.
    #[must_use]
    pub fn blockers(mut self, blockers: impl IntoIterator<Item = Blocker>) -> ToolError {
        self.blockers.extend(blockers);
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn context(mut self, key: &str, value: impl Into<Value>) -> ToolError {
        self.context.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the next call to make.
    #[must_use]
    pub fn next_call(mut self, call: NextCall) -> ToolError {
        self.next_call = Some(call);
        self
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ToolError {}

impl Blocker {
    /// Creates a reason with a code and a message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Blocker {
        Blocker {
            code: code.into(),
            message: message.into(),
            field: None,
            next_call: None,
        }
    }

    /// Sets the argument with the fault.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Blocker {
        self.field = Some(field.into());
        self
    }

    /// Sets the call that removes the reason.
    #[must_use]
    pub fn next_call(mut self, call: NextCall) -> Blocker {
        self.next_call = Some(call);
        self
    }
}

impl NextCall {
    /// Creates a call with its arguments as a JSON object. Any other value counts as no arguments.
    pub fn new(tool: impl Into<String>, arguments: Value) -> NextCall {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        NextCall {
            tool: tool.into(),
            arguments,
        }
    }
}

impl From<DbError> for ToolError {
    /// Converts a storage error, and adds a remediation. A failure of the host itself only reports that storage failed,
    /// because the log has the reason.
    fn from(err: DbError) -> ToolError {
        let (code, remediation) = match &err {
            DbError::Full => (
                "STORAGE_FULL",
                "Free disk space or raise the pack's storage quota.",
            ),
            DbError::TooLarge(_) => ("RESULT_TOO_LARGE", "Request fewer rows or columns at once."),
            DbError::Interrupted => (
                "DEADLINE_EXCEEDED",
                "Request less data at once, or raise the call's deadline.",
            ),
            DbError::Refused(_) => (
                "STORAGE_FAILED",
                "Correct the statement; docs/writing-a-pack.md lists the allowed SQL.",
            ),
            DbError::Constraint(_) => (
                "STORAGE_FAILED",
                "Correct the values; the constraint is in the pack's migrations.",
            ),
            DbError::ReadOnly => (
                "STORAGE_FAILED",
                "Declare the tool with Effect::Write, or remove the write.",
            ),
            DbError::TransactionState(_) => (
                "STORAGE_FAILED",
                "Use storage inside of cx.transaction in a Run tool, one transaction at a time.",
            ),
            DbError::Type { .. } => (
                "STORAGE_FAILED",
                "Read the column as the type in its migration, or as an Option if the column may be NULL.",
            ),
            DbError::Internal => (
                "STORAGE_FAILED",
                "Read the host's log; search for the operation id.",
            ),
        };
        let error = ToolError::new(code, err.to_string()).remediation(remediation);
        match err {
            DbError::Refused(reason) | DbError::Constraint(reason) | DbError::TransactionState(reason) => {
                error.context("reason", reason)
            }
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DbError, ToolError};

    #[test]
    fn refused_sql_says_what_sql_may_say_and_why_it_was_refused() {
        let error = ToolError::from(DbError::Refused("`PRAGMA` is not allowed".to_owned()));
        assert!(error.remediation.contains("docs/writing-a-pack.md"), "{error:?}");
        assert_eq!(error.context["reason"], "`PRAGMA` is not allowed");
        let log = |err| ToolError::from(err).remediation.contains("log");
        assert!(log(DbError::Internal));
        for err in [
            DbError::Refused(String::new()),
            DbError::Constraint(String::new()),
            DbError::ReadOnly,
            DbError::TooLarge(String::new()),
            DbError::Full,
            DbError::Interrupted,
            DbError::TransactionState(String::new()),
            DbError::Type {
                column: 0,
                wanted: "i64",
            },
        ] {
            assert!(!log(err.clone()), "{err:?}");
        }
    }

    #[test]
    fn refusals_about_workspaces_name_the_keys_that_would_help() {
        use crate::{ProcessError, WorkspaceError};
        let said = |error: ToolError| error.remediation;
        let unknown = said(WorkspaceError::Unknown("x".to_owned()).into());
        assert_eq!(
            unknown,
            said(ProcessError::UnknownWorkspace("x".to_owned()).into())
        );
        for key in [
            "[workspaces.NAME]",
            "path = \"/srv/app\"",
            "grants.workspaces = [\"NAME\"]",
        ] {
            assert!(unknown.contains(key), "{unknown}");
        }
        let denied = said(WorkspaceError::Denied("x".to_owned()).into());
        assert!(
            denied.contains("write = [\"docs/\"] in [workspaces.NAME]"),
            "{denied}"
        );
        let denied = said(ProcessError::Denied("x".to_owned()).into());
        for key in ["git = \"write\"", "tests.default = [", "grants.process = ["] {
            assert!(denied.contains(key), "{denied}");
        }
    }
}
