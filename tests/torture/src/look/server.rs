//! Access to a database on a server.

use std::cell::RefCell;

use postgres::{Client, SimpleQueryMessage};

use super::{Look, Row};
use crate::server::Server;

/// Definitions that queries need and that the server lacks: a function of SQLite, and the check of tables and indexes.
const OWN: &str = "CREATE SCHEMA IF NOT EXISTS torture;
    CREATE OR REPLACE FUNCTION torture.json_extract(text, text) RETURNS text LANGUAGE sql
        RETURN $1::jsonb #>> string_to_array(substr($2, 3), '.');
    CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA torture";
/// Schemas of the host and of its components.
const SCHEMAS: &str = "SELECT string_agg(quote_ident(nspname), ', ' ORDER BY nspname) FROM pg_namespace WHERE nspname LIKE 'tollgate%'";
/// Faulty indexes and tables. A failed check is an error, and reports the same.
const CHECKS: [&str; 2] = [
    "SELECT torture.bt_index_check(i.indexrelid, true) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace JOIN pg_am AS a ON a.oid = c.relam
        WHERE n.nspname LIKE 'tollgate%' AND a.amname = 'btree'",
    "SELECT c.relname || ': ' || v.msg FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace,
        LATERAL torture.verify_heapam(c.oid) AS v WHERE n.nspname LIKE 'tollgate%' AND c.relkind = 'r'",
];

/// A snapshot of a database.
pub(super) struct Snapshot(RefCell<Client>);

impl Snapshot {
    pub(super) fn open(server: &Server) -> anyhow::Result<Snapshot> {
        let mut client = connect(server)?;
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        Ok(Snapshot(RefCell::new(client)))
    }
}

impl Look for Snapshot {
    fn ask(&self, sql: &str) -> anyhow::Result<Vec<Row>> {
        let said = self.0.borrow_mut().simple_query(sql)?;
        let rows = said.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    fn damage(&self) -> anyhow::Result<Option<String>> {
        for check in CHECKS {
            let found = match self.ask(check) {
                Ok(found) => found
                    .into_iter()
                    .flatten()
                    .flatten()
                    .find(|said| !said.is_empty()),
                Err(err) => Some(format!("{err:#}")),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// Runs SQL without the triggers.
pub(super) fn change(server: &Server, sql: &str) -> anyhow::Result<()> {
    let mut client = connect(server)?;
    client.batch_execute("SET session_replication_role = replica")?;
    for statement in sql.split(';') {
        client.batch_execute(statement)?;
    }
    Ok(())
}

/// A session that can access all tables.
fn connect(server: &Server) -> anyhow::Result<Client> {
    let mut client = server.connect()?;
    client.batch_execute(OWN)?;
    let schemas: Option<String> = client.query_one(SCHEMAS, &[])?.get(0);
    let schemas = schemas.unwrap_or_default();
    client.batch_execute(&format!("SET search_path = {schemas}, torture"))?;
    Ok(client)
}
