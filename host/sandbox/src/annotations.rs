//! Additions of a component to its operation's record, bounded before they reach the ledger.

use serde_json::{Value, json};
use thiserror::Error;
use tollgate_core::text;
use tollgate_store::storage::{Operation, Ran, StoredTestOutcome};

use crate::bindings::tollgate::host::ledger::{Event, TestOutcome, TestResult};

/// Most events of one call.
const MAX_EVENTS: usize = 100;
/// Most bytes of all events of one call.
const MAX_BYTES: usize = 64 << 10;
/// Longest type of an event, in bytes.
const MAX_TYPE: usize = 64;
/// Longest note, in bytes.
const MAX_NOTE: usize = 500;
/// Longest name of an entity or a test, in bytes.
const MAX_NAME: usize = 500;
/// Most changed entities, and most failing tests, of one call.
const MAX_NAMES: usize = 1_000;
/// Longest statistics, in bytes.
const MAX_STATS: usize = 500;
/// Longest list of changed files, in bytes.
const MAX_SHORT_DIFF: usize = 8 << 10;

/// Reason for which an event is not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BadEvent {
    /// A part of the event is too large.
    #[error("{what}: {size}; at most {limit} are allowed")]
    TooLarge {
        /// Name of the part.
        what: &'static str,
        /// Size of the part.
        size: usize,
        /// Accepted maximum.
        limit: usize,
    },
    /// The event is malformed.
    #[error("{0}")]
    Invalid(&'static str),
}

/// Additions of one call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Annotations {
    events: Vec<Value>,
    changed: Vec<String>,
    failing_tests: Vec<String>,
    diff_stats: Option<String>,
    short_diff: Option<String>,
    failure_fingerprint: Option<String>,
    mutation_fingerprint: Option<String>,
    outcome: Option<StoredTestOutcome>,
    bytes: usize,
}

impl Annotations {
    /// Adds an event. An event that is refused changes nothing.
    pub fn add(&mut self, event: Event) -> Result<(), BadEvent> {
        check(&event)?;
        let bytes = self.bytes + size(&event);
        too_large("all events of a call together, in bytes", bytes, MAX_BYTES)?;
        too_large("events of a call", self.events.len() + 1, MAX_EVENTS)?;
        too_large(
            "changed entities of a call",
            self.changed.len() + event.changed.len(),
            MAX_NAMES,
        )?;
        too_large(
            "failing tests of a call",
            self.failing_tests.len() + event.failing_tests.len(),
            MAX_NAMES,
        )?;
        self.bytes = bytes;
        self.events.push(match &event.note {
            Some(note) => json!({"type": event.event_type, "note": text::clean(note)}),
            None => json!({"type": event.event_type}),
        });
        let cleaned = |names: Vec<String>| names.into_iter().map(|name| text::clean(&name));
        self.changed.extend(cleaned(event.changed));
        self.failing_tests.extend(cleaned(event.failing_tests));
        replace(&mut self.failure_fingerprint, event.failure_fingerprint);
        replace(&mut self.mutation_fingerprint, event.mutation_fingerprint);
        replace(&mut self.diff_stats, event.diff_stats);
        replace(
            &mut self.short_diff,
            event.short_diff.map(|diff| text::clean_lines(&diff)),
        );
        Ok(())
    }

    /// Sets the outcome of tests, or returns why it is refused.
    pub fn set_outcome(&mut self, said: TestOutcome) -> Result<(), BadEvent> {
        let length = said.message.as_ref().map_or(0, String::len);
        too_large("message, in bytes", length, MAX_NOTE)?;
        self.outcome = Some(StoredTestOutcome {
            result: match said.test_result {
                TestResult::Passed => Ran::Passed,
                TestResult::Failed => Ran::Failed,
                TestResult::Error => Ran::Error,
                TestResult::NoTests => Ran::NoTests,
                TestResult::TimedOut => Ran::TimedOut,
                TestResult::Killed => Ran::Killed,
            },
            failed: said.failed,
            total: said.total,
            message: said.message.map(|message| text::clean(&message)),
            runs: Vec::new(),
        });
        Ok(())
    }

    /// Fingerprint of the change, as the component sees it.
    pub fn mutation_fingerprint(&self) -> Option<&str> {
        self.mutation_fingerprint.as_deref()
    }

    /// True if an event of this type was added.
    pub fn has_event(&self, wanted: &str) -> bool {
        let mut types = self.events.iter().filter_map(|event| event.get("type"));
        types.any(|event_type| event_type.as_str() == Some(wanted))
    }

    /// The entities that changed.
    pub fn changed(&self) -> &[String] {
        &self.changed
    }

    /// Passes every text in the additions to `show`.
    pub fn texts(&self, mut show: impl FnMut(&str)) {
        for event in &self.events {
            let texts = ["type", "note"]
                .into_iter()
                .filter_map(|key| event.get(key)?.as_str());
            texts.for_each(&mut show);
        }
        let names = self.changed.iter().chain(&self.failing_tests);
        names.for_each(|name| show(name));
        let others = [
            &self.diff_stats,
            &self.short_diff,
            &self.failure_fingerprint,
            &self.mutation_fingerprint,
        ];
        if let Some(message) = self
            .outcome
            .as_ref()
            .and_then(|outcome| outcome.message.as_deref())
        {
            show(message);
        }
        others.into_iter().flatten().for_each(|text| show(text));
    }

    /// Fills in the columns of a row that the component knows better than the host.
    pub fn fill(&self, operation: &mut Operation) {
        let list = |names: &[String]| (!names.is_empty()).then(|| json!(names).to_string());
        if !self.events.is_empty() {
            operation.events = Some(Value::from(self.events.clone()).to_string());
        }
        if let Some(changed) = list(&self.changed) {
            operation.changed_paths = Some(changed);
        }
        operation.outcome = self
            .outcome
            .as_ref()
            .and_then(|outcome| serde_json::to_string(outcome).ok());
        operation.failing_tests = list(&self.failing_tests);
        operation.diff_stats.clone_from(&self.diff_stats);
        operation.short_diff.clone_from(&self.short_diff);
        operation
            .failure_fingerprint
            .clone_from(&self.failure_fingerprint);
        if self.mutation_fingerprint.is_some() {
            operation
                .mutation_fingerprint
                .clone_from(&self.mutation_fingerprint);
        }
    }
}

fn replace(old: &mut Option<String>, new: Option<String>) {
    if new.is_some() {
        *old = new;
    }
}

fn check(event: &Event) -> Result<(), BadEvent> {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let is_type = event.event_type.starts_with(|c: char| c.is_ascii_lowercase())
        && event
            .event_type
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-'));
    too_large("event-type, in bytes", event.event_type.len(), MAX_TYPE)?;
    if !is_type {
        return Err(BadEvent::Invalid(
            "event-type must be a dotted name in lower case",
        ));
    }
    too_large("note, in bytes", length(&event.note), MAX_NOTE)?;
    for name in event.changed.iter().chain(&event.failing_tests) {
        too_large("one name, in bytes", name.len(), MAX_NAME)?;
    }
    for fingerprint in [&event.failure_fingerprint, &event.mutation_fingerprint]
        .into_iter()
        .flatten()
    {
        let is_hash = fingerprint.len() == 64
            && fingerprint
                .chars()
                .all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
        if !is_hash {
            return Err(BadEvent::Invalid(
                "a fingerprint must be 64 hex digits in lower case",
            ));
        }
    }
    too_large("diff-stats, in bytes", length(&event.diff_stats), MAX_STATS)?;
    if let Some(stats) = &event.diff_stats
        && !matches!(serde_json::from_str(stats), Ok(Value::Object(_)))
    {
        return Err(BadEvent::Invalid("diff-stats must be a JSON object"));
    }
    too_large("short-diff, in bytes", length(&event.short_diff), MAX_SHORT_DIFF)
}

fn too_large(what: &'static str, size: usize, limit: usize) -> Result<(), BadEvent> {
    if size <= limit {
        Ok(())
    } else {
        Err(BadEvent::TooLarge { what, size, limit })
    }
}

fn size(event: &Event) -> usize {
    let names: usize = event
        .changed
        .iter()
        .chain(&event.failing_tests)
        .map(String::len)
        .sum();
    let texts = [&event.note, &event.diff_stats, &event.short_diff];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    event.event_type.len() + names + texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event_type: &str) -> Event {
        Event {
            event_type: event_type.to_owned(),
            changed: Vec::new(),
            note: None,
            failure_fingerprint: None,
            mutation_fingerprint: None,
            failing_tests: Vec::new(),
            diff_stats: None,
            short_diff: None,
        }
    }

    #[test]
    fn what_is_too_large_or_malformed_adds_nothing() {
        let long = "x".repeat(MAX_NAME + 1);
        let bad = [
            event(""),
            event("Test.failed"),
            event(&"t".repeat(MAX_TYPE + 1)),
            Event {
                note: Some(long.clone()),
                ..event("t")
            },
            Event {
                changed: vec![long.clone()],
                ..event("t")
            },
            Event {
                failing_tests: vec![String::new(); MAX_NAMES + 1],
                ..event("t")
            },
            Event {
                failing_tests: vec!["x".repeat(400); 200],
                ..event("t")
            },
            Event {
                failure_fingerprint: Some("abc".to_owned()),
                ..event("t")
            },
            Event {
                mutation_fingerprint: Some("A".repeat(64)),
                ..event("t")
            },
            Event {
                diff_stats: Some("[1]".to_owned()),
                ..event("t")
            },
            Event {
                short_diff: Some("+".repeat(MAX_SHORT_DIFF + 1)),
                ..event("t")
            },
        ];
        let mut annotations = Annotations::default();
        for event in bad {
            let shown = format!("{event:?}");
            assert!(annotations.add(event).is_err(), "{}", text::cut(&shown, 200));
        }
        assert_eq!(annotations, Annotations::default());
    }

    #[test]
    fn the_last_fingerprint_counts_and_names_add_up() {
        let mut annotations = Annotations::default();
        for (name, digit) in [("one", "1"), ("two", "2")] {
            let event = Event {
                changed: vec![name.to_owned()],
                failure_fingerprint: Some(digit.repeat(64)),
                ..event("thing.changed")
            };
            annotations.add(event).unwrap();
        }
        annotations.add(event("thing.seen")).unwrap();
        assert_eq!(annotations.changed(), ["one", "two"]);
        assert_eq!(annotations.failure_fingerprint, Some("2".repeat(64)));
        assert_eq!(annotations.events.len(), 3);
    }

    #[test]
    fn many_small_events_meet_a_bound() {
        let mut annotations = Annotations::default();
        let added = (0..1000)
            .take_while(|_| annotations.add(event("t")).is_ok())
            .count();
        assert_eq!(added, MAX_EVENTS);
    }
}
