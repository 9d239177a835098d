//! Comparison of the ledger with the replies that agents got.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::load::Account;
use super::machine::Machine;

/// All rows of the ledger, as exported by one machine.
pub(super) struct Ledger {
    rows: Vec<Value>,
}

impl Ledger {
    /// Verifies the ledger on a machine, and reads it there.
    pub(super) fn of(machine: &Machine) -> anyhow::Result<Ledger> {
        let verified = machine.tollgate().args(["ledger", "verify"]).output()?;
        ensure!(
            verified.status.success(),
            "`tollgate ledger verify` of host {}: {}{}",
            machine.name,
            String::from_utf8_lossy(&verified.stdout),
            String::from_utf8_lossy(&verified.stderr)
        );
        let exported = machine.tollgate().args(["ledger", "export"]).output()?;
        ensure!(exported.status.success(), "the ledger cannot be exported");
        let rows = String::from_utf8(exported.stdout)?;
        let rows: Vec<Value> = rows.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let rows = rows.into_iter().filter(|row| row["op_id"].is_string()).collect();
        Ok(Ledger { rows })
    }

    /// Checks that each acknowledged call has exactly one row, and each lost call at most one. Returns the number of
    /// lost calls with a row.
    pub(super) fn check(&self, account: &Account) -> anyhow::Result<usize> {
        let mut by_request: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for row in &self.rows {
            let id = row["op_id"].as_str().context("a row without an id")?;
            ensure!(ids.insert(id), "{id} occurs twice");
            // Rows of the host itself have no request.
            if let Some(request) = row["request_id"].as_str() {
                by_request.entry(request).or_default().push(row);
            }
        }
        let rows_of = |request: &str| by_request.get(request).map_or(&[][..], Vec::as_slice);
        for call in &account.acknowledged {
            let rows = rows_of(&call.request);
            let is_there = match rows {
                [row] => row["op_id"] == *call.op_id && row["success"] == call.refused.is_none(),
                [] => account.may_miss(call),
                _ => false,
            };
            ensure!(is_there, "{call:?} was acknowledged, and the ledger has {rows:?}");
        }
        let mut there = 0;
        for call in &account.unanswered {
            let rows = rows_of(&call.request);
            ensure!(rows.len() <= 1, "{call:?} occurs more than once: {rows:?}");
            there += rows.len();
        }
        Ok(there)
    }

    /// Number of changes in an envelope.
    pub(super) fn changes(&self, envelope: &str) -> usize {
        let counts = |row: &&Value| {
            row["envelope_id"] == envelope && row["op_type"] == "mutation" && row["success"] == true
        };
        self.rows.iter().filter(counts).count()
    }

    /// Rows of the ledger.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}
