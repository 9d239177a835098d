//! Importing the logs of a workspace that came from another data directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, DbError, Effect, Hints, NextCall, Tool, ToolError, Workspace, text_enum};

use crate::act::ANONYMOUS;
use crate::arguments::WORKSPACE;
use crate::files::{self, Log, Parsed, Problem};
use crate::model::{Severity, Unit};
use crate::next;
use crate::replay::{Replayed, replay};
use crate::store;
use crate::store::log::{self, Entry, Event};

/// Rows of one transaction, which has to be short.
const AT_ONCE: usize = 40;
/// Most warnings of one reply.
const TOLD: usize = 20;

text_enum! {
    /// Treatment of events that contradict what is stored.
    pub(crate) enum OnConflict {
        Refuse = "refuse",
        Skip = "skip",
    }
}

/// Import .gsd/event-log.jsonl and audit-log.jsonl of a workspace: apply every event that is not stored yet, in
/// order, and rewrite the files. For a clone, or after a pull. Importing again changes nothing. Fails if an event
/// is damaged or contradicts what is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportLogs {
    /// Name of a registered workspace.
    #[schemars(length(min = 1, max = WORKSPACE))]
    workspace: String,
    /// refuse (default) stops at the first event that contradicts what is stored; skip keeps such events in the
    /// log without applying them.
    on_conflict: Option<OnConflict>,
}

/// Result of an import.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Imported {
    /// Number of events that were applied.
    imported: usize,
    /// Number of events that were kept and not applied.
    skipped: usize,
    /// Number of audit entries that were added.
    entries: usize,
    /// True if some files could not be written.
    stale: bool,
    /// Skipped events, and files that could not be written, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Next call, ready to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

impl Tool for ImportLogs {
    const NAME: &'static str = "gsd_import";
    const TITLE: &'static str = "Import the logs";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Imported;

    fn run(self, cx: &Cx<'_>) -> Result<Imported, ToolError> {
        let workspace = cx.workspace(&self.workspace).map_err(|err| {
            let refusal = ToolError::from(err);
            refusal.next_call(next::status(None))
        })?;
        let (entries, events) = (
            lines(cx, &workspace, Log::Audit)?,
            lines(cx, &workspace, Log::Events)?,
        );
        let mut imported = Imported::default();
        self.import_entries(cx, entries, &mut imported)?;
        self.import_events(cx, events, &mut imported)?;
        if imported.imported + imported.skipped > 0 {
            self.audit(cx, &imported)?;
        }
        match files::render(cx, &self.workspace, None) {
            Ok(rendered) => {
                imported.stale = !rendered.problems.is_empty();
                let problems = rendered.problems.iter().take(TOLD);
                imported.warnings.extend(problems.map(Problem::to_string));
            }
            Err(err) => {
                imported.stale = true;
                imported.warnings.push(err.message);
            }
        }
        imported.next_call = Some(next::status(Some(&self.workspace)));
        Ok(imported)
    }
}

/// Lines of a log that are not stored.
fn lines(cx: &Cx<'_>, workspace: &Workspace<'_>, log: Log) -> Result<Vec<files::UnknownLine>, ToolError> {
    match workspace.find(log.path())? {
        Some(there) => cx.transaction(|db| files::unknown_lines(&db, workspace, log, &there)),
        None => Ok(Vec::new()),
    }
}

impl ImportLogs {
    /// Adds audit entries. Lines that are none are left out, because nothing depends on them.
    fn import_entries(
        &self,
        cx: &Cx<'_>,
        lines: Vec<files::UnknownLine>,
        imported: &mut Imported,
    ) -> Result<(), ToolError> {
        let entries: Vec<Entry> = lines
            .into_iter()
            .filter_map(|line| match line.parsed {
                Some(Parsed::Entry(entry)) => Some(Entry {
                    workspace: self.workspace.clone(),
                    ..entry
                }),
                _ => None,
            })
            .collect();
        for batch in entries.chunks(AT_ONCE) {
            cx.transaction(|db| {
                for entry in batch {
                    log::append_entry(&db, entry.clone())?;
                }
                Ok::<_, DbError>(())
            })?;
            imported.entries += batch.len();
        }
        Ok(())
    }

    /// Applies events, a few in each transaction. Events before a refused one stay imported.
    fn import_events(
        &self,
        cx: &Cx<'_>,
        lines: Vec<files::UnknownLine>,
        imported: &mut Imported,
    ) -> Result<(), ToolError> {
        let mut events = Vec::new();
        for line in lines {
            match line.parsed {
                Some(Parsed::Event(event)) => events.push((
                    line.number,
                    Event {
                        workspace: self.workspace.clone(),
                        ..event
                    },
                )),
                _ => return Err(files::damaged(&self.workspace, line.number)),
            }
        }
        for batch in events.chunks(AT_ONCE) {
            let conflict = cx.transaction(|db| {
                for (number, event) in batch {
                    if event.skipped {
                        log::append_event(&db, event.clone())?;
                        imported.skipped += 1;
                        continue;
                    }
                    match replay(cx, &db, event)? {
                        Replayed::Applied => imported.imported += 1,
                        Replayed::Refused(why) if self.on_conflict == Some(OnConflict::Skip) => {
                            let skipped = Event {
                                skipped: true,
                                ..event.clone()
                            };
                            log::append_event(&db, skipped)?;
                            imported.skipped += 1;
                            if imported.skipped <= TOLD {
                                let (cmd, unit) = (&event.cmd, &event.unit);
                                let warning = format!("line {number}, {cmd} of {unit}: {}", why.message);
                                imported.warnings.push(warning);
                            }
                        }
                        Replayed::Refused(why) => return Ok(Some((*number, event.clone(), why))),
                    }
                }
                Ok::<_, ToolError>(None)
            })?;
            if let Some((number, event, why)) = conflict {
                return Err(self.conflict(cx, number, &event, *why));
            }
        }
        Ok(())
    }

    /// The refusal of an event that contradicts what is stored.
    fn conflict(&self, cx: &Cx<'_>, number: usize, event: &Event, why: ToolError) -> ToolError {
        let message = format!(
            "line {number} of the event log, {} of {} by {}, contradicts what is stored: {}",
            event.cmd, event.unit, event.actor_name, why.message
        );
        let unit = Unit::parse(&event.unit);
        let known = cx.transaction(|db| match &unit {
            Some(unit) => store::exists(&db, &self.workspace, unit),
            None => Ok::<_, DbError>(false),
        });
        let look = match unit.filter(|_| known == Ok(true)) {
            Some(unit) => next::show(&self.workspace, &unit),
            None => next::status(Some(&self.workspace)),
        };
        ToolError::new("LOG_CONFLICT", message)
            .remediation(
                "Keep such events without applying them with on_conflict=skip, or restore the log from Git.",
            )
            .blockers(why.blockers)
            .context("line", number)
            .next_call(look)
    }

    fn audit(&self, cx: &Cx<'_>, imported: &Imported) -> Result<(), ToolError> {
        let message = format!(
            "imported {} events and {} audit entries; {} events were not applied",
            imported.imported, imported.entries, imported.skipped
        );
        let entry = Entry {
            id: 0,
            workspace: self.workspace.clone(),
            ts: cx.now(),
            severity: Severity::Info,
            tool: Self::NAME.to_owned(),
            unit: String::new(),
            code: None,
            message,
            actor_name: ANONYMOUS.to_owned(),
            trigger_reason: None,
            session_id: cx.session_id().to_owned(),
            op_id: cx.op_id().to_owned(),
        };
        cx.transaction(|db| log::append_entry(&db, entry))?;
        Ok(())
    }
}
