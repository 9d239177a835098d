//! Named budgets of envelopes, and units that `run` calls have reserved.

use std::collections::BTreeMap;

use tollgate_core::budget::Budget;

use super::engine::{Row, sql};
use super::error::StoreResult;
use super::handles::Budgets;

/// Units that a `run` call has reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservation {
    /// Id, `rsv_…`.
    pub id: String,
    /// Envelope of the budget.
    pub envelope_id: String,
    /// Name of the budget.
    pub name: String,
    /// Number of units.
    pub units: i64,
    /// Call that holds it.
    pub op_id: String,
    /// Host that runs the call.
    pub host_id: String,
}

impl Reservation {
    /// Prefix of the ids of units that a call reserves for a policy.
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
    /// Stores the budgets of a new envelope.
    pub fn open(self, envelope: &str, limits: &BTreeMap<String, i64>) -> StoreResult<()> {
        for (name, limit) in limits {
            let sql = "INSERT INTO core_budgets (envelope_id, name, max_units) VALUES (?1, ?2, ?3)";
            self.0.engine.change_one(sql, sql![envelope, name, limit])?;
        }
        Ok(())
    }

    /// Budgets of an envelope, without the reservations of the operation `but`.
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

    /// Books units. The table's own check refuses to exceed the limit.
    pub fn book(self, envelope: &str, name: &str, units: i64) -> StoreResult<()> {
        let sql = "UPDATE core_budgets SET used = used + ?3 WHERE envelope_id = ?1 AND name = ?2";
        self.0.engine.change_one(sql, sql![envelope, name, units])
    }

    /// Reserves units until they are released.
    pub fn set_aside(self, reservation: &Reservation) -> StoreResult<()> {
        let sql = "INSERT INTO core_reservations (id, envelope_id, name, units, op_id, host_id)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.0.engine.change_one(
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
    }

    /// Ends a reservation. Returns whether it existed.
    pub fn give_back(self, id: &str) -> StoreResult<bool> {
        let ended = self
            .0
            .engine
            .run("DELETE FROM core_reservations WHERE id = ?1", sql![id])?;
        Ok(ended == 1)
    }

    /// Releases the reservations of an operation that is over.
    pub fn give_back_of_operation(self, op_id: &str) -> StoreResult<()> {
        self.0
            .engine
            .run("DELETE FROM core_reservations WHERE op_id = ?1", sql![op_id])
            .map(drop)
    }

    /// Books the units that an operation reserved for policies, after it did its work.
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

    /// Releases the reservations of a dead host.
    pub fn give_back_of_host(self, host_id: &str) -> StoreResult<()> {
        self.0
            .engine
            .run("DELETE FROM core_reservations WHERE host_id = ?1", sql![host_id])
            .map(drop)
    }

    /// Hosts with reservations, of one budget or of all.
    pub fn hosts_of_reservations(self, of: Option<(&str, &str)>) -> StoreResult<Vec<String>> {
        let (envelope, name) = of.unzip();
        let sql = "SELECT DISTINCT host_id FROM core_reservations
            WHERE CAST(?1 AS TEXT) IS NULL OR (envelope_id = ?1 AND name = ?2)";
        self.0.engine.all(sql, sql![envelope, name], |row| row.get(0))
    }
}
