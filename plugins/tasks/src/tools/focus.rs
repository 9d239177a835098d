//! The focus: what reads without `task` are about. It is a convenience, not part of the plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, Tier, Tool, ToolError};

use crate::limits::NAME;
use crate::model::Workspace;
use crate::mutation;
use crate::scope::Scope;
use crate::store;

/// What has the focus.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Focus {
    /// The plan or task; absent if nothing has the focus.
    #[serde(skip_serializing_if = "Option::is_none")]
    focus: Option<String>,
    /// What had it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// Whether writes without `task` go there too.
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

/// Give a plan or task the focus of its workspace: reads without `task` are about it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FocusSet {
    workspace: Workspace,
    /// The plan or task.
    #[schemars(length(min = 1, max = NAME))]
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
        move_focus(scope, Some(head.id))
    }
}

/// Take the focus away.
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
        move_focus(Scope::known(cx, &self.workspace)?, None)
    }
}

fn move_focus(mut scope: Scope<'_>, to: Option<String>) -> Result<Focus, ToolError> {
    let previous = std::mem::replace(&mut scope.counters.focus, to);
    mutation::pass(scope.cx)?;
    store::workspace::save(scope.db(), &scope.workspace, &scope.counters)?;
    Ok(Focus {
        focus: scope.counters.focus,
        previous,
        focus_writes: scope.config.focus_writes,
    })
}
