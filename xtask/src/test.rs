//! All tests, with their totals.

use std::io::{BufRead, BufReader, Write as _};
use std::process::Stdio;

use anyhow::{Context as _, ensure};

use crate::components;
use crate::python;
use crate::run::{cargo, say};

/// Python packages of the end-to-end tests: a client, and a test tool for gates to run.
pub(crate) const PYTHON_PACKAGES: &[&str] = &["mcp==2.3.0", "pytest==9.2.0"];

/// Builds what the tests need, runs them, and returns how many there were.
pub(crate) fn all(filter: Option<&str>, length: Length) -> anyhow::Result<String> {
    components::build_packs(components::Profile::Dev)?;
    components::build_guests()?;
    let python = python::with("python", PYTHON_PACKAGES)?;
    let mut test = cargo();
    test.args(["test", "--workspace", "--exclude", "guests", "--no-fail-fast"])
        .args(filter)
        .env("TOLLGATE_TEST_PYTHON", python)
        .stdout(Stdio::piped());
    if length == Length::Long {
        test.env("TOLLGATE_LONG", "1");
    }
    let mut child = test.spawn().context("cargo test cannot be run")?;
    let mut totals = Totals::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            totals.add(&line);
            writeln!(std::io::stdout(), "{line}")?;
        }
    }
    let status = child.wait()?;
    let counts = format!(
        "{} passed, {} failed, {} ignored",
        totals.passed, totals.failed, totals.ignored
    );
    say(&format!("tests: {counts}"));
    ensure!(status.success() && totals.failed == 0, "tests failed");
    ensure!(totals.passed > 0 || filter.is_some(), "no test ran");
    Ok(counts)
}

/// Length of the random tests of packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    Usual,
    /// Tens of thousands of operations: `TOLLGATE_LONG` is set.
    Long,
}

#[derive(Default)]
struct Totals {
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Totals {
    /// Counts a line such as `test result: ok. 3 passed; 0 failed; 0 ignored; …`.
    fn add(&mut self, line: &str) {
        let Some(counts) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for part in counts.1.split("; ") {
            if let Some((number, kind)) = part.split_once(' ')
                && let Ok(number) = number.parse::<u32>()
            {
                match kind {
                    "passed" => self.passed += number,
                    "failed" => self.failed += number,
                    "ignored" => self.ignored += number,
                    _ => {}
                }
            }
        }
    }
}
