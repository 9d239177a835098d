//! Access to the database, a file or a server: one snapshot, with the same queries for both.

mod file;
mod server;

use std::path::PathBuf;

use anyhow::Context as _;

use crate::server::Server;

/// Columns of a row as text.
pub(crate) type Row = Vec<Option<String>>;

/// One snapshot of a database.
pub(crate) trait Look {
    /// Rows of a query in the SQL that both engines share.
    fn ask(&self, sql: &str) -> anyhow::Result<Vec<Row>>;
    /// Damage that the engine's own check finds in tables and indexes.
    fn damage(&self) -> anyhow::Result<Option<String>>;
}

impl dyn Look + '_ {
    /// The first column of a query's rows.
    pub(crate) fn texts(&self, sql: &str) -> anyhow::Result<Vec<String>> {
        let rows = self.ask(sql)?.into_iter();
        let first = rows.filter_map(|row| row.into_iter().next().flatten());
        Ok(first.collect())
    }

    /// The first two columns of a query's rows.
    pub(crate) fn pairs(&self, sql: &str) -> anyhow::Result<Vec<(String, String)>> {
        let rows = self.ask(sql)?.into_iter().map(|row| {
            let mut columns = row.into_iter().flatten();
            Some((columns.next()?, columns.next()?))
        });
        rows.collect::<Option<_>>().context("a column is missing")
    }

    /// The number that a query returns.
    pub(crate) fn count(&self, sql: &str) -> anyhow::Result<i64> {
        let texts = self.texts(sql)?;
        let number = texts.first().context("a query has no row")?;
        number
            .parse()
            .with_context(|| format!("{number} is not a number"))
    }
}

/// A text literal for a query.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Database of the hosts of one place.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// A file in the data directory.
    File(PathBuf),
    /// A database on a server.
    Server(Server),
}

impl Database {
    /// Takes a snapshot.
    pub(crate) fn look(&self) -> anyhow::Result<Box<dyn Look>> {
        Ok(match self {
            Database::File(path) => Box::new(file::File::open(path)?),
            Database::Server(server) => Box::new(server::Snapshot::open(server)?),
        })
    }

    /// Runs SQL without the triggers, while no host is running.
    pub(crate) fn change(&self, sql: &str) -> anyhow::Result<()> {
        match self {
            Database::File(path) => file::change(path, sql),
            Database::Server(server) => server::change(server, sql),
        }
    }
}
