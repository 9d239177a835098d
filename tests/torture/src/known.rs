//! What all clients together know: ids they were told, and replies they were given.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fastrand::Rng;

use crate::promise::Broken;

/// Ids of one kind that are remembered. Older ones make room, so that load stays on rows that others
/// use as well.
const REMEMBERED: usize = 64;

/// Shared by the clients of all hosts.
#[derive(Default)]
pub(crate) struct Shared(Mutex<Known>);

impl Shared {
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
pub(crate) struct Known {
    ids: HashMap<&'static str, Vec<String>>,
    /// Replies that nobody checked yet.
    pub(crate) replies: Vec<Acknowledged>,
    /// What clients themselves saw broken.
    pub(crate) broken: Vec<Broken>,
}

impl Known {
    /// Remembers an id that a reply gave.
    pub(crate) fn learn(&mut self, kind: &'static str, id: &str) {
        let ids = self.ids.entry(kind).or_default();
        if ids.len() == REMEMBERED {
            ids.remove(0);
        }
        ids.push(id.to_owned());
    }

    /// One of the ids of a kind.
    pub(crate) fn any(&self, kind: &str, random: &mut Rng) -> Option<String> {
        let ids = self.ids.get(kind).filter(|ids| !ids.is_empty())?;
        ids.get(random.usize(..ids.len())).cloned()
    }
}

/// A reply that a client has.
#[derive(Debug, Clone)]
pub(crate) struct Acknowledged {
    pub(crate) op_id: String,
    pub(crate) tool: String,
    /// Rows of reads may be lost with their host, others never.
    pub(crate) reads: bool,
    pub(crate) outcome: Outcome,
}

#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The SHA-256 of the structured result.
    Done(String),
    /// The refusal's code.
    Refused(String),
}
