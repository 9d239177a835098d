//! Gates as written in a plan, checked: parameters that are missing, superfluous or invalid.

use globset::Glob;
use serde_json::Value;

use super::{Gate, GateKind, GateSpec, Misfit, Pattern, Source, TEST_FILES};

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
