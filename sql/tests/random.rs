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

/// One of these, as text.
fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    prop::sample::select(texts).prop_map(str::to_owned)
}

/// Conditions and values of some depth.
fn expression() -> impl Strategy<Value = String> + Clone {
    let leaf = one_of(&[
        "a",
        "shop_t.b",
        "\"order\"",
        "1",
        "-1",
        "- 1",
        "2.5",
        "'it''s'",
        "x'00ff'",
        "NULL",
        "TRUE",
        "?1",
        "?2",
        "count(*)",
    ]);
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let operator = one_of(&[
            "=", "<>", "<", ">=", "+", "-", "*", "/", "%", "||", "AND", "OR", "LIKE",
        ]);
        prop_oneof![
            (two.clone(), operator)
                .prop_map(|((one, other), operator)| format!("({one}) {operator} ({other})")),
            two.clone()
                .prop_map(|(one, other)| format!("({one}) BETWEEN ({other}) AND ({one})")),
            two.clone()
                .prop_map(|(one, other)| format!("CASE WHEN {one} THEN {other} ELSE {one} END")),
            two.clone()
                .prop_map(|(one, other)| format!("({one}) IS NOT DISTINCT FROM ({other})")),
            two.clone()
                .prop_map(|(one, other)| format!("({one}, {other}) IN ((1, 2), (?1, 'x'))")),
            two.prop_map(|(one, other)| format!("coalesce({one}, {other})")),
            inner.clone().prop_map(|one| format!("NOT ({one})")),
            inner.clone().prop_map(|one| format!("- ({one})")),
            inner.clone().prop_map(|one| format!("({one}) IS NOT NULL")),
            inner.clone().prop_map(|one| format!("CAST({one} AS BIGINT)")),
            inner
                .clone()
                .prop_map(|one| format!("sum(DISTINCT {one}) FILTER (WHERE {one})")),
            inner
                .clone()
                .prop_map(|one| format!("lag({one}, 1) OVER (PARTITION BY {one} ORDER BY a DESC)")),
            inner
                .clone()
                .prop_map(|one| format!("(SELECT max(b) FROM shop_u WHERE {one} LIMIT 1)")),
            inner.prop_map(|one| format!("EXISTS (SELECT 1 FROM shop_u AS u WHERE {one})")),
        ]
    })
}

/// Whole statements of the subset.
fn statement_of_the_subset() -> impl Strategy<Value = String> {
    let with = one_of(&[
        "",
        "",
        "WITH x AS (SELECT 1 AS a) ",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9), m AS (VALUES (1, 2)) ",
    ]);
    let tail = one_of(&[
        "",
        " ORDER BY a DESC NULLS LAST, b",
        " LIMIT 5 OFFSET ?1",
        " GROUP BY a, b HAVING count(*) > 1",
    ]);
    let join = one_of(&[
        "",
        " JOIN shop_u AS u ON u.a = shop_t.a",
        " LEFT JOIN shop_u USING (a, b)",
        " CROSS JOIN shop_u",
    ]);
    let more = one_of(&["", " UNION ALL SELECT 1, 2", " EXCEPT VALUES (1, 2)"]);
    let conflict = one_of(&[
        "",
        " ON CONFLICT DO NOTHING",
        " ON CONFLICT (a) DO UPDATE SET b = excluded.b WHERE shop_t.b <> 1",
    ]);
    let returning = one_of(&["", " RETURNING *", " RETURNING a AS x, b"]);
    let query = (with.clone(), expression(), join, expression(), more, tail).prop_map(
        |(with, item, join, condition, more, tail)| {
            let tail = if more.is_empty() || !tail.contains("GROUP") {
                tail
            } else {
                String::new()
            };
            format!("{with}SELECT DISTINCT {item} AS v, b FROM shop_t{join} WHERE {condition}{more}{tail}")
        },
    );
    let insert = (with.clone(), expression(), conflict, returning.clone()).prop_map(
        |(with, value, conflict, returning)| {
            format!("{with}INSERT INTO shop_t (a, b) VALUES ({value}, 1), (?1, ?2){conflict}{returning}")
        },
    );
    let update = (with.clone(), expression(), expression(), returning.clone()).prop_map(
        |(with, value, condition, returning)| {
            format!("{with}UPDATE shop_t AS t SET a = {value}, b = 1 WHERE {condition}{returning}")
        },
    );
    let delete = (with, expression(), returning).prop_map(|(with, condition, returning)| {
        format!("{with}DELETE FROM shop_t WHERE {condition}{returning}")
    });
    prop_oneof![3 => query, 1 => insert, 1 => update, 1 => delete]
}

/// Whole statements of migrations.
fn definition_of_the_subset() -> impl Strategy<Value = String> {
    let kind = one_of(&["TEXT", "BIGINT", "INTEGER", "DOUBLE", "REAL", "BLOB"]);
    let rule = prop_oneof![
        one_of(&[
            "NOT NULL",
            "NULL",
            "UNIQUE",
            "PRIMARY KEY",
            "DEFAULT 'x'",
            "DEFAULT -1",
            "DEFAULT (1 + 1)",
            "REFERENCES shop_u",
            "REFERENCES shop_u (a) ON DELETE CASCADE ON UPDATE NO ACTION",
        ]),
        expression().prop_map(|condition| format!("CHECK ({condition})")),
    ];
    let column = (kind, prop::collection::vec(rule, 0..3));
    let columns = prop::collection::vec(column, 1..5).prop_map(|columns| {
        let columns = columns.iter().enumerate();
        let columns: Vec<String> = columns
            .map(|(number, (kind, rules))| format!("c{number} {kind} {}", rules.join(" ")))
            .collect();
        columns.join(", ")
    });
    let constraint = one_of(&[
        "",
        ", UNIQUE (c0)",
        ", CONSTRAINT k PRIMARY KEY (c0)",
        ", CHECK (c0 <> 'x')",
        ", FOREIGN KEY (c0) REFERENCES shop_u (a)",
    ]);
    let table = (columns, constraint)
        .prop_map(|(columns, constraint)| format!("CREATE TABLE shop_t ({columns}{constraint})"));
    let index = expression()
        .prop_map(|condition| format!("CREATE UNIQUE INDEX shop_i ON shop_t (a, b DESC) WHERE {condition}"));
    let other = one_of(&[
        "CREATE TABLE IF NOT EXISTS shop_t (a TEXT)",
        "CREATE INDEX IF NOT EXISTS shop_i ON shop_t (a ASC)",
        "ALTER TABLE shop_t ADD COLUMN a TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE shop_t RENAME TO shop_u",
        "ALTER TABLE shop_t RENAME COLUMN a TO b",
        "ALTER TABLE shop_t DROP COLUMN a",
        "DROP TABLE IF EXISTS shop_t",
        "DROP INDEX shop_i",
        "INSERT INTO shop_t DEFAULT VALUES",
    ]);
    prop_oneof![3 => table, 1 => index, 1 => other, 1 => statement_of_the_subset()]
}

/// Printed form of a migration with one statement.
fn defined(text: &str) -> Result<String, String> {
    let step = tollgate_sql::Step {
        name: "0001",
        sql: text,
    };
    let schema = tollgate_sql::schema::read("shop_", [step]).map_err(|problems| problems.to_string())?;
    let sql = schema.steps[0][0].sql.clone();
    // Tables are STRICT because the host says so, and nobody else may.
    sql.map(|sql| sql.trim_end_matches(" STRICT").to_owned())
        .ok_or_else(|| "nothing is printed".to_owned())
}

fn any_words() -> impl Strategy<Value = String> {
    prop_oneof![words(), statement_of_the_subset(), definition_of_the_subset()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whole_statements_are_read_and_read_back_the_same(text in statement_of_the_subset()) {
        let none = BTreeSet::new();
        let owner = Owner { prefix: "shop_", append_only: &none };
        if let Err(refusal) = statement(&text, owner) {
            // A function may be out of place, or a bound passed; the words are all in their place.
            let said = refusal.to_string();
            prop_assert!(!said.contains("is expected"), "{}\n{}", text, said);
        }
        printed(&text);
    }

    #[test]
    fn whole_migrations_are_printed_as_they_are_read_back(text in definition_of_the_subset()) {
        if let Ok(first) = defined(&text) {
            prop_assert_eq!(defined(&first), Ok(first.clone()), "{}", text);
        }
    }

    #[test]
    fn statements_that_are_cut_and_mixed_are_read_or_refused(
        one in any_words(), other in any_words(), at in 0_usize..400, from in 0_usize..400,
    ) {
        let head: String = one.chars().take(at).collect();
        let tail: String = other.chars().skip(from).collect();
        let text = format!("{head} {tail}");
        printed(&text);
        let steps = [tollgate_sql::Step { name: "0001", sql: &text }];
        if let Err(problems) = tollgate_sql::schema::read("shop_", steps) {
            let told = problems.to_string();
            prop_assert!(!told.contains("Expected:") && !told.contains(", found:"), "{}", told);
        }
    }
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
