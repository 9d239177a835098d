//! Mutation of a call: as its component reports it, otherwise as the host observed it.

use tollgate_sandbox::annotations::Annotations;
use tollgate_store::storage::{Operation, Session, Sighting, StoreResult};

/// Mutation of a call, as far as the host observed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    /// Fingerprint from the component, or SHA-256 over tool, arguments and the rows changed in each table.
    pub fingerprint: String,
    /// Entities that the component names, or the changed tables.
    pub changed: Vec<String>,
    /// Number of mutations back to the same one in this envelope. 1 means the previous one.
    pub repeated: Option<usize>,
}

impl Mutation {
    /// Mutation of a call: as its component reports it, otherwise as the host observed it. `edited` is the work tree
    /// before a call that may have edited it.
    pub(super) fn of(
        session: &Session,
        operation: &Operation,
        edited: Option<&Sighting>,
        annotations: &Annotations,
        seen: Option<(String, Vec<String>)>,
    ) -> StoreResult<Option<Mutation>> {
        let said = annotations.mutation_fingerprint().map(str::to_owned);
        let (seen, tables) = seen.unzip();
        let Some(fingerprint) = said.or(seen) else {
            return Ok(None);
        };
        let changed = match annotations.changed() {
            [] => tables.unwrap_or_default(),
            named => named.to_vec(),
        };
        let repeated = match &operation.envelope_id {
            // States of the work tree say more than fingerprints, whoever made the edit.
            Some(envelope) if edited.is_some() => match edited {
                Some(_) if annotations.has_event("mutation.no_op") => Some(1),
                Some(seen) if annotations.has_event("mutation.oscillation") => session
                    .work_trees()
                    .progress(envelope, &seen.workspace)?
                    .and_then(|progress| usize::try_from(progress.oscillation?).ok()),
                _ => None,
            },
            Some(envelope) => {
                let effect = operation.effect.as_str();
                session
                    .evidence()
                    .repeated_mutation(envelope, &fingerprint, effect, None)?
            }
            None => None,
        };
        Ok(Some(Mutation {
            fingerprint,
            changed,
            repeated,
        }))
    }
}
