//! Report of a check.

use serde::Serialize;
use serde_json::{Map, Value};

/// Report of a check.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// SHA-256 of the component's bytes, in hex.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: usize,
    /// `pack` or `policy`. Absent if the component is neither.
    #[serde(rename = "is", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Name in the component's manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Version of the component.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// JSON Schema of its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// Settings of the checked component.
    pub config: Map<String, Value>,
    /// Calls that were made.
    pub calls: Vec<Called>,
    /// Number of calls that a policy evaluated. Absent for a pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<usize>,
    /// All problems.
    pub problems: Vec<Finding>,
    /// Findings that deserve attention.
    pub notes: Vec<Finding>,
    /// Parts of the component that the check did not exercise, with the reasons.
    pub untried: Vec<Finding>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Called {
    /// Tool or prompt.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Address of the resource that the call read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// `ok`, or the code of its error.
    pub outcome: String,
    /// Time of the call.
    pub duration_ms: f64,
}

/// A finding about the component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Tool, prompt, or component that the finding is about.
    pub about: String,
    /// Description of the finding.
    pub found: String,
    /// Remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
}

impl Finding {
    pub(super) fn new(about: &str, found: impl Into<String>) -> Finding {
        Finding {
            about: about.to_owned(),
            found: found.into(),
            remedy: None,
        }
    }

    pub(super) fn remedy(self, remedy: &'static str) -> Finding {
        Finding {
            remedy: Some(remedy),
            ..self
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.about, self.found)?;
        match self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl Report {
    /// Adds a problem, unless it was already added.
    pub(super) fn problem(&mut self, finding: Finding) {
        if !self.problems.contains(&finding) {
            self.problems.push(finding);
        }
    }

    pub(super) fn note(&mut self, finding: Finding) {
        if !self.notes.contains(&finding) {
            self.notes.push(finding);
        }
    }

    pub(super) fn untried(&mut self, finding: Finding) {
        if !self.untried.contains(&finding) {
            self.untried.push(finding);
        }
    }

    pub(super) fn problems_of(&mut self, about: &str, problems: impl IntoIterator<Item = String>) {
        for problem in problems {
            self.problem(Finding::new(about, problem));
        }
    }
}
