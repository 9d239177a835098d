//! The pack through its tools, over SQLite and real repositories.
#![allow(clippy::disallowed_methods, reason = "the tests make and look at files")]

mod above;
mod agreed;
mod gone;
mod harness;
mod history;

mod briefs;
mod cheats;
mod context;
mod delivered;
mod documents;
mod entities;
mod execution;
mod frozen;
mod git;
mod jobs;
mod late;
mod launder;
mod memory;
mod newcomers;
mod odd_git;
mod planning;
mod prompts;
mod random;
mod records;
mod repository;
mod suites;
mod table;
mod templates;
mod told;
mod transfer;
mod tricks;
mod veils;
