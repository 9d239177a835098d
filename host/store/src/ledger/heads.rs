//! Signed heads of the ledger, noted every hour and at each orderly stop: without one that was exported, they show that
//! rows were taken from the end since, or that the whole database was replaced by an older one.

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
/// Warning where a ledger has rows and no head that was noted or exported.
pub const NONE: &str = "no signed head is there to compare with, so rows cut from the end would not show: none was noted \
                        yet, or somebody removed them";
/// Heads that are kept, and how many more there may be before the oldest go.
const KEPT: usize = 1_000;

/// Notes where the ledger is now, unless that was noted before.
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
    if lines.len() < 2 * KEPT {
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
    let newest = lines.split_off(lines.len() - KEPT);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = dir.open_with(UNFINISHED, &options)?;
    file.write_all((newest.join("\n") + "\n").as_bytes())?;
    file.sync_data()?;
    Ok(dir.rename(UNFINISHED, &dir, FILE)?)
}

/// The newest head that was noted. An error if it is not one that the ledger's key signed.
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
        LedgerKey::find(data)?.context("heads were noted, and ledger.key, which signed them, is gone")?;
    head.check(&[key.public()])
        .with_context(|| format!("{FOLDER}/{FILE} in the data directory was changed"))?;
    Ok(Some(head))
}

/// Sentence on a ledger that does not go on from the newest head that was noted: it was rewritten, or an older database is in its
/// place. None if all is well, or no head was noted.
pub fn regression(data: &DataDir, session: &Session) -> anyhow::Result<Option<String>> {
    let Some(noted) = newest(data)? else {
        return Ok(None);
    };
    let Head { seq, hash } = &noted.head;
    let found = session.ledger().hash_of(*seq)?;
    Ok(match found {
        Some(found) if found == *hash => None,
        Some(_) => Some(format!(
            "row {seq} is not the one whose hash this host signed: history was rewritten"
        )),
        // Pruned rows are before the end.
        None if session.ledger().head()?.seq >= *seq => None,
        None => Some(format!(
            "row {seq}, whose hash this host signed, is not there: rows were taken from the end, or an older database was put in \
             the ledger's place"
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
