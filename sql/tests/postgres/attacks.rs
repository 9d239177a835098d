//! Hostile statements, which are refused, and hostile texts, which stay texts.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::types::Value;
use tollgate_sql::postgres::{Catalog, migrations};
use tollgate_sql::read::{Owner, statement};
use tollgate_sql::{Step, schema};

use crate::both::{Both, Outcome, on_postgres};
use crate::grammar::{change, query};

const TABLES: &str = "
    CREATE TABLE shop_t (id INTEGER PRIMARY KEY, a BIGINT, s TEXT, b BLOB);
    CREATE TABLE shop_log (id INTEGER PRIMARY KEY, s TEXT NOT NULL) WITH (append_only = true);
    CREATE TABLE shop_words (\"at\" TEXT, \"position\" TEXT, \"end\" BIGINT, \"Order\" TEXT, \"upper\" TEXT, \"user\" TEXT, \"s1\" TEXT);
";

fn shop() -> Both {
    Both::new(
        "shop_",
        &[Step {
            name: "0001",
            sql: TABLES,
        }],
    )
}

/// Texts that the reader refuses, so that no engine is asked.
const REFUSED: &[&str] = &[
    // Out of the role, the transaction and the limits.
    "RESET ROLE",
    "SET ROLE other",
    "SET SESSION AUTHORIZATION postgres",
    "SELECT set_config('role', 'none', false)",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT x",
    "BEGIN",
    "SET LOCAL statement_timeout = 0",
    "SELECT set_config('statement_timeout', '0', true)",
    "SELECT 1; SELECT 2",
    // What is others'.
    "SELECT * FROM core.operations",
    "SELECT op_id FROM core_operations",
    "INSERT INTO core.operations (a) VALUES (1)",
    "SELECT * FROM other.other_t",
    "SELECT * FROM other_t",
    "SELECT * FROM \"shop_t\"\".x\"",
    "SELECT query_to_xml('select 1', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT * FROM ts_stat('select 1')",
    "SELECT 'core.operations'::regclass",
    "SELECT CAST('core.operations' AS regclass)",
    "SELECT has_table_privilege('core.operations', 'select')",
    // Names, people and settings.
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT * FROM pg_class",
    "SELECT rolname FROM pg_roles",
    "SELECT rolpassword FROM pg_authid",
    "SELECT query FROM pg_stat_activity",
    "SELECT pg_get_functiondef(1)",
    "SELECT version()",
    "SELECT inet_server_addr()",
    "SELECT current_setting('data_directory')",
    "SELECT pg_database_size('postgres')",
    // Time and locks.
    "SELECT pg_sleep(10)",
    "SELECT pg_advisory_lock(1)",
    "LOCK TABLE shop_t",
    "SELECT * FROM shop_t FOR UPDATE",
    "SELECT * FROM shop_t FOR SHARE",
    // Channels, and what would stay.
    "LISTEN x",
    "NOTIFY x",
    "SELECT pg_notify('x', 'y')",
    "SELECT pg_logical_emit_message(false, 'x', 'y')",
    "SELECT pg_export_snapshot()",
    "SELECT lo_creat(1)",
    "SELECT lo_from_bytea(0, x'00')",
    "GRANT ALL ON shop_t TO PUBLIC",
    "ANALYZE",
    "PREPARE x AS SELECT 1",
    "DEALLOCATE ALL",
    "CREATE TEMP TABLE shop_x (a TEXT)",
    "CREATE TABLE shop_x (a TEXT)",
    "CREATE FUNCTION shop_x() RETURNS text LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE shop_t ADD COLUMN x TEXT",
    "COMMENT ON TABLE shop_t IS 'x'",
    "TRUNCATE shop_t",
    // Code, files and other backends.
    "DO $$ BEGIN END $$",
    "COPY shop_t TO STDOUT",
    "COPY shop_t TO '/tmp/x'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_cancel_backend(1)",
    // Memory and time.
    "SELECT repeat('x', 300000000)",
    "SELECT * FROM generate_series(1, 2000000)",
    // Shapes.
    "EXPLAIN SELECT 1",
    "MERGE INTO shop_t USING shop_t AS o ON true WHEN MATCHED THEN DELETE",
    "TABLE shop_t",
    "SELECT ARRAY[1]",
    "SELECT ROW(1, 2)",
    "SELECT * FROM shop_t, LATERAL (SELECT 1) AS x",
    "INSERT INTO shop_t (a) VALUES (1) ON CONFLICT ON CONSTRAINT x DO NOTHING",
    "SELECT s FROM shop_t WHERE s ~ 'a'",
    "SELECT s FROM shop_t WHERE s SIMILAR TO 'a'",
    "SELECT 'a' COLLATE \"en_US\"",
    "SELECT tollgate.cat('a', 'b')",
    "SELECT pg_catalog.lower('A')",
    "UPDATE shop_log SET s = 'x'",
    "DELETE FROM shop_log",
    // The session.
    "DISCARD ALL",
    "VACUUM",
    "CLUSTER shop_t",
    "CHECKPOINT",
    // Words that engines take apart in different ways.
    "SELECT E'\\''",
    "SELECT U&'\\0027'",
    "SELECT $a$x$a$",
    "SELECT $1",
    "SELECT ?0",
    "SELECT ?101",
    "SELECT 1::text",
    "SELECT CAST('1' AS VARCHAR)",
    "SELECT 'a\0b'",
    "SELECT \u{0430} FROM shop_t",
    "SELECT * FROM s1",
    "SELECT 1 AS a234567890123456789012345678901234567890123456789012345678901234",
];

/// Texts that are of the subset and name what is not there, for either engine.
const UNKNOWN: &[&str] = &[
    "SELECT current_user",
    "SELECT shop_t FROM shop_t",
    "SELECT t FROM shop_t AS t",
    "SELECT t.upper FROM shop_t AS t",
    "SELECT ctid, xmin, tableoid FROM shop_t",
    "SELECT shop_t.ctid FROM shop_t",
    "SELECT s1.s FROM shop_t",
    "SELECT excluded.s FROM shop_t",
    "SELECT (1, 2)",
];

#[test]
fn hostile_texts_are_refused_for_both_engines_alike() {
    let shop = shop();
    for text in REFUSED {
        assert!(!shop.reads(text), "{text}");
    }
    for text in UNKNOWN {
        let (sql, translated) = shop.translate(text);
        assert!(shop.sqlite.prepare(&sql).is_err(), "{sql}");
        assert!(translated.is_err(), "{text}\n{translated:?}");
    }
}

#[test]
fn large_texts_are_refused_for_both_engines_alike() {
    let shop = shop();
    let deep = format!("SELECT {}1{}", "(".repeat(101), ")".repeat(101));
    let wide = format!("SELECT 1 FROM {}", ["shop_t"; 30].join(", "));
    let compound = ["SELECT 1"; 6].join(" UNION ");
    let comments = "SELECT /* a /* b */ 1 */";
    for text in [&deep, &wide, &compound, comments] {
        assert!(!shop.reads(text), "{text}");
    }
}

#[test]
fn hostile_migrations_are_refused_for_both_engines_alike() {
    for sql in [
        "CREATE TABLE shop_x (a TEXT REFERENCES core_operations (op_id))",
        "CREATE TABLE core.x (a TEXT)",
        "CREATE TABLE other_x (a TEXT)",
        "CREATE VIEW shop_v AS SELECT 1",
        "CREATE RULE shop_r AS ON UPDATE TO shop_t DO ALSO DELETE FROM shop_t",
        "CREATE TRIGGER shop_g BEFORE INSERT ON shop_t BEGIN SELECT 1; END",
        "CREATE FUNCTION shop_f() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
        "CREATE TABLE shop_x (a TEXT DEFAULT (version()))",
        "CREATE TABLE shop_x (a VARCHAR)",
        "CREATE TABLE shop_x (a TEXT) INHERITS (core.operations)",
        "CREATE TABLE shop_x AS SELECT 1",
        "CREATE INDEX shop_i ON core_operations (op_id)",
        "CREATE EXTENSION dblink",
        "CREATE TABLE \"shop_x\"\"\" (a TEXT)",
    ] {
        let read = schema::read("shop_", [Step { name: "0001", sql }]);
        assert!(read.is_err(), "{sql}");
    }
    // A column, for the reader; a text, for SQLite; nothing, for PostgreSQL.
    let sql = "CREATE TABLE shop_x (a TEXT DEFAULT current_user)";
    if let Ok(read) = schema::read("shop_", [Step { name: "0001", sql }]) {
        assert!(migrations("shop", &read).is_err(), "{sql}");
    }
}

/// Texts that mean something to one of the engines.
const WORDS: &[&str] = &[
    "'",
    "''",
    "\\",
    "\\'",
    "\\\\'",
    "'; DROP TABLE shop_t; --",
    "\\'; SELECT 1; --",
    "$$",
    "$1",
    "?1",
    "--",
    "/* x",
    "*/",
    "E'",
    "U&'\\0027'",
    "\n",
    "\r\n",
    "\u{1}",
    "\u{2019}",
    "é",
    "\u{202e}",
    "\"",
    "%",
    "_",
    "{}",
    "\u{10ffff}",
];

#[test]
fn texts_stay_texts() {
    let mut shop = shop();
    for setting in ["on", "off"] {
        shop.postgres
            .batch_execute(&format!("SET standard_conforming_strings = {setting}"))
            .unwrap();
        for word in WORDS {
            let quoted = word.replace('\'', "''");
            let text = format!("SELECT '{quoted}', CAST(?1 AS TEXT), '{quoted}' || ?1");
            let came = shop.same(&text, &[Value::Text((*word).to_owned())]);
            let row = [(*word).to_owned(), (*word).to_owned(), format!("{word}{word}")].map(Value::Text);
            assert_eq!(came, Outcome::Rows(vec![row.to_vec()]));
        }
    }
}

#[test]
fn names_stay_names() {
    let mut shop = shop();
    shop.same(
        "INSERT INTO shop_words (\"at\", position, \"end\", \"order\", UPPER, \"user\", s1) VALUES ('a', 'p', 1, 'o', 'u', 'w', 's')",
        &[],
    );
    let rows = shop.same(
        "SELECT \"END\", at, position, \"order\", Upper, \"user\", upper(\"upper\"), s1 FROM shop_words",
        &[],
    );
    assert!(
        matches!(&rows, Outcome::Rows(rows) if rows.len() == 1),
        "{rows:?}"
    );
    shop.same(
        "SELECT w.\"order\" FROM shop_words AS \"select\" JOIN shop_words AS w ON w.s1 = \"select\".s1",
        &[],
    );
    let system = [Step {
        name: "0001",
        sql: "CREATE TABLE shop_x (ctid TEXT)",
    }];
    let read = schema::read("shop_", system).unwrap();
    assert!(migrations("x", &read).is_err());
}

/// Words that translated statements consist of, besides names and functions.
const KNOWN: &[&str] = &[
    "SELECT",
    "DISTINCT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "UNION",
    "ALL",
    "EXCEPT",
    "INTERSECT",
    "VALUES",
    "AS",
    "JOIN",
    "LEFT",
    "RIGHT",
    "FULL",
    "CROSS",
    "ON",
    "AND",
    "OR",
    "NOT",
    "IS",
    "NULL",
    "IN",
    "BETWEEN",
    "ILIKE",
    "ESCAPE",
    "EXISTS",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "WITH",
    "RECURSIVE",
    "DESC",
    "NULLS",
    "FIRST",
    "LAST",
    "OVER",
    "PARTITION",
    "ROWS",
    "CURRENT",
    "ROW",
    "PRECEDING",
    "FOLLOWING",
    "UNBOUNDED",
    "FILTER",
    "COLLATE",
    "COALESCE",
    "NULLIF",
    "VARIADIC",
    "ARRAY",
    "INSERT",
    "INTO",
    "UPDATE",
    "SET",
    "DELETE",
    "CONFLICT",
    "DO",
    "NOTHING",
    "RETURNING",
    "DEFAULT",
    "TRUE",
    "FALSE",
    "GREATEST",
    "BIGINT",
    "INT",
    "DOUBLE",
    "PRECISION",
    "TEXT",
    "BYTEA",
    "BOOLEAN",
    "EXCLUDED",
    "DISTINCT",
    "E",
];

/// Takes texts and names in quotes out, and refuses what remains if it is not known.
fn is_plain(sql: &str) -> Result<(), String> {
    let mut rest = String::new();
    let mut letters = sql.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\'' && letter != '"' {
            rest.push(letter);
            continue;
        }
        let escapes = letter == '\'' && rest.ends_with('E');
        loop {
            match letters.next() {
                None => return Err("a quote is open".to_owned()),
                Some('\\') if escapes => drop(letters.next()),
                Some('\\') => return Err("a backslash stands in a plain text".to_owned()),
                Some(end) if end == letter && letters.peek() == Some(&letter) => drop(letters.next()),
                Some(end) if end == letter => break,
                Some(_) => {}
            }
        }
        rest.push(' ');
    }
    for sign in [";", "--", "/*", "$$", "\\", "#", "@", "~", "!", "&", "|", "^"] {
        if rest.contains(sign) {
            return Err(format!("{sign} stands outside of quotes"));
        }
    }
    let words =
        rest.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '$')));
    for word in words.filter(|word| word.starts_with(|letter: char| letter.is_ascii_alphabetic())) {
        let own = word.trim_end_matches('.').split_at(1);
        let is_name = matches!(own.0, "s" | "w" | "c") && own.1.bytes().all(|digit| digit.is_ascii_digit());
        let is_function = word.starts_with("pg_catalog.") || word.starts_with("tollgate.");
        if !is_name
            && !is_function
            && !KNOWN.contains(&word.trim_end_matches('.').to_ascii_uppercase().as_str())
        {
            return Err(format!("{word} is not known"));
        }
    }
    Ok(())
}

#[test]
fn what_is_printed_consists_of_what_is_known() {
    let tables = crate::random::TABLES;
    let read = schema::read(
        "shop_",
        [Step {
            name: "0001",
            sql: tables,
        }],
    )
    .unwrap();
    let catalog: Catalog = migrations("shop", &read).unwrap().catalog;
    let none = BTreeSet::new();
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(2_000)
    });
    let ran = runner.run(&prop_oneof![query(), change()], |text| {
        let owner = Owner {
            prefix: "shop_",
            append_only: &none,
        };
        let Ok(tree) = statement(&text, owner) else {
            return Ok(());
        };
        if let Ok(translated) = catalog.statement(&tree) {
            prop_assert_eq!(is_plain(&translated.sql), Ok(()), "{}", translated.sql);
            prop_assert!(
                translated.sql.len() < 2_000 + 40 * text.len(),
                "{} bytes of {}",
                translated.sql.len(),
                text.len()
            );
        }
        Ok(())
    });
    ran.unwrap_or_else(|err| panic!("{err}"));
}

#[test]
fn nested_texts_do_not_explode() {
    let shop = shop();
    let mut deep = "?1".to_owned();
    let mut with = "SELECT 1 AS i".to_owned();
    for level in 0..28 {
        deep = format!("coalesce({deep}, CASE WHEN ?2 THEN ?{} ELSE NULL END)", level + 3);
    }
    for _ in 0..5 {
        with = format!(
            "WITH RECURSIVE n (i) AS (SELECT i FROM ({with}) AS q UNION SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n"
        );
    }
    for text in [format!("SELECT CAST({deep} AS TEXT)"), with] {
        let (_, translated) = shop.translate(&text);
        if let Ok(translated) = translated {
            assert!(
                translated.sql.len() < 20 * text.len(),
                "{} bytes of {}",
                translated.sql.len(),
                text.len()
            );
        }
    }
}

#[test]
fn texts_do_not_grow_without_end() {
    let mut shop = shop();
    for text in [
        "WITH RECURSIVE n (i, s) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, s || s FROM n WHERE i < 40) SELECT max(length(s)) FROM n",
        "WITH RECURSIVE n (i, s) AS (SELECT 1, 'x' UNION ALL SELECT i + 1, replace(s, 'x', 'xx') FROM n WHERE i < 40) SELECT max(length(s)) FROM n",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT length(string_agg(replace('xxxxxxxxxx', 'x', '0123456789012345678901234567890123456789012345678901234567890123456789'), '')) FROM n",
    ] {
        let translated = shop
            .translate(text)
            .1
            .unwrap_or_else(|difference| panic!("{text}: {difference}"));
        let came = on_postgres(&mut shop.postgres, &translated, &[]);
        assert!(
            matches!(&came, Outcome::Failed(said) if said.starts_with("54000")),
            "{text}\n{came:?}"
        );
    }
}

#[test]
fn texts_of_many_digits_are_numbers_as_well() {
    let mut shop = shop();
    let long = "9".repeat(200_000);
    for text in [
        long.clone(),
        format!("-{long}"),
        format!("\t +{}12x", "0".repeat(200_000)),
        "9223372036854775807".to_owned(),
        "-9223372036854775808".to_owned(),
        "-9223372036854775809".to_owned(),
        "+".to_owned(),
        "- 5".to_owned(),
        "00-5".to_owned(),
        "abc".to_owned(),
        String::new(),
    ] {
        shop.same("SELECT CAST(CAST(?1 AS TEXT) AS BIGINT)", &[Value::Text(text)]);
    }
}

#[test]
fn rows_of_append_only_tables_stay_whoever_asks() {
    let mut shop = shop();
    shop.same("INSERT INTO shop_log (s) VALUES ('a') RETURNING id, s", &[]);
    for sql in [
        "UPDATE \"shop\".\"shop_log\" SET s = 'b'",
        "DELETE FROM \"shop\".\"shop_log\"",
        "TRUNCATE \"shop\".\"shop_log\"",
    ] {
        let err = shop.postgres.batch_execute(sql).unwrap_err();
        assert_eq!(
            err.code(),
            Some(&postgres::error::SqlState::INTEGRITY_CONSTRAINT_VIOLATION),
            "{sql}: {err:?}"
        );
    }
    shop.same("SELECT s FROM shop_log", &[]);
}
