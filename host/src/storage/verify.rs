//! Following the ledger's chain of hashes from end to end.

use serde::Serialize;

use super::ledger::{COLUMNS, GENESIS, Head, RowHasher};
use super::session::Session;

const SELECT: &str = "SELECT seq, op_id, envelope_id, timestamp, duration_ms, op_type, success, pack,
    tool, effect, error_code, failure_class, limit_triggered, actor, client, connection, request_id, host_id, args_hash,
    result_hash, repo_before_hash, repo_after_hash, changed_paths, diff_stats, short_diff, mutation_fingerprint,
    failure_fingerprint, failing_tests, events, verdicts, artifact_ids, prev_hash, hash
    FROM core_operations ORDER BY seq";

/// What verifying found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// How many rows hold together.
    pub rows: u64,
    /// The end of the chain.
    pub head: Head,
    /// The first thing that is wrong, if anything is.
    pub broken: Option<Broken>,
}

/// Where the chain breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The row.
    pub seq: i64,
    /// What is wrong with it.
    pub what: String,
}

impl Session {
    /// Follows the chain from its start, or from the last anchor, to its end. `head` is one that was
    /// exported before: it must be on the chain, or rows were taken from its end.
    pub fn verify(&self, head: Option<&Head>) -> rusqlite::Result<Verified> {
        let mut at = self.anchor()?;
        let mut rows_seen = 0_u64;
        let mut head_seen = head.is_none_or(|head| *head == at || head.seq < at.seq);
        let mut statement = self.db.prepare(SELECT)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            match check_row(row, &at)? {
                Ok(next) => at = next,
                Err(broken) => {
                    return Ok(Verified {
                        rows: rows_seen,
                        head: at,
                        broken: Some(broken),
                    });
                }
            }
            rows_seen += 1;
            head_seen |= head == Some(&at);
        }
        let broken = match head {
            Some(head) if !head_seen => Some(Broken {
                seq: head.seq,
                what: "the exported head is not on the chain: rows were removed from its end, or history was rewritten".to_owned(),
            }),
            _ => self.missing_trigger()?,
        };
        Ok(Verified {
            rows: rows_seen,
            head: at,
            broken,
        })
    }

    fn anchor(&self) -> rusqlite::Result<Head> {
        let mut statement = self
            .db
            .prepare_cached("SELECT seq, hash FROM core_anchors ORDER BY seq DESC LIMIT 1")?;
        let mut rows = statement.query([])?;
        Ok(match rows.next()? {
            Some(row) => Head {
                seq: row.get(0)?,
                hash: row.get(1)?,
            },
            None => Head {
                seq: 0,
                hash: GENESIS.to_owned(),
            },
        })
    }

    /// Without its triggers the table could be changed through SQL.
    fn missing_trigger(&self) -> rusqlite::Result<Option<Broken>> {
        let mut statement = self.db.prepare(
            "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'core_operations'",
        )?;
        let triggers: i64 = statement.query_row([], |row| row.get(0))?;
        Ok((triggers != 3).then(|| Broken {
            seq: 0,
            what: format!("the ledger has {triggers} triggers instead of 3: it was open to changes"),
        }))
    }
}

/// One row against the one before it.
fn check_row(row: &rusqlite::Row<'_>, before: &Head) -> rusqlite::Result<Result<Head, Broken>> {
    let seq: i64 = row.get(0)?;
    let broken = |seq: i64, what: &str| {
        Ok(Err(Broken {
            seq,
            what: what.to_owned(),
        }))
    };
    if seq != before.seq + 1 {
        return broken(before.seq + 1, "the row is missing");
    }
    let text = |column: usize| {
        row.get_ref(column)
            .map(|value| value.as_str().unwrap_or_default())
    };
    if text(COLUMNS + 1)? != before.hash {
        return broken(
            seq,
            "the row does not follow the one before it: it was inserted or replaced",
        );
    }
    let mut hasher = RowHasher::new(seq, &before.hash);
    for column in 1..=COLUMNS {
        hasher.add(row.get_ref(column)?);
    }
    let hash = hasher.finish();
    if text(COLUMNS + 2)? != hash {
        return broken(seq, "the row was changed");
    }
    Ok(Ok(Head { seq, hash }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packs::Effect;
    use crate::storage::{Database, OpType, Operation};

    fn operation(op_id: &str) -> Operation {
        Operation {
            op_id: op_id.to_owned(),
            envelope_id: None,
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            duration_ms: 0.5,
            op_type: OpType::Mutation,
            success: Some(true),
            pack: "p".to_owned(),
            tool: "t".to_owned(),
            effect: Effect::Write,
            error_code: None,
            failure_class: None,
            limit_triggered: None,
            actor: None,
            client: None,
            connection: "c".to_owned(),
            request_id: None,
            host_id: "h".to_owned(),
            args_hash: "a".to_owned(),
            result_hash: None,
            repo_before_hash: None,
            repo_after_hash: None,
            changed_paths: None,
            diff_stats: None,
            short_diff: None,
            mutation_fingerprint: None,
            failure_fingerprint: None,
            failing_tests: None,
            events: None,
            verdicts: None,
            artifact_ids: None,
        }
    }

    fn with_rows(count: usize) -> (tempfile::TempDir, Session) {
        let place = tempfile::tempdir().unwrap();
        let database = Database::open(&place.path().join("t.db")).unwrap();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        for number in 0..count {
            session.record(&operation(&format!("op_{number}"))).unwrap();
        }
        session.commit().unwrap();
        (place, session)
    }

    #[test]
    fn rows_only_come_after_the_last_and_stay() {
        let (_place, session) = with_rows(2);
        for sql in [
            "UPDATE core_operations SET tool = 'x'",
            "DELETE FROM core_operations",
            "INSERT OR REPLACE INTO core_operations SELECT * FROM core_operations WHERE seq = 1",
            "UPDATE OR REPLACE core_operations SET seq = 1 WHERE seq = 2",
        ] {
            let err = session.db.execute(sql, []).unwrap_err().to_string();
            assert!(err.contains("append-only"), "{sql}: {err}");
        }
        assert_eq!(session.verify(None).unwrap().rows, 2);
    }

    #[test]
    fn whatever_is_done_to_a_row_is_named() {
        let wanted = [
            (
                "UPDATE core_operations SET tool = 'x' WHERE seq = 3",
                3,
                "changed",
            ),
            (
                "UPDATE core_operations SET error_code = '' WHERE seq = 2",
                2,
                "changed",
            ),
            (
                "UPDATE core_operations SET duration_ms = 1 WHERE seq = 5",
                5,
                "changed",
            ),
            ("DELETE FROM core_operations WHERE seq = 4", 4, "missing"),
            ("UPDATE core_operations SET seq = 9 WHERE seq = 5", 5, "missing"),
            (
                "UPDATE core_operations SET prev_hash = hash WHERE seq = 2",
                2,
                "inserted or replaced",
            ),
            (
                "UPDATE core_operations SET op_id = 'other', hash = hash WHERE seq = 1",
                1,
                "changed",
            ),
        ];
        for (sql, seq, what) in wanted {
            let (_place, session) = with_rows(5);
            let head = session.head().unwrap();
            assert_eq!(session.verify(Some(&head)).unwrap().broken, None);
            session
                .db
                .execute_batch(
                    "DROP TRIGGER core_operations_no_update; DROP TRIGGER core_operations_no_delete;",
                )
                .unwrap();
            session.db.execute_batch(sql).unwrap();
            let broken = session.verify(None).unwrap().broken.unwrap();
            assert_eq!(broken.seq, seq, "{sql}: {broken:?}");
            assert!(broken.what.contains(what), "{sql}: {broken:?}");
        }
    }

    #[test]
    fn rows_taken_from_the_end_are_found_with_a_head() {
        let (_place, session) = with_rows(5);
        let head = session.head().unwrap();
        session
            .db
            .execute_batch("DROP TRIGGER core_operations_no_delete")
            .unwrap();
        session
            .db
            .execute_batch("DELETE FROM core_operations WHERE seq = 5")
            .unwrap();
        assert!(
            session
                .verify(Some(&head))
                .unwrap()
                .broken
                .unwrap()
                .what
                .contains("not on the chain")
        );
        assert!(
            session
                .verify(None)
                .unwrap()
                .broken
                .unwrap()
                .what
                .contains("triggers")
        );
    }
}
