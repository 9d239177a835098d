//! The pack `conductor` through real clients.

mod caches;
mod feature;
mod ledger;
mod misuse;
mod project;
mod prompt_reader;
mod repository;
mod stories;
mod tools;
