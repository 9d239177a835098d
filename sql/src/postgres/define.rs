//! Migrations for PostgreSQL.

use std::collections::BTreeSet;

use super::catalog::{Catalog, Field, Index, Relation};
use super::difference::{Difference, Result, other};
use super::printer::Printer;
use super::scope::{Level, Source, each, has_query};
use super::{Kind, Statement};
use crate::schema::Schema;
use crate::stack;
use crate::tree::{
    Column, CreateIndex, CreateTable, Definition, Direction, Expr, Name, Reaction, Reference, Rule,
    Statement as Change, TableRule, Type,
};

/// Migrations of a component, as PostgreSQL gets them.
#[derive(Debug, Clone)]
pub struct Migrated {
    /// Its tables after all steps.
    pub catalog: Catalog,
    /// Statements that are run for each statement of each step.
    pub steps: Vec<Vec<Vec<String>>>,
}

/// A statement of a migration that has another meaning for PostgreSQL, by step and number, both from 1.
pub type Unfit = (usize, usize, Difference);

/// Translates the migrations of a component. All that does not fit is told at once.
pub fn migrations(schema: &str, read: &Schema) -> std::result::Result<Migrated, Vec<Unfit>> {
    let translated = stack::apart(|| all_steps(schema, read));
    translated.unwrap_or_else(|| {
        let unread = Difference::Other("the migrations could not be translated".to_owned());
        Err(vec![(0, 0, unread)])
    })
}

fn all_steps(schema: &str, read: &Schema) -> std::result::Result<Migrated, Vec<Unfit>> {
    let mut catalog = Catalog::new(schema);
    let mut steps = Vec::new();
    let mut unfit = Vec::new();
    for (step, commands) in read.steps.iter().enumerate() {
        let mut printed = Vec::new();
        for command in commands {
            match catalog.definition(&command.definition) {
                Ok(sql) => printed.push(sql),
                Err(difference) => unfit.push((step + 1, command.number, difference)),
            }
        }
        steps.push(printed);
    }
    match unfit.is_empty() {
        true => Ok(Migrated { catalog, steps }),
        false => Err(unfit),
    }
}

/// Columns that PostgreSQL gives every table.
const SYSTEM: &[&str] = &["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];

impl Catalog {
    /// Translates a statement of a migration, and notes what it makes.
    pub(super) fn definition(&mut self, tree: &Definition) -> Result<Vec<String>> {
        match tree {
            Definition::CreateTable(tree) => self.create_table(tree),
            Definition::CreateIndex(tree) => self.create_index(tree),
            Definition::AddColumn { table, column } => self.add_column(&table.folded(), column),
            Definition::RenameColumn { table, from, to } => self.rename_column(table, from, to),
            Definition::DropColumn { table, column } => self.drop_column(&table.folded(), &column.folded()),
            Definition::RenameTable { table, to } => self.rename_table(&table.folded(), &to.folded()),
            Definition::AppendOnly { table } => self.append_only(&table.folded()),
            Definition::DropTable { table, if_exists } => self.drop_table(&table.folded(), *if_exists),
            Definition::DropIndex { index, if_exists } => self.drop_index(&index.folded(), *if_exists),
            Definition::Change(change) => self.change(change),
        }
    }

    fn change(&self, tree: &Change) -> Result<Vec<String>> {
        let Statement { sql, parameters, .. } = Printer::statement(self, tree, true)?;
        if !parameters.is_empty() {
            return other("a migration has no parameters");
        }
        let table = match tree {
            Change::Insert(insert) => insert.table.folded(),
            Change::Update(update) => update.table.folded(),
            Change::Query(_) | Change::Delete(_) => return Ok(vec![sql]),
        };
        let relation = self.relation(&table)?;
        let Some(numbered) = relation.fields.iter().find(|field| field.numbered) else {
            return Ok(vec![sql]);
        };
        // Numbers that were given are not given again.
        let onwards = format!(
            "SELECT pg_catalog.setval('{}'::regclass, (SELECT pg_catalog.max(\"{}\") FROM {}))",
            self.sequence(relation),
            numbered.name,
            self.name(&table)
        );
        Ok(vec![sql, onwards])
    }

    fn sequence(&self, relation: &Relation) -> String {
        self.name(&format!("{}.rows", relation.number))
    }

    fn create_table(&mut self, tree: &CreateTable) -> Result<Vec<String>> {
        let name = tree.table.folded();
        if self.tables.contains_key(&name) || self.indexes.contains_key(&name) {
            return match tree.if_not_exists && self.tables.contains_key(&name) {
                true => Ok(Vec::new()),
                false => other(format!("there is a table or index `{name}` already")),
            };
        }
        let mut relation = Relation {
            number: self.made + 1,
            ..Relation::default()
        };
        for column in &tree.columns {
            relation.add(column)?;
        }
        for constraint in &tree.constraints {
            relation.constrain(&constraint.rule)?;
        }
        relation.settle_key(tree);
        // A table may refer to itself.
        self.tables.insert(name.clone(), relation);
        match self.printed_table(tree, &name) {
            Ok(sql) => {
                self.made += 1;
                let mut all = vec![sql];
                if tree.append_only {
                    all.extend(self.append_only(&name)?);
                }
                Ok(all)
            }
            Err(difference) => {
                self.tables.remove(&name);
                Err(difference)
            }
        }
    }

    fn printed_table(&mut self, tree: &CreateTable, name: &str) -> Result<String> {
        let mut parts = Vec::new();
        for column in &tree.columns {
            parts.push(self.column(name, column)?);
        }
        for column in &tree.columns {
            for rule in &column.rules {
                parts.extend(self.rule(name, column, rule)?);
            }
        }
        for constraint in &tree.constraints {
            let sql = match &constraint.rule {
                TableRule::PrimaryKey(columns) => {
                    format!("{}PRIMARY KEY ({})", self.named(name)?, listed(columns))
                }
                TableRule::Unique(columns) => format!("{}UNIQUE ({})", self.named(name)?, listed(columns)),
                TableRule::Check(condition) => self.check(name, condition)?,
                TableRule::ForeignKey { columns, reference } => self.foreign_key(name, columns, reference)?,
            };
            parts.push(sql);
        }
        Ok(format!("CREATE TABLE {} ({})", self.name(name), parts.join(", ")))
    }

    /// A name for a key that no table of a component can have: it has a point in it.
    fn named(&mut self, table: &str) -> Result<String> {
        let Some(relation) = self.tables.get_mut(table) else {
            return Err(Difference::NoTable(table.to_owned()));
        };
        relation.named += 1;
        Ok(format!("CONSTRAINT \"{}.{}\" ", relation.number, relation.named))
    }

    /// A column with what is said of it alone.
    fn column(&self, table: &str, tree: &Column) -> Result<String> {
        let relation = self.relation(table)?;
        let field = relation.field(&tree.name.folded())?;
        let mut sql = format!("\"{}\" {}", field.name, field.kind.sql());
        if field.kind == Kind::Text {
            sql.push_str(" COLLATE \"C\"");
        }
        if field.numbered {
            sql.push_str(" GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME ");
            sql.push_str(&self.sequence(relation));
            sql.push(')');
        }
        for rule in &tree.rules {
            match rule {
                Rule::NotNull => sql.push_str(" NOT NULL"),
                Rule::Default(value) if !field.numbered => {
                    sql.push_str(&format!(" DEFAULT {}", self.default(value, field)?));
                }
                _ => {}
            }
        }
        Ok(sql)
    }

    /// Constraints that a column's rules are.
    fn rule(&mut self, table: &str, column: &Column, rule: &Rule) -> Result<Option<String>> {
        let columns = std::slice::from_ref(&column.name);
        Ok(Some(match rule {
            Rule::Null | Rule::NotNull | Rule::Default(_) => return Ok(None),
            Rule::PrimaryKey => format!("{}PRIMARY KEY ({})", self.named(table)?, listed(columns)),
            Rule::Unique => format!("{}UNIQUE ({})", self.named(table)?, listed(columns)),
            Rule::Check(condition) => self.check(table, condition)?,
            Rule::References(reference) => self.foreign_key(table, columns, reference)?,
        }))
    }

    fn default(&self, tree: &Expr, field: &Field) -> Result<String> {
        let mut printer = Printer::new(self);
        printer.constant(|printer| {
            let value = printer.expr(tree)?;
            Ok(format!("({})", printer.stored(value, field)?))
        })
    }

    fn check(&self, table: &str, condition: &Expr) -> Result<String> {
        Ok(format!("CHECK ({})", self.condition_of(table, condition)?))
    }

    /// A condition over the columns of one table.
    fn condition_of(&self, table: &str, condition: &Expr) -> Result<String> {
        if has_query(condition) {
            return other("a CHECK and the WHERE of an index have no subquery");
        }
        let columns = self.relation(table)?.columns();
        let mut printer = Printer::new(self);
        printer.constant(|printer| {
            printer.levels.push(Level {
                sources: vec![Source {
                    name: Some(table.to_owned()),
                    sql: String::new(),
                    columns: columns.clone(),
                    apart: false,
                    key: Vec::new(),
                }],
                ..Level::default()
            });
            let condition = printer.expr(condition)?;
            printer.condition(condition)
        })
    }

    fn foreign_key(&self, table: &str, columns: &[Name], reference: &Reference) -> Result<String> {
        let to = reference.table.folded();
        let Ok(parent) = self.relation(&to) else {
            return other(format!(
                "REFERENCES takes a table that is made before: `{to}` is not"
            ));
        };
        let there: Vec<String> = match reference.columns.is_empty() {
            true => parent.key.clone(),
            false => reference.columns.iter().map(Name::folded).collect(),
        };
        if there.len() != columns.len() || !self.is_key(&to, &there) {
            return other(format!("REFERENCES takes the columns of a key of `{to}`"));
        }
        let child = self.relation(table)?;
        for (here, there) in columns.iter().zip(&there) {
            let (one, other) = (child.field(&here.folded())?.kind, parent.field(there)?.kind);
            if one != other {
                return Err(Difference::kinds("REFERENCES", one, other));
            }
        }
        let there: Vec<String> = there.iter().map(|column| format!("\"{column}\"")).collect();
        let mut sql = format!(
            "FOREIGN KEY ({}) REFERENCES {} ({})",
            listed(columns),
            self.name(&to),
            there.join(", ")
        );
        for (word, reaction) in [("DELETE", reference.on_delete), ("UPDATE", reference.on_update)] {
            let Some(reaction) = reaction else { continue };
            sql.push_str(&format!(" ON {word} {}", said(reaction)));
        }
        Ok(sql)
    }

    fn add_column(&mut self, table: &str, column: &Column) -> Result<Vec<String>> {
        let mut relation = self.relation(table)?.clone();
        let default = column.rules.iter().find_map(|rule| match rule {
            Rule::Default(value) => Some(value),
            _ => None,
        });
        let holds = |wanted: fn(&Rule) -> bool| column.rules.iter().any(wanted);
        let nothing = default.is_none_or(|value| *value == Expr::Null);
        if holds(|rule| matches!(rule, Rule::PrimaryKey | Rule::Unique))
            || holds(|rule| *rule == Rule::NotNull) && nothing
            || holds(|rule| matches!(rule, Rule::References(_))) && !nothing
        {
            return other(
                "a column that is added is no key, has a DEFAULT if it is NOT NULL, and none if it REFERENCES",
            );
        }
        relation.add(column)?;
        let before = self.tables.insert(table.to_owned(), relation);
        let printed = self.printed_column(table, column);
        if let (Err(_), Some(before)) = (&printed, before) {
            self.tables.insert(table.to_owned(), before);
        }
        printed
    }

    fn printed_column(&mut self, table: &str, column: &Column) -> Result<Vec<String>> {
        let alter = format!("ALTER TABLE {} ADD ", self.name(table));
        let mut all = vec![format!("{alter}COLUMN {}", self.column(table, column)?)];
        for rule in &column.rules {
            all.extend(self.rule(table, column, rule)?.map(|sql| format!("{alter}{sql}")));
        }
        Ok(all)
    }

    fn append_only(&mut self, table: &str) -> Result<Vec<String>> {
        let name = self.name(table);
        let Some(relation) = self.tables.get_mut(table) else {
            return Err(Difference::NoTable(table.to_owned()));
        };
        if std::mem::replace(&mut relation.append_only, true) {
            return Ok(Vec::new());
        }
        Ok(vec![format!(
            "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {name} FOR EACH STATEMENT EXECUTE \
             FUNCTION tollgate.append_only()"
        )])
    }

    fn create_index(&mut self, tree: &CreateIndex) -> Result<Vec<String>> {
        let (index, table) = (tree.index.folded(), tree.table.folded());
        if self.indexes.contains_key(&index) || self.tables.contains_key(&index) {
            return match tree.if_not_exists && self.indexes.contains_key(&index) {
                true => Ok(Vec::new()),
                false => other(format!("there is a table or index `{index}` already")),
            };
        }
        let relation = self.relation(&table)?;
        let columns = tree
            .columns
            .iter()
            .map(|(column, direction)| indexed(relation, column, *direction));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut sql = format!(
            "CREATE {}INDEX \"{index}\" ON {} ({})",
            if tree.unique { "UNIQUE " } else { "" },
            self.name(&table),
            columns.join(", ")
        );
        if let Some(condition) = &tree.condition {
            sql.push_str(&format!(" WHERE {}", self.condition_of(&table, condition)?));
        }
        let made = Index {
            table: relation.number,
            unique: tree.unique,
            partial: tree.condition.is_some(),
            columns: tree.columns.iter().map(|(column, _)| column.folded()).collect(),
            bound: tree.condition.iter().flat_map(mentioned).collect(),
        };
        self.indexes.insert(index, made);
        Ok(vec![sql])
    }
}

impl Relation {
    fn add(&mut self, tree: &Column) -> Result<()> {
        let name = tree.name.folded();
        if self.place(&name).is_some() {
            return other(format!("there is a column `{name}` already"));
        }
        if SYSTEM.contains(&&*name) {
            return other(format!(
                "`{name}` is a column that PostgreSQL gives every table; choose another name"
            ));
        }
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
                // A column goes with its own CHECK, not with another's.
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

    fn constrain(&mut self, rule: &TableRule) -> Result<()> {
        match rule {
            TableRule::PrimaryKey(columns) => {
                if !self.key.is_empty() {
                    return other("a table has one PRIMARY KEY");
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

    /// A key of one whole number numbers the rows: SQLite calls it rowid. INT does not.
    fn settle_key(&mut self, tree: &CreateTable) {
        let [key] = &self.key[..] else { return };
        let kind = tree.columns.iter().find(|column| column.name.folded() == *key);
        if kind.is_some_and(|column| matches!(column.kind, Type::Integer | Type::BigInt))
            && let Some(field) = self.fields.iter_mut().find(|field| field.name == *key)
        {
            field.numbered = true;
        }
    }
}

impl Printer<'_> {
    /// Prints what has no parameters.
    fn constant(&mut self, print: impl FnMut(&mut Self) -> Result<String>) -> Result<String> {
        let sql = self.settle(print)?;
        match self.has_parameters() {
            true => other("a migration has no parameters"),
            false => Ok(sql),
        }
    }
}

/// A column of an index, in the order that queries ask for.
fn indexed(relation: &Relation, column: &Name, direction: Direction) -> Result<String> {
    let field = relation.field(&column.folded())?;
    let down = direction == Direction::Down;
    let nulls = match (field.nullable, down) {
        (false, _) => "",
        (true, false) => " NULLS FIRST",
        (true, true) => " NULLS LAST",
    };
    let direction = if down { " DESC" } else { "" };
    Ok(format!("\"{}\"{direction}{nulls}", field.name))
}

fn mentioned(tree: &Expr) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    each(tree, &mut |part| {
        if let Expr::Column { name, .. } = part {
            names.insert(name.folded());
        }
    });
    names
}

fn listed(columns: &[Name]) -> String {
    let columns: Vec<String> = columns
        .iter()
        .map(|column| format!("\"{}\"", column.folded()))
        .collect();
    columns.join(", ")
}

fn said(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Restrict => "RESTRICT",
        Reaction::Cascade => "CASCADE",
        Reaction::SetNull => "SET NULL",
        Reaction::SetDefault => "SET DEFAULT",
        Reaction::NoAction => "NO ACTION",
    }
}
