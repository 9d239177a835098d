//! Named budgets of envelopes, and units that `run` calls have set aside.

use std::collections::BTreeMap;

use tollgate_core::budget::Budget;

use super::engine::{Row, sql};
use super::error::{StoreResult, exactly_one};
use super::handles::Budgets;

/// Units that a `run` call has set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// `rsv_…`
    pub id: String,
    /// Envelope of the budget.
    pub envelope_id: String,
    /// Which.
    pub name: String,
    /// Number of units.
    pub units: i64,
    /// The call that holds it.
    pub op_id: String,
    /// The host that runs the call.
    pub host_id: String,
}

impl Reservation {
    /// Prefix of the ids of units that a call takes for a policy.
    pub const OF_POLICIES: &str = "policy:";
}

fn named(row: &Row<'_>) -> StoreResult<(String, Budget)> {
    Ok((
        row.get(0)?,
        Budget {
            limit: row.get(1)?,
            used: row.get(2)?,
            reserved: row.get(3)?,
        },
    ))
}

impl Budgets<'_> {
    /// Gives a new envelope its budgets.
    pub fn open(self, envelope: &str, limits: &BTreeMap<String, i64>) -> StoreResult<()> {
        for (name, limit) in limits {
            let sql = "INSERT INTO core_budgets (envelope_id, name, max_units) VALUES (?1, ?2, ?3)";
            self.0
                .engine
                .run(sql, sql![envelope, name, limit])
                .and_then(exactly_one)?;
        }
        Ok(())
    }

    /// The budgets of an envelope, without what the operation `but` has set aside.
    pub fn list(self, envelope: &str, but: Option<&str>) -> StoreResult<BTreeMap<String, Budget>> {
        let sql = "SELECT name, max_units, used,
                (SELECT coalesce(sum(units), 0) FROM core_reservations AS held
                 WHERE held.envelope_id = core_budgets.envelope_id AND held.name = core_budgets.name
                   AND held.op_id IS DISTINCT FROM ?2)
            FROM core_budgets WHERE envelope_id = ?1";
        self.0.engine.all(sql, sql![envelope, but], named)
    }

    /// One budget of an envelope.
    pub fn get(self, envelope: &str, name: &str) -> StoreResult<Option<Budget>> {
        let sql = "SELECT name, max_units, used,
                (SELECT coalesce(sum(units), 0) FROM core_reservations WHERE envelope_id = ?1 AND name = ?2)
            FROM core_budgets WHERE envelope_id = ?1 AND name = ?2";
        self.0
            .engine
            .maybe(sql, sql![envelope, name], |row| Ok(named(row)?.1))
    }

    /// Books units. The table's own check refuses more than the limit.
    pub fn book(self, envelope: &str, name: &str, units: i64) -> StoreResult<()> {
        let sql = "UPDATE core_budgets SET used = used + ?3 WHERE envelope_id = ?1 AND name = ?2";
        self.0
            .engine
            .run(sql, sql![envelope, name, units])
            .and_then(exactly_one)
    }

    /// Sets units aside until they are given back.
    pub fn set_aside(self, reservation: &Reservation) -> StoreResult<()> {
        let sql = "INSERT INTO core_reservations (id, envelope_id, name, units, op_id, host_id)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.0
            .engine
            .run(
                sql,
                sql![
                    reservation.id,
                    reservation.envelope_id,
                    reservation.name,
                    reservation.units,
                    reservation.op_id,
                    reservation.host_id,
                ],
            )
            .and_then(exactly_one)
    }

    /// Ends a reservation. Whether it was there.
    pub fn give_back(self, id: &str) -> StoreResult<bool> {
        let ended = self
            .0
            .engine
            .run("DELETE FROM core_reservations WHERE id = ?1", sql![id])?;
        Ok(ended == 1)
    }

    /// Ends what an operation still holds, now that it is over.
    pub fn give_back_of_operation(self, op_id: &str) -> StoreResult<()> {
        self.0
            .engine
            .run("DELETE FROM core_reservations WHERE op_id = ?1", sql![op_id])
            .map(drop)
    }

    /// Books what an operation set aside for policies, now that it did its work.
    pub fn book_for_policies(self, op_id: &str) -> StoreResult<()> {
        let sql = "SELECT id, envelope_id, name, units FROM core_reservations WHERE op_id = ?1 AND substr(id, 1, 7) = ?2";
        let found: Vec<_> = self
            .0
            .engine
            .all(sql, sql![op_id, Reservation::OF_POLICIES], |row| {
                Ok((
                    row.get::<String>(0)?,
                    row.get::<String>(1)?,
                    row.get::<String>(2)?,
                    row.get::<i64>(3)?,
                ))
            })?;
        for (id, envelope, name, units) in found {
            self.give_back(&id)?;
            self.book(&envelope, &name, units)?;
        }
        Ok(())
    }

    /// Ends what a host that is gone still holds.
    pub fn give_back_of_host(self, host_id: &str) -> StoreResult<()> {
        self.0
            .engine
            .run("DELETE FROM core_reservations WHERE host_id = ?1", sql![host_id])
            .map(drop)
    }

    /// The hosts that hold something, of one budget or of all.
    pub fn hosts_of_reservations(self, of: Option<(&str, &str)>) -> StoreResult<Vec<String>> {
        let (envelope, name) = of.unzip();
        let sql = "SELECT DISTINCT host_id FROM core_reservations
            WHERE CAST(?1 AS TEXT) IS NULL OR (envelope_id = ?1 AND name = ?2)";
        self.0.engine.all(sql, sql![envelope, name], |row| row.get(0))
    }
}
