//! Status of a database, for operators.

use serde::Serialize;

use super::engine::{Dialects, Engine, Once};
use super::error::StoreResult;
use super::handles::Maintenance;
use super::ledger::Head;

/// Status of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatabaseStatus {
    /// `SQLite` or `PostgreSQL`.
    pub engine: &'static str,
    /// Version of the engine.
    pub version: String,
    /// Schema of the host's tables on a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Bytes of the whole database on a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Migrations by their owners.
    pub migrations: Vec<Applied>,
    /// Existing rows of the ledger.
    pub rows: u64,
    /// Rows of the ledger that were pruned.
    pub pruned: i64,
    /// End of the ledger's chain.
    pub head: Head,
    /// Envelopes that are open.
    pub open_envelopes: u64,
}

/// Migrations of one owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// `core`, a pack, or a policy behind `policy-`.
    pub owner: String,
    /// Number of steps.
    pub steps: i64,
    /// Name of the last step.
    pub newest: String,
}

impl Maintenance<'_> {
    /// True if a host has used the database.
    pub fn is_made(self) -> StoreResult<bool> {
        let sql = self.0.engine.text(Dialects {
            sqlite: "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'core_migrations')",
            postgres: "SELECT to_regclass('core_migrations') IS NOT NULL",
        });
        self.0.engine.one(Once(sql), &[], |row| row.get(0))
    }

    /// Status of the database.
    pub fn status(self, boot_ms: i64) -> StoreResult<DatabaseStatus> {
        let engine = &self.0.engine;
        let (name, schema) = match engine {
            Engine::Sqlite(_) => ("SQLite", None),
            Engine::Postgres(postgres) => ("PostgreSQL", Some(postgres.schema().to_owned())),
        };
        let version = engine.text(Dialects {
            sqlite: "SELECT sqlite_version()",
            postgres: "SELECT current_setting('server_version')",
        });
        let steps = "SELECT pack, count(*), max(name) FROM core_migrations GROUP BY pack ORDER BY pack";
        let (rows, open_envelopes) = self.totals(boot_ms)?;
        Ok(DatabaseStatus {
            engine: name,
            version: engine.one(Once(version), &[], |row| row.get(0))?,
            schema,
            bytes: self.bytes_on_server()?,
            migrations: engine.all(Once(steps), &[], |row| {
                Ok(Applied {
                    owner: row.get(0)?,
                    steps: row.get(1)?,
                    newest: row.get(2)?,
                })
            })?,
            rows,
            pruned: self.0.ledger().pruned_rows()?,
            head: self.0.ledger().head()?,
            open_envelopes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;

    #[test]
    fn a_database_is_told_in_figures() {
        let (_place, session) = fixture::ledger("ooyk");
        let status = session.maintenance().status(0).unwrap();
        let wanted = if fixture::on_postgres() {
            "PostgreSQL"
        } else {
            "SQLite"
        };
        assert_eq!(status.engine, wanted);
        assert_eq!(status.schema.is_some(), fixture::on_postgres());
        assert_eq!((status.rows, status.head.seq, status.open_envelopes), (4, 4, 1));
        assert_eq!(status.migrations[0].owner, "core");
    }
}
