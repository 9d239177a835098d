//! The fingerprint of a failure: the same whenever the same tests fail in the same way.

use crate::digest::Encoder;
use crate::report::{Failure, TestReport};

/// Version of the encoding in [`failure`]. A change of the encoding, a reader or the normalisation makes
/// fingerprints that match no older ones.
const TAG: &str = "tollgate.failure.v1";

/// The fingerprint of a report that [is a failure](TestReport::is_failure).
///
/// It is the SHA-256 over the names of the failing tests in their order, the normalised type of
/// each exception and its stack, and the exit code. The message of a test is left out, for values in
/// it differ where the failure does not. What went wrong outside of tests counts too, with its
/// message: nothing else tells two errors of a compiler in one file apart.
#[must_use]
pub fn failure(report: &TestReport) -> Option<String> {
    if !report.is_failure() {
        return None;
    }
    let mut encoder = Encoder::new(TAG);
    failures(
        &mut encoder,
        report.failing_tests.iter().map(|test| key(test, "")).collect(),
    );
    encoder.field(&report.more_failing_tests.to_be_bytes());
    failures(
        &mut encoder,
        report
            .errors
            .iter()
            .map(|error| key(error, &error.message_head))
            .collect(),
    );
    encoder.field(&report.more_errors.to_be_bytes());
    let exit_code = report.exit_code.map(i32::to_be_bytes);
    encoder.optional(exit_code.as_ref().map(<[u8; 4]>::as_slice));
    Some(encoder.finish())
}

/// Name, type, stack, and the message if it counts.
type Key<'a> = (&'a str, Option<&'a str>, &'a [String], &'a str);

fn key<'a>(failure: &'a Failure, message: &'a str) -> Key<'a> {
    (
        &failure.name,
        failure.exception_type.as_deref(),
        &failure.stack,
        message,
    )
}

fn failures(encoder: &mut Encoder, mut keys: Vec<Key<'_>>) {
    keys.sort_unstable();
    encoder.count(keys.len());
    for (name, exception_type, stack, message) in keys {
        encoder.field(name.as_bytes());
        encoder.optional(exception_type.map(str::as_bytes));
        encoder.count(stack.len());
        stack.iter().for_each(|frame| encoder.field(frame.as_bytes()));
        encoder.field(message.as_bytes());
    }
}
