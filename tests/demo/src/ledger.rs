//! The server's ledger, read from its database after it stopped.

use std::path::Path;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags};

use crate::stage::Seen;

/// The displayed columns of a ledger row.
#[derive(Debug)]
pub(crate) struct Row {
    seq: i64,
    tool: String,
    effect: String,
    success: Option<bool>,
    error_code: Option<String>,
    duration_ms: f64,
}

/// The sequence number of the last row before the demo; 0 if there is no ledger yet.
pub(crate) fn last_seq(database: &Path) -> anyhow::Result<i64> {
    if !database.exists() {
        return Ok(0);
    }
    let sql = "SELECT coalesce(max(seq), 0) FROM core_operations";
    open(database)?
        .query_row(sql, [], |row| row.get(0))
        .context("the ledger cannot be read")
}

/// The rows after a sequence number.
pub(crate) fn since(database: &Path, seq: i64) -> anyhow::Result<Vec<Row>> {
    let db = open(database)?;
    let mut statement = db.prepare(
        "SELECT seq, tool, effect, success, error_code, duration_ms FROM core_operations
         WHERE seq > ?1 ORDER BY seq",
    )?;
    let rows = statement.query_map([seq], |row| {
        Ok(Row {
            seq: row.get(0)?,
            tool: row.get(1)?,
            effect: row.get(2)?,
            success: row.get(3)?,
            error_code: row.get(4)?,
            duration_ms: row.get(5)?,
        })
    })?;
    rows.collect::<Result<_, _>>()
        .context("the ledger cannot be read")
}

/// Fails unless the ledger has exactly one row for each call, with its outcome. The order may differ, because a read's
/// row follows its reply.
pub(crate) fn check(rows: &[Row], seen: &[Seen]) -> anyhow::Result<()> {
    let mut recorded: Vec<Seen> = rows
        .iter()
        .map(|row| Seen {
            tool: row.tool.clone(),
            error_code: row.error_code.clone(),
        })
        .collect();
    let mut made = seen.to_vec();
    recorded.sort();
    made.sort();
    anyhow::ensure!(
        recorded == made,
        "the ledger has {recorded:?}, but the calls were {made:?}"
    );
    let consistent = rows
        .iter()
        .all(|row| row.success == Some(row.error_code.is_none()));
    anyhow::ensure!(consistent, "a row's success does not fit its error code");
    let gapless = rows.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1);
    anyhow::ensure!(gapless, "the ledger has a gap");
    Ok(())
}

/// The rows as a table for people.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut lines = vec![line(["seq", "tool", "effect", "success", "error_code", "ms"])];
    for row in rows {
        let success = row
            .success
            .map_or("?", |success| if success { "yes" } else { "no" });
        let duration = format!("{:.3}", row.duration_ms);
        let code = row.error_code.as_deref().unwrap_or("");
        lines.push(line([
            &row.seq.to_string(),
            &row.tool,
            &row.effect,
            success,
            code,
            &duration,
        ]));
    }
    format!("\n{}", lines.join("\n"))
}

fn line([seq, tool, effect, success, code, ms]: [&str; 6]) -> String {
    format!("{seq:>4}  {tool:<23} {effect:<7} {success:<8} {code:<26} {ms:>9}")
}

fn open(database: &Path) -> anyhow::Result<Connection> {
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("the database {} cannot be opened", database.display()))
}
