//! The prompt with which people resume work.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Prompt, ToolError};

use crate::error::Reason;
use crate::limits::short;
use crate::model::Workspace;
use crate::scope::Scope;
use crate::store;
use crate::work::{self, Limits, Wait};

/// Most workspaces that one prompt shows.
const MAX_WORKSPACES: usize = 3;
/// Entries of each list of a workspace.
const QUEUE_LIMITS: Limits = Limits { ready: 5, waiting: 5 };

/// Resume the work on plans and tasks where it was left.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResumeWork {
    /// Workspace name from tasks_workspaces. Default: the first three with plans.
    workspace: Option<String>,
    /// Name under which you work, for example executor-01.
    actor: Option<String>,
}

impl Prompt for ResumeWork {
    const NAME: &'static str = "tasks_resume_work";
    const TITLE: &'static str = "Resume work on tasks";

    fn say(self, cx: &Cx<'_>) -> Result<String, ToolError> {
        let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let (workspace, actor) = (filled(self.workspace), filled(self.actor));
        let names = match workspace {
            Some(name) => vec![name],
            None => store::workspace::list(&cx.db, "", MAX_WORKSPACES)?
                .into_iter()
                .map(|listed| listed.name)
                .collect(),
        };
        let mut text = String::new();
        for name in names {
            let workspace: Workspace = serde_json::from_value(name.into())
                .map_err(|_| Reason::input("workspace", "is not a name"))?;
            let scope = Scope::known(cx, &workspace)?;
            tell(&scope, actor.as_deref(), &mut text)?;
        }
        if text.is_empty() {
            text.push_str("Nothing is planned. Start with tasks_bootstrap.\n");
        }
        let who = match actor {
            Some(actor) => format!("Pass actor: {:?} in every call.", actor.trim()),
            None => "Choose a name, and pass it as actor in every call.".to_owned(),
        };
        Ok(format!("{text}\n{who}\n{INSTRUCTIONS}"))
    }
}

/// Adds the ready and the waiting work of a workspace.
fn tell(scope: &Scope<'_>, actor: Option<&str>, text: &mut String) -> Result<(), ToolError> {
    let queue = work::queue(scope, None, actor, QUEUE_LIMITS)?;
    let _ = writeln!(text, "workspace {}", scope.workspace.as_str());
    for ready in &queue.ready {
        let _ = writeln!(text, "* {}: {}", ready.root.id, ready.piece.line());
    }
    if queue.ready.is_empty() {
        text.push_str("* nothing is ready\n");
    }
    for (meta, waits) in &queue.waiting {
        let waits: Vec<String> = waits.iter().map(Wait::line).collect();
        let line = format!("{} waits for {}", meta.id, waits.join("; "));
        let _ = writeln!(text, "* {}", short(&line, 240));
    }
    if queue.more {
        text.push_str("* more with tasks_next\n");
    }
    Ok(())
}

/// Instructions for whoever resumes.
const INSTRUCTIONS: &str = "1. Take work with tasks_take, which leases the first ready step to you or returns the one you \
hold. Pass until: \"connection\" if the lease should end with your connection.
2. Read it with tasks_show: criteria, \
tests, notes, evidence and reopening reasons. tasks_resume_pack shows its task.
3. Do the work and run the step's \
tests. Attach each result with tasks_evidence_capture: the operation_id of a test_run, or the output with its exit \
code.
4. Confirm only the checkpoints that are met, and close with tasks_close_step. Each reply names the next \
call.
5. Do not touch work that others hold. Ask the user before you take over, force, reopen, cancel or delete \
anything.";
