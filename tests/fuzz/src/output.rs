//! Targets for the output of test tools and Git.

use convergence::readers::{self, Reader, Run};
use convergence::{Normaliser, fingerprint, git};

const READERS: [Option<Reader>; 12] = [
    None,
    Some(Reader::CargoTest),
    Some(Reader::Nextest),
    Some(Reader::Pytest),
    Some(Reader::Unittest),
    Some(Reader::Jest),
    Some(Reader::Vitest),
    Some(Reader::NodeTest),
    Some(Reader::GoTest),
    Some(Reader::JunitXml),
    Some(Reader::Tap),
    Some(Reader::Generic),
];

/// Checks that reading is deterministic, and that every failure has a fingerprint.
pub(crate) fn tests(output: &[u8]) {
    let normaliser = Normaliser::new(["/srv/project"]);
    for reader in READERS {
        for exit_code in [Some(0), Some(1), None] {
            let run = Run {
                output,
                exit_code,
                command: "make check",
                reader,
            };
            let report = readers::read(&run, &normaliser);
            let failure = fingerprint::failure(&report);
            assert_eq!(failure.is_some(), report.is_failure(), "{report:?}");
            assert_eq!(failure, fingerprint::failure(&readers::read(&run, &normaliser)));
        }
    }
}

/// Checks that no list exceeds its limit.
pub(crate) fn git(output: &[u8]) {
    let lengths = [
        git::parse_status(output).entries.len(),
        git::parse_numstat(output).entries.len(),
        git::parse_paths(output).entries.len(),
    ];
    assert!(lengths.iter().all(|length| *length <= git::MAX_ENTRIES));
    let _ = git::parse_diff(output);
}
