//! Sessions of a version before, and sessions that check arguments.

use super::{Session, migrate, open};
use crate::Pack;

impl Session {
    /// Refuses arguments that the gate refuses before it runs a tool, with the code `INVALID_ARGUMENTS`: those that do not fit the
    /// tool's schema. Patterns are left to the host.
    #[must_use]
    pub fn checked(self) -> Session {
        self.is_checked.set(true);
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
        let session = Session::open_as(pack.name, pack, open(), migrations);
        session.migrated.set(migrations.min(pack.migrations.len()));
        session
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
