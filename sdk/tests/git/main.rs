//! The real git in repositories that somebody prepared: no program of theirs runs, nothing outside of the
//! workspace is shown, and nothing is written that the operator did not offer.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

mod commands;
mod forms;
mod place;
mod prefixes;
mod programs;
mod walls;
