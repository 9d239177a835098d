//! `go test`, plain, with `-v` and with `-json`.

use std::collections::BTreeMap;

use super::go_json;
use crate::normalise::Normaliser;
use crate::report::{Counts, Failure, Findings};
use crate::trace::{self, Trace, go};

/// Returns whether a text is output of `go test`.
pub(super) fn recognises(text: &str) -> bool {
    text.lines()
        .any(|line| verdict(line).is_some() || result(line).is_some() || go_json::event(line).is_some())
}

pub(super) fn read(text: &str, normaliser: &Normaliser) -> Findings {
    let mut reading = Reading::default();
    for line in text.lines() {
        match go_json::event(line) {
            Some(event) => go_json::take(event, &mut reading),
            None => reading.line(line),
        }
    }
    reading.close("");
    reading.finish(normaliser)
}

/// Status of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Passed,
    Failed,
    Skipped,
}

/// State of one test.
#[derive(Debug, Default)]
pub(super) struct Test {
    pub status: Option<Status>,
    pub output: String,
}

/// State of one package.
#[derive(Debug, Default)]
pub(super) struct Package {
    pub tests: BTreeMap<String, Test>,
    /// Output outside of tests.
    pub output: String,
    /// Verdict line of the package.
    verdict: Option<Verdict>,
    /// Output of the compiler.
    build: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Verdict {
    failed: bool,
    /// `build failed`, `no tests to run`, `no test files`, and such.
    note: String,
}

/// State of the reader.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub packages: BTreeMap<String, Package>,
    /// Package whose name follows at its end.
    open: Package,
    /// The test whose output follows.
    current: Option<String>,
    /// The package whose compiler errors follow.
    building: Option<String>,
    /// True if passed tests are listed.
    pub verbose: bool,
}

impl Reading {
    /// Processes a line of plain text.
    pub(super) fn line(&mut self, line: &str) {
        if let Some((package, verdict)) = verdict(line) {
            self.close(&package);
            self.packages.entry(package).or_default().verdict = Some(verdict);
        } else if let Some((action, name)) = line.strip_prefix("=== ").and_then(|line| line.split_once(' ')) {
            self.verbose |= action == "RUN";
            self.open.tests.entry(name.trim().to_owned()).or_default();
            self.current = (action != "PAUSE").then(|| name.trim().to_owned());
        } else if let Some((status, name)) = result(line) {
            self.open.tests.entry(name.to_owned()).or_default().status = Some(status);
            self.current = Some(name.to_owned());
        } else if let Some(package) = build_header(line) {
            self.building = Some(package.to_owned());
        } else {
            let output = match (&self.building, &self.current) {
                (Some(package), _) => &mut self.packages.entry(package.clone()).or_default().build,
                (None, Some(test)) => &mut self.open.tests.entry(test.clone()).or_default().output,
                (None, None) => &mut self.open.output,
            };
            output.push_str(line);
            output.push('\n');
        }
    }

    /// Processes a line of a package outside of tests.
    pub(super) fn package_line(&mut self, package: &str, line: &str) {
        let package = self.packages.entry(package.to_owned()).or_default();
        match verdict(line) {
            Some((_, verdict)) => package.verdict = Some(verdict),
            None => {
                package.output.push_str(line);
                package.output.push('\n');
            }
        }
    }

    /// Assigns the lines read so far to their package.
    fn close(&mut self, name: &str) {
        (self.current, self.building) = (None, None);
        let open = std::mem::take(&mut self.open);
        if !open.tests.is_empty() || !open.output.trim().is_empty() {
            let package = self.packages.entry(name.to_owned()).or_default();
            package.tests.extend(open.tests);
            package.output.push_str(&open.output);
        }
    }

    fn finish(self, normaliser: &Normaliser) -> Findings {
        let mut findings = Findings::default();
        let (mut passed, mut skipped) = (0u64, 0u64);
        for (name, package) in &self.packages {
            for (test, state) in package.leaves() {
                match state.status {
                    Some(Status::Passed) => passed = passed.saturating_add(1),
                    Some(Status::Skipped) => skipped = skipped.saturating_add(1),
                    Some(Status::Failed) => findings.failing.push(state.failure(normaliser, name, test)),
                    None => {}
                }
            }
            let error = package.error(normaliser);
            findings
                .errors
                .extend(error.map(|trace| trace.failure(normaliser, name)));
        }
        let verdicts = || {
            self.packages
                .values()
                .filter_map(|package| package.verdict.as_ref())
        };
        findings.complete = verdicts().next().is_some();
        findings.no_tests =
            findings.complete && verdicts().all(|verdict| verdict.note.starts_with("no test"));
        let failed = u64::try_from(findings.failing.len()).unwrap_or(u64::MAX);
        // Passed tests are listed only with `-v`.
        let known = Counts {
            failed: Some(failed),
            ..Counts::default()
        };
        findings.counts = if self.verbose {
            Counts::new(passed, failed, skipped)
        } else {
            known
        };
        findings
    }
}

impl Test {
    fn failure(&self, normaliser: &Normaliser, package: &str, test: &str) -> Failure {
        let trace = go::read(&self.output, normaliser).unwrap_or_default();
        match package {
            "" => trace.failure(normaliser, test),
            package => trace.failure(normaliser, &format!("{package}.{test}")),
        }
    }
}

impl Package {
    /// Tests without subtests. A test with subtests fails because of them.
    fn leaves(&self) -> impl Iterator<Item = (&str, &Test)> {
        let has_subtests = |name: &str| {
            let next = self.tests.range(format!("{name}/")..).next();
            next.is_some_and(|(next, _)| next.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
        };
        let parent_only = move |name: &str, test: &Test| {
            has_subtests(name) && (test.status != Some(Status::Failed) || self.subtest_failed(name))
        };
        self.tests
            .iter()
            .filter(move |(name, test)| !parent_only(name, test))
            .map(|(name, test)| (name.as_str(), test))
    }

    fn subtest_failed(&self, name: &str) -> bool {
        let start = format!("{name}/");
        let subtests = self
            .tests
            .range(start.clone()..)
            .take_while(|(test, _)| test.starts_with(&start));
        subtests
            .into_iter()
            .any(|(_, test)| test.status == Some(Status::Failed))
    }

    /// Reason why a package failed without a failing test.
    fn error(&self, normaliser: &Normaliser) -> Option<Trace> {
        let verdict = self.verdict.as_ref().filter(|verdict| verdict.failed)?;
        if self
            .tests
            .values()
            .any(|test| test.status == Some(Status::Failed))
        {
            return None;
        }
        if !verdict.note.is_empty() {
            let mut trace = Trace {
                kind: Some(verdict.note.clone()),
                message: self.build.clone(),
                ..Trace::default()
            };
            for path in self.build.lines().filter_map(diagnostic) {
                trace.push(normaliser, path, None);
            }
            return Some(trace);
        }
        // A panic outside of the test's own goroutine, or an exit: the output of any test may have it.
        let output: String = self
            .tests
            .values()
            .map(|test| test.output.as_str())
            .chain([self.output.as_str()])
            .collect();
        let exit = output
            .lines()
            .find(|line| line.starts_with("exit status ") || line.starts_with("signal: "));
        let mut trace = trace::any(&output, normaliser);
        trace.kind = trace.kind.or_else(|| exit.map(str::to_owned));
        Some(trace)
    }
}

/// `ok  \texample.com/calc\t0.004s`, `FAIL\texample.com/calc [build failed]`, `?   \t…\t[no test files]`.
fn verdict(line: &str) -> Option<(String, Verdict)> {
    let (word, rest) = line.split_once('\t')?;
    let failed = match word {
        "FAIL" => true,
        "ok  " | "?   " => false,
        // A package without tests, with -cover.
        "" if rest.contains("\tcoverage: ") => false,
        _ => return None,
    };
    let package = rest
        .trim_start()
        .split(['\t', ' '])
        .next()
        .filter(|package| !package.is_empty())?;
    let note = rest
        .rsplit_once('[')
        .and_then(|(_, note)| note.trim_end().strip_suffix(']'))
        .unwrap_or("");
    Some((
        package.to_owned(),
        Verdict {
            failed,
            note: note.to_owned(),
        },
    ))
}

/// `    --- FAIL: TestDoubles/two_words (0.00s)`.
fn result(line: &str) -> Option<(Status, &str)> {
    let (status, rest) = line.trim_start().strip_prefix("--- ")?.split_once(": ")?;
    let (name, time) = rest.rsplit_once(" (")?;
    let status = match status {
        "PASS" => Status::Passed,
        "FAIL" => Status::Failed,
        "SKIP" => Status::Skipped,
        _ => return None,
    };
    time.trim_end().ends_with("s)").then_some((status, name))
}

/// `# example.com/calc [example.com/calc.test]`.
fn build_header(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("# ")?.split(' ');
    let package = words.next().filter(|package| !package.is_empty())?;
    let variant = words.next().is_none_or(|word| word.starts_with('['));
    (variant && words.next().is_none()).then_some(package)
}

/// The place in `./calc.go:6:9: invalid operation`.
fn diagnostic(line: &str) -> Option<&str> {
    let line = line.strip_prefix("vet: ").unwrap_or(line);
    let (place, _) = line.split_once(": ")?;
    place.contains(".go:").then_some(place)
}
