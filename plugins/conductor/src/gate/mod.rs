//! Gates: conditions of a step that the pack checks itself instead of trusting claims.
//!
//! A [`GateSpec`] is a gate as written in a plan; [`Gate`] is the checked form. `decide` decides whether a gate
//! holds, given the facts that `facts` gathered.

pub(crate) mod agreed;
mod commands;
pub(crate) mod commit;
mod data;
pub(crate) mod decide;
pub(crate) mod delivered;
mod dependencies;
mod describe;
pub(crate) mod facts;
pub(crate) mod known;
pub(crate) mod learn;
mod make;
mod modules;
mod moved;
pub(crate) mod named;
pub(crate) mod newcomers;
mod owed;
mod package;
mod parse;
mod places;
mod readers;
pub(crate) mod red;
mod runners;
pub(crate) mod runs;
mod settings;
pub(crate) mod start;
pub(crate) mod suite;
#[cfg(test)]
mod tests;
mod unchanged;

use std::sync::LazyLock;

use globset::{GlobSet, GlobSetBuilder};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tollgate_sdk::text_enum;

text_enum! {
    /// Kinds of gates.
    pub(crate) enum GateKind {
        TestsPassed = "tests_passed",
        TestsFail = "tests_fail",
        FailToPass = "fail_to_pass",
        TestsUnchanged = "tests_unchanged",
        LintPassed = "lint_passed",
        EvidenceBoolTrue = "evidence_bool_true",
        CriteriaChecklistComplete = "criteria_checklist_complete",
        ChangedFilesAllowlist = "changed_files_allowlist",
        ForbidPaths = "forbid_paths",
        ChangedFilesMinimum = "changed_files_minimum",
        FileExists = "file_exists",
        FileNotExists = "file_not_exists",
        FileContains = "file_contains",
        FileLacks = "file_lacks",
        Reachable = "reachable",
        NoUncommittedChanges = "no_uncommitted_changes",
        DiffMaxLines = "diff_max_lines",
        DiffMinLines = "diff_min_lines",
        CommitExists = "commit_exists",
        CommandExit0 = "command_exit_0",
        CommandOutputContains = "command_output_contains",
        CommandOutputRegex = "command_output_regex",
        JsonSchemaValid = "json_schema_valid",
        HumanApproval = "human_approval",
    }
}

/// A gate of a step. The parameters depend on `gate`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateSpec {
    /// Name of a [`GateKind`], as text so that an unknown one is refused with the list of names.
    pub gate: String,
    /// Paths relative to the repository; globs for the allowlist and forbid_paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Key of the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Minimum number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// Maximum number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Program and its arguments; there is no shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Text that the output or the file must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Regular expression that must match somewhere in the output or the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// File to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// JSON Schema to validate against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
}

/// Parameters are explained in the descriptions of the fields that hold gates. As properties they would nest
/// deeper than some clients accept, and some clients refuse schemas that require an undeclared property.
impl JsonSchema for GateSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "GateSpec".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": true})
    }
}

/// A gate with valid parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Gate {
    TestsPassed(Option<Vec<String>>),
    TestsFail(Option<Vec<String>>),
    FailToPass(Option<Vec<String>>),
    TestsUnchanged(Vec<String>),
    LintPassed(Option<Vec<String>>),
    EvidenceBoolTrue(String),
    CriteriaChecklistComplete,
    ChangedFilesAllowlist(Vec<String>),
    ForbidPaths(Vec<String>),
    ChangedFilesMinimum(u32),
    FileExists(Vec<String>),
    FileNotExists(Vec<String>),
    FileContains(String, Pattern),
    FileLacks(String, Pattern),
    Reachable(Vec<String>),
    NoUncommittedChanges,
    DiffMaxLines(u32),
    DiffMinLines(u32),
    CommitExists,
    CommandExit0(Vec<String>),
    CommandOutputContains(Vec<String>, String),
    CommandOutputRegex(Vec<String>, String),
    JsonSchemaValid(Source, Map<String, Value>),
    HumanApproval,
}

/// Something to look for in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Text, as it is.
    Text(String),
    /// Regular expression.
    Regex(String),
}

/// Source of the JSON that a schema is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// File below the repository.
    File(String),
    /// Key of the evidence.
    Evidence(String),
}

/// An error in a gate of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// Unknown kind of gate.
    Unknown(String),
    /// Missing, superfluous or invalid parameter.
    Parameter(String),
}

/// A fact that a gate needs besides the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Need<'a> {
    /// Git's view of the changes.
    Git,
    /// Existence of a path.
    Path(&'a str),
    /// Content of a file.
    Content(&'a str),
    /// Import map of the repository.
    Map,
    /// Output and exit code of a command.
    Command(&'a [String]),
}

/// Checks whether gates judge what changes in their step, so that it does not count in the next one. Gates that only want
/// changes do so beside one about tests: a step that writes tests and shows what they do is judged by itself.
pub(crate) fn judge_changes(gates: &[Gate]) -> bool {
    let runs_tests = |gate: &Gate| {
        matches!(
            gate,
            Gate::TestsPassed(_) | Gate::TestsFail(_) | Gate::FailToPass(_)
        )
    };
    let wants_tests = gates.iter().any(Gate::wants_changes) && gates.iter().any(runs_tests);
    wants_tests || gates.iter().any(Gate::limits_changes)
}

impl Gate {
    /// Kind of the gate.
    pub(crate) const fn kind(&self) -> GateKind {
        match self {
            Gate::TestsPassed(_) => GateKind::TestsPassed,
            Gate::TestsFail(_) => GateKind::TestsFail,
            Gate::FailToPass(_) => GateKind::FailToPass,
            Gate::TestsUnchanged(_) => GateKind::TestsUnchanged,
            Gate::LintPassed(_) => GateKind::LintPassed,
            Gate::EvidenceBoolTrue(_) => GateKind::EvidenceBoolTrue,
            Gate::CriteriaChecklistComplete => GateKind::CriteriaChecklistComplete,
            Gate::ChangedFilesAllowlist(_) => GateKind::ChangedFilesAllowlist,
            Gate::ForbidPaths(_) => GateKind::ForbidPaths,
            Gate::ChangedFilesMinimum(_) => GateKind::ChangedFilesMinimum,
            Gate::FileExists(_) => GateKind::FileExists,
            Gate::FileNotExists(_) => GateKind::FileNotExists,
            Gate::FileContains(..) => GateKind::FileContains,
            Gate::FileLacks(..) => GateKind::FileLacks,
            Gate::Reachable(_) => GateKind::Reachable,
            Gate::NoUncommittedChanges => GateKind::NoUncommittedChanges,
            Gate::DiffMaxLines(_) => GateKind::DiffMaxLines,
            Gate::DiffMinLines(_) => GateKind::DiffMinLines,
            Gate::CommitExists => GateKind::CommitExists,
            Gate::CommandExit0(_) => GateKind::CommandExit0,
            Gate::CommandOutputContains(..) => GateKind::CommandOutputContains,
            Gate::CommandOutputRegex(..) => GateKind::CommandOutputRegex,
            Gate::JsonSchemaValid(..) => GateKind::JsonSchemaValid,
            Gate::HumanApproval => GateKind::HumanApproval,
        }
    }

    /// The gate with the words of the workspace's test `default` in place of a test command that is not given.
    pub(crate) fn or_default(self, default: Option<&[String]>) -> Gate {
        let filled = |command: Option<Vec<String>>| command.or_else(|| default.map(<[String]>::to_vec));
        match self {
            Gate::TestsPassed(command) => Gate::TestsPassed(filled(command)),
            Gate::TestsFail(command) => Gate::TestsFail(filled(command)),
            Gate::FailToPass(command) => Gate::FailToPass(filled(command)),
            gate => gate,
        }
    }

    /// Command whose tests the gate counts.
    pub(crate) fn tests(&self) -> Option<&[String]> {
        match self {
            Gate::TestsPassed(command) | Gate::TestsFail(command) | Gate::FailToPass(command) => {
                command.as_deref()
            }
            _ => None,
        }
    }

    /// Checks whether the gate says something about tests, so that the tests are a part of the plan.
    pub(crate) fn is_about_tests(&self) -> bool {
        matches!(self, Gate::TestsUnchanged(_)) || self.tests().is_some()
    }

    /// Checks whether the gate holds only after a commit.
    pub(crate) fn wants_commit(&self) -> bool {
        matches!(self, Gate::CommitExists | Gate::NoUncommittedChanges)
    }

    /// Checks whether the gate only wants changes, whatever they are.
    pub(crate) fn wants_changes(&self) -> bool {
        matches!(self, Gate::ChangedFilesMinimum(_) | Gate::DiffMinLines(_))
    }

    /// Checks whether the gate limits the changes of a step. A gate that only wants changes does not.
    pub(crate) fn limits_changes(&self) -> bool {
        matches!(
            self,
            Gate::ChangedFilesAllowlist(_)
                | Gate::ForbidPaths(_)
                | Gate::TestsUnchanged(_)
                | Gate::DiffMaxLines(_)
        )
    }

    /// Facts that the gate needs besides the evidence.
    pub(crate) fn needs(&self) -> Vec<Need<'_>> {
        match self {
            Gate::ChangedFilesAllowlist(_)
            | Gate::ForbidPaths(_)
            | Gate::ChangedFilesMinimum(_)
            | Gate::NoUncommittedChanges
            | Gate::DiffMaxLines(_)
            | Gate::DiffMinLines(_)
            | Gate::TestsUnchanged(_)
            | Gate::CommitExists => vec![Need::Git],
            Gate::Reachable(_) => vec![Need::Map],
            Gate::FileContains(path, _) | Gate::FileLacks(path, _) => vec![Need::Content(path)],
            Gate::FileExists(paths) | Gate::FileNotExists(paths) => {
                paths.iter().map(|path| Need::Path(path)).collect()
            }
            Gate::JsonSchemaValid(Source::File(path), _) => vec![Need::Content(path)],
            Gate::CommandExit0(command)
            | Gate::CommandOutputContains(command, _)
            | Gate::CommandOutputRegex(command, _)
            | Gate::TestsPassed(Some(command))
            | Gate::TestsFail(Some(command))
            | Gate::FailToPass(Some(command))
            | Gate::LintPassed(Some(command)) => vec![Need::Command(command)],
            Gate::TestsPassed(None)
            | Gate::TestsFail(None)
            | Gate::FailToPass(None)
            | Gate::LintPassed(None)
            | Gate::EvidenceBoolTrue(_)
            | Gate::CriteriaChecklistComplete
            | Gate::JsonSchemaValid(Source::Evidence(_), _)
            | Gate::HumanApproval => Vec::new(),
        }
    }
}

impl Pattern {
    /// Checks whether a text has it.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        match self {
            Pattern::Text(wanted) => text.contains(wanted),
            Pattern::Regex(regex) => regex_lite::Regex::new(regex).is_ok_and(|regex| regex.is_match(text)),
        }
    }
}

/// Globs of files that hold tests, by the conventions of common test tools.
pub(crate) const TEST_FILES: &[&str] = &[
    "**/tests/**",
    "**/test/**",
    "**/__tests__/**",
    "**/spec/**",
    "**/test_*",
    "**/*_test.*",
    "**/*.test.*",
    "**/*.spec.*",
    "**/conftest.py",
    "**/Tests/**",
    "**/__snapshots__/**",
    "**/*.snap",
    "**/testdata/**",
    "**/fixtures/**",
    "**/cypress/**",
    "**/e2e/**",
    "t/**",
    "**/*{Test,Tests,Spec}.{php,java,kt,swift,cs,scala,groovy}",
    "**/*_spec.*",
    "**/tests.{rs,py}",
    "**/*.feature",
    "**/step_definitions/**",
    "**/features/steps/**",
];

/// Matcher of [`TEST_FILES`], made once a call.
static USUAL_TESTS: LazyLock<GlobSet> = LazyLock::new(|| {
    let globs: Vec<String> = TEST_FILES.iter().map(|glob| (*glob).to_owned()).collect();
    glob_set(&globs)
});

/// Checks whether a path is at a usual place of tests.
fn is_usual_test(path: &str) -> bool {
    USUAL_TESTS.is_match(path)
}

/// Globs as one matcher. `*` does not cross `/`. Invalid globs match nothing.
fn glob_set(globs: &[String]) -> GlobSet {
    set_of(globs.iter().map(String::as_str), Case::Told)
}

/// Use of upper and lower case in paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Told,
    Ignored,
}

fn set_of<'g>(globs: impl IntoIterator<Item = &'g str>, case: Case) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        let mut parsed = globset::GlobBuilder::new(glob);
        parsed.case_insensitive(case == Case::Ignored);
        let parsed = parsed.literal_separator(true).build();
        if let Ok(parsed) = parsed {
            builder.add(parsed);
        }
    }
    builder.build().unwrap_or_else(|_| GlobSet::empty())
}
