//! The ledger's rows.

use super::session::Session;
use crate::packs::Effect;

/// One call as the ledger records it. No content, only hashes.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Made when the call reached the gate.
    pub op_id: String,
    /// When it reached the gate, as RFC 3339 text.
    pub at: String,
    /// From reaching the gate to its end, in microseconds.
    pub duration_us: i64,
    /// Whose tool.
    pub pack: String,
    /// The tool's own name, never an alias.
    pub tool: String,
    /// How it was run.
    pub effect: Effect,
    /// Whether it did what it was asked.
    pub success: bool,
    /// The refusal's or failure's code.
    pub error_code: Option<String>,
    /// Who called, if the transport proved it.
    pub identity: Option<String>,
    /// The client's name and version, as it claims.
    pub client: Option<String>,
    /// Which connection it came over.
    pub connection: String,
    /// The client's id of the request.
    pub request_id: Option<String>,
    /// Which host process ran it.
    pub host_id: String,
    /// SHA-256 of the canonical arguments.
    pub args_hash: String,
    /// SHA-256 of the reply.
    pub result_hash: Option<String>,
}

impl Session {
    /// Adds a row to the ledger, after the last one.
    pub fn record(&self, operation: &Operation) -> rusqlite::Result<()> {
        self.db
            .prepare_cached(
                "INSERT INTO core_operations (seq, op_id, at, duration_us, pack, tool, effect, success, error_code,
                     identity, client, connection, request_id, host_id, args_hash, result_hash)
                 SELECT coalesce(max(seq), 0) + 1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15
                 FROM core_operations",
            )?
            .execute(rusqlite::params![
                operation.op_id,
                operation.at,
                operation.duration_us,
                operation.pack,
                operation.tool,
                operation.effect.as_str(),
                operation.success,
                operation.error_code,
                operation.identity,
                operation.client,
                operation.connection,
                operation.request_id,
                operation.host_id,
                operation.args_hash,
                operation.result_hash,
            ])
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Database;

    fn operation(op_id: &str) -> Operation {
        Operation {
            op_id: op_id.to_owned(),
            at: "2026-01-01T00:00:00.000Z".to_owned(),
            duration_us: 1,
            pack: "p".to_owned(),
            tool: "t".to_owned(),
            effect: Effect::Write,
            success: true,
            error_code: None,
            identity: None,
            client: None,
            connection: "c".to_owned(),
            request_id: None,
            host_id: "h".to_owned(),
            args_hash: "a".to_owned(),
            result_hash: None,
        }
    }

    #[test]
    fn rows_only_come_after_the_last_and_stay() {
        let place = tempfile::tempdir().unwrap();
        let database = Database::open(&place.path().join("t.db")).unwrap();
        let session = database.write_session().unwrap();
        session.record(&operation("op_1")).unwrap();
        session.record(&operation("op_2")).unwrap();
        for sql in [
            "UPDATE core_operations SET tool = 'x'",
            "DELETE FROM core_operations",
            "INSERT OR REPLACE INTO core_operations SELECT * FROM core_operations WHERE seq = 1",
            "REPLACE INTO core_operations SELECT 3, 'op_1', at, duration_us, pack, tool, effect, success, error_code,
                 identity, client, connection, request_id, host_id, args_hash, result_hash
             FROM core_operations WHERE seq = 1",
        ] {
            let err = session.db.execute(sql, []).unwrap_err().to_string();
            assert!(err.contains("append-only"), "{sql}: {err}");
        }
        let rows: i64 = session
            .db
            .query_row("SELECT count(*) FROM core_operations", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 2);
    }
}
