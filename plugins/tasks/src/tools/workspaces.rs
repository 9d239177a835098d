//! The list of workspaces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use tollgate_sdk::{Cx, Effect, Tier, Timestamp, Tool, ToolError};

use super::views::bounded;
use crate::budget::{self, Bounded, Shrink, View};
use crate::limits::MAX_NAME_CHARS;
use crate::store;

/// List the workspaces that have plans or tasks, by name. To read on, pass `cursor`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-views" = page()))]
pub(crate) struct Workspaces {
    /// Cursor: `next_cursor` of the previous page.
    #[schemars(length(max = MAX_NAME_CHARS))]
    cursor: Option<String>,
    /// Earlier name of `cursor`, which is still accepted.
    #[schemars(length(max = MAX_NAME_CHARS), extend("deprecated" = true))]
    after: Option<String>,
    /// Maximum number of workspaces, 1 to 200 (default 50).
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

fn page() -> Json {
    json!({
        "title": "Plans",
        "form": "list",
        "items": [{"list": "workspaces"}],
        "arguments": {"limit": 200},
        "opens": {"tool": "tasks_context", "arguments": {"workspace": "workspace"}},
    })
}

/// Workspaces by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Names {
    /// Workspaces by name.
    workspaces: Vec<Entry>,
    /// True if there are more workspaces.
    has_more: bool,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A workspace in a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Entry {
    /// Name of the workspace.
    workspace: String,
    /// Number of plans ever created.
    plans: i64,
    /// Number of tasks ever created.
    tasks: i64,
    /// Time of the last change of a plan or task.
    #[serde(skip_serializing_if = "Option::is_none")]
    touched_at: Option<Timestamp>,
}

impl View for Names {
    const ORDER: &'static [Shrink] = &[Shrink::End("workspaces")];

    fn settle(view: &mut Map<String, Json>, whole: &Map<String, Json>) {
        if !budget::is_cut(view, whole, "workspaces") {
            return;
        }
        view.insert("has_more".to_owned(), json!(true));
        let entries = view.get("workspaces").and_then(Json::as_array);
        let last = entries.and_then(|entries| entries.last());
        match last.and_then(|entry| entry.get("workspace")).cloned() {
            Some(name) => drop(view.insert("next_cursor".to_owned(), name)),
            None => drop(view.shift_remove("next_cursor")),
        }
    }
}

impl Tool for Workspaces {
    const NAME: &'static str = "tasks_workspaces";
    const TITLE: &'static str = "List workspaces";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Full;
    type Output = Bounded<Names>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let limit = bounded("limit", self.limit, 50, 200)?;
        let after = self.cursor.or(self.after).unwrap_or_default();
        let mut listed = store::workspace::list(&cx.db, &after, limit.saturating_add(1))?;
        let has_more = listed.len() > limit;
        listed.truncate(limit);
        let next_cursor = listed.last().filter(|_| has_more).map(|last| last.name.clone());
        let workspaces = listed
            .into_iter()
            .map(|listed| Entry {
                workspace: listed.name,
                plans: listed.plans,
                tasks: listed.tasks,
                touched_at: listed.touched_at,
            })
            .collect();
        let names = Names {
            workspaces,
            has_more,
            next_cursor,
        };
        budget::fit(&names, None)
    }
}
