//! Memory of policies: entries that are committed with the rows of the calls that the policies judged.

use tollgate_sdk::policy::{MemoryChange, Remembered};

use super::engine::{Dialects, Row, sql};
use super::error::StoreResult;
use super::handles::PolicyMemory;

/// Most expired entries that are removed for each change.
const EXPIRED_BATCH: u32 = 16;
/// Columns of an entry, for [`entry`].
const COLUMNS: &str = "key, text, number, until_ms";

/// Owner of the memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryOwner {
    /// Component name: `policy-` and the policy's name.
    pub component: String,
    /// True for the memory of audit mode.
    pub audit: bool,
}

/// Change that a policy makes to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recollection {
    /// Owner of the memory.
    pub owner: MemoryOwner,
    /// Key of the entry.
    pub key: String,
    /// Change of the entry.
    pub change: MemoryChange,
    /// Time of the judged call in milliseconds since 1970 UTC.
    pub at_ms: i64,
}

impl PolicyMemory<'_> {
    /// Entry of a key, unless it has expired.
    pub fn get(self, owner: &MemoryOwner, key: &str, now_ms: i64) -> StoreResult<Option<Remembered>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM core_policy_memory WHERE component = ?1 AND audit = ?2 AND key = ?3"
        );
        let found = self
            .0
            .engine
            .maybe(&sql, sql![owner.component, owner.audit, key], entry)?;
        Ok(found.filter(|found| !found.is_over(now_ms)))
    }

    /// Entries from a key on, sorted by key, without expired ones. At most `limit`.
    pub fn list_from(
        self,
        owner: &MemoryOwner,
        from: &str,
        now_ms: i64,
        limit: usize,
    ) -> StoreResult<Vec<Remembered>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let values = sql![owner.component, owner.audit, from, now_ms, limit];
        let sql = format!(
            "SELECT {COLUMNS} FROM core_policy_memory
            WHERE component = ?1 AND audit = ?2 AND key >= ?3 AND (until_ms IS NULL OR until_ms > ?4)
            ORDER BY key LIMIT ?5"
        );
        self.0.engine.all(&sql, values, entry)
    }

    /// Bytes of all entries of a component, including expired ones.
    pub fn bytes(self, component: &str) -> StoreResult<u64> {
        let sql = "SELECT coalesce(max(bytes), 0) FROM core_policy_memory_use WHERE component = ?1";
        let bytes: i64 = self.0.engine.one(sql, sql![component], |row| row.get(0))?;
        Ok(u64::try_from(bytes).unwrap_or_default())
    }

    /// Bytes of a component's expired entries.
    pub fn forgettable_bytes(self, component: &str, now_ms: i64) -> StoreResult<u64> {
        let sql =
            "SELECT coalesce(sum(bytes), 0) FROM core_policy_memory WHERE component = ?1 AND until_ms <= ?2";
        let bytes: i64 = self
            .0
            .engine
            .one(sql, sql![component, now_ms], |row| row.get(0))?;
        Ok(u64::try_from(bytes).unwrap_or_default())
    }

    /// Changes an entry. Requires a write transaction, in which no concurrent addition is lost.
    pub(super) fn write(self, wanted: &Recollection) -> StoreResult<()> {
        let Recollection {
            owner,
            key,
            change,
            at_ms,
        } = wanted;
        let mut grown = -self.forget_expired_entries(&owner.component, *at_ms)?;
        // An expired entry that was not removed yet still uses its bytes.
        let before = self.get(owner, key, i64::MIN)?;
        grown -= bytes(before.as_ref());
        let after = change.apply(key, before, *at_ms);
        grown += bytes(after.as_ref());
        match &after {
            None => {
                let sql = "DELETE FROM core_policy_memory WHERE component = ?1 AND audit = ?2 AND key = ?3";
                self.0.engine.run(sql, sql![owner.component, owner.audit, key])?;
            }
            Some(entry) => {
                let sql = "INSERT INTO core_policy_memory (component, audit, key, text, number, until_ms, bytes)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                    ON CONFLICT (component, audit, key) DO UPDATE SET text = excluded.text, number = excluded.number,
                        until_ms = excluded.until_ms, bytes = excluded.bytes";
                let bytes = bytes(Some(entry));
                let values = sql![
                    owner.component,
                    owner.audit,
                    key,
                    entry.text,
                    entry.number,
                    entry.until_ms,
                    bytes,
                ];
                self.0.engine.run(sql, values)?;
            }
        }
        self.note_use(&owner.component, grown)
    }

    /// Removes some expired entries, and returns their bytes.
    fn forget_expired_entries(self, component: &str, now_ms: i64) -> StoreResult<i64> {
        let sql = self.0.engine.text(Dialects {
            sqlite: "DELETE FROM core_policy_memory WHERE rowid IN (SELECT rowid FROM core_policy_memory
             WHERE component = ?1 AND until_ms <= ?2 ORDER BY until_ms LIMIT ?3) RETURNING bytes",
            postgres:
                "DELETE FROM core_policy_memory WHERE ctid = ANY (ARRAY(SELECT ctid FROM core_policy_memory
             WHERE component = ?1 AND until_ms <= ?2 ORDER BY until_ms LIMIT ?3)) RETURNING bytes",
        });
        let freed: Vec<i64> = self
            .0
            .engine
            .all(sql, sql![component, now_ms, EXPIRED_BATCH], |row| row.get(0))?;
        Ok(freed.into_iter().sum())
    }

    fn note_use(self, component: &str, grown: i64) -> StoreResult<()> {
        if grown == 0 {
            return Ok(());
        }
        let sql = "INSERT INTO core_policy_memory_use (component, bytes) VALUES (?1, ?3)
            ON CONFLICT (component) DO UPDATE SET bytes =
                CASE WHEN core_policy_memory_use.bytes + ?2 > 0 THEN core_policy_memory_use.bytes + ?2 ELSE 0 END";
        self.0
            .engine
            .run(sql, sql![component, grown, grown.max(0)])
            .map(drop)
    }
}

fn bytes(entry: Option<&Remembered>) -> i64 {
    entry.map_or(0, |entry| i64::try_from(entry.bytes()).unwrap_or(i64::MAX))
}

fn entry(row: &Row<'_>) -> StoreResult<Remembered> {
    Ok(Remembered {
        key: row.get(0)?,
        text: row.get(1)?,
        number: row.get(2)?,
        until_ms: row.get(3)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::Alone;
    use super::*;

    fn owner(audit: bool) -> MemoryOwner {
        MemoryOwner {
            component: "policy-strikes".to_owned(),
            audit,
        }
    }

    fn add(key: &str, amount: i64, until_ms: Option<i64>, at_ms: i64) -> Recollection {
        Recollection {
            owner: owner(false),
            key: key.to_owned(),
            change: MemoryChange::Add { amount, until_ms },
            at_ms,
        }
    }

    fn session() -> Alone {
        let session = super::super::fixture::session();
        session.begin_write().unwrap();
        session
    }

    #[test]
    fn additions_add_up_until_their_time_is_over() {
        let session = session();
        let number = |now_ms: i64| {
            let found = session.policy_memory().get(&owner(false), "ada", now_ms).unwrap();
            found.map(|entry| entry.number)
        };
        session
            .policy_memory()
            .write(&add("ada", 2, Some(1_000), 10))
            .unwrap();
        // The second one came too late to choose the time.
        session
            .policy_memory()
            .write(&add("ada", 3, Some(9_000), 20))
            .unwrap();
        assert_eq!((number(30), number(1_000)), (Some(5), None));
        assert_eq!(
            session.policy_memory().get(&owner(true), "ada", 30).unwrap(),
            None
        );
        session
            .policy_memory()
            .write(&add("ada", 1, Some(9_000), 1_000))
            .unwrap();
        assert_eq!(number(1_001), Some(1));
        session.commit().unwrap();
    }

    #[test]
    fn bytes_are_those_of_the_entries_whatever_happens_to_them() {
        let session = session();
        let used = || session.policy_memory().bytes("policy-strikes").unwrap();
        let put = |key: &str, text: &str, until_ms: Option<i64>, at_ms: i64| {
            let change = MemoryChange::Put {
                text: text.to_owned(),
                until_ms,
            };
            session
                .policy_memory()
                .write(&Recollection {
                    change,
                    ..add(key, 0, None, at_ms)
                })
                .unwrap();
        };
        put("a", "text", Some(100), 0);
        put("b", "", None, 0);
        put("a", "longer text", Some(100), 0);
        let of = |key: &str, text: &str| {
            let text = Some(text.to_owned());
            Remembered {
                text,
                ..Remembered::new(key)
            }
            .bytes()
        };
        assert_eq!(used(), of("a", "longer text") + of("b", ""));
        assert_eq!(
            session
                .policy_memory()
                .forgettable_bytes("policy-strikes", 100)
                .unwrap(),
            of("a", "longer text")
        );
        put("c", "x", None, 100);
        assert_eq!(used(), of("b", "") + of("c", "x"));
        for key in ["b", "c", "nothing"] {
            let change = MemoryChange::Forget;
            session
                .policy_memory()
                .write(&Recollection {
                    change,
                    ..add(key, 0, None, 100)
                })
                .unwrap();
        }
        assert_eq!(used(), 0);
        session.commit().unwrap();
    }

    #[test]
    fn entries_are_listed_by_key() {
        let session = session();
        for key in ["b/2", "a/1", "b/1", "c"] {
            session
                .policy_memory()
                .write(&add(key, 1, (key == "b/1").then_some(5), 0))
                .unwrap();
        }
        let keys = |from: &str, now_ms: i64, limit: usize| {
            let found = session
                .policy_memory()
                .list_from(&owner(false), from, now_ms, limit)
                .unwrap();
            found.into_iter().map(|entry| entry.key).collect::<Vec<_>>()
        };
        assert_eq!(keys("", 0, 9), ["a/1", "b/1", "b/2", "c"]);
        assert_eq!(keys("b", 5, 1), ["b/2"]);
        session.commit().unwrap();
    }
}
