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
    /// `pack` or `policy`; absent if it is neither.
    #[serde(rename = "is", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// Name in the component's manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its own version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The JSON Schema of its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<Value>,
    /// The settings that it ran with.
    pub config: Map<String, Value>,
    /// The calls that were made.
    pub calls: Vec<Called>,
    /// Number of calls that a policy judged; absent for a pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<usize>,
    /// Everything that is wrong.
    pub problems: Vec<Finding>,
    /// Findings that deserve a look.
    pub notes: Vec<Finding>,
    /// Parts of the component that the check did not see at work, and why.
    pub untried: Vec<Finding>,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Called {
    /// The tool or prompt.
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

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The tool, the prompt, or the component itself.
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
    /// Adds what was found, once.
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
