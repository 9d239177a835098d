//! Putting one entry into a JSON or TOML text and leaving the rest as it is.

use serde_json::{Map, Value};
use thiserror::Error;
use toml_edit::{DocumentMut, Item, Table};

/// Why a file was left as it is.
#[derive(Debug, Error)]
pub enum EditError {
    /// It is not what it should be, or has comments that writing it back would lose.
    #[error("it cannot be changed without losing something: {0}; add the entry by hand")]
    Unreadable(String),
    /// An entry of that name says something else.
    #[error("`{name}` is there already and says something else; --force replaces it")]
    Taken {
        /// The entry's name.
        name: String,
    },
}

fn unreadable(why: impl ToString) -> EditError {
    EditError::Unreadable(why.to_string())
}

pub(super) fn json(
    text: &str,
    servers: &str,
    name: &str,
    entry: &Map<String, Value>,
    force: bool,
) -> Result<String, EditError> {
    let mut whole = match text.trim() {
        "" => Map::new(),
        text => serde_json::from_str(text).map_err(unreadable)?,
    };
    let table = whole
        .entry(servers)
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()
        .ok_or_else(|| unreadable(format!("`{servers}` is no object")))?;
    match table.get(name) {
        Some(Value::Object(there)) if there == entry => return Ok(text.to_owned()),
        Some(_) if !force => {
            return Err(EditError::Taken {
                name: name.to_owned(),
            });
        }
        _ => {}
    }
    table.insert(name.to_owned(), Value::Object(entry.clone()));
    let text = serde_json::to_string_pretty(&whole).map_err(unreadable)?;
    Ok(format!("{text}\n"))
}

pub(super) fn toml(
    text: &str,
    servers: &str,
    name: &str,
    entry: &Map<String, Value>,
    force: bool,
) -> Result<String, EditError> {
    let mut whole: DocumentMut = text.parse().map_err(unreadable)?;
    let wanted = table_of(entry);
    let mut implicit = Table::new();
    implicit.set_implicit(true);
    let table = whole
        .entry(servers)
        .or_insert(Item::Table(implicit))
        .as_table_like_mut()
        .ok_or_else(|| unreadable(format!("`{servers}` is no table")))?;
    match table.get(name) {
        Some(there) if says_the_same(there, &wanted) => return Ok(text.to_owned()),
        Some(_) if !force => {
            return Err(EditError::Taken {
                name: name.to_owned(),
            });
        }
        _ => {}
    }
    table.insert(name, Item::Table(wanted));
    Ok(whole.to_string())
}

fn table_of(entry: &Map<String, Value>) -> Table {
    let mut table = Table::new();
    for (key, value) in entry {
        let value = match value {
            Value::Number(number) => number.as_i64().unwrap_or_default().into(),
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

/// Whether two tables say the same, however they are written.
fn says_the_same(there: &Item, wanted: &Table) -> bool {
    let plain = |text: String| text.parse::<toml::Table>().ok();
    let there = there.clone().into_table().map(|table| table.to_string());
    there.is_ok_and(|there| plain(there).is_some_and(|there| Some(there) == plain(wanted.to_string())))
}
