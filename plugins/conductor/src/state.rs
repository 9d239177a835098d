//! Statuses of a job, and the events that each status allows.

use thiserror::Error;
use tollgate_sdk::text_enum;

text_enum! {
    /// Status of a job.
    pub(crate) enum Status {
        Planning = "PLANNING",
        Ready = "READY",
        Executing = "EXECUTING",
        Paused = "PAUSED",
        Complete = "COMPLETE",
        Failed = "FAILED",
        Archived = "ARCHIVED",
    }
}

text_enum! {
    /// Events of a job.
    pub(crate) enum Event {
        EditPlan = "edit_plan",
        RefineSteps = "refine_steps",
        SetReady = "set_ready",
        Start = "start",
        Prompt = "prompt",
        Submit = "submit",
        Pause = "pause",
        Resume = "resume",
        Finish = "finish",
        Approve = "approve",
        UpdatePolicies = "update_policies",
        Fail = "fail",
        Archive = "archive",
    }
}

/// An event that a status does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{event} is not possible while the job is {status}")]
pub(crate) struct Illegal {
    pub status: Status,
    pub event: Event,
}

impl Status {
    /// Status after an event.
    pub(crate) const fn on(self, event: Event) -> Result<Status, Illegal> {
        use Status::{Archived, Complete, Executing, Failed, Paused, Planning, Ready};
        Ok(match (self, event) {
            (Planning | Ready, Event::EditPlan | Event::RefineSteps) => Planning,
            (Executing, Event::RefineSteps | Event::Prompt | Event::Submit) => Executing,
            (Paused, Event::RefineSteps) => Paused,
            (Planning | Ready, Event::SetReady) => Ready,
            (Ready, Event::Start) | (Paused, Event::Resume) => Executing,
            (Executing, Event::Pause) => Paused,
            (Executing, Event::Finish) => Complete,
            (status @ (Planning | Ready | Executing | Paused), Event::Approve | Event::UpdatePolicies) => {
                status
            }
            (Planning | Ready | Executing | Paused, Event::Fail) => Failed,
            (Planning | Complete | Failed, Event::Archive) => Archived,
            (status, event) => return Err(Illegal { status, event }),
        })
    }

    /// Statuses that allow an event.
    pub(crate) fn that_allow(event: Event) -> Vec<Status> {
        Status::ALL
            .iter()
            .copied()
            .filter(|status| status.on(event).is_ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::expect;

    use super::*;

    #[test]
    fn every_event_in_every_status() {
        let mut table = String::new();
        for &status in Status::ALL {
            let _ = write!(table, "{status}:");
            for &event in Event::ALL {
                if let Ok(next) = status.on(event) {
                    let _ = write!(table, " {event}→{next}");
                }
            }
            table.push('\n');
        }
        expect![[r#"
            PLANNING: edit_plan→PLANNING refine_steps→PLANNING set_ready→READY approve→PLANNING update_policies→PLANNING fail→FAILED archive→ARCHIVED
            READY: edit_plan→PLANNING refine_steps→PLANNING set_ready→READY start→EXECUTING approve→READY update_policies→READY fail→FAILED
            EXECUTING: refine_steps→EXECUTING prompt→EXECUTING submit→EXECUTING pause→PAUSED finish→COMPLETE approve→EXECUTING update_policies→EXECUTING fail→FAILED
            PAUSED: refine_steps→PAUSED resume→EXECUTING approve→PAUSED update_policies→PAUSED fail→FAILED
            COMPLETE: archive→ARCHIVED
            FAILED: archive→ARCHIVED
            ARCHIVED:
        "#]].assert_eq(&table);
    }
}
