//! Start time of the next attempt, as pure functions over the configured policy.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;
use tollgate_sdk::Timestamp;

use crate::model::AttemptId;
use crate::phase::Phase;

/// Retry policy: attempts, escalation and backoff.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Policy {
    /// Attempts before the circuit opens (default 3). Failed and successful attempts count.
    pub max_attempts: NonZeroU32,
    /// Number of the first attempt that is flagged `escalate`: use a stronger executor or a person (default
    /// 3).
    pub escalate_at: NonZeroU32,
    /// Wait in milliseconds after the first, second, … unsuccessful attempt. The last value repeats. An empty
    /// list means no wait.
    pub backoff_ms: Vec<u32>,
    /// Time in milliseconds after which the worker of a running attempt counts as gone, if it records nothing
    /// (default 3600000). 0 means never.
    pub lost_after_ms: u32,
    /// Number of times that leaving the open circuit resets a task's retry count without approval (default 2). Each
    /// further reset needs a person's approval of the kind circuit_reset. 0 means that every reset needs approval.
    pub max_resets: u32,
}

impl Default for Policy {
    fn default() -> Policy {
        const DEFAULT_ATTEMPTS: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);
        Policy {
            max_attempts: DEFAULT_ATTEMPTS,
            escalate_at: DEFAULT_ATTEMPTS,
            backoff_ms: vec![30_000, 120_000],
            lost_after_ms: 3_600_000,
            max_resets: 2,
        }
    }
}

/// Decision of the policy about the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Plain,
    Escalate,
    Exhausted,
}

impl Policy {
    /// The decision after `used` attempts.
    pub(crate) const fn turn(&self, used: u32) -> Turn {
        if used >= self.max_attempts.get() {
            Turn::Exhausted
        } else if used + 1 >= self.escalate_at.get() {
            Turn::Escalate
        } else {
            Turn::Plain
        }
    }

    /// Attempts that are left after `used`.
    pub(crate) const fn left(&self, used: u32) -> u32 {
        self.max_attempts.get().saturating_sub(used)
    }

    /// Earliest start of the next attempt, if the last of `used` attempts failed now. `None` if there is no
    /// next attempt or no wait.
    pub(crate) fn retry_at(&self, used: u32, now: Timestamp) -> Option<Timestamp> {
        if self.turn(used) == Turn::Exhausted {
            return None;
        }
        let failure = usize::try_from(used.saturating_sub(1)).unwrap_or(usize::MAX);
        let wait = self.backoff_ms.get(failure).or(self.backoff_ms.last())?;
        (*wait > 0).then(|| now.plus_ms(i64::from(*wait)))
    }
}

/// Facts of a task for starting an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub phase: Phase,
    /// Attempts since the retry count was last reset.
    pub used: u32,
    pub running: Option<&'a AttemptId>,
    pub next_retry_at: Option<Timestamp>,
}

/// Reason why a task's next attempt cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum Hold {
    #[error("the circuit is open")]
    CircuitOpen,
    #[error("attempts start in execution_ready, executing or ready_to_resume, but the task is in {0}")]
    WrongPhase(Phase),
    #[error("attempt {0} is still running")]
    AttemptRunning(AttemptId),
    #[error("the next attempt may not start before {0}")]
    TooEarly(Timestamp),
    #[error("all attempts are used up (limit: {0})")]
    Exhausted(u32),
}

impl Hold {
    /// Stable code in UPPER_SNAKE_CASE.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Hold::CircuitOpen => "CIRCUIT_OPEN",
            Hold::WrongPhase(_) => "WRONG_PHASE",
            Hold::AttemptRunning(_) => "ATTEMPT_RUNNING",
            Hold::TooEarly(_) => "RETRY_TOO_EARLY",
            Hold::Exhausted(_) => "RETRIES_EXHAUSTED",
        }
    }

    /// Way to resolve the condition.
    pub(crate) const fn remediation(&self) -> &'static str {
        match self {
            Hold::CircuitOpen => {
                "Investigate the failures, then move the task out of circuit_open with task_transition, which resets \
                 the retry count."
            }
            Hold::WrongPhase(phase) if phase.is_terminal() => {
                "The task has ended and cannot change. For further work, create a new task with task_create."
            }
            Hold::WrongPhase(_) => {
                "Call task_recover, then make the transitions that lead to execution_ready."
            }
            Hold::AttemptRunning(_) => {
                "Continue the running attempt, or end it with task_finish_attempt if nobody works on it."
            }
            Hold::TooEarly(_) => "Start the attempt at that time or later.",
            Hold::Exhausted(_) => {
                "The refused start opened the circuit. Investigate the failures, then move the task out of \
                 circuit_open with task_transition, which resets the retry count."
            }
        }
    }
}

/// Every reason why a task's next attempt cannot start.
pub(crate) fn holds(policy: &Policy, candidate: &Candidate<'_>, now: Timestamp) -> Vec<Hold> {
    let mut holds = Vec::new();
    match candidate.phase {
        phase if phase.starts_attempts() => {}
        Phase::CircuitOpen => holds.push(Hold::CircuitOpen),
        phase => holds.push(Hold::WrongPhase(phase)),
    }
    if let Some(attempt) = candidate.running {
        holds.push(Hold::AttemptRunning(attempt.clone()));
    }
    // Leaving an open circuit resets the retry count, so exhausted retries are not a separate reason.
    if candidate.phase != Phase::CircuitOpen && policy.turn(candidate.used) == Turn::Exhausted {
        holds.push(Hold::Exhausted(policy.max_attempts.get()));
    }
    if let Some(at) = candidate.next_retry_at.filter(|&at| at > now) {
        holds.push(Hold::TooEarly(at));
    }
    holds
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use expect_test::{Expect, expect};
    use tollgate_sdk::Id as _;

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    fn check(policy: &str, expected: Expect) {
        let policy: Policy = serde_json::from_str(policy).unwrap();
        let mut table = String::new();
        for used in 0..6 {
            let wait = policy.retry_at(used, NOW).map(|at| at.as_ms() - NOW.as_ms());
            let _ = writeln!(
                table,
                "after {used}: {:?}, {} left, wait {wait:?}",
                policy.turn(used),
                policy.left(used)
            );
        }
        expected.assert_eq(&table);
    }

    #[test]
    fn turns_and_waits() {
        check(
            "{}",
            expect![[r#"
            after 0: Plain, 3 left, wait Some(30000)
            after 1: Plain, 2 left, wait Some(30000)
            after 2: Escalate, 1 left, wait Some(120000)
            after 3: Exhausted, 0 left, wait None
            after 4: Exhausted, 0 left, wait None
            after 5: Exhausted, 0 left, wait None
        "#]],
        );
        check(
            r#"{"max_attempts": 5, "escalate_at": 2, "backoff_ms": [10, 0, 30]}"#,
            expect![[r#"
                after 0: Plain, 5 left, wait Some(10)
                after 1: Escalate, 4 left, wait Some(10)
                after 2: Escalate, 3 left, wait None
                after 3: Escalate, 2 left, wait Some(30)
                after 4: Escalate, 1 left, wait Some(30)
                after 5: Exhausted, 0 left, wait None
            "#]],
        );
        check(
            r#"{"max_attempts": 1, "backoff_ms": []}"#,
            expect![[r#"
            after 0: Plain, 1 left, wait None
            after 1: Exhausted, 0 left, wait None
            after 2: Exhausted, 0 left, wait None
            after 3: Exhausted, 0 left, wait None
            after 4: Exhausted, 0 left, wait None
            after 5: Exhausted, 0 left, wait None
        "#]],
        );
    }

    #[test]
    fn a_policy_without_attempts_is_refused() {
        assert!(serde_json::from_str::<Policy>(r#"{"max_attempts": 0}"#).is_err());
        assert!(serde_json::from_str::<Policy>(r#"{"max_atempts": 2}"#).is_err());
    }

    #[test]
    fn what_holds_an_attempt_back_in_every_phase() {
        let running = AttemptId::from_text("att_1".to_owned());
        let mut table = String::new();
        for &phase in Phase::ALL {
            let free = Candidate {
                phase,
                used: 0,
                running: None,
                next_retry_at: Some(NOW),
            };
            let held = Candidate {
                used: 3,
                running: Some(&running),
                next_retry_at: Some(NOW.plus_ms(1)),
                ..free
            };
            let codes = |candidate| -> Vec<_> {
                let holds = holds(&Policy::default(), &candidate, NOW);
                holds.iter().map(Hold::code).collect()
            };
            let _ = writeln!(table, "{phase}: {:?} {:?}", codes(free), codes(held));
        }
        expect![[r#"
            spec_draft: ["WRONG_PHASE"] ["WRONG_PHASE", "ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            spec_review: ["WRONG_PHASE"] ["WRONG_PHASE", "ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            execution_ready: [] ["ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            executing: [] ["ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            spec_gate: ["WRONG_PHASE"] ["WRONG_PHASE", "ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            quality_gate: ["WRONG_PHASE"] ["WRONG_PHASE", "ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            awaiting_approval: ["WRONG_PHASE"] ["WRONG_PHASE", "ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            ready_to_resume: [] ["ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            completed: ["WRONG_PHASE"] ["WRONG_PHASE", "ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            failed: ["WRONG_PHASE"] ["WRONG_PHASE", "ATTEMPT_RUNNING", "RETRIES_EXHAUSTED", "RETRY_TOO_EARLY"]
            circuit_open: ["CIRCUIT_OPEN"] ["CIRCUIT_OPEN", "ATTEMPT_RUNNING", "RETRY_TOO_EARLY"]
        "#]].assert_eq(&table);
    }
}
