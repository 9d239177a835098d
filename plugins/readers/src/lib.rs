//! Readers of test tools' output, shared by packs.
//!
//! A test run is parsed into a [`TestReport`], independent of the tool that ran it. Names, paths and messages are
//! normalised, so that the same failure reads the same at any time and in any checkout. [`fingerprint`] gives it a hash.
//!
//! ```
//! use test_readers::{Normaliser, Outcome, readers};
//!
//! let output = b"running 2 tests\n\ntest result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n";
//! let run = readers::Run { output, exit_code: Some(0), command: "cargo test", reader: None };
//! let report = readers::read(&run, &Normaliser::default());
//! assert_eq!(report.outcome, Outcome::Passed);
//! assert_eq!(report.counts.skipped, Some(1));
//! ```
#![warn(missing_docs)]

pub mod digest;
pub mod fingerprint;
mod normalise;
pub mod readers;
pub mod report;
pub mod source;
pub mod text;
mod trace;

pub use normalise::Normaliser;
pub use report::{Counts, Ended, Failure, MAX_ERRORS, MAX_FAILING_TESTS, Outcome, TestReport};
pub use source::Place;
