//! Envelopes: the pure rules for admitting calls and for setting limits.

use serde::{Deserialize, Serialize};
use tollgate_sdk::Blocker;

/// State of an envelope. A closed one never opens again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// The envelope admits calls.
    #[default]
    Open,
    /// Closed as a success by its owner.
    ClosedSuccess,
    /// Closed as failed by its owner or by a limit.
    ClosedFailed,
    /// Closed because its connection or its host ended.
    ClosedInterrupted,
}

impl State {
    /// As it is stored and shown.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Open => "OPEN",
            State::ClosedSuccess => "CLOSED_SUCCESS",
            State::ClosedFailed => "CLOSED_FAILED",
            State::ClosedInterrupted => "CLOSED_INTERRUPTED",
        }
    }

    /// The state of a stored text.
    pub fn parse(text: &str) -> Option<State> {
        [
            State::Open,
            State::ClosedSuccess,
            State::ClosedFailed,
            State::ClosedInterrupted,
        ]
        .into_iter()
        .find(|state| state.as_str() == text)
    }
}

/// Limits of an envelope. If absent, use is only counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum number of mutating calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mutations: Option<i64>,
    /// Maximum number of test runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_test_runs: Option<i64>,
    /// Maximum open time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_duration_sec: Option<i64>,
    /// Maximum edits of its workspaces that no call made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_edits: Option<i64>,
}

impl Limits {
    /// Limits that a client asked for, completed by the defaults and held to the ceiling. The error names
    /// every limit that cannot be had.
    pub fn granted(asked: &Limits, default: &Limits, ceiling: &Limits) -> Result<Limits, Vec<Blocker>> {
        let mut problems = Vec::new();
        let mut grant = |name: &str, asked: Option<i64>, default: Option<i64>, ceiling: Option<i64>| {
            let wanted = asked.or(default);
            match (wanted, ceiling) {
                (Some(limit), _) if limit < 1 => {
                    problems.push(refused(name, format!("{name} is {limit}; it must be at least 1")));
                    None
                }
                (Some(limit), Some(ceiling)) if limit > ceiling && asked.is_some() => {
                    problems.push(refused(
                        name,
                        format!("{name} is {limit}; the operator allows at most {ceiling}"),
                    ));
                    None
                }
                (Some(limit), Some(ceiling)) => Some(limit.min(ceiling)),
                (wanted, ceiling) => wanted.or(ceiling),
            }
        };
        let limits = Limits {
            max_mutations: grant(
                "max_mutations",
                asked.max_mutations,
                default.max_mutations,
                ceiling.max_mutations,
            ),
            max_test_runs: grant(
                "max_test_runs",
                asked.max_test_runs,
                default.max_test_runs,
                ceiling.max_test_runs,
            ),
            max_duration_sec: grant(
                "max_duration_sec",
                asked.max_duration_sec,
                default.max_duration_sec,
                ceiling.max_duration_sec,
            ),
            max_edits: grant("max_edits", asked.max_edits, default.max_edits, ceiling.max_edits),
        };
        if problems.is_empty() {
            Ok(limits)
        } else {
            Err(problems)
        }
    }
}

fn refused(name: &str, message: String) -> Blocker {
    Blocker::new("LIMIT_INVALID", message).field(format!("limits.{name}"))
}

/// Checks the name of a budget; the error says what is wrong.
pub fn check_budget_name(name: &str) -> Result<(), &'static str> {
    match name {
        "mutations" => Err("`mutations` cannot be a budget name; set envelope.max_mutations instead"),
        "test_runs" => Err("`test_runs` cannot be a budget name; set envelope.max_test_runs instead"),
        "edits" => Err("`edits` cannot be a budget name; set envelope.max_edits instead"),
        _ if is_budget_name(name) => Ok(()),
        _ => Err("a budget's name matches ^[a-z][a-z0-9_]{0,39}$"),
    }
}

fn is_budget_name(name: &str) -> bool {
    name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Cost of a call for its envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// Reads, or is about envelopes themselves.
    Nothing,
    /// May change something this many times: once, or once for each member that it runs.
    Mutations(i64),
    /// Runs tests.
    TestRun,
}

/// State of an envelope for admission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// State.
    pub state: State,
    /// Limits.
    pub limits: Limits,
    /// Mutations so far.
    pub mutations: i64,
    /// Test runs so far.
    pub test_runs: i64,
    /// Edits so far that no call made.
    pub edits: i64,
    /// Time of opening, in milliseconds since the machine's boot.
    pub opened_boot_ms: i64,
}

/// Reason for which an envelope does not admit a call. The call does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The envelope is closed.
    Closed(State),
    /// Fewer mutations are left than the call needs. Closes the envelope if none is left.
    Mutations {
        /// Limit.
        limit: i64,
        /// Remaining mutations.
        left: i64,
    },
    /// No test run is left. The envelope stays open.
    TestRuns {
        /// Limit.
        limit: i64,
    },
    /// The work tree was edited once more than allowed. Closes the envelope.
    Edits {
        /// Limit.
        limit: i64,
    },
    /// Its time is over. Closes the envelope.
    Duration {
        /// Limit in seconds.
        limit: i64,
        /// Time since opening in seconds.
        used: i64,
    },
}

impl Refusal {
    /// The code that callers and the ledger see.
    pub const fn code(self) -> &'static str {
        match self {
            Refusal::Closed(_) => "ENVELOPE_CLOSED",
            Refusal::Mutations { .. } => "MUTATION_BUDGET_EXHAUSTED",
            Refusal::TestRuns { .. } => "TEST_BUDGET_EXHAUSTED",
            Refusal::Edits { .. } => "EDIT_BUDGET_EXHAUSTED",
            Refusal::Duration { .. } => "DURATION_EXCEEDED",
        }
    }

    /// True if a limit was reached, false if the envelope was already closed.
    pub const fn is_limit(self) -> bool {
        !matches!(self, Refusal::Closed(_))
    }

    /// True if the refusal closes the envelope.
    pub const fn closes(self) -> bool {
        matches!(
            self,
            Refusal::Mutations { left: 0, .. } | Refusal::Edits { .. } | Refusal::Duration { .. }
        )
    }
}

impl Standing {
    /// Standing of an envelope that was just opened.
    pub fn opened(limits: Limits, boot_ms: i64) -> Standing {
        Standing {
            state: State::Open,
            limits,
            mutations: 0,
            test_runs: 0,
            edits: 0,
            opened_boot_ms: boot_ms,
        }
    }

    /// Time since opening, in whole seconds.
    pub fn open_sec(&self, boot_ms: i64) -> i64 {
        boot_ms.saturating_sub(self.opened_boot_ms).max(0) / 1000
    }

    /// Milliseconds until the time is up, if there is a limit.
    pub fn remaining_ms(&self, boot_ms: i64) -> Option<i64> {
        let end = self.limits.max_duration_sec?.saturating_mul(1_000);
        Some(end.saturating_sub(boot_ms.saturating_sub(self.opened_boot_ms)))
    }

    /// End of the envelope's time, in milliseconds since the machine's boot, if there is a limit.
    pub fn end_boot_ms(&self) -> Option<i64> {
        let span_ms = self.limits.max_duration_sec?.saturating_mul(1_000);
        Some(self.opened_boot_ms.saturating_add(span_ms))
    }

    /// True if the time is up.
    pub fn is_expired(&self, boot_ms: i64) -> bool {
        self.limits
            .max_duration_sec
            .is_some_and(|limit| self.open_sec(boot_ms) >= limit)
    }

    /// The standing after one more call, or the refusal.
    pub fn admit(mut self, charge: Charge, boot_ms: i64) -> Result<Standing, Refusal> {
        if self.state != State::Open {
            return Err(Refusal::Closed(self.state));
        }
        if let Some(limit) = self.limits.max_duration_sec.filter(|_| self.is_expired(boot_ms)) {
            return Err(Refusal::Duration {
                limit,
                used: self.open_sec(boot_ms),
            });
        }
        match charge {
            Charge::Nothing => {}
            Charge::Mutations(count) => {
                if let Some(limit) = self.limits.max_mutations {
                    let left = limit.saturating_sub(self.mutations).max(0);
                    if count > left {
                        return Err(Refusal::Mutations { limit, left });
                    }
                }
                self.mutations = self.mutations.saturating_add(count);
            }
            Charge::TestRun => {
                if let Some(limit) = self.limits.max_test_runs.filter(|&limit| self.test_runs >= limit) {
                    return Err(Refusal::TestRuns { limit });
                }
                self.test_runs += 1;
            }
        }
        Ok(self)
    }

    /// The standing after edits that no call made, or the refusal.
    pub fn see(mut self, edits: i64) -> Result<Standing, Refusal> {
        let seen = self.edits.saturating_add(edits);
        match self.limits.max_edits {
            Some(limit) if edits > 0 && seen > limit => Err(Refusal::Edits { limit }),
            _ => {
                self.edits = seen;
                Ok(self)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn charge() -> impl Strategy<Value = Charge> {
        prop_oneof![
            Just(Charge::Nothing),
            (1_i64..5).prop_map(Charge::Mutations),
            Just(Charge::TestRun)
        ]
    }

    proptest! {
        /// However calls come, no limit is passed, and what is admitted is what is counted.
        #[test]
        fn no_limit_is_passed_by_one(
            max_mutations in proptest::option::of(1_i64..20),
            max_test_runs in proptest::option::of(1_i64..20),
            max_duration_sec in proptest::option::of(1_i64..50),
            calls in proptest::collection::vec((charge(), 0_i64..3_000), 0..100),
        ) {
            let limits = Limits { max_mutations, max_test_runs, max_duration_sec, max_edits: None };
            let mut standing = Standing::opened(limits, 1_000_000);
            let (mut now, mut mutations, mut test_runs) = (1_000_000, 0, 0);
            for (charge, pause) in calls {
                now += pause;
                match standing.admit(charge, now) {
                    Ok(next) => {
                        standing = next;
                        if let Charge::Mutations(count) = charge {
                            mutations += count;
                        }
                        test_runs += i64::from(charge == Charge::TestRun);
                        prop_assert!(max_duration_sec.is_none_or(|limit| (now - 1_000_000) / 1000 < limit));
                    }
                    Err(refusal) if refusal.closes() => standing.state = State::ClosedFailed,
                    Err(Refusal::TestRuns { .. }) => prop_assert_eq!(standing.state, State::Open),
                    Err(Refusal::Mutations { limit, left }) => {
                        prop_assert_eq!(left, limit - mutations);
                        prop_assert!(matches!(charge, Charge::Mutations(count) if count > left));
                    }
                    Err(refusal) => prop_assert_eq!(refusal, Refusal::Closed(State::ClosedFailed)),
                }
                prop_assert_eq!((standing.mutations, standing.test_runs), (mutations, test_runs));
                prop_assert!(max_mutations.is_none_or(|limit| mutations <= limit));
                prop_assert!(max_test_runs.is_none_or(|limit| test_runs <= limit));
            }
        }
    }

    #[test]
    fn limits_are_held_to_the_ceiling() {
        let ceiling = Limits {
            max_mutations: Some(10),
            max_test_runs: None,
            max_duration_sec: Some(60),
            max_edits: Some(5),
        };
        let default = Limits {
            max_mutations: Some(50),
            ..Limits::default()
        };
        let none = Limits::default();
        let granted = Limits::granted(&none, &default, &ceiling).unwrap();
        assert_eq!(
            granted,
            Limits {
                max_mutations: Some(10),
                max_test_runs: None,
                max_duration_sec: Some(60),
                max_edits: Some(5)
            }
        );
        let asked = Limits {
            max_mutations: Some(11),
            max_test_runs: Some(0),
            max_duration_sec: Some(-1),
            max_edits: Some(6),
        };
        assert_eq!(Limits::granted(&asked, &default, &ceiling).unwrap_err().len(), 4);
    }

    #[test]
    fn edits_reach_their_limit_and_do_not_pass_it() {
        let limits = Limits {
            max_edits: Some(2),
            ..Limits::default()
        };
        let mut standing = Standing::opened(limits, 0);
        for edits in [0, 1, 0, 1, 0] {
            standing = standing.see(edits).unwrap();
        }
        let refusal = standing.see(1).unwrap_err();
        assert_eq!((refusal, standing.edits), (Refusal::Edits { limit: 2 }, 2));
        assert!(refusal.closes() && refusal.is_limit());
    }
}
