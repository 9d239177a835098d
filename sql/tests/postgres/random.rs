//! Made-up statements and rows: both engines answer the same.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::types::Value;
use tollgate_sql::Step;

use crate::both::{Both, Came, alike};
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

/// What engines are known to differ in: PostgreSQL refuses it while it runs, and nothing is silently another.
fn is_known(one: &Came, other: &Came) -> bool {
    let Came::Failed(other) = other else {
        return matches!(other, Came::Refused(_));
    };
    let known = ["22003", "21000", "22025"]
        .iter()
        .any(|code| other.starts_with(code));
    known || (other.starts_with("54000") && matches!(one, Came::Failed(_)))
}

/// Both sides refuse what neither can compute.
fn agree(text: &str, one: &Came, other: &Came) -> bool {
    alike(text, one, other) || is_known(one, other)
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(4_000)
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
        shop.renumber();
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
        if let Came::Constraint(kind) = one {
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
