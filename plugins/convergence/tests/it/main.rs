//! Readers, fingerprints and the readers of Git, over output recorded from the real tools.

mod harness;
mod place;

mod assertions;
mod edits;
mod fingerprints;
mod formats;
mod git;
mod mutations;
mod random;
mod runs;
mod table;
mod tools;
mod verdicts;
