//! Policies, which evaluate calls: a settings struct with `before` and `after`.
//!
//! A policy is its settings struct: the fields are the keys of its `config` table, and the doc comments are their
//! descriptions.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use tollgate_sdk::native::Judge;
//! use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Request, Verdict};
//!
//! /// Keeps agents away from tools whose time has not come.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Closed {
//!     /// The tools that nobody may call.
//!     tools: Vec<String>,
//! }
//!
//! impl Policy for Closed {
//!     const NAME: &'static str = "closed";
//!     const SUMMARY: &'static str = "Some tools are closed.";
//!     const PHASE: Phase = Phase::Request;
//!
//!     fn before(&self, _cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
//!         if self.tools.contains(&request.tool) {
//!             return Ok(Denial::new("CLOSED", format!("{} is closed", request.tool)).into());
//!         }
//!         Ok(Verdict::Pass)
//!     }
//! }
//! tollgate_sdk::export_policy!(Closed);
//!
//! let judge = Judge::<Closed>::new(r#"{"tools": ["task_open_circuit"]}"#).unwrap();
//! assert!(judge.before(&Request::of("task_open_circuit", r#"{}"#)).is_denied());
//! assert_eq!(judge.before(&Request::of("task_get", r#"{}"#)).verdict, Verdict::Pass);
//! ```

mod facts;
mod host;
pub mod memory;
mod verdict;

use std::cell::RefCell;
use std::ops::Deref;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Cx, Effect, LedgerError, Migration, OperationFilter, Want, canonical_json};

pub use facts::Facts;
pub use host::PolicyHost;
use host::PolicyHostRef;
pub use memory::{Memory, MemoryChange, MemoryError, Remembered};
pub use verdict::{Denial, JudgedOperation, Note, OwnVerdict, Problem, Question, Review, Verdict};

/// Phases of a call that a policy evaluates.
///
/// ```
/// # use tollgate_sdk::policy::{Phase, Policy};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Quiet {}
/// impl Policy for Quiet {
///     const NAME: &'static str = "quiet";
///     const SUMMARY: &'static str = "Judges no result.";
///     const PHASE: Phase = Phase::Request;
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Call, before it runs: `before`.
    Request,
    /// Result of the call: `after`.
    Response,
    /// Call and result.
    Both,
}

#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a policy",
    label = "a policy is the struct of its settings",
    note = "derive `Deserialize` of serde and `JsonSchema` of schemars for `{Self}`, and write `impl Policy for {Self}`"
)]
/// A policy. Derive `Deserialize` with `deny_unknown_fields`, and `JsonSchema`. Mark optional settings with
/// `#[serde(default)]`.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use tollgate_sdk::native::Judge;
/// use tollgate_sdk::policy::{CannotJudge, Denial, Outcome, Phase, Policy, PolicyCx, Problem, Request, Review};
///
/// /// Keeps results small.
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Small {
///     /// Most bytes of a result.
///     bytes: usize,
/// }
///
/// impl Policy for Small {
///     const NAME: &'static str = "small";
///     const SUMMARY: &'static str = "Results are small.";
///     const PHASE: Phase = Phase::Response;
///
///     fn problems(&self) -> Vec<Problem> {
///         let none = (self.bytes == 0).then(|| Problem::new("bytes", "must be at least 1"));
///         none.into_iter().collect()
///     }
///
///     fn after(&self, _: &PolicyCx<'_>, _: &Request, outcome: &Outcome) -> Result<Review, CannotJudge> {
///         Ok(match outcome.body.to_string().len() {
///             bytes if bytes > self.bytes => Denial::new("TOO_MUCH", format!("{bytes} bytes")).into(),
///             _ => Review::Pass,
///         })
///     }
/// }
/// assert_eq!(Judge::<Small>::new(r#"{"bytes": 0}"#).err().map(|problems| problems.len()), Some(1));
/// ```
pub trait Policy: DeserializeOwned + JsonSchema {
    /// Name, `^[a-z][a-z0-9-]{0,31}$`. Tables start with `policy_` and this name, `-` becoming `_`.
    const NAME: &'static str;
    /// Version of the policy.
    const VERSION: &'static str = "0.1.0";
    /// One line for people.
    const SUMMARY: &'static str;
    /// Phases that the policy evaluates. The method for any other phase is never called.
    const PHASE: Phase;
    /// Capabilities that the operator must grant.
    const WANTS: &'static [Want] = &[];
    /// Steps of the schema, in order. Append only.
    const MIGRATIONS: &'static [Migration] = &[];

    /// Mistakes in the settings that their types cannot express. Called once, when the host starts.
    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    /// Evaluates a call before it is admitted. Storage is a snapshot.
    fn before(&self, _cx: &PolicyCx<'_>, _request: &Request) -> Result<Verdict, CannotJudge> {
        Ok(Verdict::Pass)
    }

    /// Evaluates a result before it is committed. In a `Write` call, storage is the call's own transaction;
    /// writes here commit with the call or not at all.
    fn after(
        &self,
        _cx: &PolicyCx<'_>,
        _request: &Request,
        _outcome: &Outcome,
    ) -> Result<Review, CannotJudge> {
        Ok(Review::Pass)
    }
}

/// A call to evaluate.
///
/// ```
/// # use tollgate_sdk::policy::Request;
/// let request = Request {
///     identity: Some("ada".to_owned()),
///     ..Request::of("note_publish", r#"{"actor": "somebody else"}"#)
/// };
/// assert_eq!(request.actor(), Some("ada"), "a proven identity takes precedence over a claim");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Id of the operation in the ledger.
    pub op_id: String,
    /// Pack of the tool.
    pub pack: String,
    /// Name of the tool, even if an alias was called.
    pub tool: String,
    /// Effect with which the host runs the tool.
    pub effect: Effect,
    /// Arguments, with the amendments so far.
    pub arguments: Map<String, Value>,
    /// SHA-256 of the arguments in the ledger's form, in hexadecimal.
    pub args_hash: String,
    /// Envelope that the call belongs to.
    pub envelope_id: Option<String>,
    /// Identity of the caller, if the transport proved one.
    pub identity: Option<String>,
    /// Name of the MCP client, as the client claims; [`TERMINAL`](crate::TERMINAL) for a person at a terminal.
    pub client: Option<String>,
    /// Connection of the call.
    pub connection: String,
    /// Time in milliseconds since 1970 UTC.
    pub at: i64,
    /// Notes of earlier policies.
    pub notes: Vec<Note>,
}

impl Request {
    /// Creates a `Write` call of a tool, for tests. The arguments are JSON text. Their canonical form serves as their
    /// hash.
    ///
    /// # Panics
    /// If the arguments are not a JSON object.
    #[must_use]
    pub fn of(tool: &str, arguments: &str) -> Request {
        let arguments: Map<String, Value> = serde_json::from_str(arguments)
            .unwrap_or_else(|err| panic!("{arguments} is not a JSON object: {err}"));
        Request {
            op_id: "op_1".to_owned(),
            pack: tool.split('_').next().unwrap_or_default().to_owned(),
            tool: tool.to_owned(),
            effect: Effect::Write,
            args_hash: canonical_json(&Value::Object(arguments.clone())),
            arguments,
            envelope_id: None,
            identity: None,
            client: None,
            connection: "con_1".to_owned(),
            at: 0,
            notes: Vec::new(),
        }
    }

    /// Returns whether a person makes the call with `tollgate call` in a terminal. The host proves this.
    #[must_use]
    pub fn is_at_terminal(&self) -> bool {
        self.client.as_deref() == Some(crate::TERMINAL)
    }

    /// Actor: the proven identity, or else the claim in the argument `actor` or `actor_name`. A claim that looks like
    /// an identity, such as `token:ada`, is ignored, because the transport would have proved a real one.
    #[must_use]
    pub fn actor(&self) -> Option<&str> {
        self.identity
            .as_deref()
            .or_else(|| self.claimed().filter(|claimed| !is_like_identity(claimed)))
    }

    /// Actor as the ledger records it, for [`OperationFilter::actor`](crate::OperationFilter::actor): the proven
    /// identity, or `claimed:` and the name in the arguments.
    #[must_use]
    pub fn recorded_actor(&self) -> Option<String> {
        let claimed = || Some(format!("claimed:{}", self.claimed()?));
        self.identity.clone().or_else(claimed)
    }

    fn claimed(&self) -> Option<&str> {
        let named = |key: &str| {
            let name = self.arguments.get(key).and_then(Value::as_str);
            name.filter(|name| !name.trim().is_empty())
        };
        named("actor").or_else(|| named("actor_name"))
    }

    /// Note that an earlier policy left under a key.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        self.notes
            .iter()
            .rev()
            .find(|note| note.key == key)
            .map(|note| note.value.as_str())
    }
}

/// Checks whether a name has the form of an identity: `token:NAME`, or an issuer's URL, `#` and the subject.
fn is_like_identity(name: &str) -> bool {
    let name = name.trim();
    name.starts_with("token:") || (name.contains('#') && name.contains(':'))
}

/// Outcome of an evaluated call.
///
/// ```
/// # use tollgate_sdk::policy::Outcome;
/// let outcome = Outcome {
///     success: true,
///     error_code: None,
///     body: serde_json::json!({"notes": []}),
///     text: None,
///     duration_ms: 3,
/// };
/// # assert!(outcome.success);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// True if the call succeeded.
    pub success: bool,
    /// Code of the error, if the call failed.
    pub error_code: Option<String>,
    /// Structured result or error.
    pub body: Value,
    /// Text shown instead of the JSON, if there is one.
    pub text: Option<String>,
    /// Time since the call reached the gate, in milliseconds.
    pub duration_ms: u64,
}

/// Error that prevented an evaluation. `?` converts any error to it. The call is denied, unless the operator configured
/// the policy to fail open.
///
/// ```
/// # use tollgate_sdk::policy::CannotJudge;
/// fn minutes(text: &str) -> Result<u32, CannotJudge> {
///     Ok(text.parse::<u32>()?)
/// }
/// assert!(minutes("many").is_err());
///
/// // Errors without a type of their own are as good: `anyhow::Error`, boxed ones, texts.
/// fn rule(text: &str) -> Result<u32, Box<dyn std::error::Error>> {
///     Ok(text.parse()?)
/// }
/// let judge = |text: &str| -> Result<u32, CannotJudge> { Ok(rule(text)?) };
/// assert_eq!(judge("many").unwrap_err().0, "invalid digit found in string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannotJudge(pub String);

impl<E: Into<Box<dyn std::error::Error>>> From<E> for CannotJudge {
    /// Converts any error, including `anyhow::Error`, to its message and the messages of its causes.
    fn from(err: E) -> CannotJudge {
        let err = err.into();
        let mut message = err.to_string();
        let mut cause = err.source();
        while let Some(err) = cause {
            let why = err.to_string();
            // Some errors already contain the message of their cause.
            if !message.contains(&why) {
                message = format!("{message}: {why}");
            }
            cause = err.source();
        }
        CannotJudge(message)
    }
}

/// Context of a policy: everything in [`Cx`], plus notes for later policies.
///
/// ```
/// use tollgate_sdk::policy::{CannotJudge, PolicyCx, Request, Verdict};
///
/// fn before(cx: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
///     let row = cx.db.query_row("SELECT count(id) FROM policy_quota_calls", &[])?;
///     let calls: i64 = row.map_or(Ok(0), |row| row.get(0))?;
///     cx.note("calls", calls.to_string());
///     Ok(Verdict::Pass)
/// }
/// # let _ = before;
/// ```
pub struct PolicyCx<'a> {
    cx: Cx<'a>,
    host: PolicyHostRef<'a>,
    notes: RefCell<Vec<Note>>,
}

impl<'a> PolicyCx<'a> {
    /// Creates a context over that of a call. The SDK does this; policies receive a context.
    #[must_use]
    pub fn new(cx: Cx<'a>, host: PolicyHostRef<'a>) -> PolicyCx<'a> {
        PolicyCx {
            cx,
            host,
            notes: RefCell::default(),
        }
    }

    /// Leaves a note for later policies, and for the evaluation of the result.
    pub fn note(&self, key: impl Into<String>, value: impl Into<String>) {
        self.notes.borrow_mut().push(Note {
            key: key.into(),
            value: value.into(),
        });
    }

    /// Memory of the policy over all calls. Changes are committed with the row of the evaluated call, whatever its
    /// outcome.
    pub fn memory(&self) -> Memory<'a> {
        Memory::new(self.host)
    }

    /// JSON Schema of the evaluated tool's arguments. `None` if the tool is unknown, for example in a recorded call of
    /// a removed pack.
    pub fn input_schema(&self) -> Option<Value> {
        serde_json::from_str(&self.host.input_schema()?).ok()
    }

    /// Past operations with this policy's verdicts on them. They can be filtered by the code of their refusal or
    /// failure. Requires [`Want::LedgerQuery`].
    pub fn query_judged(
        &self,
        filter: &OperationFilter,
        error_code: Option<&str>,
    ) -> Result<Vec<JudgedOperation>, LedgerError> {
        self.host.query_judged(filter, error_code)
    }

    /// Notes that the policy left. For backends.
    #[must_use]
    pub fn into_notes(self) -> Vec<Note> {
        self.notes.into_inner()
    }
}

impl<'a> Deref for PolicyCx<'a> {
    type Target = Cx<'a>;

    fn deref(&self) -> &Cx<'a> {
        &self.cx
    }
}

/// Parses the settings of a policy; empty text counts as an empty table.
pub(crate) fn settings<P: Policy>(text: &str) -> Result<P, Vec<Problem>> {
    let text = if text.is_empty() { "{}" } else { text };
    let policy: P = serde_json::from_str(text).map_err(|err| vec![Problem::new("", err.to_string())])?;
    match policy.problems() {
        problems if problems.is_empty() => Ok(policy),
        problems => Err(problems),
    }
}

/// Exports a [`Policy`] from a component. Does nothing on a native target, where policies are tested.
///
/// ```
/// # use tollgate_sdk::policy::{Phase, Policy};
/// # #[derive(serde::Deserialize, schemars::JsonSchema)]
/// # struct Quiet {}
/// # impl Policy for Quiet {
/// #     const NAME: &'static str = "quiet";
/// #     const SUMMARY: &'static str = "Says nothing.";
/// #     const PHASE: Phase = Phase::Both;
/// # }
/// tollgate_sdk::export_policy!(Quiet);
/// ```
#[macro_export]
macro_rules! export_policy {
    ($policy:path) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Component;
            impl $crate::guest::policy::Exported for Component {
                type Policy = $policy;
            }
            $crate::guest::policy::export_component!(Component);
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_that_is_written_like_an_identity_is_nobodys() {
        let request = |arguments: &str| Request::of("note_publish", arguments);
        for (arguments, actor, recorded) in [
            (r#"{"actor": "ada"}"#, Some("ada"), Some("claimed:ada")),
            (
                r#"{"actor": "worker#3"}"#,
                Some("worker#3"),
                Some("claimed:worker#3"),
            ),
            (
                r#"{"actor": " ", "actor_name": "bob"}"#,
                Some("bob"),
                Some("claimed:bob"),
            ),
            (r#"{"actor": "token:ada"}"#, None, Some("claimed:token:ada")),
            (
                r#"{"actor": "https://idp.example#ada"}"#,
                None,
                Some("claimed:https://idp.example#ada"),
            ),
            ("{}", None, None),
        ] {
            let claimed = request(arguments);
            assert_eq!(claimed.actor(), actor, "{arguments}");
            assert_eq!(claimed.recorded_actor().as_deref(), recorded, "{arguments}");
            let proven = Request {
                identity: Some("token:ada".to_owned()),
                ..claimed
            };
            assert_eq!(proven.actor(), Some("token:ada"));
            assert_eq!(proven.recorded_actor().as_deref(), Some("token:ada"));
        }
    }
}
