//! The pack driven natively, over SQLite, with a clock and ids that are fixed.

mod bad_input;
mod batch;
mod bootstrap;
mod delta;
mod errors;
mod evidence;
mod harness;
mod integrity;
mod journal;
mod lease_model;
mod leases;
mod lint;
mod model;
mod offers;
mod proven_model;
mod queue;
mod random;
mod refusals;
mod runs;
mod show;
mod table;
mod undo;
mod views;
mod walk;
mod work;
mod world;
