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
        Delete = "delete",
    }
}

impl Event {
    /// Words of a refusal of the event.
    const fn refused(self) -> &'static str {
        match self {
            Event::EditPlan => "the plan cannot be edited",
            Event::RefineSteps => "the steps cannot be changed",
            Event::SetReady => "the job cannot be made ready",
            Event::Start => "the job cannot be started",
            Event::Prompt => "no step prompt is available",
            Event::Submit => "no step can be submitted",
            Event::Pause => "the job cannot be paused",
            Event::Resume => "the job cannot be resumed",
            Event::Finish => "the job cannot be completed",
            Event::Approve => "approvals cannot be given or revoked",
            Event::UpdatePolicies => "the policies cannot be changed",
            Event::Fail => "the job cannot be given up",
            Event::Archive => "the job cannot be archived",
            Event::Delete => "the job cannot be deleted",
        }
    }
}

/// An event that a status does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{} while the job is {status}", event.refused())]
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
            (status @ (Planning | Ready | Complete | Failed | Archived), Event::Delete) => status,
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
            PLANNING: edit_plan→PLANNING refine_steps→PLANNING set_ready→READY approve→PLANNING update_policies→PLANNING fail→FAILED archive→ARCHIVED delete→PLANNING
            READY: edit_plan→PLANNING refine_steps→PLANNING set_ready→READY start→EXECUTING approve→READY update_policies→READY fail→FAILED delete→READY
            EXECUTING: refine_steps→EXECUTING prompt→EXECUTING submit→EXECUTING pause→PAUSED finish→COMPLETE approve→EXECUTING update_policies→EXECUTING fail→FAILED
            PAUSED: refine_steps→PAUSED resume→EXECUTING approve→PAUSED update_policies→PAUSED fail→FAILED
            COMPLETE: archive→ARCHIVED delete→COMPLETE
            FAILED: archive→ARCHIVED delete→FAILED
            ARCHIVED: delete→ARCHIVED
        "#]].assert_eq(&table);
    }
}
