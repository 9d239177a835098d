//! Shared knowledge of all clients: things in replies, and the replies themselves.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fastrand::Rng;
use serde_json::Value;

use crate::promise::Broken;

/// Maximum number of remembered things of one kind. Older ones are dropped, so that load stays on rows that others use
/// as well.
const REMEMBERED: usize = 64;

/// Shared by the clients of all hosts.
#[derive(Default)]
pub(crate) struct Shared(Mutex<Known>);

impl Shared {
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Version of a thing in a reply. A thing's version never decreases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) version: i64,
}

impl Told {
    pub(crate) fn of(kind: &'static str, id: impl Into<String>, version: i64) -> Told {
        Told {
            kind,
            id: id.into(),
            version,
        }
    }

    /// True if both are versions of the same thing.
    pub(crate) fn is(&self, other: &Told) -> bool {
        (self.kind, &self.id) == (other.kind, &other.id)
    }
}

/// A task of a client, and its outcome once any client was told.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) tool: &'static str,
    /// State and content of the outcome.
    pub(crate) end: Option<(String, Value)>,
}

#[derive(Default)]
pub(crate) struct Known {
    /// All tasks. Each is requested at the end.
    pub(crate) tasks: Vec<Task>,
    things: HashMap<&'static str, Vec<Told>>,
    /// Replies that are not checked yet.
    pub(crate) replies: Vec<Acknowledged>,
    /// Broken promises that clients found themselves.
    pub(crate) broken: Vec<Broken>,
    /// State of the database's server.
    pub(crate) outage: Outage,
    /// Number of calls with the code `OUTCOME_UNKNOWN`, and with `STORAGE_UNREACHABLE`.
    pub(crate) unknown: u64,
    pub(crate) unreached: u64,
}

/// Last outage of the database's server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Outage {
    /// There was no outage.
    #[default]
    None,
    /// The outage has not ended.
    Now,
    /// The server is back, and hosts have noticed by this time.
    Over(Instant),
}

impl Outage {
    /// Returns whether a call sent at a time may have been affected by the outage.
    pub(crate) fn excuses(self, sent: Instant) -> bool {
        match self {
            Outage::None => false,
            Outage::Now => true,
            Outage::Over(noticed) => sent <= noticed,
        }
    }
}

impl Known {
    /// Records a thing in a reply.
    pub(crate) fn learn(&mut self, told: Told) {
        let things = self.things.entry(told.kind).or_default();
        if let Some(known) = things.iter_mut().find(|known| known.is(&told)) {
            known.version = known.version.max(told.version);
            return;
        }
        if things.len() == REMEMBERED {
            things.remove(0);
        }
        things.push(told);
    }

    /// A random thing of a kind.
    pub(crate) fn any(&self, kind: &str, random: &mut Rng) -> Option<Told> {
        let things = self.things.get(kind).filter(|things| !things.is_empty())?;
        things.get(random.usize(..things.len())).cloned()
    }

    /// A random task among the newest.
    pub(crate) fn any_task(&self, random: &mut Rng) -> Option<String> {
        let newest = &self.tasks[self.tasks.len().saturating_sub(REMEMBERED)..];
        (!newest.is_empty()).then(|| newest[random.usize(..newest.len())].id.clone())
    }

    /// All remembered things.
    pub(crate) fn all(&self) -> Vec<Told> {
        self.things.values().flatten().cloned().collect()
    }
}

/// A reply that a client received.
#[derive(Debug, Clone)]
pub(crate) struct Acknowledged {
    pub(crate) op_id: String,
    pub(crate) tool: String,
    /// True for a read, whose row may be lost with its host, and for a refusal during an outage. Other calls must have
    /// a row.
    pub(crate) may_miss: bool,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// SHA-256 of the structured result.
    Done(String),
    /// Code of the refusal.
    Refused(String),
    /// `OUTCOME_UNKNOWN` during an outage: the call ran at most once.
    Unknown,
    /// `STORAGE_UNREACHABLE` during an outage: the call did not run.
    Unreached,
}
