//! Integrity checks.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use crate::budget::{self, Bounded};
use crate::limits::NAME;
use crate::model::Workspace;
use crate::scope::Scope;
use crate::view;

/// Check a plan with its tasks, or a task, for what is wrong. It changes nothing; each issue has a severity, a
/// recovery and a ready call that mends it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lint {
    /// The workspace.
    workspace: Workspace,
    /// The task, or a plan; what has the focus if absent.
    #[schemars(length(max = NAME))]
    task: Option<String>,
    /// The plan.
    #[schemars(length(max = NAME))]
    plan: Option<String>,
}

impl Tool for Lint {
    const NAME: &'static str = "tasks_lint";
    const TITLE: &'static str = "Check a plan or task";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<view::lint::Lint>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let scope = Scope::known(cx, &self.workspace)?;
        let id = scope.root_id(self.task.as_deref(), self.plan.as_deref())?;
        budget::fit(&view::lint::of(&scope, &id)?, None)
    }
}
