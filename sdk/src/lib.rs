//! SDK for Tollgate's packs and policies: tools, storage, errors, verdicts, and a native backend for testing them.
//!
//! # A pack
//!
//! A pack offers tools. A tool is its argument struct: the fields are the parameters, and agents read the doc comments.
//! [`Tool::run`] does the work, using [`Cx`]. Errors are [`ToolError`]s. An error rolls back all rows of the call.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use tollgate_sdk::{Cx, Effect, Migration, Pack, Tool, ToolError, params, tools};
//!
//! /// Greet a person by name, and store the greeting.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Greet {
//!     /// Name of the person to greet, for example Ada.
//!     #[schemars(length(min = 1, max = 100))]
//!     name: String,
//! }
//!
//! /// A greeting.
//! #[derive(Serialize, JsonSchema)]
//! struct Greeting {
//!     /// Text of the greeting.
//!     text: String,
//! }
//!
//! impl Tool for Greet {
//!     const NAME: &'static str = "hello_greet";
//!     const TITLE: &'static str = "Greet";
//!     const EFFECT: Effect = Effect::Write;
//!     type Output = Greeting;
//!
//!     fn run(self, cx: &Cx<'_>) -> Result<Greeting, ToolError> {
//!         if self.name == "nobody" {
//!             return Err(ToolError::new("NOBODY_THERE", "`nobody` cannot be greeted")
//!                 .remediation("Pass the name of a person."));
//!         }
//!         cx.db.execute(
//!             "INSERT INTO hello_greetings (name, at) VALUES (?1, ?2)",
//!             params![self.name, cx.now()],
//!         )?;
//!         Ok(Greeting { text: format!("Hello, {}", self.name) })
//!     }
//! }
//!
//! pub const PACK: Pack = Pack {
//!     name: "hello",
//!     version: "0.1.0",
//!     summary: "Greetings.",
//!     tools: tools![Greet],
//!     migrations: &[Migration {
//!         name: "0001_init",
//!         sql: "CREATE TABLE hello_greetings (name TEXT NOT NULL, at TEXT NOT NULL);",
//!     }],
//!     ..Pack::EMPTY
//! };
//! tollgate_sdk::export_pack!(PACK);
//!
//! // Natively, calls go over SQLite with the same rules, a fixed clock and counted ids.
//! let session = tollgate_sdk::native::Session::new(&PACK);
//! let reply = session.call("hello_greet", r#"{"name": "Ada"}"#).unwrap();
//! assert_eq!(reply.structured, r#"{"text":"Hello, Ada"}"#);
//! let refusal = session.call("hello_greet", r#"{"name": "nobody"}"#).unwrap_err();
//! assert_eq!(refusal.code, "NOBODY_THERE");
//! assert_eq!(session.sql("SELECT name FROM hello_greetings").len(), 1);
//! ```
//!
//! # A policy
//!
//! A policy evaluates calls before they run and when their result is known. A policy is its settings struct. See
//! [`policy`].
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use tollgate_sdk::native::Judge;
//! use tollgate_sdk::policy::{CannotJudge, Denial, Phase, Policy, PolicyCx, Request, Verdict};
//!
//! /// Permits greetings of known people only.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Known {
//!     /// Names of the people that may be greeted.
//!     names: Vec<String>,
//! }
//!
//! impl Policy for Known {
//!     const NAME: &'static str = "known";
//!     const SUMMARY: &'static str = "Permits greetings of known people only.";
//!     const PHASE: Phase = Phase::Request;
//!
//!     fn before(&self, _: &PolicyCx<'_>, request: &Request) -> Result<Verdict, CannotJudge> {
//!         let name = request.arguments.get("name").and_then(|name| name.as_str());
//!         if name.is_some_and(|name| self.names.iter().any(|known| known == name)) {
//!             return Ok(Verdict::Pass);
//!         }
//!         Ok(Denial::new("STRANGER", "the person is not in `names`").remediation("Greet a known person.").into())
//!     }
//! }
//! tollgate_sdk::export_policy!(Known);
//!
//! let judge = Judge::<Known>::new(r#"{"names": ["Ada"]}"#).unwrap();
//! assert!(judge.before(&Request::of("hello_greet", r#"{"name": "Bob"}"#)).is_denied());
//! ```
//!
//! # From here to a running host
//!
//! `tollgate new pack NAME` and `tollgate new policy NAME` make a crate of this shape. `cargo build --release
//! --target wasm32-wasip2` compiles a component, and `tollgate packs check FILE` tests it in the host.
//!
//! | subject | items |
//! |---|---|
//! | tools and their tables | [`Tool`], [`tool!`], [`tools!`], [`Effect`], [`Hints`], [`Tier`], [`Pack`] |
//! | SQL | [`Db`], [`Row`], [`params!`], [`Migration`], [`id!`], [`text_enum!`], [`Timestamp`] |
//! | refusals | [`ToolError`], [`Blocker`], [`NextCall`] |
//! | files and programs | [`Workspace`], [`Command`], [`Want`] |
//! | ledger, budgets, artifacts | [`Ledger`], [`Budget`], [`Cx::keep_artifact`] |
//! | decisions of people | [`Approvals`], [`ApprovalRequest`] |
//! | prompts | [`Prompt`], [`prompts!`] |
//! | policies and their memory | [`policy`], [`policy::Memory`] |
//! | paths and globs in arguments | [`paths`] |
//! | tests | [`native`] |
#![warn(missing_docs)]

pub mod approvals;
mod arguments;
pub mod artifacts;
mod ask;
pub mod budget;
mod canonical;
#[cfg(not(target_family = "wasm"))]
mod capture;
mod content;
mod cx;
mod db;
mod error;
mod found;
mod function;
mod host;
pub mod ledger;
mod pack;
pub mod paths;
pub mod process;
mod prompt;
mod schema;
mod text;
mod timestamp;
mod tool;
pub mod workspace;

pub mod policy;
// Hidden modules that hosts and the native backend share.
#[doc(hidden)]
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;
#[cfg(not(target_family = "wasm"))]
pub mod native;
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub mod permit;
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub mod stale;
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub mod surface;
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub mod tree;

pub use approvals::{
    Answerers, Answering, Approval, ApprovalError, ApprovalRequest, ApprovalStatus, Approvals,
};
pub use artifacts::{ArtifactError, ArtifactKind};
pub use ask::{Action, Answer, AnsweredBy, Asking, Question};
pub use budget::{Budget, BudgetError, Counter, Envelope, Reservation};
pub use canonical::canonical_json;
#[cfg(not(target_family = "wasm"))]
#[doc(hidden)]
pub use capture::Capture;
pub use content::{Content, Media};
pub use cx::Cx;
pub use db::{Db, DbError, FromValue, Row, ToValue, Value};
pub use error::{Blocker, NextCall, ToolError};
pub use found::{FoundOperation, TestedTree};
pub use host::{CallInfo, Host, Level, TERMINAL, Transaction};
pub use ledger::{
    Event, Ledger, LedgerError, Operation, OperationFilter, SeenWorkTree, Slot, TestOutcome, TestResult,
    WorkTreeChange,
};
pub use pack::{ClientPart, Migration, Pack, Want};
pub use process::{Command, Ending, Outcome, Output, ProcessError};
pub use prompt::{Prompt, PromptArgument, PromptEntry};
pub use schema::{config_schema, input_schema, output_schema};
pub use text::{Id, ParseTextError};
pub use timestamp::Timestamp;
pub use tool::{Effect, Entry, Hints, Reply, Tier, Tool};
pub use workspace::{
    FileEntry, FileKind, GitAccess, Listing, MAX_WRITE, TestCommand, Workspace, WorkspaceError, WorkspaceInfo,
};

/// Crates whose types appear in the SDK's interface. A component uses them from here and needs no dependencies of its
/// own on the same versions. Derives need their paths: `#[serde(crate = "tollgate_sdk::serde")]`, `#[schemars(crate =
/// "tollgate_sdk::schemars")]`.
pub use {schemars, serde, serde_json};

#[doc(hidden)]
pub mod reexport {
    pub use schemars;
    pub use serde;
    pub use serde_json;
}
