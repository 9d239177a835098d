//! Result of each reader for each recording.

use std::fmt::Write as _;

use convergence::{Failure, TestReport};
use expect_test::expect_file;

use crate::harness::{self, TOOLS};

fn failure(log: &mut String, mark: &str, failure: &Failure) {
    let kind = failure.exception_type.as_deref().unwrap_or("-");
    let _ = writeln!(log, "    {mark} {:?} {kind}", failure.name);
    let _ = writeln!(log, "        {:?}", failure.message_head);
    for frame in &failure.stack {
        let _ = writeln!(log, "        at {frame}");
    }
}

fn report(log: &mut String, case: &str, report: &TestReport) {
    let count = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let counts = &report.counts;
    let _ = writeln!(
        log,
        "  {case}: {:?} {:?} exit {:?}, {} passed, {} failed, {} skipped, {} in all",
        report.reader,
        report.outcome,
        report.exit_code.unwrap_or(-1),
        count(counts.passed),
        count(counts.failed),
        count(counts.skipped),
        count(counts.total),
    );
    report
        .failing_tests
        .iter()
        .for_each(|test| failure(log, "failed", test));
    report
        .errors
        .iter()
        .for_each(|error| failure(log, "error", error));
}

#[test]
fn every_recording_is_read() {
    for (tool, _) in TOOLS {
        let mut log = format!("{tool}\n");
        for fixture in harness::all(tool)
            .into_iter()
            .filter(|fixture| fixture.site == "a")
        {
            report(&mut log, &fixture.case, &fixture.read());
        }
        expect_file![format!(
            "{}/tests/it/snapshots/{tool}.txt",
            env!("CARGO_MANIFEST_DIR")
        )]
        .assert_eq(&log);
    }
}
