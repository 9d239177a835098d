use std::fmt::Write as _;

use expect_test::{expect, expect_file};
use tollgate_kit::Reason as _;

use super::*;

const ACTIONS: [Action; 16] = [
    Action::PlanMilestone,
    Action::PlanSlice,
    Action::PlanTask,
    Action::StartTask,
    Action::CompleteTask,
    Action::CompleteSlice,
    Action::CompleteMilestone,
    Action::Reassess,
    Action::Replan,
    Action::ReopenTask,
    Action::ReopenSlice,
    Action::ReopenMilestone,
    Action::SkipSlice,
    Action::Validate,
    Action::Claim,
    Action::Release,
];

fn milestone_id(text: &str) -> MilestoneId {
    MilestoneId::parse(text).unwrap()
}

fn slice_id(text: &str) -> SliceId {
    SliceId::parse(text).unwrap()
}

fn task_id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

/// Depth of an action's unit: 1 milestone, 2 slice, 3 task.
const fn depth(action: Action) -> u8 {
    match action {
        Action::PlanMilestone | Action::CompleteMilestone | Action::ReopenMilestone | Action::Validate => 1,
        Action::PlanSlice
        | Action::CompleteSlice
        | Action::Reassess
        | Action::ReopenSlice
        | Action::SkipSlice => 2,
        // Claims are for tasks and for slices; the deeper one shows both.
        Action::PlanTask
        | Action::StartTask
        | Action::CompleteTask
        | Action::Replan
        | Action::ReopenTask
        | Action::Claim
        | Action::Release => 3,
    }
}

fn all<S: Copy>(states: &[S]) -> Vec<Option<S>> {
    std::iter::once(None)
        .chain(states.iter().copied().map(Some))
        .collect()
}

fn name<S: ToString>(state: Option<S>) -> String {
    state.map_or("missing".to_owned(), |state| state.to_string())
}

fn verdict(action: Action, scene: &Scene<'_>) -> String {
    let violations = statuses(action, scene);
    if violations.is_empty() {
        return "ok".to_owned();
    }
    let codes: Vec<String> = violations
        .iter()
        .map(|one| format!("{} “{one}”", one.code()))
        .collect();
    codes.join(" + ")
}

/// Every state of the unit and its parents, for every action. Impossible combinations are included, because
/// the guard must not rely on their absence.
#[test]
fn the_whole_matrix() {
    let mut matrix = String::new();
    let (milestone, slice, task) = (milestone_id("M01"), slice_id("S01"), task_id("T01"));
    for action in ACTIONS {
        let _ = writeln!(matrix, "\n{action:?}");
        for m in all(MilestoneStatus::ALL) {
            if depth(action) == 1 {
                let unit = Unit::milestone(&milestone);
                let scene = Scene {
                    unit: &unit,
                    milestone: m,
                    slice: None,
                    task: None,
                };
                let _ = writeln!(matrix, "  {}: {}", name(m), verdict(action, &scene));
                continue;
            }
            for s in all(Status::ALL)
                .into_iter()
                .filter(|s| m.is_some() || s.is_none())
            {
                if depth(action) == 2 {
                    let unit = Unit::slice(&milestone, &slice);
                    let scene = Scene {
                        unit: &unit,
                        milestone: m,
                        slice: s,
                        task: None,
                    };
                    let _ = writeln!(matrix, "  {} / {}: {}", name(m), name(s), verdict(action, &scene));
                    continue;
                }
                for t in all(Status::ALL)
                    .into_iter()
                    .filter(|t| s.is_some() || t.is_none())
                {
                    let unit = Unit::task(&milestone, &slice, &task);
                    let scene = Scene {
                        unit: &unit,
                        milestone: m,
                        slice: s,
                        task: t,
                    };
                    let verdict = verdict(action, &scene);
                    let _ = writeln!(matrix, "  {} / {} / {}: {verdict}", name(m), name(s), name(t));
                }
            }
        }
    }
    expect_file!["../tests/it/snapshots/matrix.txt"].assert_eq(&matrix);
}

fn sentences(violations: &[Violation]) -> String {
    violations
        .iter()
        .map(|one| format!("{}: {one}\n", one.code()))
        .collect()
}

#[test]
fn dependencies_of_milestones() {
    let on = [
        (milestone_id("M01"), Some(MilestoneStatus::Complete)),
        (milestone_id("M02"), Some(MilestoneStatus::Active)),
        (milestone_id("M03"), Some(MilestoneStatus::Parked)),
        (milestone_id("M04"), None),
    ];
    let unit = Unit::milestone(&milestone_id("M05"));
    let found = |action, plan_ahead| {
        let config = Config {
            plan_ahead,
            ..Config::default()
        };
        dependencies(&config, action, &unit, &on)
    };
    let mut log = sentences(&found(Action::StartTask, false));
    for plan_ahead in [false, true] {
        for action in [
            Action::PlanMilestone,
            Action::PlanSlice,
            Action::StartTask,
            Action::CompleteTask,
        ] {
            let found = found(action, plan_ahead);
            let missing = found.iter().map(|one| match one {
                Violation::DependencyIncomplete { on, .. } => on.to_string(),
                other => other.to_string(),
            });
            let missing: Vec<String> = missing.collect();
            let _ = writeln!(log, "{action:?}, plan_ahead {plan_ahead}: {}", missing.join(" "));
        }
    }
    expect![[r#"
        DEPENDENCY_INCOMPLETE: Milestone M05 depends on milestone M02, which is active, not complete
        DEPENDENCY_INCOMPLETE: Milestone M05 depends on milestone M03, which is parked, not complete
        DEPENDENCY_INCOMPLETE: Milestone M05 depends on milestone M04, which does not exist
        PlanMilestone, plan_ahead false: M02 M03 M04
        PlanSlice, plan_ahead false: M02 M03 M04
        StartTask, plan_ahead false: M02 M03 M04
        CompleteTask, plan_ahead false: M02 M03 M04
        PlanMilestone, plan_ahead true: M04
        PlanSlice, plan_ahead true: M04
        StartTask, plan_ahead true: M02 M03 M04
        CompleteTask, plan_ahead true: M02 M03 M04
    "#]]
    .assert_eq(&log);
}

#[test]
fn dependencies_of_slices() {
    let on: Vec<_> = all(Status::ALL)
        .into_iter()
        .enumerate()
        .map(|(number, status)| (slice_id(&format!("S{number:02}")), status))
        .collect();
    let unit = Unit::task(&milestone_id("M01"), &slice_id("S09"), &task_id("T01"));
    expect![[r#"
        SLICE_DEPENDENCY_OPEN: Slice S09 depends on slice S00, which does not exist
        SLICE_DEPENDENCY_OPEN: Slice S09 depends on slice S01, which is pending, not complete
        SLICE_DEPENDENCY_OPEN: Slice S09 depends on slice S02, which is in_progress, not complete
    "#]]
    .assert_eq(&sentences(&slice_dependencies(&unit, &on)));
}

fn graph(edges: &[(&str, &[&str])]) -> BTreeMap<SliceId, Vec<SliceId>> {
    edges
        .iter()
        .map(|(id, on)| (slice_id(id), on.iter().map(|id| slice_id(id)).collect()))
        .collect()
}

#[test]
fn circles_and_missing_slices_are_found() {
    let milestone = milestone_id("M01");
    let mut log = String::new();
    for edges in [
        &[("S01", &["S01"][..])][..],
        &[("S01", &["S02"]), ("S02", &["S03"]), ("S03", &["S02"])],
        &[
            ("S01", &["S02", "S03"]),
            ("S02", &["S04"]),
            ("S03", &["S04"]),
            ("S04", &[]),
        ],
        &[("S01", &["S02", "S07"]), ("S02", &["S08"])],
    ] {
        let _ = write!(
            log,
            "{edges:?}\n{}",
            sentences(&slice_graph(&milestone, &graph(edges)))
        );
    }
    expect![[r#"
        [("S01", ["S01"])]
        DEPENDENCY_CYCLE: The dependencies form a cycle: M01/S01 → M01/S01
        [("S01", ["S02"]), ("S02", ["S03"]), ("S03", ["S02"])]
        DEPENDENCY_CYCLE: The dependencies form a cycle: M01/S02 → M01/S03 → M01/S02
        [("S01", ["S02", "S03"]), ("S02", ["S04"]), ("S03", ["S04"]), ("S04", [])]
        [("S01", ["S02", "S07"]), ("S02", ["S08"])]
        SLICE_DEPENDENCY_OPEN: Slice S01 depends on slice S07, which does not exist
        SLICE_DEPENDENCY_OPEN: Slice S02 depends on slice S08, which does not exist
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_long_chain_needs_no_stack() {
    let chain: BTreeMap<SliceId, Vec<SliceId>> = (0..998)
        .map(|number: u32| {
            (
                slice_id(&format!("S{number:03}")),
                vec![slice_id(&format!("S{:03}", number + 1))],
            )
        })
        .collect();
    assert_eq!(cycle(&chain), None);
}

#[test]
fn ownership_of_every_caller() {
    let holders = [
        Holder {
            unit: Unit::task(&milestone_id("M01"), &slice_id("S01"), &task_id("T01")),
            owner: "executor-01".to_owned(),
        },
        Holder {
            unit: Unit::slice(&milestone_id("M01"), &slice_id("S01")),
            owner: "executor-03".to_owned(),
        },
    ];
    let mut log = String::new();
    for actor in [Some("executor-01"), Some("executor-02"), None] {
        let _ = write!(log, "{actor:?}\n{}", sentences(&ownership(&holders, actor)));
    }
    expect![[r#"
        Some("executor-01")
        NOT_CLAIM_OWNER: Unit M01/S01 is owned by executor-03, not executor-01
        Some("executor-02")
        NOT_CLAIM_OWNER: Unit M01/S01/T01 is owned by executor-01, not executor-02
        NOT_CLAIM_OWNER: Unit M01/S01 is owned by executor-03, not executor-02
        None
        ACTOR_REQUIRED: Unit M01/S01/T01 is owned by executor-01; actor is required
        ACTOR_REQUIRED: Unit M01/S01 is owned by executor-03; actor is required
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_task_under_way_belongs_to_who_started_it() {
    let unit = Unit::task(&milestone_id("M01"), &slice_id("S01"), &task_id("T01"));
    for (since, sentence) in [
        (None, "Task T01 was already started by a, not b"),
        (
            Some(Timestamp::from_ms(0)),
            "Task T01 was already started by a at 1970-01-01T00:00:00.000Z, not b",
        ),
    ] {
        let other = under_way(&unit, Status::InProgress, Some(("a", since)), "b", false);
        assert_eq!(other.map(|one| one.to_string()).as_deref(), Some(sentence));
    }
    for (status, by, actor, holds) in [
        (Status::InProgress, Some("a"), "a", false),
        (Status::InProgress, Some("a"), "b", true),
        (Status::Pending, Some("a"), "b", false),
        (Status::InProgress, None, "b", false),
    ] {
        let started = by.map(|by| (by, None));
        assert_eq!(under_way(&unit, status, started, actor, holds), None);
    }
}

#[test]
fn what_completing_wants_of_what_is_inside() {
    let milestone = Unit::milestone(&milestone_id("M01"));
    let slice = Unit::slice(&milestone.milestone, &slice_id("S01"));
    let tasks: Vec<_> = Status::ALL
        .iter()
        .enumerate()
        .map(|(number, status)| (slice_id("S01"), task_id(&format!("T{number:02}")), *status))
        .collect();
    let slices: Vec<_> = Status::ALL
        .iter()
        .enumerate()
        .map(|(number, status)| (slice_id(&format!("S{number:02}")), *status))
        .collect();
    let log = [
        tasks_closed(&slice, &[]),
        tasks_closed(&slice, &tasks),
        slices_closed(&milestone, &[], &[]),
        slices_closed(&milestone, &slices, &tasks),
    ]
    .map(|found| sentences(&found))
    .join("--\n");
    expect![[r#"
        SLICE_EMPTY: Slice S01 has no tasks
        --
        TASKS_OPEN: Task T00 is not complete: it is pending (M01/S01/T00)
        TASKS_OPEN: Task T01 is not complete: it is in_progress (M01/S01/T01)
        --
        MILESTONE_EMPTY: Milestone M01 has no slices
        --
        SLICES_OPEN: Slice S00 is not complete: it is pending (M01/S00)
        SLICES_OPEN: Slice S01 is not complete: it is in_progress (M01/S01)
        TASKS_OPEN: Task T00 is not complete: it is pending (M01/S01/T00)
        TASKS_OPEN: Task T01 is not complete: it is in_progress (M01/S01/T01)
    "#]]
    .assert_eq(&log);
}

#[test]
fn what_completing_wants_of_the_validation() {
    let unit = Unit::milestone(&milestone_id("M01"));
    let mut log = String::new();
    for require_validation in [true, false] {
        let config = Config {
            require_validation,
            ..Config::default()
        };
        for verdict in [
            None,
            Some((Verdict::Pass, 4)),
            Some((Verdict::Pass, 5)),
            Some((Verdict::NeedsAttention, 6)),
            Some((Verdict::Fail, 4)),
        ] {
            for passed in [true, false] {
                let validation = Validation { verdict, changed: 5 };
                let found = validated(&config, &unit, &validation, passed);
                let codes: Vec<String> = found.iter().map(ToString::to_string).collect();
                let _ = writeln!(
                    log,
                    "{require_validation} {verdict:?} {passed}: {}",
                    codes.join(" + ")
                );
            }
        }
    }
    expect![[r#"
        true None true: Milestone M01 was not validated
        true None false: Milestone M01 was not validated + Milestone M01 cannot be complete while verification_passed is false
        true Some((Pass, 4)) true: The validation of milestone M01 is older than its last change
        true Some((Pass, 4)) false: The validation of milestone M01 is older than its last change + Milestone M01 cannot be complete while verification_passed is false
        true Some((Pass, 5)) true: 
        true Some((Pass, 5)) false: Milestone M01 cannot be complete while verification_passed is false
        true Some((NeedsAttention, 6)) true: The validation of milestone M01 says needs_attention
        true Some((NeedsAttention, 6)) false: The validation of milestone M01 says needs_attention + Milestone M01 cannot be complete while verification_passed is false
        true Some((Fail, 4)) true: The validation of milestone M01 is older than its last change
        true Some((Fail, 4)) false: The validation of milestone M01 is older than its last change + Milestone M01 cannot be complete while verification_passed is false
        false None true: 
        false None false: Milestone M01 cannot be complete while verification_passed is false
        false Some((Pass, 4)) true: 
        false Some((Pass, 4)) false: Milestone M01 cannot be complete while verification_passed is false
        false Some((Pass, 5)) true: 
        false Some((Pass, 5)) false: Milestone M01 cannot be complete while verification_passed is false
        false Some((NeedsAttention, 6)) true: 
        false Some((NeedsAttention, 6)) false: Milestone M01 cannot be complete while verification_passed is false
        false Some((Fail, 4)) true: 
        false Some((Fail, 4)) false: Milestone M01 cannot be complete while verification_passed is false
    "#]]
    .assert_eq(&log);
}
