//! Timeline of an envelope: one mark for each event, in order, in three lanes. Edits that lead to the same state of the
//! files have the same letter, so that going in circles is visible.

use std::collections::HashMap;

use maud::{Markup, html};
use tollgate_core::text::counted;
use tollgate_store::storage::{StoredOperation, TreeState};

use crate::layout;
use crate::rows::told;
use crate::visible;

/// Maximum number of drawn marks.
pub(crate) const MAX_MARKS: usize = 400;
/// Minimum and maximum width of a mark, in units of the picture. Many marks use less.
const MARK_WIDTHS: (usize, usize) = (26, 46);
/// Width of the picture if its marks fit.
const PICTURE_WIDTH: usize = 1_160;
const LEFT_MARGIN: usize = 64;
const ARC_HEIGHT: usize = 58;
const LANE_HEIGHT: usize = 34;
/// Number of marks between two times.
const MARKS_PER_TICK: usize = 6;

/// Lane of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Edit,
    Test,
    Other,
}

/// Kind of a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// An edit, with the number of the state it led to.
    Edit { state: usize, is_observed: bool },
    /// A test run, and the number of its failure if it failed.
    Test { failure: Option<usize> },
    /// A call that was denied or failed.
    Stopped,
    /// Any other call.
    Call,
}

/// One event.
#[derive(Debug, Clone)]
struct Mark {
    lane: Lane,
    kind: Kind,
    seq: i64,
    timestamp: String,
    words: String,
}

/// The marks of an envelope.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    marks: Vec<Mark>,
    /// State of the files at the start, if that is known.
    start: Option<usize>,
    /// Number of each state of the files, in order of appearance.
    states: HashMap<String, usize>,
    /// Number of each failure, and its words.
    failures: HashMap<String, usize>,
    failure_words: Vec<(String, usize)>,
}

impl Timeline {
    /// Builds the marks of an envelope from its rows, oldest first, and the states of its work trees.
    pub(crate) fn of(operations: &[StoredOperation], states: &[TreeState]) -> Timeline {
        let mut timeline = Timeline::default();
        // The envelope's initial state can be returned to as well.
        if let Some(first) = states
            .first()
            .filter(|first| !matches!(first.cause.as_str(), "observed" | "call"))
        {
            timeline.start = Some(timeline.state(&first.state));
        }
        let mut by_operation: HashMap<&str, Vec<&TreeState>> = HashMap::new();
        for state in states {
            by_operation.entry(&state.op_id).or_default().push(state);
        }
        for operation in operations {
            let seen = by_operation.remove(operation.op_id.as_str()).unwrap_or_default();
            timeline.add(operation, &seen);
        }
        timeline
    }

    fn add(&mut self, operation: &StoredOperation, seen: &[&TreeState]) {
        let edits = |cause: &str| seen.iter().find(|state| state.cause == cause);
        if let Some(observed) = edits("observed") {
            let state = self.state(&observed.state);
            let words = "an edit that no call made, seen by this call".to_owned();
            self.push(
                operation,
                Lane::Edit,
                Kind::Edit {
                    state,
                    is_observed: true,
                },
                words,
            );
        }
        let succeeded = operation.success == Some(true);
        let outcome = told(operation, 0).words;
        if operation.op_type == "test_run" && succeeded {
            let failure = operation
                .failure_fingerprint
                .as_ref()
                .map(|hash| self.failure(hash, operation));
            self.push(operation, Lane::Test, Kind::Test { failure }, outcome);
            return;
        }
        let own = edits("call").map(|state| (state.state.clone(), false));
        // A reported edit led to the state that was observed then. The reporting call did not make the edit.
        let told_of = || {
            let fingerprint = operation.mutation_fingerprint.clone();
            let is_noop = operation.changed_paths.as_ref().is_some_and(Vec::is_empty);
            let is_told = operation.effect == "run" && !is_noop && edits("observed").is_none();
            let state = |change| operation.repo_after_hash.clone().unwrap_or(change);
            fingerprint
                .filter(|_| is_told)
                .map(|change| (state(change), true))
        };
        let own = own.or_else(told_of);
        match own.filter(|_| succeeded) {
            Some((state, is_observed)) => {
                let state = self.state(&state);
                self.push(operation, Lane::Edit, Kind::Edit { state, is_observed }, outcome);
            }
            None if operation.success == Some(false) => {
                self.push(operation, Lane::Other, Kind::Stopped, outcome)
            }
            None => self.push(operation, Lane::Other, Kind::Call, outcome),
        }
    }

    fn push(&mut self, operation: &StoredOperation, lane: Lane, kind: Kind, words: String) {
        self.marks.push(Mark {
            lane,
            kind,
            seq: operation.seq,
            timestamp: operation.timestamp.clone(),
            words: format!("#{} {} {}", operation.seq, operation.tool, words),
        });
    }

    fn state(&mut self, state: &str) -> usize {
        let next = self.states.len();
        *self.states.entry(state.to_owned()).or_insert(next)
    }

    fn failure(&mut self, hash: &str, operation: &StoredOperation) -> usize {
        let next = self.failures.len();
        let number = *self.failures.entry(hash.to_owned()).or_insert(next);
        if number == self.failure_words.len() {
            let test = operation.failing_tests.iter().flatten().next();
            let words = test.cloned().unwrap_or_else(|| operation.tool.clone());
            self.failure_words.push((words, 0));
        }
        self.failure_words[number].1 += 1;
        number
    }

    /// Returns whether there is nothing to draw.
    pub(crate) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Number of marks that are older than those drawn.
    pub(crate) fn left_out(&self) -> usize {
        self.marks.len().saturating_sub(MAX_MARKS)
    }

    /// Failures that occurred more than once, with their counts.
    pub(crate) fn repeated_failures(&self) -> impl Iterator<Item = (usize, &str, usize)> {
        let all = self.failure_words.iter().enumerate();
        all.filter(|(_, (_, seen))| *seen > 1)
            .map(|(at, (words, seen))| (at + 1, words.as_str(), *seen))
    }

    /// Letters of the newest edits, such as `A B A B`.
    pub(crate) fn letters(&self) -> Vec<String> {
        let edits = self.marks.iter().filter_map(|mark| match mark.kind {
            Kind::Edit { state, .. } => Some(letter(state)),
            _ => None,
        });
        edits.collect()
    }

    /// Number of edits that restored an earlier state, with another state in between.
    pub(crate) fn returns(&self) -> usize {
        arcs(&self.marks, self.start).len()
    }

    /// The picture.
    pub(crate) fn markup(&self) -> Markup {
        let marks = &self.marks[self.left_out()..];
        let step = (PICTURE_WIDTH / marks.len().max(1)).clamp(MARK_WIDTHS.0, MARK_WIDTHS.1);
        let x = |at: usize| LEFT_MARGIN + at * step + step / 2;
        let width = LEFT_MARGIN + marks.len().max(8) * step + 16;
        let height = ARC_HEIGHT + 3 * LANE_HEIGHT + 34;
        html! {
            div.scroll.timeline tabindex="0" role="group" aria-label="Timeline" {
                svg viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) role="group"
                    aria-label=(self.summary()) {
                    @for (lane, name) in [(Lane::Edit, "edits"), (Lane::Test, "tests"), (Lane::Other, "calls")] {
                        text.lane x="0" y=(y(lane) + 4) { (name) }
                        line.lane x1=(LEFT_MARGIN) x2=(width) y1=(y(lane)) y2=(y(lane)) {}
                    }
                    @for (at, timestamp) in ticks(marks) {
                        line.tick x1=(x(at)) x2=(x(at)) y1=(ARC_HEIGHT - 4) y2=(ARC_HEIGHT + 3 * LANE_HEIGHT) {}
                        text.tick x=(x(at)) y=(height - 8) data-at=(timestamp) { (layout::clock(timestamp).get(..8).unwrap_or_default()) }
                    }
                    @for (from, to) in arcs(marks, self.start.filter(|_| self.left_out() == 0)) {
                        (arc(from.map_or(LEFT_MARGIN, x), x(to)))
                    }
                    @for (at, mark) in marks.iter().enumerate() { (mark_of(x(at), mark)) }
                }
            }
        }
    }

    fn summary(&self) -> String {
        let count = |lane| self.marks.iter().filter(|mark| mark.lane == lane).count();
        let stopped = self
            .marks
            .iter()
            .filter(|mark| mark.kind == Kind::Stopped)
            .count();
        format!(
            "{}, {}, {}, of which stopped: {stopped}",
            counted(count(Lane::Edit), "edit"),
            counted(count(Lane::Test), "test run"),
            counted(count(Lane::Other), "other call"),
        )
    }
}

fn mark_of(x: usize, mark: &Mark) -> Markup {
    let y = y(mark.lane);
    html! {
        a href=(format!("/console/operations/{}", mark.seq)) {
            title { (visible::short(&mark.words, 200)) " · " (layout::clock(&mark.timestamp)) }
            @match mark.kind {
                Kind::Edit { state, is_observed } => {
                    rect class=(format!("edit c{}{}", state % 8, if is_observed { " observed" } else { "" }))
                        x=(x - 10) y=(y - 11) width="20" height="22" rx="5" {}
                    text.letter x=(x) y=(y + 4) { (letter(state)) }
                }
                Kind::Test { failure: Some(failure) } => {
                    circle.failed cx=(x) cy=(y) r="10" {}
                    text.letter x=(x) y=(y + 4) { "✗" (failure + 1) }
                }
                Kind::Test { failure: None } => {
                    circle.passed cx=(x) cy=(y) r="10" {}
                    text.letter x=(x) y=(y + 4) { "✓" }
                }
                Kind::Stopped => {
                    rect.stopped x=(x - 8) y=(y - 8) width="16" height="16" transform=(format!("rotate(45 {x} {y})")) {}
                    text.letter x=(x) y=(y + 4) { "!" }
                }
                Kind::Call => { circle.call cx=(x) cy=(y) r="4" {} }
            }
        }
    }
}

const fn y(lane: Lane) -> usize {
    ARC_HEIGHT
        + LANE_HEIGHT / 2
        + LANE_HEIGHT
            * match lane {
                Lane::Edit => 0,
                Lane::Test => 1,
                Lane::Other => 2,
            }
}

/// Letter of a state: A to Z, then A1.
fn letter(state: usize) -> String {
    let letter = char::from(b'A' + u8::try_from(state % 26).unwrap_or_default());
    match state / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

/// Pairs of edits that led to the same state, with another state in between. Without a first edit, the initial state
/// was restored.
fn arcs(marks: &[Mark], start: Option<usize>) -> Vec<(Option<usize>, usize)> {
    let mut last: HashMap<usize, Option<usize>> = start.map(|start| (start, None)).into_iter().collect();
    let mut newest = start;
    let mut arcs = Vec::new();
    for (at, mark) in marks.iter().enumerate() {
        if let Kind::Edit { state, .. } = mark.kind {
            if let Some(&before) = last.get(&state).filter(|_| newest != Some(state)) {
                arcs.push((before, at));
            }
            last.insert(state, Some(at));
            newest = Some(state);
        }
    }
    arcs
}

fn arc(from: usize, to: usize) -> Markup {
    let top = y(Lane::Edit) - 13;
    let high = top.saturating_sub((20 + (to - from) / 4).min(ARC_HEIGHT));
    html! {
        path.arc d=(format!("M{from} {top} C{from} {high} {to} {high} {to} {top}")) {}
    }
}

/// Positions of times below the picture: the first mark, and others wherever there is room.
fn ticks(marks: &[Mark]) -> Vec<(usize, &str)> {
    marks
        .iter()
        .enumerate()
        .filter(|(at, _)| at % MARKS_PER_TICK == 0)
        .map(|(at, mark)| (at, mark.timestamp.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(
        seq: i64,
        op_type: &str,
        fingerprint: Option<&str>,
        failure: Option<&str>,
    ) -> StoredOperation {
        StoredOperation {
            seq,
            op_id: format!("op_{seq}"),
            timestamp: "2026-03-01T10:00:00.000Z".to_owned(),
            op_type: op_type.to_owned(),
            effect: "run".to_owned(),
            success: Some(true),
            mutation_fingerprint: fingerprint.map(str::to_owned),
            failure_fingerprint: failure.map(str::to_owned),
            failing_tests: failure.map(|failure| vec![format!("test <{failure}>")]),
            ..StoredOperation::default()
        }
    }

    #[test]
    fn edits_that_come_back_have_the_same_letter_and_an_arc() {
        let mut operations = vec![
            operation(1, "mutation", Some("aa"), None),
            operation(2, "test_run", None, Some("f")),
            operation(3, "mutation", Some("bb"), None),
            operation(4, "test_run", None, Some("f")),
            operation(5, "mutation", Some("aa"), None),
            operation(6, "mutation", Some("aa"), None),
            operation(7, "mutation", Some("bb"), None),
            operation(8, "test_run", None, None),
        ];
        operations.push(StoredOperation {
            success: Some(false),
            error_code: Some("FROZEN".to_owned()),
            ..operation(9, "mutation", None, None)
        });
        let timeline = Timeline::of(&operations, &[]);
        assert_eq!(timeline.letters(), ["A", "B", "A", "A", "B"]);
        assert_eq!(timeline.returns(), 2);
        assert_eq!(
            timeline.repeated_failures().collect::<Vec<_>>(),
            [(1, "test <f>", 2)]
        );
        assert_eq!(
            timeline.summary(),
            "5 edits, 3 test runs, 1 other call, of which stopped: 1"
        );
        let markup = timeline.markup().into_string();
        assert_eq!(markup.matches("class=\"arc\"").count(), 2);
        assert!(
            markup.contains("FROZEN") && markup.contains("test &lt;f&gt;"),
            "{markup}"
        );
    }

    #[test]
    fn told_edits_have_the_letter_of_the_files_that_were_seen() {
        let seen = |operation: StoredOperation, state: &str| StoredOperation {
            repo_after_hash: Some(state.to_owned()),
            ..operation
        };
        let first = TreeState {
            workspace: "w".to_owned(),
            state: "s1".to_owned(),
            cause: "first".to_owned(),
            op_id: "op_1".to_owned(),
            seen_at: String::new(),
        };
        let observed = TreeState {
            state: "s2".to_owned(),
            cause: "observed".to_owned(),
            op_id: "op_2".to_owned(),
            ..first.clone()
        };
        let operations = [
            seen(operation(1, "mutation", Some("aa"), None), "s1"),
            seen(operation(2, "mutation", Some("bb"), None), "s2"),
            seen(operation(3, "mutation", Some("aa"), None), "s1"),
        ];
        let timeline = Timeline::of(&operations, &[first, observed]);
        assert_eq!(timeline.letters(), ["A", "B", "A"]);
        assert_eq!(timeline.returns(), 1);
    }

    #[test]
    fn edits_that_no_call_made_are_marks_and_the_first_state_can_come_back() {
        let state = |state: &str, cause: &str, op_id: &str| TreeState {
            workspace: "w".to_owned(),
            state: state.to_owned(),
            cause: cause.to_owned(),
            op_id: op_id.to_owned(),
            seen_at: String::new(),
        };
        let states = [
            state("s0", "opened", "op_0"),
            state("s1", "observed", "op_2"),
            state("s0", "observed", "op_3"),
        ];
        let operations = [
            operation(1, "query", None, None),
            operation(2, "test_run", None, Some("f")),
            operation(3, "test_run", None, Some("f")),
        ];
        let timeline = Timeline::of(&operations, &states);
        assert_eq!(timeline.letters(), ["B", "A"]);
        assert_eq!(timeline.returns(), 1);
        assert!(timeline.markup().into_string().contains("observed"));
        assert_eq!(letter(27), "B1");
    }
}
