//! The focus: default plan or task of reads. The focus is not part of the plan's state.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use crate::limits::MAX_NAME_CHARS;
use crate::model::Workspace;
use crate::mutation;
use crate::named;
use crate::scope::Scope;
use crate::store;

/// The focus of a workspace.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Focus {
    /// Id of the plan or task, absent without a focus.
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    /// Id of the plan or task that had the focus before.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// True if writes without `task` use the focus too.
    focus_writes: bool,
}

/// Show which plan or task has the focus of a workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FocusGet {
    workspace: Workspace,
}

impl Tool for FocusGet {
    const NAME: &'static str = "tasks_focus_get";
    const TITLE: &'static str = "Show the focus";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Full;
    type Output = Focus;

    fn run(self, cx: &Cx<'_>) -> Result<Focus, ToolError> {
        let scope = Scope::known(cx, &self.workspace)?;
        Ok(Focus {
            focus: scope.counters.focus,
            previous: None,
            focus_writes: scope.config.focus_writes,
        })
    }
}

/// Set the focus of a workspace: the plan or task that reading tools show if a call omits `task`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FocusSet {
    workspace: Workspace,
    /// Plan or task id to focus, for example TASK-001.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS))]
    task: String,
}

impl Tool for FocusSet {
    const NAME: &'static str = "tasks_focus_set";
    const TITLE: &'static str = "Set the focus";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Full;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Focus;

    fn run(self, cx: &Cx<'_>) -> Result<Focus, ToolError> {
        let scope = Scope::known(cx, &self.workspace)?;
        let head = scope.head(&self.task)?;
        move_focus(scope, Self::NAME, Some(head.id))
    }
}

/// Clear the focus of a workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FocusClear {
    workspace: Workspace,
}

impl Tool for FocusClear {
    const NAME: &'static str = "tasks_focus_clear";
    const TITLE: &'static str = "Clear the focus";
    const EFFECT: Effect = Effect::Write;
    const TIER: Tier = Tier::Full;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Focus;

    fn run(self, cx: &Cx<'_>) -> Result<Focus, ToolError> {
        move_focus(Scope::known(cx, &self.workspace)?, Self::NAME, None)
    }
}

fn move_focus(mut scope: Scope<'_>, tool: &str, to: Option<String>) -> Result<Focus, ToolError> {
    let previous = std::mem::replace(&mut scope.counters.focus, to);
    mutation::pass(scope.cx)?;
    store::workspace::save(scope.db(), &scope.workspace, &scope.counters)?;
    named::record(scope.cx, tool, &BTreeSet::from([named::FOCUS.to_owned()]))?;
    Ok(Focus {
        focus: scope.counters.focus,
        previous,
        focus_writes: scope.config.focus_writes,
    })
}
