//! Translation of the statements of a component's calls for PostgreSQL, each translated once.

use std::sync::{Arc, Mutex, PoisonError};

use thiserror::Error;

use super::difference::Difference;
use super::differences::{Finding, Place};
use super::{Migrated, Statement, Unfit, migrations};
use crate::cache::{Kept, Printed};
use crate::read::{Owner, statement_here};
use crate::refusal::{Problems, Refusal};
use crate::schema::{self, Schema, Step};
use crate::stack;

/// Translates and caches the statements of one component's calls. Shared by all sessions that run its calls.
#[derive(Debug)]
pub struct Translator {
    prefix: String,
    schema: Schema,
    migrated: Migrated,
    kept: Mutex<Kept<Statement>>,
}

/// Reason for which a component cannot be translated as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Untranslated {
    /// The migrations are outside the subset.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// Statements of the migrations differ on PostgreSQL.
    #[error("they differ on PostgreSQL: {}", list(.0))]
    Differs(Vec<Finding>),
}

/// Reason for which a statement of a call is not run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unsaid {
    /// The statement is outside the subset, on every engine.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The statement has another meaning on PostgreSQL than on SQLite.
    #[error("the statement differs on PostgreSQL: {0}")]
    Differs(#[from] Difference),
}

fn list(findings: &[Finding]) -> String {
    let findings: Vec<String> = findings.iter().map(ToString::to_string).collect();
    findings.join("; ")
}

impl Printed for Statement {
    fn sql(&self) -> &str {
        &self.sql
    }
}

impl Translator {
    /// Translator for the component whose tables start with `prefix`, with its tables in a schema of this name.
    ///
    /// # Errors
    ///
    /// Problems of the migrations, or SQL in them that differs.
    pub fn new(prefix: &str, schema: &str, steps: &[Step<'_>]) -> Result<Translator, Untranslated> {
        let read = schema::read(prefix, steps.iter().copied())?;
        let migrated = migrations(schema, &read)
            .map_err(|unfit| Untranslated::Differs(findings(unfit, &read, steps)))?;
        Ok(Translator {
            prefix: prefix.to_owned(),
            schema: read,
            migrated,
            kept: Mutex::default(),
        })
    }

    /// Statements of each migration step, with their translations.
    pub fn steps(&self) -> impl Iterator<Item = impl Iterator<Item = (&schema::Command, &[String])>> {
        let steps = self.schema.steps.iter().zip(&self.migrated.steps);
        steps.map(|(commands, printed)| commands.iter().zip(printed.iter().map(Vec::as_slice)))
    }

    /// Quoted name of a table or index of the component, with its schema.
    #[must_use]
    pub fn name(&self, name: &str) -> String {
        self.migrated.catalog.name(name)
    }

    /// Translated statement of a text.
    ///
    /// # Errors
    ///
    /// The refusal, or the difference.
    pub fn statement(&self, text: &str) -> Result<Arc<Statement>, Unsaid> {
        if let Some(statement) = self.kept().find(text) {
            return Ok(statement);
        }
        let owner = Owner {
            prefix: &self.prefix,
            append_only: self.schema.append_only(),
        };
        let translated = stack::apart(|| -> Result<Arc<Statement>, Unsaid> {
            let read = statement_here(text, owner)?;
            Ok(Arc::new(self.migrated.catalog.statement_here(&read)?))
        });
        let statement = translated.ok_or_else(stack::unread)??;
        self.kept().keep(text, &statement);
        Ok(statement)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept<Statement>> {
        // The cached values can be translated again, so the maps stay usable after a panic.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts each untranslatable construct to a finding with its position.
pub(super) fn findings(unfit: Vec<Unfit>, schema: &Schema, steps: &[Step<'_>]) -> Vec<Finding> {
    let finding = |unfit: Unfit| {
        let commands = schema.steps.get(unfit.step - 1).into_iter().flatten();
        let words = commands.filter(|command| command.number == unfit.statement);
        Finding {
            place: Place::Migration {
                step: steps.get(unfit.step - 1).map_or("", |step| step.name).to_owned(),
                statement: unfit.statement,
                words: words.map(|command| command.words.as_str()).collect(),
            },
            difference: unfit.difference,
        }
    };
    unfit.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [Step<'_>; 1] = [Step {
        name: "0001",
        sql: "CREATE TABLE shop_items (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    }];

    #[test]
    fn a_text_is_translated_once_and_differences_are_told() {
        let translator = Translator::new("shop_", "tollgate/shop", &STEPS).unwrap();
        let text = "SELECT name FROM shop_items WHERE id = ?1";
        let first = translator.statement(text).unwrap();
        assert!(
            first.sql.contains("\"tollgate/shop\".\"shop_items\""),
            "{}",
            first.sql
        );
        assert!(Arc::ptr_eq(&first, &translator.statement(text).unwrap()));
        for (text, says) in [
            (
                "SELECT name FROM shop_items WHERE id = name",
                "differs on PostgreSQL",
            ),
            ("SELECT name FROM core_operations", "no such table or no access"),
            ("SELECT colour FROM shop_items", "no column `colour`"),
        ] {
            let refused = translator.statement(text).unwrap_err().to_string();
            assert!(refused.contains(says), "{text}: {refused}");
        }
    }

    #[test]
    fn migrations_that_differ_are_told_with_their_places() {
        let differs = Step {
            name: "0002",
            sql: "UPDATE shop_items SET id = 1 WHERE name = 1",
        };
        let refused = Translator::new("shop_", "s", &[STEPS[0], differs]).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("step 0002, statement 1 (`UPDATE shop_items"),
            "{said}"
        );
    }
}
