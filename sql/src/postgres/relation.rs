//! Columns and constraints of a table, as migrations define them.

use std::collections::BTreeSet;

use super::Kind;
use super::catalog::{Field, Relation};
use super::difference::{Difference, Result, other};
use super::scope::each;
use crate::tree::{Column, Expr, Name, Rule, TableRule, Type};

/// System columns that PostgreSQL adds to every table.
const SYSTEM: &[&str] = &["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];

impl Relation {
    pub(super) fn add(&mut self, tree: &Column) -> Result<()> {
        let name = tree.name.folded();
        if self.place(&name).is_some() {
            return other(format!("a column `{name}` already exists"));
        }
        not_of_the_system(&name)?;
        let not_null = tree.rules.contains(&Rule::NotNull);
        self.fields.push(Field {
            kind: Kind::of(tree.kind),
            nullable: !not_null,
            numbered: false,
            name: name.clone(),
        });
        for rule in &tree.rules {
            match rule {
                Rule::PrimaryKey => self.constrain(&TableRule::PrimaryKey(vec![tree.name.clone()]))?,
                Rule::Unique => self.constrain(&TableRule::Unique(vec![tree.name.clone()]))?,
                // A column is dropped with its own CHECK, not with another column's.
                Rule::Check(condition) => {
                    let others = mentioned(condition).into_iter().filter(|column| *column != name);
                    self.bound.extend(others);
                }
                Rule::References(reference) => self.constrain(&TableRule::ForeignKey {
                    columns: vec![tree.name.clone()],
                    reference: reference.clone(),
                })?,
                Rule::Null | Rule::NotNull | Rule::Default(_) => {}
            }
        }
        Ok(())
    }

    pub(super) fn constrain(&mut self, rule: &TableRule) -> Result<()> {
        match rule {
            TableRule::PrimaryKey(columns) => {
                if !self.key.is_empty() {
                    return other("a table can have only one PRIMARY KEY");
                }
                self.key = columns.iter().map(Name::folded).collect();
                self.unique.push(self.key.clone());
                for column in &self.key {
                    let place = self.fields.iter_mut().find(|field| field.name == *column);
                    place
                        .ok_or_else(|| Difference::NoColumn(column.clone()))?
                        .nullable = false;
                }
            }
            TableRule::Unique(columns) => {
                let columns: Vec<String> = columns.iter().map(Name::folded).collect();
                for column in &columns {
                    self.field(column)?;
                }
                self.unique.push(columns);
            }
            TableRule::Check(condition) => self.bound.extend(mentioned(condition)),
            TableRule::ForeignKey { columns, reference } => {
                self.bound.extend(columns.iter().map(Name::folded));
                let there = reference.columns.iter().map(Name::folded).collect();
                self.refers.push((reference.table.folded(), there));
            }
        }
        Ok(())
    }

    /// A primary key of one INTEGER column numbers the rows: SQLite treats it as the rowid. INT does not.
    pub(super) fn settle_key(&mut self, columns: &[Column]) {
        let [key] = &self.key[..] else { return };
        let kind = columns.iter().find(|column| column.name.folded() == *key);
        if kind.is_some_and(|column| matches!(column.kind, Type::Integer | Type::BigInt))
            && let Some(field) = self.fields.iter_mut().find(|field| field.name == *key)
        {
            field.numbered = true;
        }
    }
}

/// Refuses the name of a system column.
pub(super) fn not_of_the_system(name: &str) -> Result<()> {
    if SYSTEM.contains(&name) {
        return other(format!(
            "`{name}` is a column that PostgreSQL adds to every table; choose another name"
        ));
    }
    Ok(())
}

pub(super) fn mentioned(tree: &Expr) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    each(tree, &mut |part| {
        if let Expr::Column { name, .. } = part {
            names.insert(name.folded());
        }
    });
    names
}
