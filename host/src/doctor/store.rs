//! The database: whether the file is whole, and the ledger's chain with it.

use super::{Finding, mib};
use crate::data_dir::DataDir;
use crate::ledger::key::LedgerKey;
use crate::storage::{Database, Session};

/// Looks at the file and follows the ledger's chain.
pub fn check(data: &DataDir, database: &Database) -> Vec<Finding> {
    let session = match database.read_session() {
        Ok(session) => session,
        Err(err) => return vec![broken(crate::text::chain(&err))],
    };
    vec![file(data, &session), ledger(data, &session)]
}

fn file(data: &DataDir, session: &Session) -> Finding {
    match session.faults() {
        Err(err) => broken(err.to_string()),
        Ok(faults) if !faults.is_empty() => broken(faults.join("; ")),
        Ok(_) => {
            let bytes = data.bytes("tollgate.db") + data.bytes("tollgate.db-wal");
            Finding::ok("database", format!("whole, {}", mib(bytes)))
        }
    }
}

fn broken(what: String) -> Finding {
    Finding::problem("database", what).remedy(
        "stop all hosts, keep a copy of tollgate.db with its -wal, and put a backup in its place; \
         `tollgate ledger export` saves the rows that can still be read",
    )
}

fn ledger(data: &DataDir, session: &Session) -> Finding {
    let keys = match LedgerKey::find(data) {
        Ok(key) => key.map(|key| key.public()).into_iter().collect::<Vec<_>>(),
        Err(err) => return Finding::problem("ledger", crate::text::chain(&err)),
    };
    match session.verify(None, &keys) {
        Err(err) => Finding::problem("ledger", format!("its chain cannot be followed: {err}")),
        Ok(verified) => match verified.broken {
            Some(broken) => Finding::problem("ledger", format!("row {}: {}", broken.seq, broken.what))
                .remedy(
                    "somebody changed the ledger; compare with an export: tollgate ledger verify --head FILE",
                ),
            None => Finding::ok(
                "ledger",
                format!(
                    "{} rows hold together; the head is {}:{}",
                    verified.rows, verified.head.seq, verified.head.hash
                ),
            ),
        },
    }
}
