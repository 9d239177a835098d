//! Writing the files anew.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use crate::arguments::WORKSPACE;
use crate::files::{self, Problem};
use crate::model::MilestoneId;

/// Paths that one reply names.
const NAMED: usize = 200;

/// Write every file in `.gsd/` of a registered workspace anew from what is stored, whatever became of the files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderFiles {
    /// Which workspace.
    #[schemars(length(min = 1, max = WORKSPACE))]
    workspace: String,
    /// Only what belongs to this milestone, beside the logs, the claims and the state.
    milestone_id: Option<MilestoneId>,
}

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rendered {
    /// How many files were written.
    written: usize,
    /// The first of them, at most 200.
    paths: Vec<String>,
    /// Some files could not be written.
    stale: bool,
    /// Which, and why.
    warnings: Vec<String>,
}

impl Tool for RenderFiles {
    const NAME: &'static str = "gsd_render";
    const TITLE: &'static str = "Write the files anew";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Rendered;

    fn run(self, cx: &Cx<'_>) -> Result<Rendered, ToolError> {
        let files::Rendered {
            mut written,
            problems,
        } = files::render(cx, &self.workspace, self.milestone_id.as_ref())?;
        let count = written.len();
        written.truncate(NAMED);
        Ok(Rendered {
            written: count,
            paths: written,
            stale: !problems.is_empty(),
            warnings: problems.iter().take(NAMED).map(Problem::to_string).collect(),
        })
    }
}
