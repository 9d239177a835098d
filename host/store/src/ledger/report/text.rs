//! Text form of a report.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tollgate_core::client_name;
use tollgate_core::envelope::State;
use tollgate_core::text::{counted, named, quoted};

use super::{Changed, Circle, Part, Refused, Repeated, Step, Story, Unseen, evidence, judged};
use crate::storage::Envelope;

pub(super) fn tell(story: &Story, envelope: &Envelope, boot_ms: i64) -> String {
    let mut text = String::new();
    opening(&mut text, envelope);
    doubt(&mut text, story, envelope, usize::MAX);
    limits(&mut text, envelope, boot_ms);
    summary(&mut text, story);
    section(&mut text, "What happened", &story.steps, |step| {
        tell_step(step, envelope)
    });
    let told: i64 = story.steps.iter().map(|step| step.count).sum();
    if told < story.operations {
        let _ = writeln!(
            text,
            "  … and {}",
            counted(story.operations - told, "more operation")
        );
    }
    section(
        &mut text,
        "Refused or failed, and why",
        &story.refusals,
        tell_refused,
    );
    section(&mut text, "Policy decisions", &story.verdicts, judged::tell);
    section(&mut text, "Repeated failures", &story.repeated_failures, |one| {
        tell_repeated(one, "failure", envelope)
    });
    section(&mut text, "Repeated changes", &story.repeated_changes, |one| {
        tell_repeated(one, "change", envelope)
    });
    section(
        &mut text,
        "Edits that went in circles",
        &story.circles,
        tell_circle,
    );
    section(&mut text, "Child envelopes", &story.parts, tell_part);
    section(&mut text, "What was changed", &story.changes, tell_changed);
    if let Some(note) = &envelope.note {
        let _ = write!(
            text,
            "\nIts owner's closing note: {}\n",
            tollgate_core::text::clean(note)
        );
    }
    text.trim_end().to_owned()
}

/// Most codes, failures and changes that a summary names.
const MAX_NAMED: usize = 3;

/// Summary of a story in at most ten lines.
pub(super) fn summarise(story: &Story, envelope: &Envelope, boot_ms: i64) -> String {
    let mut text = String::new();
    opening(&mut text, envelope);
    doubt(&mut text, story, envelope, MAX_NAMED);
    limits(&mut text, envelope, boot_ms);
    summary(&mut text, story);
    let mut line = |title: &str, named: Vec<String>, of: usize| {
        if !named.is_empty() {
            let more = if of > named.len() {
                format!("; {} more", of - named.len())
            } else {
                String::new()
            };
            let _ = writeln!(text, "{title}: {}{more}.", named.join("; "));
        }
    };
    let refused = story.refusals.iter().take(MAX_NAMED);
    let refused = refused.map(|one| format!("{} {}", one.code, times(one.count)));
    line("Refused or failed", refused.collect(), story.refusals.len());
    let repeated = story.repeated_failures.iter().take(MAX_NAMED);
    let repeated = repeated.map(|one| tell_repeated(one, "failure", envelope));
    line("Failed again", repeated.collect(), story.repeated_failures.len());
    let circles = story.circles.iter().take(MAX_NAMED).map(tell_circle);
    line("Edits in circles", circles.collect(), story.circles.len());
    let parts = story.parts.iter().take(MAX_NAMED).map(tell_part);
    line("Child envelopes", parts.collect(), story.parts.len());
    let changed = story.changes.iter().take(MAX_NAMED);
    let changed = changed.map(|one| named(&one.what));
    line("Changed", changed.collect(), story.changes.len());
    let _ = write!(
        text,
        "For the whole report, call ledger_report with this envelope_id."
    );
    text
}

fn opening(text: &mut String, envelope: &Envelope) {
    let _ = write!(text, "Envelope {}", envelope.id);
    if let Some(label) = &envelope.label {
        let _ = write!(text, " {}", quoted(label));
    }
    if let Some(workspace) = &envelope.workspace {
        let _ = write!(text, " in {}", named(workspace));
    }
    let _ = write!(text, "\nOpened {}", envelope.opened_at);
    let Some(closed_at) = &envelope.closed_at else {
        // The end by time has no row yet.
        let _ = match envelope
            .closed_by
            .as_deref()
            .filter(|_| envelope.over_boot_ms.is_some())
        {
            Some(by) => writeln!(text, ", closed {}: {}.", how(envelope.standing.state), over(by)),
            None => writeln!(text, ", still open."),
        };
        return;
    };
    let _ = write!(text, ", closed {} at {closed_at}", how(envelope.standing.state));
    if let Some(open) = between(&envelope.opened_at, closed_at) {
        let _ = write!(text, " after {}", duration(open));
    }
    match envelope.closed_by.as_deref() {
        None => {
            let by = envelope.closed_actor.as_deref().map(client_name::caller);
            let _ = writeln!(text, ", by {}.", by.as_deref().unwrap_or("a caller"));
        }
        Some(by) => {
            let _ = writeln!(text, ": {}.", reason(by));
        }
    }
    if envelope.restart_moved == Some(true) {
        text.push_str("Its work tree was changed between its last call and the restart of the host.\n");
    }
    if let (Some(before), Some(after)) = (&envelope.git_head, &envelope.closed_git_head) {
        let _ = match before == after {
            true => writeln!(text, "The repository was at {before} before and after."),
            false => writeln!(
                text,
                "The repository was at {before} before, and at {after} after."
            ),
        };
    }
}

/// End of an envelope in words.
fn how(state: State) -> &'static str {
    match state {
        State::Open => "still open",
        State::ClosedSuccess => "as a success",
        State::ClosedFailed => "as failed",
        State::ClosedInterrupted => "as interrupted",
    }
}

/// Reason for an end by time, in words.
fn over(closed_by: &str) -> &str {
    match closed_by {
        "PARENT_CLOSED" => "the time of a parent envelope ran out",
        other => reason(other),
    }
}

/// Adds doubts about a success that no test run confirms, with at most `limit` reasons.
fn doubt(text: &mut String, story: &Story, envelope: &Envelope, limit: usize) {
    if envelope.standing.state != State::ClosedSuccess {
        return;
    }
    let mut doubts = evidence::doubts(&story.tests, &story.untested, envelope.workspace.as_deref());
    doubts.extend(story.unseen.iter().map(tell_unseen));
    for doubt in doubts.iter().take(limit) {
        let _ = writeln!(text, "It was closed as a success, but {doubt}.");
    }
    let _ = match doubts.len().saturating_sub(limit) {
        0 => Ok(()),
        1 => writeln!(text, "The whole report has 1 more such reason."),
        more => writeln!(text, "The whole report has {more} more such reasons."),
    };
}

fn tell_unseen(unseen: &Unseen) -> String {
    let clean = tollgate_core::text::clean;
    format!(
        "the work tree of {} could not be inspected: {}",
        named(&unseen.workspace),
        clean(&unseen.why).trim_end_matches('.')
    )
}

fn tell_circle(circle: &Circle) -> String {
    format!(
        "{} returned to an earlier state {}, the last time after {}",
        named(&circle.workspace),
        times(circle.count),
        counted(circle.period, "edit")
    )
}

fn tell_part(part: &Part) -> String {
    let label = part.label.iter().map(|label| format!(" {}", quoted(label)));
    let state = State::parse(&part.state).map(how).unwrap_or_default();
    let why = part.closed_by.iter().map(|by| format!(" ({})", reason(by)));
    format!(
        "{}{} {state}{}, {}, {}, {}",
        part.envelope_id,
        label.collect::<String>(),
        why.collect::<String>(),
        counted(part.mutations, "mutation"),
        counted(part.test_runs, "test run"),
        counted(part.observed_edits, "observed edit")
    )
}

/// Reason for which the host closed the envelope, in words.
fn reason(closed_by: &str) -> &str {
    match closed_by {
        "MUTATION_BUDGET_EXHAUSTED" => "its mutations were used up",
        "DURATION_EXCEEDED" => "its time ran out",
        "EDIT_BUDGET_EXHAUSTED" => "its work tree was edited more often than allowed",
        "TEST_BUDGET_EXHAUSTED" => "its test runs were used up",
        "BUDGET_EXHAUSTED" => "a named budget was used up",
        "WINDOW_EXHAUSTED" => "a time window was full",
        "DISCONNECTED" => "its client disconnected",
        "HOST_GONE" => "its host process ended",
        "HOST_STOPPED" => "its host was stopped",
        "PARENT_CLOSED" => "its parent envelope was closed",
        other => other,
    }
}

fn limits(text: &mut String, envelope: &Envelope, boot_ms: i64) {
    let standing = &envelope.standing;
    let used = |used: i64, limit: Option<i64>, one: &str, many: &str| match limit {
        Some(limit) => format!("{used} of {limit} {many}"),
        None if used == 1 => format!("1 {one} (no limit)"),
        None => format!("{used} {many} (no limit)"),
    };
    let mut parts = vec![
        used(
            standing.mutations,
            standing.limits.max_mutations,
            "mutation",
            "mutations",
        ),
        used(
            standing.test_runs,
            standing.limits.max_test_runs,
            "test run",
            "test runs",
        ),
    ];
    if standing.edits > 0 || standing.limits.max_edits.is_some() {
        let limit = standing.limits.max_edits;
        parts.push(used(standing.edits, limit, "observed edit", "observed edits"));
    }
    if let Some(limit) = standing.limits.max_duration_sec {
        parts.push(if standing.state == State::Open {
            format!("{} of {limit} s", standing.open_sec(boot_ms))
        } else {
            format!("at most {limit} s")
        });
    }
    let _ = writeln!(text, "Limits: {}.", parts.join(", "));
}

fn summary(text: &mut String, story: &Story) {
    let _ = write!(
        text,
        "{}, which took {} in total; {} refused or failed.",
        counted(story.operations, "operation"),
        duration(story.busy_ms / 1000.0),
        match story.failed {
            0 => "none was".to_owned(),
            1 => "1 was".to_owned(),
            many => format!("{many} were"),
        }
    );
    if story.asked > 0 {
        let _ = write!(
            text,
            " {} because a policy asked the user.",
            match story.asked {
                1 => "1 ended".to_owned(),
                many => format!("{many} ended"),
            }
        );
    }
    if story.unknown > 0 {
        let _ = write!(
            text,
            " The outcome of {} is unknown: the host ended during the call.",
            story.unknown
        );
    }
    if !story.running.is_empty() {
        let tools: BTreeSet<String> = story.running.iter().cloned().collect();
        let running = counted(i64::try_from(story.running.len()).unwrap_or(i64::MAX), "call");
        let _ = write!(text, " Still running: {running} of {}.", list(&tools));
    }
    text.push('\n');
}

fn section<T>(text: &mut String, title: &str, items: &[T], tell: impl Fn(&T) -> String) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    for item in items {
        let _ = writeln!(text, "  {}", tell(item));
    }
}

fn tell_step(step: &Step, envelope: &Envelope) -> String {
    // The day is shown only if it differs from the day of the opening.
    let is_same_day = step.timestamp.get(..10) == envelope.opened_at.get(..10);
    let at = step
        .timestamp
        .get(if is_same_day { 11..19 } else { 0..19 })
        .unwrap_or(&step.timestamp);
    let who = step
        .actor
        .iter()
        .map(|actor| format!(" by {}", named(actor)))
        .collect::<String>();
    let times = if step.count > 1 {
        format!(", {} times", step.count)
    } else {
        String::new()
    };
    let outcome = match step.outcome.as_str() {
        "unknown" => "outcome unknown",
        "asked" => "asked the user",
        outcome => outcome,
    };
    let limit = step
        .limit
        .as_ref()
        .map(|limit| reason(limit))
        .filter(|reason| *reason != step.outcome)
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    let place = place(step.workspace.as_deref(), envelope);
    let clean = |text: &String| tollgate_core::text::clean(text);
    let via = step.client.iter();
    let via = via.map(|client| format!(" via {}", client_name::shown(client)));
    // Packs that change files record the same numbers in their own words.
    let is_noted = |diff: &&String| {
        let lines = diff.split_once(", ").map(|(_, lines)| lines);
        let note = step.note.as_deref().unwrap_or_default();
        lines.is_some_and(|lines| note.contains(lines))
    };
    let diff = step.diff.iter().filter(|diff| !is_noted(diff));
    let details = diff.chain(&step.tests).chain(&step.note);
    let details = details.map(|detail| format!("; {}", clean(detail)));
    let kept = match step.artifact_ids.as_slice() {
        [] => String::new(),
        ids => format!(" [{}]", clean(&ids.join(", "))),
    };
    format!(
        "{at}  #{:<5} {}{place}{who}{}{times}: {outcome}{limit}{}{kept}",
        step.seq,
        step.tool,
        via.collect::<String>(),
        details.collect::<String>(),
    )
}

fn tell_refused(refused: &Refused) -> String {
    let place = if refused.first_seq == refused.last_seq {
        format!("#{}", refused.first_seq)
    } else {
        format!("#{} to #{}", refused.first_seq, refused.last_seq)
    };
    let why = explain(&refused.code)
        .map(|why| format!(" — {why}"))
        .unwrap_or_default();
    format!(
        "{}, {}: {} ({place}){why}",
        refused.code,
        times(refused.count),
        list(&refused.tools)
    )
}

/// Explanation of a code, for the host's own codes.
pub fn explain(code: &str) -> Option<&'static str> {
    Some(match code {
        "MUTATION_BUDGET_EXHAUSTED" => "all mutations were used up; this closed the envelope",
        "TEST_BUDGET_EXHAUSTED" => "all test runs were used up",
        "EDIT_BUDGET_EXHAUSTED" => "all edits were used up; this closed the envelope",
        "WINDOW_EXHAUSTED" => "a time window was full",
        "WORK_TREE_UNSEEN" => "edits are limited, and the work tree could not be inspected",
        "DURATION_EXCEEDED" => "the time had run out; this closed the envelope",
        "ENVELOPE_CLOSED" => "the envelope was already closed",
        "INVALID_ARGUMENTS" | "MALFORMED_ARGUMENTS" => "the arguments were not valid for the tool",
        "DEADLINE_EXCEEDED" => "the call exceeded its time limit",
        "CANCELLED" => "the caller cancelled the call",
        "GUEST_TRAPPED" | "STACK_OVERFLOW" | "BAD_REPLY" => "the pack failed",
        "MEMORY_LIMIT" | "TABLE_LIMIT" | "HANDLE_LIMIT" => "the pack exceeded its memory limit",
        "STORAGE_FULL" => "the disk was full",
        "STORAGE_BUSY" | "STORAGE_FAILED" | "OUTCOME_UNKNOWN" | "HOST_FAILED" | "HOST_STOPPING" => {
            "the host could not complete the call"
        }
        _ => return None,
    })
}

/// Workspace of a call, if it differs from the envelope's.
fn place(workspace: Option<&str>, envelope: &Envelope) -> String {
    let other = workspace.filter(|_| workspace != envelope.workspace.as_deref());
    let place = other.map(|workspace| format!(" in {}", named(workspace)));
    place.unwrap_or_default()
}

fn tell_repeated(repeated: &Repeated, what: &str, envelope: &Envelope) -> String {
    let short = repeated.fingerprint.get(..12).unwrap_or(&repeated.fingerprint);
    let tests = if repeated.failing_tests.is_empty() {
        String::new()
    } else {
        let tests = repeated.failing_tests.iter().map(|test| test_name(test));
        format!(": {}", list(&tests.collect()))
    };
    format!(
        "{what} {short} {} over {}{}, by {}{tests}",
        times(repeated.count),
        match repeated.edits_between {
            Some(edits) => counted(edits, "edit"),
            None => counted(repeated.mutations_between, "mutation"),
        },
        place(repeated.workspace.as_deref(), envelope),
        list(&repeated.tools)
    )
}

fn tell_changed(changed: &Changed) -> String {
    format!(
        "{} by {} ({})",
        named(&changed.what),
        counted(changed.calls, "call"),
        list(&changed.tools)
    )
}

fn list(items: &BTreeSet<String>) -> String {
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    tollgate_core::text::clean(&items.join(", "))
}

/// Name of a test, quoted only if part of it reads like words of the report.
fn test_name(name: &str) -> String {
    let is_plain = tollgate_core::text::clean(name) == name
        && !name.contains(": ")
        && !name.contains("; ")
        && !name.contains('"');
    match is_plain {
        true => name.to_owned(),
        false => quoted(name),
    }
}

pub(super) fn times(count: i64) -> String {
    if count == 1 {
        "once".to_owned()
    } else {
        format!("{count} times")
    }
}

/// Seconds between two times. `None` if the clock was set back in between.
fn between(start: &str, end: &str) -> Option<f64> {
    let parse = |text: &str| OffsetDateTime::parse(text, &Rfc3339).ok();
    let seconds = (parse(end)? - parse(start)?).as_seconds_f64();
    (seconds >= 0.0).then_some(seconds)
}

fn duration(seconds: f64) -> String {
    match seconds {
        short if short < 1.0 => format!("{:.0} ms", short * 1000.0),
        some if some < 120.0 => format!("{some:.1} s"),
        long if long < 7200.0 => format!("{:.0} min", long / 60.0),
        hours => format!("{:.1} h", hours / 3600.0),
    }
}

#[cfg(test)]
mod tests;
