//! Gates: conditions of a step that the pack checks itself instead of trusting claims.
//!
//! A [`GateSpec`] is a gate as written in a plan; [`Gate`] is the checked form. `decide` decides whether a gate
//! holds, given the facts that `facts` gathered.

pub(crate) mod decide;
pub(crate) mod facts;
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
        LintPassed = "lint_passed",
        EvidenceBoolTrue = "evidence_bool_true",
        CriteriaChecklistComplete = "criteria_checklist_complete",
        ChangedFilesAllowlist = "changed_files_allowlist",
        ForbidPaths = "forbid_paths",
        ChangedFilesMinimum = "changed_files_minimum",
        FileExists = "file_exists",
        FileNotExists = "file_not_exists",
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
    /// Text that the output must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// Regular expression that must match somewhere in the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// File to validate.
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
    LintPassed(Option<Vec<String>>),
    EvidenceBoolTrue(String),
    CriteriaChecklistComplete,
    ChangedFilesAllowlist(Vec<String>),
    ForbidPaths(Vec<String>),
    ChangedFilesMinimum(u32),
    FileExists(Vec<String>),
    FileNotExists(Vec<String>),
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
            GateKind::TestsPassed | GateKind::LintPassed | GateKind::CommandExit0 => &["command"],
            GateKind::EvidenceBoolTrue => &["key"],
            GateKind::ChangedFilesAllowlist
            | GateKind::ForbidPaths
            | GateKind::FileExists
            | GateKind::FileNotExists => &["paths"],
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
            Gate::LintPassed(_) => GateKind::LintPassed,
            Gate::EvidenceBoolTrue(_) => GateKind::EvidenceBoolTrue,
            Gate::CriteriaChecklistComplete => GateKind::CriteriaChecklistComplete,
            Gate::ChangedFilesAllowlist(_) => GateKind::ChangedFilesAllowlist,
            Gate::ForbidPaths(_) => GateKind::ForbidPaths,
            Gate::ChangedFilesMinimum(_) => GateKind::ChangedFilesMinimum,
            Gate::FileExists(_) => GateKind::FileExists,
            Gate::FileNotExists(_) => GateKind::FileNotExists,
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

    /// Facts that the gate needs besides the evidence.
    pub(crate) fn needs(&self) -> Vec<Need<'_>> {
        match self {
            Gate::ChangedFilesAllowlist(_)
            | Gate::ForbidPaths(_)
            | Gate::ChangedFilesMinimum(_)
            | Gate::NoUncommittedChanges
            | Gate::DiffMaxLines(_)
            | Gate::DiffMinLines(_)
            | Gate::CommitExists => vec![Need::Git],
            Gate::FileExists(paths) | Gate::FileNotExists(paths) => {
                paths.iter().map(|path| Need::Path(path)).collect()
            }
            Gate::JsonSchemaValid(Source::File(path), _) => vec![Need::Content(path)],
            Gate::CommandExit0(command)
            | Gate::CommandOutputContains(command, _)
            | Gate::CommandOutputRegex(command, _)
            | Gate::TestsPassed(Some(command))
            | Gate::LintPassed(Some(command)) => vec![Need::Command(command)],
            Gate::TestsPassed(None)
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
