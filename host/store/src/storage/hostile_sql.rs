//! Tests of statements that need more time or memory than a call has.

mod migrations;

use std::time::{Duration, Instant};

use tollgate_core::deadline::{Cancel, Deadline};

use super::access::Namespace;
use super::engine::sqlite::SQL_MEMORY;
use super::engine::steps::MigrationStep;
use super::value::{Statement, Value};
use super::{Database, Session, SqlError};

/// Time in which even a machine under load ends what has 100 ms. Each attack here would take far more.
const ATTACK_TIMEOUT: Duration = Duration::from_secs(5);

fn shop() -> Namespace {
    Namespace::of_pack("shop")
}

fn step(sql: &str) -> MigrationStep {
    MigrationStep {
        name: "0001_init".to_owned(),
        sql: sql.to_owned(),
    }
}

const TABLES: &str = "CREATE TABLE shop_items (id BIGINT PRIMARY KEY, name TEXT NOT NULL)";

struct Place {
    _dir: tempfile::TempDir,
    database: Database,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(&dir.path().join("t.db")).unwrap();
    database.migrate(&shop(), &[step(TABLES)]).unwrap();
    Place { _dir: dir, database }
}

impl Place {
    /// A session inside a component's call that has this much time.
    fn call(&self, time: Duration) -> Session {
        let session = self.database.write_session().unwrap();
        session.begin_write().unwrap();
        session.savepoint().unwrap();
        session.enter(&shop(), &Deadline::after(time, Cancel::default()));
        session
    }
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

const NUMBERS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000000)";

#[test]
fn no_function_takes_a_call_past_its_deadline() {
    let place = place();
    let long = "z".repeat(900_000);
    let set = format!("{}z", "a".repeat(899_999));
    let ill_formed = "CAST(x'c3' || CAST(?2 AS BLOB) AS TEXT)";
    let distinct: String = ('\u{800}'..'\u{fff}').cycle().take(300_000).collect();
    let half = format!("{}b", "a".repeat(450_000));
    let letters = "a".repeat(999_000);
    let pattern = format!("%{}b%", "a".repeat(250));
    let cases = [
        ("length(ltrim(?1, ?2))".to_owned(), &long, &set),
        ("length(rtrim(?1, ?2))".to_owned(), &long, &set),
        ("length(trim(?1, ?2))".to_owned(), &long, &distinct),
        (format!("length(trim(?1, {ill_formed}))"), &long, &set),
        ("instr(?1, ?2)".to_owned(), &letters, &half),
        ("length(replace(?1, ?2, 'x'))".to_owned(), &letters, &half),
        ("(?1 LIKE ?2)".to_owned(), &letters, &pattern),
        ("length(lower(upper(?1 || i)))".to_owned(), &long, &pattern),
    ];
    for (call, one, two) in cases {
        let session = place.call(Duration::from_millis(200));
        let started = Instant::now();
        let sql =
            format!("{NUMBERS} SELECT max({call} + i) FROM n WHERE ?2 <> ''").replace("LIMIT 2000000", "");
        let done = session
            .components()
            .query(&shop(), &sql, &[text(one.clone()), text(two.clone())]);
        assert!(matches!(done, Err(SqlError::Interrupted)), "{call}: {done:?}");
        assert!(
            started.elapsed() < ATTACK_TIMEOUT,
            "{call}: {:?}",
            started.elapsed()
        );
    }
}

/// Each of these asks for hundreds of megabytes.
const GREEDY: &[&str] = &[
    "SELECT count(*) FROM (SELECT DISTINCT ?1 || i FROM n)",
    "SELECT count(*) FROM (SELECT ?1 || i AS t FROM n ORDER BY t LIMIT 1000000)",
    "SELECT count(*) FROM (SELECT ?1 || i AS t, count(*) FROM n GROUP BY t)",
    "SELECT count(*) FROM (SELECT ?1 || i FROM n UNION SELECT ?1 || i FROM n)",
    ", m(t) AS (SELECT ?1 || i FROM n) SELECT count(*) FROM m AS a, m AS b WHERE a.t > b.t",
    "SELECT max(a) FROM (SELECT last_value(?1 || i) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS a FROM n)",
    "SELECT count(*) FROM n WHERE ?1 || i IN (SELECT ?1 || i FROM n)",
    "SELECT count(DISTINCT ?1 || i) FROM n",
];

#[test]
fn no_statement_takes_more_memory_than_a_call_has() {
    let place = place();
    for sql in GREEDY {
        let session = place.call(Duration::from_secs(60));
        let sql = format!("{NUMBERS} {sql}");
        for _ in 0..3 {
            let before = super::memory::held();
            let done = session
                .components()
                .query(&shop(), &sql, &[text("x".repeat(1_000))]);
            assert!(matches!(done, Err(SqlError::Memory)), "{sql}: {done:?}");
            let said = done.unwrap_err().to_string();
            assert!(said.contains("15 MiB"), "{said}");
            let most = super::memory::take_peak() - before;
            assert!(most <= SQL_MEMORY.cast_signed() + (2 << 20), "{sql}: {most}");
            assert!(
                session.in_transaction(),
                "an interrupted query costs nothing else"
            );
        }
        // The session still works, for the component and for the host.
        let insert = "INSERT INTO shop_items (id, name) VALUES (1, 'a')";
        assert_eq!(session.components().execute(&shop(), insert, &[]).unwrap(), 1);
        session.leave();
        session.release().unwrap();
        session.rollback().unwrap();
    }
}

#[test]
fn a_single_allocation_past_the_budget_undoes_the_call_and_nothing_before_it() {
    let place = place();
    let session = place.database.write_session().unwrap();
    for round in 0..20 {
        session.begin_write().unwrap();
        session.savepoint().unwrap();
        session.enter(
            &shop(),
            &Deadline::after(Duration::from_secs(60), Cancel::default()),
        );
        let insert = "INSERT INTO shop_items (id, name) VALUES (?1, 'a')";
        session
            .components()
            .execute(&shop(), insert, &[Value::Integer(round)])
            .unwrap();
        // A hundred long values side by side, without a jump between them.
        let columns: Vec<String> = (0..99).map(|column| format!("?1 || {column}")).collect();
        let sql = format!("SELECT {}", columns.join(", "));
        let done = session
            .components()
            .query(&shop(), &sql, &[text("x".repeat(900_000))]);
        assert!(matches!(done, Err(SqlError::Memory)), "{done:?}");
        session.leave();
        if session.in_transaction() {
            session.undo().unwrap();
            session.commit().unwrap();
        }
        session.end_turn();
    }
    session.begin_write().unwrap();
    session.enter(
        &shop(),
        &Deadline::after(Duration::from_secs(60), Cancel::default()),
    );
    let rows = session
        .components()
        .query(&shop(), "SELECT count(*) FROM shop_items", &[])
        .unwrap();
    assert!(matches!(rows[0][0], Value::Integer(0)), "{rows:?}");
    session.leave();
    session.rollback().unwrap();
}

#[test]
fn rows_on_their_way_count_as_memory() {
    let place = place();
    let session = place.call(Duration::from_secs(60));
    let nulls = vec!["NULL"; 99].join(", ");
    let sql = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9999) SELECT i, {nulls} FROM n"
    );
    let done = session.components().query(&shop(), &sql, &[]);
    assert!(
        matches!(done, Err(SqlError::TooLarge(_) | SqlError::Memory)),
        "{done:?}"
    );
    // Earlier results are gone.
    for _ in 0..20 {
        let sql = format!("{NUMBERS} SELECT ?1 || i FROM n LIMIT 30");
        let rows = session
            .components()
            .query(&shop(), &sql, &[text("x".repeat(100_000))])
            .unwrap();
        assert_eq!(rows.len(), 30);
    }
}

#[test]
fn a_call_may_change_more_rows_than_fit_into_its_memory() {
    let place = place();
    let session = place.call(Duration::from_secs(60));
    let insert = format!(
        "INSERT INTO shop_items {} SELECT i, ?1 FROM n",
        NUMBERS.replace("2000000", "9000")
    );
    session
        .components()
        .execute(&shop(), &insert, &[text("x".repeat(3_000))])
        .unwrap();
    session.leave();
    session.release().unwrap();
    session.commit().unwrap();
    drop(session);
    for round in ["y", "z"] {
        let session = place.call(Duration::from_secs(60));
        let before = super::memory::held();
        let update = "UPDATE shop_items SET name = ?1 || substr(name, 2)";
        assert_eq!(
            session
                .components()
                .execute(&shop(), update, &[text(round)])
                .unwrap(),
            9_000
        );
        assert!(super::memory::take_peak() - before < SQL_MEMORY.cast_signed());
        session.leave();
        session.undo().unwrap();
        session.commit().unwrap();
    }
    let session = place.call(Duration::from_secs(60));
    let rows = session
        .components()
        .query(
            &shop(),
            "SELECT count(*) FROM shop_items WHERE name LIKE 'x%'",
            &[],
        )
        .unwrap();
    assert!(matches!(rows[0][0], Value::Integer(9_000)), "{rows:?}");
}

#[test]
fn large_statements_are_not_kept() {
    let place = place();
    let before = super::memory::held();
    for number in 0..60 {
        let session = place.call(Duration::from_secs(60));
        let terms: Vec<String> = (0..4_000).map(|term| format!("{}", term + number)).collect();
        let sql = format!("SELECT 1 WHERE {number} IN ({}, ?1)", terms.join(", "));
        drop(session.components().query(&shop(), &sql, &[Value::Integer(0)]));
        session.leave();
        session.undo().unwrap();
        session.rollback().unwrap();
    }
    let session = place.call(Duration::from_secs(60));
    for number in 0..200 {
        let terms: Vec<String> = (0..2_000).map(|term| format!("{} + ?1", term + number)).collect();
        let sql = format!("SELECT 1 WHERE {number} IN ({})", terms.join(", "));
        session
            .components()
            .query(&shop(), &sql, &[Value::Integer(0)])
            .unwrap();
    }
    let kept = super::memory::held() - before;
    assert!(kept < 12 << 20, "{kept} bytes are kept");
}

#[test]
fn planning_ends_at_the_deadline_too() {
    let place = place();
    let tables: Vec<String> = (0..60).map(|table| format!("shop_items AS t{table}")).collect();
    let equal: Vec<String> = (1..60)
        .map(|table| format!("t{table}.id = t{}.id AND t{table}.name = t0.name", table - 1))
        .collect();
    let join = format!(
        "SELECT count(*) FROM {} WHERE {}",
        tables.join(", "),
        equal.join(" AND ")
    );
    let ors: Vec<String> = (0..2_500)
        .map(|term| format!("(id = {term} AND name = '{term}')"))
        .collect();
    let or = format!("SELECT count(*) FROM shop_items WHERE {}", pairs(ors, "OR"));
    let values: Vec<String> = (0..12_000).map(|row| format!("({row})")).collect();
    let values = format!("SELECT count(*) FROM (VALUES {})", values.join(", "));
    for sql in [join, or, values] {
        let session = place.call(Duration::from_millis(200));
        let started = Instant::now();
        let _ = session.components().query(&shop(), &sql, &[]);
        assert!(
            started.elapsed() < ATTACK_TIMEOUT,
            "{:?}: {}",
            started.elapsed(),
            &sql[..60]
        );
    }
}

#[test]
fn no_straight_line_of_long_values_passes_the_deadline() {
    let place = place();
    for term in [
        "?1 = ?2",
        "CAST(?1 AS REAL) = ?2",
        "length(?1) = ?2",
        "?1 || ?1 = ?2",
    ] {
        let terms: Vec<String> = (0..1_500)
            .map(|at| term.replace("= ", &format!("= {at} || ")))
            .collect();
        // As many in one column as the reader takes, and as many columns.
        let columns: Vec<String> = terms.chunks(15).map(|terms| terms.join(" OR ")).collect();
        let sql = format!("SELECT {}", columns.join(", "));
        let params = [text("0".repeat(900_000)), text("0".repeat(900_000))];
        let session = place.call(Duration::from_millis(200));
        let started = Instant::now();
        let done = session.components().query(&shop(), &sql, &params);
        match done {
            Err(SqlError::TooLarge(said)) => assert!(said.contains("this many terms"), "{term}: {said}"),
            // A busy machine gets to the deadline first.
            Err(SqlError::Interrupted) => {}
            done => panic!("{term}: {done:?}"),
        }
        assert!(
            started.elapsed() < ATTACK_TIMEOUT,
            "{term}: {:?}",
            started.elapsed()
        );
        drop(session);
        // Short values are as welcome as ever, and the next statement has its length back.
        let session = place.call(ATTACK_TIMEOUT);
        let short = [text("0"), text("1")];
        assert!(
            session.components().query(&shop(), &sql, &short).is_ok(),
            "{term}"
        );
        assert!(
            session
                .components()
                .query(&shop(), "SELECT ?1 = ?2", &params)
                .is_ok(),
            "{term}"
        );
    }
}

/// Terms joined without a deep tree.
fn pairs(mut terms: Vec<String>, by: &str) -> String {
    while terms.len() > 1 {
        terms = terms
            .chunks(2)
            .map(|pair| match pair {
                [one, two] => format!("({one} {by} {two})"),
                one => one[0].clone(),
            })
            .collect();
    }
    terms.swap_remove(0)
}

#[test]
fn sorting_within_the_budget_takes_no_time() {
    let place = place();
    let session = place.call(Duration::from_secs(60));
    for (rows, by) in [
        (2_500, "?1 || (i * 7919 % 8000)"),
        (60_000, "?1 <> '' AND i * 7919 % 60000"),
    ] {
        let numbers = format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {rows})");
        let sql = format!(
            "{numbers} SELECT i FROM n ORDER BY {by} LIMIT 1 OFFSET {}",
            rows - 2
        );
        let started = Instant::now();
        let done = session
            .components()
            .query(&shop(), &sql, &[text("x".repeat(1_000))]);
        assert!(done.is_ok(), "{by}: {done:?}");
        assert!(
            started.elapsed() < ATTACK_TIMEOUT,
            "{by}: {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn a_row_of_long_values_is_counted_before_it_is_copied() {
    let place = place();
    let session = place.call(ATTACK_TIMEOUT);
    let sql = format!("SELECT {}", vec!["?1"; 100].join(", "));
    let done = session
        .components()
        .query(&shop(), &sql, &[text("x".repeat(999_000))]);
    assert!(
        matches!(&done, Err(SqlError::TooLarge(said)) if said.contains("4194304")),
        "{done:?}"
    );
}

#[test]
fn what_with_names_can_be_counted_and_tables_of_others_cannot() {
    let place = place();
    let session = place.call(ATTACK_TIMEOUT);
    for sql in [
        "WITH r AS (SELECT id FROM shop_items GROUP BY id) SELECT count(*) FROM r",
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT 1 FROM t",
        "WITH v(a) AS (VALUES (1), (2)) SELECT count(*) FROM v",
        "SELECT EXISTS (WITH t AS (SELECT name FROM shop_items LIMIT 1) SELECT 1 FROM t AS x, t AS y)",
    ] {
        assert!(session.components().query(&shop(), sql, &[]).is_ok(), "{sql}");
    }
    for sql in [
        "SELECT count(*) FROM core_operations",
        "WITH core_operations AS (SELECT 1) SELECT count(*) FROM core_operations",
        "SELECT (WITH r AS (SELECT 1) SELECT count(*) FROM r), count(*) FROM core_envelopes",
    ] {
        let done = session.components().query(&shop(), sql, &[]);
        assert!(matches!(done, Err(SqlError::Refused(_))), "{sql}: {done:?}");
    }
}

#[test]
fn a_batch_that_runs_out_of_memory_leaves_nothing() {
    let place = place();
    let session = place.call(Duration::from_secs(60));
    let insert = Statement {
        sql: "INSERT INTO shop_items (id, name) VALUES (1, 'a')".to_owned(),
        params: Vec::new(),
    };
    let greedy = Statement {
        sql: format!("INSERT INTO shop_items {NUMBERS} SELECT DISTINCT i, ?1 || i FROM n ORDER BY 2"),
        params: vec![text("x".repeat(1_000))],
    };
    let done = session.components().batch(&shop(), &[insert, greedy]);
    assert!(matches!(done, Err(SqlError::Memory)), "{done:?}");
    session.leave();
    if session.in_transaction() {
        session.undo().unwrap();
        session.rollback().unwrap();
    }
    session.end_turn();
    let session = place.call(Duration::from_secs(60));
    let rows = session
        .components()
        .query(&shop(), "SELECT count(*) FROM shop_items", &[])
        .unwrap();
    assert!(matches!(rows[0][0], Value::Integer(0)), "{rows:?}");
}
