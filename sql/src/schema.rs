//! Migrations of a component: read, checked, and the schema that they create.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::read::{Owner, definition};
use crate::refusal::{Problem, Problems, Refusal, not_allowed};
use crate::sqlite;
use crate::stack;
use crate::token::pieces;
use crate::tree::{Column, CreateTable, Definition, Name, Rule, TableRule};
use crate::{MAX_MIGRATIONS, MAX_SCHEMA_BYTES, MAX_SCHEMA_COLUMNS, MAX_SCHEMA_INDEXES, MAX_SCHEMA_TABLES};

/// One migration step of a component.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub name: &'a str,
    pub sql: &'a str,
}

/// A table after all steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Table {
    /// True if rows can only be inserted and read.
    pub append_only: bool,
    /// True if a foreign key changes or deletes its rows.
    reacts: bool,
    /// Number of the table, which stays the same when it is renamed.
    number: usize,
    size: Size,
}

/// Memory that a table or an index takes in every connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Size {
    columns: usize,
    indexes: usize,
    bytes: usize,
}

/// A printed statement of a migration.
#[derive(Debug, Clone)]
pub struct Command {
    pub definition: Definition,
    /// Text for SQLite. `None` if only the host acts on it.
    pub sql: Option<String>,
    /// Tables that are append-only when it runs, in lower case.
    pub append_only: Arc<BTreeSet<String>>,
    /// Number in its step, from 1.
    pub number: usize,
    /// First words, for messages.
    pub words: String,
}

/// Schema that a component's migrations make.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// Tables by name in lower case.
    pub tables: BTreeMap<String, Table>,
    /// The statements of each step, in order.
    pub steps: Vec<Vec<Command>>,
    append_only: Arc<BTreeSet<String>>,
    /// Indexes by name in lower case, with the number of their table and their size.
    indexes: BTreeMap<String, (usize, Size)>,
    /// Former names of append-only tables, in lower case, with the numbers of the tables.
    retired: BTreeMap<String, usize>,
    /// Number of tables created so far.
    made: usize,
    /// Tables of statements that could not be read.
    unread: BTreeSet<String>,
    /// True if a size limit was exceeded.
    is_too_large: bool,
}

/// Most problems that are kept.
const MAX_PROBLEMS: usize = 1_000;

impl Schema {
    /// Tables that are append-only, in lower case.
    #[must_use]
    pub fn append_only(&self) -> &BTreeSet<String> {
        &self.append_only
    }

    /// Applies a definition to the tables.
    fn apply(&mut self, definition: &Definition) -> Result<(), Refusal> {
        match definition {
            Definition::CreateTable(table) => self.create(table)?,
            Definition::AddColumn { table, column } => self.add(table, column)?,
            Definition::AppendOnly { table } => {
                let Some(known) = self.tables.get_mut(&table.folded()) else {
                    if self.unread.contains(&table.folded()) {
                        return Ok(());
                    }
                    return not_allowed(format!(
                        "`{}` is not created by a statement before this one",
                        table.as_str()
                    ));
                };
                if known.reacts {
                    return Err(reaction(table));
                }
                known.append_only = true;
            }
            Definition::RenameTable { table, to } => self.rename(table, to)?,
            Definition::DropTable { table, .. } => {
                if let Some(known) = self.tables.remove(&table.folded()) {
                    self.indexes.retain(|_, (of, _)| *of != known.number);
                }
            }
            Definition::CreateIndex(index) => {
                let size = Size {
                    columns: index.columns.len(),
                    indexes: 1,
                    bytes: printed(definition),
                };
                let of = self.known(&index.table).number;
                self.indexes.entry(index.index.folded()).or_insert((of, size));
            }
            Definition::DropIndex { index, .. } => drop(self.indexes.remove(&index.folded())),
            Definition::RenameColumn { .. } | Definition::DropColumn { .. } | Definition::Change(_) => {
                return Ok(());
            }
        }
        self.note();
        self.bounded()
    }

    fn create(&mut self, table: &CreateTable) -> Result<(), Refusal> {
        let reacts = table.columns.iter().any(reacts)
            || table.constraints.iter().any(|constraint| {
                matches!(&constraint.rule, TableRule::ForeignKey { reference, .. } if reference.reacts())
            });
        if reacts && table.append_only {
            return Err(reaction(&table.table));
        }
        if let Some(known) = self.tables.get(&table.table.folded()) {
            // IF NOT EXISTS leaves the table as it is.
            return match table.append_only == known.append_only {
                true => Ok(()),
                false => not_allowed("the table already exists, and its append_only cannot change"),
            };
        }
        self.unless_retired(&table.table, None)?;
        self.made += 1;
        let made = Table {
            append_only: table.append_only,
            reacts,
            number: self.made,
            size: size(table),
        };
        self.tables.insert(table.table.folded(), made);
        Ok(())
    }

    fn add(&mut self, table: &Name, column: &Column) -> Result<(), Refusal> {
        let known = self.known(table);
        if reacts(column) && known.append_only {
            return Err(reaction(table));
        }
        let added = Definition::AddColumn {
            table: table.clone(),
            column: column.clone(),
        };
        let known = self.table(table);
        known.reacts |= reacts(column);
        known.size.columns += 1;
        known.size.bytes += printed(&added);
        Ok(())
    }

    /// Renames a table. An append-only table keeps its rows, and its old name stays reserved: rows in a new table of
    /// that name would pass for its rows.
    fn rename(&mut self, table: &Name, to: &Name) -> Result<(), Refusal> {
        let known = self.known(table);
        if self.tables.contains_key(&to.folded()) && table.folded() != to.folded() {
            return not_allowed(format!("a table `{}` already exists", to.as_str()));
        }
        self.unless_retired(to, Some(known.number))?;
        self.tables.remove(&table.folded());
        if known.append_only {
            self.retired.insert(table.folded(), known.number);
        }
        self.tables.insert(to.folded(), known);
        Ok(())
    }

    /// Refuses the former name of an append-only table for any other table.
    fn unless_retired(&self, name: &Name, number: Option<usize>) -> Result<(), Refusal> {
        let Some(had) = self
            .retired
            .get(&name.folded())
            .filter(|had| Some(**had) != number)
        else {
            return Ok(());
        };
        let now = self.tables.iter().find(|(_, table)| table.number == *had);
        Err(Refusal::Retired {
            table: name.as_str().to_owned(),
            now: now.map_or_else(String::new, |(now, _)| now.clone()),
        })
    }

    /// Refuses a schema that would take too much memory in every connection.
    fn bounded(&mut self) -> Result<(), Refusal> {
        if self.is_too_large {
            // It was already reported.
            return Ok(());
        }
        let tables = self.tables.values().map(|table| table.size);
        let sizes = tables.chain(self.indexes.values().map(|(_, size)| *size));
        let all = sizes.fold(Size::default(), |all, size| Size {
            columns: all.columns + size.columns,
            indexes: all.indexes + size.indexes,
            bytes: all.bytes + size.bytes,
        });
        let bounds = [
            (self.tables.len(), MAX_SCHEMA_TABLES, "tables"),
            (all.indexes, MAX_SCHEMA_INDEXES, "indexes, those of keys included"),
            (
                all.columns,
                MAX_SCHEMA_COLUMNS,
                "columns in its tables, keys and indexes",
            ),
            (
                all.bytes,
                MAX_SCHEMA_BYTES,
                "bytes of statements that create its tables and indexes",
            ),
        ];
        match bounds.into_iter().find(|(count, limit, _)| count > limit) {
            Some((_, limit, what)) => {
                self.is_too_large = true;
                Err(Refusal::SchemaTooLarge { what, limit })
            }
            None => Ok(()),
        }
    }

    fn known(&self, table: &Name) -> Table {
        self.tables.get(&table.folded()).copied().unwrap_or_default()
    }

    fn table(&mut self, table: &Name) -> &mut Table {
        self.tables.entry(table.folded()).or_default()
    }

    fn note(&mut self) {
        let names = self.tables.iter().filter(|(_, table)| table.append_only);
        let names: BTreeSet<String> = names.map(|(name, _)| name.clone()).collect();
        if names != *self.append_only {
            self.append_only = Arc::new(names);
        }
    }
}

fn printed(definition: &Definition) -> usize {
    sqlite::definition(definition).map_or(0, |sql| sql.len())
}

fn size(table: &CreateTable) -> Size {
    let keys = table.constraints.iter().map(|constraint| match &constraint.rule {
        TableRule::PrimaryKey(columns) | TableRule::Unique(columns) => (columns.len(), 1),
        TableRule::ForeignKey { columns, .. } => (columns.len(), 0),
        TableRule::Check(_) => (0, 0),
    });
    let own = table
        .columns
        .iter()
        .flat_map(|column| &column.rules)
        .map(|rule| match rule {
            Rule::PrimaryKey | Rule::Unique => (1, 1),
            _ => (0, 0),
        });
    let (columns, indexes) = keys
        .chain(own)
        .fold((0, 0), |all, key| (all.0 + key.0, all.1 + key.1));
    Size {
        columns: table.columns.len() + columns,
        indexes,
        bytes: printed(&Definition::CreateTable(table.clone())),
    }
}

fn reacts(column: &Column) -> bool {
    column
        .rules
        .iter()
        .any(|rule| matches!(rule, Rule::References(reference) if reference.reacts()))
}

fn reaction(table: &Name) -> Refusal {
    Refusal::NotAllowed(format!(
        "`{}` is append-only, so ON DELETE and ON UPDATE of its foreign keys are RESTRICT or NO ACTION",
        table.as_str()
    ))
}

/// Reads the migrations of the component whose tables start with `prefix`. The error lists all problems.
pub fn read<'a>(prefix: &str, steps: impl IntoIterator<Item = Step<'a>>) -> Result<Schema, Problems> {
    let steps: Vec<Step<'a>> = steps.into_iter().collect();
    stack::apart(|| read_all(prefix, &steps)).unwrap_or_else(|| {
        Err(Problems(vec![Problem {
            step: String::new(),
            statement: None,
            words: String::new(),
            table: None,
            refusal: stack::unread(),
        }]))
    })
}

fn read_all(prefix: &str, steps: &[Step<'_>]) -> Result<Schema, Problems> {
    if steps.iter().map(|step| step.sql.len()).sum::<usize>() > MAX_MIGRATIONS {
        return Err(Problems(vec![Problem {
            step: String::new(),
            statement: None,
            words: String::new(),
            table: None,
            refusal: Refusal::NotAllowed(format!(
                "the migrations of a component have at most {MAX_MIGRATIONS} bytes together"
            )),
        }]));
    }
    let mut schema = Schema::default();
    let mut problems = Vec::new();
    for &step in steps {
        let commands = read_step(prefix, step, &mut schema, &mut problems);
        schema.steps.push(commands);
    }
    if problems.is_empty() {
        Ok(schema)
    } else {
        Err(Problems(problems))
    }
}

fn read_step(prefix: &str, step: Step<'_>, schema: &mut Schema, problems: &mut Vec<Problem>) -> Vec<Command> {
    let pieces = match pieces(step.sql) {
        Ok(pieces) => pieces,
        Err(refusal) => {
            problems.push(Problem {
                step: step.name.to_owned(),
                statement: None,
                words: String::new(),
                table: None,
                refusal,
            });
            return Vec::new();
        }
    };
    let mut commands = Vec::new();
    for (place, piece) in pieces.into_iter().enumerate() {
        let (words, table) = (piece.words(), piece.table());
        let append_only = Arc::clone(&schema.append_only);
        let owner = Owner {
            prefix,
            append_only: &append_only,
        };
        let (definition, mut refusals) = definition(piece, owner);
        match &definition {
            // Definitions from a refused statement are applied too, so that later statements are not refused because
            // of it.
            Some(definition) => refusals.extend(schema.apply(definition).err()),
            None => schema
                .unread
                .extend(table.iter().map(|table| table.to_ascii_lowercase())),
        }
        match definition.filter(|_| refusals.is_empty()) {
            Some(definition) => commands.push(Command {
                sql: sqlite::definition(&definition),
                definition,
                append_only,
                number: place + 1,
                words,
            }),
            None => problems.extend(refusals.into_iter().map(|refusal| Problem {
                step: step.name.to_owned(),
                statement: Some(place + 1),
                words: words.clone(),
                table: refusal.table().map(str::to_owned).or(table.clone()),
                refusal,
            })),
        }
        if problems.len() > MAX_PROBLEMS {
            break;
        }
    }
    commands
}
