//! Targets for changed ledger rows and for exported heads.

use std::cell::OnceCell;
use std::path::Path;

use arbitrary::Unstructured;
use rusqlite::Connection;
use rusqlite::types::Value;
use serde_json::json;
use tempfile::TempDir;
use tollgate_store::ledger::head::ExportedHead;
use tollgate_store::storage::{Database, Operation, Session};

/// Number of rows in the ledger.
const ROWS: i64 = 6;

/// A directory in memory if the system has one, because each attempt is a commit.
pub(crate) fn place() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a directory")
}

struct Fixture {
    session: Session,
    outside: Connection,
    columns: Vec<String>,
    /// Names and statements of the triggers.
    triggers: Vec<(String, String)>,
    _place: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let place = place();
        let path = place.path().join("t.db");
        let database = Database::open(&path).expect("a database");
        let session = database.write_session().expect("a session");
        session.begin_write().expect("nobody else writes");
        for number in 0..ROWS {
            session.ledger().record(&operation(number)).expect("a row");
        }
        session.commit().expect("a commit");
        let outside = raw(&path);
        Fixture {
            session: database.read_session().expect("a session"),
            columns: texts(
                &outside,
                "SELECT name, '' FROM pragma_table_info('core_operations')",
            )
            .into_iter()
            .map(|column| column.0)
            .collect(),
            triggers: texts(
                &outside,
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'core_operations'",
            ),
            outside,
            _place: place,
        }
    }
}

fn raw(path: &Path) -> Connection {
    let outside = Connection::open(path).expect("a connection");
    outside
        .pragma_update(None, "synchronous", "OFF")
        .expect("a setting");
    outside
}

fn texts(db: &Connection, sql: &str) -> Vec<(String, String)> {
    let mut statement = db.prepare(sql).expect("a statement");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.and_then(Iterator::collect).expect("texts")
}

fn operation(number: i64) -> Operation {
    let operation = json!({
        "op_id": format!("op_{number}"), "timestamp": "2026-01-01T00:00:00.000Z", "duration_ms": 0.5,
        "op_type": "mutation", "success": true, "pack": "p", "tool": "t", "effect": "write", "connection": "c",
        "host_id": "h", "args_hash": "a", "error_code": (number == 2).then_some("X"),
    });
    serde_json::from_value(operation).expect("an operation")
}

thread_local! {
    static FIXTURE: OnceCell<Fixture> = const { OnceCell::new() };
}

/// Checks that verification names a changed row, whatever its new content is.
pub(crate) fn rows(bytes: &[u8]) {
    FIXTURE.with(|fixture| {
        let _ = change(fixture.get_or_init(Fixture::new), &mut Unstructured::new(bytes));
    });
}

fn change(fixture: &Fixture, u: &mut Unstructured<'_>) -> arbitrary::Result<()> {
    let seq = u.int_in_range(1..=ROWS)?;
    let column = u.choose(&fixture.columns)?;
    let value = match u.int_in_range(0..=4)? {
        0 => Value::Null,
        1 => Value::Integer(u.arbitrary()?),
        2 => Value::Real(u.arbitrary()?),
        3 => Value::Text(u.arbitrary()?),
        _ => Value::Blob(u.arbitrary()?),
    };
    let get = format!("SELECT {column} FROM core_operations WHERE seq = ?1");
    let before: Value = fixture
        .outside
        .query_row(&get, [seq], |row| row.get(0))
        .expect("the row is there");
    let Ok(changed) = set(fixture, column, seq, &value) else {
        return Ok(());
    };
    let seen = fixture.session.ledger().verify(None, &[]);
    let after: i64 = changed;
    let now: Option<Value> = fixture.outside.query_row(&get, [after], |row| row.get(0)).ok();
    set(fixture, column, after, &before).expect("what was there fits");
    let is_same = now.as_ref() == Some(&before);
    match seen {
        Ok(verified) => match verified.broken {
            Some(broken) => assert!(!is_same, "{column} of row {seq} is what it was: {broken:?}"),
            None => assert!(is_same, "{column} of row {seq} was changed to {now:?} unseen"),
        },
        Err(err) => assert!(!is_same, "{column} of row {seq} is what it was: {err}"),
    }
    let whole = fixture.session.ledger().verify(None, &[]).expect("a ledger");
    assert_eq!(whole.broken, None, "after {column} of row {seq} was put back");
    Ok(())
}

/// Changes a row as anybody with access to the file could: without the triggers, which are created again afterwards.
/// Returns the row's new number.
fn set(fixture: &Fixture, column: &str, seq: i64, value: &Value) -> rusqlite::Result<i64> {
    let changing = fixture.outside.unchecked_transaction()?;
    for (name, _) in &fixture.triggers {
        changing.execute_batch(&format!("DROP TRIGGER {name}"))?;
    }
    let sql = format!("UPDATE core_operations SET {column} = ?1 WHERE seq = ?2 RETURNING seq");
    let seq = changing.query_row(&sql, (value, seq), |row| row.get(0))?;
    for (_, sql) in &fixture.triggers {
        changing.execute_batch(sql)?;
    }
    changing.commit()?;
    Ok(seq)
}

/// Checks that a valid exported head passes with its own key, and survives a round trip as JSON.
pub(crate) fn head(bytes: &[u8]) {
    let Ok(head) = serde_json::from_slice::<ExportedHead>(bytes) else {
        return;
    };
    if let Ok(Some(key)) = head.check(&[]) {
        assert!(head.check(&[key]).is_ok());
    }
    let again = serde_json::to_string(&head).expect("a head is JSON");
    assert_eq!(serde_json::from_str::<ExportedHead>(&again).ok(), Some(head));
}
