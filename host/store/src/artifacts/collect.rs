//! Collection of artifacts that expired, exceed the limit, or are not named by any row.

use std::collections::BTreeSet;

use tollgate_sdk::Timestamp;

use super::store::ArtifactStore;
use crate::storage::Session;
use crate::storage::StoreResult;

/// Most rows changed at once.
const BATCH_ROWS: u32 = 500;

/// Retention of the rows of removed artifacts.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// Now, in milliseconds since 1970 UTC.
    pub now_ms: i64,
    /// Rows that expired before this time are removed as well, RFC 3339.
    pub rows_since: &'a str,
}

/// Removes expired and excess artifacts by a time that the ledger confirms. `commit` runs a change of the database in
/// a transaction, and returns whether to continue.
pub fn collect(
    store: &ArtifactStore,
    session: &Session,
    kept: Kept<'_>,
    mut commit: impl FnMut(Box<dyn Fn(&Session) -> StoreResult<()> + Send>) -> bool,
) -> anyhow::Result<()> {
    let now = Timestamp::from_ms(session.ledger().confirmed_ms(kept.now_ms)?).to_string();
    let most = i64::try_from(store.limit()).unwrap_or(i64::MAX);
    loop {
        let over = session.artifacts().over(&now, most, BATCH_ROWS)?;
        if over.is_empty() {
            break;
        }
        let ids: Vec<String> = over.iter().map(|(id, _)| id.clone()).collect();
        if !commit(Box::new(move |session| session.artifacts().mark_collected(&ids))) {
            return Ok(());
        }
        let hashes: BTreeSet<String> = over.into_iter().map(|(_, hash)| hash).collect();
        for hash in &hashes {
            if !session.artifacts().is_live(hash)? {
                store.contents.remove(hash)?;
            }
        }
    }
    let since = kept.rows_since.to_owned();
    while session.artifacts().has_before(&since)? {
        let since = since.clone();
        if !commit(Box::new(move |session| {
            session.artifacts().forget(&since, BATCH_ROWS)
        })) {
            return Ok(());
        }
    }
    store.contents.sweep_rows()?;
    store.contents.sweep_files(session)?;
    Ok(store.look()?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::fixture::{self, Place};
    use super::super::{Artifact, ArtifactSettings};
    use super::*;
    use crate::storage::fixture::{YOUNG, on_postgres, operation};

    const DAY_MS: i64 = 86_400_000;
    const NOW: i64 = 1_000 * DAY_MS;

    struct Stage {
        store: Arc<ArtifactStore>,
        session: Session,
        place: Place,
    }

    fn stage(most: u64) -> Stage {
        let (place, store) = Place::with(ArtifactSettings {
            max_mib: most,
            ..fixture::settings()
        });
        Stage {
            store,
            session: place.session(),
            place,
        }
    }

    impl Stage {
        /// An operation with an artifact of so many MiB that was made and expires so many days from now.
        fn keep(&self, number: usize, fill: u8, mib: usize, made: i64, expires: i64) {
            self.keep_for("", number, fill, mib, (made, expires));
        }

        /// The same of somebody.
        fn keep_for(&self, holder: &str, number: usize, fill: u8, mib: usize, (made, expires): (i64, i64)) {
            let content = vec![fill; mib << 20];
            let time = |days: i64| Timestamp::from_ms(NOW + days * DAY_MS).to_string();
            let artifact = Artifact {
                holder: holder.to_owned(),
                created_at: time(made),
                expires_at: time(expires),
                ..fixture::artifact(number, &content)
            };
            self.store.put(&content, &artifact.id).unwrap();
            let mut operation = operation(number, None, YOUNG);
            operation.artifacts = vec![artifact];
            self.session.begin_write().unwrap();
            self.session.ledger().record(&operation).unwrap();
            self.session.commit().unwrap();
        }

        /// Collects, and returns the artifacts that are left and the number of files.
        fn collect(&self) -> (Vec<String>, usize) {
            let kept = Kept {
                now_ms: NOW,
                rows_since: &Timestamp::from_ms(NOW - 14 * DAY_MS).to_string(),
            };
            collect(&self.store, &self.session, kept, |work| {
                self.session.begin_write().unwrap();
                work(&self.session).unwrap();
                self.session.commit().is_ok()
            })
            .unwrap();
            let live = (0..9).map(|number| format!("art_{number}")).filter(|id| {
                let found = self.session.artifacts().get(id).unwrap();
                found.is_some_and(|found| !found.collected)
            });
            (live.collect(), self.store.contents.names().len())
        }
    }

    #[test]
    fn a_clock_set_forward_expires_nothing_until_calls_confirm_it() {
        let stage = stage(100);
        let time = |days: i64| Timestamp::from_ms(NOW + days * DAY_MS).to_string();
        let call = |number: usize, days: i64| {
            let row = operation(number, None, &time(days));
            stage.session.begin_write().unwrap();
            stage.session.ledger().record(&row).unwrap();
            stage.session.commit().unwrap();
        };
        let kept_at = |days: i64| {
            let since = time(days - 14);
            let kept = Kept {
                now_ms: NOW + days * DAY_MS,
                rows_since: &since,
            };
            collect(&stage.store, &stage.session, kept, |work| {
                stage.session.begin_write().unwrap();
                work(&stage.session).unwrap();
                stage.session.commit().is_ok()
            })
            .unwrap();
            stage
                .session
                .artifacts()
                .get("art_1")
                .unwrap()
                .is_some_and(|found| !found.collected)
        };
        stage.keep(1, 1, 1, 0, 7);
        call(20, 0);
        assert!(kept_at(400), "the last call was on the day of the artifact");
        call(21, 400);
        assert!(kept_at(400), "the call by the new clock is younger than an hour");
        assert!(!kept_at(401));
    }

    #[test]
    fn what_expired_goes_but_not_content_that_another_still_names() {
        let stage = stage(100);
        stage.keep(0, 1, 1, -5, -1);
        stage.keep(1, 1, 1, -2, 1);
        stage.keep(2, 2, 1, -5, -1);
        stage.keep(3, 3, 1, -20, -15);
        assert_eq!(stage.collect(), (vec!["art_1".to_owned()], 1));
        assert!(stage.session.artifacts().get("art_2").unwrap().unwrap().collected);
        assert_eq!(
            stage.session.artifacts().get("art_3").unwrap(),
            None,
            "it went long ago"
        );
    }

    #[test]
    fn the_oldest_goes_when_room_is_short() {
        let stage = stage(3);
        for number in 0..4 {
            let made = i64::try_from(number).unwrap() - 4;
            stage.keep(number, u8::try_from(number).unwrap(), 1, made, 1);
        }
        let left = ["art_1", "art_2", "art_3"].map(str::to_owned).to_vec();
        assert_eq!(stage.collect(), (left, 3));
    }

    #[test]
    fn what_goes_is_of_the_holder_that_has_the_most() {
        let stage = stage(4);
        stage.keep_for("bob", 0, 0, 1, (-9, 1));
        for number in 1..6 {
            let made = i64::try_from(number).unwrap() - 7;
            stage.keep_for("ada", number, u8::try_from(number).unwrap(), 1, (made, 1));
        }
        stage.keep_for("bob", 6, 6, 1, (-8, 1));
        let left = ["art_0", "art_4", "art_5", "art_6"].map(str::to_owned).to_vec();
        assert_eq!(stage.collect(), (left, 4), "both have the same now");
    }

    #[test]
    fn a_host_of_a_server_that_keeps_nothing_leaves_the_limit_to_those_that_do() {
        if !on_postgres() {
            return;
        }
        let mut stage = stage(3);
        for number in 0..4 {
            stage.keep(number, u8::try_from(number).unwrap(), 1, -1, 1);
        }
        let settings = ArtifactSettings {
            max_mib: 1,
            ..ArtifactSettings::default()
        };
        let (_dir, off) = stage.place.elsewhere(settings);
        let on = std::mem::replace(&mut stage.store, off);
        assert_eq!(stage.collect().1, 4);
        assert!(!stage.store.is_crowded().unwrap());
        stage.store = on;
        assert_eq!(stage.collect().1, 3);
    }

    #[test]
    fn content_whose_row_may_still_come_stays() {
        let stage = stage(100);
        stage
            .store
            .put(b"its row comes with the commit", "art_1")
            .unwrap();
        assert_eq!(stage.collect(), (Vec::new(), 1));
        fixture::age(&stage.place, &stage.store);
        assert_eq!(stage.collect(), (Vec::new(), 0));
    }
}
