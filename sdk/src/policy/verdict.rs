//! Verdicts of policies.

use serde_json::{Map, Value};

use crate::{NextCall, Operation};

/// Note of a policy for later policies.
///
/// ```
/// # use tollgate_sdk::policy::{Note, Request};
/// let request = Request {
///     notes: vec![Note { key: "risk".to_owned(), value: "high".to_owned() }],
///     ..Request::of("note_publish", "{}")
/// };
/// assert_eq!(request.note("risk"), Some("high"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Subject of the note.
    pub key: String,
    /// Content of the note.
    pub value: String,
}

/// Reason why a call must not run, or its result must not be returned.
///
/// ```
/// # use tollgate_sdk::policy::{Denial, Verdict};
/// # use tollgate_sdk::NextCall;
/// let denial = Denial::new("NOT_REVIEWED", "nobody read it")
///     .remediation("Have it read first.")
///     .next_call(NextCall::new("note_review", serde_json::json!({"id": "note_1"})));
/// let verdict: Verdict = denial.into();
/// # assert!(matches!(verdict, Verdict::Deny(_)));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    /// Stable code in UPPER_SNAKE_CASE.
    pub code: String,
    /// Reason in one sentence.
    pub reason: String,
    /// Action for the caller.
    pub remediation: String,
    /// Call that resolves the denial.
    pub next_call: Option<NextCall>,
}

impl Denial {
    /// Creates a denial with a code and a reason.
    #[must_use]
    pub fn new(code: impl Into<String>, reason: impl Into<String>) -> Denial {
        Denial {
            code: code.into(),
            reason: reason.into(),
            remediation: String::new(),
            next_call: None,
        }
    }

    /// Sets the action for the caller.
    #[must_use]
    pub fn remediation(mut self, remediation: impl Into<String>) -> Denial {
        self.remediation = remediation.into();
        self
    }

    /// Sets the call that resolves the denial.
    #[must_use]
    pub fn next_call(mut self, call: NextCall) -> Denial {
        self.next_call = Some(call);
        self
    }
}

/// Question to a person before a call runs.
///
/// ```
/// # use tollgate_sdk::policy::{Denial, Question, Verdict};
/// let otherwise = Denial::new("NOT_ALLOWED", "nobody allowed it").remediation("Ask your owner.");
/// let question = Question::new("Note note_1 will be published, as the third one today. Is that right?", otherwise)
///     .key("publish/note_1");
/// let verdict = Verdict::Ask(question);
/// # assert_ne!(verdict, Verdict::Pass);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Description of the planned action, in one or two sentences.
    pub message: String,
    /// Denial if nobody can be asked or the answer is no.
    pub otherwise: Denial,
    /// Key that the answer is bound to, in addition to the call. If `None`, the message.
    pub key: Option<String>,
    /// Arguments with which the call runs after a yes. They are validated again. If `None`, those of the call.
    pub arguments: Option<Map<String, Value>>,
}

impl Question {
    /// Creates a question with a message, and the denial that applies without a yes.
    #[must_use]
    pub fn new(message: impl Into<String>, otherwise: Denial) -> Question {
        Question {
            message: message.into(),
            otherwise,
            key: None,
            arguments: None,
        }
    }

    /// Binds the answer to a key of 1 to 400 bytes instead of the message. The message may then contain a count or a
    /// time that changes between the question and the answer.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Question {
        self.key = Some(key.into());
        self
    }

    /// Sets the arguments with which the call runs after a yes. The answer is valid for exactly these arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: Map<String, Value>) -> Question {
        self.arguments = Some(arguments);
        self
    }
}

/// Verdict before a call.
///
/// ```
/// # use tollgate_sdk::policy::{Request, Verdict};
/// let request = Request::of("note_publish", r#"{"draft": true, "title": "x"}"#);
/// let mut arguments = request.arguments;
/// arguments.remove("draft");
/// let verdict = Verdict::Amend(arguments);
/// # assert_ne!(verdict, Verdict::Pass);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The call may run.
    Pass,
    /// The call runs with these arguments instead. They are validated again.
    Amend(Map<String, Value>),
    /// The call must not run.
    Deny(Denial),
    /// The call runs only if the client's user agrees.
    Ask(Question),
}

impl From<Denial> for Verdict {
    fn from(denial: Denial) -> Verdict {
        Verdict::Deny(denial)
    }
}

/// Verdict on a result.
///
/// ```
/// # use tollgate_sdk::policy::{Denial, Review};
/// let review: Review = Denial::new("SECRET", "the result contains a key").into();
/// assert_ne!(review, Review::Pass);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Review {
    /// The result may be returned.
    Pass,
    /// The call's changes are rolled back and its result is withheld.
    Deny(Denial),
}

impl From<Denial> for Review {
    fn from(denial: Denial) -> Review {
        Review::Deny(denial)
    }
}

/// A mistake in a policy's settings.
///
/// ```
/// # use tollgate_sdk::policy::Problem;
/// let problem = Problem::new("limits.calls", "must be at least 1");
/// # assert_eq!(problem.key, "limits.calls");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Dotted key.
    pub key: String,
    /// Explanation of the mistake.
    pub message: String,
}

impl Problem {
    /// Creates a problem under a key.
    #[must_use]
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem {
            key: key.into(),
            message: message.into(),
        }
    }
}

/// Verdict that this policy gave on a past operation.
///
/// ```
/// # use tollgate_sdk::policy::OwnVerdict;
/// let verdict = OwnVerdict {
///     phase: "request".to_owned(),
///     mode: "enforce".to_owned(),
///     verdict: "deny".to_owned(),
///     code: Some("FROZEN".to_owned()),
/// };
/// # assert_eq!(verdict.code.as_deref(), Some("FROZEN"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnVerdict {
    /// `request` or `response`.
    pub phase: String,
    /// `enforce` or `audit`.
    pub mode: String,
    /// `pass`, `amend`, `deny`, `ask` or `failed`.
    pub verdict: String,
    /// Code of the denial.
    pub code: Option<String>,
}

/// Past operation with the verdicts that this policy gave on it.
///
/// ```
/// # use tollgate_sdk::policy::{CannotJudge, JudgedOperation, PolicyCx};
/// fn denied(found: &[JudgedOperation]) -> usize {
///     let own = found.iter().flat_map(|found| &found.verdicts);
///     own.filter(|verdict| verdict.verdict == "deny").count()
/// }
/// # assert_eq!(denied(&[]), 0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedOperation {
    /// The operation.
    pub operation: Operation,
    /// Verdicts of the policy on it.
    pub verdicts: Vec<OwnVerdict>,
}
