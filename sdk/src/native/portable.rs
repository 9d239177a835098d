//! Sessions that refuse SQL that behaves differently on PostgreSQL.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tollgate_sql::postgres::{self, Catalog, Datum, Statement, bind};
use tollgate_sql::read::{Owner, statement};

use super::Session;
use super::storage::steps;
use crate::{DbError, Value};

/// Translation of a pack's statements for PostgreSQL.
#[derive(Debug)]
pub(super) struct Translation {
    catalog: Catalog,
    prefix: String,
    append_only: BTreeSet<String>,
    known: RefCell<HashMap<String, Arc<Statement>>>,
}

impl Session {
    /// Refuses each statement that a host with PostgreSQL refuses: SQL with another meaning there, and parameters of
    /// another type. Hosts with SQLite run such statements. Text with a NUL character passes, although PostgreSQL
    /// cannot store it: callers send such text, and packs need not check for it.
    ///
    /// ```
    /// # use tollgate_sdk::{Cx, Migration, Pack, ToolError, native::Session, params, tools};
    /// # #[derive(serde::Serialize, schemars::JsonSchema)]
    /// # pub struct Found { count: usize }
    /// tollgate_sdk::tool! {
    ///     /// Find notes of a year.
    ///     read "Find notes" fn notes_find(
    ///         cx: &Cx<'_>,
    ///         /// Year of the notes, for example 2026.
    ///         year: i64,
    ///     ) -> Result<Found, ToolError> {
    ///         // The column is TEXT, and the parameter a number.
    ///         let rows = cx.db.query("SELECT text FROM notes_notes WHERE year = ?1", params![year])?;
    ///         Ok(Found { count: rows.len() })
    ///     }
    /// }
    /// const PACK: Pack = Pack {
    ///     name: "notes",
    ///     tools: tools![notes_find],
    ///     migrations: &[Migration {
    ///         name: "0001_init",
    ///         sql: "CREATE TABLE notes_notes (text TEXT NOT NULL, year TEXT NOT NULL);",
    ///     }],
    ///     ..Pack::EMPTY
    /// };
    ///
    /// assert!(Session::new(&PACK).call("notes_find", r#"{"year": 2026}"#).is_ok());
    /// assert!(Session::new(&PACK).portable().call("notes_find", r#"{"year": 2026}"#).is_err());
    /// ```
    ///
    /// # Panics
    /// If the migrations differ on PostgreSQL.
    #[must_use]
    pub fn portable(mut self) -> Session {
        let prefix = self.backend.storage.prefix();
        let steps = steps(self.pack.migrations);
        // The session ran these migrations, so parsing them succeeds.
        let schema = tollgate_sql::schema::read(&prefix, steps.iter().copied())
            .unwrap_or_else(|problems| panic!("{problems}"));
        let Ok(migrated) = postgres::migrations(&prefix, &schema) else {
            let found = postgres::differences(&prefix, &steps, []).unwrap_or_default();
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            panic!("migrations differ on PostgreSQL: {}", found.join("; "))
        };
        self.backend.storage.translation = Some(Translation {
            catalog: migrated.catalog,
            append_only: schema.append_only().clone(),
            prefix,
            known: RefCell::default(),
        });
        self
    }
}

impl Translation {
    /// Refuses a statement that PostgreSQL would not run, or would not run with these values.
    pub(super) fn check(&self, sql: &str, params: &[Value]) -> Result<(), DbError> {
        let translated = self.statement(sql)?;
        for parameter in &translated.parameters {
            let value = params.get(usize::from(parameter.number) - 1);
            // NUL comes from the caller's text and is not a fault of the pack's SQL.
            if matches!(value, Some(Value::Text(text)) if text.contains('\0')) {
                continue;
            }
            bind(parameter, value.map_or(Datum::Null, datum)).map_err(refused)?;
        }
        Ok(())
    }

    fn statement(&self, sql: &str) -> Result<Arc<Statement>, DbError> {
        if let Some(known) = self.known.borrow().get(sql) {
            return Ok(Arc::clone(known));
        }
        let owner = Owner {
            prefix: &self.prefix,
            append_only: &self.append_only,
        };
        let tree = statement(sql, owner).map_err(refused)?;
        let translated = Arc::new(self.catalog.statement(&tree).map_err(refused)?);
        self.known
            .borrow_mut()
            .insert(sql.to_owned(), Arc::clone(&translated));
        Ok(translated)
    }
}

fn refused(reason: impl std::fmt::Display) -> DbError {
    DbError::Refused(format!("on PostgreSQL: {reason}"))
}

fn datum(value: &Value) -> Datum<'_> {
    match value {
        Value::Null => Datum::Null,
        Value::Integer(number) => Datum::Integer(*number),
        Value::Real(number) => Datum::Real(*number),
        Value::Text(text) => Datum::Text(Cow::Borrowed(text)),
        Value::Blob(bytes) => Datum::Blob(Cow::Borrowed(bytes)),
    }
}
