//! Loading components: from bytes to packs whose tools the gate can call.

mod cache;
mod catalog;
pub mod compile;
mod grants;
mod lint;
mod load;
mod manifest;
mod other_forms;
mod version;

pub use catalog::{Body, Catalog, ENVELOPE_ARGUMENT, Selection, ToolEntry};
pub use grants::{Granted, Grants};
pub use load::{LoadError, Loader, Origin, Pack, Source};
pub use manifest::{Effect, Manifest, Tier, ToolSpec};
pub use version::{NotAPack, check as check_component};
