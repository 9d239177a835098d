//! Normalization of rows so that every engine can store them.

use std::borrow::Cow;

use super::Operation;
use crate::storage::engine::Sql;

impl Operation {
    /// Operation without NUL characters in any text. PostgreSQL cannot store them, and a row that cannot be stored
    /// would fail others with it.
    pub(in crate::storage) fn storable(&self) -> Cow<'_, Operation> {
        let has_nul = |value: &Sql<'_>| matches!(value, Sql::Text(text) if text.contains('\0'));
        if !self.values(0).iter().any(has_nul) {
            return Cow::Borrowed(self);
        }
        let mut shown = self.clone();
        for text in shown.texts() {
            *text = text.replace('\0', "\u{2400}");
        }
        Cow::Owned(shown)
    }

    /// Texts in the row, except those with fixed words of the host.
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let always = [
            &mut self.op_id,
            &mut self.timestamp,
            &mut self.pack,
            &mut self.tool,
            &mut self.connection,
            &mut self.host_id,
            &mut self.args_hash,
        ];
        let some = [
            &mut self.envelope_id,
            &mut self.error_code,
            &mut self.failure_class,
            &mut self.limit_triggered,
            &mut self.actor,
            &mut self.client,
            &mut self.request_id,
            &mut self.result_hash,
            &mut self.repo_before_hash,
            &mut self.repo_after_hash,
            &mut self.changed_paths,
            &mut self.diff_stats,
            &mut self.short_diff,
            &mut self.mutation_fingerprint,
            &mut self.failure_fingerprint,
            &mut self.failing_tests,
            &mut self.events,
            &mut self.verdicts,
            &mut self.artifact_ids,
            &mut self.members,
            &mut self.outcome,
            &mut self.counters,
            &mut self.workspace,
        ];
        always.into_iter().chain(some.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixture::{NOW, operation, session};

    #[test]
    fn a_row_with_nul_characters_is_stored_visibly_and_fails_no_neighbour() {
        let session = session();
        session.begin_write().unwrap();
        session.ledger().record(&operation(1, None, NOW)).unwrap();
        let mut hostile = operation(2, None, NOW);
        for text in hostile.texts() {
            text.push_str("\0x");
        }
        for absent in [
            &mut hostile.error_code,
            &mut hostile.actor,
            &mut hostile.failing_tests,
        ] {
            *absent = Some("a\0b".to_owned());
        }
        session.ledger().record(&hostile).unwrap();
        let mut running = operation(4, None, NOW);
        running.actor = Some("a\0b".to_owned());
        session.intents().insert(&running).unwrap();
        session.intents().count(&running.op_id, "{}").unwrap();
        session.ledger().record(&operation(3, None, NOW)).unwrap();
        session.commit().unwrap();
        let verified = session.ledger().verify(None, &[]).unwrap();
        assert!(verified.broken.is_none() && verified.rows == 3, "{verified:?}");
        let sql = "SELECT error_code FROM core_operations WHERE seq = 2";
        let code: String = session.engine.one(sql, &[], |row| row.get(0)).unwrap();
        assert_eq!(code, "a\u{2400}b");
    }
}
