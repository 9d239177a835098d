//! Recomputation of envelopes from the rows of the ledger: limits from the row of the opening, counters from the rows
//! of calls, the state from the row of the end. Rows are protected by the hash chain and `core_envelopes` is not, so
//! the comparison shows changes to that table.

mod told;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use self::told::{Closed, Counters, Told};
use super::endings::{CLOSED, MOVED, OPENED};
use super::engine::{Column, Once, sql};
use super::envelopes::EnvelopeFilter;
use super::error::StoreResult;
use super::handles::Envelopes;

/// Envelopes that are read at once.
const PAGE_ENVELOPES: u32 = 500;

/// Query for rows with statements about envelopes. Components' events have no field `envelope_id`.
const STATEMENTS_QUERY: &str = "SELECT seq, envelope_id, events, counters FROM core_operations
    WHERE counters IS NOT NULL OR (events IS NOT NULL AND instr(events, '\"envelope.') > 0) ORDER BY seq";

impl Envelopes<'_> {
    /// Envelopes that differ from the ledger's rows, one message each.
    pub(super) fn faults(self) -> StoreResult<Vec<String>> {
        let (told, first_opening) = self.told()?;
        let busy = self.envelopes_of_intents()?;
        let mut faults = Vec::new();
        let mut seen = BTreeSet::new();
        let mut filter = EnvelopeFilter::default();
        loop {
            let page = self.list(&filter, PAGE_ENVELOPES)?;
            let Some(last) = page.last() else {
                break;
            };
            filter.before = Some((last.opened_at.clone(), last.id.clone()));
            for envelope in page {
                seen.insert(envelope.id.clone());
                match told.get(&envelope.id) {
                    Some(told) if told.opened.is_some() => {
                        let budgets = self.0.budgets().list(&envelope.id, None)?;
                        told.compare(&envelope, &budgets, busy.contains(&envelope.id), &mut faults);
                    }
                    _ if self.is_of_earlier_version(&envelope.id, first_opening)? => {}
                    _ => faults.push(format!(
                        "no ledger row opens envelope {}: it was added to the database",
                        envelope.id
                    )),
                }
            }
        }
        for (id, told) in &told {
            if let Some((seq, _)) = told.opened.as_ref().filter(|_| !seen.contains(id)) {
                faults.push(format!("envelope {id}, which row {seq} opened, was removed"));
            }
        }
        Ok(faults)
    }

    /// True if an envelope without an opening row comes from a version that wrote none: it has a row older than any
    /// opening row, or a row without counters. This is decided by rows, which are in the chain, and not by a column
    /// of the envelope.
    fn is_of_earlier_version(self, id: &str, first_opening: Option<i64>) -> StoreResult<bool> {
        let sql = "SELECT seq, counters IS NOT NULL FROM core_operations WHERE envelope_id = ?1 ORDER BY seq LIMIT 1";
        let first: Option<(i64, bool)> = self
            .0
            .engine
            .maybe(sql, sql![id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(match (first, first_opening) {
            (Some((first, _)), Some(opening)) => first < opening,
            (Some((_, is_counted)), None) => !is_counted,
            (None, opening) => opening.is_none(),
        })
    }

    /// Statements in the rows, by envelope, and the oldest opening row.
    fn told(self) -> StoreResult<(BTreeMap<String, Told>, Option<i64>)> {
        let mut told: BTreeMap<String, Told> = BTreeMap::new();
        let mut first_opening: Option<i64> = None;
        self.0.engine.each(Once(STATEMENTS_QUERY), &[], |row| {
            let seq: i64 = row.get(0)?;
            let text = |column: usize| row.column(column).map(Column::text);
            if let (Some(id), Some(counters)) = (text(1)?, text(3)?)
                && let Ok(counters) = serde_json::from_str::<Counters>(counters)
            {
                for (around, counters) in &counters.around {
                    told.entry(around.clone()).or_default().count(counters);
                }
                told.entry(id.to_owned()).or_default().count(&counters);
            }
            let events: Vec<Map<String, Value>> = text(2)?
                .and_then(|events| serde_json::from_str(events).ok())
                .unwrap_or_default();
            for event in events {
                let Some(id) = event.get("envelope_id").and_then(Value::as_str) else {
                    continue;
                };
                let one = told.entry(id.to_owned()).or_default();
                match event.get("type").and_then(Value::as_str) {
                    Some(OPENED) => {
                        one.opened = serde_json::from_value(Value::Object(event))
                            .ok()
                            .map(|opened| (seq, opened));
                        first_opening.get_or_insert(seq);
                    }
                    Some(MOVED) => {
                        if let Some((_, opened)) = &mut one.opened {
                            opened.move_to(&event);
                        }
                    }
                    Some(CLOSED) => {
                        let counters = event.get("counters").cloned().unwrap_or_default();
                        let counters = serde_json::from_value::<Counters>(counters);
                        one.edits_at_end = counters.ok().map(|counters| counters.edits);
                        let looks = event.get("work_trees").and_then(Value::as_array);
                        one.looks_at_end = looks.and_then(|looks| i64::try_from(looks.len()).ok());
                        one.closed = Closed::read(&event).map(|closed| (seq, closed));
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        Ok((told, first_opening))
    }

    /// Envelopes with counted calls that have no row yet, and their enclosing ones.
    fn envelopes_of_intents(self) -> StoreResult<BTreeSet<String>> {
        let sql = "SELECT operation ->> 'envelope_id' FROM core_intents WHERE operation ->> 'envelope_id' IS NOT NULL";
        let mut busy: BTreeSet<String> = self.0.engine.all(Once(sql), &[], |row| row.get(0))?;
        let mut inner: Vec<String> = busy.iter().cloned().collect();
        while let Some(id) = inner.pop() {
            let parent = self.get(&id)?.and_then(|envelope| envelope.parent);
            if let Some(parent) = parent.filter(|parent| busy.insert(parent.clone())) {
                inner.push(parent);
            }
        }
        Ok(busy)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::envelope::{Charge, State};

    use super::super::endings::opened;
    use super::super::fixture::{self, NOW, Place, change, envelope, key, operation, without_keys};
    use super::super::prune::PruneError;
    use super::super::session::Session;
    use super::super::{Admission, Operation};
    use super::*;

    /// An envelope with another around it, three calls of which one is refused, and their ends.
    fn story() -> (Place, Session) {
        let (place, database) = fixture::database();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        open(&session, 0, "env_around", None);
        open(&session, 1, "env_in", Some("env_around"));
        session.budgets().book("env_in", "units", 1).unwrap();
        for number in 2..5 {
            let mut row = operation(number, Some("env_in"), NOW);
            match session
                .envelopes()
                .admit("env_in", Charge::Mutations(1), 0, NOW)
                .unwrap()
            {
                Admission::Admitted(admitted) => row.counters = admitted.counters,
                Admission::Refused { event, .. } => {
                    assert_eq!(number, 4);
                    row.events = Some(Value::from(vec![event.unwrap()]).to_string());
                }
                Admission::Unknown => unreachable!(),
            }
            session.ledger().record(&row).unwrap();
        }
        let ended = session
            .envelopes()
            .interrupt_all("h", None, (NOW, 0), "HOST_GONE")
            .unwrap();
        assert_eq!(ended, 1);
        session.commit().unwrap();
        (place, session)
    }

    fn open(session: &Session, number: usize, id: &str, parent: Option<&str>) {
        let mut one = envelope(id, None);
        one.opened_at = NOW.to_owned();
        one.parent = parent.map(str::to_owned);
        one.standing.limits.max_mutations = parent.map(|_| 2);
        session.envelopes().open(&one).unwrap();
        let budgets: BTreeMap<String, i64> = parent.map(|_| ("units".to_owned(), 2)).into_iter().collect();
        session.budgets().open(id, &budgets).unwrap();
        let events = Value::from(vec![opened(&one, &budgets)]).to_string();
        let row = Operation {
            events: Some(events),
            ..operation(number, Some(id), NOW)
        };
        session.ledger().record(&row).unwrap();
    }

    fn faults(session: &Session) -> Vec<String> {
        let verified = session.ledger().verify(None, &[key().public()]).unwrap();
        assert_eq!(verified.broken.is_some(), !verified.around.is_empty());
        verified.around
    }

    #[test]
    fn what_rows_say_is_what_envelopes_are() {
        let (_place, session) = story();
        assert_eq!(faults(&session), [] as [String; 0]);
        let inner = session.envelopes().get("env_in").unwrap().unwrap();
        assert_eq!(inner.standing.state, State::ClosedFailed);
        let around = session.envelopes().get("env_around").unwrap().unwrap();
        assert_eq!(
            (around.standing.mutations, around.standing.state),
            (2, State::ClosedInterrupted)
        );
    }

    #[test]
    fn nothing_is_pruned_by_envelopes_that_were_changed() {
        let (_place, session) = story();
        session.maintenance().check_before_prune().unwrap();
        change(
            &session,
            "UPDATE core_envelopes SET closed_at = '2020-01-01T00:00:00.000Z'",
        )
        .unwrap();
        let refused = session.maintenance().check_before_prune().unwrap_err();
        assert!(
            matches!(&refused, PruneError::Envelopes(fault) if fault.contains("the end of envelope")),
            "{refused}"
        );
    }

    /// A host that reads the clock, and looks at envelopes after another opened one.
    #[test]
    fn a_detached_envelope_is_open_for_its_time_by_the_clock_that_nobody_sets() {
        let (_place, database) = fixture::database();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        let mut one = envelope("env_one", None);
        // By the clock on the wall it was over long ago.
        one.detached_until_ms = Some(1);
        one.standing.opened_boot_ms = 100_000;
        one.standing.limits.max_duration_sec = Some(60);
        session.envelopes().open(&one).unwrap();
        for boot_ms in [99_999, 100_000, 159_999] {
            assert_eq!(
                session.envelopes().end_detached(boot_ms, NOW).unwrap(),
                0,
                "{boot_ms}"
            );
        }
        assert_eq!(session.envelopes().end_detached(160_000, NOW).unwrap(), 1);
        let mut other = one.clone();
        other.id = "env_two".to_owned();
        session.envelopes().open(&other).unwrap();
        assert_eq!(
            session.envelopes().end_detached(1_000, NOW).unwrap(),
            1,
            "the machine was started again"
        );
        session.commit().unwrap();
    }

    #[test]
    fn every_change_of_an_envelope_shows() {
        for (change, shown) in [
            (
                "UPDATE core_envelopes SET state = 'OPEN' WHERE id = 'env_in'",
                "env_in is OPEN, but row 5 made it CLOSED_FAILED",
            ),
            (
                "UPDATE core_envelopes SET state = 'CLOSED_SUCCESS' WHERE id = 'env_in'",
                "row 5 made it CLOSED_FAILED",
            ),
            (
                "UPDATE core_envelopes SET mutation_count = 0 WHERE id = 'env_in'",
                "the number of mutations of envelope env_in is 0, but its ledger rows add up to 2",
            ),
            (
                "UPDATE core_envelopes SET detached_until_ms = 9 WHERE id = 'env_in'",
                "the limits of envelope env_in differ from row 2",
            ),
            (
                "UPDATE core_envelopes SET label = 'harmless' WHERE id = 'env_in'",
                "the label and workspace of envelope env_in",
            ),
            (
                "UPDATE core_envelopes SET mutation_count = 1 WHERE id = 'env_around'",
                "the number of mutations of envelope env_around is 1",
            ),
            (
                "UPDATE core_envelopes SET test_run_count = 9 WHERE id = 'env_in'",
                "the number of test runs of envelope env_in is 9, but its ledger rows add up to 0",
            ),
            (
                "UPDATE core_envelopes SET edit_count = 3 WHERE id = 'env_in'",
                "the number of edits of envelope env_in is 3, but its ledger rows add up to 0",
            ),
            (
                "UPDATE core_envelopes SET max_edits = 1000 WHERE id = 'env_in'",
                "the limits of envelope env_in differ from row 2",
            ),
            (
                "UPDATE core_envelopes SET max_mutations = 1000 WHERE id = 'env_in'",
                "the limits of envelope env_in differ from row 2",
            ),
            (
                "UPDATE core_envelopes SET max_duration_sec = 5 WHERE id = 'env_in'",
                "the limits of envelope env_in differ from row 2",
            ),
            (
                "UPDATE core_envelopes SET opened_boot_ms = 9000 WHERE id = 'env_in'",
                "the time and identity of envelope env_in",
            ),
            (
                "UPDATE core_envelopes SET identity = 'token:mallory' WHERE id = 'env_in'",
                "the time and identity of envelope env_in",
            ),
            (
                "UPDATE core_envelopes SET opened_at = '2020-01-01T00:00:00.000Z' WHERE id = 'env_in'",
                "the time and commit of envelope env_in",
            ),
            (
                "UPDATE core_envelopes SET git_head = '0000' WHERE id = 'env_in'",
                "the time and commit of envelope env_in",
            ),
            (
                "UPDATE core_envelopes SET closed_at = '2020-01-01T00:00:00.000Z' WHERE id = 'env_in'",
                "the end of envelope env_in differs from row 5",
            ),
            (
                "UPDATE core_envelopes SET closed_by = 'USER' WHERE id = 'env_in'",
                "the end of envelope env_in differs from row 5",
            ),
            (
                "UPDATE core_envelopes SET note = 'all is well' WHERE id = 'env_in'",
                "the end of envelope env_in differs from row 5",
            ),
            (
                "UPDATE core_envelopes SET closed_actor = 'claimed:linus' WHERE id = 'env_in'",
                "the end of envelope env_in differs from row 5",
            ),
            (
                "UPDATE core_budgets SET max_units = 1000 WHERE envelope_id = 'env_in'",
                "the named budgets of envelope env_in",
            ),
            (
                "DELETE FROM core_budgets WHERE envelope_id = 'env_in'",
                "the named budgets of envelope env_in",
            ),
            (
                "UPDATE core_budgets SET used = 0 WHERE envelope_id = 'env_in'",
                "env_in records 0 as used of budget units, but row 5, which closed it, records 1",
            ),
            (
                "UPDATE core_envelopes SET parent = NULL WHERE id = 'env_in'",
                "the limits of envelope env_in differ from row 2",
            ),
            (
                "DELETE FROM core_envelopes WHERE id = 'env_in'",
                "envelope env_in, which row 2 opened, was removed",
            ),
            (
                "UPDATE core_envelopes SET id = 'env_other', opened_at = '2020-01-01T00:00:00.000Z' WHERE id = 'env_in'",
                "no ledger row opens envelope env_other",
            ),
        ] {
            let (_place, session) = story();
            without_keys(&session);
            assert_eq!(session.engine.run(change, &[]).unwrap(), 1, "{change}");
            let found = faults(&session);
            assert!(
                found.iter().any(|fault| fault.contains(shown)),
                "{change}: {found:?}"
            );
        }
    }
}
