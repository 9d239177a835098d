//! Gates: conditions of a step that the pack checks itself instead of trusting claims.
//!
//! A [`GateSpec`] is a gate as written in a plan; [`Gate`] is the checked form. `decide` decides whether a gate
//! holds, given the facts that `facts` gathered.

pub(crate) mod commit;
pub(crate) mod decide;
pub(crate) mod facts;
pub(crate) mod suite;
#[cfg(test)]
mod tests;

use globset::{Glob, GlobSet, GlobSetBuilder};
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

impl GateSpec {
    /// Returns the checked gate, or all errors in it.
    pub(crate) fn parse(&self) -> Result<Gate, Vec<Misfit>> {
        let Ok(kind) = self.gate.parse::<GateKind>() else {
            let legal: Vec<&str> = GateKind::ALL.iter().map(|kind| kind.as_str()).collect();
            return Err(vec![Misfit::Unknown(format!(
                "{:?} is not a gate; use one of {}",
                crate::arguments::clip(&self.gate),
                legal.join(", ")
            ))]);
        };
        let mut misfits = self.superfluous(kind);
        let gate = self.build(kind, &mut |what| {
            misfits.push(Misfit::Parameter(format!("{kind} {what}")))
        });
        match gate {
            Some(gate) if misfits.is_empty() => Ok(gate),
            _ => Err(misfits),
        }
    }

    fn build(&self, kind: GateKind, fault: &mut dyn FnMut(String)) -> Option<Gate> {
        let optional = || (!self.command.is_empty()).then(|| self.command.clone());
        Some(match kind {
            GateKind::TestsPassed => Gate::TestsPassed(optional()),
            GateKind::TestsFail => Gate::TestsFail(optional()),
            GateKind::FailToPass => Gate::FailToPass(optional()),
            GateKind::TestsUnchanged => Gate::TestsUnchanged(match self.paths.is_empty() {
                true => TEST_FILES.iter().map(|&glob| glob.to_owned()).collect(),
                false => self.globs(fault)?,
            }),
            GateKind::LintPassed => Gate::LintPassed(optional()),
            GateKind::EvidenceBoolTrue => Gate::EvidenceBoolTrue(wanted("key", self.key.as_ref(), fault)?),
            GateKind::CriteriaChecklistComplete => Gate::CriteriaChecklistComplete,
            GateKind::ChangedFilesAllowlist => Gate::ChangedFilesAllowlist(self.globs(fault)?),
            GateKind::ForbidPaths => Gate::ForbidPaths(self.globs(fault)?),
            GateKind::ChangedFilesMinimum => {
                Gate::ChangedFilesMinimum(wanted("min", self.min.as_ref(), fault)?)
            }
            GateKind::FileExists => Gate::FileExists(self.plain_paths(fault)?),
            GateKind::FileNotExists => Gate::FileNotExists(self.plain_paths(fault)?),
            GateKind::FileContains => {
                let (path, pattern) = self.content(fault)?;
                Gate::FileContains(path, pattern)
            }
            GateKind::FileLacks => {
                let (path, pattern) = self.content(fault)?;
                Gate::FileLacks(path, pattern)
            }
            GateKind::Reachable => Gate::Reachable(self.plain_paths(fault)?),
            GateKind::NoUncommittedChanges => Gate::NoUncommittedChanges,
            GateKind::DiffMaxLines => Gate::DiffMaxLines(wanted("max", self.max.as_ref(), fault)?),
            GateKind::DiffMinLines => Gate::DiffMinLines(wanted("min", self.min.as_ref(), fault)?),
            GateKind::CommitExists => Gate::CommitExists,
            GateKind::CommandExit0 => Gate::CommandExit0(self.program(fault)?),
            GateKind::CommandOutputContains => {
                let text = wanted("contains", self.contains.as_ref(), fault);
                Gate::CommandOutputContains(self.program(fault)?, text?)
            }
            GateKind::CommandOutputRegex => {
                let regex = wanted("regex", self.regex.as_ref(), fault);
                if let Some(Err(err)) = regex.as_deref().map(regex_lite::Regex::new) {
                    fault(format!("has an invalid regex: {err}"));
                }
                Gate::CommandOutputRegex(self.program(fault)?, regex?)
            }
            GateKind::JsonSchemaValid => return self.schema_gate(fault),
            GateKind::HumanApproval => Gate::HumanApproval,
        })
    }

    /// File, and what to look for in the file.
    fn content(&self, fault: &mut dyn FnMut(String)) -> Option<(String, Pattern)> {
        let path = wanted("path", self.path.as_ref(), fault);
        if let Some(path) = &path {
            relative(path, fault);
        }
        let pattern = match (&self.contains, &self.regex) {
            (Some(text), None) => Pattern::Text(text.clone()),
            (None, Some(regex)) => {
                if let Err(err) = regex_lite::Regex::new(regex) {
                    fault(format!("has an invalid regex: {err}"));
                }
                Pattern::Regex(regex.clone())
            }
            _ => {
                fault("requires either contains or regex".to_owned());
                return None;
            }
        };
        Some((path?, pattern))
    }

    fn schema_gate(&self, fault: &mut dyn FnMut(String)) -> Option<Gate> {
        let schema = wanted("schema", self.schema.as_ref(), fault);
        if let Some(schema) = &schema
            && let Err(err) = jsonschema::validator_for(&Value::Object(schema.clone()))
        {
            fault(format!("has an invalid schema: {err}"));
        }
        let source = match (&self.path, &self.key) {
            (Some(path), None) => {
                relative(path, fault);
                Source::File(path.clone())
            }
            (None, Some(key)) => Source::Evidence(key.clone()),
            _ => {
                fault("requires either path or key".to_owned());
                return None;
            }
        };
        Some(Gate::JsonSchemaValid(source, schema?))
    }

    /// Parameters that this kind of gate does not accept.
    fn superfluous(&self, kind: GateKind) -> Vec<Misfit> {
        let given = [
            ("paths", !self.paths.is_empty()),
            ("key", self.key.is_some()),
            ("min", self.min.is_some()),
            ("max", self.max.is_some()),
            ("command", !self.command.is_empty()),
            ("contains", self.contains.is_some()),
            ("regex", self.regex.is_some()),
            ("path", self.path.is_some()),
            ("schema", self.schema.is_some()),
        ];
        given
            .into_iter()
            .filter(|(name, given)| *given && !kind.parameters().contains(name))
            .map(|(name, _)| Misfit::Parameter(format!("{kind} does not accept {name}")))
            .collect()
    }

    fn globs(&self, fault: &mut dyn FnMut(String)) -> Option<Vec<String>> {
        if self.paths.is_empty() {
            fault("requires paths".to_owned());
            return None;
        }
        for path in &self.paths {
            if let Err(err) = Glob::new(path) {
                fault(format!("has an invalid glob: {err}"));
            }
        }
        Some(self.paths.clone())
    }

    fn plain_paths(&self, fault: &mut dyn FnMut(String)) -> Option<Vec<String>> {
        if self.paths.is_empty() {
            fault("requires paths".to_owned());
            return None;
        }
        for path in &self.paths {
            relative(path, fault);
        }
        Some(self.paths.clone())
    }

    fn program(&self, fault: &mut dyn FnMut(String)) -> Option<Vec<String>> {
        match self.command.first() {
            Some(program) if !program.trim().is_empty() => Some(self.command.clone()),
            _ => {
                fault("requires a command: a program and its arguments".to_owned());
                None
            }
        }
    }
}

fn wanted<T: Clone>(name: &str, value: Option<&T>, fault: &mut dyn FnMut(String)) -> Option<T> {
    if value.is_none() {
        fault(format!("requires {name}"));
    }
    value.cloned()
}

/// Refuses a path that leaves the repository.
fn relative(path: &str, fault: &mut dyn FnMut(String)) {
    if !crate::root::stays_inside(path) {
        fault(format!("has a path outside the repository: {path:?}"));
    }
}

impl GateKind {
    /// Parameters that a kind of gate accepts.
    const fn parameters(self) -> &'static [&'static str] {
        match self {
            GateKind::TestsPassed
            | GateKind::TestsFail
            | GateKind::FailToPass
            | GateKind::LintPassed
            | GateKind::CommandExit0 => &["command"],
            GateKind::FileContains | GateKind::FileLacks => &["path", "contains", "regex"],
            GateKind::EvidenceBoolTrue => &["key"],
            GateKind::ChangedFilesAllowlist
            | GateKind::ForbidPaths
            | GateKind::FileExists
            | GateKind::FileNotExists
            | GateKind::TestsUnchanged
            | GateKind::Reachable => &["paths"],
            GateKind::ChangedFilesMinimum | GateKind::DiffMinLines => &["min"],
            GateKind::DiffMaxLines => &["max"],
            GateKind::CommandOutputContains => &["command", "contains"],
            GateKind::CommandOutputRegex => &["command", "regex"],
            GateKind::JsonSchemaValid => &["path", "key", "schema"],
            GateKind::CriteriaChecklistComplete
            | GateKind::NoUncommittedChanges
            | GateKind::CommitExists
            | GateKind::HumanApproval => &[],
        }
    }
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

    /// One line for a prompt.
    pub(crate) fn describe(&self) -> String {
        match self {
            Gate::TestsPassed(None) => "tests_passed is true and tests_run names them".to_owned(),
            Gate::TestsPassed(Some(command)) => {
                format!("tests_passed is true and `{}` succeeds", command.join(" "))
            }
            Gate::TestsFail(None) => {
                "tests_run names the tests, tests_passed is false: one has to fail".to_owned()
            }
            Gate::TestsFail(Some(command)) => {
                format!(
                    "tests_passed is false, and a test of `{}` fails",
                    command.join(" ")
                )
            }
            Gate::FailToPass(None) => "tests that failed before this step pass now".to_owned(),
            Gate::FailToPass(Some(command)) => {
                format!("`{}` failed before this step and passes now", command.join(" "))
            }
            Gate::TestsUnchanged(paths) => {
                format!("existing tests do not change ({})", paths.join(", "))
            }
            Gate::LintPassed(None) => "lint_run and lint_passed are true".to_owned(),
            Gate::LintPassed(Some(command)) => {
                format!("lint_passed is true and `{}` succeeds", command.join(" "))
            }
            Gate::EvidenceBoolTrue(key) => format!("the evidence {key} is true"),
            Gate::CriteriaChecklistComplete => "every criterion in criteria_checklist is true".to_owned(),
            Gate::ChangedFilesAllowlist(paths) => format!("only these paths change: {}", paths.join(", ")),
            Gate::ForbidPaths(paths) => format!("these paths do not change: {}", paths.join(", ")),
            Gate::ChangedFilesMinimum(min) => format!("at least {min} files change"),
            Gate::FileExists(paths) => format!("these exist: {}", paths.join(", ")),
            Gate::FileNotExists(paths) => format!("these do not exist: {}", paths.join(", ")),
            Gate::FileContains(path, pattern) => format!("{path} contains {}", pattern.shown()),
            Gate::FileLacks(path, pattern) => {
                format!("{path} exists and does not contain {}", pattern.shown())
            }
            Gate::Reachable(paths) => {
                format!("an entry point leads to these by imports: {}", paths.join(", "))
            }
            Gate::NoUncommittedChanges => "nothing is left uncommitted".to_owned(),
            Gate::DiffMaxLines(max) => format!("at most {max} lines change"),
            Gate::DiffMinLines(min) => format!("at least {min} lines change"),
            Gate::CommitExists => "commit_hash names a new commit".to_owned(),
            Gate::CommandExit0(command) => format!("`{}` succeeds", command.join(" ")),
            Gate::CommandOutputContains(command, text) => format!("`{}` prints {text:?}", command.join(" ")),
            Gate::CommandOutputRegex(command, regex) => {
                format!("`{}` prints something that matches /{regex}/", command.join(" "))
            }
            Gate::JsonSchemaValid(Source::File(path), _) => {
                format!("{path} is JSON that fits the step's schema")
            }
            Gate::JsonSchemaValid(Source::Evidence(key), _) => {
                format!("the evidence {key} fits the step's schema")
            }
            Gate::HumanApproval => "a person approves it with step_approve".to_owned(),
        }
    }
}

impl Pattern {
    fn shown(&self) -> String {
        match self {
            Pattern::Text(text) => format!("{text:?}"),
            Pattern::Regex(regex) => format!("something that matches /{regex}/"),
        }
    }

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
];

/// Globs as one matcher. `*` does not cross `/`. Invalid globs match nothing.
fn glob_set(globs: &[String]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        let parsed = globset::GlobBuilder::new(glob).literal_separator(true).build();
        if let Ok(parsed) = parsed {
            builder.add(parsed);
        }
    }
    builder.build().unwrap_or_else(|_| GlobSet::empty())
}
