//! The events of `go test -json`.

use serde::Deserialize;

use super::go_test::{Reading, Status};

/// Event of a test run.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Event {
    action: String,
    package: String,
    test: String,
    output: String,
    /// Since Go 1.24, of `build-output`.
    import_path: String,
}

/// Event in a line.
pub(super) fn event(line: &str) -> Option<Event> {
    let line = line.trim();
    if !line.starts_with('{') || !line.contains("\"Action\":") {
        return None;
    }
    serde_json::from_str(line).ok()
}

/// Processes an event.
pub(super) fn take(event: Event, reading: &mut Reading) {
    reading.verbose = true;
    let Event {
        action,
        package,
        test,
        output,
        import_path,
    } = event;
    let status = match action.as_str() {
        "pass" => Some(Status::Passed),
        "fail" => Some(Status::Failed),
        "skip" => Some(Status::Skipped),
        _ => None,
    };
    match action.as_str() {
        // The compiler's output is the same as without `-json`, with the same headers.
        "build-output" if !import_path.is_empty() => output.lines().for_each(|line| reading.line(line)),
        "output" if test.is_empty() => output
            .lines()
            .for_each(|line| reading.package_line(&package, line)),
        _ if test.is_empty() => {}
        _ => {
            let test = reading
                .packages
                .entry(package)
                .or_default()
                .tests
                .entry(test)
                .or_default();
            test.output.push_str(&output);
            test.status = status.or(test.status);
        }
    }
}
