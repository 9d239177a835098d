//! The files in `.gsd/`: projections of what is stored, rendered by pure functions and never read as
//! truth.

mod documents;
mod logs;
mod write;

pub(crate) use write::{project, render};

use crate::model::{MilestoneId, SliceId, TaskId};

/// Whose files show a change, beside the logs and the state.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    /// The milestone's roadmap.
    pub roadmap: bool,
    /// Plans of slices.
    pub slices: Vec<SliceId>,
    /// Summaries of tasks.
    pub summaries: Vec<(SliceId, TaskId)>,
    /// Who holds what.
    pub claims: bool,
    /// Nothing was changed, so that the state is as it was.
    pub changed: bool,
}

impl Touched {
    /// Something about a milestone or which slices it has.
    pub(crate) fn roadmap() -> Touched {
        Touched {
            roadmap: true,
            changed: true,
            ..Touched::default()
        }
    }

    /// Something in a slice.
    pub(crate) fn slice(slice: &SliceId) -> Touched {
        Touched {
            slices: vec![slice.clone()],
            ..Touched::roadmap()
        }
    }

    /// Who holds what.
    pub(crate) fn claims() -> Touched {
        Touched {
            claims: true,
            changed: true,
            ..Touched::default()
        }
    }
}

/// The file of the event log.
const EVENTS: &str = ".gsd/event-log.jsonl";
/// The file of the audit log.
const AUDIT: &str = ".gsd/audit-log.jsonl";
const CLAIMS: &str = ".gsd/unit-claims.json";
const STATE: &str = ".gsd/STATE.md";

fn roadmap_path(milestone: &MilestoneId) -> String {
    format!(".gsd/milestones/{milestone}/{milestone}-ROADMAP.md")
}

fn plan_path(milestone: &MilestoneId, slice: &SliceId) -> String {
    format!(".gsd/milestones/{milestone}/slices/{slice}/{slice}-PLAN.md")
}

fn summary_path(milestone: &MilestoneId, slice: &SliceId, task: &TaskId) -> String {
    format!(".gsd/milestones/{milestone}/slices/{slice}/tasks/{task}-SUMMARY.md")
}
