//! The pack `convergence`: whether work on a failure comes to anything.
//!
//! A test run is read into a [`TestReport`], whichever tool ran it, and a failure gets a
//! fingerprint that is the same wherever and whenever it is seen again. A change of the work tree
//! gets one too, from what Git says of it. With the fingerprints before it, each shows whether it
//! repeats itself.
//!
//! Nothing here reads a file or starts a process.
//!
//! ```
//! use convergence::{Normaliser, Outcome, fingerprint, readers};
//!
//! let output = b"running 1 test\ntest tests::adds ... FAILED\n\nfailures:\n\n---- tests::adds stdout ----\n\n\
//!     thread 'tests::adds' (17) panicked at /srv/proj/src/lib.rs:25:9:\nassertion failed: x\n";
//! let run = readers::Run { output, exit_code: Some(101), command: "cargo test", reader: None };
//! let report = readers::read(&run, &Normaliser::new(["/srv/proj"]));
//! assert_eq!(report.outcome, Outcome::Failed);
//! assert_eq!(report.failing_tests[0].name, "tests::adds");
//! assert_eq!(report.failing_tests[0].stack, ["src/lib.rs"]);
//! assert_eq!(fingerprint::failure(&report).unwrap().len(), 64);
//! ```
#![warn(missing_docs)]

mod digest;
mod normalise;
mod report;
mod text;
mod trace;

pub mod cycle;
pub mod fingerprint;
pub mod git;
pub mod mutation;
pub mod readers;

pub use normalise::Normaliser;
pub use report::{Counts, Failure, MAX_ERRORS, MAX_FAILING_TESTS, Outcome, TestReport};
