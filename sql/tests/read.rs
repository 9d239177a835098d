//! Accepted and refused statements, and equal meaning of printed statements.
#![allow(clippy::disallowed_methods, reason = "tests read the migrations of the packs")]

use std::collections::BTreeSet;

use rusqlite::Connection;
use tollgate_sql::read::{Owner, statement};
use tollgate_sql::{Refusal, Step, schema, sqlite};

const PREFIX: &str = "shop_";

fn read(text: &str) -> Result<String, Refusal> {
    let append_only = BTreeSet::from(["shop_log".to_owned()]);
    let owner = Owner {
        prefix: PREFIX,
        append_only: &append_only,
    };
    let tree = statement(text, owner)?;
    let printed = sqlite::statement(&tree);
    let again = statement(&printed, owner);
    assert_eq!(again.as_ref(), Ok(&tree), "{text}\n{printed}");
    Ok(printed)
}

#[test]
fn statements_of_the_built_in_packs_are_read() {
    let none = BTreeSet::new();
    for text in include_str!("statements.txt")
        .lines()
        .filter(|line| !line.is_empty())
    {
        let Some(table) = text.split_whitespace().find(|word| word.contains('_')) else {
            continue;
        };
        let prefix = [
            "task_store_",
            "tasks_",
            "gsd_",
            "conductor_",
            "convergence_",
            "policy_",
        ]
        .into_iter()
        .find(|prefix| text.contains(prefix))
        .unwrap_or_else(|| panic!("{text}: {table}"));
        let owner = Owner {
            prefix,
            append_only: &none,
        };
        let tree = statement(text, owner).unwrap_or_else(|refusal| panic!("{text}\n{refusal}"));
        let printed = sqlite::statement(&tree);
        assert_eq!(
            statement(&printed, owner).as_ref(),
            Ok(&tree),
            "{text}\n{printed}"
        );
    }
}

#[test]
fn what_is_printed_is_what_was_said() {
    for (text, printed) in [
        ("select 1", "SELECT 1"),
        ("SELECT ?, ?, ?5, ?", "SELECT ?1, ?2, ?5, ?6"),
        (
            "SELECT -9223372036854775808, 9223372036854775807",
            "SELECT -9223372036854775808, 9223372036854775807",
        ),
        (
            "SELECT 0.1, 1e-7, .5, 1., 123456789012345678.5",
            "SELECT 0.1, 1e-7, .5, 1., 123456789012345678.5",
        ),
        ("SELECT 'it''s', x'00fF', ''", "SELECT 'it''s', x'00ff', ''"),
        ("SELECT - -1, -(-1), 1 - -1", "SELECT -(-1), -(-1), 1 - (-1)"),
        (
            "SELECT a || b || c * d FROM shop_t",
            "SELECT (\"a\" || \"b\" || \"c\") * \"d\" FROM \"shop_t\"",
        ),
        (
            "SELECT a = b < c, NOT a = b FROM shop_t",
            "SELECT \"a\" = (\"b\" < \"c\"), NOT (\"a\" = \"b\") FROM \"shop_t\"",
        ),
        (
            "SELECT a IS NULL = b, a BETWEEN 1 AND 2 AND c FROM shop_t",
            "SELECT (\"a\" IS NULL) = \"b\", (\"a\" BETWEEN 1 AND 2) AND \"c\" FROM \"shop_t\"",
        ),
        (
            "INSERT INTO shop_t SELECT * FROM shop_u ON CONFLICT DO NOTHING",
            "INSERT INTO \"shop_t\" SELECT * FROM \"shop_u\" WHERE TRUE ON CONFLICT DO NOTHING",
        ),
        (
            "SELECT \"select\", \"at\", position FROM shop_t AS \"order\"",
            "SELECT \"select\", \"at\", \"position\" FROM \"shop_t\" AS \"order\"",
        ),
        (
            "SELECT sum(DISTINCT a) FILTER (WHERE b), count(*), lag(a, 1) OVER (PARTITION BY b ORDER BY c DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM shop_t",
            "SELECT sum(DISTINCT \"a\") FILTER (WHERE \"b\"), count(*), lag(\"a\", 1) OVER (PARTITION BY \"b\" ORDER BY \"c\" DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM \"shop_t\"",
        ),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
            "WITH RECURSIVE \"n\"(\"i\") AS (SELECT 1 UNION ALL SELECT \"i\" + 1 FROM \"n\") SELECT max(\"i\") FROM \"n\"",
        ),
        (
            "WITH x AS (SELECT 1) DELETE FROM shop_t WHERE id IN (SELECT * FROM x) RETURNING id",
            "WITH \"x\" AS (SELECT 1) DELETE FROM \"shop_t\" WHERE \"id\" IN (SELECT * FROM \"x\") RETURNING \"id\"",
        ),
        (
            "UPDATE shop_t AS t SET (a, b) = (1, 2), c = u.c FROM shop_u u WHERE t.id = u.id",
            "UPDATE \"shop_t\" AS \"t\" SET (\"a\", \"b\") = (1, 2), \"c\" = \"u\".\"c\" FROM \"shop_u\" AS \"u\" WHERE \"t\".\"id\" = \"u\".\"id\"",
        ),
        (
            "SELECT a LIKE 'x' ESCAPE '!', a NOT LIKE b FROM shop_t LEFT JOIN shop_u USING (id) LIMIT 3 OFFSET ?1",
            "SELECT \"a\" LIKE 'x' ESCAPE '!', \"a\" NOT LIKE \"b\" FROM \"shop_t\" LEFT JOIN \"shop_u\" USING (\"id\") LIMIT 3 OFFSET ?1",
        ),
    ] {
        assert_eq!(read(text).as_deref(), Ok(printed), "{text}");
    }
}

#[test]
fn a_table_that_is_not_ones_own_is_none() {
    for text in [
        "SELECT * FROM core_operations",
        "SELECT * FROM other_t",
        "SELECT * FROM SHOP_t",
        "SELECT * FROM Shop_t",
        "SELECT * FROM shop_",
        "SELECT * FROM shop",
        "SELECT * FROM sqlite_master",
        "SELECT (SELECT max(hash) FROM core_operations)",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM core_operations)",
        "SELECT 1 IN (SELECT 1 FROM core_operations)",
        "SELECT * FROM shop_t JOIN core_operations ON TRUE",
        "SELECT * FROM (SELECT * FROM core_operations)",
        "SELECT 1 UNION SELECT hash FROM core_operations",
        "WITH x AS (SELECT * FROM core_operations) SELECT * FROM x",
        "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a",
        "WITH a AS (SELECT * FROM a) SELECT * FROM a",
        "SELECT (WITH a AS (SELECT 1) SELECT * FROM a) FROM a",
        "INSERT INTO core_operations (seq) VALUES (1)",
        "WITH x AS (SELECT 1) INSERT INTO x VALUES (1)",
        "INSERT INTO shop_t SELECT * FROM core_operations",
        "INSERT INTO shop_t VALUES (1) ON CONFLICT (id) DO UPDATE SET a = (SELECT hash FROM core_operations)",
        "INSERT INTO shop_t VALUES (1) RETURNING (SELECT hash FROM core_operations)",
        "UPDATE core_operations SET hash = 1",
        "UPDATE shop_t SET a = (SELECT hash FROM core_operations)",
        "UPDATE shop_t SET a = 1 FROM core_operations",
        "DELETE FROM core_operations",
        "DELETE FROM shop_t WHERE a IN (SELECT hash FROM core_operations)",
        "SELECT CASE WHEN (SELECT 1 FROM core_operations) THEN 1 END",
        "SELECT sum((SELECT 1 FROM core_operations)) OVER (ORDER BY 1) FROM shop_t",
        "SELECT 1 ORDER BY (SELECT 1 FROM core_operations)",
        "SELECT 1 LIMIT (SELECT 1 FROM core_operations)",
        "SELECT 1 FROM shop_t GROUP BY (SELECT 1 FROM core_operations)",
        "VALUES ((SELECT 1 FROM core_operations))",
    ] {
        let refusal = read(text).expect_err(text);
        assert_eq!(refusal.to_string(), "no such table or no access", "{text}");
    }
}

#[test]
fn what_is_not_in_the_subset_is_refused_with_what_is() {
    for text in [
        "",
        ";",
        "SELECT 1; SELECT 2",
        "nonsense",
        "PRAGMA user_version",
        "ATTACH 'x' AS y",
        "VACUUM",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT x",
        "EXPLAIN SELECT 1",
        "ANALYZE",
        "REINDEX",
        "CREATE TABLE shop_x (a TEXT)",
        "DROP TABLE shop_t",
        "ALTER TABLE shop_t RENAME TO shop_u",
        "CREATE INDEX shop_i ON shop_t (a)",
        "REPLACE INTO shop_t VALUES (1)",
        "INSERT OR REPLACE INTO shop_t VALUES (1)",
        "INSERT OR IGNORE INTO shop_t VALUES (1)",
        "UPDATE OR REPLACE shop_t SET a = 1",
        "SELECT * FROM main.shop_t",
        "SELECT main.shop_t.a FROM shop_t",
        "INSERT INTO main.shop_t VALUES (1)",
        "DELETE FROM main.shop_t",
        "UPDATE temp.shop_t SET a = 1",
        "SELECT * FROM shop_t INDEXED BY i",
        "SELECT * FROM shop_t NOT INDEXED",
        "SELECT * FROM shop_t FOR UPDATE",
        "SELECT rowid FROM shop_t",
        "SELECT shop_t.oid FROM shop_t",
        "SELECT _ROWID_ FROM shop_t",
        "INSERT INTO shop_t (rowid) VALUES (1)",
        "UPDATE shop_t SET rowid = 1",
        "SELECT \"rowid\" FROM shop_t",
        "SELECT randomblob(10)",
        "SELECT load_extension('x')",
        "SELECT zeroblob(1000000000)",
        "SELECT printf('%d')",
        "SELECT hex('a')",
        "SELECT json_extract('{}', '$')",
        "SELECT * FROM pragma_table_list()",
        "SELECT * FROM json_each('[1]')",
        "SELECT group_concat(a) FROM shop_t",
        "SELECT char(1)",
        "SELECT a COLLATE NOCASE FROM shop_t",
        "SELECT a GLOB 'x' FROM shop_t",
        "SELECT a REGEXP 'x' FROM shop_t",
        "SELECT a MATCH 'x' FROM shop_t",
        "SELECT a IS b FROM shop_t",
        "SELECT a ISNULL FROM shop_t",
        "SELECT * FROM shop_t NATURAL JOIN shop_u",
        "SELECT * FROM (shop_t JOIN shop_u)",
        "SELECT * FROM ((SELECT 1))",
        "SELECT CAST(1 AS NUMERIC)",
        "SELECT CAST(1 AS VARCHAR(3))",
        "SELECT DATE '2020-01-01'",
        "SELECT TEXT 'a'",
        "SELECT E'a'",
        "SELECT U&'a'",
        "SELECT N'a'",
        "SELECT CURRENT_TIMESTAMP",
        "SELECT ~1",
        "SELECT +1",
        "SELECT 9223372036854775808",
        "SELECT 1e999",
        "SELECT -(9223372036854775808)",
        "SELECT -a || b FROM shop_t",
        "SELECT 1 UNION (SELECT 2)",
        "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3",
        "SELECT 1 LIMIT 2, 3",
        "SELECT 1 UNION SELECT 1 UNION SELECT 1 UNION SELECT 1 UNION SELECT 1 UNION SELECT 1",
        "SELECT 1 FROM shop_t WINDOW w AS ()",
        "SELECT sum(a) OVER w FROM shop_t",
        "SELECT abs(DISTINCT a) FROM shop_t",
        "SELECT rank() FROM shop_t",
        "SELECT abs(a) OVER () FROM shop_t",
        "SELECT count() FROM shop_t",
        "SELECT abs(*) FROM shop_t",
        "SELECT trim(a, b, c) FROM shop_t",
        "SELECT DISTINCT ON (a) a FROM shop_t",
        "WITH shop_t AS (SELECT 1) SELECT * FROM shop_t",
        "WITH SHOP_T AS (SELECT 1) SELECT * FROM SHOP_T",
        "WITH core_operations AS (SELECT 1) SELECT * FROM core_operations",
        "WITH sqlite_master AS (SELECT 1) SELECT * FROM sqlite_master",
        "WITH x AS (DELETE FROM shop_t RETURNING id) SELECT * FROM x",
        "SELECT * FROM (DELETE FROM shop_t)",
        "DELETE FROM shop_t LIMIT 1",
        "UPDATE shop_t SET a = 1 LIMIT 1",
        "DELETE FROM shop_t ORDER BY a",
        "INSERT INTO shop_t VALUES (1) ON CONFLICT DO UPDATE SET a = 1",
        "TABLE shop_t",
        "SELECT 1 INTO shop_t",
        "SELECT * FROM LATERAL (SELECT 1)",
        "SELECT ARRAY[1]",
        "SELECT a[1] FROM shop_t",
        "SELECT a.b.c FROM shop_t",
        "SELECT INTERVAL '1' DAY",
        "SELECT EXTRACT(DAY FROM a) FROM shop_t",
        "SELECT a -> 'b' FROM shop_t",
        "SELECT 1 OFFSET 1",
        "SELECT a = ANY (SELECT 1) FROM shop_t",
        "MERGE INTO shop_t USING shop_u ON TRUE",
        "SELECT 'a' 'b'",
        "SELECT a AT TIME ZONE 'x' FROM shop_t",
        "INSERT INTO shop_t VALUES (1), (2",
        "SELECT (1",
        "CREATE TRIGGER shop_x BEFORE INSERT ON shop_t BEGIN SELECT 1; END",
        "SELECT 1 FETCH FIRST 1 ROWS ONLY",
    ] {
        let refusal = read(text).expect_err(text).to_string();
        assert!(refusal.len() > 10 && refusal.len() < 700, "{text}: {refusal}");
    }
}

#[test]
fn an_append_only_table_is_neither_updated_nor_deleted_from() {
    for text in [
        "UPDATE shop_log SET line = 1",
        "UPDATE shop_LOG SET line = 1",
        "UPDATE shop_log AS x SET line = 1",
        "DELETE FROM shop_log",
        "DELETE FROM \"shop_Log\" WHERE id = 1 RETURNING id",
        "WITH x AS (SELECT 1) DELETE FROM shop_log",
        "INSERT INTO shop_log VALUES (1) ON CONFLICT (id) DO UPDATE SET line = 1",
        "INSERT INTO shop_log AS x SELECT 1 ON CONFLICT (id) DO UPDATE SET line = excluded.line",
    ] {
        let refusal = read(text).expect_err(text).to_string();
        assert!(
            refusal.contains("append-only") && refusal.to_lowercase().contains("shop_log"),
            "{refusal}"
        );
    }
    for text in [
        "INSERT INTO shop_log VALUES (1)",
        "INSERT INTO shop_log VALUES (1) ON CONFLICT DO NOTHING",
        "SELECT * FROM shop_log",
        "DELETE FROM shop_logs",
        "UPDATE shop_t SET a = (SELECT max(line) FROM shop_log)",
    ] {
        read(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    }
}

fn migrated(steps: &[&str]) -> Result<schema::Schema, String> {
    let names: Vec<String> = (1..=steps.len()).map(|number| format!("000{number}")).collect();
    let steps = steps.iter().zip(&names).map(|(sql, name)| Step { name, sql });
    schema::read(PREFIX, steps).map_err(|problems| problems.to_string())
}

#[test]
fn append_only_goes_with_a_table_and_keeps_its_rows_in_migrations() {
    let log = "CREATE TABLE shop_log (id INTEGER PRIMARY KEY, line TEXT) WITH (append_only = true);";
    let schema = migrated(&[
        log,
        "ALTER TABLE shop_log RENAME TO shop_journal; ALTER TABLE shop_journal RENAME TO shop_log;
         ALTER TABLE shop_log RENAME TO shop_journal; CREATE UNIQUE INDEX shop_lines ON shop_journal (line);
         ALTER TABLE shop_journal ADD COLUMN other TEXT NOT NULL DEFAULT 'x'; CREATE TABLE shop_logs (id TEXT);
         INSERT INTO shop_journal (line) VALUES ('kept')",
    ])
    .unwrap();
    assert_eq!(schema.append_only(), &BTreeSet::from(["shop_journal".to_owned()]));
    let schema = migrated(&[
        "CREATE TABLE shop_a (id TEXT)",
        "UPDATE shop_a SET id = '1'; ALTER TABLE shop_A SET (append_only = true)",
    ])
    .unwrap();
    assert_eq!(schema.append_only(), &BTreeSet::from(["shop_a".to_owned()]));
    for change in [
        "UPDATE shop_log SET line = ''",
        "DELETE FROM shop_log",
        "DROP TABLE shop_log",
        "DROP TABLE IF EXISTS SHOP_log",
        "DROP TABLE shop_LOG",
        "ALTER TABLE shop_log DROP COLUMN line",
        "ALTER TABLE shop_log RENAME COLUMN line TO other",
        "ALTER TABLE SHOP_LOG RENAME line TO other",
        "ALTER TABLE shop_log RENAME TO shop_x; ALTER TABLE shop_x RENAME COLUMN line TO other",
        "ALTER TABLE shop_log RENAME TO shop_x; CREATE TABLE shop_log (id TEXT)",
        "ALTER TABLE shop_log RENAME TO shop_x; CREATE TABLE IF NOT EXISTS Shop_Log (id TEXT)",
        "ALTER TABLE shop_log RENAME TO shop_x; CREATE TABLE shop_LOG (id TEXT) WITH (append_only = true)",
        "CREATE TABLE shop_y (id TEXT); ALTER TABLE shop_log RENAME TO shop_x; ALTER TABLE shop_y RENAME TO shop_log",
        "ALTER TABLE shop_log RENAME TO shop_x; ALTER TABLE shop_x RENAME TO shop_z; CREATE TABLE shop_x (id TEXT)",
        "ALTER TABLE shop_log RENAME TO shop_x; ALTER TABLE shop_x RENAME TO shop_log; CREATE TABLE shop_x (id TEXT)",
        "DROP TABLE shop_log; CREATE TABLE shop_log (id TEXT)",
        "WITH x AS (SELECT 1) UPDATE shop_log SET line = ''",
        "INSERT OR REPLACE INTO shop_log (id) VALUES (1)",
        "REPLACE INTO shop_log (id) VALUES (1)",
        "ALTER TABLE shop_log SET (append_only = false)",
        "ALTER TABLE shop_log RENAME TO shop_x; DELETE FROM shop_x",
        "ALTER TABLE shop_log RENAME TO shop_x; DROP TABLE shop_x",
        "INSERT INTO shop_log (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET line = ''",
        "ALTER TABLE shop_log ADD COLUMN other TEXT REFERENCES shop_log (id) ON DELETE CASCADE",
        "ALTER TABLE shop_log ADD COLUMN other TEXT REFERENCES shop_log (id) ON UPDATE SET NULL",
        "CREATE TABLE IF NOT EXISTS shop_log (id TEXT)",
    ] {
        migrated(&[log, change]).expect_err(change);
    }
    for own in [
        "CREATE TABLE shop_x (a TEXT REFERENCES shop_y (a) ON DELETE CASCADE) WITH (append_only = true)",
        "CREATE TABLE shop_x (a TEXT, FOREIGN KEY (a) REFERENCES shop_y (a) ON UPDATE SET DEFAULT) WITH (append_only = true)",
        "CREATE TABLE shop_x (a TEXT REFERENCES shop_y (a) ON DELETE SET NULL); ALTER TABLE shop_x SET (append_only = true)",
        "ALTER TABLE shop_nowhere SET (append_only = true)",
        "CREATE TABLE shop_x (a TEXT) WITH (append_only = false)",
        "CREATE TABLE shop_x (a TEXT) WITH (append_only = 'true')",
        "CREATE TABLE shop_x (a TEXT) WITH (append_only = true, fillfactor = 10)",
        "CREATE TABLE shop_x (a TEXT) WITH (fillfactor = 10)",
    ] {
        migrated(&[own]).expect_err(own);
    }
}

#[test]
fn migrations_say_the_subset_and_nothing_else() {
    for sql in [
        "CREATE TABLE core_x (a TEXT)",
        "CREATE TABLE SHOP_x (a TEXT)",
        "CREATE TEMP TABLE shop_x (a TEXT)",
        "CREATE TEMPORARY TABLE shop_x (a TEXT)",
        "CREATE TABLE shop_x AS SELECT 1",
        "CREATE TABLE shop_x (a TEXT) STRICT",
        "CREATE TABLE shop_x (a TEXT) WITHOUT ROWID",
        "CREATE TABLE shop_x (a)",
        "CREATE TABLE shop_x (a VARCHAR(10))",
        "CREATE TABLE shop_x (rowid TEXT)",
        "CREATE TABLE shop_x (a TEXT COLLATE NOCASE)",
        "CREATE TABLE main.shop_x (a TEXT)",
        "CREATE TABLE shop_x (a TEXT GENERATED ALWAYS AS ('x'))",
        "CREATE TABLE shop_x (a TEXT AS ('x'))",
        "CREATE TABLE shop_x (a INTEGER PRIMARY KEY AUTOINCREMENT)",
        "CREATE TABLE shop_x (a TEXT UNIQUE ON CONFLICT REPLACE)",
        "CREATE TABLE shop_x (a TEXT, UNIQUE (a) ON CONFLICT REPLACE)",
        "CREATE TABLE shop_x (a TEXT NOT NULL ON CONFLICT IGNORE)",
        "CREATE TABLE shop_x (a TEXT REFERENCES core_y (a))",
        "CREATE TABLE shop_x (a TEXT REFERENCES SHOP_y (a))",
        "CREATE TABLE shop_x (a TEXT, FOREIGN KEY (a) REFERENCES other_y (a))",
        "CREATE TABLE shop_x (a TEXT REFERENCES shop_y (a) DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TABLE shop_x (a TEXT CHECK ((SELECT 1 FROM core_operations)))",
        "CREATE TABLE shop_x (a TEXT DEFAULT (load_extension('x')))",
        "CREATE TABLE shop_x (a TEXT DEFAULT CURRENT_TIMESTAMP)",
        "CREATE INDEX other_i ON shop_x (a)",
        "CREATE INDEX shop_i ON core_x (a)",
        "CREATE INDEX shop_i ON shop_x (lower(a))",
        "CREATE INDEX shop_i ON shop_x (a COLLATE NOCASE)",
        "CREATE INDEX ON shop_x (a)",
        "DROP INDEX core_i",
        "DROP TABLE core_x",
        "DROP VIEW shop_v",
        "DROP TRIGGER shop_t",
        "CREATE VIEW shop_v AS SELECT 1",
        "CREATE VIRTUAL TABLE shop_v USING fts5(a)",
        "CREATE TRIGGER shop_t AFTER INSERT ON shop_x BEGIN SELECT 1; END",
        "ALTER TABLE core_x ADD COLUMN a TEXT",
        "ALTER TABLE shop_x RENAME TO core_x",
        "ALTER TABLE shop_x RENAME TO shopping",
        "ALTER TABLE core_x RENAME TO shop_x",
        "PRAGMA user_version = 1",
        "SELECT 1",
        "INSERT INTO shop_x SELECT * FROM core_y",
        "INSERT OR REPLACE INTO shop_x VALUES (1)",
        "UPDATE sqlite_master SET sql = ''",
        "DROP TABLE shop_x, shop_y",
        "DROP TABLE shop_x CASCADE",
        "VACUUM",
        "ATTACH 'x' AS y",
        "CREATE TABLE shop_x (a TEXT) ENGINE = InnoDB",
        "CREATE TABLE shop_x (a TEXT) PARTITION BY a",
        "CREATE TABLE shop_x (LIKE shop_y)",
        "CREATE UNLOGGED TABLE shop_x (a TEXT)",
        "CREATE OR REPLACE TABLE shop_x (a TEXT)",
        "CREATE TABLE shop_x (a ANY)",
        "CREATE TABLE shop_x ()",
        "ALTER TABLE shop_x ADD CONSTRAINT c CHECK (TRUE)",
        "ALTER TABLE shop_x ALTER COLUMN a SET NOT NULL",
    ] {
        let problem = migrated(&[sql]).expect_err(sql);
        assert!(problem.starts_with("step 0001"), "{sql}: {problem}");
    }
}

#[test]
fn all_problems_are_told_at_once_with_step_statement_table_and_reason() {
    let problems = migrated(&[
        "CREATE TABLE shop_a (id TEXT);
         CREATE TRIGGER shop_quiet BEFORE INSERT ON core_operations BEGIN SELECT RAISE(IGNORE); END;
         CREATE TABLE shop_b (id NUMERIC);",
        "DELETE FROM core_operations; PRAGMA x",
    ]);
    let problems = problems.expect_err("four are wrong");
    for part in [
        "step 0001, statement 2 (`CREATE TRIGGER shop_quiet BEFORE INSERT …`), table `core_operations`: ",
        "step 0001, statement 3 (`CREATE TABLE shop_b (id NUMERIC)`), table `shop_b`: ",
        "step 0002, statement 1 (`DELETE FROM core_operations`), table `core_operations`: `core_operations` is not its own",
        "step 0002, statement 2 (`PRAGMA x`): `PRAGMA` is not allowed",
        "append_only",
    ] {
        assert!(problems.contains(part), "{part}\n{problems}");
    }
}

/// Reasons without step, statement and list of what is allowed.
fn reasons(sql: &str) -> Vec<String> {
    let step = Step { name: "0001", sql };
    let problems = schema::read(PREFIX, [step]).map(drop).unwrap_err();
    let reason = |problem: &tollgate_sql::Problem| {
        let said = problem.refusal.to_string();
        let said = said.split("; ").next().unwrap().to_owned();
        format!(
            "{} {}: {said}",
            problem.statement.unwrap(),
            problem.table.as_deref().unwrap_or("-")
        )
    };
    problems.0.iter().map(reason).collect()
}

#[test]
fn all_that_is_wrong_with_one_statement_is_told() {
    let told = reasons(
        "CREATE TABLE core_a (rowid TEXT, b VARCHAR(9), c TEXT COLLATE NOCASE, d TEXT DEFAULT (random()) CHECK (e GLOB 'x'),
            f TEXT REFERENCES other_t (a), UNIQUE (f DESC)) WITH (append_only = false);
         CREATE TABLE shop_a (b VARCHAR(9), c NUMERIC, d TEXT DEFAULT (random()), rowid TEXT, e TEXT REFERENCES other_t (a),
            CHECK (nothing(b) = 1 AND sleep(2) > 3), UNIQUE (b DESC)) WITH (fillfactor = 10);
         ALTER TABLE shop_a SET (append_only = true);
         CREATE INDEX other_i ON core_x (lower(a), rowid) WHERE random() = 1;
         UPDATE core_x SET a = random(), b = (SELECT c FROM core_y WHERE sleep(1) = 2);
         UPDATE shop_a SET b = [x], c = `y`",
    );
    let told: String = told.iter().map(|line| format!("{line}\n")).collect();
    expect_test::expect![[r#"
        1 core_a: COLLATE is not allowed
        2 shop_a: the type VARCHAR(9) is not allowed
        2 shop_a: the type NUMERIC is not allowed
        2 shop_a: the function random is not allowed
        2 shop_a: `rowid` is not one of your columns
        2 other_t: no such table or no access
        2 shop_a: the function nothing is not allowed
        2 shop_a: the function sleep is not allowed
        2 shop_a: columns of a key cannot have ASC or DESC
        2 shop_a: the only option of a table is append_only = true, which cannot be changed
        4 core_x: no such table or no access
        4 other_i: no such table or no access
        4 core_x: an index takes columns, not expressions
        4 core_x: `rowid` is not one of your columns
        4 core_x: the function random is not allowed
        5 core_x: no such table or no access
        5 core_x: the function random is not allowed
        5 core_y: no such table or no access
        5 core_x: the function sleep is not allowed
        6 shop_a: `[x` is not allowed
        6 shop_a: `],` is not allowed
        6 shop_a: ``y` is not allowed
        6 shop_a: ``` is not allowed
    "#]]
    .assert_eq(&told);
}

#[test]
fn what_the_parser_does_not_understand_is_told_in_plain_words() {
    let mut told = String::new();
    for sql in [
        "CREATE TABLE shop_a",
        "CREATE TABLE shop_a (a TEXT",
        "CREATE TABLE shop_a (a TEXT b)",
        "CREATE TABLE shop_a (a TEXT,)",
        "CREATE shop_a",
        "ALTER TABLE shop_a",
        "ALTER TABLE shop_a MODIFY b",
        "ALTER TABLE shop_a RENAME",
        "DROP shop_a",
        "INSERT shop_a VALUES (1",
        "INSERT INTO shop_a VALUES 1",
        "UPDATE shop_a SET",
        "UPDATE shop_a SET a =",
        "DELETE shop_a",
        "DELETE FROM shop_a WHERE",
        "DELETE FROM shop_a LIMIT BY",
        "CREATE INDEX shop_i shop_a (b)",
        "WITH x AS MATERIALIZED (SELECT 1) DELETE FROM shop_a",
        "WITH x AS NOT MATERIALIZED (SELECT 1) DELETE FROM shop_a",
        "CREATE TEMP VIEW shop_v AS SELECT 1",
    ] {
        for reason in reasons(sql) {
            assert!(
                !reason.contains("Expected:") && !reason.contains("found:"),
                "{reason}"
            );
            assert!(!reason.contains("Line:") && !reason.contains("EOF"), "{reason}");
            told += &format!("{sql}\n  {reason}\n");
        }
    }
    expect_test::expect![[r#"
        CREATE TABLE shop_a
          1 shop_a: a table must have columns
        CREATE TABLE shop_a (a TEXT
          1 shop_a: the statement ends where `,` or `)` after a column is expected
        CREATE TABLE shop_a (a TEXT b)
          1 shop_a: `b` appears where `,` or `)` after a column is expected
        CREATE TABLE shop_a (a TEXT,)
          1 shop_a: `)` appears where a column or a constraint is expected
        CREATE shop_a
          1 -: `shop_a` appears where `TABLE`, `INDEX` or `UNIQUE INDEX` is expected
        ALTER TABLE shop_a
          1 shop_a: the statement ends where `ADD COLUMN`, `RENAME COLUMN`, `RENAME TO`, `DROP COLUMN` or `SET (append_only = true)` is expected
        ALTER TABLE shop_a MODIFY b
          1 shop_a: `MODIFY` appears where `ADD COLUMN`, `RENAME COLUMN`, `RENAME TO`, `DROP COLUMN` or `SET (append_only = true)` is expected
        ALTER TABLE shop_a RENAME
          1 shop_a: the statement ends where a name is expected
        DROP shop_a
          1 -: `shop_a` appears where `TABLE` or `INDEX` is expected
        INSERT shop_a VALUES (1
          1 -: the statement ends where `)` is expected
        INSERT INTO shop_a VALUES 1
          1 shop_a: `1` appears where `(` is expected
        UPDATE shop_a SET
          1 shop_a: the statement ends where a name is expected
        UPDATE shop_a SET a =
          1 shop_a: the statement ends where an expression is expected
        DELETE shop_a
          1 -: the statement ends where `FROM` is expected
        DELETE FROM shop_a WHERE
          1 shop_a: the statement ends where an expression is expected
        DELETE FROM shop_a LIMIT BY
          1 shop_a: this form of DELETE (USING, ORDER BY, LIMIT) is not allowed
        CREATE INDEX shop_i shop_a (b)
          1 -: `shop_a` appears where `ON` is expected
        WITH x AS MATERIALIZED (SELECT 1) DELETE FROM shop_a
          1 shop_a: `MATERIALIZED` is not allowed
        WITH x AS NOT MATERIALIZED (SELECT 1) DELETE FROM shop_a
          1 shop_a: `MATERIALIZED` is not allowed
        CREATE TEMP VIEW shop_v AS SELECT 1
          1 -: `TEMP` is not allowed
        CREATE TEMP VIEW shop_v AS SELECT 1
          1 -: `VIEW` is not allowed
    "#]].assert_eq(&told);
    let call = read("SELECT a FROM shop_t WHERE (b = ").unwrap_err().to_string();
    assert!(!call.contains("Expected:"), "{call}");
    let call = read("WITH x AS MATERIALIZED (SELECT 1) SELECT * FROM x").unwrap_err();
    assert!(
        call.to_string().starts_with("`MATERIALIZED` is not allowed"),
        "{call}"
    );
}

#[test]
fn the_tables_of_a_component_are_bounded() {
    let many = |count: usize, make: fn(usize) -> String| (0..count).map(make).collect::<Vec<_>>();
    let table = |number| format!("CREATE TABLE shop_{number} (a TEXT);");
    let unique =
        |number| format!("CREATE TABLE shop_{number} (a TEXT UNIQUE, b TEXT PRIMARY KEY, UNIQUE (a, b));");
    let index = |number| format!("CREATE INDEX shop_i{number} ON shop_0 (a);");
    let check = |number| {
        format!(
            "CREATE TABLE shop_{number} (a TEXT CHECK (a <> '{}'));",
            "x".repeat(3_000)
        )
    };
    let wide = |number| {
        let columns: Vec<String> = (0..100).map(|column| format!("c{column} TEXT")).collect();
        format!("CREATE TABLE shop_{number} ({});", columns.join(", "))
    };
    let refused = |texts: Vec<String>| {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        migrated(&texts).map(drop).unwrap_err()
    };
    let tables = tollgate_sql::MAX_SCHEMA_TABLES;
    let steps = many(tables, table);
    let mut steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    migrated(&steps).unwrap();
    steps.extend(["DROP TABLE shop_1", "CREATE TABLE shop_more (a TEXT)"]);
    migrated(&steps).unwrap();
    steps.push("CREATE TABLE shop_again (a TEXT)");
    let told = migrated(&steps).unwrap_err();
    assert!(
        told.contains("more than 200 tables") && told.contains("shop_again"),
        "{told}"
    );
    let indexed = [many(1, table), many(401, index)].concat();
    for (texts, what) in [
        (many(tables + 100, table), "more than 200 tables"),
        (many(134, unique), "more than 400 indexes"),
        (indexed, "more than 400 indexes"),
        (many(41, wide), "more than 4000 columns"),
        (many(45, check), "more than 131072 bytes"),
    ] {
        let told = refused(texts);
        assert!(
            told.contains(what) && told.matches("would have more than").count() == 1,
            "{told}"
        );
    }
}

#[test]
fn migrations_of_the_built_in_packs_are_read_and_run() {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    for entry in std::fs::read_dir(place).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        // Those of the host, on both engines.
        if name == "core" || name == "core-postgres" || !folder.is_dir() {
            continue;
        }
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        let texts: Vec<_> = files
            .iter()
            .map(|file| std::fs::read_to_string(file).unwrap())
            .collect();
        let steps = texts.iter().map(|sql| Step { name: "step", sql });
        let prefix = format!("{}_", name.replace('-', "_"));
        let schema = schema::read(&prefix, steps).unwrap_or_else(|problems| panic!("{name}: {problems}"));
        let db = Connection::open_in_memory().unwrap();
        for command in schema.steps.iter().flatten() {
            if let Some(sql) = &command.sql {
                db.execute_batch(sql).unwrap_or_else(|err| panic!("{sql}: {err}"));
            }
        }
        let logs = ["gsd", "tasks", "task-store"].contains(&name.as_str());
        assert_eq!(!schema.append_only().is_empty(), logs, "{name}");
    }
}
