//! What is read, what is refused, and that what is printed means what was said.
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
        "ALTER TABLE shop_log RENAME TO shop_journal; CREATE TABLE shop_log (id TEXT)",
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

#[test]
fn migrations_of_the_built_in_packs_are_read_and_run() {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    for entry in std::fs::read_dir(place).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "core" {
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
