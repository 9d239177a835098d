//! What the pack `conductor` knows of a repository.
//!
//! A [`snapshot`] says which files there are. [`facts`] are what is written in each of them. Both
//! make a [`map`]: who imports whom, where programs start, what is stale and what to do about it.
//!
//! Everything is read through [`tree::Tree`] and nothing here touches a file system, so that it runs
//! in a component. The same tree gives the same bytes.
#![warn(missing_docs)]

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
