//! Checks after a kill, in one snapshot of the database.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::host::Recipe;
use crate::known::{Acknowledged, Outcome, Shared};
use crate::load::{self, ALL};
use crate::promise::{Broken, Promise};

/// Extent of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// New data since the last check: replies, rows, counters, and leftovers of dead hosts.
    Quick,
    /// All data, with the packs' tables, the whole chain and the whole file.
    Everything,
}

/// Number of attempts to take a lock, and the pause in between.
const LOOKS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// Checks a data directory repeatedly.
pub(crate) struct Checker {
    recipe: Recipe,
    /// Replies that are already checked.
    replies: Vec<Acknowledged>,
    /// The last row that is already checked.
    seen: i64,
    /// The head of the chain at the last check, as `SEQ:HASH`.
    head: Option<String>,
}

impl Checker {
    pub(crate) fn new(recipe: Recipe) -> Checker {
        Checker {
            recipe,
            replies: Vec::new(),
            seen: 0,
            head: None,
        }
    }

    /// Number of checked replies.
    pub(crate) fn checked(&self) -> usize {
        self.replies.len()
    }

    /// All broken promises.
    pub(crate) fn check(&mut self, shared: &Shared, depth: Depth) -> anyhow::Result<Vec<Broken>> {
        // Taken before the snapshot, so that it must hold all of them.
        let (new, mut broken) = {
            let mut known = shared.known();
            (
                std::mem::take(&mut known.replies),
                std::mem::take(&mut known.broken),
            )
        };
        // Looked at before the rows, which may be ahead of them.
        let seen_files = match depth {
            Depth::Quick => None,
            Depth::Everything => Some(self.recipe.place.look()?),
        };
        let mut db = self.open()?;
        let snapshot = db.transaction()?;
        let (first, seen) = match depth {
            Depth::Quick => (self.replies.len(), self.seen),
            Depth::Everything => (0, 0),
        };
        self.replies.extend(new);
        for reply in self.replies.iter().skip(first) {
            broken.extend(durable(&snapshot, reply)?);
        }
        for (promise, sql) in RULES {
            broken.extend(rule(&snapshot, *promise, sql, seen)?);
        }
        broken.extend(self.buried(&snapshot)?);
        let last = "SELECT coalesce(max(seq), 0) FROM core_operations";
        self.seen = snapshot.query_row(last, [], |row| row.get(0))?;
        if let Some(files) = seen_files {
            for load in ALL {
                broken.extend(load.check(&snapshot, &files)?);
            }
            let sound: String = snapshot.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
            if sound != "ok" {
                broken.push(Broken::new(Promise::Sound, sound));
            }
            drop(snapshot);
            broken.extend(self.chained()?);
        }
        Ok(broken)
    }

    /// Broken promises of files that were just rendered, while nobody calls.
    pub(crate) fn rendered(&self) -> anyhow::Result<Vec<Broken>> {
        load::shown(&self.open()?, &self.recipe.place.look()?)
    }

    fn open(&self) -> anyhow::Result<Connection> {
        let path = self.recipe.place.database();
        let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        db.busy_timeout(Duration::from_secs(10))?;
        Ok(db)
    }

    /// Checks that everything that dead hosts left open is closed, and nothing of living hosts. A host is alive as long
    /// as it holds the lock on its file. No host starts during this check, so probing the locks is safe.
    fn buried(&self, db: &Connection) -> anyhow::Result<Vec<Broken>> {
        let alive = self.alive()?;
        let hosts = |sql| -> rusqlite::Result<Vec<(String, String)>> {
            db.prepare(sql)?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        };
        let mut broken = Vec::new();
        for (id, host) in hosts("SELECT id, host_id FROM core_envelopes WHERE state = 'OPEN'")? {
            if !alive.contains(&host) {
                let what = format!("envelope {id} is open, and its host {host} is gone");
                broken.push(Broken::new(Promise::Buried, what));
            }
        }
        for (id, host) in hosts("SELECT id, host_id FROM core_envelopes WHERE closed_by = 'HOST_GONE'")? {
            if alive.contains(&host) && self.keeps_its_lock(&host)? {
                let what = format!("envelope {id} was closed as its host's end, and {host} is alive");
                broken.push(Broken::new(Promise::Buried, what));
            }
        }
        for (id, host) in hosts("SELECT op_id, host_id FROM core_intents")? {
            if !alive.contains(&host) {
                let what = format!("operation {id} is still to come, and its host {host} is gone");
                broken.push(Broken::new(Promise::Buried, what));
            }
        }
        for (id, host) in
            hosts("SELECT id, host_id FROM core_tasks WHERE state IN ('working', 'input_required')")?
        {
            if !alive.contains(&host) {
                let what = format!("task {id} is open, and its host {host} is gone");
                broken.push(Broken::new(Promise::Buried, what));
            }
        }
        Ok(broken)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the torture looks into its own directory"
    )]
    fn alive(&self) -> anyhow::Result<HashSet<String>> {
        let mut alive = HashSet::new();
        for entry in std::fs::read_dir(self.recipe.place.data.join("hosts"))? {
            let entry = entry?;
            let Ok(file) = std::fs::File::open(entry.path()) else {
                continue;
            };
            if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
                alive.insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(alive)
    }

    /// True if a host holds its lock all the time, as a living host does. A host that takes over the files of a dead
    /// one holds the dead host's lock for a while.
    #[allow(
        clippy::disallowed_methods,
        reason = "the torture looks into its own directory"
    )]
    fn keeps_its_lock(&self, host: &str) -> anyhow::Result<bool> {
        for _ in 0..LOOKS {
            let Ok(file) = std::fs::File::open(self.recipe.place.data.join("hosts").join(host)) else {
                return Ok(false);
            };
            if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                return Ok(false);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(true)
    }

    /// Verifies the chain, and that the chain contains the head of the last check.
    fn chained(&mut self) -> anyhow::Result<Option<Broken>> {
        let mut command = self.recipe.command();
        command.args(["--json", "ledger", "verify"]);
        if let Some(head) = &self.head {
            command.args(["--head", head]);
        }
        let output = command.output().context("the ledger could not be verified")?;
        let said: Value = serde_json::from_slice(&output.stdout).with_context(|| {
            let log = String::from_utf8_lossy(&output.stderr);
            format!("verifying said nothing: {log}")
        })?;
        if !output.status.success() {
            return Ok(Some(Broken::new(Promise::Chained, said.to_string())));
        }
        let (seq, hash) = (&said["head"]["seq"], &said["head"]["hash"]);
        self.head = hash.as_str().map(|hash| format!("{seq}:{hash}"));
        Ok(None)
    }
}

/// Checks that the ledger has the row of a reply.
fn durable(db: &Connection, reply: &Acknowledged) -> rusqlite::Result<Option<Broken>> {
    let row = db
        .prepare_cached(
            "SELECT tool, success, error_code, result_hash FROM core_operations WHERE op_id = ?1",
        )?
        .query_row([&reply.op_id], |row| {
            let code: Option<String> = row.get(2)?;
            let hash: Option<String> = row.get(3)?;
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, Option<bool>>(1)?,
                code,
                hash,
            ))
        })
        .optional()?;
    let broken = |what: &str| {
        let what = format!(
            "{} of {}: {what}; the client has {:?}",
            reply.op_id, reply.tool, reply.outcome
        );
        Ok(Some(Broken::new(Promise::Durable, what)))
    };
    let Some((tool, success, code, hash)) = row else {
        return if reply.reads {
            Ok(None)
        } else {
            broken("the row is gone")
        };
    };
    let same = match &reply.outcome {
        Outcome::Done(content) => success == Some(true) && hash.as_ref() == Some(content),
        Outcome::Refused(refusal) => success == Some(false) && code.as_ref() == Some(refusal),
    };
    if tool != reply.tool || !same {
        return broken(&format!("the row says {tool}, {success:?}, {code:?}, {hash:?}"));
    }
    Ok(None)
}

/// Queries that must find nothing in the rows after `?1` and their envelopes. A found text says what is wrong.
const RULES: &[(Promise, &str)] = &[
    (
        Promise::Counted,
        "SELECT 'envelope ' || id || ' counts ' || mutation_count || ' mutations, the ledger ' || recorded
         FROM (SELECT id, mutation_count,
                 (SELECT count(*) FROM core_operations WHERE envelope_id = core_envelopes.id AND op_type = 'mutation'
                    AND coalesce(failure_class, '') <> 'refused')
                 + (SELECT count(*) FROM core_intents WHERE json_extract(operation, '$.envelope_id') = core_envelopes.id
                    AND json_extract(operation, '$.op_type') = 'mutation') AS recorded
               FROM core_envelopes WHERE id IN (SELECT envelope_id FROM core_operations WHERE seq > ?1))
         WHERE recorded <> mutation_count",
    ),
    (
        Promise::Counted,
        "SELECT 'envelope ' || id || ' counts ' || test_run_count || ' test runs, the ledger ' || recorded
         FROM (SELECT id, test_run_count,
                 (SELECT count(*) FROM core_operations WHERE envelope_id = core_envelopes.id AND op_type = 'test_run'
                    AND coalesce(failure_class, '') <> 'refused')
                 + (SELECT count(*) FROM core_intents WHERE json_extract(operation, '$.envelope_id') = core_envelopes.id
                    AND json_extract(operation, '$.op_type') = 'test_run') AS recorded
               FROM core_envelopes WHERE id IN (SELECT envelope_id FROM core_operations WHERE seq > ?1))
         WHERE recorded <> test_run_count",
    ),
    (
        Promise::Counted,
        "SELECT 'envelope ' || id || ' had ' || max_mutations || ' mutations and counts ' || mutation_count
         FROM core_envelopes WHERE id IN (SELECT envelope_id FROM core_operations WHERE seq > ?1)
           AND (mutation_count > max_mutations OR test_run_count > max_test_runs)",
    ),
    (
        Promise::Whole,
        "SELECT 'request ' || request_id || ' of ' || connection || ' has ' || count(*) || ' rows'
         FROM core_operations WHERE seq > ?1 AND request_id IS NOT NULL
         GROUP BY connection, request_id HAVING count(*) > 1",
    ),
];

fn rule(db: &Connection, promise: Promise, sql: &str, seen: i64) -> rusqlite::Result<Vec<Broken>> {
    db.prepare_cached(sql)?
        .query_map([seen], |row| Ok(Broken::new(promise, row.get::<_, String>(0)?)))?
        .collect()
}
