//! Looking up rows of the ledger.

use rusqlite::params;
use schemars::JsonSchema;
use serde::Serialize;

use super::session::Session;

/// Which operations to return; what is absent does not restrict.
#[derive(Debug, Clone, Default)]
pub struct OperationFilter {
    /// Of this envelope.
    pub envelope_id: Option<String>,
    /// Of this pack.
    pub pack: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// By this actor.
    pub actor: Option<String>,
    /// With this outcome.
    pub success: Option<bool>,
    /// That failed in this way.
    pub failure_fingerprint: Option<String>,
    /// At or after this time.
    pub since: Option<String>,
    /// Before this time.
    pub until: Option<String>,
    /// Only earlier ones, newest first.
    pub before: Option<i64>,
    /// Only later ones, oldest first.
    pub after: Option<i64>,
}

/// A row of the ledger as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoredOperation {
    /// Its place in the ledger.
    pub seq: i64,
    /// Its id.
    pub op_id: String,
    /// The envelope it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<String>,
    /// When it reached the gate.
    pub timestamp: String,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
    /// query, mutation, test_run or control.
    pub op_type: String,
    /// Absent when nobody can know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// Whose tool.
    pub pack: String,
    /// The tool.
    pub tool: String,
    /// read, write or run.
    pub effect: String,
    /// The refusal's or failure's code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// What kind of failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_class: Option<String>,
    /// The limit that refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_triggered: Option<String>,
    /// Who called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The fingerprint of what it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation_fingerprint: Option<String>,
    /// The fingerprint of how it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_fingerprint: Option<String>,
    /// The row's hash.
    pub hash: String,
}

impl Session {
    /// Operations that fit a filter.
    pub fn operations(&self, filter: &OperationFilter, limit: u32) -> rusqlite::Result<Vec<StoredOperation>> {
        // One statement for each order and for what an index leads to, so that each has its index.
        let by_envelope = if filter.envelope_id.is_some() {
            "envelope_id = ?1"
        } else {
            "?1 IS NULL"
        };
        let by_failure = if filter.failure_fingerprint.is_some() {
            "failure_fingerprint = ?6"
        } else {
            "?6 IS NULL"
        };
        let order = if filter.after.is_some() { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT seq, op_id, envelope_id, timestamp, duration_ms, op_type, success, pack, tool, effect, error_code,
                 failure_class, limit_triggered, actor, client, mutation_fingerprint, failure_fingerprint, hash
             FROM core_operations
             WHERE {by_envelope} AND (?2 IS NULL OR pack = ?2) AND (?3 IS NULL OR tool = ?3)
               AND (?4 IS NULL OR actor = ?4) AND (?5 IS NULL OR success = ?5)
               AND {by_failure} AND (?7 IS NULL OR timestamp >= ?7)
               AND (?8 IS NULL OR timestamp < ?8) AND seq < ?9 AND seq > ?10
             ORDER BY seq {order} LIMIT ?11"
        );
        self.db
            .prepare_cached(&sql)?
            .query_map(
                params![
                    filter.envelope_id,
                    filter.pack,
                    filter.tool,
                    filter.actor,
                    filter.success,
                    filter.failure_fingerprint,
                    filter.since,
                    filter.until,
                    filter.before.unwrap_or(i64::MAX),
                    filter.after.unwrap_or(0),
                    limit,
                ],
                |row| {
                    Ok(StoredOperation {
                        seq: row.get(0)?,
                        op_id: row.get(1)?,
                        envelope_id: row.get(2)?,
                        timestamp: row.get(3)?,
                        duration_ms: row.get(4)?,
                        op_type: row.get(5)?,
                        success: row.get(6)?,
                        pack: row.get(7)?,
                        tool: row.get(8)?,
                        effect: row.get(9)?,
                        error_code: row.get(10)?,
                        failure_class: row.get(11)?,
                        limit_triggered: row.get(12)?,
                        actor: row.get(13)?,
                        client: row.get(14)?,
                        mutation_fingerprint: row.get(15)?,
                        failure_fingerprint: row.get(16)?,
                        hash: row.get(17)?,
                    })
                },
            )?
            .collect()
    }

    /// How many operations an envelope has, and how many of them did not succeed.
    pub fn count_operations(&self, envelope_id: &str) -> rusqlite::Result<(i64, i64)> {
        self.db
            .prepare_cached(
                "SELECT count(*), coalesce(sum(success = 0), 0) FROM core_operations WHERE envelope_id = ?1",
            )?
            .query_row([envelope_id], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}
