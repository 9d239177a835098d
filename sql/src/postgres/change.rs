//! Changes to existing tables: renaming, and dropping columns, tables and indexes.

use super::catalog::Catalog;
use super::difference::{Difference, Result, other};
use super::relation::not_of_the_system;
use crate::tree::Name;

impl Catalog {
    pub(super) fn rename_column(&mut self, table: &Name, from: &Name, to: &Name) -> Result<Vec<String>> {
        let (table, from, to) = (table.folded(), from.folded(), to.folded());
        let sql = format!(
            "ALTER TABLE {} RENAME COLUMN \"{from}\" TO \"{to}\"",
            self.name(&table)
        );
        let relation = self.relation(&table)?;
        relation.field(&from)?;
        if from == to {
            return Ok(Vec::new());
        }
        if relation.place(&to).is_some() {
            return other(format!("a column `{to}` already exists"));
        }
        not_of_the_system(&to)?;
        let number = relation.number;
        self.renamed(&table, number, &from, &to);
        Ok(vec![sql])
    }

    /// Records the new name wherever a column's name is stored.
    fn renamed(&mut self, table: &str, number: usize, from: &str, to: &str) {
        let rename = |name: &mut String| {
            if name == from {
                to.clone_into(name);
            }
        };
        for (name, relation) in &mut self.tables {
            for (parent, columns) in &mut relation.refers {
                if parent == table {
                    columns.iter_mut().for_each(rename);
                }
            }
            if name != table {
                continue;
            }
            relation
                .fields
                .iter_mut()
                .for_each(|field| rename(&mut field.name));
            relation
                .key
                .iter_mut()
                .chain(relation.unique.iter_mut().flatten())
                .for_each(rename);
            if relation.bound.remove(from) {
                relation.bound.insert(to.to_owned());
            }
        }
        for index in self.indexes.values_mut().filter(|index| index.table == number) {
            index.columns.iter_mut().for_each(rename);
            if index.bound.remove(from) {
                index.bound.insert(to.to_owned());
            }
        }
    }

    /// Refuses to drop a column that another object needs, like SQLite. PostgreSQL would drop that object as well.
    pub(super) fn drop_column(&mut self, table: &str, column: &str) -> Result<Vec<String>> {
        let sql = format!("ALTER TABLE {} DROP COLUMN \"{column}\"", self.name(table));
        let relation = self.relation(table)?;
        relation.field(column)?;
        let has = |columns: &[String]| columns.iter().any(|name| name == column);
        let indexed = self.indexes.values().any(|index| {
            index.table == relation.number && (has(&index.columns) || index.bound.contains(column))
        });
        if indexed
            || has(&relation.key)
            || relation.unique.iter().any(|key| has(key))
            || relation.bound.contains(column)
        {
            return other(format!("an index, a key or a CHECK needs the column `{column}`"));
        }
        if relation.fields.len() == 1 {
            return other("a table must have columns");
        }
        if let Some(relation) = self.tables.get_mut(table) {
            relation.fields.retain(|field| field.name != column);
        }
        Ok(vec![sql])
    }

    pub(super) fn rename_table(&mut self, table: &str, to: &str) -> Result<Vec<String>> {
        if self.indexes.contains_key(to) || (self.tables.contains_key(to) && table != to) {
            return other(format!("a table or index `{to}` already exists"));
        }
        let Some(relation) = self.tables.remove(table) else {
            return Err(Difference::NoTable(table.to_owned()));
        };
        self.tables.insert(to.to_owned(), relation);
        if table == to {
            return Ok(Vec::new());
        }
        let refers = self.tables.values_mut().flat_map(|relation| &mut relation.refers);
        for (name, _) in refers.filter(|(name, _)| name == table) {
            to.clone_into(name);
        }
        Ok(vec![format!(
            "ALTER TABLE {} RENAME TO \"{to}\"",
            self.name(table)
        )])
    }

    pub(super) fn drop_table(&mut self, table: &str, if_exists: bool) -> Result<Vec<String>> {
        let Some(relation) = self.tables.get(table) else {
            return match if_exists {
                true => Ok(Vec::new()),
                false => Err(Difference::NoTable(table.to_owned())),
            };
        };
        let mut others = self.tables.iter().filter(|(name, _)| *name != table);
        let refers = others.find(|(_, other)| other.refers.iter().any(|(to, _)| to == table));
        if let Some((name, _)) = refers {
            return other(format!(
                "a foreign key of `{name}` refers to `{table}`; drop that table first"
            ));
        }
        let number = relation.number;
        self.indexes.retain(|_, index| index.table != number);
        self.tables.remove(table);
        Ok(vec![format!("DROP TABLE {}", self.name(table))])
    }

    pub(super) fn drop_index(&mut self, index: &str, if_exists: bool) -> Result<Vec<String>> {
        let Some(found) = self.indexes.remove(index) else {
            return match if_exists {
                true => Ok(Vec::new()),
                false => other(format!("there is no index `{index}`")),
            };
        };
        let named = self
            .tables
            .iter()
            .find(|(_, relation)| relation.number == found.table);
        let mut refers = self.tables.values().flat_map(|relation| &relation.refers);
        let needed = named.is_some_and(|(table, _)| {
            refers.any(|(to, columns)| to == table && !columns.is_empty() && !self.is_key(table, columns))
        });
        if needed {
            self.indexes.insert(index.to_owned(), found);
            return other(format!("a foreign key needs the index `{index}`"));
        }
        Ok(vec![format!("DROP INDEX {}", self.name(index))])
    }
}
