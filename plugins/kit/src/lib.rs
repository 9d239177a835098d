//! Rules that the built-in packs share.
//!
//! [`Refusals`] gathers every reason to refuse a call and has the checks of arguments. [`text`] shortens what
//! callers sent. [`git`] reads Git's output. [`runs`] looks test runs up, `test_runs` tells the ledger of them. `secrets`
//! cuts secrets out of text. Each pack adds its own reasons, limits and checks.

mod checks;
pub mod git;
mod refusals;
pub mod runs;
#[cfg(feature = "secrets")]
pub mod secrets;
#[cfg(feature = "test-runs")]
pub mod test_runs;
pub mod text;

#[doc(hidden)]
pub use tollgate_sdk::ToolError;

pub use checks::{is_blank, json_bytes};
pub use refusals::{INVALID_ARGUMENTS, NOT_FOUND, Reason, Refusals, refusal};
