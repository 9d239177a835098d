//! Statements of a call's row about envelopes.

use serde_json::Value;
use tollgate_store::storage::Operation;

/// Statements of a row about envelopes: one was opened, one ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// The envelope that the call is about, though it does not belong to it.
    pub(super) envelope: Option<String>,
    /// Events of the host's own.
    pub(super) events: Vec<Value>,
}

impl Told {
    pub(super) fn add(&mut self, other: Told) {
        self.envelope = other.envelope.or(self.envelope.take());
        self.events.extend(other.events);
    }

    /// Puts it into a row, beside the events of its component.
    pub(super) fn fill(&self, operation: &mut Operation) {
        if self.envelope.is_some() {
            operation.envelope_id.clone_from(&self.envelope);
        }
        operation.add_events(&self.events);
    }
}
