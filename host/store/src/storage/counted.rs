//! Rows of the ledger with the columns that metrics count, in the order in which they were written.

use serde::Deserialize;
use tollgate_sdk::Timestamp;

use super::engine::{Row, sql};
use super::error::StoreResult;
use super::handles::Stats;

/// A row of the ledger, as metrics count it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CountedRow {
    /// Place in the ledger.
    pub seq: i64,
    /// Time at which the call reached the gate.
    pub at_ms: i64,
    /// Pack of the tool.
    pub pack: String,
    /// The tool.
    pub tool: String,
    /// Caller.
    pub actor: Option<String>,
    /// Client.
    pub client: Option<String>,
    /// Success of the call, if known.
    pub success: Option<bool>,
    /// True if the call ran tests and they did not all pass.
    pub tests_failed: bool,
    /// Duration in milliseconds.
    pub duration_ms: f64,
    /// Code of the refusal or failure.
    pub error_code: Option<String>,
    /// Fingerprint of the failure, equal for repeated failures.
    pub failure_fingerprint: Option<String>,
    /// Envelope of the call.
    pub envelope_id: Option<String>,
    /// Verdicts of policies.
    pub verdicts: Vec<CountedVerdict>,
}

/// A policy's verdict, as metrics count it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CountedVerdict {
    /// Name of the policy in the configuration.
    pub policy: String,
    /// `enforce` or `audit`.
    pub mode: String,
    /// pass, amend, deny, ask or failed.
    pub verdict: String,
    /// Time that the verdict took, in microseconds.
    pub us: Option<u64>,
    /// Number of equal verdicts.
    pub times: Times,
}

/// Number of equal verdicts in one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Times(pub i64);

impl Default for Times {
    fn default() -> Times {
        Times(1)
    }
}

impl CountedVerdict {
    /// True if the verdict stopped the call.
    pub fn stopped(&self) -> bool {
        self.mode == "enforce" && matches!(self.verdict.as_str(), "deny" | "ask" | "failed")
    }
}

impl Stats<'_> {
    /// Rows after one place and up to another, oldest first.
    pub fn counted_rows(self, after: i64, until: i64) -> StoreResult<Vec<CountedRow>> {
        let sql =
            "SELECT seq, timestamp, pack, tool, actor, client, success, outcome ->> 'result', duration_ms,
                   error_code, failure_fingerprint, envelope_id, verdicts
            FROM core_operations WHERE seq > ?1 AND seq <= ?2 ORDER BY seq";
        self.0.engine.all(sql, sql![after, until], counted)
    }
}

fn counted(row: &Row<'_>) -> StoreResult<CountedRow> {
    let tests = row.column(7)?.text();
    let verdicts = row.column(12)?.text();
    Ok(CountedRow {
        seq: row.get(0)?,
        at_ms: Timestamp::parse(row.get(1)?).map_or(0, Timestamp::as_ms),
        pack: row.get(2)?,
        tool: row.get(3)?,
        actor: row.get(4)?,
        client: row.get(5)?,
        success: row.get(6)?,
        tests_failed: tests.is_some_and(|result| result != "passed"),
        duration_ms: row.get(8)?,
        error_code: row.get(9)?,
        failure_fingerprint: row.get(10)?,
        envelope_id: row.get(11)?,
        verdicts: verdicts
            .and_then(|verdicts| serde_json::from_str(verdicts).ok())
            .unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, operation};
    use super::*;

    #[test]
    fn rows_come_in_order_with_what_is_counted() {
        let (_place, session) = fixture::ledger("yy");
        session.begin_write().unwrap();
        let mut row = operation(7, Some("env_k"), NOW);
        row.success = Some(false);
        row.error_code = Some("FROZEN".to_owned());
        row.outcome = Some(r#"{"result":"failed"}"#.to_owned());
        row.verdicts = Some(
            r#"[{"policy":"freeze","mode":"enforce","verdict":"deny","us":40,"phase":"request"},{"policy":"p","times":3}]"#
                .to_owned(),
        );
        session.ledger().record(&row).unwrap();
        session.commit().unwrap();
        let rows = session.stats().counted_rows(1, 9).unwrap();
        assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [2, 3]);
        let row = &rows[1];
        assert_eq!(Timestamp::from_ms(row.at_ms).to_string(), NOW);
        assert!(row.tests_failed && row.success == Some(false));
        assert_eq!(row.envelope_id.as_deref(), Some("env_k"));
        let (first, second) = (&row.verdicts[0], &row.verdicts[1]);
        assert!(first.stopped() && first.us == Some(40) && first.times == Times(1));
        assert!(!second.stopped() && second.times == Times(3));
    }
}
