//! Statistics of the ledger for each tool: how often, how long, and how it failed.

use super::error::StoreResult;
use std::collections::BTreeMap;

use rusqlite::params;
use serde::Serialize;

use super::session::Session;

/// The calls of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolStats {
    /// Pack of the tool.
    pub pack: String,
    /// Its name.
    pub tool: String,
    /// Number of calls.
    pub calls: i64,
    /// Number of calls that were refused or failed.
    pub failed: i64,
    /// Number of calls whose tests did not all pass.
    pub tests_failed: i64,
    /// Number of calls whose outcome nobody knows.
    pub unknown: i64,
    /// Half of the calls took at most so many milliseconds.
    pub median_ms: f64,
    /// Nineteen of twenty took at most so many.
    pub p95_ms: f64,
    /// The longest took so many.
    pub longest_ms: f64,
    /// Number of failures by code.
    pub errors: BTreeMap<String, i64>,
}

impl Session {
    /// The calls of each tool since a time, of one pack or of all.
    pub fn stats(&self, since: &str, pack: Option<&str>) -> StoreResult<Vec<ToolStats>> {
        let mut tools: Vec<ToolStats> = self
            .db
            .prepare(
                "SELECT pack, tool, max(calls) AS calls,
                        sum(CASE WHEN success = 0 THEN 1 ELSE 0 END) AS failed,
                        sum(CASE WHEN outcome ->> 'result' <> 'passed' THEN 1 ELSE 0 END) AS tests_failed,
                        sum(CASE WHEN success IS NULL THEN 1 ELSE 0 END) AS unknown,
                        min(CASE WHEN place * 2 >= calls THEN duration_ms END) AS median_ms,
                        min(CASE WHEN place * 20 >= calls * 19 THEN duration_ms END) AS p95_ms,
                        max(duration_ms) AS longest_ms
                 FROM (SELECT pack, tool, success, outcome, duration_ms,
                              row_number() OVER (PARTITION BY pack, tool ORDER BY duration_ms) AS place,
                              count(*) OVER (PARTITION BY pack, tool) AS calls
                       FROM core_operations WHERE timestamp >= ?1 AND (?2 IS NULL OR pack = ?2)) AS placed
                 GROUP BY pack, tool ORDER BY pack, tool",
            )?
            .query_map(params![since, pack], |row| {
                Ok(ToolStats {
                    pack: row.get(0)?,
                    tool: row.get(1)?,
                    calls: row.get(2)?,
                    failed: row.get(3)?,
                    tests_failed: row.get(4)?,
                    unknown: row.get(5)?,
                    median_ms: row.get(6)?,
                    p95_ms: row.get(7)?,
                    longest_ms: row.get(8)?,
                    errors: BTreeMap::new(),
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        let mut statement = self.db.prepare(
            "SELECT pack, tool, error_code, count(*) FROM core_operations
             WHERE timestamp >= ?1 AND (?2 IS NULL OR pack = ?2) AND error_code IS NOT NULL
             GROUP BY pack, tool, error_code",
        )?;
        let mut rows = statement.query(params![since, pack])?;
        while let Some(row) = rows.next()? {
            let (pack, tool): (String, String) = (row.get(0)?, row.get(1)?);
            let of = tools
                .iter_mut()
                .find(|stats| stats.pack == pack && stats.tool == tool);
            if let Some(stats) = of {
                stats.errors.insert(row.get(2)?, row.get(3)?);
            }
        }
        Ok(tools)
    }
}
