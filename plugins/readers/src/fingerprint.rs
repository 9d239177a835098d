//! Two fingerprints of a failure: its identity, the same whenever the same tests fail in the same way, and its detail, the
//! same while their messages stay.

pub(crate) mod detail;
mod names;

use crate::digest::Encoder;
use crate::readers::Reader;
use crate::report::{Ended, Failure, TestReport};

/// Version of the encoding in [`failure`]. A change of the encoding, a reader or the normalisation makes
/// fingerprints that match no older ones.
const ENCODING_TAG: &str = "tollgate.failure.v2";
/// The same for [`detail()`].
const DETAIL_TAG: &str = "tollgate.failure_detail.v2";
/// The same for [`place()`].
const PLACE_TAG: &str = "tollgate.failure_place.v1";

/// The identity of a report that [is a failure](TestReport::is_failure).
///
/// It is the SHA-256 over the names of the failing tests in their order, the normalised type of
/// each exception and its stack, and how the run ended. The reporter of a tool does not matter: names count as all
/// of its reporters write them. The message of a test is left out, for values in it differ where the failure does
/// not. What went wrong outside of tests counts too, with its message: nothing else tells two errors of a compiler
/// in one file apart. Where nothing but the end of a command tells that it failed, the command counts as well.
#[must_use]
pub fn failure(report: &TestReport) -> Option<String> {
    if !report.is_failure() {
        return None;
    }
    let mut encoder = Encoder::new(ENCODING_TAG);
    let tests = report.failing_tests.iter().map(|test| Key {
        name: names::shared(report.reader, test),
        ..key(test)
    });
    failures(&mut encoder, tests.collect());
    encoder.field(&report.more_failing_tests.to_be_bytes());
    let errors = report.errors.iter().map(|error| Key {
        message: &error.message_head,
        ..key(error)
    });
    failures(&mut encoder, errors.collect());
    encoder.field(&report.more_errors.to_be_bytes());
    encoder.field(ending(report).as_bytes());
    if is_nameless(report) {
        encoder.field(report.command.as_bytes());
    }
    Some(encoder.finish())
}

/// The detail of a failure: the SHA-256 over the messages of the failing tests, without the values that the code
/// under test made. It changes when another assertion of the same test fails.
#[must_use]
pub fn detail(report: &TestReport) -> Option<String> {
    if !report.is_failure() {
        return None;
    }
    let mut encoder = Encoder::new(DETAIL_TAG);
    let failing = report.failing_tests.iter().chain(&report.errors);
    let mut messages: Vec<(String, String)> = failing
        .map(|failure| {
            let name = names::shared(report.reader, failure);
            (name, failure.expectation.clone())
        })
        .collect();
    messages.sort_unstable();
    encoder.count(messages.len());
    for (name, message) in messages {
        encoder.field(name.as_bytes());
        encoder.field(message.as_bytes());
    }
    Some(encoder.finish())
}

/// Place of a failure in its tests: the SHA-256 over the source of the assertions that failed. `None` if the source of one
/// is unknown, or no test is named.
#[must_use]
pub fn place(report: &TestReport) -> Option<String> {
    let named = report.failing_tests.iter().map(|failure| {
        let assertion = failure.assertion.as_deref()?;
        Some((names::shared(report.reader, failure), assertion))
    });
    let sources = named.collect::<Option<Vec<_>>>();
    let mut sources = sources.filter(|sources| !sources.is_empty())?;
    sources.sort_unstable();
    let mut encoder = Encoder::new(PLACE_TAG);
    encoder.count(sources.len());
    for (name, source) in sources {
        encoder.field(name.as_bytes());
        encoder.field(source.as_bytes());
    }
    Some(encoder.finish())
}

/// True if no test is named and no known tool says what is wrong.
fn is_nameless(report: &TestReport) -> bool {
    let is_unnamed = report.failing_tests.is_empty() && report.more_failing_tests == 0;
    is_unnamed && (report.reader == Reader::Generic || report.errors.is_empty())
}

/// End of a run, as text. Each tool, and each runner of a tool's tests, has a code of its own for tests that failed.
fn ending(report: &TestReport) -> String {
    let told_by_tests = report.reader != Reader::Generic && !report.failing_tests.is_empty();
    match report.ended {
        Ended::Exited(0) => "exit 0".to_owned(),
        Ended::Exited(_) if told_by_tests => "tests failed".to_owned(),
        Ended::Exited(code) => format!("exit {code}"),
        Ended::Signalled(signal) => format!("signal {signal}"),
        Ended::TimedOut => "timed out".to_owned(),
        Ended::Unknown => "unknown".to_owned(),
    }
}

/// Fields of a failure that the fingerprint covers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    name: String,
    exception_type: Option<&'a str>,
    stack: &'a [String],
    message: &'a str,
}

fn key(failure: &Failure) -> Key<'_> {
    Key {
        name: failure.name.clone(),
        exception_type: failure.exception_type.as_deref(),
        stack: &failure.stack,
        message: "",
    }
}

fn failures(encoder: &mut Encoder, mut keys: Vec<Key<'_>>) {
    keys.sort_unstable();
    encoder.count(keys.len());
    for key in keys {
        encoder.field(key.name.as_bytes());
        encoder.optional(key.exception_type.map(str::as_bytes));
        encoder.count(key.stack.len());
        key.stack.iter().for_each(|frame| encoder.field(frame.as_bytes()));
        encoder.field(key.message.as_bytes());
    }
}
