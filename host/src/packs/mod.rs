//! Loading components: from bytes to packs whose tools the gate can call.

mod bring;
mod cache;
mod catalog;
mod code;
pub mod compile;
mod confine;
mod definitions;
mod download;
mod grants;
mod inspect;
pub(crate) mod lint;
mod load;
mod manifest;
mod origin;
mod other_forms;
mod ready;
mod resources;
pub mod search;
mod version;
pub(crate) mod wants;
mod wording;

pub use cache::How;
pub use catalog::{Body, Catalog, ENVELOPE_ARGUMENT, Preparing, Selection, ToolEntry};
pub(crate) use code::Code;
pub use definitions::{Change, policy_owner};
pub use download::{DownloadError, Downloads, fetch};
pub(crate) use grants::Wish;
pub use grants::{Granted, Grants};
pub use inspect::{Inspection, Said, Wanted, anatomy_of};
pub use load::{Haste, Keep, LoadError, Loader, Pack, Source, Tables};
pub(crate) use load::{Prepared, config_problems, migration_problems, missing_grants, one};
pub use manifest::{Effect, Manifest, Tier, ToolSpec};
pub(crate) use manifest::{RESERVED, is_component_name, line, prefixes_clash};
pub use origin::{Origin, read};
pub use resources::{Resource, Source as ValueSource, Values};
pub use version::{Anatomy, NotAPack, World, check as check_component};
