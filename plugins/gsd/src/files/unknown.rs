//! Lines of the logs' files that are not stored: those of other data directories, which came with Git, and those
//! that no version of this pack wrote. A file that has any is not rewritten.

use std::collections::HashSet;

use serde_json::json;
use sha2::{Digest, Sha256};
use tollgate_sdk::workspace::MAX_READ;
use tollgate_sdk::{Cx, Db, FileEntry, FileKind, NextCall, ToolError, Workspace, WorkspaceError};

use super::logs::{Log, Parsed};
use super::{EVENTS, unknown_in};
use crate::next;
use crate::store::file::{self, Extent};

/// Longest line that is looked at, in bytes: more than a call's arguments can have.
const LONGEST: usize = 4 << 20;

/// Numbers of lines in the logs that are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unknown {
    /// Events of other data directories.
    pub events: usize,
    /// Audit entries of other data directories.
    pub entries: usize,
    /// Lines that are no events or entries.
    pub damaged: usize,
    /// Number of the first line that is none, counted from 1.
    pub first_damaged: usize,
    /// True if a file was never written from here, so that even its damaged lines are somebody's.
    pub is_foreign: bool,
}

impl Unknown {
    /// Returns whether rewriting loses nothing that anybody could use.
    pub(super) fn is_safe(&self) -> bool {
        self.events == 0 && self.entries == 0 && (self.damaged == 0 || !self.is_foreign)
    }

    /// The refusal to write before the lines were imported.
    pub(crate) fn refusal(&self, workspace: &str) -> ToolError {
        let arguments = json!({"workspace": workspace});
        if self.events == 0 && self.entries == 0 {
            let message = format!(
                "a log in .gsd/ of workspace {workspace} has {} lines that are not from gsd; the first is line {}",
                self.damaged, self.first_damaged
            );
            return ToolError::new("LOG_FOREIGN", message)
                .remediation("Restore the log from Git, or move it away, and call again.")
                .next_call(next::status(Some(workspace)));
        }
        let message = format!(
            "the logs in .gsd/ of workspace {workspace} have {} events and {} audit entries that are not stored here",
            self.events, self.entries
        );
        ToolError::new("LOG_AHEAD", message)
            .remediation("Import the logs with gsd_import, and call again.")
            .context("events", self.events)
            .context("entries", self.entries)
            .context("damaged_lines", self.damaged)
            .next_call(NextCall::new("gsd_import", arguments))
    }
}

/// State of a log's file.
#[derive(Debug)]
pub(super) enum Found {
    /// As it was written last.
    Intact(Extent),
    Missing,
    /// Changed by something else, with what it has beyond the stored rows.
    Changed(Unknown),
}

/// Refuses a change while the logs of its workspace have lines that are not stored.
pub(crate) fn refuse_unknown_lines(cx: &Cx<'_>, workspace: &str) -> Result<(), ToolError> {
    match unknown_in(cx, workspace)? {
        Some(unknown) => Err(unknown.refusal(workspace)),
        None => Ok(()),
    }
}

/// Lines in a workspace's logs beyond the stored rows, if these lines must not be lost. Unreadable files are ignored
/// here, because their writer handles them.
pub(crate) fn unknown(db: &Db<'_>, workspace: &Workspace<'_>) -> Result<Option<Unknown>, ToolError> {
    let mut sum = Unknown::default();
    for log in Log::ALL {
        if let Ok(Found::Changed(found)) = state(db, workspace, log)
            && !found.is_safe()
        {
            sum.events += found.events;
            sum.entries += found.entries;
            sum.damaged += found.damaged;
            sum.first_damaged = sum.first_damaged.max(found.first_damaged);
            sum.is_foreign |= found.is_foreign;
        }
    }
    Ok((sum != Unknown::default()).then_some(sum))
}

/// Looks at a log's file.
pub(super) fn state(db: &Db<'_>, workspace: &Workspace<'_>, log: Log) -> Result<Found, ToolError> {
    let known = file::get(db, workspace.name(), log.path())?;
    let Some(there) = workspace.find(log.path())? else {
        return Ok(Found::Missing);
    };
    if let Some(known) = known
        && there.size == known.size
        && ends_as_written(db, workspace, log, known)?
    {
        return Ok(Found::Intact(known));
    }
    let mut found = Unknown {
        is_foreign: known.is_none(),
        ..Unknown::default()
    };
    for line in read(db, workspace, log, &there)? {
        match line.parsed {
            Some(Parsed::Event(_)) => found.events += 1,
            Some(Parsed::Entry(_)) => found.entries += 1,
            None if found.damaged == 0 => {
                found.first_damaged = line.number;
                found.damaged = 1;
            }
            None => found.damaged += 1,
        }
    }
    Ok(Found::Changed(found))
}

/// Returns whether the file's end is the last row that was written, because another file may have the same size.
fn ends_as_written(
    db: &Db<'_>,
    workspace: &Workspace<'_>,
    log: Log,
    known: Extent,
) -> Result<bool, ToolError> {
    let (last, _, _) = log.lines(db, workspace.name(), known.last_id.saturating_sub(1))?;
    let last = last.split_inclusive('\n').next().unwrap_or_default();
    let Some(start) = known.size.checked_sub(last.len() as u64) else {
        return Ok(false);
    };
    let length = u32::try_from(last.len()).unwrap_or(MAX_READ);
    let end = workspace.read_at(log.path(), start, length)?;
    Ok(last.as_bytes().starts_with(&end) && (last.is_empty() || !end.is_empty()))
}

/// A line of a log's file that is not stored.
#[derive(Debug)]
pub(crate) struct UnknownLine {
    /// Number of the line, counted from 1.
    pub number: usize,
    /// Its event or entry, `None` if it is neither.
    pub parsed: Option<Parsed>,
}

/// The lines of a log's file that are not stored, in their order and each once. The file is read before the rows,
/// so that rows which are committed between the two do not count as unknown.
pub(crate) fn read(
    db: &Db<'_>,
    workspace: &Workspace<'_>,
    log: Log,
    there: &FileEntry,
) -> Result<Vec<UnknownLine>, ToolError> {
    if there.kind != FileKind::File {
        return Err(WorkspaceError::WrongKind(format!("`{}` is not a file", log.path())).into());
    }
    let mut lines: Vec<([u8; 32], UnknownLine)> = Vec::new();
    each_line(workspace, log, |number, text| {
        // What Git adds to a file with conflicts is nobody's line.
        let is_mark = ["<<<<<<< ", "=======", ">>>>>>> ", "||||||| "]
            .iter()
            .any(|mark| text.starts_with(mark));
        if !is_mark && !text.trim().is_empty() {
            let parsed = log.parse(text);
            let key = parsed
                .as_ref()
                .map_or_else(|| text.trim().to_owned(), Parsed::key);
            lines.push((digest(&key), UnknownLine { number, parsed }));
        }
    })?;
    let mut known: HashSet<[u8; 32]> = HashSet::new();
    let mut after = 0;
    loop {
        let (text, last, more) = log.lines(db, workspace.name(), after)?;
        let stored = text.lines().filter_map(|line| log.parse(line));
        known.extend(stored.map(|parsed| digest(&parsed.key())));
        if !more {
            break;
        }
        after = last;
    }
    // An unknown line becomes known when it is seen, so that none is returned twice.
    lines.retain(|(key, line)| match &line.parsed {
        Some(Parsed::Entry(_)) => !known.contains(key),
        _ => known.insert(*key),
    });
    Ok(lines.into_iter().map(|(_, line)| line).collect())
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Visits the lines of a log's file with their numbers. A last line without an end was torn by a crash, and is
/// not visited unless it is whole.
fn each_line(
    workspace: &Workspace<'_>,
    log: Log,
    mut visit: impl FnMut(usize, &str),
) -> Result<(), WorkspaceError> {
    let (mut rest, mut offset, mut number) = (Vec::new(), 0, 0);
    loop {
        let piece = workspace.read_at(log.path(), offset, MAX_READ)?;
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        rest.extend(piece);
        let mut start = 0;
        while let Some(length) = rest.iter().skip(start).position(|byte| *byte == b'\n') {
            number += 1;
            let line = rest.get(start..start + length).unwrap_or_default();
            visit(number, &String::from_utf8_lossy(line));
            start += length + 1;
        }
        rest.drain(..start);
        if rest.len() > LONGEST {
            return Err(WorkspaceError::TooLarge(format!(
                "line {} of `{}`",
                number + 1,
                log.path()
            )));
        }
    }
    let last = String::from_utf8_lossy(&rest);
    if log.parse(&last).is_some() {
        visit(number + 1, &last);
    }
    Ok(())
}

/// The refusal of a log whose lines cannot be imported.
pub(crate) fn damaged(workspace: &str, number: usize) -> ToolError {
    let message = format!("line {number} of {EVENTS} is not an event of gsd, or its hash is wrong");
    ToolError::new("LOG_DAMAGED", message)
        .remediation("Restore the line from Git, and call gsd_import again.")
        .next_call(next::status(Some(workspace)))
}
