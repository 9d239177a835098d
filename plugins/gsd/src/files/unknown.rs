//! Lines of the logs' files that are not stored: those of other data directories, which came with Git, and damaged
//! ones. A file that has any is not rewritten.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::json;
use sha2::{Digest, Sha256};
use tollgate_sdk::workspace::MAX_READ;
use tollgate_sdk::{Cx, Db, DbError, FileEntry, FileKind, NextCall, ToolError, Workspace, WorkspaceError};

use super::logs::{Damage, Log, Parsed};
use super::unknown_in;
use crate::next;
use crate::store::file::{self, Extent};

/// Longest line that is looked at, in bytes: more than a call's arguments can have.
const MAX_LINE_BYTES: usize = 4 << 20;

/// SHA-256 of a line's key.
type LineDigest = [u8; 32];

/// Access to the stored rows. A `Run` tool takes a short transaction for each piece, because a log can be long.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a, 'b> {
    Call(&'a Db<'b>),
    Pieces(&'a Cx<'b>),
}

impl Rows<'_, '_> {
    fn with<T, E: From<DbError>>(self, body: impl FnOnce(&Db<'_>) -> Result<T, E>) -> Result<T, E> {
        match self {
            Rows::Call(db) => body(db),
            Rows::Pieces(cx) => cx.transaction(|db| body(&db)),
        }
    }
}

/// Numbers of lines in the logs that are not stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Unknown {
    /// Events of other data directories.
    pub events: usize,
    /// Audit entries of other data directories.
    pub entries: usize,
    /// Lines that are no events or entries, and whose row is not stored.
    pub damaged: usize,
    /// Damaged lines of the event log. An import stops at these.
    pub damaged_events: usize,
    /// The first damaged line, of the event log if that has any.
    pub first_damaged: Option<DamagedLine>,
    /// True if a file was never written from here, so that it may be another program's.
    pub is_foreign: bool,
}

/// A line that is no event or entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedLine {
    pub log: Log,
    /// Number of the line, counted from 1.
    pub number: usize,
    pub damage: Damage,
}

impl Unknown {
    /// Counts the lines of a log that are not stored.
    fn of(log: Log, lines: Vec<UnknownLine>, is_foreign: bool) -> Unknown {
        let mut found = Unknown {
            is_foreign,
            ..Unknown::default()
        };
        for line in lines {
            match line.kind {
                Kind::Event => found.events += 1,
                Kind::Entry => found.entries += 1,
                Kind::Damaged(damage) => {
                    found.damaged += 1;
                    found.damaged_events += usize::from(log == Log::Events);
                    let number = line.number;
                    found
                        .first_damaged
                        .get_or_insert(DamagedLine { log, number, damage });
                }
            }
        }
        found
    }

    /// Returns whether a rewrite loses no line.
    pub(super) fn is_safe(&self) -> bool {
        self.events == 0 && self.entries == 0 && self.damaged == 0
    }

    /// The refusal to write before the lines were imported.
    pub(crate) fn refusal(&self, workspace: &str) -> ToolError {
        let is_ahead = self.events > 0 || self.entries > 0;
        match &self.first_damaged {
            Some(first) if self.is_foreign && !is_ahead => return foreign(workspace, first, self.damaged),
            Some(first) if self.damaged_events > 0 => return damaged(workspace, first, self.damaged_events),
            _ => {}
        }
        let damaged = match self.damaged {
            0 => String::new(),
            damaged => format!(", damaged audit lines: {damaged}"),
        };
        let message = format!(
            "the logs in .gsd/ of workspace {workspace} contain lines that are not stored here (events: {}, audit \
             entries: {}{damaged})",
            self.events, self.entries
        );
        ToolError::new("LOG_AHEAD", message)
            .remediation("Import the logs with gsd_import, and call again.")
            .context("events", self.events)
            .context("entries", self.entries)
            .context("damaged_lines", self.damaged)
            .next_call(NextCall::new("gsd_import", json!({"workspace": workspace})))
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
        if let Ok(Found::Changed(found)) = state(Rows::Call(db), workspace, log)
            && !found.is_safe()
        {
            sum.events += found.events;
            sum.entries += found.entries;
            sum.damaged += found.damaged;
            sum.damaged_events += found.damaged_events;
            sum.first_damaged = sum.first_damaged.or(found.first_damaged);
            sum.is_foreign |= found.is_foreign;
        }
    }
    Ok((sum != Unknown::default()).then_some(sum))
}

/// Looks at a log's file.
pub(super) fn state(rows: Rows<'_, '_>, workspace: &Workspace<'_>, log: Log) -> Result<Found, ToolError> {
    let known = rows.with(|db| file::get(db, workspace.name(), log.path()))?;
    let Some(there) = workspace.find(log.path())? else {
        return Ok(Found::Missing);
    };
    if let Some(known) = known
        && there.size == known.size
        && rows.with(|db| ends_as_written(db, workspace, log, known))?
    {
        return Ok(Found::Intact(known));
    }
    let lines = read(rows, workspace, log, &there)?;
    Ok(Found::Changed(Unknown::of(log, lines, known.is_none())))
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

/// A line of a log's file that is not stored, without its content, because a log can be long.
#[derive(Debug)]
pub(crate) struct UnknownLine {
    /// Number of the line, counted from 1.
    pub number: usize,
    pub kind: Kind,
    digest: LineDigest,
}

/// Kind of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Event,
    Entry,
    Damaged(Damage),
}

/// The lines of a log's file that are not stored, in their order and each once. The file is read before the rows,
/// so that rows which are committed between the two do not count as unknown.
pub(crate) fn read(
    rows: Rows<'_, '_>,
    workspace: &Workspace<'_>,
    log: Log,
    there: &FileEntry,
) -> Result<Vec<UnknownLine>, ToolError> {
    if there.kind != FileKind::File {
        return Err(WorkspaceError::WrongKind(format!("`{}` is not a file", log.path())).into());
    }
    let mut lines: Vec<UnknownLine> = Vec::new();
    let mut edited: HashMap<usize, LineDigest> = HashMap::new();
    let mut torn: Option<(usize, String)> = None;
    lines_of(workspace, log.path(), |number, text, is_whole| {
        if !is_nobodys(text) {
            let (key, kind) = match log.parse(text) {
                Ok(parsed @ Parsed::Event(_)) => (parsed.line_key(), Kind::Event),
                Ok(parsed @ Parsed::Entry(_)) => (parsed.line_key(), Kind::Entry),
                Err(damage) => {
                    if let Damage::Edited { key, .. } = &damage {
                        edited.insert(number, digest(key));
                    } else if !is_whole {
                        torn = Some((number, text.to_owned()));
                    } else if let Some(key) = log.key_in(text) {
                        edited.insert(number, digest(&key));
                    }
                    (text.trim().to_owned(), Kind::Damaged(damage))
                }
            };
            let digest = digest(&key);
            lines.push(UnknownLine { number, kind, digest });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let mut known: HashSet<LineDigest> = HashSet::new();
    let mut after = 0;
    loop {
        let (keys, last, more) = rows.with(|db| log.keys(db, workspace.name(), after))?;
        known.extend(keys.iter().map(|key| digest(key)));
        if !more {
            break;
        }
        after = last;
    }
    if let Some((number, text)) = torn
        && begins_missing(rows, workspace, log, &text, &lines)?
    {
        lines.retain(|line| line.number != number);
    }
    // The stored row replaces a line that was edited after it was stored.
    lines.retain(|line| edited.get(&line.number).is_none_or(|key| !known.contains(key)));
    // An unknown line becomes known when it is seen, so that none is returned twice.
    lines.retain(|line| match &line.kind {
        Kind::Entry => !known.contains(&line.digest),
        Kind::Event | Kind::Damaged(_) => known.insert(line.digest),
    });
    Ok(lines)
}

/// Returns whether a stored row begins with a line that a crash tore, and has no other line in the file.
fn begins_missing(
    rows: Rows<'_, '_>,
    workspace: &Workspace<'_>,
    log: Log,
    torn: &str,
    lines: &[UnknownLine],
) -> Result<bool, ToolError> {
    // A tear inside a character leaves a part of it.
    let torn = torn.trim_end_matches('\u{fffd}');
    let there: HashSet<LineDigest> = lines.iter().map(|line| line.digest).collect();
    let mut after = 0;
    loop {
        let (text, last, more) = rows.with(|db| log.lines(db, workspace.name(), after))?;
        for line in text.lines().filter(|line| line.starts_with(torn)) {
            let is_there = log
                .parse(line)
                .is_ok_and(|parsed| there.contains(&digest(&parsed.line_key())));
            if !is_there {
                return Ok(true);
            }
        }
        if !more {
            return Ok(false);
        }
        after = last;
    }
}

/// Visits unknown lines with their text, until the visitor stops. A line that has changed since it was found is left
/// for the next call.
pub(crate) fn visit<'l>(
    workspace: &Workspace<'_>,
    log: Log,
    lines: impl Iterator<Item = &'l UnknownLine>,
    mut visitor: impl FnMut(usize, &str, Option<Parsed>) -> Result<ControlFlow<()>, ToolError>,
) -> Result<(), ToolError> {
    let wanted: HashMap<usize, LineDigest> = lines.map(|line| (line.number, line.digest)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    lines_of(workspace, log.path(), |number, text, _| {
        let Some(wanted) = wanted.get(&number) else {
            return Ok(ControlFlow::Continue(()));
        };
        let parsed = log.parse(text).ok();
        let key = parsed
            .as_ref()
            .map_or_else(|| text.trim().to_owned(), Parsed::line_key);
        match digest(&key) == *wanted {
            true => visitor(number, text, parsed),
            false => Ok(ControlFlow::Continue(())),
        }
    })
}

/// Returns whether a line is blank, or what Git adds to a file with conflicts.
fn is_nobodys(text: &str) -> bool {
    let marks = ["<<<<<<< ", "=======", ">>>>>>> ", "||||||| "];
    text.trim().is_empty() || marks.iter().any(|mark| text.starts_with(mark))
}

/// Digests of the lines of any file, for a search. A missing file has none.
pub(crate) fn digests(workspace: &Workspace<'_>, path: &str) -> Result<HashSet<LineDigest>, ToolError> {
    let mut found = HashSet::new();
    if workspace.find(path)?.is_some() {
        lines_of(workspace, path, |_, text, _| {
            found.insert(digest(text.trim()));
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(found)
}

pub(crate) fn digest(text: &str) -> LineDigest {
    Sha256::digest(text.as_bytes()).into()
}

/// Visits the lines of a file with their numbers. The last line may lack its end.
fn lines_of(
    workspace: &Workspace<'_>,
    path: &str,
    mut visit: impl FnMut(usize, &str, bool) -> Result<ControlFlow<()>, ToolError>,
) -> Result<(), ToolError> {
    let (mut rest, mut offset, mut number) = (Vec::new(), 0, 0);
    loop {
        let piece = workspace.read_at(path, offset, MAX_READ)?;
        if piece.is_empty() {
            break;
        }
        offset += piece.len() as u64;
        rest.extend(piece);
        let mut start = 0;
        while let Some(length) = rest.iter().skip(start).position(|byte| *byte == b'\n') {
            number += 1;
            let line = rest.get(start..start + length).unwrap_or_default();
            if visit(number, &String::from_utf8_lossy(line), true)?.is_break() {
                return Ok(());
            }
            start += length + 1;
        }
        rest.drain(..start);
        if rest.len() > MAX_LINE_BYTES {
            let line = format!("line {} of `{path}`", number + 1);
            return Err(WorkspaceError::TooLarge(line).into());
        }
    }
    visit(number + 1, &String::from_utf8_lossy(&rest), false).map(drop)
}

/// The refusal of an event log with damaged lines.
pub(crate) fn damaged(workspace: &str, first: &DamagedLine, count: usize) -> ToolError {
    let DamagedLine { log, number, damage } = first;
    let message = format!("line {number} of {} {damage}", log.path());
    ToolError::new("LOG_DAMAGED", message)
        .remediation(format!(
            "Restore the line from Git (git log -p -- {} shows its versions) and call gsd_import, or omit damaged \
             lines: gsd_import with on_damaged=set_aside moves these to {}.",
            log.path(),
            log.set_aside_path()
        ))
        .context("path", log.path())
        .context("line", *number)
        .context("damaged_lines", count)
        .next_call(next::status(Some(workspace)))
}

/// The refusal of a log that has nothing of gsd.
fn foreign(workspace: &str, first: &DamagedLine, count: usize) -> ToolError {
    let DamagedLine { log, number, damage } = first;
    let message = format!(
        "{} of workspace {workspace} contains lines that are not from gsd (number: {count}); the first is line \
         {number}, which {damage}",
        log.path()
    );
    ToolError::new("LOG_FOREIGN", message)
        .remediation(format!(
            "Restore the log from Git, or move it away, and call again. gsd_import with on_damaged=set_aside moves its \
             lines to {}.",
            log.set_aside_path()
        ))
        .context("path", log.path())
        .context("line", *number)
        .context("damaged_lines", count)
        .next_call(next::status(Some(workspace)))
}
