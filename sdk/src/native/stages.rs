//! Sessions that check arguments, and sessions with the tables of an earlier version.

use std::ops::Range;

use rusqlite::Connection;

use super::{Session, open};
use crate::{Migration, Pack};

impl Session {
    /// Refuses arguments that do not fit the schema of the tool, as the gate does before it runs a tool. Patterns, and schemas that
    /// use all of JSON Schema, are left to the host.
    ///
    /// ```
    /// # use tollgate_sdk::{Cx, Pack, ToolError, native::Session, tools};
    /// # #[derive(serde::Serialize, schemars::JsonSchema)]
    /// # pub struct Listed {}
    /// tollgate_sdk::tool! {
    ///     /// List notes.
    ///     read "List notes" fn notes_list(
    ///         _cx: &Cx<'_>,
    ///         /// Maximum number of notes, 1 to 100.
    ///         #[schemars(range(min = 1, max = 100))]
    ///         limit: u32,
    ///     ) -> Result<Listed, ToolError> {
    ///         let _ = limit;
    ///         Ok(Listed {})
    ///     }
    /// }
    /// const PACK: Pack = Pack { name: "notes", tools: tools![notes_list], ..Pack::EMPTY };
    ///
    /// let session = Session::new(&PACK).checked();
    /// let refusal = session.call("notes_list", r#"{"limit": 0}"#).unwrap_err();
    /// assert_eq!(refusal.code, "INVALID_ARGUMENTS");
    /// assert_eq!(refusal.blockers[0].message, "0 is less than the minimum of 1");
    /// ```
    #[must_use]
    pub fn checked(mut self) -> Session {
        self.is_checked = true;
        self
    }

    /// The pack over an empty database after its first migrations only, as a version before had it. [`migrate`](Session::migrate)
    /// applies the others to the rows that are there.
    ///
    /// ```
    /// # use tollgate_sdk::{Migration, Pack, native::Session};
    /// const PACK: Pack = Pack {
    ///     name: "notes",
    ///     migrations: &[
    ///         Migration { name: "0001_init", sql: "CREATE TABLE notes_notes (text TEXT NOT NULL);" },
    ///         Migration { name: "0002_tag", sql: "ALTER TABLE notes_notes ADD COLUMN tag TEXT NOT NULL DEFAULT 'none';" },
    ///     ],
    ///     ..Pack::EMPTY
    /// };
    /// let session = Session::migrated_to(&PACK, 1);
    /// session.sql("INSERT INTO notes_notes (text) VALUES ('old')");
    /// session.migrate();
    /// assert_eq!(session.sql("SELECT text FROM notes_notes WHERE tag = 'none'").len(), 1);
    /// ```
    ///
    /// # Panics
    /// If a migration fails.
    #[must_use]
    pub fn migrated_to(pack: &'static Pack, migrations: usize) -> Session {
        Session::open_as(pack.name, pack, open(), migrations)
    }

    /// Applies the migrations that the session was opened without.
    ///
    /// # Panics
    /// If a migration fails.
    pub fn migrate(&self) {
        let missing = self.migrated.get()..self.pack.migrations.len();
        self.pragma("query_only", "OFF");
        migrate(&self.backend.db, self.pack.name, self.pack.migrations, missing);
        self.migrated.set(self.pack.migrations.len());
    }
}

/// Applies some of a pack's migrations to a database, read and printed as the host does, and gives the reader of its
/// statements.
pub(super) fn migrate(
    db: &Connection,
    owner: &str,
    migrations: &[Migration],
    which: Range<usize>,
) -> tollgate_sql::Reader {
    let prefix = format!("{}_", owner.replace('-', "_"));
    let steps = migrations.iter().map(|step| tollgate_sql::Step {
        name: step.name,
        sql: step.sql,
    });
    let schema = tollgate_sql::schema::read(&prefix, steps)
        .unwrap_or_else(|problems| panic!("migrations of {owner} cannot be run: {problems}"));
    let steps = migrations.iter().zip(&schema.steps);
    for (step, commands) in steps.skip(which.start).take(which.len()) {
        for sql in commands.iter().filter_map(|command| command.sql.as_ref()) {
            db.execute_batch(sql)
                .unwrap_or_else(|err| panic!("migration {} fails: {err}", step.name));
        }
    }
    tollgate_sql::Reader::new(&prefix, schema.append_only().clone(), "")
}
