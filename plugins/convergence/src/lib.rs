//! The pack `convergence`: fingerprints that show whether work on a failure is converging.
//!
//! A test run is parsed into a [`TestReport`], independent of the tool that ran it. A failure gets a fingerprint that is
//! the same for the same failure, at any time and in any checkout. A change of the work tree gets a fingerprint from
//! Git's view of it. Comparison with earlier fingerprints shows repetitions.
//!
//! Readers and fingerprints are pure. Only `work_tree` asks Git, and only `tools` runs tests.
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

mod config;
mod error;
mod store;
mod tools;
mod work_tree;

pub mod cycle;
pub mod git;
pub mod mutation;

pub use test_readers::{
    Counts, Ended, Failure, MAX_ERRORS, MAX_FAILING_TESTS, Normaliser, Outcome, TestReport, fingerprint,
    readers,
};
use test_readers::{digest, report, text};

use tollgate_sdk::{GitAccess, Pack, Want, config_schema, migration};

use crate::config::Config;

/// The pack.
pub const PACK: Pack = Pack {
    name: "convergence",
    version: env!("CARGO_PKG_VERSION"),
    summary: "Fingerprints of test runs and changes, which show whether work is converging.",
    instructions: "Run tests with test_run, or record your own run with test_report. Record edits with mutation_record. \
        `non_progress` means that the same failure persisted after an edit, recorded or not: try another approach. `no_op` means that \
        an edit changed nothing, `oscillation` that an edit restored an earlier state. convergence_status summarizes \
        the progress.",
    wants: &[Want::WorkspaceRead("*"), Want::Tests, Want::Git(GitAccess::Read)],
    migrations: &[
        migration!("../../../migrations/convergence", "0001_init"),
        migration!("../../../migrations/convergence", "0002_edits"),
        migration!("../../../migrations/convergence", "0003_edits_over_envelopes"),
        migration!("../../../migrations/convergence", "0004_claims"),
        migration!("../../../migrations/convergence", "0005_words_limits_and_places"),
    ],
    tools: tollgate_sdk::tools![
        tools::run::TestRun,
        tools::report::Report,
        tools::mutation::MutationRecord,
        tools::status::Status,
    ],
    config_schema: Some(config_schema::<Config>),
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
