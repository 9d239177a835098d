//! Definitions of tools, and the declarations in their schemas beside arguments. Pure.

pub(crate) mod alternate_schema;
pub(crate) mod declared;
pub(crate) mod headers;
pub mod host_tool;
pub mod lint;
mod looks;
mod resource;
mod scope;
pub mod search;
pub(crate) mod spec;
pub(crate) mod task_mode;
#[cfg(test)]
mod tests;
pub(crate) mod values;
pub(crate) mod views;
pub(crate) mod wording;
mod workspace_of;

pub use declared::DeclaredCharge;
pub use host_tool::{HostTool, HostTools};
pub use looks::Looks;
pub use resource::Resource;
pub use scope::Scope;
pub use spec::{Tier, ToolSpec};
pub use task_mode::TaskMode;
pub use values::{Source as ValueSource, Values};
pub use views::{Form, Items, Opens, View};
pub use workspace_of::WorkspaceOf;
