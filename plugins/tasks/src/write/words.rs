//! Operations in words, for the history: "set priority of TASK-002 to HIGH".

use serde_json::{Map, Value as Json};

use super::Write;
use crate::limits::short;
use crate::store::Kind;
use crate::store::operation::Change;

/// Most phrases of one summary.
const MAX_PHRASES: usize = 4;
/// Characters of a summary.
const MAX_SUMMARY_CHARS: usize = 400;
/// Characters of a value in a phrase.
const MAX_VALUE_CHARS: usize = 80;
/// Fields that the summary leaves out, because another field tells the same.
const OMITTED_FIELDS: &[&str] = &[
    "done_at",
    "completed_at",
    "created_at",
    "forced",
    "reopen_reason",
    "status_reason",
    "block_reason",
    "confirmed",
    "position",
    "blocked",
];
/// Fields whose texts are too long to repeat.
const LONG_FIELDS: &[&str] = &[
    "description",
    "context",
    "contract",
    "contract_data",
    "doc",
    "success_criteria",
    "tests",
    "blockers",
];

impl Write<'_> {
    /// This write in words.
    pub(super) fn words(&self) -> String {
        if let Some(summary) = &self.summary {
            return short(summary, MAX_SUMMARY_CHARS);
        }
        let changes: Vec<Change> = self
            .pending
            .iter()
            .map(|pending| Change {
                kind: pending.kind,
                id: pending.columns.id.clone(),
                before: pending.before.clone(),
                after: pending.after.clone(),
            })
            .collect();
        of(&changes)
    }
}

/// Changes of an operation in words.
pub(crate) fn of(changes: &[Change]) -> String {
    let mut phrases = Vec::new();
    let mut counts: Vec<Counted> = Vec::new();
    for change in changes {
        match (change.before.as_deref(), change.after.as_deref()) {
            (None, Some(after)) => made(change, &fields(after), &mut phrases, &mut counts),
            (Some(before), None) => removed(change, &fields(before), &mut phrases),
            (Some(before), Some(after)) => changed(change, &fields(before), &fields(after), &mut phrases),
            (None, None) => {}
        }
    }
    phrases.extend(counts.iter().map(Counted::told));
    joined(phrases)
}

/// New records of one kind in one place.
struct Counted {
    kind: Kind,
    home: String,
    count: usize,
}

impl Counted {
    fn told(&self) -> String {
        let (one, many) = match self.kind {
            Kind::Evidence => ("a piece of evidence", "pieces of evidence"),
            Kind::Note => ("a note", "notes"),
            _ => ("a step", "steps"),
        };
        match self.count {
            1 => format!("added {one} to {}", self.home),
            count => format!("added {count} {many} to {}", self.home),
        }
    }
}

/// Phrases in one line.
pub(crate) fn joined(phrases: impl IntoIterator<Item = String>) -> String {
    let mut phrases: Vec<String> = phrases.into_iter().collect();
    let more = phrases.len().saturating_sub(MAX_PHRASES);
    phrases.truncate(MAX_PHRASES);
    if more > 0 {
        phrases.push(format!("and {more} more changes"));
    }
    short(&phrases.join("; "), MAX_SUMMARY_CHARS)
}

fn made(change: &Change, after: &Map<String, Json>, phrases: &mut Vec<String>, counts: &mut Vec<Counted>) {
    let home = home(after);
    match change.kind {
        Kind::Plan | Kind::Task => {
            phrases.push(format!("created {} {}", change.id, quoted(after)));
        }
        Kind::Lease => phrases.push(format!("leased {} to {}", change.id, text(after, "owner"))),
        Kind::Template => phrases.push(format!("saved template {}", change.id)),
        Kind::Node => phrases.push(format!("added node {} to {home}", quoted(after))),
        kind @ (Kind::Step | Kind::Evidence | Kind::Note) => {
            let known = counts
                .iter_mut()
                .find(|counted| counted.kind == kind && counted.home == home);
            match known {
                Some(counted) => counted.count += 1,
                None => counts.push(Counted { kind, home, count: 1 }),
            }
        }
    }
}

fn removed(change: &Change, before: &Map<String, Json>, phrases: &mut Vec<String>) {
    phrases.push(match change.kind {
        Kind::Lease => format!("released {} from {}", change.id, text(before, "owner")),
        Kind::Plan | Kind::Task => format!("deleted {} {}", change.id, quoted(before)),
        Kind::Step | Kind::Node => format!("deleted {}", named(change, before)),
        Kind::Evidence | Kind::Note | Kind::Template => format!("deleted {} {}", change.kind, change.id),
    });
}

fn changed(
    change: &Change,
    before: &Map<String, Json>,
    after: &Map<String, Json>,
    phrases: &mut Vec<String>,
) {
    // A new title is told as a change of the old one.
    let name = named(change, before);
    if change.kind == Kind::Step {
        step(&name, before, after, phrases);
    }
    if change.kind == Kind::Lease {
        phrases.push(format!("leased {} to {}", change.id, text(after, "owner")));
        return;
    }
    if change.kind == Kind::Template {
        phrases.push(format!("replaced template {}", change.id));
        return;
    }
    let names = before
        .keys()
        .chain(after.keys().filter(|name| !before.contains_key(*name)));
    for field in names.filter(|field| before.get(*field) != after.get(*field)) {
        if OMITTED_FIELDS.contains(&field.as_str()) {
            continue;
        }
        phrases.push(match after.get(field) {
            None => format!("cleared {field} of {name}"),
            Some(_) if LONG_FIELDS.contains(&field.as_str()) => format!("changed {field} of {name}"),
            Some(_) if field == "parent" => format!("moved {name}"),
            Some(value) => {
                let set = format!("set {field} of {name} to {}", plain(value));
                match field.as_str() {
                    "status" => because(set, after, "status_reason"),
                    _ => set,
                }
            }
        });
    }
}

/// Closing, reopening, blocking and confirming.
fn step(name: &str, before: &Map<String, Json>, after: &Map<String, Json>, phrases: &mut Vec<String>) {
    let confirmed = |fields: &Map<String, Json>| -> Vec<String> {
        let checkpoints = fields.get("confirmed").and_then(Json::as_object);
        checkpoints
            .into_iter()
            .flat_map(|checkpoints| checkpoints.keys().cloned())
            .collect()
    };
    let (had, has) = (confirmed(before), confirmed(after));
    for (verb, some, others) in [("confirmed", &has, &had), ("withdrew", &had, &has)] {
        let only: Vec<&str> = some
            .iter()
            .filter(|one| !others.contains(one))
            .map(String::as_str)
            .collect();
        if !only.is_empty() {
            phrases.push(format!("{verb} {} of {name}", only.join(", ")));
        }
    }
    match (
        before.contains_key("completed_at"),
        after.contains_key("completed_at"),
    ) {
        (false, true) => phrases.push(because(format!("closed {name}"), after, "forced")),
        (true, false) => phrases.push(because(format!("reopened {name}"), after, "reopen_reason")),
        _ => {}
    }
    if before.get("blocked") != after.get("blocked") {
        phrases.push(match after.get("blocked") {
            Some(Json::Bool(true)) => because(format!("blocked {name}"), after, "block_reason"),
            _ => format!("unblocked {name}"),
        });
    }
}

fn because(phrase: String, fields: &Map<String, Json>, reason: &str) -> String {
    match fields.get(reason).and_then(Json::as_str) {
        Some(reason) => format!("{phrase} ({})", short(reason, MAX_VALUE_CHARS)),
        None => phrase,
    }
}

fn named(change: &Change, fields: &Map<String, Json>) -> String {
    match change.kind {
        Kind::Step | Kind::Node => format!("{} {} of {}", change.kind, quoted(fields), text(fields, "task")),
        _ => change.id.clone(),
    }
}

/// The step, plan or task that a record belongs to.
fn home(fields: &Map<String, Json>) -> String {
    let step = ["step", "parent"]
        .iter()
        .find_map(|name| fields.get(*name).and_then(Json::as_str));
    let task = text(fields, "task");
    step.map_or(task.clone(), |step| format!("{step} of {task}"))
}

fn quoted(fields: &Map<String, Json>) -> String {
    format!("\"{}\"", short(&text(fields, "title"), MAX_VALUE_CHARS))
}

fn text(fields: &Map<String, Json>, name: &str) -> String {
    fields
        .get(name)
        .and_then(Json::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// A value without quotes and brackets.
fn plain(value: &Json) -> String {
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Array(entries) if entries.is_empty() => "nothing".to_owned(),
        Json::Array(entries) => entries
            .iter()
            .map(|entry| entry.as_str().map_or_else(|| entry.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    };
    short(&text, MAX_VALUE_CHARS)
}

fn fields(body: &str) -> Map<String, Json> {
    serde_json::from_str(body).unwrap_or_default()
}
