//! PostgreSQL server for the tests instead of SQLite, if the environment names one.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, mpsc};
use std::thread::JoinHandle;

use postgres::{Client, NoTls, SimpleQueryMessage};
use regex_lite::Regex;

/// Variable with the URL of the server's database.
const SERVER: &str = "TOLLGATE_TEST_DATABASE";

/// Functions of SQLite that queries of tests use.
const FUNCTIONS: &str = "
    CREATE SCHEMA IF NOT EXISTS e2e_functions;
    CREATE OR REPLACE FUNCTION e2e_functions.json_extract(text, text) RETURNS text LANGUAGE sql
        RETURN (SELECT CASE v WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE v #>> '{}' END
            FROM jsonb_path_query_first($1::jsonb, $2::jsonpath) AS v);
    CREATE OR REPLACE FUNCTION e2e_functions.json_array_length(text) RETURNS integer LANGUAGE sql
        RETURN pg_catalog.json_array_length($1::json);
    CREATE OR REPLACE FUNCTION e2e_functions.unixepoch(text) RETURNS double precision LANGUAGE sql
        RETURN extract(epoch FROM clock_timestamp());
    CREATE OR REPLACE FUNCTION e2e_functions.unixepoch(text, text) RETURNS double precision LANGUAGE sql
        RETURN extract(epoch FROM $1::timestamptz);
    CREATE OR REPLACE VIEW e2e_functions.sqlite_master AS
        SELECT relname AS name FROM pg_class WHERE relnamespace::regnamespace::text <> 'e2e_functions' AND pg_table_is_visible(oid);";

/// Schemas of one host on the server, dropped together with this value.
pub(crate) struct Server {
    database: String,
    /// Address for hosts, if it differs from the server's.
    by_way_of: Option<SocketAddr>,
    schema: String,
    /// True for the value that drops the schemas.
    is_owner: bool,
}

impl Server {
    /// Creates schemas on the server, if there is one.
    pub(crate) fn of_tests() -> Option<Server> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        static FUNCTIONS_MADE: Once = Once::new();
        let database = std::env::var(SERVER).ok()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let server = Server {
            database,
            by_way_of: None,
            schema: format!("e2e_{}_{number}", std::process::id()),
            is_owner: true,
        };
        FUNCTIONS_MADE.call_once(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| server.client().batch_execute(FUNCTIONS).unwrap());
            });
        });
        Some(server)
    }

    /// The same schemas for a host on another machine.
    pub(crate) fn for_another(&self) -> Server {
        Server {
            database: self.database.clone(),
            by_way_of: self.by_way_of,
            schema: self.schema.clone(),
            is_owner: false,
        }
    }

    /// URL for a host.
    pub(crate) fn url(&self) -> String {
        let joint = if self.database.contains('?') { '&' } else { '?' };
        let mut database = self.database.clone();
        if let Some(address) = self.by_way_of {
            database = database.replace(self.authority(), &address.to_string());
        }
        format!("{database}{joint}schema={}", self.schema)
    }

    /// Address of the server: `HOST:PORT`.
    pub(crate) fn address(&self) -> SocketAddr {
        self.authority().parse().unwrap()
    }

    /// Makes hosts use another address.
    pub(crate) fn go_by(&mut self, address: SocketAddr) {
        self.by_way_of = Some(address);
    }

    fn authority(&self) -> &str {
        let (_, after) = self.database.split_once("://").unwrap();
        let authority = after.split(['/', '?']).next().unwrap();
        authority.rsplit('@').next().unwrap()
    }

    /// First column of a query's rows, written in SQLite's dialect.
    pub(crate) fn ask(&self, sql: &str) -> Vec<String> {
        // The client has its own runtime, and tests may already run within one.
        std::thread::scope(|scope| scope.spawn(|| self.ask_here(sql)).join()).unwrap()
    }

    fn ask_here(&self, sql: &str) -> Vec<String> {
        let mut client = self.client();
        let mut path = self.schemas(&mut client);
        path.push("e2e_functions".to_owned());
        client
            .batch_execute(&format!("SET search_path = {}", path.join(", ")))
            .unwrap();
        let said = client
            .simple_query(&by_paths(sql))
            .unwrap_or_else(|err| panic!("{sql}: {err:?}"));
        let rows = said.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("Null").to_owned()),
            _ => None,
        });
        rows.collect()
    }

    /// Runs a statement in a transaction that stays open.
    pub(crate) fn hold(&self, sql: &str) -> Held {
        let (url, schema, sql) = (self.plain_url(), self.schema.clone(), sql.to_owned());
        let (release, released) = mpsc::channel::<()>();
        let (done, ran) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut client = Client::connect(&url, NoTls).unwrap();
            let sql = sql.replace("SCHEMA", &schema);
            done.send(client.batch_execute(&format!("BEGIN; {sql}"))).unwrap();
            // Ends when it is dropped.
            let _ = released.recv();
        });
        ran.recv().unwrap().unwrap();
        Held {
            release: Some(release),
            thread: Some(thread),
        }
    }

    fn plain_url(&self) -> String {
        self.database.replace("?sslmode=disable", "")
    }

    fn client(&self) -> Client {
        Client::connect(&self.plain_url(), NoTls).unwrap()
    }

    /// Drops the roles of components, which own nothing.
    fn drop_roles(&self, client: &mut Client) {
        let sql = "SELECT quote_ident(r.rolname) FROM pg_roles AS r JOIN pg_database AS d ON d.datname = current_database()
            WHERE starts_with(r.rolname, 'tollgate_' || to_hex(d.oid::bigint) || '_' || $1 || '/')";
        let roles = client.query(sql, &[&self.schema]).unwrap();
        for role in roles {
            let drop = format!("DROP ROLE {}", role.get::<_, String>(0));
            assert!(client.batch_execute(&drop).is_ok() || std::thread::panicking());
        }
    }

    /// Schemas of the host and its components, in quotes.
    fn schemas(&self, client: &mut Client) -> Vec<String> {
        let sql = "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname = $1 OR starts_with(nspname, $1 || '/')";
        let rows = client.query(sql, &[&self.schema]).unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// An open transaction, rolled back when dropped.
pub(crate) struct Held {
    release: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.release.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// A query that reads JSON by paths, which only SQLite supports with `->>`.
fn by_paths(sql: &str) -> String {
    let arrow = Regex::new(r"(\w+) ->> '(\$[^']*)'").unwrap();
    arrow.replace_all(sql, "json_extract($1, '$2')").into_owned()
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.is_owner {
            return;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut client = self.client();
                let schemas = self.schemas(&mut client).join(", ");
                if !schemas.is_empty() {
                    // A killed host may still write for a moment, and then one of the two has to wait.
                    let drop = format!("DROP SCHEMA {schemas} CASCADE");
                    let dropped = (0..10).find(|_| client.batch_execute(&drop).is_ok());
                    assert!(
                        dropped.is_some() || std::thread::panicking(),
                        "{schemas} are still there"
                    );
                    self.drop_roles(&mut client);
                }
            });
        });
    }
}
