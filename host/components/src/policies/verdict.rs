//! Verdicts of policies and their records in the ledger.

use std::time::Duration;

use serde::Serialize;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;

use super::member::{Mode, Phase};

/// Answer of a policy, or the reason for a missing one.
#[derive(Debug)]
pub struct Answer<V> {
    /// Verdict, and notes for later policies.
    pub said: Result<(V, Vec<wit::Note>), Fault>,
    /// Duration of the answer.
    pub took: Duration,
}

/// Reason for which a policy did not judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Cause of the fault, for callers and the ledger.
    pub cause: Cause,
    /// Full error, for the log.
    pub detail: String,
}

/// Cause of a policy's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The policy was not loaded.
    NotLoaded,
    /// The policy did not answer in time.
    Deadline,
    /// The policy exceeded its memory.
    Memory,
    /// The policy trapped.
    Crash,
    /// The policy reported that it cannot judge the call.
    CannotJudge,
    /// The policy amended the arguments to values that the tool does not accept.
    BadAmendment,
    /// The host could not ask the policy.
    Host,
}

impl Cause {
    const ALL: [Cause; 7] = [
        Cause::NotLoaded,
        Cause::Deadline,
        Cause::Memory,
        Cause::Crash,
        Cause::CannotJudge,
        Cause::BadAmendment,
        Cause::Host,
    ];

    /// Cause from its name in the ledger.
    pub fn parse(text: &str) -> Option<Cause> {
        let is_it = |cause: &Cause| serde_json::to_value(cause).is_ok_and(|value| value == text);
        Cause::ALL.into_iter().find(is_it)
    }

    /// Description of the cause, as the end of a sentence about the policy.
    pub const fn phrase(self) -> &'static str {
        match self {
            Cause::NotLoaded => "could not be loaded",
            Cause::Deadline => "ran out of time",
            Cause::Memory => "exceeded its memory limit",
            Cause::Crash => "crashed",
            Cause::CannotJudge => "could not evaluate the call",
            Cause::BadAmendment => "changed the arguments to values that the tool does not accept",
            Cause::Host => "could not be called, because the host failed",
        }
    }
}

/// Kind of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum VerdictKind {
    Pass,
    Amend,
    Deny,
    Ask,
    Failed,
}

/// Verdict of one policy on one call, as stored in the ledger: without reasons, which may repeat content of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub(super) policy: String,
    pub(super) phase: Phase,
    pub(super) mode: Mode,
    pub(super) verdict: VerdictKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<Cause>,
    /// Answer of the client's user to the policy's question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<&'static str>,
    /// True if the call passed although the policy did not judge it, because it fails open.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) excused: bool,
    /// Duration of the verdict in microseconds.
    pub(super) us: u64,
    /// Number of equal verdicts on members of the call.
    #[serde(skip_serializing_if = "is_one")]
    pub(super) times: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_one(times: &u32) -> bool {
    *times == 1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Verdict {
    /// Adds a verdict to a list. Equal verdicts of one policy are counted, so that a call with many members does not
    /// fill the ledger.
    pub(super) fn add(self, verdicts: &mut Vec<Verdict>) {
        let same = verdicts.iter_mut().find(|other| {
            other.policy == self.policy
                && other.phase == self.phase
                && other.verdict == self.verdict
                && other.code == self.code
                && other.cause == self.cause
        });
        match same {
            Some(other) => {
                other.us = other.us.saturating_add(self.us);
                other.times = other.times.saturating_add(1);
            }
            None => verdicts.push(self),
        }
    }

    /// Denial of a call that a policy let through, because other calls took the last slots first.
    pub fn overtaken(policy: &str, code: &str) -> Verdict {
        Verdict {
            policy: policy.to_owned(),
            phase: Phase::Request,
            mode: Mode::Enforce,
            verdict: VerdictKind::Deny,
            code: Some(code.to_owned()),
            cause: None,
            answer: None,
            excused: false,
            us: 0,
            times: 1,
        }
    }

    /// Records the answer of the client's user in all verdicts that asked.
    pub fn answered(verdicts: &mut [Verdict], answer: &'static str) {
        let asked = verdicts
            .iter_mut()
            .filter(|verdict| verdict.verdict == VerdictKind::Ask);
        asked.for_each(|verdict| verdict.answer = Some(answer));
    }
}
