//! Made-up statements: what is printed means what was said, and nothing panics.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use tollgate_sql::read::{Owner, statement};
use tollgate_sql::sqlite;

fn printed(text: &str) -> Option<String> {
    let none = BTreeSet::new();
    let owner = Owner {
        prefix: "shop_",
        append_only: &none,
    };
    let tree = statement(text, owner).ok()?;
    let printed = sqlite::statement(&tree);
    assert_eq!(
        statement(&printed, owner).as_ref(),
        Ok(&tree),
        "{text}\n{printed}"
    );
    Some(printed)
}

/// Values and operators in a row, without parentheses: how they bind is up to who reads them.
fn row_of_operators() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("1"),
        Just("-2"),
        Just("3.5"),
        Just("NULL"),
        Just("'a'"),
        Just("'1'"),
        Just("x'61'"),
        Just("TRUE"),
        Just("0"),
        Just("(SELECT 2)"),
        Just("max(1, 2)"),
        Just("CASE 1 WHEN 1 THEN 2 END"),
        Just("9223372036854775807"),
        Just("-0.0"),
    ];
    let operator = prop_oneof![
        Just("="),
        Just("=="),
        Just("<>"),
        Just("!="),
        Just("<"),
        Just("<="),
        Just(">"),
        Just(">="),
        Just("+"),
        Just("-"),
        Just("*"),
        Just("/"),
        Just("%"),
        Just("||"),
        Just("AND"),
        Just("OR"),
        Just("LIKE"),
        Just("NOT LIKE"),
        Just("IS DISTINCT FROM"),
        Just("IS NOT DISTINCT FROM"),
    ];
    let before = prop_oneof![4 => Just(""), 1 => Just("NOT "), 1 => Just("- ")];
    let after = prop_oneof![
        8 => Just(""), 1 => Just(" IS NULL"), 1 => Just(" IS NOT NULL"), 1 => Just(" IS TRUE"), 1 => Just(" IS NOT FALSE"),
        1 => Just(" IN (1, 2)"), 1 => Just(" NOT IN (NULL, 'a')"), 1 => Just(" BETWEEN 1 AND 2"), 1 => Just(" NOT BETWEEN 'a' AND 3"),
    ];
    let term = (before, value, after).prop_map(|(before, value, after)| format!("{before}{value}{after}"));
    (term.clone(), prop::collection::vec((operator, term), 0..6)).prop_map(|(first, rest)| {
        let rest = rest.iter().map(|(operator, term)| format!(" {operator} {term}"));
        format!("SELECT {first}{}", rest.collect::<String>())
    })
}

fn value(db: &Connection, sql: &str) -> Result<Value, String> {
    db.query_row(sql, [], |row| row.get(0))
        .map_err(|err| err.to_string())
}

fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "SELECT",
        "FROM",
        "WHERE",
        "shop_t",
        "a",
        "b",
        ",",
        "(",
        ")",
        "*",
        "1",
        "'x'",
        "?1",
        "?",
        "=",
        "<",
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "JOIN",
        "LEFT",
        "ON",
        "USING",
        "GROUP",
        "BY",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "UNION",
        "ALL",
        "EXCEPT",
        "WITH",
        "RECURSIVE",
        "AS",
        "VALUES",
        "INSERT",
        "INTO",
        "UPDATE",
        "SET",
        "DELETE",
        "RETURNING",
        "CONFLICT",
        "DO",
        "NOTHING",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "EXISTS",
        "CAST",
        "TEXT",
        "count",
        "max",
        "OVER",
        "PARTITION",
        "ROWS",
        "BETWEEN",
        "LIKE",
        ".",
        "-",
        "+",
        "||",
        "DISTINCT",
        "FILTER",
        "CREATE",
        "TABLE",
        ";",
        "NULLS",
        "FIRST",
        "core_x",
        "DEFAULT",
        "IF",
        "ROW",
        "CURRENT",
        "TRUE",
        "HAVING",
        "INTERSECT",
        "MATERIALIZED",
        "INDEX",
        "ADD",
        "DROP",
        "RENAME",
    ]);
    prop::collection::vec(word, 0..30).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn operators_bind_as_sqlite_binds_them(text in row_of_operators()) {
        let db = Connection::open_in_memory().unwrap();
        if let Some(printed) = printed(&text) {
            let said = value(&db, &text);
            prop_assert_eq!(value(&db, &printed), said, "{}\n{}", text, printed);
        }
    }

    #[test]
    fn words_in_any_order_are_read_or_refused(text in words()) {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE shop_t (a TEXT, b INTEGER)").unwrap();
        if let Some(printed) = printed(&text) {
            // It may be wrong in a way that only an engine knows.
            drop(db.prepare(&printed));
        }
        let steps = [tollgate_sql::Step { name: "0001", sql: &text }];
        drop(tollgate_sql::schema::read("shop_", steps));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
        printed(&text);
        printed(&format!("SELECT {text}"));
        printed(&format!("SELECT * FROM shop_t WHERE a = {text}"));
    }
}
