//! The pack called natively over SQLite: the same work without gate, sandbox or ledger.

use std::cell::Cell;
use std::path::Path;

use anyhow::Context as _;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use serde_json::Value;
use task_store::PACK;
use tollgate_sdk::native::{Backend, EPOCH_MS, Session};
use tollgate_sdk::{CallInfo, Cx, DbError, Host, Level, Reply, Row, Transaction, Value as SqlValue};

use crate::workload::{PACK_CONFIG, Request, Tools};

/// The pack over a database file with the server's durability.
pub(crate) struct Native {
    session: Session,
    call: CallInfo,
    count: Cell<i64>,
}

impl Native {
    /// The pack over a new database.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Native> {
        let db = Connection::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.set_prepared_statement_cache_capacity(256);
        // Otherwise SQLite prepares a cached statement again whenever its parameters were cleared.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(Native {
            session: Session::open(&PACK, db),
            call: CallInfo {
                config: PACK_CONFIG.to_owned(),
                ..CallInfo::default()
            },
            count: Cell::new(0),
        })
    }

    /// Runs one tool: a read on a snapshot, a write as a transaction that commits.
    pub(crate) fn run(&self, tool: &str, arguments: &str) -> anyhow::Result<Reply> {
        let entry = PACK.tool(tool).with_context(|| format!("there is no {tool}"))?;
        let transaction = self.backend().begin()?;
        let result = (entry.call)(&Cx::new(self, &self.call), arguments);
        if result.is_ok() {
            transaction.commit()?;
        }
        result.with_context(|| format!("{tool} was refused"))
    }

    fn backend(&self) -> &Backend {
        self.session.backend()
    }
}

impl Tools for Native {
    fn call(&mut self, request: &Request) -> anyhow::Result<Value> {
        let reply = self.run(request.tool, &request.arguments.to_string())?;
        Ok(serde_json::from_str(&reply.structured)?)
    }
}

/// The test backend with ids and replies as long as the server's, and with a running clock.
impl Host for Native {
    fn query(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>, DbError> {
        self.backend().query(sql, params)
    }

    fn execute(&self, sql: &str, params: &[SqlValue]) -> Result<u64, DbError> {
        self.backend().execute(sql, params)
    }

    fn begin(&self) -> Result<Box<dyn Transaction + '_>, DbError> {
        self.backend().begin()
    }

    fn now_ms(&self) -> i64 {
        EPOCH_MS + self.count.get()
    }

    fn new_id(&self, prefix: &str) -> String {
        let count = self.count.get() + 1;
        self.count.set(count);
        format!("{prefix}_{count:026}")
    }

    fn log(&self, _level: Level, _message: &str) {}
}
