//! The migrations of a component: read, checked, and what they make.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::MAX_MIGRATIONS;
use crate::read::{Owner, definition};
use crate::refusal::{Problem, Problems, Refusal, not_allowed};
use crate::sqlite;
use crate::stack;
use crate::token::pieces;
use crate::tree::{Column, CreateTable, Definition, Name, Rule, TableRule};

/// One step of a schema, as its component ships it.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub name: &'a str,
    pub sql: &'a str,
}

/// A table after all steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Table {
    /// Its rows are inserted and read, and nothing else.
    pub append_only: bool,
    /// A foreign key changes or deletes its rows.
    reacts: bool,
}

/// One statement of a migration, printed.
#[derive(Debug, Clone)]
pub struct Command {
    pub definition: Definition,
    /// For SQLite; none if only the host keeps to it.
    pub sql: Option<String>,
    /// Tables that are append-only when it runs, in lower case.
    pub append_only: Arc<BTreeSet<String>>,
    /// Which statement of its step it is, from 1.
    pub number: usize,
    /// How it begins, for messages.
    pub words: String,
}

/// What a component's migrations make.
#[derive(Debug, Clone, Default)]
pub struct Schema {
    /// By name in lower case.
    pub tables: BTreeMap<String, Table>,
    /// The statements of each step, in order.
    pub steps: Vec<Vec<Command>>,
    append_only: Arc<BTreeSet<String>>,
}

impl Schema {
    /// Tables that are append-only, in lower case.
    #[must_use]
    pub fn append_only(&self) -> &BTreeSet<String> {
        &self.append_only
    }

    /// Notes what a definition does to the tables.
    fn apply(&mut self, definition: &Definition) -> Result<(), Refusal> {
        match definition {
            Definition::CreateTable(table) => self.create(table)?,
            Definition::AddColumn { table, column } if reacts(column) => {
                if self.known(table).append_only {
                    return Err(reaction(table));
                }
                self.table(table).reacts = true;
            }
            Definition::AppendOnly { table } => {
                let Some(known) = self.tables.get_mut(&table.folded()) else {
                    return not_allowed(format!(
                        "`{}` is made by no statement before this one",
                        table.as_str()
                    ));
                };
                if known.reacts {
                    return Err(reaction(table));
                }
                known.append_only = true;
            }
            Definition::RenameTable { table, to } => {
                let known = self.tables.remove(&table.folded()).unwrap_or_default();
                if self.tables.contains_key(&to.folded()) {
                    return not_allowed(format!("there is a table `{}` already", to.as_str()));
                }
                self.tables.insert(to.folded(), known);
            }
            Definition::DropTable { table, .. } => drop(self.tables.remove(&table.folded())),
            Definition::AddColumn { .. }
            | Definition::CreateIndex(_)
            | Definition::RenameColumn { .. }
            | Definition::DropColumn { .. }
            | Definition::DropIndex { .. }
            | Definition::Change(_) => return Ok(()),
        }
        self.note();
        Ok(())
    }

    fn create(&mut self, table: &CreateTable) -> Result<(), Refusal> {
        let reacts = table.columns.iter().any(reacts)
            || table.constraints.iter().any(|constraint| {
                matches!(&constraint.rule, TableRule::ForeignKey { reference, .. } if reference.reacts())
            });
        if reacts && table.append_only {
            return Err(reaction(&table.table));
        }
        let there = self.tables.contains_key(&table.table.folded());
        let known = self.table(&table.table);
        if there {
            // IF NOT EXISTS leaves the table as it is.
            return match table.append_only == known.append_only {
                true => Ok(()),
                false => not_allowed("the table is there, and its append_only stays"),
            };
        }
        known.append_only = table.append_only;
        known.reacts = reacts;
        Ok(())
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

/// Reads the migrations of the component whose tables start with `prefix`. All that is wrong is told at once.
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
        let read = definition(piece, owner).and_then(|definition| {
            schema.apply(&definition)?;
            Ok(definition)
        });
        match read {
            Ok(definition) => commands.push(Command {
                sql: sqlite::definition(&definition),
                definition,
                append_only,
                number: place + 1,
                words,
            }),
            Err(refusal) => problems.push(Problem {
                step: step.name.to_owned(),
                statement: Some(place + 1),
                words,
                table: refusal.table().map(str::to_owned).or(table),
                refusal,
            }),
        }
    }
    commands
}
