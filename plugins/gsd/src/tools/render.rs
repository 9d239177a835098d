//! Rewriting the files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tool, ToolError};

use crate::arguments::MAX_WORKSPACE_CHARS;
use crate::files::{self, Problem, Scope};
use crate::model::MilestoneId;
use crate::next;

/// Most paths that one reply names.
const MAX_NAMED_PATHS: usize = 200;

/// Rewrite every file in `.gsd/` of a registered workspace from the stored data. Writes nothing while the event log
/// has lines that are not stored; gsd_import imports those.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderFiles {
    /// Name of a registered workspace.
    #[schemars(length(min = 1, max = MAX_WORKSPACE_CHARS))]
    workspace: String,
    /// Milestone id, to rewrite only its files and the shared ones. Default: all.
    milestone_id: Option<MilestoneId>,
}

/// Result of rewriting the files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Rendered {
    /// Number of files that were written.
    written: usize,
    /// Paths of the first 200 files.
    paths: Vec<String>,
    /// True if some files could not be written.
    stale: bool,
    /// Files that could not be written, with reasons.
    warnings: Vec<String>,
    /// Call that comes first, if the event log has lines that are not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

impl Tool for RenderFiles {
    const NAME: &'static str = "gsd_render";
    const TITLE: &'static str = "Rewrite the files";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Rendered;

    fn run(self, cx: &Cx<'_>) -> Result<Rendered, ToolError> {
        let scope = Scope {
            only: self.milestone_id.as_ref(),
            ..Scope::default()
        };
        let files::Rendered {
            mut written,
            problems,
            next_call,
            ..
        } = files::render(cx, &self.workspace, &scope).map_err(|err| err.next_call(next::status(None)))?;
        let count = written.len();
        written.truncate(MAX_NAMED_PATHS);
        Ok(Rendered {
            written: count,
            paths: written,
            stale: !problems.is_empty(),
            warnings: problems
                .iter()
                .take(MAX_NAMED_PATHS)
                .map(Problem::to_string)
                .collect(),
            next_call,
        })
    }
}
