//! What a Tollgate pack is written against: tools, storage, errors, and a native test backend.
//!
//! A tool is its argument struct. Its fields are the parameters, its doc comments the
//! descriptions, and [`Tool::run`] does the work:
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use tollgate_sdk::{Cx, Effect, Pack, Tool, ToolError, tools};
//!
//! /// Greet somebody by name.
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Greet {
//!     /// Who to greet.
//!     name: String,
//! }
//!
//! /// A greeting.
//! #[derive(Serialize, JsonSchema)]
//! struct Greeting {
//!     /// What to say.
//!     text: String,
//! }
//!
//! impl Tool for Greet {
//!     const NAME: &'static str = "hello_greet";
//!     const TITLE: &'static str = "Greet";
//!     const EFFECT: Effect = Effect::Read;
//!     type Output = Greeting;
//!
//!     fn run(self, _cx: &Cx<'_>) -> Result<Greeting, ToolError> {
//!         Ok(Greeting { text: format!("Hello, {}", self.name) })
//!     }
//! }
//!
//! pub const PACK: Pack = Pack {
//!     name: "hello",
//!     version: "0.1.0",
//!     summary: "Greetings.",
//!     tools: tools![Greet],
//!     ..Pack::EMPTY
//! };
//! tollgate_sdk::export_pack!(PACK);
//!
//! let session = tollgate_sdk::native::Session::new(&PACK);
//! let reply = session.call("hello_greet", r#"{"name": "Ada"}"#).unwrap();
//! assert_eq!(reply.structured, r#"{"text":"Hello, Ada"}"#);
//! ```
#![warn(missing_docs)]

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
mod host;
pub mod ledger;
mod pack;
pub mod process;
mod prompt;
mod schema;
mod text;
mod timestamp;
mod tool;
pub mod workspace;

pub mod policy;
pub mod sql;

#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod guest;
#[cfg(not(target_family = "wasm"))]
pub mod native;
#[cfg(not(target_family = "wasm"))]
pub mod permit;
#[cfg(not(target_family = "wasm"))]
pub mod stale;
#[cfg(not(target_family = "wasm"))]
pub mod tree;

pub use artifacts::{ArtifactError, ArtifactKind};
pub use ask::{Action, Answer, AnsweredBy, Asking, Question};
pub use budget::{Budget, BudgetError, Counter, Envelope, Reservation};
pub use canonical::canonical_json;
#[cfg(not(target_family = "wasm"))]
pub use capture::Capture;
pub use content::{Content, Media};
pub use cx::Cx;
pub use db::{Db, DbError, FromValue, Row, ToValue, Value};
pub use error::{Blocker, NextCall, ToolError};
pub use host::{CallInfo, Host, Level, Transaction};
pub use ledger::{Event, Ledger, LedgerError, Operation, OperationFilter};
pub use pack::{ClientPart, Migration, Pack, Want};
pub use process::{Command, Ending, Outcome, Output, ProcessError};
pub use prompt::{Prompt, PromptArgument, PromptEntry};
pub use schema::{config_schema, input_schema, output_schema};
pub use text::{Id, ParseTextError};
pub use timestamp::Timestamp;
pub use tool::{Effect, Entry, Hints, Reply, Tier, Tool};
pub use workspace::{
    FileEntry, FileKind, GitAccess, MAX_WRITE, TestCommand, Workspace, WorkspaceError, WorkspaceInfo,
};

#[doc(hidden)]
pub mod reexport {
    pub use schemars;
    pub use serde;
    pub use serde_json;
}
