//! Named budgets: the pure rules for reserving and booking units.

use serde::{Deserialize, Serialize};

/// One named budget of one envelope, in whole units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Budget {
    /// Limit of the envelope.
    pub limit: i64,
    /// Used units.
    pub used: i64,
    /// Units that running calls have reserved.
    pub reserved: i64,
}

/// Error of a reservation that asks for more units than are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted(pub Budget);

impl Budget {
    /// Units that can still be reserved.
    pub fn left(&self) -> i64 {
        self.limit
            .saturating_sub(self.used)
            .saturating_sub(self.reserved)
            .max(0)
    }

    /// Budget with `amount` more units reserved.
    pub fn reserve(self, amount: u64) -> Result<Budget, Exhausted> {
        match i64::try_from(amount) {
            Ok(amount) if amount <= self.left() => Ok(Budget {
                reserved: self.reserved.saturating_add(amount),
                ..self
            }),
            _ => Err(Exhausted(self)),
        }
    }

    /// Budget after a reservation of `reserved` units ended with `used` of them. Using more than was reserved counts
    /// as using all of it.
    pub fn commit(self, reserved: i64, used: u64) -> Budget {
        Budget {
            used: self.used.saturating_add(booked(reserved, used)),
            reserved: self.reserved.saturating_sub(reserved).max(0),
            ..self
        }
    }
}

/// Units to book for a reservation.
pub fn booked(reserved: i64, used: u64) -> i64 {
    i64::try_from(used).map_or(reserved, |used| used.min(reserved))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Reserve(u64),
        Commit(usize, u64),
        Drop(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let amount = prop_oneof![4 => 0_u64..8, 1 => any::<u64>()];
        prop_oneof![
            amount.clone().prop_map(Step::Reserve),
            (any::<usize>(), amount).prop_map(|(at, used)| Step::Commit(at, used)),
            any::<usize>().prop_map(Step::Drop),
        ]
    }

    proptest! {
        /// Against a model that only knows the open reservations and a sum: nothing is overspent or
        /// negative, and what is refused would have been too much.
        #[test]
        fn a_budget_is_never_overspent(limit in 0_i64..30, steps in proptest::collection::vec(step(), 0..80)) {
            let mut budget = Budget { limit, used: 0, reserved: 0 };
            let mut open: Vec<i64> = Vec::new();
            let mut spent = 0_i64;
            for step in steps {
                match step {
                    Step::Reserve(amount) => match budget.reserve(amount) {
                        Ok(next) => {
                            budget = next;
                            open.push(i64::try_from(amount).unwrap());
                        }
                        Err(Exhausted(seen)) => {
                            prop_assert_eq!(seen, budget);
                            let asked = i128::from(amount) + i128::from(spent) + i128::from(open.iter().sum::<i64>());
                            prop_assert!(asked > i128::from(limit));
                        }
                    },
                    Step::Commit(at, used) if !open.is_empty() => {
                        let reserved = open.swap_remove(at % open.len());
                        budget = budget.commit(reserved, used);
                        spent += i64::try_from(used).unwrap_or(i64::MAX).min(reserved);
                    }
                    Step::Drop(at) if !open.is_empty() => {
                        budget = budget.commit(open.swap_remove(at % open.len()), 0);
                    }
                    _ => {}
                }
                prop_assert_eq!(budget.used, spent);
                prop_assert_eq!(budget.reserved, open.iter().sum::<i64>());
                prop_assert!(budget.used + budget.reserved <= limit && budget.left() >= 0);
            }
        }
    }
}
