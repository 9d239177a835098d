//! Statements about envelopes in a call's row.

use serde_json::Value;
use tollgate_store::storage::Operation;

/// Statements about envelopes for a row: an envelope was opened or ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// Envelope that the call opened or ended. The call itself is not counted in this envelope.
    pub(super) envelope: Option<String>,
    /// Events that the host adds.
    pub(super) events: Vec<Value>,
}

impl Told {
    pub(super) fn add(&mut self, other: Told) {
        self.envelope = other.envelope.or(self.envelope.take());
        self.events.extend(other.events);
    }

    /// Adds the statements to a row, after the events of its component.
    pub(super) fn fill(&self, operation: &mut Operation) {
        if self.envelope.is_some() {
            operation.envelope_id.clone_from(&self.envelope);
        }
        operation.add_events(&self.events);
    }
}
