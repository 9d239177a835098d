//! Loading of components: from an origin to code that is linked to this host, and to instances of it.

mod ask;
mod bring;
mod cache;
mod code_cache;
pub mod compile;
mod confine;
mod download;
mod instance_pool;
mod loader;
mod origin;
mod problems;
mod registry;
pub(crate) mod version;

pub(crate) use bring::pinned;
pub use bring::{Haste, Prepared};
pub use cache::How;
pub use code_cache::Code;
pub use download::{DownloadError, Downloads, fetch};
pub use instance_pool::{InstancePool, PooledInstance, RetiredInstance};
pub use loader::{Keep, Loader, Tables};
pub use origin::{Origin, read};
pub use problems::{config_problems, migration_problems, one};
pub use registry::{Fetched, Registries, run as run_registry};
pub use version::{Anatomy, NotAPack, check as check_component};
