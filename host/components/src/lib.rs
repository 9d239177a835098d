//! Components: fetching, checking, compiling and loading of packs and policies, and those that are built in.

pub mod builtin;
pub mod catalog;
pub mod grants;
pub mod loading;
pub mod names;
pub mod packs;
pub mod policies;
pub mod tools;
pub mod world;
