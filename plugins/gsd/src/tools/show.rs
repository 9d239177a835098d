//! Everything that is stored about one unit, in pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tollgate_sdk::{Cx, DbError, Effect, Tool, ToolError};

use super::status::{is_known, require_known};
use crate::arguments::MAX_WORKSPACE_CHARS;
use crate::describe;
use crate::model::{MilestoneId, Unit};
use crate::next;
use crate::violation::Violation;

/// Fewest and most characters of one page, and the default.
const MIN_CHARACTERS: u32 = 200;
const MAX_CHARACTERS: u32 = 50_000;
const DEFAULT_CHARACTERS: u32 = 8_000;
/// Characters of the longest key.
const MAX_KEY_CHARS: usize = 20;

/// Show all that is stored about a milestone, slice or task: plan, status, claim, summary, verification,
/// assessments, replans, reopenings and history. Works before a task starts and after it is closed. To read on,
/// pass `cursor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = json!([{
    "path": "workspaces/{workspace}/milestones/{milestone_id}.md{?cursor}",
    "name": "milestone",
    "title": "Milestone",
    "description": "A milestone with its plan, slices, validation, assessments and history.",
    "mime_type": "text/markdown",
}])))]
#[schemars(extend("x-views" = json!({
    "title": "Unit",
    "form": "list",
    "asks": ["workspace", "unit"],
    "arguments": {"limit": MAX_CHARACTERS},
})))]
pub(crate) struct ShowUnit {
    /// Name of the workspace of the unit, from gsd_status.
    #[schemars(length(min = 1, max = MAX_WORKSPACE_CHARS))]
    #[schemars(extend("x-values" = json!({"tool": "gsd_status", "items": "milestones", "value": "workspace"})))]
    workspace: String,
    /// Key of the unit, for example M01, M01/S01 or M01/S01/T01.
    #[schemars(length(max = MAX_KEY_CHARS))]
    unit: Option<String>,
    /// Milestone id, for example M01, instead of a milestone's key.
    #[schemars(extend("x-values" = json!({"tool": "gsd_status", "items": "milestones", "value": "milestone_id"})))]
    milestone_id: Option<MilestoneId>,
    /// Cursor: `next_cursor` of the previous page.
    cursor: Option<u32>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(extend("deprecated" = true))]
    after: Option<u32>,
    /// Maximum number of characters, 200 to 50000 (default 8000).
    #[schemars(range(min = MIN_CHARACTERS, max = MAX_CHARACTERS))]
    limit: Option<u32>,
}

/// Page of a unit's description.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// Key of the unit.
    unit: String,
    /// Title of the unit.
    title: String,
    /// Status of the unit.
    status: String,
    /// Part of the description in Markdown.
    content: String,
    /// Value of `cursor` for the next page, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<u32>,
    /// True if there is more.
    has_more: bool,
}

impl Tool for ShowUnit {
    const NAME: &'static str = "gsd_show";
    const TITLE: &'static str = "Show a unit";
    const EFFECT: Effect = Effect::Read;
    type Output = Shown;

    fn run(self, cx: &Cx<'_>) -> Result<Shown, ToolError> {
        let unit = self.unit(cx)?;
        require_known(cx, &self.workspace)?;
        let Some(described) = describe::describe(&cx.db, &self.workspace, &unit, cx.now())? else {
            return Err(self.not_found(cx, unit)?);
        };
        let cursor = self.cursor.or(self.after).unwrap_or_default();
        let limit = self
            .limit
            .unwrap_or(DEFAULT_CHARACTERS)
            .clamp(MIN_CHARACTERS, MAX_CHARACTERS);
        let (skipped, most) = (cursor as usize, limit as usize);
        let mut rest = described.content.chars().skip(skipped);
        let content: String = rest.by_ref().take(most).collect();
        let has_more = rest.next().is_some();
        Ok(Shown {
            unit: unit.to_string(),
            title: described.title,
            status: described.status,
            content,
            next_cursor: has_more.then(|| cursor.saturating_add(limit)),
            has_more,
        })
    }

    fn text(shown: &Shown) -> Option<String> {
        let more = shown.next_cursor.map_or_else(String::new, |cursor| {
            format!("\n… To read on, call gsd_show with cursor={cursor}.\n")
        });
        Some(format!("{}{more}", shown.content))
    }
}

impl ShowUnit {
    fn unit(&self, cx: &Cx<'_>) -> Result<Unit, ToolError> {
        let key = match (&self.unit, &self.milestone_id) {
            (Some(key), _) => key.as_str(),
            (None, Some(id)) => id.as_str(),
            (None, None) => "",
        };
        let unit = Unit::parse(key).filter(|unit| {
            let id = self.milestone_id.as_ref();
            id.is_none_or(|id| *id == unit.milestone)
        });
        unit.ok_or_else(|| {
            let fault = format!("is `{}`, not a key such as M01/S01/T01", key.escape_debug());
            let refusal: ToolError = Violation::argument("unit", fault).into();
            let is_known = is_known(cx, &self.workspace).unwrap_or_default();
            refusal.next_call(next::status(Some(self.workspace.as_str()).filter(|_| is_known)))
        })
    }

    fn not_found(&self, cx: &Cx<'_>, unit: Unit) -> Result<ToolError, DbError> {
        let milestone = Unit::milestone(&unit.milestone);
        let exists = crate::store::exists(&cx.db, &self.workspace, &milestone)?;
        let refusal: ToolError = Violation::missing(&cx.db, &self.workspace, unit)?.into();
        Ok(refusal.next_call(match exists {
            true => next::show(&self.workspace, &milestone),
            false => next::status(Some(&self.workspace)),
        }))
    }
}
