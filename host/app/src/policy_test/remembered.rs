//! Memory of a policy before a case.

use tollgate_core::clock;
use tollgate_sdk::policy::MemoryChange;
use toml::de::{DeTable, DeValue};

use super::cases;
use super::fields::{self, Fields};

/// Changes that create the entries of the table `memory`, by key. Each entry is a number, a text, or a table with both.
pub(super) fn memory(fields: &Fields<'_, '_>, now: i64) -> Vec<(String, MemoryChange)> {
    let mut changes = Vec::new();
    let Some(entry) = fields.entry("memory") else {
        return changes;
    };
    let DeValue::Table(table) = entry.get_ref() else {
        fields.sheet().report(
            entry.span().start,
            "memory must be a table of numbers, strings and tables".to_owned(),
        );
        return changes;
    };
    for (key, value) in table {
        let at = value.span().start;
        let name = key.get_ref().as_ref();
        for change in changes_of(fields, name, at, value.get_ref(), now) {
            match change.check(name) {
                Ok(()) => changes.push((name.to_owned(), change)),
                Err(err) => fields.sheet().report(at, format!("memory.{name}: {err}")),
            }
        }
    }
    changes
}

fn changes_of(
    fields: &Fields<'_, '_>,
    name: &str,
    at: usize,
    value: &DeValue<'_>,
    now: i64,
) -> Vec<MemoryChange> {
    let until_ms = None;
    match value {
        DeValue::String(text) => vec![MemoryChange::Put {
            text: text.clone().into_owned(),
            until_ms,
        }],
        DeValue::Integer(_) => vec![MemoryChange::Add {
            amount: fields::json(value).as_i64().unwrap_or_default(),
            until_ms,
        }],
        DeValue::Table(table) => of_table(fields, name, at, table, now),
        _ => {
            let message = format!("memory.{name} must be a number, a string or a table");
            fields.sheet().report(at, message);
            Vec::new()
        }
    }
}

fn of_table(
    fields: &Fields<'_, '_>,
    name: &str,
    at: usize,
    table: &DeTable<'_>,
    now: i64,
) -> Vec<MemoryChange> {
    let name = format!("memory.{name}");
    let entry = Fields::new(fields.sheet(), &name, at, table);
    entry.only(&["number", "text", "until"]);
    if !entry.has("number") && !entry.has("text") {
        entry.report("requires `number` or `text`");
    }
    let wanted = "a time, or a length of time after the call, such as \"10m\"";
    let until_ms = entry.read("until", wanted, |value| {
        let value = fields::json(value);
        let text = value.as_str()?;
        let span = clock::span_ms(text).map(|span| now.saturating_add(span));
        span.or_else(|| cases::moment_of(text))
    });
    let number = entry.read("number", "a whole number", |value| fields::json(value).as_i64());
    let text = entry.text("text");
    let put = text.map(|text| MemoryChange::Put { text, until_ms });
    let add = number.map(|amount| MemoryChange::Add { amount, until_ms });
    put.into_iter().chain(add).collect()
}
