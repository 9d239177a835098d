//! Migrations for SQLite. Every table is STRICT, which has its own type names.

use super::Printer;
use crate::tree::{
    Column, Constraint, CreateIndex, CreateTable, Definition, Expr, Reaction, Reference, Rule, TableRule,
};

impl Printer {
    pub(super) fn definition(&mut self, tree: &Definition) {
        match tree {
            Definition::CreateTable(tree) => self.create_table(tree),
            Definition::CreateIndex(tree) => self.create_index(tree),
            Definition::AddColumn { table, column } => {
                self.say("ALTER TABLE ");
                self.name(table);
                self.say(" ADD COLUMN ");
                self.column(column);
            }
            Definition::RenameColumn { table, from, to } => {
                self.say("ALTER TABLE ");
                self.name(table);
                self.say(" RENAME COLUMN ");
                self.name(from);
                self.say(" TO ");
                self.name(to);
            }
            Definition::DropColumn { table, column } => {
                self.say("ALTER TABLE ");
                self.name(table);
                self.say(" DROP COLUMN ");
                self.name(column);
            }
            Definition::RenameTable { table, to } => {
                self.say("ALTER TABLE ");
                self.name(table);
                self.say(" RENAME TO ");
                self.name(to);
            }
            Definition::AppendOnly { table: _ } => {}
            Definition::DropTable { table, if_exists } => {
                self.say(if *if_exists {
                    "DROP TABLE IF EXISTS "
                } else {
                    "DROP TABLE "
                });
                self.name(table);
            }
            Definition::DropIndex { index, if_exists } => {
                self.say(if *if_exists {
                    "DROP INDEX IF EXISTS "
                } else {
                    "DROP INDEX "
                });
                self.name(index);
            }
            Definition::Change(statement) => self.statement(statement),
        }
    }

    fn create_table(&mut self, tree: &CreateTable) {
        let CreateTable {
            table,
            if_not_exists,
            columns,
            constraints,
            append_only: _,
        } = tree;
        self.say(if *if_not_exists {
            "CREATE TABLE IF NOT EXISTS "
        } else {
            "CREATE TABLE "
        });
        self.name(table);
        self.say(" (");
        self.list(columns, Printer::column);
        for constraint in constraints {
            self.say(", ");
            self.constraint(constraint);
        }
        self.say(") STRICT");
    }

    fn column(&mut self, tree: &Column) {
        let Column { name, kind, rules } = tree;
        self.name(name);
        self.say(" ");
        self.kind(*kind);
        for rule in rules {
            match rule {
                Rule::Null => self.say(" NULL"),
                Rule::NotNull => self.say(" NOT NULL"),
                Rule::Default(value) => self.default(value),
                Rule::PrimaryKey => self.say(" PRIMARY KEY"),
                Rule::Unique => self.say(" UNIQUE"),
                Rule::Check(condition) => {
                    self.say(" ");
                    self.check(condition);
                }
                Rule::References(reference) => self.reference(reference),
            }
        }
    }

    fn default(&mut self, value: &Expr) {
        self.say(" DEFAULT ");
        match value {
            // Here a sign belongs to the number. All other expressions are in parentheses.
            Expr::Negative(number) if matches!(**number, Expr::Number(_)) => self.expr(value),
            Expr::Null | Expr::Boolean(_) | Expr::Number(_) | Expr::Text(_) | Expr::Blob(_) => {
                self.expr(value)
            }
            _ => {
                self.say("(");
                self.expr(value);
                self.say(")");
            }
        }
    }

    fn check(&mut self, condition: &Expr) {
        self.say("CHECK (");
        self.expr(condition);
        self.say(")");
    }

    fn constraint(&mut self, tree: &Constraint) {
        let Constraint { name, rule } = tree;
        if let Some(name) = name {
            self.say("CONSTRAINT ");
            self.name(name);
            self.say(" ");
        }
        match rule {
            TableRule::PrimaryKey(columns) => {
                self.say("PRIMARY KEY ");
                self.names(columns);
            }
            TableRule::Unique(columns) => {
                self.say("UNIQUE ");
                self.names(columns);
            }
            TableRule::Check(condition) => self.check(condition),
            TableRule::ForeignKey { columns, reference } => {
                self.say("FOREIGN KEY ");
                self.names(columns);
                self.reference(reference);
            }
        }
    }

    fn reference(&mut self, tree: &Reference) {
        let Reference {
            table,
            columns,
            on_delete,
            on_update,
        } = tree;
        self.say(" REFERENCES ");
        self.name(table);
        if !columns.is_empty() {
            self.say(" ");
            self.names(columns);
        }
        self.reaction(" ON DELETE ", *on_delete);
        self.reaction(" ON UPDATE ", *on_update);
    }

    fn reaction(&mut self, word: &str, reaction: Option<Reaction>) {
        let Some(reaction) = reaction else { return };
        self.say(word);
        self.say(match reaction {
            Reaction::Restrict => "RESTRICT",
            Reaction::Cascade => "CASCADE",
            Reaction::SetNull => "SET NULL",
            Reaction::SetDefault => "SET DEFAULT",
            Reaction::NoAction => "NO ACTION",
        });
    }

    fn create_index(&mut self, tree: &CreateIndex) {
        let CreateIndex {
            index,
            table,
            unique,
            if_not_exists,
            columns,
            condition,
        } = tree;
        self.say(if *unique {
            "CREATE UNIQUE INDEX "
        } else {
            "CREATE INDEX "
        });
        if *if_not_exists {
            self.say("IF NOT EXISTS ");
        }
        self.name(index);
        self.say(" ON ");
        self.name(table);
        self.say(" (");
        self.list(columns, |printer, (column, direction)| {
            printer.name(column);
            printer.direction(*direction);
        });
        self.say(")");
        self.condition(" WHERE ", condition.as_ref());
    }
}
