//! Signed heads of the ledger, saved every hour and at each orderly stop. Even if no head was exported, they show
//! that rows were later cut from the end, or that the whole database was replaced by an older one.

use std::io::{BufRead as _, BufReader, Write as _};

use anyhow::Context as _;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use tollgate_core::file::NO_WAIT;
use tollgate_sdk::Timestamp;

use super::head::ExportedHead;
use crate::data_dir::DataDir;
use crate::key::LedgerKey;
use crate::storage::{Head, Session};

const FOLDER: &str = "heads";
const FILE: &str = "heads.ndjson";
const UNFINISHED: &str = "heads.ndjson.new";
/// Warning for a ledger that has rows and neither a saved nor an exported head.
pub const NO_HEAD_WARNING: &str = "there is no signed head to compare with, so rows removed from the end would go unnoticed: no head was \
                        recorded yet, or all were removed";
/// Number of heads that are kept, and of further ones before the oldest are removed.
const KEPT_HEADS: usize = 1_000;

/// Saves the current head of the ledger, unless it was saved before.
pub fn note(data: &DataDir, session: &Session, now: Timestamp) -> anyhow::Result<()> {
    let head = session.ledger().head()?;
    if head.seq == 0 {
        return Ok(());
    }
    let dir = data.private_dir(FOLDER)?;
    let mut lines = lines(&dir)?;
    let last = lines
        .last()
        .and_then(|line| serde_json::from_str::<ExportedHead>(line).ok());
    if last.is_some_and(|last| last.head == head) {
        return Ok(());
    }
    let pruned = session.ledger().pruned_rows()?;
    let key = LedgerKey::open(data)?;
    let line = serde_json::to_string(&ExportedHead::sign(head, pruned, now.to_string(), &key))?;
    if lines.len() < 2 * KEPT_HEADS {
        let mut options = OpenOptions::new();
        options
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(NO_WAIT);
        let mut file = dir.open_with(FILE, &options)?;
        file.write_all(format!("{line}\n").as_bytes())?;
        return Ok(file.sync_data()?);
    }
    lines.push(line);
    let newest = lines.split_off(lines.len() - KEPT_HEADS);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = dir.open_with(UNFINISHED, &options)?;
    file.write_all((newest.join("\n") + "\n").as_bytes())?;
    file.sync_data()?;
    Ok(dir.rename(UNFINISHED, &dir, FILE)?)
}

/// Newest saved head. An error if the ledger's key did not sign it.
pub fn newest(data: &DataDir) -> anyhow::Result<Option<ExportedHead>> {
    if !data.has(FOLDER) {
        return Ok(None);
    }
    let lines = lines(&data.private_dir(FOLDER)?)?;
    // A crash may have cut off the last line.
    let Some(head) = lines
        .iter()
        .rev()
        .find_map(|line| serde_json::from_str::<ExportedHead>(line).ok())
    else {
        return Ok(None);
    };
    let key =
        LedgerKey::find(data)?.context("ledger.key is missing, although it signed the recorded heads")?;
    head.check(&[key.public()])
        .with_context(|| format!("{FOLDER}/{FILE} in the data directory was changed"))?;
    Ok(Some(head))
}

/// Message about a ledger that does not continue from the newest saved head: it was rewritten, or replaced by an
/// older database. `None` if all is well, or no head was saved.
pub fn regression(data: &DataDir, session: &Session) -> anyhow::Result<Option<String>> {
    let Some(noted) = newest(data)? else {
        return Ok(None);
    };
    let Head { seq, hash } = &noted.head;
    let found = session.ledger().hash_of(*seq)?;
    Ok(match found {
        Some(found) if found == *hash => None,
        Some(_) => Some(format!(
            "row {seq} does not match the hash that this host signed: history was rewritten"
        )),
        // The row was pruned, and the ledger continues after it.
        None if session.ledger().head()?.seq >= *seq => None,
        None => Some(format!(
            "row {seq}, whose hash this host signed, is missing: rows were removed from the end, or the ledger was \
             replaced with an older database"
        )),
    })
}

fn lines(dir: &Dir) -> anyhow::Result<Vec<String>> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(NO_WAIT);
    let file = match dir.open_with(FILE, &options) {
        Ok(file) => file,
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(err) => return Err(err.into()),
    };
    Ok(BufReader::new(file).lines().collect::<Result<_, _>>()?)
}
