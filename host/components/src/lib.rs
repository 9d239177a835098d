//! Components: fetches, checks, compiles and loads packs and policies, including the built-in ones.

pub mod builtin;
pub mod catalog;
pub mod grants;
pub mod loading;
pub mod names;
pub mod packs;
pub mod policies;
pub mod tools;
pub mod world;
