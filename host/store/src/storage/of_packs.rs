//! Values that the host reads from tables of packs.

use super::engine::sql;
use super::error::StoreResult;
use super::handles::Components;

/// Location of one text in tables of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOf {
    /// Pack that owns the tables.
    pub pack: String,
    /// Columns to read in sequence: the text in each is the key for the next.
    pub columns: Vec<ColumnOf>,
    /// Spellings of the first key. The first one that has a row counts.
    pub spellings: Vec<String>,
}

/// Column of a pack's table, and the key column. The creator has checked that the names need no quotes and that the
/// table belongs to the pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnOf {
    /// Table of the pack.
    pub table: String,
    /// Column that is compared with the key.
    pub key: String,
    /// Column that holds the text.
    pub column: String,
}

/// Result of looking up a text in tables of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextFound {
    /// No row has the key.
    NoRow,
    /// The row has no text.
    Nothing,
    /// The text.
    Text(String),
}

impl TextFound {
    /// Text, if there is one.
    pub fn text(self) -> Option<String> {
        match self {
            TextFound::Text(text) => Some(text),
            TextFound::NoRow | TextFound::Nothing => None,
        }
    }
}

impl Components<'_> {
    /// Looks up the text at a location.
    pub fn text_at(self, place: &TextOf) -> StoreResult<TextFound> {
        let mut keys = place.spellings.clone();
        let mut found = TextFound::NoRow;
        for column in &place.columns {
            found = self.text_in(&place.pack, column, &keys)?;
            match &found {
                TextFound::Text(text) => keys = vec![text.clone()],
                TextFound::NoRow | TextFound::Nothing => break,
            }
        }
        Ok(found)
    }

    fn text_in(self, pack: &str, at: &ColumnOf, keys: &[String]) -> StoreResult<TextFound> {
        let ColumnOf { table, key, column } = at;
        let table = self.0.engine.table_of(pack, table);
        for value in keys {
            let found: Option<Option<String>> = self.0.engine.maybe(
                &format!("SELECT {column} FROM {table} WHERE {key} = ?1 LIMIT 1"),
                sql![value],
                |row| row.get(0),
            )?;
            match found {
                None => {}
                Some(None) => return Ok(TextFound::Nothing),
                Some(Some(text)) => return Ok(TextFound::Text(text)),
            }
        }
        Ok(TextFound::NoRow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{envelope, ledger};
    use super::*;

    #[test]
    fn a_text_is_found_by_any_spelling_and_over_several_rows() {
        let (_place, session) = ledger("o");
        session.begin_write().unwrap();
        for (id, parent, workspace) in [("env_p", None, Some("shop")), ("env_q", Some("env_p"), None)] {
            let mut one = envelope(id, None);
            one.parent = parent.map(str::to_owned);
            one.workspace = workspace.map(str::to_owned);
            session.envelopes().open(&one).unwrap();
        }
        let column = |column: &str| ColumnOf {
            table: "core_envelopes".to_owned(),
            key: "id".to_owned(),
            column: column.to_owned(),
        };
        let found = |columns: &[&str], spellings: &[&str]| {
            let place = TextOf {
                pack: "core".to_owned(),
                columns: columns.iter().map(|name| column(name)).collect(),
                spellings: spellings.iter().map(|&text| text.to_owned()).collect(),
            };
            session.components().text_at(&place).unwrap()
        };
        let shop = TextFound::Text("shop".to_owned());
        assert_eq!(found(&["workspace"], &["ENV_P", "env_p", "env_q"]), shop);
        assert_eq!(found(&["workspace"], &["ENV_P"]), TextFound::NoRow);
        assert_eq!(found(&["workspace"], &["env_q"]), TextFound::Nothing);
        assert_eq!(found(&["parent", "workspace"], &["env_q"]), shop);
        assert_eq!(found(&["parent", "workspace"], &["env_p"]), TextFound::Nothing);
        assert_eq!(found(&["parent", "workspace"], &["env_x"]), TextFound::NoRow);
        session.commit().unwrap();
    }
}
