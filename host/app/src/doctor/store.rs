//! Findings about the database: integrity of the file and of the ledger's chain.

use tollgate_store::data_dir::DataDir;
use tollgate_store::ledger::{heads, trusted};
use tollgate_store::storage::{Database, Session, StoreError};

use super::{Finding, mib};

/// Remedy for faults in a database on a server.
const SERVER_REMEDY: &str = "with psql, as the database's owner: drop the named objects that are not the host's \
     (DROP TRIGGER NAME ON TABLE, DROP TABLE, DROP FUNCTION); for missing or changed objects, stop all hosts and \
     restore a backup (docs/postgresql.md)";

/// Checks the file and verifies the ledger's chain.
pub fn check(data: &DataDir, database: &Database) -> Vec<Finding> {
    let session = match database.read_session() {
        Ok(session) => session,
        Err(err) => return vec![broken(tollgate_core::text::chain(&err))],
    };
    let mut found = match database.is_on_server() {
        true => of_server(&session),
        false => vec![file(data, &session)],
    };
    found.push(ledger(data, &session));
    found.extend(schema(&session, database.is_on_server()));
    found.extend(roles(&session));
    found
}

/// Components whose access to other components' rows is prevented only by the host's SQL parser.
fn roles(session: &Session) -> Option<Finding> {
    match session.without_roles() {
        Err(err) => Some(Finding::problem("roles", err.to_string())),
        Ok(without) if without.is_empty() => None,
        Ok(without) => Some(
            Finding::note(
                "roles",
                format!(
                    "these components have no database role of their own: {}; only the host's SQL checker keeps them out of \
                     other tables",
                    without.join(", ")
                ),
            )
            .remedy(match session.may_make_roles() {
                Ok(true) => "start a host, which creates a role for each component",
                _ => "give the role of storage.url CREATEROLE, so that the next start creates a role for each component",
            }),
        ),
    }
}

fn file(data: &DataDir, session: &Session) -> Finding {
    match session.maintenance().faults() {
        Err(err) => broken(err.to_string()),
        Ok(faults) if !faults.is_empty() => broken(faults.join("; ")),
        Ok(_) => {
            let bytes = data.bytes("tollgate.db") + data.bytes("tollgate.db-wal");
            Finding::ok("database", format!("intact, {}", mib(bytes)))
        }
    }
}

/// Findings about a database on a server, one for each fault, because each has its own remedy.
fn of_server(session: &Session) -> Vec<Finding> {
    let failed = |err: StoreError| vec![Finding::problem("database", tollgate_core::text::chain(&err))];
    match session.maintenance().faults() {
        Err(err) => failed(err),
        Ok(faults) if !faults.is_empty() => {
            let told = faults
                .into_iter()
                .map(|fault| Finding::problem("database", fault).remedy(SERVER_REMEDY));
            told.collect()
        }
        Ok(_) => match session.maintenance().bytes_on_server() {
            Err(err) => failed(err),
            Ok(bytes) => vec![Finding::ok(
                "database",
                format!("on a PostgreSQL server, {}", mib(bytes.unwrap_or_default())),
            )],
        },
    }
}

/// Objects in the database that should not exist, or differ from their definition.
fn schema(session: &Session, is_on_server: bool) -> Vec<Finding> {
    let misplaced = match session.maintenance().misplaced() {
        Ok(misplaced) => misplaced,
        Err(err) => return vec![Finding::problem("schema", tollgate_core::text::chain(&err))],
    };
    let told = misplaced.iter().map(|object| {
        let finding = Finding::problem("schema", object.to_string());
        if is_on_server {
            return finding.remedy(SERVER_REMEDY);
        }
        match (object.is_curable(), object.kind.as_str()) {
            (false, _) => {
                finding.remedy("stop all hosts and restore a backup with `tollgate restore BACKUP --force`")
            }
            (true, "table") => {
                finding.remedy("to drop the table with its rows, run `tollgate doctor --repair`")
            }
            (true, _) => finding.remedy("to fix this, run `tollgate doctor --repair`"),
        }
    });
    told.collect()
}

/// Fixes what [`check`] finds in the schema, and reports it.
pub fn repair(database: &Database) -> Vec<Finding> {
    if database.is_on_server() {
        let not_here = "nothing was changed: tollgate doctor --repair works only on a database file";
        return vec![Finding::problem("repair", not_here).remedy(SERVER_REMEDY)];
    }
    match database.repair() {
        Err(err) => vec![Finding::problem("repair", tollgate_core::text::chain(&err))],
        Ok(done) if done.is_empty() => {
            vec![Finding::ok("repair", "nothing in the schema needs a fix")]
        }
        Ok(done) => {
            let told = done.iter();
            told.map(|object| Finding::note("repair", format!("fixed: {object}")))
                .collect()
        }
    }
}

fn broken(what: String) -> Finding {
    Finding::problem("database", what).remedy(
        "stop all hosts; save the rows that can still be read with `tollgate ledger export`; then restore a backup \
         with `tollgate restore BACKUP --force`, which keeps the damaged data directory under another name",
    )
}

fn ledger(data: &DataDir, session: &Session) -> Finding {
    let keys = match trusted::keys(data, session) {
        Ok(keys) => keys,
        Err(err) => return Finding::problem("ledger", tollgate_core::text::chain(&err)),
    };
    let noted = match heads::newest(data) {
        Ok(noted) => noted,
        Err(err) => return Finding::problem("ledger", format!("{err:#}")),
    };
    match session
        .ledger()
        .verify(noted.as_ref().map(|noted| &noted.head), &keys)
    {
        Err(err) => Finding::problem("ledger", format!("the chain cannot be verified: {err}")),
        Ok(verified) => match verified.broken {
            Some(broken) => Finding::problem("ledger", broken.to_string()).remedy(
                "someone changed the ledger; compare it with an export: tollgate ledger verify --head FILE",
            ),
            None if verified.rows == 0 && verified.pruned == 0 => {
                Finding::ok("ledger", "empty: no call has been recorded yet")
            }
            None => {
                let whole = format!(
                    "{} verified; the head is {}:{}",
                    tollgate_core::text::counted(verified.rows, "row"),
                    verified.head.seq,
                    verified.head.hash
                );
                match noted {
                    Some(_) => Finding::ok("ledger", whole),
                    None => Finding::note("ledger", format!("{whole}; {}", heads::NO_HEAD_WARNING)),
                }
            }
        },
    }
}
