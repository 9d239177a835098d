//! Remaining units of an envelope, for callers that plan their next calls.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_core::budget::Budget;
use tollgate_core::envelope::Standing;

/// Divisor for low limits: replies mention what is left of a limit only below a quarter.
const LOW_DIVISOR: i64 = 4;

/// Remainder of an envelope's limits. Without a limit the field is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Left {
    /// Mutations that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutations: Option<i64>,
    /// Test runs that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_runs: Option<i64>,
    /// Edits of the work tree outside of calls that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<i64>,
    /// Seconds that are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// Units of named budgets that are left.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub budgets: BTreeMap<String, i64>,
}

impl Left {
    /// Remainder, and true if less than a quarter of any limit is left.
    pub fn of(standing: &Standing, budgets: &BTreeMap<String, Budget>, boot_ms: i64) -> (Left, bool) {
        let mut is_low = false;
        let mut left = |limit: i64, used: i64| {
            let left = limit.saturating_sub(used).max(0);
            is_low |= left.saturating_mul(LOW_DIVISOR) < limit;
            left
        };
        let limits = &standing.limits;
        let found = Left {
            mutations: limits.max_mutations.map(|limit| left(limit, standing.mutations)),
            test_runs: limits.max_test_runs.map(|limit| left(limit, standing.test_runs)),
            edits: limits.max_edits.map(|limit| left(limit, standing.edits)),
            seconds: limits
                .max_duration_sec
                .map(|limit| left(limit, standing.open_sec(boot_ms))),
            budgets: budgets
                .iter()
                .map(|(name, budget)| (name.clone(), left(budget.limit, budget.limit - budget.left())))
                .collect(),
        };
        (found, is_low)
    }

    /// True if there are no limits.
    pub fn is_empty(&self) -> bool {
        *self == Left::default()
    }

    /// Remaining units in words, such as `2 mutations, 0 test runs, 40 s, 3 approvals`.
    pub fn in_words(&self) -> String {
        let counted = |count: i64, one: &str| match count {
            1 => format!("1 {one}"),
            many => format!("{many} {one}s"),
        };
        let mut words: Vec<String> = Vec::new();
        words.extend(self.mutations.map(|left| counted(left, "mutation")));
        words.extend(self.test_runs.map(|left| counted(left, "test run")));
        words.extend(self.edits.map(|left| counted(left, "observed edit")));
        words.extend(self.seconds.map(|left| format!("{left} s")));
        words.extend(
            self.budgets
                .iter()
                .map(|(name, left)| format!("{left} of {name}")),
        );
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::envelope::{Limits, State};

    use super::*;

    fn left(mutations: i64, boot_ms: i64) -> (String, bool) {
        let standing = Standing {
            state: State::Open,
            limits: Limits {
                max_mutations: Some(8),
                max_test_runs: None,
                max_duration_sec: Some(100),
                max_edits: None,
            },
            mutations,
            test_runs: 50,
            edits: 0,
            opened_boot_ms: 0,
        };
        let (left, is_low) = Left::of(&standing, &BTreeMap::new(), boot_ms);
        (left.in_words(), is_low)
    }

    #[test]
    fn less_than_a_quarter_of_any_limit_is_low() {
        assert_eq!(left(0, 0), ("8 mutations, 100 s".to_owned(), false));
        assert_eq!(left(6, 0), ("2 mutations, 100 s".to_owned(), false));
        assert_eq!(left(7, 0), ("1 mutation, 100 s".to_owned(), true));
        assert_eq!(left(0, 75_000), ("8 mutations, 25 s".to_owned(), false));
        assert_eq!(left(0, 76_000), ("8 mutations, 24 s".to_owned(), true));
        assert_eq!(left(9, 500_000), ("0 mutations, 0 s".to_owned(), true));
    }
}
