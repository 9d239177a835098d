//! Random statements on random values: both engines answer the same.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::types::Value;
use tollgate_sql::{Step, functions};

use crate::both::{Both, Outcome, alike};
use crate::grammar::{change, query};

pub(crate) const TABLES: &str = "
    CREATE TABLE shop_p (n INT PRIMARY KEY, s TEXT);
    CREATE TABLE shop_t (
        id INTEGER PRIMARY KEY, a BIGINT, b BIGINT NOT NULL CHECK (b < 50), r DOUBLE, s TEXT DEFAULT 'Zz', u TEXT NOT NULL UNIQUE, x BLOB,
        CHECK (a <> 13 OR s IS NULL)
    );
    CREATE TABLE shop_u (
        k TEXT PRIMARY KEY, a BIGINT NOT NULL, s TEXT, r DOUBLE, t BIGINT REFERENCES shop_p (n) ON DELETE CASCADE ON UPDATE SET NULL, UNIQUE (a, s)
    );
    CREATE INDEX shop_by_a ON shop_t (a, s DESC);
    CREATE INDEX shop_some ON shop_u (s) WHERE a > 2 AND s <> 'x';
";
const ROWS: &[&str] = &[
    "INSERT INTO shop_p (n, s) VALUES (1, 'one'), (3, NULL), (7, 'Seven'), (12, '')",
    "INSERT INTO shop_t (a, b, r, s, u, x) VALUES (1, 1, 0.25, 'a', 'a', x'00ff'), (NULL, 2, NULL, NULL, 'B', NULL), \
     (3, 7, -1.5, 'B', 'b', x''), (-5, 0, 100, 'É', 'é', x'61'), (7, 7, 2.5, 'it''s', 'b\\c', NULL), (3, -4, 0.5, '', '', x'616263'), \
     (12, 49, -0.75, 'aB ', 'Ab', x'00')",
    "INSERT INTO shop_u (k, a, s, r, t) VALUES ('a', 1, 'a', 0.25, 1), ('B', 3, NULL, NULL, NULL), ('b', 3, 'B', 2.5, 7), \
     ('zz', 12, 'aB ', -1.5, 12), ('_b', -1, 'é', 0, 3)",
];

fn shop() -> Both {
    let mut both = Both::new(
        "shop_",
        &[Step {
            name: "0001",
            sql: TABLES,
        }],
    );
    for rows in ROWS {
        both.same(rows, &[]);
    }
    both
}

fn values() -> impl Strategy<Value = Vec<Value>> {
    let number = prop_oneof![
        Just(Value::Null),
        (0_i64..9).prop_map(Value::Integer),
        Just(Value::Text("3".to_owned()))
    ];
    let text = prop_oneof![
        Just(Value::Null),
        "[aBé%_ ]{0,3}".prop_map(Value::Text),
        Just(Value::Integer(5))
    ];
    let real = prop_oneof![
        Just(Value::Null),
        (-8_i32..8).prop_map(|n| Value::Real(f64::from(n) / 4.0))
    ];
    (number, text, real).prop_map(|(number, text, real)| vec![number, text, real])
}

/// True if engines are known to differ: one of them refuses, and nothing is silently another.
fn is_known(one: &Outcome, other: &Outcome) -> bool {
    // A sum that leaves 64 bits on the way and comes back, in the order in which SQLite adds.
    if matches!(one, Outcome::Failed(why) if why == "integer overflow") {
        return true;
    }
    let Outcome::Failed(other) = other else {
        return matches!(other, Outcome::Refused(_));
    };
    let known = ["22003", "21000", "22025"]
        .iter()
        .any(|code| other.starts_with(code));
    known || (other.starts_with("54000") && matches!(one, Outcome::Failed(_)))
}

/// Both sides refuse what neither can compute.
fn agree(text: &str, one: &Outcome, other: &Outcome) -> bool {
    alike(text, one, other) || is_known(one, other)
}

/// Number of random queries. `TOLLGATE_LONG` asks for more.
fn cases() -> u32 {
    if std::env::var_os("TOLLGATE_LONG").is_some() {
        10_000
    } else {
        1_000
    }
}

#[test]
fn queries_find_the_same_rows() {
    let shop = std::cell::RefCell::new(shop());
    let counts = std::cell::Cell::new((0_u32, 0_u32));
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(cases())
    });
    let ran = runner.run(&(query(), values()), |(text, values)| {
        if !shop.borrow().reads(&text) {
            return Ok(());
        }
        let (one, other) = shop.borrow_mut().run(&text, &values);
        let (all, refused) = counts.get();
        counts.set((all + 1, refused + u32::from(is_known(&one, &other))));
        let translated = shop.borrow().translate(&text).1;
        prop_assert!(
            agree(&text, &one, &other),
            "{text}\n{values:?}\n{translated:?}\nSQLite: {one:?}\nPostgreSQL: {other:?}"
        );
        Ok(())
    });
    ran.unwrap_or_else(|err| panic!("{err}"));
    let (all, refused) = counts.get();

    assert!(
        refused * 2 < all,
        "{refused} of {all} are refused: the test tries little"
    );
}

/// Statements whose words mean more to SQLite than they say.
const TRAPS: &[&str] = &[
    "SELECT id FROM shop_t WHERE a IS DISTINCT FROM TRUE ORDER BY id",
    "SELECT id FROM shop_t WHERE a IS NOT DISTINCT FROM (FALSE) ORDER BY id",
    "SELECT id FROM shop_t WHERE TRUE IS DISTINCT FROM a ORDER BY id",
    "SELECT id, a IS TRUE, a = TRUE, a IN (TRUE, NULL), CASE a WHEN TRUE THEN 'one' ELSE 'other' END FROM shop_t ORDER BY id",
    "SELECT id FROM shop_t ORDER BY a IS NULL, s DESC, id LIMIT -1 OFFSET -1",
    "SELECT a / 0, a % 0, r / 0, 7 / 2, -7 / 2, -7 % 3 FROM shop_t ORDER BY id",
    "SELECT id FROM shop_t WHERE NOT a = 3 AND a NOT IN (1, 7) ORDER BY id",
    "SELECT 1 INTERSECT SELECT 1 UNION SELECT 2 EXCEPT SELECT 2",
    "SELECT s FROM shop_t GROUP BY s HAVING count(*) > 0 ORDER BY s",
    "SELECT CASE WHEN a = ?1 THEN NULL END, CAST(CASE a WHEN ?1 THEN NULL END AS BLOB) FROM shop_t WHERE (CASE WHEN a = ?1 THEN NULL END) IS NULL",
    "SELECT (SELECT u FROM shop_t ORDER BY id DESC), (SELECT u FROM shop_t WHERE id < 0)",
    "SELECT count(*), sum(a), total(a), avg(a), max(s) FROM shop_t WHERE id < 0",
    "SELECT lower(u) AS u, count(*) FROM shop_t GROUP BY u ORDER BY u",
    "SELECT u AS s, s AS u FROM shop_t ORDER BY s, u",
    "SELECT u LIKE 'B_C', u LIKE 'b\\c', u LIKE '%É%', u LIKE 'é', s LIKE NULL FROM shop_t ORDER BY id",
    "SELECT CAST('12abc' AS INTEGER), CAST(' -7.9' AS BIGINT), CAST('' AS INTEGER), CAST(-1.9 AS INTEGER), CAST(1e300 AS BIGINT)",
    "SELECT CAST('99999999999999999999' AS INTEGER), CAST('x' AS BIGINT), CAST('0x10' AS INTEGER), CAST('1e3' AS INTEGER)",
];

#[test]
fn statements_with_traps_have_the_same_rows() {
    let mut shop = shop();
    for text in TRAPS {
        let outcome = shop.same(text, &[Value::Integer(3)]);
        assert!(matches!(outcome, Outcome::Rows(_)), "{text}: {outcome:?}");
    }
}

/// Calls of each function, over the columns of `shop_t`.
const CALLS: &[(&str, &[&str])] = &[
    ("abs", &["abs(a)", "abs(r)", "abs(-3)"]),
    (
        "avg",
        &[
            "avg(a)",
            "avg(DISTINCT r)",
            "avg(a) FILTER (WHERE a > 1)",
            "avg(b) OVER (ORDER BY id)",
        ],
    ),
    (
        "coalesce",
        &["coalesce(a, b)", "coalesce(s, u, 'x')", "coalesce(NULL, x)"],
    ),
    (
        "count",
        &[
            "count(*)",
            "count(s)",
            "count(DISTINCT s)",
            "count(*) OVER (PARTITION BY b)",
        ],
    ),
    ("dense_rank", &["dense_rank() OVER (ORDER BY s)"]),
    (
        "first_value",
        &[
            "first_value(s) OVER (ORDER BY id)",
            "first_value(a > 1) OVER (ORDER BY id DESC)",
        ],
    ),
    ("ifnull", &["ifnull(a, 7)", "ifnull(r, 0.5)"]),
    ("iif", &["iif(a > 1, s, u)", "iif(a, 1, 0)", "iif(s = 'a', 1)"]),
    (
        "instr",
        &[
            "instr(u, 'b')",
            "instr(s, '')",
            "instr(x, x'ff')",
            "instr(x, x'')",
            "instr('', s)",
        ],
    ),
    (
        "lag",
        &[
            "lag(a) OVER (ORDER BY id)",
            "lag(s, 2) OVER (ORDER BY id)",
            "lag(a, 0, 9) OVER (ORDER BY id)",
            "lag(NULL) OVER (ORDER BY id)",
        ],
    ),
    (
        "last_value",
        &[
            "last_value(u) OVER (ORDER BY id)",
            "last_value(u) OVER (ORDER BY b RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
        ],
    ),
    (
        "lead",
        &[
            "lead(x) OVER (ORDER BY id)",
            "lead(u, 1, 'none') OVER (ORDER BY id)",
        ],
    ),
    (
        "length",
        &[
            "length(s)",
            "length(u)",
            "length(x)",
            "length(a)",
            "length('é\u{10ffff}')",
        ],
    ),
    ("lower", &["lower(u)", "lower('ÄÉ Ab')", "lower(a)"]),
    (
        "ltrim",
        &[
            "ltrim('  a ')",
            "ltrim(u, 'ab')",
            "ltrim(u, '')",
            "ltrim('\u{a0} a')",
        ],
    ),
    (
        "max",
        &[
            "max(a)",
            "max(r)",
            "max(s)",
            "max(a, b)",
            "max(s, u)",
            "max(r, 1.5)",
            "max(a > 1)",
            "max(NULL, NULL)",
            "max(x, x'01')",
            "max(a) OVER (ORDER BY id)",
        ],
    ),
    (
        "min",
        &[
            "min(a)",
            "min(r)",
            "min(s)",
            "min(a, b, 3)",
            "min(s, u)",
            "min(a > 1, b > 1)",
            "min(s) OVER (ORDER BY id)",
        ],
    ),
    ("nth_value", &["nth_value(u, 2) OVER (ORDER BY id)"]),
    ("ntile", &["ntile(3) OVER (ORDER BY id)"]),
    (
        "nullif",
        &["nullif(a, 3)", "nullif(s, u)", "nullif(a > 1, b > 1)"],
    ),
    (
        "rank",
        &[
            "rank() OVER (ORDER BY b)",
            "rank() OVER (PARTITION BY b ORDER BY s DESC)",
        ],
    ),
    (
        "replace",
        &[
            "replace(u, 'b', 'xx')",
            "replace(u, '', 'x')",
            "replace(s, 'B', NULL)",
            "replace(NULL, '', 'a')",
            "replace('aaa', 'aa', 'b')",
        ],
    ),
    (
        "round",
        &[
            "round(r)",
            "round(a)",
            "round(r, 0)",
            "round(-0.5)",
            "round(2.5)",
            "round(1e300)",
        ],
    ),
    ("row_number", &["row_number() OVER (ORDER BY id DESC)"]),
    ("rtrim", &["rtrim(u)", "rtrim(s, ' B')"]),
    ("sign", &["sign(a)", "sign(r)", "sign(0)"]),
    (
        "string_agg",
        &[
            "string_agg(s, ',' ORDER BY id)",
            "string_agg(u, s ORDER BY id DESC)",
            "string_agg(u, '-') FILTER (WHERE b > 1)",
            "string_agg(u, '-') OVER (ORDER BY id)",
            "string_agg(a, NULL ORDER BY id)",
        ],
    ),
    (
        "substr",
        &[
            "substr(u, 2)",
            "substr(u, -2)",
            "substr(u, 0, 2)",
            "substr(u, 2, -1)",
            "substr(u, -5, 3)",
            "substr(x, 2)",
            "substr(x, -1, 1)",
            "substr(u, b)",
            "substr(u, a, b)",
            "substr(u, -9223372036854775807, 9223372036854775807)",
        ],
    ),
    ("substring", &["substring(u, 1, 1)", "substring(u, 2)"]),
    (
        "sum",
        &[
            "sum(a)",
            "sum(r)",
            "sum(DISTINCT b)",
            "sum(a > 1)",
            "sum(b) OVER (ORDER BY id ROWS 1 PRECEDING)",
            "sum(a) FILTER (WHERE a > 100)",
        ],
    ),
    (
        "total",
        &["total(a)", "total(r)", "total(a) FILTER (WHERE a > 100)"],
    ),
    ("trim", &["trim('  a ')", "trim(u, 'b')", "trim('\t a')"]),
    ("upper", &["upper(u)", "upper('äé ß')"]),
];

#[test]
fn every_function_has_the_same_value() {
    let known: Vec<&str> = functions::ALL.iter().map(|entry| entry.name).collect();
    let called: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
    assert_eq!(called, known);
    let mut shop = shop();
    for call in CALLS.iter().flat_map(|(_, calls)| *calls) {
        let is_aggregate = ["avg", "count", "string_agg", "sum", "total"]
            .iter()
            .any(|name| call.starts_with(name));
        let of_one = ["max(", "min("].iter().any(|name| call.starts_with(name)) && !call.contains(',');
        let order = if (is_aggregate || of_one) && !call.contains("OVER") {
            ""
        } else {
            "ORDER BY id"
        };
        let outcome = shop.same(&format!("SELECT {call} FROM shop_t {order}"), &[]);
        assert!(matches!(outcome, Outcome::Rows(_)), "{call}: {outcome:?}");
    }
}

#[test]
fn changes_leave_the_same_rows() {
    let shop = std::cell::RefCell::new(shop());
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::with_cases(cases() / 2)
    });
    let constraints = std::cell::RefCell::new(std::collections::BTreeMap::new());
    let ran = runner.run(&(change(), values()), |(text, values)| {
        let mut shop = shop.borrow_mut();
        if !shop.reads(&text) {
            return Ok(());
        }
        shop.renumber(&text);
        shop.sqlite.execute_batch("SAVEPOINT one").unwrap();
        let (one, other) = shop.run(&text, &values);
        let known = is_known(&one, &other) && !alike(&text, &one, &other);
        shop.sqlite
            .execute_batch(if known {
                "ROLLBACK TO one; RELEASE one"
            } else {
                "RELEASE one"
            })
            .unwrap();
        if let Outcome::Constraint(kind) = one {
            *constraints.borrow_mut().entry(kind).or_insert(0) += 1;
        }
        let translated = shop.translate(&text).1;
        prop_assert!(
            agree(&text, &one, &other),
            "{text}\n{values:?}\n{translated:?}\nSQLite: {one:?}\nPostgreSQL: {other:?}"
        );
        shop.same("SELECT * FROM shop_t ORDER BY id", &[]);
        shop.same("SELECT k, a, s, r, t FROM shop_u ORDER BY k", &[]);
        shop.same("SELECT n, s FROM shop_p ORDER BY n", &[]);
        Ok(())
    });
    ran.unwrap_or_else(|err| panic!("{err}"));

    assert_eq!(
        constraints.borrow().len(),
        4,
        "each kind of constraint failed: {constraints:?}"
    );
}
