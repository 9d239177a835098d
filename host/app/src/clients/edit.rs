//! Insertion and removal of one entry in a text, leaving the rest unchanged.
//!
//! Every edit is verified: a text whose meaning would change otherwise is not written.

use serde_json::{Map, Value};
use thiserror::Error;

use super::row::{Format, Row, Variable};
use super::{ENTRY_NAME, TOKEN_INPUT, json, toml, yaml};

/// Reason why a file was left unchanged.
#[derive(Debug, Error)]
pub enum EditError {
    /// The file is not in the client's format, or an edit would lose something.
    #[error("the file cannot be changed without losing something: {0}; add the entry by hand")]
    Unreadable(String),
    /// An entry of that name has different content.
    #[error("`{name}` already exists and differs; --force replaces it")]
    Taken {
        /// Name of the entry.
        name: String,
    },
    /// The client does not support this.
    #[error("{0}")]
    Unsupported(String),
}

pub(super) fn unreadable(why: impl ToString) -> EditError {
    EditError::Unreadable(why.to_string())
}

/// Byte order mark, which some editors write at the start of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Text with the entry.
pub(super) fn add(
    row: &Row,
    text: &str,
    entry: &Map<String, Value>,
    force: bool,
) -> Result<String, EditError> {
    let (mark, text) = split(text);
    match found(row, text).map_err(unreadable)? {
        Some(there) if has_all(&there, entry) => return Ok(format!("{mark}{text}")),
        Some(_) if !force => {
            return Err(EditError::Taken {
                name: ENTRY_NAME.to_owned(),
            });
        }
        _ => keep_others(row, text)?,
    }
    let added = match row.format {
        Format::Json => json::set(text, &[row.servers], ENTRY_NAME, &Value::Object(entry.clone()))
            .and_then(|added| ask(row, &added, entry)),
        Format::Toml => toml::set(text, row.servers, ENTRY_NAME, entry),
        Format::Yaml => yaml::set(text, row.servers, ENTRY_NAME, entry),
        Format::OwnYaml => Ok(yaml::own_file(row.servers, ENTRY_NAME, &named(entry))),
    };
    let added = added.map_err(unreadable)?;
    proven(row, text, &added, Some(entry))?;
    Ok(format!("{mark}{added}"))
}

/// Text without the entry. `None` if there is no entry. Empty if the text had nothing else.
pub(super) fn remove(row: &Row, text: &str) -> Result<Option<String>, EditError> {
    let (mark, text) = split(text);
    if found(row, text).map_err(unreadable)?.is_none() {
        return Ok(None);
    }
    keep_others(row, text)?;
    let left = match row.format {
        Format::Json => json::cut(text, &[row.servers], |name, _| name == ENTRY_NAME).and_then(|left| {
            let Some(left) = left else { return Ok(None) };
            let is_asked = |_: &str, input: &Value| input["id"] == TOKEN_INPUT;
            let without = match row.http.token {
                Variable::Asked => json::cut(&left, &["inputs"], is_asked)?,
                _ => None,
            };
            Ok(Some(without.unwrap_or(left)))
        }),
        Format::Toml => toml::cut(text, row.servers, ENTRY_NAME),
        Format::Yaml => yaml::cut(text, row.servers, ENTRY_NAME),
        Format::OwnYaml => Ok(Some(String::new())),
    };
    let Some(left) = left.map_err(unreadable)? else {
        return Ok(None);
    };
    if row.format != Format::OwnYaml {
        proven(row, text, &left, None)?;
    }
    let is_bare = row.format == Format::Json && left.split_whitespace().collect::<String>() == "{}";
    Ok(Some(if is_bare && left.trim().contains('\n') {
        String::new()
    } else {
        format!("{mark}{left}")
    }))
}

/// Entry in a text.
pub(super) fn found(row: &Row, text: &str) -> Result<Option<Value>, String> {
    let (_, text) = split(text);
    let whole = match row.format {
        Format::Json => json::value(text)?,
        Format::Toml => toml::value(text)?,
        Format::Yaml => return yaml::found(text, row.servers, ENTRY_NAME),
        Format::OwnYaml => return yaml::of_own_file(text, row.servers),
    };
    if !whole.is_null() && !whole.is_object() {
        return Err("the file is not an object".to_owned());
    }
    match whole.get(row.servers) {
        None | Some(Value::Object(_)) => Ok(whole
            .get(row.servers)
            .and_then(|servers| servers.get(ENTRY_NAME))
            .cloned()),
        Some(_) => Err(format!("`{}` is not an object", row.servers)),
    }
}

/// Refuses a file with foreign content, if the entry's file is written and removed as a whole.
fn keep_others(row: &Row, text: &str) -> Result<(), EditError> {
    if row.format == Format::OwnYaml && !yaml::is_own_file(text, row.servers) {
        return Err(unreadable(
            "the file has comments or keys that Tollgate did not write",
        ));
    }
    Ok(())
}

fn split(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len_utf8()
    } else {
        0
    })
}

/// Returns whether an entry has all required fields. Clients add their own fields.
fn has_all(there: &Value, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(key, value)| there.get(key) == Some(value))
}

fn named(entry: &Map<String, Value>) -> Map<String, Value> {
    let mut named = Map::from_iter([("name".to_owned(), Value::from(ENTRY_NAME))]);
    named.extend(entry.clone());
    named
}

/// Makes VS Code ask for the input that the entry refers to.
fn ask(row: &Row, text: &str, entry: &Map<String, Value>) -> Result<String, String> {
    let refers = Value::Object(entry.clone())
        .to_string()
        .contains(&format!("${{input:{TOKEN_INPUT}}}"));
    if !refers || !matches!(row.http.token, Variable::Asked) {
        return Ok(text.to_owned());
    }
    let inputs = &json::value(text)?["inputs"];
    if inputs
        .as_array()
        .is_some_and(|inputs| inputs.iter().any(|input| input["id"] == TOKEN_INPUT))
    {
        return Ok(text.to_owned());
    }
    json::set(text, &["inputs"], "", &input())
}

fn input() -> Value {
    serde_json::json!({
        "type": "promptString", "id": TOKEN_INPUT, "description": "Token of the Tollgate server", "password": true,
    })
}

/// Checks that a new text differs from the old one only in the entry.
fn proven(row: &Row, before: &str, after: &str, entry: Option<&Map<String, Value>>) -> Result<(), EditError> {
    let is_there = found(row, after).map_err(unreadable)?;
    let is_right = match (entry, &is_there) {
        (Some(entry), Some(there)) => has_all(there, entry),
        (None, None) => true,
        _ => false,
    };
    let rest = |text: &str| -> Result<Value, String> {
        let mut whole = match row.format {
            Format::Json => json::value(text)?,
            Format::Toml => toml::value(text)?,
            // Lines outside the entry are copied unchanged.
            Format::Yaml | Format::OwnYaml => return Ok(Value::Null),
        };
        let Some(map) = whole.as_object_mut() else {
            return Ok(Value::Object(Map::new()));
        };
        if let Some(servers) = map.get_mut(row.servers).and_then(Value::as_object_mut) {
            servers.remove(ENTRY_NAME);
        }
        if let Some(inputs) = map.get_mut("inputs").and_then(Value::as_array_mut) {
            inputs.retain(|input| input["id"] != TOKEN_INPUT);
        }
        map.retain(|_, value| {
            !value.as_object().is_some_and(Map::is_empty) && !value.as_array().is_some_and(Vec::is_empty)
        });
        Ok(whole)
    };
    if is_right && rest(before).map_err(unreadable)? == rest(after).map_err(unreadable)? {
        return Ok(());
    }
    Err(unreadable(format!(
        "the edit would not change exactly the entry `{ENTRY_NAME}`"
    )))
}
