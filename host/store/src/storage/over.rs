//! Expiry of envelopes. An envelope ends for all readers as soon as its own time or that of an enclosing envelope is
//! up. The row of that end is written later, with the next call or when something else closes the envelope.

use tollgate_core::envelope::{Standing, State};

use super::endings::PARENT_CLOSED;
use super::envelopes::Envelope;
use super::error::StoreResult;
use super::handles::Envelopes;

/// Reason for an end by an envelope's own time.
const DURATION_EXCEEDED: &str = "DURATION_EXCEEDED";

/// End of an open envelope by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Over {
    /// Index of the envelope whose time was up first, among an envelope and its enclosing ones.
    pub(super) place: usize,
    /// Time of that end, in milliseconds since the machine's boot.
    at_boot_ms: i64,
}

impl Over {
    /// Earliest end in a chain of envelopes, each of which encloses the one before. The earliest end counts, so that
    /// the result does not depend on the time of the query.
    pub(super) fn of(chain: &[(String, Standing)], boot_ms: i64) -> Option<Over> {
        let (_, own) = chain.first()?;
        if own.state != State::Open {
            return None;
        }
        let ends = chain.iter().enumerate();
        let ends = ends.filter_map(|(place, (_, standing))| Some((standing.end_boot_ms()?, place)));
        let (at_boot_ms, place) = ends.min()?;
        (at_boot_ms <= boot_ms).then_some(Over { place, at_boot_ms })
    }

    /// State of the envelope from then on.
    pub(super) const fn state(self) -> State {
        match self.place {
            0 => State::ClosedFailed,
            _ => State::ClosedInterrupted,
        }
    }

    /// Reason of the end.
    pub(super) const fn closed_by(self) -> &'static str {
        match self.place {
            0 => DURATION_EXCEEDED,
            _ => PARENT_CLOSED,
        }
    }
}

impl Envelopes<'_> {
    /// Envelope in its state at a time: over if its own time or that of an enclosing envelope is up.
    pub fn get_at(self, id: &str, boot_ms: i64) -> StoreResult<Option<Envelope>> {
        let envelope = self.get(id)?;
        envelope.map(|envelope| self.as_at(envelope, boot_ms)).transpose()
    }

    /// Changes an envelope to its state at a time: over if its own time or that of an enclosing envelope is up.
    pub fn as_at(self, mut envelope: Envelope, boot_ms: i64) -> StoreResult<Envelope> {
        if envelope.standing.state != State::Open {
            return Ok(envelope);
        }
        if let Some(over) = Over::of(&self.chain(&envelope.id)?, boot_ms) {
            envelope.standing.state = over.state();
            envelope.closed_by = Some(over.closed_by().to_owned());
            envelope.over_boot_ms = Some(over.at_boot_ms);
        }
        Ok(envelope)
    }

    /// Number of envelopes that are open at a time.
    pub(super) fn count_open(self, boot_ms: i64) -> StoreResult<u64> {
        let ids: Vec<String> =
            self.0
                .engine
                .all("SELECT id FROM core_envelopes WHERE state = 'OPEN'", &[], |row| {
                    row.get(0)
                })?;
        let mut open = 0;
        for id in &ids {
            open += u64::from(Over::of(&self.chain(id)?, boot_ms).is_none());
        }
        Ok(open)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use tollgate_core::envelope::{Charge, Limits};

    use super::super::fixture::{self, NOW, Place, envelope};
    use super::super::session::Session;
    use super::super::{Admission, Ending, EnvelopeFilter};
    use super::*;

    /// Opened at 1 s: `env_a` with 4 s, in it `env_b` without a limit, in that `env_c` with 9 s, beside it `env_d` with 2 s.
    fn parts() -> (Place, Session) {
        let (place, database) = fixture::database();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        let all = [
            ("env_a", None, Some(4)),
            ("env_b", Some("env_a"), None),
            ("env_c", Some("env_b"), Some(9)),
            ("env_d", Some("env_a"), Some(2)),
        ];
        for (id, parent, max_duration_sec) in all {
            let mut one = envelope(id, None);
            one.parent = parent.map(str::to_owned);
            one.standing.opened_boot_ms = 1_000;
            one.standing.limits = Limits {
                max_duration_sec,
                ..Limits::default()
            };
            session.envelopes().open(&one).unwrap();
        }
        (place, session)
    }

    /// States of the envelopes as one reads them, which the list must agree with.
    fn states(session: &Session, boot_ms: i64) -> String {
        let mut told = String::new();
        for id in ["env_a", "env_b", "env_c", "env_d"] {
            let one = session.envelopes().get_at(id, boot_ms).unwrap().unwrap();
            let state = one.standing.state;
            let filter = EnvelopeFilter {
                state: Some(state),
                boot_ms,
                ..EnvelopeFilter::default()
            };
            let listed = session.envelopes().list(&filter, 1).unwrap();
            assert!(listed.iter().all(|one| one.standing.state == state), "{listed:?}");
            let listed = session.envelopes().list(&filter, 9).unwrap();
            assert!(listed.iter().any(|listed| listed.id == id), "{id} in {listed:?}");
            let why = one.closed_by.map(|by| format!(" {by}")).unwrap_or_default();
            told += &format!("{id} {}{why}\n", state.as_str());
        }
        told
    }

    #[test]
    fn parts_are_over_with_the_envelope_around_them() {
        let (_place, session) = parts();
        assert_eq!(session.envelopes().count_open(2_999).unwrap(), 4);
        assert_eq!(session.envelopes().count_open(3_000).unwrap(), 3);
        expect![[r#"
            env_a OPEN
            env_b OPEN
            env_c OPEN
            env_d CLOSED_FAILED DURATION_EXCEEDED
        "#]]
        .assert_eq(&states(&session, 4_999));
        let over = states(&session, 5_000);
        expect![[r#"
            env_a CLOSED_FAILED DURATION_EXCEEDED
            env_b CLOSED_INTERRUPTED PARENT_CLOSED
            env_c CLOSED_INTERRUPTED PARENT_CLOSED
            env_d CLOSED_FAILED DURATION_EXCEEDED
        "#]]
        .assert_eq(&over);
        assert_eq!(session.envelopes().count_open(5_000).unwrap(), 0);
        assert_eq!(states(&session, 90_000), over);
    }

    /// Way by which an envelope is closed.
    type Way = fn(&Session);

    /// However an end is written down, it is the one that everybody saw before.
    #[test]
    fn the_row_of_an_end_says_what_was_seen_before() {
        let boot_ms = 90_000;
        let ways: [(&str, Way); 6] = [
            ("admission", |session| {
                let refused = session
                    .envelopes()
                    .admit("env_c", Charge::TestRun, 90_000, NOW)
                    .unwrap();
                let Admission::Refused { envelope, .. } = refused else {
                    panic!("{refused:?}");
                };
                assert_eq!(envelope.id, "env_a");
            }),
            ("success of a part", |session| {
                let ending = Ending {
                    state: State::ClosedSuccess,
                    closed_by: None,
                    note: Some("done"),
                    actor: None,
                    now: NOW,
                    boot_ms: 90_000,
                };
                let event = session.envelopes().close("env_b", ending).unwrap().unwrap();
                assert_eq!(event["state"], "CLOSED_INTERRUPTED");
                assert_eq!(event["closed_by"], "PARENT_CLOSED");
            }),
            ("failure of a part", |session| {
                let ending = Ending::by_host(State::ClosedFailed, "EDIT_BUDGET_EXHAUSTED", NOW, 90_000);
                session.envelopes().close("env_c", ending).unwrap().unwrap();
            }),
            ("disconnection", |session| {
                session
                    .envelopes()
                    .interrupt_all("h", None, (NOW, 90_000), "DISCONNECTED")
                    .unwrap();
            }),
            ("the one around all", |session| {
                let ending = Ending::by_host(State::ClosedFailed, "DURATION_EXCEEDED", NOW, 90_000);
                session.envelopes().close("env_a", ending).unwrap().unwrap();
            }),
            ("a part of its own time", |session| {
                let ending = Ending::by_host(State::ClosedInterrupted, "DISCONNECTED", NOW, 90_000);
                session.envelopes().close("env_d", ending).unwrap().unwrap();
            }),
        ];
        for (way, end) in ways {
            let (_place, session) = parts();
            let before = states(&session, boot_ms);
            end(&session);
            assert_eq!(states(&session, boot_ms), before, "{way}");
            session.commit().unwrap();
        }
    }

    #[test]
    fn a_part_reads_nothing_after_the_time_of_the_one_around_it() {
        let (_place, session) = parts();
        assert!(
            session
                .envelopes()
                .refusal_to_read("env_c", 4_999)
                .unwrap()
                .is_none()
        );
        let (refusing, refusal) = session
            .envelopes()
            .refusal_to_read("env_c", 90_000)
            .unwrap()
            .unwrap();
        assert_eq!(
            (refusing.id.as_str(), refusal.code()),
            ("env_a", "DURATION_EXCEEDED")
        );
    }
}
