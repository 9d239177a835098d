//! Verification of the ledger's hash chain from end to end.

use std::iter::Peekable;
use std::ops::ControlFlow;

use serde::Serialize;

use super::MigrationError;
use super::anchors::Anchor;
use super::engine::{Dialects, Engine, Once};
use super::error::StoreResult;
use super::handles::Ledger;
use super::ledger::{CHAIN_COLUMNS, Head, Link, RowHasher, link};
use crate::key::PublicKey;

/// Result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Number of verified rows.
    pub rows: u64,
    /// Number of rows before the end that were pruned, according to anchors.
    pub pruned: i64,
    /// Number of pruned rows up to the exported head, which may be one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned_before_head: Option<i64>,
    /// End of the chain.
    pub head: Head,
    /// First fault, if there is one.
    pub broken: Option<Broken>,
    /// Faults outside the rows: triggers, views, indexes and tables that are missing, changed or added, foreign keys
    /// that refer to the host's tables, indexes that do not match them, envelopes and work tree states that differ
    /// from the rows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub around: Vec<String>,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.seq {
            // The fault does not concern a single row.
            0 => f.write_str(&self.what),
            seq => write!(f, "row {seq}: {}", self.what),
        }
    }
}

/// Place where the chain breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Place of the row.
    pub seq: i64,
    /// Fault of the row.
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

impl Ledger<'_> {
    /// Verifies the chain from start to end, across the anchors of pruned rows, which one of the keys must have
    /// signed. `head` was exported before and must be on the chain. Otherwise rows were cut from the end, or history
    /// was rewritten.
    pub fn verify(self, head: Option<&Head>, keys: &[PublicKey]) -> StoreResult<Verified> {
        self.0.begin_read()?;
        let verified = self.verify_snapshot(head, keys);
        let ended = self.0.commit();
        // A failed statement also prevents a clean end of the transaction.
        let verified = verified?;
        ended?;
        Ok(verified)
    }

    /// Verifies the chain in the open transaction.
    pub(super) fn verify_snapshot(self, head: Option<&Head>, keys: &[PublicKey]) -> StoreResult<Verified> {
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
        let around = self.faults_around()?;
        if broken.is_none() {
            let first = around.first().map(|fault| Broken::at(0, fault.as_str()));
            broken = walk.end().err().or(first);
        }
        if broken.is_none()
            && let Engine::Postgres(postgres) = &self.0.engine
        {
            let fault = postgres.fault_of_stream(walk.at.seq, &walk.at.hash)?;
            broken = fault.map(|fault| Broken::at(walk.at.seq, fault));
        }
        Ok(Verified {
            rows: walk.rows,
            pruned: walk.pruned,
            pruned_before_head: head.map(|_| walk.pruned_before_head),
            head: walk.at,
            broken,
            around,
        })
    }

    fn walk(self, walk: &mut Walk<'_>, anchors: &[Anchor]) -> StoreResult<Result<(), Broken>> {
        let mut hasher = RowHasher::new();
        let mut anchors = anchors.iter().peekable();
        let mut walked = Ok(());
        // Sorted without an index, because a corrupt index must not be used to find the rows.
        let order = self.0.engine.text(Dialects {
            sqlite: "NOT INDEXED ORDER BY seq",
            postgres: "ORDER BY seq",
        });
        let sql = format!("SELECT {CHAIN_COLUMNS} FROM core_operations {order}");
        self.0.engine.each_until(Once(&sql), &[], |row| {
            let row = link(row, &mut hasher)?;
            walked = walk.pass(&row, &mut anchors);
            Ok(match walked {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            })
        })?;
        Ok(walked.and_then(|()| anchors.try_for_each(|anchor| walk.cross(anchor))))
    }

    /// Faults of the schema and of database pages because of which rows cannot be trusted: without its triggers the
    /// table could be changed through SQL, a foreign trigger discards rows, and a corrupt index hides them.
    fn faults_around(self) -> StoreResult<Vec<String>> {
        let misplaced = match self.0.maintenance().misplaced() {
            Ok(misplaced) => misplaced,
            Err(MigrationError::Record(err)) => return Err(err),
            Err(err) => return Ok(vec![err.to_string()]),
        };
        let mut faults: Vec<String> = misplaced
            .iter()
            .filter(|object| object.concerns_core || matches!(object.kind.as_str(), "trigger" | "view"))
            .map(ToString::to_string)
            .collect();
        for table in ["core_operations", "core_anchors"] {
            let found = self.0.maintenance().faults_of(table)?.into_iter();
            faults.extend(found.map(|fault| format!("table {table}: {fault}")));
        }
        faults.extend(self.0.envelopes().faults()?);
        faults.extend(self.0.work_trees().faults_of_states()?);
        faults.extend(self.0.work_trees().faults_of_finds()?);
        Ok(faults)
    }
}

/// Progress along the chain.
struct Walk<'a> {
    at: Head,
    rows: u64,
    pruned: i64,
    wanted: Option<&'a Head>,
    pruned_before_head: i64,
    keys: &'a [PublicKey],
}

impl Walk<'_> {
    /// Checks one row, after the anchors that precede it.
    fn pass<'a>(
        &mut self,
        row: &Link,
        anchors: &mut Peekable<impl Iterator<Item = &'a Anchor>>,
    ) -> Result<(), Broken> {
        while let Some(anchor) = anchors.next_if(|anchor| anchor.first_seq <= row.seq) {
            self.cross(anchor)?;
        }
        self.step(row)
    }

    /// Checks one row against its predecessor.
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

    /// Crosses a range of pruned rows.
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
                    "an anchor records that rows {first_seq} to {last_seq} were pruned, but no key of this ledger \
                     signed it"
                ),
            ));
        }
        if first_seq <= self.at.seq || last_seq < first_seq {
            return Err(Broken::at(
                first_seq,
                format!(
                    "an anchor records that rows {first_seq} to {last_seq} were pruned, but they still exist"
                ),
            ));
        }
        if first_seq != self.at.seq + 1 {
            return Err(Broken::at(self.at.seq + 1, "the row is missing"));
        }
        if anchor.prev_hash != self.at.hash {
            return Err(Broken::at(
                self.at.seq,
                format!("the row does not follow the pruned rows {first_seq} to {last_seq}: it was replaced"),
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
                "the row does not match the exported head: history up to it was rewritten",
            )),
            _ => Ok(()),
        }
    }

    fn end(&self) -> Result<(), Broken> {
        match self.wanted {
            Some(wanted) if wanted.seq > self.at.seq => Err(Broken::at(
                self.at.seq + 1,
                "a signed head is past the end: rows were removed from the end, or the ledger was replaced with an \
                 older database",
            )),
            _ => Ok(()),
        }
    }
}
