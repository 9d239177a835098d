//! Importing the logs of a workspace that came from another data directory, in parts that each commit.

mod part;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tool, ToolError, text_enum};

use crate::arguments::MAX_WORKSPACE_CHARS;
use crate::model::MilestoneId;
use crate::next;
use part::Part;

text_enum! {
    /// Treatment of events that contradict what is stored.
    pub(crate) enum OnConflict {
        Refuse = "refuse",
        Skip = "skip",
    }
}

text_enum! {
    /// Treatment of lines of the event log that are no events.
    pub(crate) enum OnDamaged {
        Refuse = "refuse",
        SetAside = "set_aside",
    }
}

/// Import .gsd/event-log.jsonl and audit-log.jsonl of a workspace: apply every event that is not stored yet, in
/// order, and rewrite the files. Use it after a clone or pull. A long log takes several calls, each named by
/// next_call. Importing again changes nothing. Fails if an event is damaged or contradicts what is stored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImportLogs {
    /// Name of a registered workspace.
    #[schemars(length(min = 1, max = MAX_WORKSPACE_CHARS))]
    workspace: String,
    /// refuse (default) stops at the first event that contradicts what is stored; skip keeps such events in the
    /// log without applying them.
    on_conflict: Option<OnConflict>,
    /// refuse (default) stops before damaged lines of the event log; set_aside moves these to
    /// .gsd/event-log.damaged.jsonl.
    on_damaged: Option<OnDamaged>,
    /// Maximum number of log lines of this call (default: as many as its time allows).
    #[schemars(range(min = 1))]
    limit: Option<u32>,
    /// Milestone id from next_call, whose files are written already.
    files_after: Option<MilestoneId>,
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
    /// Number of events that are left for the next call.
    left_events: usize,
    /// Number of audit entries that are left for the next call.
    left_entries: usize,
    /// Number of damaged lines that were moved to another file.
    #[serde(skip_serializing_if = "is_zero")]
    set_aside: usize,
    /// True if some files do not show the stored data yet.
    stale: bool,
    /// Skipped events, moved lines, and files that could not be written, with reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Next call, ready to run: gsd_import while something is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
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
        let mut part = Part {
            call: &self,
            cx,
            workspace: &workspace,
            began_ms: cx.now().as_ms(),
            room: self
                .limit
                .and_then(|limit| usize::try_from(limit).ok())
                .unwrap_or(usize::MAX),
            last_event: 0,
            imported: Imported::default(),
        };
        match part.run() {
            Ok(()) => Ok(part.imported),
            Err(err) => Err(part.told(err)),
        }
    }
}

impl ImportLogs {
    fn sets_aside(&self) -> bool {
        self.on_damaged == Some(OnDamaged::SetAside)
    }

    /// The call that goes on.
    fn again(&self, files_after: Option<&MilestoneId>) -> NextCall {
        let given = [
            ("on_conflict", json!(self.on_conflict)),
            ("on_damaged", json!(self.on_damaged)),
            ("limit", json!(self.limit)),
            ("files_after", json!(files_after)),
        ];
        let mut arguments = Map::from_iter([("workspace".to_owned(), json!(self.workspace))]);
        let given = given.into_iter().filter(|(_, value)| !value.is_null());
        arguments.extend(given.map(|(name, value)| (name.to_owned(), value)));
        NextCall::new(Self::NAME, Json::Object(arguments))
    }
}
