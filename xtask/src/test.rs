//! Runs all tests, and prints their totals.

use std::collections::VecDeque;
use std::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::run::{cargo, say};
use crate::{components, postgres, python};

/// Python packages of the end-to-end tests: a client, and a test tool that gates run.
pub(crate) const PYTHON_PACKAGES: &[&str] = &["mcp==2.3.0", "pytest==9.2.0"];
/// Packages with the longest tests, in this order. All others follow.
const LONGEST: [&str; 4] = [
    "host/app",
    "plugins/conductor",
    "plugins/tasks",
    "plugins/convergence",
];
/// Test programs that also run on PostgreSQL.
const ON_POSTGRES: [&str; 2] = ["host/store/src/lib.rs", "tests/e2e/main.rs"];
/// End-to-end tests of servers, or of behaviour that differs on a server.
const ABOUT_SERVERS: [&str; 6] = [
    "envelopes::shared_limits::",
    "storage::command::",
    "storage::crash::",
    "storage::lanes::",
    "storage::many_hosts::",
    "storage::unknown_commits::",
];
/// Number of concurrent test programs. Most wait for one long test at their end, or for other programs.
const AT_ONCE: usize = 2;

/// Builds everything for the tests, runs them, and returns their number.
pub(crate) fn all(filter: Option<&str>, length: Length) -> anyhow::Result<String> {
    components::build_packs(components::Profile::Dev)?;
    components::build_guests()?;
    let python = python::with("python", PYTHON_PACKAGES)?;
    let mut programs = built()?;
    programs.push_back(Program::documentation());
    // The PostgreSQL step replays the sessions of these tests.
    let recorded = match length {
        Length::Usual => None,
        Length::Long => Some(postgres::emptied()?),
    };
    let totals = run(programs, AT_ONCE, |_, test| {
        test.args(filter).env("TOLLGATE_TEST_PYTHON", &python);
        if length == Length::Long {
            test.env("TOLLGATE_LONG", "1");
        }
        test.envs(recorded.iter().map(|folder| (postgres::RECORD, folder)));
    })?;
    let filter = filter.map(|name| format!(" whose name contains {name}"));
    ensure!(
        totals.passed > 0,
        "there is no test{}",
        filter.unwrap_or_default()
    );
    Ok(totals.to_string())
}

/// Builds everything for the tests of a host, and runs the tests of the store and the end-to-end tests on a PostgreSQL
/// database. Returns their number. Usually runs only the end-to-end tests of servers.
pub(crate) fn on_postgres(url: &str, length: Length) -> anyhow::Result<String> {
    components::build_packs(components::Profile::Dev)?;
    components::build_guests()?;
    let python = python::with("python", PYTHON_PACKAGES)?;
    let mut programs = built()?;
    programs.retain(|program| ON_POSTGRES.iter().any(|name| program.name.ends_with(name)));
    ensure!(
        programs.len() == ON_POSTGRES.len(),
        "a program of tests is missing"
    );
    // One after another in a short run, so that a busy machine does not delay the server.
    let at_once = match length {
        Length::Usual => 1,
        Length::Long => AT_ONCE,
    };
    let totals = run(programs, at_once, |program, test| {
        test.env("TOLLGATE_TEST_PYTHON", &python)
            .env("TOLLGATE_TEST_DATABASE", url);
        if length == Length::Usual && program.name.ends_with("tests/e2e/main.rs") {
            test.args(ABOUT_SERVERS);
        }
    })?;
    Ok(totals.to_string())
}

/// Runs test programs, and fails if a test fails.
fn run(
    programs: VecDeque<Program>,
    at_once: usize,
    prepare: impl Fn(&Program, &mut Command) + Sync,
) -> anyhow::Result<Totals> {
    let programs = Mutex::new(programs);
    let totals = Mutex::new(Totals::default());
    let work = || -> anyhow::Result<()> {
        while let Some(program) = next(&programs) {
            let mut test = program.command();
            prepare(&program, &mut test);
            let started = Instant::now();
            let output = test.stdin(Stdio::null()).output();
            let output = output.with_context(|| format!("cannot run {}", program.name))?;
            let said = String::from_utf8_lossy(&output.stdout);
            let mut totals = totals.lock().unwrap_or_else(|broken| broken.into_inner());
            // Programs without a matching test print nothing.
            if totals.add(&said) || !output.status.success() {
                say(&String::from_utf8_lossy(&output.stderr));
                let took = started.elapsed().as_secs();
                writeln!(std::io::stdout(), "{said}{}: {took} s", program.name)?;
            }
            if !output.status.success() {
                totals.broken.push(program.name);
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| {
            let ended = worker.join();
            ended.unwrap_or_else(|_| Err(anyhow::anyhow!("a thread that runs tests panicked")))
        });
        ended.collect::<anyhow::Result<Vec<()>>>()
    })?;
    let totals = totals.into_inner().unwrap_or_else(|broken| broken.into_inner());
    say(&format!("tests: {totals}"));
    ensure!(
        totals.broken.is_empty() && totals.failed == 0,
        "tests failed: {}",
        totals.broken.join(", ")
    );
    ensure!(totals.ignored == 0, "tests were ignored: {}", totals.ignored);
    Ok(totals)
}

/// A test program built by cargo.
struct Program {
    /// Path of its source.
    name: String,
    /// The program and the folder of its package. `None` for tests that cargo runs itself.
    built: Option<(PathBuf, PathBuf)>,
}

impl Program {
    /// The documentation examples.
    fn documentation() -> Program {
        Program {
            name: "documentation".to_owned(),
            built: None,
        }
    }

    /// Parses a message of cargo. `None` if it is not about a test program.
    fn of(message: &Value) -> Option<Program> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let executable = PathBuf::from(message["executable"].as_str()?);
        let manifest = PathBuf::from(message["manifest_path"].as_str()?);
        let package = manifest.parent()?.to_owned();
        let source = PathBuf::from(message["target"]["src_path"].as_str()?);
        let shown = source.strip_prefix(crate::run::root()).unwrap_or(&source);
        Some(Program {
            name: shown.display().to_string(),
            built: Some((executable, package)),
        })
    }

    /// Position in the order. Long ones come first, so that no core is idle at the end.
    fn place(&self) -> usize {
        let package = self.built.as_ref().map(|(_, package)| package);
        let is = |name: &&str| package.is_some_and(|package| package.ends_with(name));
        let place = LONGEST.iter().position(is);
        place.unwrap_or(LONGEST.len())
    }

    /// Command that runs the program as cargo would.
    fn command(&self) -> Command {
        let Some((executable, package)) = &self.built else {
            let mut cargo = cargo();
            cargo.args(["test", "--quiet", "--workspace", "--exclude", "guests", "--doc"]);
            return cargo;
        };
        let mut test = Command::new(executable);
        test.current_dir(package).env("CARGO_MANIFEST_DIR", package);
        test
    }
}

fn next(programs: &Mutex<VecDeque<Program>>) -> Option<Program> {
    let mut programs = programs.lock().unwrap_or_else(|broken| broken.into_inner());
    programs.pop_front()
}

/// Builds all tests, and returns their programs.
fn built() -> anyhow::Result<VecDeque<Program>> {
    let mut build = cargo();
    build.args(["test", "--workspace", "--exclude", "guests", "--no-run"]);
    build.args(["--message-format", "json-render-diagnostics"]);
    let output = build.stderr(Stdio::inherit()).output();
    let output = output.context("cannot run cargo test")?;
    ensure!(output.status.success(), "tests cannot be built");
    let said = String::from_utf8(output.stdout).context("cargo printed text that is not UTF-8")?;
    let messages = said.lines().map(serde_json::from_str::<Value>);
    let mut programs = Vec::new();
    for message in messages {
        programs.extend(Program::of(
            &message.context("cargo printed a line that is not JSON")?,
        ));
    }
    ensure!(!programs.is_empty(), "cargo built no tests");
    programs.sort_by_key(Program::place);
    Ok(programs.into())
}

/// Number of cases of random tests, and of tests that damage files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// A subset of the cases, different in each run.
    Usual,
    /// All cases and tens of thousands of operations: `TOLLGATE_LONG` is set.
    Long,
}

#[derive(Default)]
struct Totals {
    passed: u32,
    failed: u32,
    ignored: u32,
    /// Programs that failed.
    broken: Vec<String>,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals {
            passed,
            failed,
            ignored,
            ..
        } = self;
        write!(f, "{passed} passed, {failed} failed, {ignored} ignored")
    }
}

impl Totals {
    /// Counts lines such as `test result: ok. 3 passed; 0 failed; 0 ignored; …`. Returns whether any test ran.
    fn add(&mut self, said: &str) -> bool {
        let before = self.passed + self.failed;
        let counts = said.lines().filter_map(|line| {
            let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
            Some(counts)
        });
        for part in counts.flat_map(|counts| counts.split("; ")) {
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
        self.passed + self.failed > before
    }
}

#[cfg(test)]
mod tests {
    use super::ABOUT_SERVERS;
    use crate::run::root;

    #[test]
    fn modules_of_tests_about_servers_exist() {
        for module in ABOUT_SERVERS {
            let path = module.trim_end_matches(':').replace("::", "/");
            let file = root().join("tests/e2e").join(path).with_extension("rs");
            assert!(file.is_file(), "{} is missing", file.display());
        }
    }
}
