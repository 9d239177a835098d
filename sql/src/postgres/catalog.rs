//! Tables of a component, with the kinds of their columns, as its migrations create them.

use std::collections::{BTreeMap, BTreeSet};

use super::Kind;
use super::difference::{Difference, Result};
use super::printer::Form;
use super::scope::Out;

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name in lower case.
    pub name: String,
    pub kind: Kind,
    /// True if it may be NULL.
    pub nullable: bool,
    /// True if it numbers the rows automatically.
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
    /// Columns that constraints depend on.
    pub(super) bound: BTreeSet<String>,
    /// Tables that foreign keys refer to, with the referenced columns.
    pub(super) refers: Vec<(String, Vec<String>)>,
    /// Number of the table, which stays the same when it is renamed.
    pub(super) number: usize,
    pub(super) append_only: bool,
    /// Number of constraints with an index so far, for their names.
    pub(super) named: usize,
}

/// An index created by CREATE INDEX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) table: usize,
    pub(super) unique: bool,
    pub(super) partial: bool,
    pub(super) columns: Vec<String>,
    /// Columns in its condition.
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
    /// Empty catalog. The host chooses the schema's name from letters, digits and `_`.
    #[must_use]
    pub fn new(schema: &str) -> Catalog {
        Catalog {
            schema: schema.replace('"', "\"\""),
            tables: BTreeMap::new(),
            indexes: BTreeMap::new(),
            made: 0,
        }
    }

    /// Tables by name in lower case.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &Relation)> {
        self.tables.iter().map(|(name, relation)| (&**name, relation))
    }

    /// Quoted name of a table or index, with its schema.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        format!("\"{}\".\"{name}\"", self.schema)
    }

    pub(super) fn relation(&self, name: &str) -> Result<&Relation> {
        self.tables
            .get(name)
            .ok_or_else(|| Difference::NoTable(name.to_owned()))
    }

    /// True if a table has a key with exactly these columns.
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
