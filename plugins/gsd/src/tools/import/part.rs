//! One call's part of an import, which commits a few rows at a time.

use std::ops::ControlFlow;

use serde_json::json;
use tollgate_sdk::{Cx, Db, DbError, NextCall, Tool as _, ToolError, Workspace};

use super::{ImportLogs, Imported, OnConflict};
use crate::act::DEFAULT_ACTOR;
use crate::files::{self, DamagedLine, Kind, Log, Parsed, Problem, Rows, Scope, UnknownLine};
use crate::model::{Severity, Unit};
use crate::next;
use crate::replay::{Replayed, replay};
use crate::store;
use crate::store::log::{self, Entry, Event};

/// Rows of one transaction, which has to be short.
const BATCH_ROWS: usize = 40;
/// Milliseconds after which a transaction takes no further row. The host ends transactions after 2 s.
const TRANSACTION_MS: i64 = 400;
/// Milliseconds after which a call takes no further part. The host ends calls after 30 s.
const PART_MS: i64 = 8_000;
/// Bytes of damaged lines that are written at once.
const PIECE_BYTES: usize = 256 << 10;
/// Most warnings of one reply.
const MAX_WARNINGS: usize = 20;

/// One call's part of an import.
pub(super) struct Part<'a> {
    pub(super) call: &'a ImportLogs,
    pub(super) cx: &'a Cx<'a>,
    pub(super) workspace: &'a Workspace<'a>,
    pub(super) began_ms: i64,
    /// Number of lines that the call may still import.
    pub(super) room: usize,
    /// The last event when the logs were compared with the rows. Another one means that another call imports.
    pub(super) last_event: i64,
    /// Counts of what was committed.
    pub(super) imported: Imported,
}

impl Part<'_> {
    /// Imports as much as there is time for.
    pub(super) fn run(&mut self) -> Result<(), ToolError> {
        self.last_event = self
            .cx
            .transaction(|db| log::last_event(&db, &self.call.workspace))?;
        let entries = self.lines(Log::Audit)?;
        let events = self.lines(Log::Events)?;
        self.refuse_damaged(&events)?;
        // Nothing depends on audit entries, so their damaged lines stop nobody.
        if self.workspace.info().may_write(Log::Audit.set_aside_path()) {
            self.set_aside(Log::Audit, &entries)?;
        }
        if self.call.sets_aside() {
            self.set_aside(Log::Events, &events)?;
        }
        let count =
            |lines: &[UnknownLine], kind: &Kind| lines.iter().filter(|line| line.kind == *kind).count();
        self.imported.left_entries = count(&entries, &Kind::Entry);
        self.imported.left_events = count(&events, &Kind::Event);
        self.import_entries(&entries)?;
        if self.imported.left_entries == 0 {
            self.import_events(&events)?;
        }
        self.audit()?;
        match self.imported.left_entries + self.imported.left_events {
            0 => self.render(),
            _ => {
                self.imported.stale = true;
                self.imported.next_call = Some(self.call.again(None));
            }
        }
        Ok(())
    }

    fn elapsed_ms(&self) -> i64 {
        self.cx.now().as_ms() - self.began_ms
    }

    fn is_over(&self) -> bool {
        self.elapsed_ms() >= PART_MS
    }

    /// Lines of a log that are not stored.
    fn lines(&self, log: Log) -> Result<Vec<UnknownLine>, ToolError> {
        match self.workspace.find(log.path())? {
            Some(there) => files::unknown_lines(Rows::Pieces(self.cx), self.workspace, log, &there),
            None => Ok(Vec::new()),
        }
    }

    /// Refuses damaged lines, unless these are set aside.
    fn refuse_damaged(&self, events: &[UnknownLine]) -> Result<(), ToolError> {
        let mut damaged = events.iter().filter_map(|line| match &line.kind {
            Kind::Damaged(damage) => Some((line.number, damage)),
            _ => None,
        });
        let Some((number, damage)) = damaged.next().filter(|_| !self.call.sets_aside()) else {
            return Ok(());
        };
        let first = DamagedLine {
            log: Log::Events,
            number,
            damage: damage.clone(),
        };
        Err(files::damaged(&self.call.workspace, &first, damaged.count() + 1))
    }

    /// Copies damaged lines to another file, so that the log can be rewritten without them. Repeating it copies none
    /// twice.
    fn set_aside(&mut self, log: Log, lines: &[UnknownLine]) -> Result<(), ToolError> {
        let is_damaged = |line: &&UnknownLine| matches!(line.kind, Kind::Damaged(_));
        if !lines.iter().any(|line| is_damaged(&line)) {
            return Ok(());
        }
        let (path, workspace) = (log.set_aside_path(), self.workspace);
        let there = files::digests(workspace, path)?;
        let mut text = String::new();
        let imported = &mut self.imported;
        files::visit(
            workspace,
            log,
            lines.iter().filter(is_damaged),
            |number, line, _| {
                let line = line.trim();
                if !there.contains(&files::digest(line)) {
                    text.push_str(line);
                    text.push('\n');
                    imported.set_aside += 1;
                    if imported.set_aside <= MAX_WARNINGS {
                        let warning = format!("line {number} of {} was moved to {path}", log.path());
                        imported.warnings.push(warning);
                    }
                }
                if text.len() > PIECE_BYTES {
                    workspace.append(path, text.as_bytes())?;
                    text.clear();
                }
                Ok(ControlFlow::Continue(()))
            },
        )?;
        if !text.is_empty() {
            workspace.append(path, text.as_bytes())?;
        }
        Ok(())
    }

    /// Adds audit entries, a few in each transaction.
    fn import_entries(&mut self, lines: &[UnknownLine]) -> Result<(), ToolError> {
        let mut batch = Vec::new();
        let (workspace, room) = (self.workspace, self.room);
        let wanted = lines.iter().filter(|line| line.kind == Kind::Entry).take(room);
        files::visit(workspace, Log::Audit, wanted, |_, _, parsed| {
            if let Some(Parsed::Entry(entry)) = parsed {
                batch.push(Entry {
                    workspace: workspace.name().to_owned(),
                    ..entry
                });
            }
            match batch.len() < BATCH_ROWS {
                true => Ok(ControlFlow::Continue(())),
                false => self.add(&mut batch),
            }
        })?;
        self.add(&mut batch).map(drop)
    }

    /// Stores entries, unless the time is over.
    fn add(&mut self, batch: &mut Vec<Entry>) -> Result<ControlFlow<()>, ToolError> {
        if self.is_over() {
            batch.clear();
            return Ok(ControlFlow::Break(()));
        }
        self.cx.transaction(|db| {
            let mut entries = batch.iter();
            entries.try_for_each(|entry| log::append_entry(&db, entry.clone()).map(drop))
        })?;
        self.imported.entries += batch.len();
        self.imported.left_entries -= batch.len();
        self.room -= batch.len();
        batch.clear();
        Ok(ControlFlow::Continue(()))
    }

    /// Applies events, a few in each transaction. Events before a refused one stay imported.
    fn import_events(&mut self, lines: &[UnknownLine]) -> Result<(), ToolError> {
        let mut batch: Vec<(usize, Event)> = Vec::new();
        let (workspace, room) = (self.workspace, self.room);
        let wanted = lines.iter().filter(|line| line.kind == Kind::Event).take(room);
        files::visit(workspace, Log::Events, wanted, |number, _, parsed| {
            if let Some(Parsed::Event(event)) = parsed {
                let workspace = workspace.name().to_owned();
                batch.push((number, Event { workspace, ..event }));
            }
            match batch.len() < BATCH_ROWS {
                true => Ok(ControlFlow::Continue(())),
                false => self.apply_all(&mut batch),
            }
        })?;
        self.apply_all(&mut batch).map(drop)
    }

    /// Applies a batch of events in one transaction, or in several if they take long, unless the time is over.
    fn apply_all(&mut self, batch: &mut Vec<(usize, Event)>) -> Result<ControlFlow<()>, ToolError> {
        while !batch.is_empty() {
            if self.is_over() {
                batch.clear();
                return Ok(ControlFlow::Break(()));
            }
            let applied = self.cx.transaction(|db| self.apply_some(&db, batch))?;
            let Applied {
                imported,
                skipped,
                warnings,
                last_event,
                conflict,
            } = applied;
            self.imported.imported += imported;
            self.imported.skipped += skipped;
            self.imported.left_events -= imported + skipped;
            self.imported.warnings.extend(warnings);
            let is_other = last_event != self.last_event && imported + skipped == 0;
            self.last_event = last_event;
            batch.drain(..imported + skipped);
            if let Some((number, event, why)) = conflict {
                return Err(self.conflict(number, &event, *why));
            }
            if is_other {
                batch.clear();
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn apply_some(&self, db: &Db<'_>, batch: &[(usize, Event)]) -> Result<Applied, ToolError> {
        let began_ms = self.elapsed_ms();
        let name = &self.call.workspace;
        let mut applied = Applied {
            last_event: log::last_event(db, name)?,
            ..Applied::default()
        };
        // Another call has imported since the lines were read.
        if applied.last_event != self.last_event {
            return Ok(applied);
        }
        for (number, event) in batch {
            let outcome = match event.skipped {
                true => None,
                false => Some(replay(self.cx, db, event)?),
            };
            match outcome {
                Some(Replayed::Applied) => applied.imported += 1,
                Some(Replayed::Refused(why)) if self.call.on_conflict != Some(OnConflict::Skip) => {
                    applied.conflict = Some((*number, event.clone(), why));
                    break;
                }
                skipped => {
                    let skips = Event {
                        skipped: true,
                        ..event.clone()
                    };
                    log::append_event(db, skips)?;
                    applied.skipped += 1;
                    if let Some(Replayed::Refused(why)) = skipped
                        && self.imported.skipped + applied.skipped <= MAX_WARNINGS
                    {
                        let (cmd, unit) = (&event.cmd, &event.unit);
                        let warning = format!("line {number}, {cmd} of {unit}: {}", why.message);
                        applied.warnings.push(warning);
                    }
                }
            }
            if self.elapsed_ms() - began_ms >= TRANSACTION_MS {
                break;
            }
        }
        applied.last_event = log::last_event(db, name)?;
        Ok(applied)
    }

    /// The refusal of an event that contradicts what is stored.
    fn conflict(&self, number: usize, event: &Event, why: ToolError) -> ToolError {
        let message = format!(
            "line {number} of the event log, {} of {} by {}, contradicts what is stored: {}",
            event.cmd, event.unit, event.actor_name, why.message
        );
        let name = &self.call.workspace;
        let unit = Unit::parse(&event.unit);
        let known = self.cx.transaction(|db| match &unit {
            Some(unit) => store::exists(&db, name, unit),
            None => Ok::<_, DbError>(false),
        });
        let look = match unit.filter(|_| known == Ok(true)) {
            Some(unit) => next::show(name, &unit),
            // The status would suggest the import again.
            None => NextCall::new("gsd_events", json!({ "workspace": name })),
        };
        ToolError::new("LOG_CONFLICT", message)
            .remediation(
                "Keep such events without applying them with on_conflict=skip, or restore the log from Git.",
            )
            .blockers(why.blockers)
            .context("line", number)
            .next_call(look)
    }

    /// Adds to a refusal what the call has committed.
    pub(super) fn told(&mut self, mut err: ToolError) -> ToolError {
        let Imported {
            imported,
            skipped,
            entries,
            ..
        } = self.imported;
        if imported + skipped + entries == 0 {
            return err;
        }
        // The refusal counts more than a failure to record the part before it.
        let _ = self.audit();
        err.message = format!(
            "{}; before this line, the call imported events ({imported}) and audit entries ({entries}), and kept \
             events unapplied ({skipped})",
            err.message
        );
        err.context("imported", imported)
            .context("skipped", skipped)
            .context("entries", entries)
    }

    /// Writes the files that do not show the stored data, or those of some milestones if the time is over.
    fn render(&mut self) {
        let (cx, call) = (self.cx, self.call);
        let drops_damaged: &[Log] = match call.sets_aside() {
            true => &[Log::Audit, Log::Events],
            false => &[Log::Audit],
        };
        let scope = Scope {
            after: call.files_after.as_ref(),
            until: Some(tollgate_sdk::Timestamp::from_ms(self.began_ms + PART_MS)),
            only_changed: true,
            drops_damaged,
            ..Scope::default()
        };
        let imported = &mut self.imported;
        imported.next_call = Some(next::status(Some(&call.workspace)));
        match files::render(cx, &call.workspace, &scope) {
            Ok(rendered) => {
                imported.stale = !rendered.problems.is_empty();
                let problems = rendered.problems.iter().take(MAX_WARNINGS);
                imported.warnings.extend(problems.map(Problem::to_string));
                if let Some(last) = &rendered.stopped_after {
                    imported.stale = true;
                    imported.next_call = Some(call.again(Some(last)));
                }
            }
            Err(err) => {
                imported.stale = true;
                imported.warnings.push(err.message);
            }
        }
    }

    /// Records the part, if events were imported.
    fn audit(&self) -> Result<(), ToolError> {
        let imported = &self.imported;
        if imported.imported + imported.skipped == 0 {
            return Ok(());
        }
        let message = format!(
            "imported events: {}, imported audit entries: {}, events that were not applied: {}",
            imported.imported, imported.entries, imported.skipped
        );
        let entry = Entry {
            id: 0,
            workspace: self.call.workspace.clone(),
            ts: self.cx.now(),
            severity: Severity::Info,
            tool: ImportLogs::NAME.to_owned(),
            unit: String::new(),
            code: None,
            message,
            actor_name: DEFAULT_ACTOR.to_owned(),
            trigger_reason: None,
            session_id: self.cx.session_id().to_owned(),
            op_id: self.cx.op_id().to_owned(),
        };
        self.cx.transaction(|db| log::append_entry(&db, entry))?;
        Ok(())
    }
}

/// Outcome of one transaction of events.
#[derive(Debug, Default)]
struct Applied {
    imported: usize,
    skipped: usize,
    warnings: Vec<String>,
    last_event: i64,
    /// The event that contradicts what is stored, with its line.
    conflict: Option<(usize, Event, Box<ToolError>)>,
}
