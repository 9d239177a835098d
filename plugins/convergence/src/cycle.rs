//! Detection of repeated states and failures.

use std::fmt;

use serde::Serialize;

/// Most mutations back that an oscillation is searched for.
pub const MAX_PERIOD: usize = 8;

/// Relation of a mutation to earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cycle {
    /// True if the state equals the previous one.
    pub no_op: bool,
    /// Number of mutations since the same state, if other states came in between.
    pub oscillation: Option<u32>,
}

/// Compares a mutation with earlier ones, newest first.
#[must_use]
pub fn mutation<'a>(fingerprint: &str, before: impl IntoIterator<Item = &'a str>) -> Cycle {
    let distance = before
        .into_iter()
        .take(MAX_PERIOD)
        .position(|older| older == fingerprint);
    match distance.and_then(|distance| u32::try_from(distance).ok()?.checked_add(1)) {
        Some(1) => Cycle {
            no_op: true,
            oscillation: None,
        },
        oscillation => Cycle {
            no_op: false,
            oscillation,
        },
    }
}

/// A failure with the number of mutations before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting<'a> {
    /// Fingerprint of the failure.
    pub fingerprint: &'a str,
    /// Number of mutations before the failure.
    pub mutations: u64,
}

/// Relation of a failure to earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Repetition {
    /// True if the failure was seen before and persists after at least one mutation.
    pub non_progress: bool,
    /// Number of sightings, including this one.
    pub seen: u64,
    /// Number of mutations since the first sighting.
    pub mutations: u64,
}

/// Compares a failure with earlier ones, in any order.
#[must_use]
pub fn failure<'a>(now: Sighting<'_>, before: impl IntoIterator<Item = Sighting<'a>>) -> Repetition {
    let same = before
        .into_iter()
        .filter(|older| older.fingerprint == now.fingerprint);
    let (earlier, first) = same.fold((0u64, now.mutations), |(count, first), older| {
        (count.saturating_add(1), first.min(older.mutations))
    });
    let mutations = now.mutations.saturating_sub(first);
    Repetition {
        non_progress: earlier > 0 && mutations > 0,
        seen: earlier.saturating_add(1),
        mutations,
    }
}

impl fmt::Display for Repetition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        write!(
            f,
            "same failure seen {} time{} across {} mutation{}",
            self.seen,
            plural(self.seen),
            self.mutations,
            plural(self.mutations),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutation_is_compared_with_the_eight_before_it() {
        let check = |new, before: &str, expected| {
            let before: Vec<&str> = before.split(' ').filter(|word| !word.is_empty()).collect();
            assert_eq!(
                mutation(new, before.iter().copied()),
                expected,
                "{new} after {before:?}"
            );
        };
        let oscillation = |period| Cycle {
            no_op: false,
            oscillation: Some(period),
        };
        check("a", "", Cycle::default());
        check("a", "b c", Cycle::default());
        check(
            "a",
            "a b a",
            Cycle {
                no_op: true,
                oscillation: None,
            },
        );
        check("a", "b a", oscillation(2));
        check("a", "b b a", oscillation(3));
        check("a", "b c d e f g h a", oscillation(8));
        check("a", "b c d e f g h i a", Cycle::default());
    }

    #[test]
    fn a_failure_that_outlives_a_mutation_is_no_progress() {
        let at = |fingerprint, mutations| Sighting {
            fingerprint,
            mutations,
        };
        let first = failure(at("x", 3), [at("y", 1)]);
        assert_eq!(
            first,
            Repetition {
                non_progress: false,
                seen: 1,
                mutations: 0
            }
        );
        let again = failure(at("x", 3), [at("x", 3)]);
        assert_eq!(
            again,
            Repetition {
                non_progress: false,
                seen: 2,
                mutations: 0
            }
        );
        let third = failure(at("x", 5), [at("x", 4), at("y", 4), at("x", 3)]);
        assert_eq!(
            third,
            Repetition {
                non_progress: true,
                seen: 3,
                mutations: 2
            }
        );
        assert_eq!(third.to_string(), "same failure seen 3 times across 2 mutations");
        assert_eq!(first.to_string(), "same failure seen 1 time across 0 mutations");
    }
}
