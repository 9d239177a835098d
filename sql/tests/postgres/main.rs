//! Translated statements on PostgreSQL itself, beside SQLite.
#![allow(clippy::disallowed_methods, reason = "tests read the migrations of the packs")]

mod attacks;
mod both;
mod grammar;
mod packs;
mod random;
mod server;
mod sessions;
