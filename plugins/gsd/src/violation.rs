//! The reasons to refuse a change.

use std::cell::RefCell;
use std::fmt;

use serde_json::json;
use tollgate_kit::text::clip;
use tollgate_kit::{INVALID_ARGUMENTS, NOT_FOUND};
use tollgate_sdk::{Cx, Db, DbError, NextCall, Timestamp, ToolError};

use crate::model::{MilestoneId, MilestoneStatus, Status, Unit, Verdict};
use crate::store::log;
use crate::tools::status;
use crate::{next, store};

/// A fault of the validation that a milestone needs before it can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unvalidated {
    /// The milestone was not validated.
    Missing,
    /// The validation did not pass.
    Verdict(Verdict),
    /// The milestone changed after its validation.
    Stale,
}

/// One reason why a change is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    /// An argument no schema can judge.
    Argument { field: String, fault: String },
    /// The unit does not exist.
    NotFound(Unit),
    /// The unit existed, and a plan removed it.
    Removed {
        unit: Unit,
        by: String,
        at: Timestamp,
        reason: String,
    },
    /// The unit is closed already; `replan` says that planning it anew was tried.
    AlreadyClosed {
        unit: Unit,
        status: Status,
        replan: bool,
    },
    /// The milestone is complete already.
    MilestoneComplete { unit: Unit, replan: bool },
    /// The unit around the one in question is closed.
    ParentClosed {
        unit: Unit,
        status: Status,
        replan: bool,
    },
    /// The milestone around the unit in question is complete.
    ParentMilestoneComplete { unit: Unit, replan: bool },
    /// The milestone is set aside.
    Parked(Unit),
    /// Only what is closed can be reopened.
    NotClosed { unit: Unit, status: Status },
    /// Only a complete or parked milestone can be reopened.
    MilestoneNotClosed(Unit),
    /// Another actor works on the task.
    AlreadyStarted {
        unit: Unit,
        by: String,
        since: Option<Timestamp>,
        actor: String,
    },
    /// A task that has to be closed first.
    TaskOpen { unit: Unit, status: Status },
    /// A slice that has to be closed first.
    SliceOpen { unit: Unit, status: Status },
    /// A slice has to have tasks before it can be complete.
    SliceEmpty(Unit),
    /// A milestone has to have slices before it can be complete.
    MilestoneEmpty(Unit),
    /// A milestone this one depends on is not complete.
    DependencyIncomplete {
        unit: Unit,
        on: Unit,
        status: Option<MilestoneStatus>,
    },
    /// A slice this one depends on is not closed.
    SliceDependencyOpen {
        unit: Unit,
        on: Unit,
        status: Option<Status>,
    },
    /// A complete slice depends on the slice in question.
    DependentComplete { unit: Unit, on: Unit },
    /// A dependency cycle.
    DependencyCycle(Vec<Unit>),
    /// The task that is said to block is not complete.
    BlockerNotComplete { unit: Unit, status: Status },
    /// Another actor holds the unit.
    NotClaimOwner {
        unit: Unit,
        owner: String,
        actor: String,
    },
    /// A held unit takes no call without an actor.
    ActorRequired { unit: Unit, owner: String },
    /// Closed work would be changed or dropped.
    ClosedWorkProtected {
        unit: Unit,
        status: Status,
        dropped: bool,
    },
    /// Completing needs a validation.
    ValidationMissing { unit: Unit, why: Unvalidated },
    /// The caller says that verification did not pass.
    VerificationNotPassed(Unit),
    /// No test run proves the unit, where one is required.
    Unproven { unit: Unit, fault: String },
}

/// `Task T01`, `Slice S01`, `Milestone M01`.
fn named(unit: &Unit) -> String {
    match (&unit.slice, &unit.task) {
        (_, Some(task)) => format!("task {task}"),
        (Some(slice), None) => format!("slice {slice}"),
        (None, None) => format!("milestone {}", unit.milestone),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn already(f: &mut fmt::Formatter<'_>, unit: &Unit, status: &str, replan: bool) -> fmt::Result {
    if replan {
        write!(f, "Cannot re-plan: {} is already {status}", named(unit))
    } else {
        write!(f, "{} is already {status}", capital(&named(unit)))
    }
}

/// `Slice S02 depends on slice S01, which is pending, not complete`.
fn dependency(f: &mut fmt::Formatter<'_>, unit: &Unit, on: &Unit, status: Option<&str>) -> fmt::Result {
    let (unit, on) = (capital(&named(unit)), named(on));
    match status {
        Some(status) => write!(f, "{unit} depends on {on}, which is {status}, not complete"),
        None => write!(f, "{unit} depends on {on}, which does not exist"),
    }
}

fn unvalidated(f: &mut fmt::Formatter<'_>, unit: &Unit, why: Unvalidated) -> fmt::Result {
    let name = named(unit);
    match why {
        Unvalidated::Missing => write!(f, "{} was not validated", capital(&name)),
        Unvalidated::Verdict(verdict) => write!(f, "The validation of {name} says {verdict}"),
        Unvalidated::Stale => write!(f, "The validation of {name} is older than its last change"),
    }
}

/// The sentence people read.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upper = |unit: &Unit| capital(&named(unit));
        match self {
            Self::Argument { field, fault } => write!(f, "{field} {fault}"),
            Self::NotFound(unit) => write!(f, "{} does not exist ({unit})", upper(unit)),
            Self::Removed { unit, by, at, reason } => write!(
                f,
                "{} was removed by {by} at {at}: {reason} ({unit})",
                upper(unit)
            ),
            Self::AlreadyClosed { unit, status, replan } | Self::ParentClosed { unit, status, replan } => {
                already(f, unit, status.as_str(), *replan)
            }
            Self::MilestoneComplete { unit, replan } | Self::ParentMilestoneComplete { unit, replan } => {
                already(f, unit, "complete", *replan)
            }
            Self::Parked(unit) => write!(f, "{} is parked", upper(unit)),
            Self::NotClosed { unit, status } => {
                write!(f, "Cannot reopen: {} is {status}, not closed", named(unit))
            }
            Self::MilestoneNotClosed(unit) => {
                write!(f, "Cannot reopen: {} is active, not complete", named(unit))
            }
            Self::AlreadyStarted {
                unit,
                by,
                since,
                actor,
            } => {
                let at = since.map_or_else(String::new, |since| format!(" at {since}"));
                write!(f, "{} was already started by {by}{at}, not {actor}", upper(unit))
            }
            Self::TaskOpen { unit, status } | Self::SliceOpen { unit, status } => {
                write!(f, "{} is not complete: it is {status} ({unit})", upper(unit))
            }
            Self::SliceEmpty(unit) => write!(f, "{} has no tasks", upper(unit)),
            Self::MilestoneEmpty(unit) => write!(f, "{} has no slices", upper(unit)),
            Self::DependencyIncomplete { unit, on, status } => {
                dependency(f, unit, on, status.map(MilestoneStatus::as_str))
            }
            Self::SliceDependencyOpen { unit, on, status } => {
                dependency(f, unit, on, status.map(Status::as_str))
            }
            Self::DependentComplete { unit, on } => {
                write!(
                    f,
                    "Cannot reopen: {} depends on {} and is complete",
                    named(unit),
                    named(on)
                )
            }
            Self::DependencyCycle(way) => {
                let way: Vec<String> = way.iter().map(Unit::to_string).collect();
                write!(f, "The dependencies form a cycle: {}", way.join(" → "))
            }
            Self::BlockerNotComplete { unit, status } => {
                write!(f, "Blocker {} is not complete: it is {status}", named(unit))
            }
            Self::NotClaimOwner { unit, owner, actor } => {
                write!(f, "Unit {unit} is owned by {owner}, not {actor}")
            }
            Self::ActorRequired { unit, owner } => {
                write!(f, "Unit {unit} is owned by {owner}; actor is required")
            }
            Self::ClosedWorkProtected {
                unit,
                status,
                dropped,
            } => {
                let verb = if *dropped { "remove" } else { "change" };
                write!(f, "Cannot {verb} {}: it is already {status}", named(unit))
            }
            Self::Unproven { unit, fault } => write!(f, "{} {fault} ({unit})", upper(unit)),
            Self::ValidationMissing { unit, why } => unvalidated(f, unit, *why),
            Self::VerificationNotPassed(unit) => {
                write!(
                    f,
                    "{} cannot be complete while verification_passed is false",
                    upper(unit)
                )
            }
        }
    }
}

impl Violation {
    /// A missing unit, with its removal if it existed.
    pub(crate) fn missing(db: &Db<'_>, workspace: &str, unit: Unit) -> Result<Violation, DbError> {
        let Some(event) = log::removal(db, workspace, &unit)? else {
            return Ok(Violation::NotFound(unit));
        };
        let why = ["what_changed", "assessment"];
        let why = why.iter().find_map(|name| event.params.get(*name)?.as_str());
        Ok(Violation::Removed {
            unit,
            by: event.actor_name,
            at: event.ts,
            reason: clip(why.unwrap_or_default()),
        })
    }

    /// A fault of one argument.
    pub(crate) fn argument(field: impl Into<String>, fault: impl Into<String>) -> Violation {
        Violation::Argument {
            field: field.into(),
            fault: fault.into(),
        }
    }

    /// Record that explains the violation.
    fn sight(&self) -> Option<Sight> {
        Some(match self {
            Violation::Argument { .. } => return None,
            Violation::Removed { unit, .. } => Sight::Show(
                unit.parent_slice()
                    .unwrap_or_else(|| Unit::milestone(&unit.milestone)),
            ),
            Violation::NotFound(unit)
            | Violation::AlreadyStarted { unit, .. }
            | Violation::TaskOpen { unit, .. }
            | Violation::SliceOpen { unit, .. }
            | Violation::SliceDependencyOpen { unit, .. } => Sight::Status(unit.clone()),
            Violation::DependencyCycle(way) => Sight::Status(way.first()?.clone()),
            Violation::NotClaimOwner { unit, .. } | Violation::ActorRequired { unit, .. } => {
                Sight::Claims(unit.clone())
            }
            Violation::DependencyIncomplete { on, .. } => Sight::Show(on.clone()),
            Violation::AlreadyClosed { unit, .. }
            | Violation::MilestoneComplete { unit, .. }
            | Violation::ParentClosed { unit, .. }
            | Violation::ParentMilestoneComplete { unit, .. }
            | Violation::Parked(unit)
            | Violation::NotClosed { unit, .. }
            | Violation::MilestoneNotClosed(unit)
            | Violation::SliceEmpty(unit)
            | Violation::MilestoneEmpty(unit)
            | Violation::BlockerNotComplete { unit, .. }
            | Violation::DependentComplete { unit, .. }
            | Violation::ClosedWorkProtected { unit, .. }
            | Violation::ValidationMissing { unit, .. }
            | Violation::Unproven { unit, .. }
            | Violation::VerificationNotPassed(unit) => Sight::Show(unit.clone()),
        })
    }
}

/// Record that a refused caller should look at. No sight takes over, creates or reopens anything, because those are
/// decisions of the caller.
#[derive(Debug, Clone)]
enum Sight {
    Show(Unit),
    Status(Unit),
    Claims(Unit),
}

impl Sight {
    /// The call that shows it, or what exists of it.
    fn call(self, cx: &Cx<'_>, workspace: &str) -> NextCall {
        let exists = |unit: &Unit| store::exists(&cx.db, workspace, unit).unwrap_or_default();
        if !status::is_known(cx, workspace).unwrap_or_default() {
            return next::status(None);
        }
        match self {
            Sight::Show(unit) if exists(&unit) => next::show(workspace, &unit),
            Sight::Claims(unit) => NextCall::new(
                "gsd_claims",
                json!({"workspace": workspace, "milestone_id": unit.milestone}),
            ),
            Sight::Show(unit) | Sight::Status(unit) => match exists(&Unit::milestone(&unit.milestone)) {
                true => NextCall::new(
                    "gsd_status",
                    json!({"workspace": workspace, "milestone_id": unit.milestone}),
                ),
                false => next::status(Some(workspace)),
            },
        }
    }
}

impl tollgate_kit::Reason for Violation {
    fn argument(field: String, fault: String) -> Violation {
        Violation::Argument { field, fault }
    }

    fn code(&self) -> &'static str {
        match self {
            Violation::Argument { .. } => INVALID_ARGUMENTS,
            Violation::NotFound(_) | Violation::Removed { .. } => NOT_FOUND,
            Violation::AlreadyClosed { .. } | Violation::MilestoneComplete { .. } => "ALREADY_COMPLETE",
            Violation::ParentClosed { .. } | Violation::ParentMilestoneComplete { .. } => "PARENT_CLOSED",
            Violation::Parked(_) => "MILESTONE_PARKED",
            Violation::NotClosed { .. } | Violation::MilestoneNotClosed(_) => "NOT_CLOSED",
            Violation::AlreadyStarted { .. } => "ALREADY_STARTED",
            Violation::TaskOpen { .. } => "TASKS_OPEN",
            Violation::SliceOpen { .. } => "SLICES_OPEN",
            Violation::SliceEmpty(_) => "SLICE_EMPTY",
            Violation::MilestoneEmpty(_) => "MILESTONE_EMPTY",
            Violation::DependencyIncomplete { .. } => "DEPENDENCY_INCOMPLETE",
            Violation::SliceDependencyOpen { .. } => "SLICE_DEPENDENCY_OPEN",
            Violation::DependentComplete { .. } => "DEPENDENT_COMPLETE",
            Violation::DependencyCycle(_) => "DEPENDENCY_CYCLE",
            Violation::BlockerNotComplete { .. } => "BLOCKER_NOT_COMPLETE",
            Violation::NotClaimOwner { .. } => "NOT_CLAIM_OWNER",
            Violation::ActorRequired { .. } => "ACTOR_REQUIRED",
            Violation::ClosedWorkProtected { .. } => "CLOSED_WORK_PROTECTED",
            Violation::ValidationMissing { .. } => "VALIDATION_MISSING",
            Violation::VerificationNotPassed(_) => "VERIFICATION_NOT_PASSED",
            Violation::Unproven { .. } => "EVIDENCE_REQUIRED",
        }
    }

    fn remediation(&self) -> &'static str {
        match self {
            Violation::Argument { .. } => "Correct the argument.",
            Violation::NotFound(_) => "Look the unit up with gsd_status; plan it first if it is new.",
            Violation::Removed { .. } => "Work on the units that the plan has now.",
            Violation::AlreadyClosed { .. } | Violation::MilestoneComplete { .. } => {
                "Leave the unit closed, or reopen it with a reason to redo the work."
            }
            Violation::ParentClosed { .. } | Violation::ParentMilestoneComplete { .. } => {
                "Reopen the parent unit first, with a reason."
            }
            Violation::Parked(_) => {
                "Leave the milestone, or resume it with gsd_plan_milestone and parked=false."
            }
            Violation::NotClosed { .. } | Violation::MilestoneNotClosed(_) => {
                "Continue the work. Nothing needs to be reopened."
            }
            Violation::AlreadyStarted { .. } => {
                "Leave the task to the actor who started it, and work on another one."
            }
            Violation::Unproven { .. } => {
                "Run test_run in an envelope, and pass its operation_id in verification_evidence."
            }
            Violation::TaskOpen { .. } => "Complete the tasks that are open, or skip the slice.",
            Violation::SliceOpen { .. } => "Complete or skip the slices that are open.",
            Violation::SliceEmpty(_) => "Plan tasks with gsd_plan_slice, or skip the slice.",
            Violation::MilestoneEmpty(_) => "Plan slices with gsd_plan_milestone.",
            Violation::DependencyIncomplete { .. } => {
                "Complete the milestones that this one depends on first."
            }
            Violation::SliceDependencyOpen { .. } => {
                "Complete or skip the slices that this one depends on first."
            }
            Violation::DependentComplete { .. } => {
                "Leave the unit closed, or first reopen the units that depend on it, last one first."
            }
            Violation::DependencyCycle(_) => "Remove one of the dependencies.",
            Violation::BlockerNotComplete { .. } => {
                "Complete the task that found the blocker, then replan around it."
            }
            Violation::NotClaimOwner { .. } => "Leave the unit to its owner, and work on another one.",
            Violation::ActorRequired { .. } => "Call again with your name in actor.",
            Violation::ClosedWorkProtected { .. } => "Leave closed work out, or reopen it first.",
            Violation::ValidationMissing { .. } => {
                "Validate the milestone as it is now with gsd_validate_milestone."
            }
            Violation::VerificationNotPassed(_) => "Make verification pass, then complete the milestone.",
        }
    }

    fn field(&self) -> Option<&str> {
        match self {
            Violation::Argument { field, .. } => Some(field),
            Violation::NotClaimOwner { .. } | Violation::ActorRequired { .. } => Some("actor"),
            Violation::VerificationNotPassed(_) => Some("verification_passed"),
            _ => None,
        }
    }
}

tollgate_kit::refusals! {
    /// Every reason found so far why a change has to be refused.
    pub(crate) struct Refusals of Violation;
}

impl Refusals {
    /// Refuses the call if a reason was found. Each reason names the call that shows more about it, and no call
    /// is named twice.
    pub(crate) fn finish_in(mut self, cx: &Cx<'_>, workspace: &str, unit: &Unit) -> Result<(), ToolError> {
        if self.is_empty() {
            return Ok(());
        }
        let named: RefCell<Vec<NextCall>> = RefCell::default();
        let seen: RefCell<Vec<MilestoneId>> = RefCell::default();
        self.next_calls(|violation| {
            let sight = violation.sight()?;
            // A milestone may have many open tasks, which one call shows.
            if let Sight::Status(unit) = &sight {
                if seen.borrow().contains(&unit.milestone) {
                    return None;
                }
                seen.borrow_mut().push(unit.milestone.clone());
            }
            let call = sight.call(cx, workspace);
            let is_new = !named.borrow().contains(&call);
            if is_new {
                named.borrow_mut().push(call.clone());
            }
            is_new.then_some(call)
        });
        self.finish().map_err(|mut refusal| {
            let shown = || Sight::Show(unit.clone()).call(cx, workspace);
            refusal.next_call = refusal.next_call.or_else(|| Some(shown()));
            refusal
        })
    }
}
