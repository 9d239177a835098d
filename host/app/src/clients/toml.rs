//! Edits of TOML that leave all other bytes unchanged.
//!
//! A table is appended as text, below all comments, and cut out again line by line. Where that would change the meaning
//! (inline tables, dotted keys), `toml_edit` makes the change.

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

/// Value of a text.
pub(super) fn value(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|err| err.message().to_owned())
}

/// Sets a table of a table.
pub(super) fn set(
    text: &str,
    servers: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|err: toml_edit::TomlError| err.message().to_owned())?;
    let is_there = document.get(servers).and_then(|table| table.get(name)).is_some();
    if !is_there {
        let appended = append(text, servers, name, entry);
        if value(&appended).is_ok_and(|value| value[servers][name] == Value::Object(entry.clone())) {
            return Ok(appended);
        }
    }
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let table = document
        .entry(servers)
        .or_insert(Item::Table(implicit))
        .as_table_like_mut()
        .ok_or_else(|| format!("`{servers}` is not a table"))?;
    let mut wanted = table_of(entry);
    // Comments above the old table stay above the new one.
    if let Some(old) = table.get(name).and_then(Item::as_table) {
        *wanted.decor_mut() = old.decor().clone();
        wanted.set_position(old.position());
    }
    table.insert(name, Item::Table(wanted));
    Ok(document.to_string())
}

/// Removes a table from a table. `None` if there is none.
pub(super) fn cut(text: &str, servers: &str, name: &str) -> Result<Option<String>, String> {
    let mut wanted = value(text)?;
    let Some(table) = wanted.get_mut(servers).and_then(Value::as_object_mut) else {
        return Ok(None);
    };
    if table.remove(name).is_none() {
        return Ok(None);
    }
    let is_empty = table.is_empty();
    let mut without = wanted.clone();
    if is_empty && let Some(whole) = without.as_object_mut() {
        whole.remove(servers);
    }
    let left = cut_lines(text, servers, name);
    if value(&left).is_ok_and(|left| left == wanted || left == without) {
        return Ok(Some(left));
    }
    let mut document: DocumentMut = text
        .parse()
        .map_err(|err: toml_edit::TomlError| err.message().to_owned())?;
    if let Some(table) = document.get_mut(servers).and_then(Item::as_table_like_mut) {
        table.remove(name);
    }
    let left = document.to_string();
    match value(&left) {
        Ok(value) if value == wanted || value == without => Ok(Some(left)),
        _ => Err(format!(
            "`{servers}.{name}` cannot be removed without changing other keys"
        )),
    }
}

fn append(text: &str, servers: &str, name: &str, entry: &Map<String, Value>) -> String {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines = vec![format!("[{servers}.{name}]")];
    lines.extend(table_of(entry).to_string().lines().map(str::to_owned));
    let table: String = lines.iter().map(|line| format!("{line}{line_end}")).collect();
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => line_end,
        _ => &line_end.repeat(2),
    };
    format!("{text}{gap}{table}")
}

/// Text without the lines of a table and its subtables, and without the blank line before it.
fn cut_lines(text: &str, servers: &str, name: &str) -> String {
    let mut left: Vec<&str> = Vec::new();
    // Comments and blank lines after the table belong to the next one.
    let mut pending: Vec<&str> = Vec::new();
    let mut is_inside = false;
    let mut is_last = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim();
        if bare.starts_with('[') {
            let was_inside = is_inside;
            is_inside = is_header_of(bare, servers, name);
            if is_inside && !was_inside && left.last().is_some_and(|line| line.trim().is_empty()) {
                left.pop();
            }
            if !is_inside {
                left.append(&mut pending);
            }
            pending.clear();
        }
        match is_inside {
            false => left.push(line),
            true if bare.is_empty() || bare.starts_with('#') => pending.push(line),
            true => pending.clear(),
        }
        is_last = is_inside;
    }
    if is_last {
        left.append(&mut pending);
    }
    left.concat()
}

/// Returns whether a line is the header of `[servers.name]` or of a table below it.
fn is_header_of(line: &str, servers: &str, name: &str) -> bool {
    let header = line.trim_start_matches('[').split(']').next().unwrap_or_default();
    let parts: Vec<&str> = header
        .split('.')
        .map(|part| part.trim().trim_matches(['"', '\'']))
        .collect();
    parts.len() >= 2 && parts[0] == servers && parts[1] == name
}

fn table_of(entry: &Map<String, Value>) -> Table {
    let mut table = Table::new();
    for (key, value) in entry {
        let value = match value {
            Value::Number(number) => number.as_i64().unwrap_or_default().into(),
            Value::Bool(flag) => (*flag).into(),
            Value::Array(items) => items
                .iter()
                .filter_map(Value::as_str)
                .collect::<toml_edit::Value>(),
            other => other.as_str().unwrap_or_default().into(),
        };
        table.insert(key, Item::Value(value));
    }
    table
}
