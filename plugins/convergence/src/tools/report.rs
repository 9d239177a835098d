//! The tool `test_report`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use super::{OF_WORKSPACE, RunView, Tested, default_workspace, normaliser, record, remember, scope, text};
use crate::readers::{self, Reader, Run};
use crate::report::TestReport;
use crate::store::Source;
use crate::{error, store};

/// Record a test run that you executed yourself. It uses the test-run budget and yields the same failure
/// fingerprints as test_run. Include the raw output if available.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-charge" = "test-run", "x-scope" = OF_WORKSPACE))]
pub(crate) struct Report {
    /// Name of the workspace of the run.
    #[serde(default = "default_workspace")]
    #[schemars(length(max = 128))]
    workspace: String,
    /// Exit code of the command, for example 1.
    exit_code: Option<i32>,
    /// Raw output of the run; if it is long, only its end.
    #[schemars(length(max = 800_000))]
    output: Option<String>,
    /// Names of the failing tests, if there is no output. An empty list means that none failed.
    #[schemars(length(max = 1000))]
    failing_tests: Option<Vec<String>>,
    /// Command line as typed, for example cargo test.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    command: String,
    /// Absolute path of the run's folder, so that paths below it are comparable.
    #[schemars(length(max = 4096))]
    directory: Option<String>,
    /// Tool that wrote the output, if the output does not show it.
    reader: Option<Reader>,
    /// Your name, for the ledger. Default: the identity that the transport proved.
    #[schemars(length(max = 128), extend("x-unlisted" = true))]
    #[expect(dead_code, reason = "the host reads it")]
    actor: Option<String>,
}

/// Result of a reported test run.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reported {
    /// Name of a registered workspace.
    workspace: String,
    /// Result of the run.
    #[serde(flatten)]
    run: RunView,
}

impl Tool for Report {
    const NAME: &'static str = "test_report";
    const TITLE: &'static str = "Report a test run";
    const EFFECT: Effect = Effect::Write;
    type Output = Reported;

    fn run(self, cx: &Cx<'_>) -> Result<Reported, ToolError> {
        let root = store::root(&cx.db, &self.workspace)?;
        let mut report = self.read(root.as_deref())?;
        // The files may be other ones by now, so that only what the tool printed counts.
        report.read_sources(|_| None);
        let scope = scope(cx, &self.workspace);
        let command = match report.command.as_str() {
            // Two tools are two commands.
            "" => format!("({})", text(&report.reader)),
            _ => self.command(),
        };
        let tested = Tested {
            command: &command,
            words: None,
            source: Source::Claim,
            report: &report,
            ran_sec: None,
            is_cut_off: false,
        };
        let run = remember(cx, &cx.db, &scope, &tested)?;
        record(cx, &tested, &run, None)?;
        Ok(Reported {
            workspace: self.workspace,
            run,
        })
    }

    fn text(output: &Reported) -> Option<String> {
        Some(output.run.text())
    }
}

impl Report {
    /// Command line with single blanks.
    fn command(&self) -> String {
        self.command.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn read(&self, root: Option<&str>) -> Result<TestReport, ToolError> {
        let names = || self.failing_tests.iter().flatten().map(String::as_str);
        let roots = [self.directory.as_deref(), root];
        let (normaliser, command) = (normaliser(&roots), self.command());
        let by_names = || TestReport {
            command: normaliser.text(&command),
            ..TestReport::from_names(names(), self.exit_code)
        };
        match &self.output {
            Some(output) => {
                let run = Run {
                    output: output.as_bytes(),
                    exit_code: self.exit_code,
                    command: &command,
                    reader: self.reader,
                };
                let read = readers::read(&run, &normaliser);
                if read.failing_tests.is_empty() && names().next().is_some() {
                    return Ok(by_names());
                }
                Ok(read)
            }
            None if self.failing_tests.is_some() || self.exit_code.is_some() => Ok(by_names()),
            None => Err(error::nothing_reported()),
        }
    }
}
