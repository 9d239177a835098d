//! Following the ledger's chain of hashes from end to end.

use serde::Serialize;

use super::anchors::Anchor;
use super::ledger::{CHAIN_COLUMNS, Head, Link, RowHasher, link};
use super::session::Session;
use super::{Database, MigrationError};
use crate::ledger::key::PublicKey;

/// What verifying found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// How many rows hold together.
    pub rows: u64,
    /// How many rows before the end were pruned, as anchors say.
    pub pruned: i64,
    /// How many of them come before the exported head, which may be one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned_before_head: Option<i64>,
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

impl Broken {
    fn at(seq: i64, what: impl Into<String>) -> Broken {
        Broken {
            seq,
            what: what.into(),
        }
    }
}

impl Session {
    /// Follows the chain from its start to its end, over the anchors of pruned rows, which one of
    /// the keys must have signed. `head` is one that was exported before: it must be on the chain,
    /// or rows were taken from its end, or history was rewritten.
    pub fn verify(&self, head: Option<&Head>, keys: &[PublicKey]) -> rusqlite::Result<Verified> {
        self.begin_read()?;
        let verified = self.verify_snapshot(head, keys);
        self.commit()?;
        verified
    }

    fn verify_snapshot(&self, head: Option<&Head>, keys: &[PublicKey]) -> rusqlite::Result<Verified> {
        let mut walk = Walk {
            at: Head::before_all(),
            rows: 0,
            pruned: 0,
            wanted: head,
            pruned_before_head: 0,
            keys,
        };
        let anchors = self.anchors()?;
        let mut broken = self.walk(&mut walk, &anchors)?.err();
        if broken.is_none() {
            broken = walk.end().err().or(self.changed_triggers()?);
        }
        Ok(Verified {
            rows: walk.rows,
            pruned: walk.pruned,
            pruned_before_head: head.map(|_| walk.pruned_before_head),
            head: walk.at,
            broken,
        })
    }

    fn walk(&self, walk: &mut Walk<'_>, anchors: &[Anchor]) -> rusqlite::Result<Result<(), Broken>> {
        let mut statement = self.db.prepare(&format!(
            "SELECT {CHAIN_COLUMNS} FROM core_operations ORDER BY seq"
        ))?;
        let mut rows = statement.query([])?;
        let mut hasher = RowHasher::new();
        let mut anchors = anchors.iter().peekable();
        while let Some(row) = rows.next()? {
            let row = link(row, &mut hasher)?;
            while let Some(anchor) = anchors.next_if(|anchor| anchor.first_seq <= row.seq) {
                if let Err(broken) = walk.cross(anchor) {
                    return Ok(Err(broken));
                }
            }
            if let Err(broken) = walk.step(&row) {
                return Ok(Err(broken));
            }
        }
        Ok(anchors.try_for_each(|anchor| walk.cross(anchor)))
    }

    /// Without its triggers the table could be changed through SQL.
    fn changed_triggers(&self) -> rusqlite::Result<Option<Broken>> {
        let wanted = match Database::pristine_triggers() {
            Ok(wanted) => wanted,
            Err(MigrationError::Record(err)) => return Err(err),
            Err(err) => return Ok(Some(Broken::at(0, err.to_string()))),
        };
        let found = self.triggers()?;
        Ok(wanted
            .iter()
            .find(|trigger| !found.contains(trigger))
            .map(|(name, _)| {
                Broken::at(
                    0,
                    format!("the trigger {name} is gone or another one: the ledger was open to changes"),
                )
            }))
    }

    /// The triggers that guard the ledger: their names and texts.
    pub(super) fn triggers(&self) -> rusqlite::Result<Vec<(String, String)>> {
        self.db
            .prepare(
                "SELECT name, sql FROM sqlite_master
                 WHERE type = 'trigger' AND tbl_name IN ('core_operations', 'core_anchors') ORDER BY name",
            )?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }
}

/// How far the chain was followed.
struct Walk<'a> {
    at: Head,
    rows: u64,
    pruned: i64,
    wanted: Option<&'a Head>,
    pruned_before_head: i64,
    keys: &'a [PublicKey],
}

impl Walk<'_> {
    /// One row after what came before it.
    fn step(&mut self, row: &Link) -> Result<(), Broken> {
        if row.seq <= self.at.seq {
            return Err(Broken::at(row.seq, "the row was inserted where rows were pruned"));
        }
        if row.seq != self.at.seq + 1 {
            return Err(Broken::at(self.at.seq + 1, "the row is missing"));
        }
        if row.prev_hash != self.at.hash {
            return Err(Broken::at(
                row.seq,
                "the row does not follow the one before it: it was inserted or replaced",
            ));
        }
        if !row.is_intact {
            return Err(Broken::at(row.seq, "the row was changed"));
        }
        self.rows += 1;
        self.arrive(row.seq, &row.hash)
    }

    /// A stretch of pruned rows.
    fn cross(&mut self, anchor: &Anchor) -> Result<(), Broken> {
        let Anchor {
            first_seq, last_seq, ..
        } = *anchor;
        if !self
            .keys
            .iter()
            .any(|key| key.signed(&anchor.statement(), &anchor.signature))
        {
            return Err(Broken::at(
                first_seq,
                format!(
                    "an anchor says that rows {first_seq} to {last_seq} were pruned, but no key of this ledger signed it"
                ),
            ));
        }
        if first_seq <= self.at.seq || last_seq < first_seq {
            return Err(Broken::at(
                first_seq,
                format!("an anchor says that rows {first_seq} to {last_seq} were pruned, but they are here"),
            ));
        }
        if first_seq != self.at.seq + 1 {
            return Err(Broken::at(self.at.seq + 1, "the row is missing"));
        }
        if anchor.prev_hash != self.at.hash {
            return Err(Broken::at(
                self.at.seq,
                format!(
                    "the row is not the one after which rows {first_seq} to {last_seq} were pruned: it was replaced"
                ),
            ));
        }
        self.pruned = self.pruned.saturating_add(anchor.rows());
        if let Some(wanted) = self.wanted {
            let before = wanted.seq.clamp(first_seq - 1, last_seq) - first_seq + 1;
            self.pruned_before_head = self.pruned_before_head.saturating_add(before);
        }
        self.arrive(last_seq, &anchor.hash)
    }

    fn arrive(&mut self, seq: i64, hash: &str) -> Result<(), Broken> {
        self.at = Head {
            seq,
            hash: hash.to_owned(),
        };
        match self.wanted {
            Some(wanted) if wanted.seq == seq && wanted.hash != hash => Err(Broken::at(
                seq,
                "the row is not the one of the exported head: history up to it was rewritten",
            )),
            _ => Ok(()),
        }
    }

    fn end(&self) -> Result<(), Broken> {
        match self.wanted {
            Some(wanted) if wanted.seq > self.at.seq => Err(Broken::at(
                self.at.seq + 1,
                "the exported head is past the end: rows were taken from the end",
            )),
            _ => Ok(()),
        }
    }
}
