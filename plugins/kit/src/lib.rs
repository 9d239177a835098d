//! Rules that the built-in packs share.
//!
//! [`Refusals`] collects every reason to refuse a call, and has the checks of arguments. [`text`] shortens text from
//! callers. [`git`] parses Git's output. [`runs`] looks up test runs, `test_runs` records them in the ledger, and
//! `secrets` removes secrets from text. `heap` is the allocator of components. [`from_row!`] reads structs from rows.
//! Each pack adds its own reasons, limits and checks.

mod checks;
pub mod git;
#[cfg(any(target_family = "wasm", test))]
#[allow(unsafe_code, reason = "an allocator manages raw memory")]
mod heap;
mod refusals;
#[doc(hidden)]
pub mod rows;
pub mod runs;
#[cfg(feature = "secrets")]
pub mod secrets;
#[cfg(feature = "test-runs")]
pub mod test_runs;
pub mod text;

#[doc(hidden)]
pub use tollgate_sdk::ToolError;

/// Allocator of every component that links this crate.
#[cfg(target_family = "wasm")]
#[global_allocator]
static HEAP: heap::Heap = heap::Heap::new();

pub use checks::{is_blank, json_bytes};
pub use refusals::{INVALID_ARGUMENTS, NOT_FOUND, Reason, Refusals, refusal};
