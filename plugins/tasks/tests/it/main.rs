//! The pack driven natively, over SQLite, with a clock and ids that are fixed.

mod harness;
mod walk;
