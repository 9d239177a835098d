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

/// Relation of a state to earlier ones where edits are counted: `before` are those by the last record, or by the
/// opening of the envelope.
#[must_use]
pub fn seen(edits: u64, before: Option<u64>, oscillation: Option<u32>) -> Cycle {
    let no_op = before == Some(edits);
    Cycle {
        no_op,
        oscillation: oscillation.filter(|_| !no_op),
    }
}

/// Unit of the count between two sightings of a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Calls that may have changed something, where nobody sees the work tree.
    #[default]
    Mutation,
    /// Edits of the work tree.
    Edit,
}

impl Unit {
    const fn name(self) -> &'static str {
        match self {
            Unit::Mutation => "mutation",
            Unit::Edit => "edit",
        }
    }
}

/// Earlier sightings of a failure with one detail at one place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sightings {
    /// Fingerprint of the messages. Absent in rows of earlier versions, and equal to any then.
    pub detail: Option<String>,
    /// Fingerprint of the source of the assertions. Absent if nobody knows it, and equal to any then.
    pub place: Option<String>,
    /// Number of sightings.
    pub seen: u64,
    /// Changes before the first of them.
    pub first: u64,
    /// Place of the last of them among all runs.
    pub last: i64,
}

/// Relation of a failure to earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Repetition {
    /// True if the same failure was seen before, with the same messages, and persists after at least one change.
    pub non_progress: bool,
    /// True if the same tests failed in the same way before, with other messages: a step within a test.
    pub same_test_other_failure: bool,
    /// Number of sightings, including this one.
    pub seen: u64,
    /// Number of changes since the first sighting.
    pub mutations: u64,
    /// Unit of the changes.
    pub unit: Unit,
}

/// Compares a failure with its earlier sightings, of which there is one entry for each detail and place.
#[must_use]
pub fn failure(
    (detail, place): (&str, Option<&str>),
    changes: u64,
    unit: Unit,
    before: &[Sightings],
) -> Repetition {
    let is_same = |older: &&Sightings| {
        let is_here = older.place.is_none() || place.is_none() || older.place.as_deref() == place;
        is_here && older.detail.as_deref().is_none_or(|older| older == detail)
    };
    let first = before.iter().map(|older| older.first).min();
    let same_first = before.iter().filter(is_same).map(|older| older.first).min();
    let last = before.iter().max_by_key(|older| older.last);
    Repetition {
        non_progress: same_first.is_some_and(|first| changes > first),
        same_test_other_failure: last.is_some_and(|last| !is_same(&last)),
        seen: before
            .iter()
            .fold(1, |seen: u64, older| seen.saturating_add(older.seen)),
        mutations: changes.saturating_sub(first.unwrap_or(changes)),
        unit,
    }
}

impl fmt::Display for Repetition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        write!(
            f,
            "same failure seen {} time{} across {} {}{}",
            self.seen,
            plural(self.seen),
            self.mutations,
            self.unit.name(),
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

    fn sightings(detail: Option<&str>, seen: u64, first: u64, last: i64) -> Sightings {
        Sightings {
            detail: detail.map(str::to_owned),
            place: None,
            seen,
            first,
            last,
        }
    }

    #[test]
    fn a_failure_that_outlives_a_change_is_no_progress() {
        let first = failure(("m", None), 3, Unit::Edit, &[]);
        assert_eq!((first.non_progress, first.seen, first.mutations), (false, 1, 0));
        let again = failure(("m", None), 3, Unit::Edit, &[sightings(Some("m"), 1, 3, 1)]);
        assert_eq!((again.non_progress, again.seen, again.mutations), (false, 2, 0));
        let third = failure(("m", None), 5, Unit::Edit, &[sightings(Some("m"), 2, 3, 2)]);
        assert_eq!((third.non_progress, third.seen, third.mutations), (true, 3, 2));
        assert!(!third.same_test_other_failure);
        assert_eq!(third.to_string(), "same failure seen 3 times across 2 edits");
        assert_eq!(first.to_string(), "same failure seen 1 time across 0 edits");
        let older = failure(("m", None), 4, Unit::Mutation, &[sightings(None, 1, 3, 1)]);
        assert!(older.non_progress && !older.same_test_other_failure);
        assert_eq!(older.to_string(), "same failure seen 2 times across 1 mutation");
    }

    #[test]
    fn another_message_of_the_same_test_is_a_step() {
        let step = failure(("n", None), 5, Unit::Edit, &[sightings(Some("m"), 2, 3, 2)]);
        assert!(step.same_test_other_failure && !step.non_progress);
        assert_eq!((step.seen, step.mutations), (3, 2));
        let before = [sightings(Some("m"), 2, 3, 2), sightings(Some("n"), 1, 5, 3)];
        let back = failure(("m", None), 6, Unit::Edit, &before);
        assert!(back.same_test_other_failure && back.non_progress);
        let stays = failure(("n", None), 6, Unit::Edit, &before);
        assert!(!stays.same_test_other_failure && stays.non_progress);
    }

    #[test]
    fn the_same_message_at_another_assertion_is_a_step() {
        let at = |place: Option<&str>| Sightings {
            place: place.map(str::to_owned),
            ..sightings(Some("m"), 1, 3, 1)
        };
        let compare = |place, older| {
            let known = failure(("m", place), 4, Unit::Edit, &[at(older)]);
            (known.non_progress, known.same_test_other_failure)
        };
        assert_eq!(compare(Some("a"), Some("a")), (true, false));
        assert_eq!(compare(Some("b"), Some("a")), (false, true));
        // Nobody knows.
        assert_eq!(compare(None, Some("a")), (true, false));
        assert_eq!(compare(Some("a"), None), (true, false));
    }
}
