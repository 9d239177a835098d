//! What a policy says.

use serde_json::{Map, Value};

use crate::NextCall;

/// What one policy leaves for those after it.
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
    /// What it is about.
    pub key: String,
    /// What is said.
    pub value: String,
}

/// Why a call must not run, or its result must not leave.
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
    /// Stable UPPER_SNAKE.
    pub code: String,
    /// One sentence.
    pub reason: String,
    /// What the caller can do.
    pub remediation: String,
    /// The call that helps.
    pub next_call: Option<NextCall>,
}

impl Denial {
    /// A denial with a code and a sentence.
    #[must_use]
    pub fn new(code: impl Into<String>, reason: impl Into<String>) -> Denial {
        Denial {
            code: code.into(),
            reason: reason.into(),
            remediation: String::new(),
            next_call: None,
        }
    }

    /// Says what the caller can do.
    #[must_use]
    pub fn remediation(mut self, remediation: impl Into<String>) -> Denial {
        self.remediation = remediation.into();
        self
    }

    /// Names the call that helps.
    #[must_use]
    pub fn next_call(mut self, call: NextCall) -> Denial {
        self.next_call = Some(call);
        self
    }
}

/// What a person is asked before a call runs.
///
/// ```
/// # use tollgate_sdk::policy::{Denial, Question, Verdict};
/// let verdict = Verdict::Ask(Question {
///     message: "Note note_1 will be published. Is that right?".to_owned(),
///     otherwise: Denial::new("NOT_ALLOWED", "nobody allowed it").remediation("Ask your owner."),
/// });
/// # assert_ne!(verdict, Verdict::Pass);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is about to happen, in one or two sentences.
    pub message: String,
    /// What the caller is told when nobody can be asked or the answer is no.
    pub otherwise: Denial,
}

/// A verdict before the call.
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
    /// It may run.
    Pass,
    /// It runs with these arguments instead, which are validated again.
    Amend(Map<String, Value>),
    /// It must not run.
    Deny(Denial),
    /// It runs if the client's user agrees.
    Ask(Question),
}

impl From<Denial> for Verdict {
    fn from(denial: Denial) -> Verdict {
        Verdict::Deny(denial)
    }
}

/// A verdict on a result.
///
/// ```
/// # use tollgate_sdk::policy::{Denial, Review};
/// let review: Review = Denial::new("SECRET", "the result contains a key").into();
/// assert_ne!(review, Review::Pass);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Review {
    /// It may leave.
    Pass,
    /// It must not: the call's changes are undone and its result is withheld.
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
    /// The key, dotted.
    pub key: String,
    /// What is wrong with it.
    pub message: String,
}

impl Problem {
    /// A mistake under a key.
    #[must_use]
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem {
            key: key.into(),
            message: message.into(),
        }
    }
}
