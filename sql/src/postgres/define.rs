//! Migrations for PostgreSQL.

use super::Statement;
use super::catalog::{Catalog, Index, Relation};
use super::difference::{Difference, Result, other};
use super::printer::{Printer, quoted};
use super::relation::mentioned;
use crate::schema::Schema;
use crate::stack;
use crate::tree::{
    Column, CreateIndex, CreateTable, Definition, Direction, Expr, Name, Rule, Statement as Change,
};

/// Migrations of a component, translated for PostgreSQL.
#[derive(Debug, Clone)]
pub struct Migrated {
    /// Tables after all steps.
    pub catalog: Catalog,
    /// Translated statements for each statement of each step.
    pub steps: Vec<Vec<Vec<String>>>,
}

/// Statement of a migration with another meaning on PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// Number of its step, from 1.
    pub step: usize,
    /// Number within its step, from 1.
    pub statement: usize,
    pub difference: Difference,
}

/// Translates the migrations of a component. The error lists all differences.
pub fn migrations(schema: &str, read: &Schema) -> std::result::Result<Migrated, Vec<Unfit>> {
    let translated = stack::apart(|| all_steps(schema, read));
    translated.unwrap_or_else(|| {
        Err(vec![Unfit {
            step: 1,
            statement: 1,
            difference: Difference::Other("the migrations could not be translated".to_owned()),
        }])
    })
}

fn all_steps(schema: &str, read: &Schema) -> std::result::Result<Migrated, Vec<Unfit>> {
    let (migrated, unfit) = translate_steps(schema, read);
    match unfit.is_empty() {
        true => Ok(migrated),
        false => Err(unfit),
    }
}

/// Translates the statements that can be translated, on the current stack, which must be large.
pub(super) fn translate_steps(schema: &str, read: &Schema) -> (Migrated, Vec<Unfit>) {
    let mut catalog = Catalog::new(schema);
    let mut steps = Vec::new();
    let mut unfit = Vec::new();
    for (step, commands) in read.steps.iter().enumerate() {
        let mut printed = Vec::new();
        for command in commands {
            match catalog.definition(&command.definition) {
                Ok(sql) => printed.push(sql),
                Err(difference) => unfit.push(Unfit {
                    step: step + 1,
                    statement: command.number,
                    difference,
                }),
            }
        }
        steps.push(printed);
    }
    (Migrated { catalog, steps }, unfit)
}

impl Catalog {
    /// Translates a statement of a migration, and records what it creates.
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
            return other("a migration cannot have parameters");
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
        // Numbers are never assigned twice.
        let onwards = format!(
            "SELECT pg_catalog.setval({}::regclass, (SELECT greatest(pg_catalog.max(\"{}\"), 0) + 1 FROM {}), false)",
            quoted(&self.sequence(relation)),
            numbered.name,
            self.name(&table)
        );
        Ok(vec![sql, onwards])
    }

    pub(super) fn sequence(&self, relation: &Relation) -> String {
        self.name(&format!("{}.rows", relation.number))
    }

    fn create_table(&mut self, tree: &CreateTable) -> Result<Vec<String>> {
        let CreateTable {
            table,
            if_not_exists,
            columns,
            constraints,
            append_only,
        } = tree;
        let name = table.folded();
        if self.tables.contains_key(&name) || self.indexes.contains_key(&name) {
            return match *if_not_exists && self.tables.contains_key(&name) {
                true => Ok(Vec::new()),
                false => other(format!("a table or index `{name}` already exists")),
            };
        }
        let mut relation = Relation {
            number: self.made + 1,
            ..Relation::default()
        };
        for column in columns {
            relation.add(column)?;
        }
        for constraint in constraints {
            relation.constrain(&constraint.rule)?;
        }
        relation.settle_key(columns);
        // A table may refer to itself.
        self.tables.insert(name.clone(), relation);
        match self.printed_table(&name, columns, constraints) {
            Ok(sql) => {
                self.made += 1;
                let mut all = vec![sql];
                if *append_only {
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
                "an added column cannot be a key, needs a DEFAULT if it is NOT NULL, and cannot have one with \
                 REFERENCES",
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
        let CreateIndex {
            index,
            table,
            unique,
            if_not_exists,
            columns,
            condition,
        } = tree;
        let (index, table) = (index.folded(), table.folded());
        if self.indexes.contains_key(&index) || self.tables.contains_key(&index) {
            return match *if_not_exists && self.indexes.contains_key(&index) {
                true => Ok(Vec::new()),
                false => other(format!("a table or index `{index}` already exists")),
            };
        }
        let relation = self.relation(&table)?;
        let printed = columns
            .iter()
            .map(|(column, direction)| indexed(relation, column, *direction));
        let printed = printed.collect::<Result<Vec<_>>>()?;
        let mut sql = format!(
            "CREATE {}INDEX \"{index}\" ON {} ({})",
            if *unique { "UNIQUE " } else { "" },
            self.name(&table),
            printed.join(", ")
        );
        if let Some(condition) = condition {
            sql.push_str(&format!(" WHERE {}", self.condition_of(&table, condition)?));
        }
        let made = Index {
            table: relation.number,
            unique: *unique,
            partial: condition.is_some(),
            columns: columns.iter().map(|(column, _)| column.folded()).collect(),
            bound: condition.iter().flat_map(mentioned).collect(),
        };
        self.indexes.insert(index, made);
        Ok(vec![sql])
    }
}

/// Column of an index, in the order that queries need.
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
