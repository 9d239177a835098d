//! Newest known state of each workspace's work tree, across all envelopes.

use std::borrow::Cow;

use super::engine::{Engine, sql};
use super::error::StoreResult;
use super::handles::WorkTrees;
use super::work_trees::{Cause, Sighting};

/// A scan that started later than another by this much was made before the machine's last boot.
const LATEST_LOOK_MS: i64 = 600_000;

impl WorkTrees<'_> {
    /// Key of a work tree. Workspaces with the same name on two machines have different keys.
    fn key<'w>(self, workspace: &'w str) -> Cow<'w, str> {
        match &self.0.engine {
            Engine::Sqlite(_) => Cow::Borrowed(workspace),
            Engine::Postgres(postgres) => Cow::Owned(postgres.work_tree_of(workspace)),
        }
    }

    /// Number of edits between the newest known state of a workspace, across all envelopes, and a scan of it: 0 or 1.
    /// An edit between two envelopes counts as 1.
    pub fn edits_over_envelopes(self, seen: &Sighting) -> StoreResult<i64> {
        let newest: Option<(String, i64)> = self.0.engine.maybe(
            "SELECT state, looked_boot_ms FROM core_work_trees WHERE workspace = ?1",
            sql![&*self.key(&seen.workspace)],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        let is_edit = newest.is_some_and(|(state, looked_boot_ms)| {
            let since_start = seen.looked_boot_ms.saturating_add(LATEST_LOOK_MS);
            let is_older = looked_boot_ms <= seen.looked_boot_ms || looked_boot_ms > since_start;
            state != seen.state && is_older
        });
        Ok(i64::from(is_edit))
    }

    /// Newest known state of a workspace's work tree.
    pub fn newest_known_state(self, workspace: &str) -> StoreResult<Option<String>> {
        self.0.engine.maybe(
            "SELECT state FROM core_work_trees WHERE workspace = ?1",
            sql![&*self.key(workspace)],
            |row| row.get(0),
        )
    }

    /// Number of edits of a workspace in all envelopes and between them, by calls and by others. `None` if its work
    /// tree was never scanned.
    pub fn edits_of_workspace(self, workspace: &str) -> StoreResult<Option<u64>> {
        let edits: Option<i64> = self.0.engine.maybe(
            "SELECT edits FROM core_work_trees WHERE workspace = ?1",
            sql![&*self.key(workspace)],
            |row| row.get(0),
        )?;
        Ok(edits.map(|edits| u64::try_from(edits).unwrap_or_default()))
    }

    /// Stores a state as the newest known one of its workspace, unless a later scan found another. A different state
    /// is an edit, unless a test run left it. Requires a write transaction.
    pub fn note_newest(self, seen: &Sighting, cause: Cause) -> StoreResult<()> {
        let sql = "INSERT INTO core_work_trees (workspace, state, looked_boot_ms) VALUES (?1, ?2, ?3)
            ON CONFLICT (workspace) DO UPDATE SET
                edits = core_work_trees.edits
                    + CASE WHEN ?5 AND core_work_trees.state <> excluded.state THEN 1 ELSE 0 END,
                state = excluded.state, looked_boot_ms = excluded.looked_boot_ms
            WHERE core_work_trees.looked_boot_ms <= excluded.looked_boot_ms
                OR core_work_trees.looked_boot_ms > excluded.looked_boot_ms + ?4";
        self.0
            .engine
            .run(
                sql,
                sql![
                    &*self.key(&seen.workspace),
                    seen.state,
                    seen.looked_boot_ms,
                    LATEST_LOOK_MS,
                    cause != Cause::TestRun
                ],
            )
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, Place, envelope, seen};
    use super::super::session::Session;
    use super::*;

    fn session() -> (Place, Session) {
        let (place, database) = fixture::database();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        (place, session)
    }

    #[test]
    fn edits_between_envelopes_count_and_late_news_does_not() {
        let (_place, session) = session();
        for id in ["env_1", "env_2"] {
            session.envelopes().open(&envelope(id, None)).unwrap();
        }
        assert_eq!(
            session.work_trees().edits_over_envelopes(&seen("A", 1)).unwrap(),
            0
        );
        session
            .work_trees()
            .note_baseline("env_1", &seen("A", 1), "op_1", NOW)
            .unwrap();
        // A state that a call left is not an edit, in whichever envelope it is seen next.
        session
            .work_trees()
            .note_sighting_around("env_1", &seen("B", 2), Cause::Call, "op_2", NOW)
            .unwrap();
        assert_eq!(
            session.work_trees().edits_over_envelopes(&seen("B", 3)).unwrap(),
            0
        );
        assert_eq!(
            session.work_trees().edits_over_envelopes(&seen("C", 3)).unwrap(),
            1
        );
        session
            .work_trees()
            .note_baseline("env_2", &seen("C", 3), "op_3", NOW)
            .unwrap();
        // A look that began earlier says nothing new, and stores nothing.
        assert_eq!(
            session.work_trees().edits_over_envelopes(&seen("B", 2)).unwrap(),
            0
        );
        session
            .work_trees()
            .note_newest(&seen("B", 2), Cause::Observed)
            .unwrap();
        assert_eq!(
            session.work_trees().edits_over_envelopes(&seen("C", 4)).unwrap(),
            0
        );
        // After a start of the machine its clock begins again.
        session
            .work_trees()
            .note_newest(&seen("D", 90_000_000), Cause::Observed)
            .unwrap();
        assert_eq!(
            session.work_trees().edits_over_envelopes(&seen("E", 5)).unwrap(),
            1
        );
        session
            .work_trees()
            .note_newest(&seen("E", 5), Cause::Observed)
            .unwrap();
        assert_eq!(
            session.work_trees().edits_over_envelopes(&seen("E", 6)).unwrap(),
            0
        );
        session.commit().unwrap();
    }

    #[test]
    fn edits_of_a_workspace_are_counted_once_over_all_envelopes() {
        let (_place, session) = session();
        for id in ["env_1", "env_2"] {
            session.envelopes().open(&envelope(id, None)).unwrap();
        }
        let edits = || session.work_trees().edits_of_workspace("one").unwrap();
        let note = |id: &str, state: &str, at: i64, cause: Cause| {
            session
                .work_trees()
                .note_sighting(id, &seen(state, at), cause, "op_1", NOW)
                .unwrap();
        };
        assert_eq!(edits(), None);
        note("env_1", "A", 1, Cause::Opened);
        assert_eq!(edits(), Some(0));
        note("env_1", "B", 2, Cause::Observed);
        // What a test run leaves is none, and the other envelope sees the same edit.
        note("env_1", "B and a log", 3, Cause::TestRun);
        note("env_2", "B and a log", 4, Cause::Opened);
        note("env_1", "B and a log", 5, Cause::Observed);
        assert_eq!(edits(), Some(1));
        // Back to where it was: between two envelopes, and by a call.
        note("env_2", "A", 6, Cause::Opened);
        note("env_2", "C", 7, Cause::Call);
        assert_eq!(edits(), Some(3));
        // A late look says nothing new.
        note("env_1", "B", 2, Cause::Observed);
        assert_eq!(edits(), Some(3));
        session.commit().unwrap();
    }
}
