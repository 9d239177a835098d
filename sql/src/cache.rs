//! Cache of the statements of a component's calls, each parsed once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use crate::postgres::{self, Finding};
use crate::read::{self, Owner};
use crate::refusal::{Problems, Refusal};
use crate::schema::Step;
use crate::sqlite;
use crate::stack;
use crate::tree;

/// Bytes of texts, read and printed, that one generation keeps. There are two generations.
const MAX_BYTES: usize = 1 << 20;
/// Most statements in one generation.
const MAX_STATEMENTS: usize = 1_000;

/// A parsed statement, printed for SQLite.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement {
    /// Printed text.
    pub sql: String,
    /// True if the statement changes rows.
    pub writes: bool,
    /// Names that its WITH clauses define, in lower case. They are not tables.
    pub with: Arc<[String]>,
}

/// Parses and caches the statements of one component's calls. Shared by all sessions that run its calls.
#[derive(Debug)]
pub struct Reader {
    prefix: String,
    append_only: BTreeSet<String>,
    /// Comment in front of every statement.
    lead: String,
    kept: Mutex<Kept<Statement>>,
}

/// A statement printed for an engine.
pub(crate) trait Printed {
    /// Text for the engine.
    fn sql(&self) -> &str;
}

impl Printed for Statement {
    fn sql(&self) -> &str {
        &self.sql
    }
}

/// Cached statements by the component's text, in two generations. A used statement moves to the younger generation.
/// When that is full, the older one is dropped.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    young: HashMap<Box<str>, Arc<T>>,
    old: HashMap<Box<str>, Arc<T>>,
    bytes: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept {
            young: HashMap::new(),
            old: HashMap::new(),
            bytes: 0,
        }
    }
}

impl Reader {
    /// Reader for the component whose tables start with `prefix`. `lead` is a comment or empty.
    #[must_use]
    pub fn new(prefix: &str, append_only: BTreeSet<String>, lead: &str) -> Reader {
        Reader {
            prefix: prefix.to_owned(),
            append_only,
            lead: lead.to_owned(),
            kept: Mutex::default(),
        }
    }

    /// Append-only tables, in lower case.
    #[must_use]
    pub fn append_only(&self) -> &BTreeSet<String> {
        &self.append_only
    }

    /// Parsed statement of a text.
    pub fn statement(&self, text: &str) -> Result<Arc<Statement>, Refusal> {
        if let Some(statement) = self.kept().find(text) {
            return Ok(statement);
        }
        let owner = Owner {
            prefix: &self.prefix,
            append_only: &self.append_only,
        };
        let statement = stack::apart(|| {
            let (read, names) = read::statement_and_names(text, owner)?;
            Ok(Arc::new(Statement {
                sql: [&self.lead, sqlite::statement(&read).as_str()].concat(),
                writes: !matches!(read, tree::Statement::Query(_)),
                with: names.into(),
            }))
        });
        let statement = statement.unwrap_or_else(|| Err(stack::unread()))?;
        self.kept().keep(text, &statement);
        Ok(statement)
    }

    /// Prefix of the component's tables.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// SQL of the component that differs on PostgreSQL: in its migrations, and in the cached statements. At least the
    /// last 1,000 different statements are cached, if their texts have less than 1 MiB in total.
    ///
    /// # Errors
    ///
    /// The problems of the migrations, if they cannot be read.
    pub fn differences(&self, steps: &[Step<'_>]) -> Result<Vec<Finding>, Problems> {
        let texts = self.texts();
        postgres::differences(&self.prefix, steps, texts.iter().map(String::as_str))
    }

    /// Texts of the cached statements, in alphabetical order.
    fn texts(&self) -> Vec<String> {
        let kept = self.kept();
        let texts: BTreeSet<&str> = kept
            .young
            .keys()
            .chain(kept.old.keys())
            .map(|text| &**text)
            .collect();
        texts.into_iter().map(str::to_owned).collect()
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept<Statement>> {
        // The cached values can be parsed again, so the maps stay usable after a panic.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Printed> Kept<T> {
    /// Cached statement of a text.
    pub(crate) fn find(&mut self, text: &str) -> Option<Arc<T>> {
        if let Some(statement) = self.young.get(text) {
            return Some(Arc::clone(statement));
        }
        let statement = self.old.remove(text)?;
        self.keep(text, &statement);
        Some(statement)
    }

    /// Caches the statement of a text.
    pub(crate) fn keep(&mut self, text: &str, statement: &Arc<T>) {
        let bytes = text.len() + statement.sql().len();
        if self.bytes + bytes > MAX_BYTES || self.young.len() == MAX_STATEMENTS {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(text.into(), Arc::clone(statement));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::{MAX_BYTES, MAX_STATEMENTS, Reader};
    use crate::Step;

    fn reader() -> Reader {
        Reader::new("shop_", BTreeSet::new(), "")
    }

    #[test]
    fn a_text_is_read_once() {
        let reader = reader();
        let first = reader.statement("SELECT 1").unwrap();
        assert!(Arc::ptr_eq(&first, &reader.statement("SELECT 1").unwrap()));
        assert!(!Arc::ptr_eq(&first, &reader.statement("SELECT  1").unwrap()));
    }

    #[test]
    fn endless_different_texts_take_bounded_memory_and_what_is_used_stays() {
        let reader = reader();
        let used = reader.statement("SELECT id FROM shop_items").unwrap();
        for number in 0..5 * MAX_STATEMENTS {
            reader
                .statement(&format!("SELECT {number}, '{}'", "x".repeat(5_000)))
                .unwrap();
            if number % 50 == 0 {
                let again = reader.statement("SELECT id FROM shop_items").unwrap();
                assert!(Arc::ptr_eq(&used, &again), "forgotten after {number}");
            }
            let kept = reader.kept();
            let held = kept.young.iter().chain(&kept.old);
            let bytes: usize = held.map(|(text, read)| text.len() + read.sql.len()).sum();
            assert!(bytes <= 2 * MAX_BYTES, "{bytes} bytes");
            assert!(kept.young.len() + kept.old.len() <= 2 * MAX_STATEMENTS);
        }
    }

    #[test]
    fn texts_of_both_generations_are_listed_once() {
        let reader = reader();
        for text in ["SELECT 2", "SELECT 1", "SELECT 2"] {
            reader.statement(text).unwrap();
        }
        assert_eq!(reader.texts(), ["SELECT 1", "SELECT 2"]);
        reader.kept().bytes = MAX_BYTES;
        reader.statement("SELECT 3").unwrap();
        reader.statement("SELECT 2").unwrap();
        assert_eq!(reader.texts(), ["SELECT 1", "SELECT 2", "SELECT 3"]);
    }

    #[test]
    fn statements_that_were_read_are_compared_with_postgresql() {
        let reader = reader();
        let step = Step {
            name: "0001",
            sql: "CREATE TABLE shop_items (id INTEGER PRIMARY KEY, name TEXT)",
        };
        for text in [
            "SELECT id FROM shop_items WHERE name = ?1",
            "SELECT id FROM shop_items WHERE name = 1",
        ] {
            reader.statement(text).unwrap();
        }
        let found = reader.differences(&[step]).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].to_string().contains("name = 1"), "{}", found[0]);
    }

    #[test]
    fn what_is_refused_is_not_kept() {
        let reader = reader();
        for number in 0..100 {
            reader
                .statement(&format!("DROP TABLE shop_{number}"))
                .unwrap_err();
        }
        assert!(reader.kept().young.is_empty() && reader.kept().old.is_empty());
    }
}
