//! Checks after a kill, in one snapshot of the database.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

use crate::host::Recipe;
use crate::known::{Acknowledged, Outcome, Shared};
use crate::load::{self, ALL};
use crate::look::{Look, Row, quoted};
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
const LOCK_INTERVAL: Duration = Duration::from_millis(10);
/// Number of replies whose rows are queried at once.
const AT_ONCE: usize = 500;

/// Checks a database and its data directories repeatedly.
pub(crate) struct Checker {
    recipe: Recipe,
    /// Replies that are already checked.
    replies: Vec<Acknowledged>,
    /// The last row that is already checked.
    seen: i64,
    /// The head of the chain at the last check, as `SEQ:HASH`.
    head: Option<String>,
    /// Hosts that others may consider gone, although they are alive.
    zombies: HashSet<String>,
}

impl Checker {
    pub(crate) fn new(recipe: Recipe) -> Checker {
        Checker {
            recipe,
            replies: Vec::new(),
            seen: 0,
            head: None,
            zombies: HashSet::new(),
        }
    }

    /// Records that others may consider the hosts of a data directory gone, although they are alive.
    pub(crate) fn expect_burial(&mut self, data: &Path) -> anyhow::Result<()> {
        self.zombies.extend(alive_in(&data.join("hosts"))?);
        Ok(())
    }

    /// Number of checked replies.
    pub(crate) fn checked(&self) -> usize {
        self.replies.len()
    }

    /// All broken promises.
    pub(crate) fn check(&mut self, shared: &Shared, depth: Depth) -> anyhow::Result<Vec<Broken>> {
        // Taken before the snapshot, so that the snapshot must contain all of these replies.
        let (new, mut broken) = {
            let mut known = shared.known();
            (
                std::mem::take(&mut known.replies),
                std::mem::take(&mut known.broken),
            )
        };
        // Read before the rows, which may be newer.
        let seen_files = match depth {
            Depth::Quick => None,
            Depth::Everything => Some(self.recipe.place.look()?),
        };
        let snapshot = self.recipe.place.database.look()?;
        let snapshot = snapshot.as_ref();
        let (first, seen) = match depth {
            Depth::Quick => (self.replies.len(), self.seen),
            Depth::Everything => (0, 0),
        };
        self.replies.extend(new);
        for replies in self.replies[first..].chunks(AT_ONCE) {
            broken.extend(durable(snapshot, replies)?);
        }
        for (promise, sql) in RULES {
            let found = snapshot.texts(&sql.replace("?1", &seen.to_string()))?;
            broken.extend(found.into_iter().map(|what| Broken::new(*promise, what)));
        }
        broken.extend(self.buried(snapshot)?);
        self.seen = snapshot.count("SELECT coalesce(max(seq), 0) FROM core_operations")?;
        if let Some(files) = seen_files {
            for load in ALL {
                broken.extend(load.check(snapshot, &files)?);
            }
            let damage = snapshot.damage()?;
            broken.extend(damage.map(|what| Broken::new(Promise::Sound, what)));
            broken.extend(self.chained()?);
        }
        Ok(broken)
    }

    /// Number of rows in the ledger at the last check.
    pub(crate) fn rows(&self) -> i64 {
        self.seen
    }

    /// Broken promises about files that were just rendered, while there are no calls.
    pub(crate) fn rendered(&self) -> anyhow::Result<Vec<Broken>> {
        let snapshot = self.recipe.place.database.look()?;
        load::shown(snapshot.as_ref(), &self.recipe.place.look()?)
    }

    /// Checks that everything left open by dead hosts is closed, and nothing of living hosts. A host is alive as long
    /// as it holds the lock on its file. No host starts during this check, so probing the locks is safe.
    fn buried(&self, db: &dyn Look) -> anyhow::Result<Vec<Broken>> {
        let alive = self.alive()?;
        let mut broken = Vec::new();
        for (id, host) in db.pairs("SELECT id, host_id FROM core_envelopes WHERE state = 'OPEN'")? {
            if !alive.contains(&host) {
                let what = format!("envelope {id} is open, and its host {host} is gone");
                broken.push(Broken::new(Promise::Buried, what));
            }
        }
        for (id, host) in db.pairs("SELECT id, host_id FROM core_envelopes WHERE closed_by = 'HOST_GONE'")? {
            let is_wrong = alive.contains(&host) && !self.zombies.contains(&host);
            if is_wrong && self.keeps_its_lock(&host)? {
                let what = format!("envelope {id} was closed as its host's end, and {host} is alive");
                broken.push(Broken::new(Promise::Buried, what));
            }
        }
        for (id, host) in db.pairs("SELECT op_id, host_id FROM core_intents")? {
            if !alive.contains(&host) {
                let what = format!("operation {id} is still to come, and its host {host} is gone");
                broken.push(Broken::new(Promise::Buried, what));
            }
        }
        for (id, host) in
            db.pairs("SELECT id, host_id FROM core_tasks WHERE state IN ('working', 'input_required')")?
        {
            if !alive.contains(&host) {
                let what = format!("task {id} is open, and its host {host} is gone");
                broken.push(Broken::new(Promise::Buried, what));
            }
        }
        Ok(broken)
    }

    /// Folders with the files of hosts.
    fn notes(&self) -> impl Iterator<Item = PathBuf> {
        self.recipe.place.data.iter().map(|data| data.join("hosts"))
    }

    /// Hosts that are alive.
    fn alive(&self) -> anyhow::Result<HashSet<String>> {
        let mut alive = HashSet::new();
        for notes in self.notes().filter(|notes| notes.is_dir()) {
            alive.extend(alive_in(&notes)?);
        }
        Ok(alive)
    }

    /// Returns whether a host holds its lock all the time, as a living host does. A host that takes over the files of a
    /// dead host holds the dead host's lock only for a while.
    #[allow(
        clippy::disallowed_methods,
        reason = "the torture looks into its own directory"
    )]
    fn keeps_its_lock(&self, host: &str) -> anyhow::Result<bool> {
        for _ in 0..LOOKS {
            let notes = self.notes().map(|notes| notes.join(host));
            let Some(file) = notes.filter_map(|note| std::fs::File::open(note).ok()).next() else {
                return Ok(false);
            };
            if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                return Ok(false);
            }
            std::thread::sleep(LOCK_INTERVAL);
        }
        Ok(true)
    }

    /// Verifies the chain, and that the chain contains the head of the last check.
    fn chained(&mut self) -> anyhow::Result<Option<Broken>> {
        let data = self.recipe.place.data.first().context("a place without data")?;
        let mut command = self.recipe.command(data);
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

/// Hosts that hold the locks on their files in a folder.
#[allow(
    clippy::disallowed_methods,
    reason = "the torture looks into its own directory"
)]
fn alive_in(notes: &Path) -> anyhow::Result<Vec<String>> {
    let mut alive = Vec::new();
    for entry in std::fs::read_dir(notes)? {
        let entry = entry?;
        let Ok(file) = std::fs::File::open(entry.path()) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
            alive.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(alive)
}

/// Checks that the ledger has a row for each reply.
fn durable(db: &dyn Look, replies: &[Acknowledged]) -> anyhow::Result<Vec<Broken>> {
    let ids: Vec<String> = replies.iter().map(|reply| quoted(&reply.op_id)).collect();
    let sql = format!(
        "SELECT op_id, tool, success, error_code, result_hash FROM core_operations WHERE op_id IN ({})",
        ids.join(", ")
    );
    let rows = db.ask(&sql)?.into_iter().filter_map(|mut row| {
        let id = row.first_mut()?.take()?;
        Some((id, row))
    });
    let rows: HashMap<String, Row> = rows.collect();
    let broken = replies.iter().filter_map(|reply| {
        let what = wrong(reply, rows.get(&reply.op_id).map(Vec::as_slice))?;
        let what = format!(
            "{} of {}: {what}; the client has {:?}",
            reply.op_id, reply.tool, reply.outcome
        );
        Some(Broken::new(Promise::Durable, what))
    });
    Ok(broken.collect())
}

/// Difference between a reply and its row, after the row's id.
fn wrong(reply: &Acknowledged, row: Option<&[Option<String>]>) -> Option<String> {
    let may_miss = reply.may_miss || matches!(reply.outcome, Outcome::Unknown | Outcome::Unreached);
    let Some(row) = row else {
        return (!may_miss).then(|| "the row is gone".to_owned());
    };
    let column = |at: usize| row.get(at).and_then(Option::as_deref);
    let (tool, success, code, hash) = (column(1), column(2), column(3), column(4));
    let is_so = match &reply.outcome {
        Outcome::Done(content) => success == Some("1") && hash == Some(content),
        Outcome::Refused(refusal) => success == Some("0") && code == Some(refusal),
        Outcome::Unreached => success != Some("1"),
        Outcome::Unknown => true,
    };
    let is_same = tool == Some(&reply.tool) && is_so;
    (!is_same).then(|| format!("the row says {tool:?}, {success:?}, {code:?}, {hash:?}"))
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
               FROM core_envelopes WHERE id IN (SELECT envelope_id FROM core_operations WHERE seq > ?1)) AS counted
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
               FROM core_envelopes WHERE id IN (SELECT envelope_id FROM core_operations WHERE seq > ?1)) AS counted
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
