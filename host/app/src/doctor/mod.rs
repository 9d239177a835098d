//! Checks whether a host can work, and reports every problem at once with its remedy.
//!
//! Each file checks one subject as far as possible. A check that is impossible because of another problem is not
//! reported as a second problem.

mod clients;
mod git;
mod packs;
mod place;
mod protections;
mod remedy;
mod server;
mod store;
mod telemetry;

use serde::Serialize;

pub use clients::{File as ClientFile, Served, check as clients};
pub use git::check as git;
pub use packs::{components, programs};
pub use place::check as place;
pub use protections::check as protections;
pub use remedy::remedy;
pub use server::{check as server, password};
pub use store::{check as store, repair};
pub use telemetry::check as telemetry;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// Works, but not permanently or not for everyone.
    Warning,
    /// Something does not work.
    Problem,
}

impl State {
    /// Severity in one word.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Note => "note",
            State::Warning => "warning",
            State::Problem => "problem",
        }
    }
}

/// Finding about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Severity.
    pub state: State,
    /// Subject.
    pub about: String,
    /// Description of the finding.
    pub what: String,
    /// Remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    fn new(state: State, about: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding {
            state,
            about: about.into(),
            what: what.into(),
            remedy: None,
        }
    }

    /// Creates a finding that everything is as it should be.
    pub fn ok(about: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding::new(State::Ok, about, what)
    }

    /// Creates a finding that is worth knowing.
    pub fn note(about: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding::new(State::Note, about, what)
    }

    /// Creates a finding about something that works, but not permanently or not for everyone.
    pub fn warning(about: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding::new(State::Warning, about, what)
    }

    /// Creates a finding about something that does not work.
    pub fn problem(about: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding::new(State::Problem, about, what)
    }

    /// Adds a remedy.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Finding {
        Finding {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

/// Number of bytes as text for people.
fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
