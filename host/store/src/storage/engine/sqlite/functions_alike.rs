//! Tests that the replacement functions give the same results as SQLite's own.

use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::limits::Limit;
use rusqlite::types::Value;

use crate::storage::empty_session;

/// Result of a query, a refusal's text included.
fn outcome(db: &Connection, sql: &str, params: &[Value]) -> Result<Value, String> {
    db.query_row(sql, rusqlite::params_from_iter(params), |row| row.get(0))
        .map_err(|err| err.to_string())
}

const CALLS: &[&str] = &[
    "trim(?1)",
    "ltrim(?1)",
    "rtrim(?1)",
    "trim(?1, ?2)",
    "ltrim(?1, ?2)",
    "rtrim(?1, ?2)",
    "instr(?1, ?2)",
    "replace(?1, ?2, ?3)",
    "?1 LIKE ?2",
    "?1 LIKE ?2 ESCAPE ?3",
    "typeof(trim(?1, ?2))",
    "typeof(replace(?1, ?2, ?3))",
    "typeof(instr(?1, ?2))",
    "instr(CAST(?1 AS TEXT), ?2)",
    "trim(CAST(?1 AS TEXT), CAST(?2 AS TEXT))",
    "rtrim(CAST(?1 AS TEXT), CAST(?2 AS TEXT))",
    "CAST(?1 AS TEXT) LIKE CAST(?2 AS TEXT) ESCAPE CAST(?3 AS TEXT)",
    "replace(CAST(?1 AS TEXT), CAST(?2 AS TEXT), CAST(?3 AS TEXT))",
    "instr(CAST(?1 AS TEXT), CAST(?2 AS TEXT))",
];

fn alike(params: &[Value]) {
    let own = empty_session().unwrap();
    let original = Connection::open_in_memory().unwrap();
    for limit in [
        Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH,
        Limit::SQLITE_LIMIT_LENGTH,
    ] {
        let own = own.sqlite().unwrap().db.limit(limit).unwrap();
        original.set_limit(limit, own).unwrap();
    }
    for call in CALLS {
        // As a blob, so that ill-formed text can be compared.
        for sql in [format!("SELECT {call}"), format!("SELECT CAST({call} AS BLOB)")] {
            let used = (1..=3)
                .filter(|number| sql.contains(&format!("?{number}")))
                .count();
            let expected = outcome(&original, &sql, &params[..used]);
            assert_eq!(
                outcome(&own.sqlite().unwrap().db, &sql, &params[..used]),
                expected,
                "{sql} of {params:.100?}"
            );
        }
    }
}

/// Few letters, so that they meet: both cases, wildcards, letters of two to four bytes, spaces, NUL.
const LETTERS: &[&str] = &[
    "a", "A", "b", "%", "_", "\\", "ä", "Ä", "€", "𝄞", " ", "\0", "1", ".",
];

fn text(longest: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(LETTERS), 0..longest).prop_map(|letters| letters.concat())
}

/// Bytes that are parts of characters as often as characters.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let some = prop::sample::select(vec![
        b'a', b'A', b'%', b'_', b' ', 0, 0x80, 0xa4, 0xbf, 0xc0, 0xc1, 0xc3, 0xe2, 0xed, 0xf0, 0xf8, 0xfc,
        0xff,
    ]);
    prop::collection::vec(some, 0..12)
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => text(12).prop_map(Value::Text),
        4 => text(3).prop_map(Value::Text),
        4 => bytes().prop_map(Value::Blob),
        1 => Just(Value::Null),
        1 => any::<i64>().prop_map(Value::Integer),
        1 => (-200_i64..200).prop_map(Value::Integer),
        1 => prop::num::f64::NORMAL.prop_map(Value::Real),
        1 => (-50.0..50.0_f64).prop_map(|number| Value::Real((number * 4.0).round() / 4.0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn own_functions_give_what_those_of_sqlite_give(params in [value(), value(), value()]) {
        alike(&params);
    }
}

#[test]
fn own_functions_give_what_those_of_sqlite_give_at_the_edges() {
    let text = |text: &str| Value::Text(text.to_owned());
    let long = "a".repeat(3_000);
    for params in [
        [text(""), text(""), text("")],
        [text("aXbX"), text("X"), text("")],
        [text("aXbX"), text(""), Value::Null],
        [text("x"), text("%"), text("%")],
        [text("a_c"), text("a!_c"), text("!")],
        [text("abc"), text("a!"), text("!")],
        [text("abc"), text("%!"), text("!")],
        [text("abc"), text("a%"), text("ab")],
        [text("ABC"), text("abc"), text("a")],
        [text("ÄBC"), text("äbc"), text("ä")],
        [text("a%b"), text("a%%b"), text("%")],
        [text("a_b"), text("a__b"), text("_")],
        [text(&long), text("%a%b%"), text("c")],
        [text(&long), text(&"a".repeat(257)), text("c")],
        [text(&long), text("aa"), text(&long)],
        [
            Value::Blob(vec![0xe4, 0xa4, 0xa4]),
            Value::Blob(vec![0xa4]),
            Value::Blob(vec![0xe4]),
        ],
        [
            Value::Blob(vec![0xa4, 0xa4]),
            Value::Blob(vec![0xa4]),
            Value::Null,
        ],
        [Value::Real(1e300), Value::Integer(0), Value::Real(-0.5)],
        [Value::Null, Value::Null, Value::Null],
    ] {
        alike(&params);
    }
}

#[test]
fn a_replacement_that_is_too_long_is_refused_as_sqlite_does() {
    let own = empty_session().unwrap();
    let params = ["a".repeat(10_000), "a".to_owned(), "b".repeat(1_000)].map(Value::Text);
    let refused = outcome(
        &own.sqlite().unwrap().db,
        "SELECT length(replace(?1, ?2, ?3))",
        &params,
    );
    assert_eq!(refused, Err("string or blob too big".to_owned()));
}
