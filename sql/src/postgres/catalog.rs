//! Tables of a component, with the kinds of their columns, as its migrations make them.

use std::collections::{BTreeMap, BTreeSet};

use super::Kind;
use super::difference::{Difference, Result};
use super::printer::Form;
use super::scope::Out;

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// In lower case.
    pub name: String,
    pub kind: Kind,
    /// True if it may hold NULL.
    pub nullable: bool,
    /// True if it numbers the rows by itself.
    pub numbered: bool,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relation {
    pub fields: Vec<Field>,
    /// Columns of the primary key, in lower case.
    pub key: Vec<String>,
    /// Columns of each key that ON CONFLICT can name.
    pub(super) unique: Vec<Vec<String>>,
    /// Columns that constraints need.
    pub(super) bound: BTreeSet<String>,
    /// Tables that foreign keys refer to, with the columns there.
    pub(super) refers: Vec<(String, Vec<String>)>,
    /// Which table it is, whatever it is called.
    pub(super) number: usize,
    pub(super) append_only: bool,
    /// Constraints with an index that were made, for their names.
    pub(super) named: usize,
}

/// An index that was made by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) table: usize,
    pub(super) unique: bool,
    pub(super) partial: bool,
    pub(super) columns: Vec<String>,
    /// Columns of its condition.
    pub(super) bound: BTreeSet<String>,
}

/// Tables of one component in PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    schema: String,
    pub(super) tables: BTreeMap<String, Relation>,
    pub(super) indexes: BTreeMap<String, Index>,
    pub(super) made: usize,
}

impl Relation {
    pub(super) fn place(&self, column: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == column)
    }

    pub(super) fn field(&self, column: &str) -> Result<&Field> {
        let place = self.place(column);
        place
            .map(|place| &self.fields[place])
            .ok_or_else(|| Difference::NoColumn(column.to_owned()))
    }

    pub(super) fn columns(&self) -> Vec<Out> {
        let columns = self.fields.iter().map(|field| Out {
            name: Some(field.name.clone()),
            sql: field.name.clone(),
            form: Form::Of(field.kind),
            nullable: field.nullable,
        });
        columns.collect()
    }
}

impl Catalog {
    /// Without tables yet. The schema is the host's choice: letters, digits and `_`.
    #[must_use]
    pub fn new(schema: &str) -> Catalog {
        Catalog {
            schema: schema.replace('"', "\"\""),
            tables: BTreeMap::new(),
            indexes: BTreeMap::new(),
            made: 0,
        }
    }

    /// The tables by name in lower case.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &Relation)> {
        self.tables.iter().map(|(name, relation)| (&**name, relation))
    }

    /// A table or index with its schema, in quotes.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("\"{}\".\"{name}\"", self.schema)
    }

    pub(super) fn relation(&self, name: &str) -> Result<&Relation> {
        self.tables
            .get(name)
            .ok_or_else(|| Difference::NoTable(name.to_owned()))
    }

    /// True if a key of a table has exactly these columns.
    pub(super) fn is_key(&self, table: &str, columns: &[String]) -> bool {
        let wanted: BTreeSet<&String> = columns.iter().collect();
        let same =
            |key: &Vec<String>| key.len() == wanted.len() && key.iter().all(|column| wanted.contains(column));
        let Some(relation) = self.tables.get(table) else {
            return false;
        };
        let indexes = self.indexes.values();
        let mut whole =
            indexes.filter(|index| index.unique && !index.partial && index.table == relation.number);
        relation.unique.iter().any(same) || whole.any(|index| same(&index.columns))
    }
}
