//! Integrity checks.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use crate::budget::{self, Bounded};
use crate::target::Subject;
use crate::view;

/// Check a task, or a plan with its tasks, for problems. Each issue has a severity, a recovery and a call
/// that fixes it or shows what to decide first. Changes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Lint {
    #[serde(flatten)]
    subject: Subject,
}

impl Tool for Lint {
    const NAME: &'static str = "tasks_lint";
    const TITLE: &'static str = "Check a plan or task";
    const EFFECT: Effect = Effect::Read;
    type Output = Bounded<view::lint::Lint>;

    fn run(self, cx: &Cx<'_>) -> Result<Self::Output, ToolError> {
        let (scope, id) = self.subject.open(cx)?;
        budget::fit(&view::lint::of(&scope, &id)?, None)
    }
}
