//! Repository index of the pack `conductor`.
//!
//! A [`snapshot`] lists the files. [`facts`] describe the content of each file. Both make a [`map`]: the import
//! graph, entry points, stale files and clean-up suggestions.
//!
//! Everything is read through [`tree::Tree`] and nothing here touches a file system, so that the crate runs in
//! a component. The same tree gives the same bytes.
#![warn(missing_docs)]

mod frameworks;
mod ignore;
mod resolve;
mod targets;

pub mod describe;
pub mod entry;
pub mod facts;
pub mod graph;
pub mod hygiene;
pub mod language;
pub mod manifest;
pub mod map;
pub mod path;
pub mod snapshot;
pub mod stale;
pub mod tree;
