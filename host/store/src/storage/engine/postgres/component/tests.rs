//! Tests of a component's statements on a server. Without a server the tests do nothing.

mod beginnings;
mod roles;

use std::time::Duration;

use tollgate_core::deadline::{Cancel, Deadline};

use crate::storage::engine::misplaced::Misplaced;
use crate::storage::engine::{Engine, Once, sql};
use crate::storage::fixture::{self, Place, on_postgres};
use crate::storage::{
    Database, MigrationError, MigrationStep, Namespace, Session, SqlError, Statement, Value,
};

const TABLES: &str =
    "CREATE TABLE shop_items (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, price BIGINT);
    CREATE TABLE shop_log (text TEXT NOT NULL) WITH (append_only = true)
    ";

fn steps(sql: &str) -> Vec<MigrationStep> {
    vec![MigrationStep {
        name: "0001_init".to_owned(),
        sql: sql.to_owned(),
    }]
}

/// A shop with its tables, in a database on the server.
struct Shop {
    session: Session,
    database: Database,
    namespace: Namespace,
    _place: Place,
}

impl Shop {
    fn new() -> Option<Shop> {
        let (place, database) = on_postgres().then(fixture::database)?;
        let steps = steps(TABLES);
        let namespace = Namespace::of_pack("shop").with_tables(&steps).unwrap();
        database.migrate(&namespace, &steps).unwrap();
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        session.enter(&namespace, &within(20_000));
        Some(Shop {
            session,
            database,
            namespace,
            _place: place,
        })
    }

    fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Vec<Value>>, SqlError> {
        self.session.components().query(&self.namespace, sql, params)
    }

    fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, SqlError> {
        self.session.components().execute(&self.namespace, sql, params)
    }

    fn add(&self, name: &str) -> Result<u64, SqlError> {
        let sql = "INSERT INTO shop_items (name, price) VALUES (?1, ?2)";
        self.execute(sql, &[text(name), Value::Integer(7)])
    }

    fn names(&self) -> Vec<Vec<Value>> {
        self.query("SELECT name FROM shop_items ORDER BY name", &[])
            .unwrap()
    }
}

fn within(ms: u64) -> Deadline {
    Deadline::after(Duration::from_millis(ms), Cancel::default())
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn rows(names: &[&str]) -> Vec<Vec<Value>> {
    names.iter().map(|name| vec![text(name)]).collect()
}

#[test]
fn a_failed_statement_undoes_itself_and_nothing_else() {
    let Some(shop) = Shop::new() else { return };
    assert_eq!(shop.add("pen").unwrap(), 1);
    let twice = shop.add("pen").unwrap_err();
    assert!(matches!(twice, SqlError::Constraint(_)), "{twice:?}");
    let overflow = shop.query("SELECT price * ?1 FROM shop_items", &[Value::Integer(i64::MAX)]);
    assert!(matches!(overflow, Err(SqlError::Refused(_))), "{overflow:?}");
    assert_eq!(shop.add("ink").unwrap(), 1);
    assert_eq!(shop.names(), rows(&["ink", "pen"]));
    let sql = "SELECT id, price FROM shop_items WHERE name = ?1";
    let found = shop.query(sql, &[text("pen")]).unwrap();
    assert_eq!(found[0][1], Value::Integer(7));
    shop.session.commit().unwrap();
    let reading = shop.database.read_session().unwrap();
    reading.begin_read().unwrap();
    let found = reading
        .components()
        .query(&shop.namespace, "SELECT count(*) FROM shop_items", &[]);
    assert_eq!(found.unwrap(), [[Value::Integer(2)]]);
    let write = reading
        .components()
        .execute(&shop.namespace, "DELETE FROM shop_items", &[]);
    assert!(matches!(write, Err(SqlError::ReadOnly)), "{write:?}");
    reading.rollback().unwrap();
    // As the first statement of a session, too.
    let reading = shop.database.read_session().unwrap();
    reading.begin_read().unwrap();
    reading.enter(&shop.namespace, &within(20_000));
    let write =
        reading
            .components()
            .execute(&shop.namespace, "INSERT INTO shop_items (name) VALUES ('x')", &[]);
    assert!(matches!(write, Err(SqlError::ReadOnly)), "{write:?}");
    reading.rollback().unwrap();
}

#[test]
fn what_the_reader_refuses_reaches_no_server() {
    let Some(shop) = Shop::new() else { return };
    for sql in [
        "SELECT * FROM pg_class",
        "SELECT op_id FROM core_operations",
        "SELECT pg_sleep(1)",
        "COMMIT",
        "SELECT 1; SELECT 2",
        "DELETE FROM shop_log",
        "UPDATE shop_items SET colour = 1",
        "SELECT name FROM shop_items WHERE id = ?2",
    ] {
        let refused = shop.query(sql, &[Value::Null]);
        assert!(matches!(refused, Err(SqlError::Refused(_))), "{sql}: {refused:?}");
    }
    let misfit = shop.add("a\0b").unwrap_err();
    assert!(matches!(misfit, SqlError::Refused(_)), "{misfit:?}");
    assert_eq!(shop.add("pen").unwrap(), 1);
}

#[test]
fn what_comes_back_has_an_end() {
    let Some(shop) = Shop::new() else { return };
    let numbers = |last: u64| {
        format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {last}) SELECT i FROM n"
        )
    };
    assert_eq!(shop.query(&numbers(10_000), &[]).unwrap().len(), 10_000);
    // The last one does not end by itself before the deadline: the server is asked to stop.
    for last in [10_001, 50_000, 4_000_000_000] {
        let refused = shop.query(&numbers(last), &[]).unwrap_err();
        let SqlError::TooLarge(why) = refused else {
            panic!("{refused:?}")
        };
        assert!(why.contains("10000 rows"), "{why}");
    }
    let long = [text(&"x".repeat(900_000))];
    for name in ["a", "b", "c", "d", "e"] {
        shop.add(name).unwrap();
    }
    let refused = shop
        .query("SELECT CAST(?1 AS TEXT) FROM shop_items", &long)
        .unwrap_err();
    assert!(
        matches!(&refused, SqlError::TooLarge(why) if why.contains("bytes")),
        "{refused:?}"
    );
    let grows = "SELECT CAST(?1 AS TEXT) || ?1 || ?1";
    assert!(matches!(shop.query(grows, &long), Err(SqlError::TooLarge(_))));
    assert_eq!(shop.names().len(), 5);
}

#[test]
fn a_statement_ends_at_the_deadline_and_the_transaction_goes_on() {
    let Some(shop) = Shop::new() else { return };
    shop.add("pen").unwrap();
    shop.session.enter(&shop.namespace, &within(200));
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000000000)
        SELECT count(*) FROM n";
    let refused = shop.query(endless, &[]).unwrap_err();
    assert!(matches!(refused, SqlError::Interrupted), "{refused:?}");
    shop.session.enter(&shop.namespace, &within(20_000));
    assert_eq!(shop.names(), rows(&["pen"]));
    shop.session.commit().unwrap();
}

#[test]
fn a_batch_is_done_whole_or_not_at_all_and_rows_are_counted() {
    let Some(shop) = Shop::new() else { return };
    let statement = |sql: &str, params: &[Value]| Statement {
        sql: sql.to_owned(),
        params: params.to_vec(),
    };
    let add = |name: &str| statement("INSERT INTO shop_items (name) VALUES (?1)", &[text(name)]);
    let done = shop
        .session
        .components()
        .batch(&shop.namespace, &[add("pen"), add("ink")]);
    assert_eq!(done.unwrap(), [1, 1]);
    let failed = shop
        .session
        .components()
        .batch(&shop.namespace, &[add("cap"), add("pen")]);
    assert!(matches!(failed, Err(SqlError::Constraint(_))), "{failed:?}");
    assert_eq!(shop.names(), rows(&["ink", "pen"]));
    shop.execute("UPDATE shop_items SET price = 3", &[]).unwrap();
    shop.execute("INSERT INTO shop_log (text) VALUES (?1)", &[text("x")])
        .unwrap();
    shop.execute("DELETE FROM shop_items WHERE name = 'ink'", &[])
        .unwrap();
    // A row that is updated instead of inserted counts as that.
    let put = "INSERT INTO shop_items (name, price) VALUES (?1, 4), (?2, 5) ON CONFLICT (name) DO UPDATE SET price = excluded.price";
    assert_eq!(shop.execute(put, &[text("pen"), text("cap")]).unwrap(), 2);
    assert_eq!(shop.query(put, &[text("pen"), text("cap")]).unwrap(), [[]; 0]);
    let put = format!("{put} WHERE shop_items.price < 5 RETURNING name, price");
    let returned = shop.query(&put, &[text("pen"), text("hat")]).unwrap();
    assert_eq!(
        returned,
        [[text("pen"), Value::Integer(4)], [text("hat"), Value::Integer(5)]]
    );
    let changes = shop.session.take_changes();
    assert_eq!(changes["shop_items"], [5, 6, 1]);
    assert_eq!(changes["shop_log"], [1, 0, 0]);
    assert!(shop.session.take_changes().is_empty());
}

#[test]
fn tables_of_components_are_apart_and_brought_up_to_date_once() {
    let Some(shop) = Shop::new() else { return };
    shop.add("pen").unwrap();
    shop.session.commit().unwrap();
    let mut steps = steps(TABLES);
    shop.database.migrate(&shop.namespace, &steps).unwrap();
    steps.push(MigrationStep {
        name: "0002_more".to_owned(),
        sql: "ALTER TABLE shop_items ADD COLUMN colour TEXT; UPDATE shop_items SET colour = 'red'".to_owned(),
    });
    shop.database.try_migrate(&shop.namespace, &steps).unwrap();
    shop.database.migrate(&shop.namespace, &steps).unwrap();
    let namespace = Namespace::of_pack("shop").with_tables(&steps).unwrap();
    let reading = shop.database.read_session().unwrap();
    reading.begin_read().unwrap();
    let found = reading
        .components()
        .query(&namespace, "SELECT name, colour FROM shop_items", &[]);
    assert_eq!(found.unwrap(), [[text("pen"), text("red")]]);
    reading.rollback().unwrap();
    assert_eq!(shop.database.packs_with_tables().unwrap(), ["shop"]);
    steps.push(MigrationStep {
        name: "0003_differs".to_owned(),
        sql: "UPDATE shop_items SET price = 1 WHERE name = 1".to_owned(),
    });
    let refused = shop.database.migrate(&namespace, &steps).unwrap_err();
    assert!(matches!(refused, MigrationError::Differs { .. }), "{refused}");
    let broken = [MigrationStep {
        name: "0001_init".to_owned(),
        sql: "CREATE TABLE till_a (id BIGINT NOT NULL UNIQUE); INSERT INTO till_a (id) VALUES (1);
            INSERT INTO till_a (id) VALUES (1)"
            .to_owned(),
    }];
    let till = Namespace::of_pack("till");
    let refused = shop.database.migrate(&till, &broken).unwrap_err().to_string();
    assert!(refused.contains("statement 3"), "{refused}");
    assert_eq!(shop.database.packs_with_tables().unwrap(), ["shop"]);
}

#[test]
fn whatever_is_put_around_the_tables_of_a_component_is_named() {
    let Some(shop) = Shop::new() else {
        return;
    };
    let misplaced = || shop.session.maintenance().misplaced().unwrap();
    assert_eq!(misplaced(), []);
    let Engine::Postgres(postgres) = &shop.session.engine else {
        panic!("the session is on a server")
    };
    let own = postgres.server.schema_of("shop");
    let function = format!(
        "CREATE FUNCTION \"{own}\".hostile() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"
    );
    for (sql, kind, name) in [
        (
            "CREATE TRIGGER t BEFORE INSERT ON \"OWN\".shop_items FOR EACH ROW EXECUTE FUNCTION \"OWN\".hostile()",
            "trigger",
            "shop_items.t",
        ),
        (
            "ALTER TABLE \"OWN\".shop_log DISABLE TRIGGER append_only",
            "trigger",
            "shop_log.append_only",
        ),
        (
            "CREATE RULE r AS ON INSERT TO \"OWN\".shop_items DO INSTEAD NOTHING",
            "rule",
            "shop_items.r",
        ),
        (
            "CREATE TABLE \"OWN\".child () INHERITS (\"OWN\".shop_items)",
            "child",
            "child",
        ),
        (
            "ALTER TABLE \"OWN\".shop_items ENABLE ROW LEVEL SECURITY",
            "row security of",
            "shop_items",
        ),
        (
            "CREATE VIEW \"OWN\".v AS SELECT * FROM \"OWN\".shop_items",
            "view",
            "v",
        ),
    ] {
        shop.session.rollback().unwrap();
        shop.session.begin_write().unwrap();
        fixture::change(&shop.session, &function).unwrap();
        fixture::change(&shop.session, &sql.replace("OWN", &own)).unwrap();
        let found = misplaced();
        let is_named = |object: &Misplaced| object.kind == kind && object.name.contains(name);
        assert!(found.iter().any(is_named), "{sql}: {found:?}");
        assert!(
            found.iter().any(|object| object.kind == "function"),
            "{sql}: {found:?}"
        );
    }
    shop.session.rollback().unwrap();
}

#[test]
fn a_call_whose_connection_ends_after_a_statement_lost_its_transaction() {
    let Some(shop) = Shop::new() else {
        return;
    };
    shop.add("pen").unwrap();
    let other = shop.database.write_session().unwrap();
    let sql = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
        WHERE state = 'idle in transaction' AND pid IN (SELECT pid FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
            JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = ?1)";
    let Engine::Postgres(postgres) = &shop.session.engine else {
        panic!("the session is on a server")
    };
    let own = postgres.server.schema_of("shop");
    let ended: i64 = other.engine.one(Once(sql), sql![own], |row| row.get(0)).unwrap();
    assert_eq!(ended, 1);
    for _ in 0..2 {
        shop.add("ink").unwrap_err();
        assert!(shop.session.is_lost() && !shop.session.in_transaction());
    }
}
