//! Packs: components that offer tools.

mod load;
mod manifest;
mod pack;
mod ready;

pub(crate) use load::describe;
pub use manifest::Manifest;
pub use pack::{LoadError, Pack, Source};
