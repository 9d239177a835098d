//! Listing the approvals of all tasks.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tollgate_sdk::{Cx, Effect, Id as _, NextCall, Tool, ToolError};

use super::page::list_arguments;
use crate::arguments::MAX_PATH_CHARS;
use crate::model::{ApprovalId, ApprovalStatus};
use crate::phase::Phase;
use crate::store::approval::{self, Approval, Filter, Listed};

list_arguments! {
    /// List approvals of all tasks, oldest first: the pending ones, unless `status` says otherwise. To read on, pass
    /// `cursor`. Next: task_resolve_approval with `task_id` and `approval_id`.
    // Pages follow numbers that calls about several tasks take at the same time.
    #[schemars(extend("x-feed" = true))]
    pub(crate) struct TaskListApprovals {
        /// Status of the approvals (default pending).
        status: Option<ApprovalStatus>,
        /// Workspace of the tasks. Default: all.
        #[schemars(length(max = MAX_PATH_CHARS))]
        workspace: Option<String>,
    }
    limit: "Maximum number of approvals, 1 to 100 (default 20).",
    cursor: "Cursor: `next_cursor` of the previous page.",
}

/// Page of approvals.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Approvals {
    /// Approvals of the page.
    approvals: Vec<ListedApproval>,
    /// True if there are more approvals.
    has_more: bool,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<ApprovalId>,
}

/// An approval with its task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedApproval {
    /// The request with its decision.
    #[serde(flatten)]
    approval: Approval,
    /// One-line title of the task.
    task_title: String,
    /// Workspace of the task.
    workspace: String,
    /// Current phase of the task.
    task_phase: Phase,
    /// True if the answer counts: the task is not over, and the attempt is its current one.
    counts: bool,
}

impl From<Listed> for ListedApproval {
    fn from(listed: Listed) -> ListedApproval {
        ListedApproval {
            approval: listed.approval,
            task_title: listed.title,
            workspace: listed.workspace,
            task_phase: listed.phase,
            counts: listed.is_current,
        }
    }
}

impl Tool for TaskListApprovals {
    const NAME: &'static str = "task_list_approvals";
    const TITLE: &'static str = "List approvals";
    const EFFECT: Effect = Effect::Read;
    type Output = Approvals;

    fn run(self, cx: &Cx<'_>) -> Result<Approvals, ToolError> {
        let (_, mut refusals, page) = self.start(cx)?;
        let status = self.status.unwrap_or(ApprovalStatus::Pending);
        let after = page.cursor.cloned().map(ApprovalId::from_text);
        if let Some(id) = &after {
            let is_known = approval::exists(&cx.db, id)?;
            refusals.cursor(
                page,
                is_known,
                NextCall::new(Self::NAME, json!({"status": status})),
            );
        }
        refusals.finish()?;
        let filter = Filter {
            status: Some(status),
            workspace: self.workspace.as_ref(),
        };
        let mut found = approval::list(&cx.db, &filter, after.as_ref(), page.limit + 1)?;
        let next_cursor = page.cut(&mut found, |listed| &listed.approval.id);
        Ok(Approvals {
            has_more: next_cursor.is_some(),
            next_cursor,
            approvals: found.into_iter().map(ListedApproval::from).collect(),
        })
    }
}
