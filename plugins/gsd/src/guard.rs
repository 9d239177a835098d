//! Preconditions of changes: pure functions from facts to every violation.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_sdk::Timestamp;

use crate::config::Config;
use crate::model::{MilestoneId, MilestoneStatus, SliceId, Status, TaskId, Unit, Verdict};
use crate::violation::{Unvalidated, Violation};

/// Attempted action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    PlanMilestone,
    PlanSlice,
    PlanTask,
    StartTask,
    CompleteTask,
    CompleteSlice,
    CompleteMilestone,
    Reassess,
    Replan,
    ReopenTask,
    ReopenSlice,
    ReopenMilestone,
    SkipSlice,
    Validate,
    Claim,
    Release,
}

impl Action {
    /// Returns whether the action plans work, so that refusals speak of planning.
    const fn plans(self) -> bool {
        matches!(
            self,
            Action::PlanMilestone | Action::PlanSlice | Action::PlanTask | Action::Reassess | Action::Replan
        )
    }
}

/// Scene of a change: each unit on the path with its status, as far as it exists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub unit: &'a Unit,
    pub milestone: Option<MilestoneStatus>,
    pub slice: Option<Status>,
    pub task: Option<Status>,
}

/// Violations from the statuses alone, innermost unit first. A missing unit hides the units inside it.
pub(crate) fn statuses(action: Action, scene: &Scene<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let Some(slice_id) = scene.unit.slice.as_ref().filter(|_| scene.milestone.is_some()) {
        if scene.slice.is_some() && scene.unit.task.is_some() {
            violations.extend(task(action, scene.unit.clone(), scene.task));
        }
        let unit = Unit::slice(&scene.unit.milestone, slice_id);
        violations.extend(slice(action, unit, scene));
    }
    let unit = Unit::milestone(&scene.unit.milestone);
    violations.extend(milestone(action, unit, scene.milestone));
    violations
}

fn milestone(action: Action, unit: Unit, status: Option<MilestoneStatus>) -> Option<Violation> {
    let replan = action.plans();
    match (action, status) {
        (Action::PlanMilestone, None) => None,
        (_, None) => Some(Violation::NotFound(unit)),
        (Action::ReopenMilestone, Some(MilestoneStatus::Active)) => Some(Violation::MilestoneNotClosed(unit)),
        (Action::ReopenMilestone | Action::Release, Some(_)) | (_, Some(MilestoneStatus::Active)) => None,
        (
            Action::PlanMilestone | Action::CompleteMilestone | Action::Validate,
            Some(MilestoneStatus::Complete),
        ) => Some(Violation::MilestoneComplete { unit, replan }),
        (_, Some(MilestoneStatus::Complete)) => Some(Violation::ParentMilestoneComplete { unit, replan }),
        // Parked work may still be planned, corrected or skipped.
        (
            Action::PlanMilestone
            | Action::PlanSlice
            | Action::PlanTask
            | Action::Replan
            | Action::ReopenTask
            | Action::ReopenSlice
            | Action::SkipSlice,
            Some(MilestoneStatus::Parked),
        ) => None,
        (_, Some(MilestoneStatus::Parked)) => Some(Violation::Parked(unit)),
    }
}

fn slice(action: Action, unit: Unit, scene: &Scene<'_>) -> Option<Violation> {
    let replan = action.plans();
    let Some(status) = scene.slice else {
        return Some(Violation::NotFound(unit));
    };
    match (action, status.is_closed()) {
        (Action::Release, _) | (Action::ReopenSlice, true) => None,
        (Action::ReopenSlice, false) => Some(Violation::NotClosed { unit, status }),
        // The roadmap is reassessed after a completed slice.
        (Action::Reassess, true) => None,
        (Action::Reassess, false) => Some(Violation::SliceOpen { unit, status }),
        (_, false) => None,
        (_, true) if scene.unit.task.is_some() && action != Action::Replan => {
            Some(Violation::ParentClosed { unit, status, replan })
        }
        (_, true) => Some(Violation::AlreadyClosed { unit, status, replan }),
    }
}

fn task(action: Action, unit: Unit, status: Option<Status>) -> Option<Violation> {
    let replan = action.plans();
    match (action, status) {
        (Action::PlanTask, None) | (Action::Release, Some(_)) => None,
        (_, None) => Some(Violation::NotFound(unit)),
        (Action::ReopenTask, Some(status)) if !status.is_closed() => {
            Some(Violation::NotClosed { unit, status })
        }
        (Action::ReopenTask, Some(_)) => None,
        // The task in question is the one that found the blocker.
        (Action::Replan, Some(status)) if !status.is_closed() => {
            Some(Violation::BlockerNotComplete { unit, status })
        }
        (Action::Replan, Some(_)) => None,
        (_, Some(status)) if status.is_closed() => Some(Violation::AlreadyClosed { unit, status, replan }),
        (_, Some(_)) => None,
    }
}

/// Checks a milestone's dependencies, each with its status if it exists. With `plan_ahead`, planning does not
/// wait for existing dependencies. Starting always waits.
pub(crate) fn dependencies(
    config: &Config,
    action: Action,
    unit: &Unit,
    on: &[(MilestoneId, Option<MilestoneStatus>)],
) -> Vec<Violation> {
    let ahead = config.plan_ahead && action.plans();
    on.iter()
        .filter(|(_, status)| match status {
            None => true,
            Some(MilestoneStatus::Complete) => false,
            Some(_) => !ahead,
        })
        .map(|(id, status)| Violation::DependencyIncomplete {
            unit: Unit::milestone(&unit.milestone),
            on: Unit::milestone(id),
            status: *status,
        })
        .collect()
}

/// Checks a slice's dependencies, which must be closed before work in the slice starts.
pub(crate) fn slice_dependencies(unit: &Unit, on: &[(SliceId, Option<Status>)]) -> Vec<Violation> {
    let slice = match unit.parent_slice() {
        Some(slice) => slice,
        None => unit.clone(),
    };
    on.iter()
        .filter(|(_, status)| !status.is_some_and(Status::is_closed))
        .map(|(id, status)| Violation::SliceDependencyOpen {
            unit: slice.clone(),
            on: Unit::slice(&unit.milestone, id),
            status: *status,
        })
        .collect()
}

/// A unit, whether it is complete, and the units of its kind that it depends on.
pub(crate) type Depending = (Unit, bool, Vec<Unit>);

/// Finds the complete units that depend on a unit, directly or through other complete ones. A unit must not be
/// complete while one that it depends on is open.
pub(crate) fn complete_dependents(unit: &Unit, units: &[Depending]) -> Vec<Violation> {
    let mut on: Vec<&Unit> = vec![unit];
    let mut violations = Vec::new();
    let mut next = 0;
    while let Some(id) = on.get(next).copied() {
        for (dependent, is_complete, depends) in units {
            if *is_complete && !on.contains(&dependent) && depends.contains(id) {
                on.push(dependent);
                violations.push(Violation::DependentComplete {
                    unit: dependent.clone(),
                    on: id.clone(),
                });
            }
        }
        next += 1;
    }
    violations
}

/// Checks the dependencies in a plan: each exists, and there is no cycle.
pub(crate) fn slice_graph(
    milestone: &MilestoneId,
    graph: &BTreeMap<SliceId, Vec<SliceId>>,
) -> Vec<Violation> {
    let mut violations: Vec<Violation> = graph
        .iter()
        .flat_map(|(id, depends)| depends.iter().map(move |on| (id, on)))
        .filter(|(_, on)| !graph.contains_key(*on))
        .map(|(id, on)| Violation::SliceDependencyOpen {
            unit: Unit::slice(milestone, id),
            on: Unit::slice(milestone, on),
            status: None,
        })
        .collect();
    violations
        .extend(cycle(graph).map(|way| {
            Violation::DependencyCycle(way.iter().map(|id| Unit::slice(milestone, id)).collect())
        }));
    violations
}

/// Checks that milestones do not depend on each other in a cycle.
pub(crate) fn milestone_graph(graph: &BTreeMap<MilestoneId, Vec<MilestoneId>>) -> Option<Violation> {
    cycle(graph).map(|way| Violation::DependencyCycle(way.iter().map(Unit::milestone).collect()))
}

/// A cycle, if there is one. Without recursion, because a guest's stack is small.
fn cycle<I: Ord + Clone>(graph: &BTreeMap<I, Vec<I>>) -> Option<Vec<I>> {
    let mut done: BTreeSet<&I> = BTreeSet::new();
    for start in graph.keys() {
        let mut way: Vec<(&I, std::slice::Iter<'_, I>)> = Vec::new();
        if let Some(next) = graph.get(start).filter(|_| !done.contains(start)) {
            way.push((start, next.iter()));
        }
        while let Some((id, next)) = way.last_mut() {
            let id = *id;
            match next.next() {
                Some(on) => {
                    if let Some(from) = way.iter().position(|(seen, _)| *seen == on) {
                        let round = way.iter().skip(from).map(|(id, _)| (*id).clone());
                        return Some(round.chain([on.clone()]).collect());
                    }
                    if let Some((on, next)) = graph.get_key_value(on).filter(|(on, _)| !done.contains(on)) {
                        way.push((on, next.iter()));
                    }
                }
                None => {
                    done.insert(id);
                    way.pop();
                }
            }
        }
    }
    None
}

/// Owner of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub unit: Unit,
    pub owner: String,
}

/// Requires the owner of a claimed unit, by name.
pub(crate) fn ownership(holders: &[Holder], actor: Option<&str>) -> Vec<Violation> {
    holders
        .iter()
        .filter(|holder| actor != Some(holder.owner.as_str()))
        .map(|Holder { unit, owner }| match actor {
            None => Violation::ActorRequired {
                unit: unit.clone(),
                owner: owner.clone(),
            },
            Some(actor) => Violation::NotClaimOwner {
                unit: unit.clone(),
                owner: owner.clone(),
                actor: actor.to_owned(),
            },
        })
        .collect()
}

/// Requires the actor who started a task in progress, or a claim that covers it. `started` names the actor, and the
/// time if an event has it.
pub(crate) fn under_way(
    unit: &Unit,
    status: Status,
    started: Option<(&str, Option<Timestamp>)>,
    actor: &str,
    holds_claim: bool,
) -> Option<Violation> {
    match started {
        Some((by, since)) if status == Status::InProgress && by != actor && !holds_claim => {
            Some(Violation::AlreadyStarted {
                unit: unit.clone(),
                by: by.to_owned(),
                since,
                actor: actor.to_owned(),
            })
        }
        _ => None,
    }
}

/// Requires a slice to have tasks, all of them closed.
pub(crate) fn tasks_closed(slice: &Unit, tasks: &[(SliceId, TaskId, Status)]) -> Vec<Violation> {
    if tasks.is_empty() {
        return vec![Violation::SliceEmpty(slice.clone())];
    }
    open_tasks(slice, tasks)
}

fn open_tasks(around: &Unit, tasks: &[(SliceId, TaskId, Status)]) -> Vec<Violation> {
    tasks
        .iter()
        .filter(|(_, _, status)| !status.is_closed())
        .map(|(slice, task, status)| Violation::TaskOpen {
            unit: Unit::task(&around.milestone, slice, task),
            status: *status,
        })
        .collect()
}

/// Requires a milestone to have slices, all of them closed with all of their tasks.
pub(crate) fn slices_closed(
    milestone: &Unit,
    slices: &[(SliceId, Status)],
    tasks: &[(SliceId, TaskId, Status)],
) -> Vec<Violation> {
    if slices.is_empty() {
        return vec![Violation::MilestoneEmpty(milestone.clone())];
    }
    let open = slices
        .iter()
        .filter(|(_, status)| !status.is_closed())
        .map(|(slice, status)| Violation::SliceOpen {
            unit: Unit::slice(&milestone.milestone, slice),
            status: *status,
        });
    open.chain(open_tasks(milestone, tasks)).collect()
}

/// Validation of a milestone: verdict, event of the verdict, and event of the last change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validation {
    pub verdict: Option<(Verdict, i64)>,
    pub changed: i64,
}

/// Requires `verification_passed` and, if configured, a passed validation newer than the last change.
pub(crate) fn validated(
    config: &Config,
    unit: &Unit,
    validation: &Validation,
    verification_passed: bool,
) -> Vec<Violation> {
    let why = match validation.verdict {
        _ if !config.require_validation => None,
        None => Some(Unvalidated::Missing),
        Some((_, at)) if at < validation.changed => Some(Unvalidated::Stale),
        Some((Verdict::Pass, _)) => None,
        Some((verdict, _)) => Some(Unvalidated::Verdict(verdict)),
    };
    let missing = why.map(|why| Violation::ValidationMissing {
        unit: unit.clone(),
        why,
    });
    let unverified = (!verification_passed).then(|| Violation::VerificationNotPassed(unit.clone()));
    missing.into_iter().chain(unverified).collect()
}

/// Refuses changes to closed work.
pub(crate) fn protected(unit: Unit, status: Status, dropped: bool) -> Option<Violation> {
    status.is_closed().then_some(Violation::ClosedWorkProtected {
        unit,
        status,
        dropped,
    })
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
