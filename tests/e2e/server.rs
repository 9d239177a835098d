//! A PostgreSQL server on which the tests run, in place of SQLite, if the environment names one.

use std::sync::atomic::{AtomicU32, Ordering};

use postgres::{Client, NoTls, SimpleQueryMessage};

/// Variable with the URL of the server's database.
const SERVER: &str = "TOLLGATE_TEST_DATABASE";

/// The schemas of one host on the server. They go with it.
pub(crate) struct Server {
    database: String,
    schema: String,
}

/// True if tests run on PostgreSQL.
pub(crate) fn on_postgres() -> bool {
    std::env::var_os(SERVER).is_some()
}

impl Server {
    /// Fresh schemas on the server, if there is one.
    pub(crate) fn of_tests() -> Option<Server> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let database = std::env::var(SERVER).ok()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Some(Server {
            database,
            schema: format!("e2e_{}_{number}", std::process::id()),
        })
    }

    /// URL for a host.
    pub(crate) fn url(&self) -> String {
        let joint = if self.database.contains('?') { '&' } else { '?' };
        format!("{}{joint}schema={}", self.database, self.schema)
    }

    /// The first column of a query's rows, in the words that SQLite would have for it.
    pub(crate) fn ask(&self, sql: &str) -> Vec<String> {
        // The client has a runtime of its own, and tests may be within one.
        std::thread::scope(|scope| scope.spawn(|| self.ask_here(sql)).join()).unwrap()
    }

    fn ask_here(&self, sql: &str) -> Vec<String> {
        let mut client = self.client();
        let path = self.schemas(&mut client).join(", ");
        client
            .batch_execute(&format!("SET search_path = {path}"))
            .unwrap();
        let said = client
            .simple_query(sql)
            .unwrap_or_else(|err| panic!("{sql}: {err:?}"));
        let rows = said.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("Null").to_owned()),
            _ => None,
        });
        rows.collect()
    }

    fn client(&self) -> Client {
        let url = self.database.replace("?sslmode=disable", "");
        Client::connect(&url, NoTls).unwrap()
    }

    /// Schemas of the host and its components, in quotes.
    fn schemas(&self, client: &mut Client) -> Vec<String> {
        let sql = "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname = $1 OR starts_with(nspname, $1 || '/')";
        let rows = client.query(sql, &[&self.schema]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = self.client();
                let schemas = self.schemas(&mut client).join(", ");
                if !schemas.is_empty() {
                    // A host that was killed may have a transaction open for a moment.
                    let dropped = client.batch_execute(&format!("DROP SCHEMA {schemas} CASCADE"));
                    assert!(dropped.is_ok() || std::thread::panicking(), "{dropped:?}");
                }
            });
        });
    }
}
