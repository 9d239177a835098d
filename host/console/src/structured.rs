//! Structured content of any tool as parts of a page: facts, tables and trees. All text in it is untrusted.

use maud::{Markup, html};
use serde_json::{Map, Value};
use tollgate_sdk::Timestamp;

use crate::envelope::bar;
use crate::layout::{self, pill};
use crate::visible;

/// Entries of one list that are shown.
const MAX_ENTRIES: usize = 500;
/// Columns of a table.
const MAX_COLUMNS: usize = 8;
/// Number of entries from which columns are derived.
const SAMPLED_ENTRIES: usize = 50;
/// Longest text of a cell and of a fact, in characters.
const MAX_CELL_CHARS: usize = 200;
const MAX_FACT_CHARS: usize = 20_000;
/// Deepest nesting that is not shown as JSON.
const MAX_DEPTH: usize = 3;
/// Members that hold a status, which are shown first.
const STATUS_FIELDS: [&str; 3] = ["status", "phase", "state"];
/// Members that name an entry.
const TITLE_FIELDS: [&str; 4] = ["title", "name", "label", "summary"];

/// Entry of a list or a tree, with the address of its page.
pub(crate) struct Entry<'a> {
    /// The entry.
    pub(crate) value: &'a Value,
    /// Key of the entry's position in a tree.
    pub(crate) key: Option<String>,
    /// Address of its page.
    pub(crate) href: Option<String>,
}

impl<'a> Entry<'a> {
    /// An entry without a page of its own.
    pub(crate) fn plain(value: &'a Value) -> Entry<'a> {
        Entry {
            value,
            key: None,
            href: None,
        }
    }
}

/// Title of the subject of an object, if it has one.
pub(crate) fn title_of(object: &Map<String, Value>) -> Option<&str> {
    let named = |object: &'_ Map<String, Value>, name: &str| object.contains_key(name);
    let own = TITLE_FIELDS.into_iter().find(|name| named(object, name));
    let found = own.and_then(|name| object.get(name)).and_then(Value::as_str);
    found.map(str::trim).filter(|title| !title.is_empty())
}

/// Status as a pill.
pub(crate) fn state(text: &str) -> Markup {
    let word = text.to_lowercase();
    let is = |words: &[&str]| words.iter().any(|known| word.contains(known));
    let kind = match () {
        () if is(&["fail", "reject", "block", "abandon", "error", "cancel"]) => "bad",
        () if is(&["wait", "await", "pause", "review", "stale", "forced"]) => "warn",
        () if is(&[
            "complete", "done", "closed", "pass", "approved", "accepted", "merged",
        ]) =>
        {
            "good"
        }
        () if is(&["execut", "progress", "active", "running", "started", "ready"]) => "info",
        () => "plain",
    };
    pill(kind, &visible::short(&text.replace('_', " "), 40))
}

/// Entries as a table. The columns are the members of the entries.
pub(crate) fn table(entries: &[Entry<'_>], about: &str) -> Markup {
    let columns = columns(entries);
    html! {
        div.scroll { table.figures {
            caption.sr { (visible::short(about, 80)) }
            thead { tr { @for name in &columns { th scope="col" { (words(name)) } } } }
            tbody { @for entry in entries.iter().take(MAX_ENTRIES) { tr {
                @for (at, name) in columns.iter().enumerate() {
                    @let value = entry.value.get(*name).unwrap_or(&Value::Null);
                    @if at == 0 { th scope="row" { (linked(entry.href.as_deref(), &cell(name, value))) } }
                    @else if value.is_number() { td.ms { (cell(name, value)) } }
                    @else { td { (cell(name, value)) } }
                }
            } } }
        } }
        (more(entries.len()))
    }
}

/// Entries as a tree. The separators in an entry's key give its depth. `group` is a member that all entries share.
pub(crate) fn tree(entries: &[Entry<'_>], group: Option<&str>) -> Markup {
    html! {
        ul.tree { @for entry in entries.iter().take(MAX_ENTRIES) {
            @let depth = entry.key.as_deref().map_or(0, depth);
            li class=(format!("depth-{}", depth.min(6))) { (leaf(entry, group)) }
        } }
        (more(entries.len()))
    }
}

fn leaf(entry: &Entry<'_>, group: Option<&str>) -> Markup {
    let none = Map::new();
    let object = entry.value.as_object().unwrap_or(&none);
    let title = title_of(object).map_or_else(
        || entry.key.clone().unwrap_or_else(|| "entry".to_owned()),
        str::to_owned,
    );
    let told = |name: &str| STATUS_FIELDS.contains(&name) || TITLE_FIELDS.contains(&name);
    // `M01/S01` already contains `S01`.
    let is_in_key = |text: &str| entry.key.as_ref().is_some_and(|key| key.ends_with(text));
    let notes = object.iter().filter(|(name, value)| {
        let text = scalar(value);
        let is_empty = text.is_empty() || text == "no" || text == "0";
        !told(name) && group != Some(name.as_str()) && !is_empty && !is_in_key(&text)
    });
    html! {
        div.leaf {
            @if let Some(key) = &entry.key { code { (visible::short(key, 60)) } }
            (linked(entry.href.as_deref(), &html! { (visible::short(&title, MAX_CELL_CHARS)) }))
            @for name in STATUS_FIELDS { @if let Some(text) = object.get(name).and_then(Value::as_str) { (state(text)) } }
        }
        div.meta {
            @for (at, (name, value)) in notes.take(6).enumerate() {
                @if at > 0 { " · " }
                (words(name)) " " (visible::short(&scalar(value), 80))
            }
        }
    }
}

/// Members of an object: short ones as facts, lists of objects as tables below. The members in `shown` are shown
/// elsewhere.
pub(crate) fn facts(object: &Map<String, Value>, shown: &[&str]) -> Markup {
    let rest = object.iter().filter(|(name, value)| {
        !shown.contains(&name.as_str())
            && !name.starts_with("next_")
            && *name != "has_more"
            && !is_empty(value)
    });
    let (plain, parts): (Vec<_>, Vec<_>) = rest.partition(|(_, value)| is_plain(value));
    html! {
        @if !plain.is_empty() {
            section.card { dl.facts { @for (name, value) in plain {
                dt { (words(name)) } dd { (fact(name, value)) }
            } } }
        }
        @for (name, value) in parts { (part(name, value, 0)) }
    }
}

/// A member that is an object, or a list of them.
fn part(name: &str, value: &Value, depth: usize) -> Markup {
    let id = format!("part-{depth}-{name}");
    html! {
        section.card aria-label=(words(name)) {
            header { h2 id=(id) { (words(name)) } @if let Value::Array(all) = value { span.count { (all.len()) } } }
            (inner(value, depth, name))
        }
    }
}

fn inner(value: &Value, depth: usize, name: &str) -> Markup {
    match value {
        Value::Object(members) if depth < MAX_DEPTH => html! {
            @let used = used(members);
            (bars(&used))
            dl.facts { @for (name, value) in members.iter().filter(|(name, value)| !is_empty(value) && (used.is_empty() || !is_use(name))) {
                dt { (words(name)) }
                dd { @if is_plain(value) { (fact(name, value)) } @else { (inner(value, depth + 1, name)) } }
            } }
        },
        Value::Array(all) if all.iter().all(Value::is_object) => {
            let entries: Vec<Entry<'_>> = all.iter().map(Entry::plain).collect();
            table(&entries, name)
        }
        other => html! { pre { (visible::lines(&cut(&pretty(other), MAX_FACT_CHARS))) } },
    }
}

/// Usage of limits: a member `limits` with `max_mutations`, beside `counters` with `mutation_count`.
fn used(members: &Map<String, Value>) -> Vec<(&str, i64, i64)> {
    let counted = |name: &str| {
        let name = format!("{}_count", name.strip_suffix('s')?);
        members.get("counters")?.get(&name)?.as_i64()
    };
    let limits = members.get("limits").and_then(Value::as_object);
    let used = limits.into_iter().flatten().filter_map(|(limit, most)| {
        let name = limit.strip_prefix("max_")?;
        Some((name, counted(name)?, most.as_i64()?))
    });
    used.collect()
}

/// Returns whether bars show a member better.
fn is_use(name: &str) -> bool {
    matches!(name, "limits" | "counters" | "left" | "used_percent")
}

fn bars(used: &[(&str, i64, i64)]) -> Markup {
    html! {
        @if !used.is_empty() {
            div.bars { @for (name, used, most) in used { (bar(&words(name), *used, Some(*most))) } }
        }
    }
}

/// Members of the entries that become columns: the title, then states, then the others in their order.
fn columns<'a>(entries: &[Entry<'a>]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for entry in entries.iter().take(SAMPLED_ENTRIES) {
        for (name, value) in entry.value.as_object().into_iter().flatten() {
            if is_plain(value) && !is_empty(value) && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    // The same id under a second name adds nothing.
    let same = |a: &str, b: &str| {
        entries
            .iter()
            .all(|entry| entry.value.get(a) == entry.value.get(b))
    };
    let distinct: Vec<&str> = names
        .iter()
        .enumerate()
        .filter(|(at, name)| !names.iter().take(*at).any(|before| same(before, name)))
        .map(|(_, name)| *name)
        .collect();
    let rank = |name: &&str| match *name {
        name if TITLE_FIELDS.contains(&name) => 0,
        name if STATUS_FIELDS.contains(&name) => 1,
        _ => 2,
    };
    let mut sorted = distinct;
    sorted.sort_by_key(rank);
    sorted.truncate(MAX_COLUMNS);
    sorted
}

fn cell(name: &str, value: &Value) -> Markup {
    match value {
        Value::String(text) if STATUS_FIELDS.contains(&name) => state(text),
        Value::String(text) if Timestamp::parse(text).is_some() => layout::date(&visible::line(text)),
        other => html! { (visible::short(&scalar(other), MAX_CELL_CHARS)) },
    }
}

fn fact(name: &str, value: &Value) -> Markup {
    match value {
        Value::String(text) if text.contains('\n') => {
            html! { pre { (visible::lines(&cut(text, MAX_FACT_CHARS))) } }
        }
        Value::String(text) if !STATUS_FIELDS.contains(&name) && Timestamp::parse(text).is_none() => {
            html! { (visible::line(&cut(text, MAX_FACT_CHARS))) }
        }
        Value::Array(all) if all.len() > 1 => html! {
            ul.plain.tight { @for one in all.iter().take(MAX_ENTRIES) { li { (visible::short(&scalar(one), 2_000)) } } }
        },
        other => cell(name, other),
    }
}

fn linked(href: Option<&str>, text: &Markup) -> Markup {
    html! { @match href { Some(href) => a href=(href) { (text) }, None => (text) } }
}

fn more(all: usize) -> Markup {
    html! { @if all > MAX_ENTRIES { p.hint { "Only the first " (MAX_ENTRIES) " of " (layout::number(i64::try_from(all).unwrap_or(i64::MAX))) " are shown." } } }
}

/// Depth of a key such as `M01/S01/T01` or `s:0.s:1`.
fn depth(key: &str) -> usize {
    key.matches(['/', '.']).count()
}

/// Name of a member as words.
fn words(name: &str) -> String {
    let spaced = visible::short(&name.replace('_', " "), 60);
    let mut letters = spaced.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A plain value as text.
fn scalar(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => layout::number(whole),
            (None, Some(number)) => format!("{number:.1}"),
            (None, None) => number.to_string(),
        },
        Value::Array(all) => all.iter().map(scalar).collect::<Vec<String>>().join(", "),
        Value::Object(_) => value.to_string(),
    }
}

/// Returns whether a value fits into a cell: neither an object nor a list with one.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(all) => all.iter().all(|one| !one.is_object() && !one.is_array()),
        _ => true,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(all) => all.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entries(values: &[Value]) -> Vec<Entry<'_>> {
        values.iter().map(Entry::plain).collect()
    }

    #[test]
    fn columns_begin_with_the_title_and_leave_out_what_is_said_twice() {
        let jobs = [
            json!({"id": "J1", "job_id": "J1", "updated_at": "2026-03-01T00:00:00Z", "status": "FAILED", "title": "Ship"}),
            json!({"id": "J2", "job_id": "J2", "status": "READY", "title": "Fix", "plan": {"deep": 1}}),
        ];
        assert_eq!(columns(&entries(&jobs)), ["title", "status", "id", "updated_at"]);
        let page = table(&entries(&jobs), "Jobs").into_string();
        assert!(
            page.contains("class=\"pill bad\">FAILED") && page.contains("Updated at"),
            "{page}"
        );
    }

    #[test]
    fn trees_are_indented_by_their_keys_and_hostile_text_is_text() {
        let value = json!({"unit": "M01/S01", "title": "<img src=x>\u{202e}", "status": "in_progress", "owner": "ada"});
        let entry = Entry {
            value: &value,
            key: Some("M01/S01".to_owned()),
            href: Some("/console/views/gsd_show?unit=M01%2FS01".to_owned()),
        };
        let page = tree(&[entry], None).into_string();
        for part in ["depth-1", "&lt;img src=x&gt;⟨U+202E⟩", "in progress", "Owner ada"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("<img"), "{page}");
    }

    #[test]
    fn facts_hold_everything_that_is_not_shown_elsewhere() {
        let reply = json!({"goal": "a\nb", "tags": ["x", "y"], "plan": {"why": "because", "list": [{"a": 1}]}, "steps": [1], "next_cursor": 3});
        let page = facts(reply.as_object().unwrap(), &["steps"]).into_string();
        assert!(
            page.contains("<pre>a\nb</pre>") && page.contains("because"),
            "{page}"
        );
        assert!(!page.contains("Steps") && !page.contains("Next cursor"), "{page}");
    }
}
