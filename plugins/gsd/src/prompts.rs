//! The prompt with which people resume work.

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Prompt, ToolError};

use crate::config::Config;
use crate::draw;
use crate::standing;
use crate::store;
use crate::tools::status::require_known;

/// Most workspaces that one prompt shows.
const MAX_WORKSPACES: usize = 3;

/// Resume the work on milestones, slices and tasks where it was left.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeWork {
    /// Workspace name from gsd_status. Default: all with milestones.
    workspace: Option<String>,
    /// Name under which you work, for example executor-01.
    actor: Option<String>,
}

impl Prompt for ResumeWork {
    const NAME: &'static str = "gsd_resume_work";
    const TITLE: &'static str = "Resume work on milestones";

    fn say(self, cx: &Cx<'_>) -> Result<String, ToolError> {
        let config: Config = cx.config()?;
        let names = match self.workspace.filter(|name| !name.trim().is_empty()) {
            Some(workspace) => {
                require_known(cx, &workspace)?;
                vec![workspace]
            }
            None => store::workspaces(&cx.db)?,
        };
        let mut trees = Vec::new();
        for name in names.iter().take(MAX_WORKSPACES) {
            let tree = standing::load(&cx.db, name, None, cx.now())?;
            let outlook = standing::outlook(&config, &tree, None);
            trees.push(draw::draw(&tree, &outlook));
        }
        if trees.is_empty() {
            trees.push("Nothing is planned. Start with gsd_plan_milestone.\n".to_owned());
        }
        let actor = match self.actor.filter(|name| !name.trim().is_empty()) {
            Some(actor) => format!("Pass actor: {:?} in every call.", actor.trim()),
            None => "Choose a name, and pass it as actor in every call.".to_owned(),
        };
        Ok(format!("{}\n{actor}\n{INSTRUCTIONS}", trees.join("\n")))
    }
}

/// Instructions for whoever resumes.
const INSTRUCTIONS: &str = "\
1. Call gsd_status. If it says that logs must be imported, call gsd_import first.
2. Finish what you have started; otherwise take the first next step. Look at its unit with gsd_show.
3. Start a task with gsd_task_start, which returns its plan and reopening reasons.
4. Run the check in the task's `verify`. Call gsd_task_complete, and give every command with its exit code.
5. Each reply names the next call. If a plan no longer works, set blocker_discovered and call gsd_replan_slice.
6. Do not touch work that others hold or have started. Ask the user before you take over, skip or reopen anything.";
