//! Every condition of every edge, and a search over all paths of a model of the table.

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;

use expect_test::expect;

use super::*;

/// Facts without evidence and without obstacles.
const BARE: Facts = Facts {
    acceptance: false,
    spec_review: None,
    attempt_review: None,
    quality_review: None,
    attempt: None,
    is_exhausted: false,
    approval_pending: false,
    approved: false,
    approval_denied: false,
    is_reset_barred: false,
};

/// Facts with every possible obstacle.
const WORST: Facts = Facts {
    spec_review: Some(Verdict::Blocked),
    attempt_review: Some(Verdict::Blocked),
    quality_review: Some(Verdict::ChangesRequested),
    attempt: Some(AttemptStatus::Failed),
    is_exhausted: true,
    approval_pending: true,
    approval_denied: true,
    is_reset_barred: true,
    ..BARE
};

/// Evidence for everything, with an attempt of a status.
const fn best(attempt: AttemptStatus) -> Facts {
    Facts {
        acceptance: true,
        spec_review: Some(Verdict::Approved),
        attempt_review: Some(Verdict::Approved),
        quality_review: Some(Verdict::Approved),
        attempt: Some(attempt),
        approved: true,
        ..BARE
    }
}

/// Every place that a task can be in.
fn places() -> Vec<Place> {
    let closed = |&phase: &Phase| Place {
        phase,
        circuit_from: None,
    };
    let origins = Phase::ALL
        .iter()
        .filter(|from| !from.is_terminal() && **from != Phase::CircuitOpen);
    let open = origins.map(|&from| closed(&from).moved(Phase::CircuitOpen));
    Phase::ALL.iter().map(closed).chain(open).collect()
}

#[test]
fn every_unmet_condition_of_every_transition() {
    let mut words = String::new();
    let facts = [
        ("bare", BARE),
        ("worst", WORST),
        ("running", best(AttemptStatus::Running)),
        ("succeeded", best(AttemptStatus::Succeeded)),
    ];
    for place in places() {
        for to in place.next() {
            for (name, facts) in &facts {
                let unmet = unmet(place, to, facts);
                if !unmet.is_empty() {
                    let codes: Vec<_> = unmet.iter().map(|condition| condition.code()).collect();
                    let from = place
                        .circuit_from
                        .map_or(String::new(), |from| format!(" from {from}"));
                    let _ = writeln!(
                        words,
                        "{}{from} -> {to}, {name}: {}",
                        place.phase,
                        codes.join(" ")
                    );
                }
            }
        }
    }
    expect![[r#"
        spec_review -> execution_ready, bare: ACCEPTANCE_MISSING SPEC_NOT_APPROVED
        spec_review -> execution_ready, worst: ACCEPTANCE_MISSING SPEC_NOT_APPROVED
        execution_ready -> executing, bare: ACCEPTANCE_MISSING SPEC_NOT_APPROVED NO_RUNNING_ATTEMPT
        execution_ready -> executing, worst: ACCEPTANCE_MISSING SPEC_NOT_APPROVED NO_RUNNING_ATTEMPT CIRCUIT_OPEN
        execution_ready -> executing, succeeded: NO_RUNNING_ATTEMPT
        spec_gate -> quality_gate, bare: SPEC_NOT_APPROVED
        spec_gate -> quality_gate, worst: SPEC_NOT_APPROVED
        quality_gate -> completed, bare: SPEC_NOT_APPROVED SPEC_NOT_APPROVED QUALITY_NOT_APPROVED ATTEMPT_NOT_SUCCEEDED
        quality_gate -> completed, worst: SPEC_NOT_APPROVED SPEC_NOT_APPROVED QUALITY_NOT_APPROVED ATTEMPT_NOT_SUCCEEDED APPROVAL_DENIED APPROVAL_PENDING
        quality_gate -> completed, running: ATTEMPT_NOT_SUCCEEDED
        awaiting_approval -> ready_to_resume, bare: APPROVAL_MISSING
        awaiting_approval -> ready_to_resume, worst: APPROVAL_DENIED APPROVAL_PENDING
        ready_to_resume -> executing, bare: ACCEPTANCE_MISSING SPEC_NOT_APPROVED NO_RUNNING_ATTEMPT
        ready_to_resume -> executing, worst: ACCEPTANCE_MISSING SPEC_NOT_APPROVED NO_RUNNING_ATTEMPT CIRCUIT_OPEN
        ready_to_resume -> executing, succeeded: NO_RUNNING_ATTEMPT
        ready_to_resume -> completed, bare: SPEC_NOT_APPROVED SPEC_NOT_APPROVED QUALITY_NOT_APPROVED ATTEMPT_NOT_SUCCEEDED
        ready_to_resume -> completed, worst: SPEC_NOT_APPROVED SPEC_NOT_APPROVED QUALITY_NOT_APPROVED ATTEMPT_NOT_SUCCEEDED APPROVAL_DENIED APPROVAL_PENDING
        ready_to_resume -> completed, running: ATTEMPT_NOT_SUCCEEDED
        circuit_open -> spec_draft, worst: RESETS_EXHAUSTED
        circuit_open -> execution_ready, bare: ACCEPTANCE_MISSING SPEC_NOT_APPROVED
        circuit_open -> execution_ready, worst: RESETS_EXHAUSTED ACCEPTANCE_MISSING SPEC_NOT_APPROVED
        circuit_open from spec_draft -> spec_draft, worst: RESETS_EXHAUSTED
        circuit_open from spec_review -> spec_review, worst: RESETS_EXHAUSTED
        circuit_open from execution_ready -> execution_ready, worst: RESETS_EXHAUSTED
        circuit_open from executing -> executing, bare: ACCEPTANCE_MISSING SPEC_NOT_APPROVED NO_RUNNING_ATTEMPT
        circuit_open from executing -> executing, worst: RESETS_EXHAUSTED ACCEPTANCE_MISSING SPEC_NOT_APPROVED NO_RUNNING_ATTEMPT
        circuit_open from executing -> executing, succeeded: NO_RUNNING_ATTEMPT
        circuit_open from executing -> execution_ready, worst: RESETS_EXHAUSTED
        circuit_open from spec_gate -> spec_gate, worst: RESETS_EXHAUSTED
        circuit_open from spec_gate -> execution_ready, worst: RESETS_EXHAUSTED
        circuit_open from quality_gate -> quality_gate, worst: RESETS_EXHAUSTED
        circuit_open from quality_gate -> execution_ready, worst: RESETS_EXHAUSTED
        circuit_open from awaiting_approval -> awaiting_approval, worst: RESETS_EXHAUSTED
        circuit_open from awaiting_approval -> execution_ready, worst: RESETS_EXHAUSTED
        circuit_open from ready_to_resume -> ready_to_resume, worst: RESETS_EXHAUSTED
    "#]].assert_eq(&words);
}

#[test]
fn a_verdict_that_does_not_approve_is_named() {
    assert_eq!(
        Condition::SpecNotApproved(Some(Verdict::Blocked)).to_string(),
        "the spec is not approved: the latest verdict is blocked"
    );
    assert_eq!(
        Condition::QualityNotApproved(None).to_string(),
        "the quality of the current attempt is not approved: there is no review"
    );
    assert_eq!(
        Condition::AttemptNotSucceeded(Some(AttemptStatus::Failed)).to_string(),
        "the current attempt has not succeeded: its status is failed"
    );
}

/// A task of the model: its place, its facts, and the attempts since retries were last counted anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Model {
    place: (Phase, Option<Phase>),
    facts: Facts,
    used: u8,
}

/// Attempts of the model before the circuit must open.
const ATTEMPTS: u8 = 2;

impl Model {
    fn place(&self) -> Place {
        let (phase, circuit_from) = self.place;
        Place { phase, circuit_from }
    }

    fn is_running(&self) -> bool {
        self.facts.attempt == Some(AttemptStatus::Running)
    }

    fn with(self, facts: Facts) -> Model {
        let is_running = facts.attempt == Some(AttemptStatus::Running);
        Model {
            facts: Facts {
                is_exhausted: !is_running && self.used >= ATTEMPTS,
                ..facts
            },
            ..self
        }
    }

    /// The task after a legal transition whose conditions hold.
    fn moved(self, to: Phase) -> Option<Model> {
        if !unmet(self.place(), to, &self.facts).is_empty() {
            return None;
        }
        let place = self.place().moved(to);
        let mut moved = Model {
            place: (place.phase, place.circuit_from),
            ..self
        };
        if self.place.0 == Phase::CircuitOpen {
            moved.used = 0;
        }
        let mut facts = self.facts;
        if to.is_terminal() && self.is_running() {
            facts.attempt = Some(AttemptStatus::Aborted);
        }
        Some(moved.with(facts))
    }

    /// The task after everything that reviewers, executors and approvers may do, whatever is sensible.
    fn recorded(self) -> Vec<Model> {
        let (phase, facts) = (self.place.0, self.facts);
        let mut all = Vec::new();
        let verdicts = [Some(Verdict::Approved), Some(Verdict::Blocked)];
        if phase == Phase::SpecDraft || (phase == Phase::ExecutionReady && !self.is_running()) {
            all.extend([false, true].map(|acceptance| Facts {
                acceptance,
                spec_review: None,
                attempt_review: None,
                quality_review: None,
                ..facts
            }));
        }
        if takes_spec_review(phase) {
            all.extend(verdicts.map(|spec_review| Facts { spec_review, ..facts }));
        }
        if facts.attempt.is_some() && !self.is_running() {
            all.extend(verdicts.map(|attempt_review| Facts {
                attempt_review,
                ..facts
            }));
            all.extend(verdicts.map(|quality_review| Facts {
                quality_review,
                ..facts
            }));
        }
        if facts.attempt.is_some() {
            all.extend([false, true].map(|approval_denied| Facts {
                approval_denied,
                ..facts
            }));
            all.extend([false, true].map(|approval_pending| Facts {
                approval_pending,
                ..facts
            }));
            all.push(Facts {
                approved: true,
                ..facts
            });
        }
        if self.is_running() {
            let ends = [AttemptStatus::Succeeded, AttemptStatus::Failed];
            all.extend(ends.map(|status| Facts {
                attempt: Some(status),
                ..facts
            }));
        }
        let mut all: Vec<Model> = all.into_iter().map(|facts| self.with(facts)).collect();
        let is_held = self.is_running() || self.used >= ATTEMPTS || !unmet_of(SPEC_NEEDS, &facts).is_empty();
        if phase.starts_attempts() && !is_held {
            let started = Facts {
                acceptance: facts.acceptance,
                spec_review: facts.spec_review,
                attempt: Some(AttemptStatus::Running),
                ..BARE
            };
            let used = self.used + 1;
            all.push(Model { used, ..self }.with(started));
        }
        all
    }
}

/// Searches all paths from some tasks, calls `visit` for each transition, and returns the phases that were reached. Ends
/// early once certain phases were.
fn search(start: Vec<Model>, until: &[Phase], visit: impl Fn(&Model, &Model)) -> HashSet<Phase> {
    let mut seen: HashSet<Model> = start.iter().copied().collect();
    let mut queue: VecDeque<Model> = start.into();
    let mut reached: HashSet<Phase> = seen.iter().map(|model| model.place.0).collect();
    while let Some(model) = queue.pop_front() {
        if !until.is_empty() && until.iter().all(|phase| reached.contains(phase)) {
            break;
        }
        let place = model.place();
        let open =
            (!place.phase.is_terminal() && place.phase != Phase::CircuitOpen).then_some(Phase::CircuitOpen);
        let targets = place.next().into_iter().chain(open);
        let moved: Vec<Model> = targets.filter_map(|to| model.moved(to)).collect();
        for next in &moved {
            visit(&model, next);
        }
        for next in moved.into_iter().chain(model.recorded()) {
            if seen.insert(next) {
                reached.insert(next.place.0);
                queue.push_back(next);
            }
        }
    }
    reached
}

fn fresh(phase: Phase) -> Model {
    Model {
        place: (phase, None),
        facts: BARE,
        used: 0,
    }
}

/// Asserts that a transition into `executing` or `completed` has its evidence. Reads the facts, not the table.
fn has_evidence(before: &Model, after: &Model) {
    let facts = &before.facts;
    let approved = Some(Verdict::Approved);
    match after.place.0 {
        Phase::Executing => {
            assert!(facts.acceptance && facts.spec_review == approved, "{before:?}");
            assert!(before.is_running(), "{before:?}");
        }
        Phase::Completed => {
            assert_eq!(facts.attempt, Some(AttemptStatus::Succeeded), "{before:?}");
            assert_eq!(facts.quality_review, approved, "{before:?}");
            assert_eq!(facts.attempt_review, approved, "{before:?}");
            assert_eq!(facts.spec_review, approved, "{before:?}");
            assert!(!facts.approval_denied && !facts.approval_pending, "{before:?}");
        }
        Phase::ReadyToResume if before.place.0 == Phase::AwaitingApproval => {
            assert!(facts.approved, "{before:?}");
            assert!(!facts.approval_denied && !facts.approval_pending, "{before:?}");
        }
        _ => {}
    }
    assert!(!(after.place.0.is_terminal() && after.is_running()), "{after:?}");
}

#[test]
fn no_path_reaches_executing_or_completed_without_evidence() {
    let start = vec![fresh(Phase::SpecDraft), fresh(Phase::SpecReview)];
    let reached = search(start, &[], has_evidence);
    assert_eq!(reached.len(), Phase::ALL.len(), "every phase is reached");
}

/// Tasks that an earlier version let into phases without evidence.
fn old() -> Vec<Model> {
    let attempts = [None, Some(AttemptStatus::Running), Some(AttemptStatus::Failed)];
    let phases = Phase::ALL.iter().filter(|phase| !phase.is_terminal());
    let tasks =
        phases.flat_map(|&phase| attempts.map(|attempt| fresh(phase).with(Facts { attempt, ..BARE })));
    tasks.collect()
}

#[test]
fn tasks_that_came_without_evidence_get_no_further_without() {
    search(old(), &[], has_evidence);
}

/// A task in `ready_to_resume` cannot change its spec, so it can only fail if that has no acceptance criteria.
#[test]
fn tasks_that_came_without_evidence_are_led_out() {
    for old in old() {
        let ends = match old.place.0 {
            Phase::ReadyToResume => &[Phase::Failed][..],
            _ => &[Phase::Failed, Phase::Completed],
        };
        let reached = search(vec![old], ends, |_, _| {});
        assert!(
            ends.iter().all(|end| reached.contains(end)),
            "{old:?} {reached:?}"
        );
    }
}
