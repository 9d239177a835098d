//! Translations to PostgreSQL, and refusals of what means something else there, as texts to read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use expect_test::expect_file;
use tollgate_sql::postgres::{Catalog, Datum, Kind, MAX_VALUE, Parameter, bind, differences, migrations};
use tollgate_sql::read::{Owner, statement};
use tollgate_sql::{Step, schema};

const TABLES: &str = "
    CREATE TABLE shop_kinds (name TEXT PRIMARY KEY, rank INT NOT NULL DEFAULT 1 CHECK (rank > 0));
    CREATE TABLE shop_items (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL REFERENCES shop_kinds ON DELETE CASCADE, price DOUBLE, count BIGINT NOT NULL DEFAULT 0,
        note TEXT, picture BLOB, UNIQUE (kind, note), CHECK ((count = 0) = (price IS NULL))
    );
    CREATE INDEX shop_items_by_note ON shop_items (note DESC, kind) WHERE count > 0 AND note <> 'it''s';
    CREATE TABLE shop_log (id BIGINT PRIMARY KEY, what TEXT NOT NULL) WITH (append_only = true);
    ALTER TABLE shop_kinds ADD COLUMN at TEXT NOT NULL DEFAULT '';
    ALTER TABLE shop_kinds RENAME COLUMN at TO \"since\";
    ALTER TABLE shop_kinds RENAME TO shop_sorts;
    INSERT INTO shop_log (id, what) SELECT id, kind FROM shop_items;
    DROP INDEX IF EXISTS shop_no_such;
";

fn shop() -> (Catalog, String) {
    let read = schema::read(
        "shop_",
        [Step {
            name: "0001",
            sql: TABLES,
        }],
    )
    .unwrap();
    let migrated = migrations("tg_shop", &read).unwrap();
    let sql: Vec<String> = migrated.steps.into_iter().flatten().flatten().collect();
    (migrated.catalog, sql.join("\n") + "\n")
}

fn translated(texts: &str) -> String {
    let (catalog, _) = shop();
    let append_only = BTreeSet::from(["shop_log".to_owned()]);
    let owner = Owner {
        prefix: "shop_",
        append_only: &append_only,
    };
    let mut all = String::new();
    for text in texts.lines().filter(|line| !line.is_empty()) {
        let tree = statement(text, owner).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
        let _ = match catalog.statement(&tree) {
            Err(difference) => writeln!(all, "{text}\n  {difference}\n"),
            Ok(translated) => {
                let sent = translated.parameters.iter().map(|parameter| {
                    let kind = parameter.kind.map_or("any", Kind::said);
                    format!(
                        "?{} {kind}{}",
                        parameter.number,
                        if parameter.required { " not NULL" } else { "" }
                    )
                });
                let sent: Vec<String> = sent.collect();
                let came: Vec<&str> = translated.columns.iter().map(|kind| kind.said()).collect();
                writeln!(
                    all,
                    "{text}\n  {}\n  ({}) -> ({})\n",
                    translated.sql,
                    sent.join(", "),
                    came.join(", ")
                )
            }
        };
    }
    all
}

#[test]
fn migrations_are_printed() {
    expect_file!["translate/migrations.sql"].assert_eq(&shop().1);
}

#[test]
fn statements_are_printed() {
    expect_file!["translate/printed.txt"].assert_eq(&translated(include_str!("translate/statements.txt")));
}

#[test]
fn differences_are_told() {
    let told = translated(include_str!("translate/different.txt"));
    expect_file!["translate/told.txt"].assert_eq(&told);
    assert!(!told.contains(") -> ("), "one is translated");
}

#[test]
fn migrations_that_postgresql_takes_otherwise_are_all_told() {
    let sql = "
        CREATE TABLE shop_a (ctid TEXT);
        CREATE TABLE shop_b (id INTEGER PRIMARY KEY, t TEXT REFERENCES shop_later);
        CREATE TABLE shop_later (name TEXT PRIMARY KEY, n BIGINT CHECK (n = name));
        CREATE TABLE shop_c (id INTEGER PRIMARY KEY, n BIGINT, m BIGINT CHECK (m > n));
        ALTER TABLE shop_c DROP COLUMN n;
        ALTER TABLE shop_c ADD COLUMN k TEXT NOT NULL;
        CREATE INDEX shop_d ON shop_c (nothing);
        DROP TABLE shop_e;
        UPDATE shop_c SET n = 'x';
        CREATE TABLE shop_f (id INTEGER PRIMARY KEY, a BIGINT);
        ALTER TABLE shop_f RENAME COLUMN a TO xmin;
        INSERT INTO shop_f (id, a) VALUES (7, 1), (NULL, 2);
        INSERT INTO shop_f (id, a) SELECT a, a FROM shop_f;
    ";
    let read = schema::read("shop_", [Step { name: "0001", sql }]).unwrap();
    let unfit = migrations("tg_shop", &read).unwrap_err();
    let told: Vec<String> = unfit
        .iter()
        .map(|unfit| format!("{}: {}\n", unfit.statement, unfit.difference))
        .collect();
    expect_file!["translate/unfit.txt"].assert_eq(&told.concat());
}

#[test]
fn everything_of_a_component_that_differs_is_found() {
    let steps = [
        Step {
            name: "0001_init",
            sql: "CREATE TABLE shop_items (id INTEGER PRIMARY KEY, kind TEXT, price DOUBLE, n BIGINT);",
        },
        Step {
            name: "0002_more",
            sql: "CREATE TABLE shop_rows (ctid TEXT); INSERT INTO shop_rows (ctid) VALUES ('a'); UPDATE shop_items SET n = 'many';",
        },
    ];
    let texts = [
        "SELECT id FROM shop_items WHERE kind = ?1",
        "SELECT id
           FROM shop_items
          WHERE kind = 3",
        "SELECT kind, count(*) FROM shop_items",
        "SELECT ctid FROM shop_rows",
        "DROP TABLE shop_items",
    ];
    let found = |steps: &[Step<'_>]| {
        let found = differences("shop_", steps, texts).unwrap();
        found
            .iter()
            .map(|finding| format!("{finding}\n"))
            .collect::<String>()
    };
    expect_file!["translate/found.txt"].assert_eq(&found(&steps));
    expect_file!["translate/found_in_calls.txt"].assert_eq(&found(&steps[..1]));
    let wrong = Step {
        name: "0003",
        sql: "CREATE TABLE other_items (id BIGINT)",
    };
    assert_eq!(differences("shop_", &[wrong], []).unwrap_err().0.len(), 1);
}

#[test]
fn values_of_another_kind_are_refused() {
    let sent = |kind, value| {
        let parameter = Parameter {
            number: 1,
            kind,
            required: false,
        };
        bind(&parameter, value).map_err(|misfit| misfit.to_string())
    };
    let text = |text: &'static str| Datum::Text(Cow::Borrowed(text));
    assert_eq!(sent(Some(Kind::Text), text("-5")), Ok(text("-5")));
    assert_eq!(
        sent(Some(Kind::Integer), Datum::Integer(12)),
        Ok(Datum::Integer(12))
    );
    assert_eq!(sent(Some(Kind::Real), Datum::Real(f64::NAN)), Ok(Datum::Null));
    let zero = sent(Some(Kind::Real), Datum::Real(-0.0));
    assert!(matches!(zero, Ok(Datum::Real(zero)) if zero.is_sign_positive()));
    assert_eq!(sent(None, Datum::Integer(1)), Ok(text("")));
    assert_eq!(sent(None, Datum::Null), Ok(Datum::Null));
    for (kind, value) in [
        (Kind::Integer, Datum::Real(2.0)),
        (Kind::Integer, text("3")),
        (Kind::Text, Datum::Integer(3)),
        (Kind::Real, Datum::Integer(3)),
        (Kind::Real, Datum::Real(f64::INFINITY)),
        (Kind::Text, Datum::Real(1.0)),
        (Kind::Text, text("a\0b")),
        (Kind::Text, Datum::Text(Cow::Owned("x".repeat(MAX_VALUE + 1)))),
        (Kind::Blob, Datum::Blob(Cow::Owned(vec![0; MAX_VALUE + 1]))),
        (Kind::Text, Datum::Blob(Cow::Borrowed(b"x"))),
        (Kind::Blob, text("x")),
    ] {
        let misfit = sent(Some(kind), value.clone()).unwrap_err();
        assert!(misfit.starts_with("?1 takes "), "{misfit}");
    }
    let limit = Parameter {
        number: 2,
        kind: Some(Kind::Integer),
        required: true,
    };
    assert_eq!(
        bind(&limit, Datum::Null).unwrap_err().to_string(),
        "?2 takes a number, not NULL"
    );
}
