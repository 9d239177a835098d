//! Tests of components' roles: the statements they stop if the reader did not, and the session's role after each
//! statement.

use std::sync::Arc;

use super::*;
use crate::storage::engine::postgres::{Postgres, Roles, Server};
use crate::storage::engine::{Engine, Once, sql};
use crate::storage::fixture::change;
use crate::storage::{StoreResult, session};

/// Statements that a role of a component stops, past the reader. `HOST` is the schema of the host, `OWN` that of the component.
const STOPPED: &[&str] = &[
    // What is others'.
    "SELECT * FROM \"HOST\".core_operations",
    "SELECT count(*) FROM \"HOST\".core_streams",
    "INSERT INTO \"HOST\".core_consents (id, used_at) VALUES ('x', 1)",
    "UPDATE \"HOST\".core_streams SET place = 0",
    "DELETE FROM \"HOST\".core_operations",
    "SELECT 'core_operations'::regclass::oid",
    "SELECT \"HOST\".instr('a', 'b')",
    "SELECT * FROM \"HOST/till\".till_coins",
    "DELETE FROM \"HOST/till\".till_coins",
    "SELECT query_to_xml('SELECT * FROM \"HOST\".core_operations', true, true, '')",
    "SELECT * FROM ts_stat('SELECT hash FROM \"HOST\".core_operations')",
    // Its own tables are what the migrations made.
    "TRUNCATE \"OWN\".shop_items",
    "UPDATE \"OWN\".shop_log SET text = 'x'",
    "DELETE FROM \"OWN\".shop_log",
    "ALTER TABLE \"OWN\".shop_items ADD COLUMN y text",
    "ALTER TABLE \"OWN\".shop_log DISABLE TRIGGER append_only",
    "DROP TABLE \"OWN\".shop_items",
    "COMMENT ON TABLE \"OWN\".shop_items IS 'x'",
    "CREATE TABLE \"OWN\".shop_more (x text)",
    "CREATE VIEW \"OWN\".shop_more AS SELECT 1",
    "CREATE FUNCTION \"OWN\".f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE TRIGGER t BEFORE INSERT ON \"OWN\".shop_items FOR EACH STATEMENT EXECUTE FUNCTION tollgate.append_only()",
    "CREATE INDEX ON \"OWN\".shop_items (price)",
    "CREATE FUNCTION tollgate.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "DROP FUNCTION tollgate.cat(text, text)",
    "CREATE SCHEMA more",
    // People and settings.
    "SELECT rolname FROM pg_authid",
    "SELECT current_setting('data_directory')",
    "CREATE ROLE more",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "GRANT pg_read_server_files TO CURRENT_USER",
    "SET session_replication_role = replica",
    "ALTER SYSTEM SET fsync = off",
    // Files, programs and other sessions.
    "SELECT pg_read_file('/etc/passwd')",
    "COPY \"OWN\".shop_items TO '/tmp/x'",
    "COPY \"OWN\".shop_items FROM PROGRAM 'true'",
    "SELECT lo_import('/etc/passwd')",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = session_user",
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = session_user",
];

/// Statements that the reader alone stops.
const NOT_STOPPED: &[&str] = &[
    "RESET ROLE",
    "SET SESSION AUTHORIZATION DEFAULT",
    "SELECT set_config('role', 'none', false)",
    "SET LOCAL statement_timeout = 0",
    "SELECT set_config('statement_timeout', '0', true)",
    "SAVEPOINT x",
    "SELECT relname FROM pg_class WHERE relname = 'core_operations'",
    "SELECT rolname FROM pg_roles",
    "SELECT version()",
    "SELECT pg_sleep(0.001)",
    "SELECT pg_advisory_xact_lock(1)",
    "LOCK TABLE \"OWN\".shop_items",
    "SELECT * FROM \"OWN\".shop_items FOR UPDATE",
    "SELECT pg_notify('a', 'b')",
    "LISTEN a",
    "DO $$ BEGIN END $$",
    "SELECT ctid, xmin, tableoid FROM \"OWN\".shop_items",
    "EXPLAIN SELECT 1",
    "SELECT lo_create(0)",
];

impl Shop {
    fn postgres(&self) -> &Postgres {
        match &self.session.engine {
            Engine::Postgres(postgres) => postgres,
            Engine::Sqlite(_) => panic!("not on a server"),
        }
    }

    fn role(&self) -> Arc<str> {
        self.postgres().role_of("shop").unwrap().unwrap()
    }

    /// Runs a text past the reader, as the component's role, and undoes it.
    fn past_the_reader(&self, sql: &str) -> StoreResult<()> {
        let own = self.postgres().server.schema_of("shop");
        let host = &self.postgres().server.schema;
        let sql = sql.replace("OWN", &own).replace("HOST", host);
        self.session.savepoint().unwrap();
        let ran = change(
            &self.session,
            &format!("SET LOCAL ROLE \"{}\"; {sql}", self.role()),
        );
        self.session.undo().unwrap();
        ran
    }

    /// The session is the host's again, for whatever comes next.
    fn assert_itself(&self, after: &str) {
        let sql = "SELECT current_user = session_user AND current_setting('role') = 'none'";
        let is_itself: bool = self.session.engine.one(Once(sql), &[], |row| row.get(0)).unwrap();
        assert!(is_itself, "after {after}");
    }
}

#[test]
fn a_role_stops_what_the_reader_would_have_let_through() {
    let Some(shop) = Shop::new() else { return };
    shop.session.commit().unwrap();
    let till = Namespace::of_pack("till");
    let tables = steps("CREATE TABLE till_coins (id INTEGER PRIMARY KEY)");
    shop.database.migrate(&till, &tables).unwrap();
    shop.session.begin_write().unwrap();
    for text in STOPPED {
        let refused = shop.past_the_reader(text);
        assert!(refused.is_err(), "{text}");
        assert!(
            matches!(shop.query(text, &[]), Err(SqlError::Refused(_))),
            "{text}"
        );
    }
    for text in NOT_STOPPED {
        let ran = shop.past_the_reader(text);
        assert!(ran.is_ok(), "{text}: {ran:?}");
        assert!(
            matches!(shop.query(text, &[]), Err(SqlError::Refused(_))),
            "{text}"
        );
        shop.assert_itself(text);
    }
    assert_eq!(
        shop.postgres().server.wall.breaches(),
        0,
        "the reader said no to all of them"
    );
    shop.add("pen").unwrap();
    shop.session.commit().unwrap();
}

#[test]
fn a_session_is_the_hosts_after_whatever_becomes_of_a_statement() {
    let Some(shop) = Shop::new() else { return };
    shop.add("pen").unwrap();
    shop.assert_itself("a write");
    shop.add("ink").unwrap();
    shop.add("ink").unwrap_err();
    shop.assert_itself("a write that failed behind another");
    shop.names();
    shop.assert_itself("a query");
    let overflow = "SELECT price * ?1 FROM shop_items";
    shop.query(overflow, &[Value::Integer(i64::MAX)]).unwrap_err();
    shop.assert_itself("a query that failed");
    let numbers =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) SELECT i FROM n";
    shop.query(numbers, &[Value::Integer(20_000)]).unwrap_err();
    shop.assert_itself("more rows than there may be");
    let statement = |name: &str| Statement {
        sql: "INSERT INTO shop_items (name) VALUES (?1)".to_owned(),
        params: vec![text(name)],
    };
    let components = shop.session.components();
    components
        .batch(&shop.namespace, &[statement("a"), statement("b")])
        .unwrap();
    shop.assert_itself("a batch");
    components
        .batch(&shop.namespace, &[statement("c"), statement("a")])
        .unwrap_err();
    shop.assert_itself("a batch that failed");
    shop.session.savepoint().unwrap();
    shop.add("d").unwrap();
    shop.session.undo().unwrap();
    shop.assert_itself("an undone part");
    shop.session.enter(&shop.namespace, &within(100));
    let late = shop.query(numbers, &[Value::Integer(4_000_000_000)]).unwrap_err();
    assert!(
        matches!(late, SqlError::Interrupted | SqlError::TooLarge(_)),
        "{late:?}"
    );
    shop.session.leave();
    if shop.session.in_transaction() {
        shop.session.rollback().unwrap();
    }
    shop.assert_itself("a statement that was cancelled");
    // While rows of the host's are visited.
    shop.session.begin_write().unwrap();
    shop.session
        .engine
        .each("SELECT n FROM generate_series(1, 600) AS n", &[], |row| {
            if row.get::<i64>(0)? % 300 == 0 {
                shop.names();
                shop.assert_itself("a query among rows");
            }
            Ok(())
        })
        .unwrap();
    shop.session.rollback().unwrap();
    let reading = shop.database.read_session().unwrap();
    reading.begin_read().unwrap();
    let count = "SELECT count(*) FROM shop_items";
    reading.components().query(&shop.namespace, count, &[]).unwrap();
    let user: bool = reading
        .engine
        .one("SELECT current_user = session_user", &[], |row| row.get(0))
        .unwrap();
    assert!(user);
    reading.commit().unwrap();
}

#[test]
fn statements_run_as_the_role_and_refusals_of_the_server_are_counted() {
    let Some(shop) = Shop::new() else { return };
    let (role, own) = (shop.role(), shop.postgres().server.schema_of("shop"));
    shop.names();
    change(
        &shop.session,
        &format!("REVOKE SELECT ON \"{own}\".shop_items FROM \"{role}\""),
    )
    .unwrap();
    for text in [
        "SELECT name FROM shop_items ORDER BY name",
        "SELECT price FROM shop_items",
    ] {
        let refused = shop.query(text, &[]).unwrap_err();
        assert!(
            matches!(&refused, SqlError::Refused(why) if why.contains("no access")),
            "{refused:?}"
        );
        shop.assert_itself(text);
    }
    assert_eq!(shop.postgres().server.wall.breaches(), 2);
    change(
        &shop.session,
        &format!(
            "REVOKE USAGE ON SCHEMA \"{own}\" FROM \"{role}\"; GRANT TRUNCATE ON \"{own}\".shop_items TO \"{role}\";
             GRANT UPDATE ON \"{own}\".shop_log TO \"{role}\""
        ),
    )
    .unwrap();
    shop.session.commit().unwrap();
    // A start gives back what is missing, and takes what is too much.
    shop.database.migrate(&shop.namespace, &steps(TABLES)).unwrap();
    shop.session.begin_write().unwrap();
    assert_eq!(shop.names(), rows(&[]));
    for text in [
        "TRUNCATE \"OWN\".shop_items",
        "UPDATE \"OWN\".shop_log SET text = 'x'",
    ] {
        shop.past_the_reader(text).unwrap_err();
    }
    assert_eq!(shop.postgres().without_roles().unwrap(), [""; 0]);
    // One that is more than it should be is not taken.
    change(&shop.session, &format!("ALTER ROLE \"{role}\" CREATEDB")).unwrap();
    assert_eq!(shop.postgres().without_roles().unwrap(), ["shop"]);
    shop.session.rollback().unwrap();
}

/// A role of the server's that owns nothing yet. It goes with its schemas.
struct Plain {
    name: String,
    place: Option<Place>,
}

impl Plain {
    fn new(place: Place) -> Plain {
        let plain = Plain {
            name: format!("plain_{}", place.server().schema),
            place: Some(place),
        };
        let name = &plain.name;
        plain.as_administrator(&format!(
            "CREATE ROLE {name} LOGIN;
             DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO {name}', current_database()); END $$"
        ));
        plain
    }

    fn as_administrator(&self, sql: &str) {
        let server = self.place.as_ref().unwrap().server();
        let session = Session::on_server(&server, session::Access::Write).unwrap();
        change(&session, sql).unwrap();
    }

    fn server(&self) -> Server {
        let mut server = self.place.as_ref().unwrap().server();
        server.config.user(&self.name);
        server.schema.push('p');
        server
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let name = &self.name;
        self.as_administrator(&format!(
            "DROP OWNED BY {name} CASCADE; DO $$ DECLARE r name; BEGIN
                FOR r IN SELECT g.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
                    JOIN pg_roles u ON u.oid = m.member WHERE u.rolname = '{name}' LOOP
                    EXECUTE format('DROP ROLE IF EXISTS %I', r); END LOOP; END $$;
             DROP ROLE {name}"
        ));
    }
}

#[test]
fn without_the_right_to_make_roles_the_reader_is_the_only_wall_or_nothing_starts() {
    let Some((place, _database)) = on_postgres().then(fixture::database) else {
        return;
    };
    let plain = Plain::new(place);
    let tables = steps(TABLES);
    let shop = Namespace::of_pack("shop").with_tables(&tables).unwrap();
    let required = Database::connect(plain.server().with_roles(Roles::Required)).unwrap();
    let refused = required.migrate(&shop, &tables).unwrap_err();
    let told = tollgate_core::text::chain(&refused);
    assert!(
        told.contains("does not exist; give the role of the URL CREATEROLE"),
        "{told}"
    );
    let auto = Database::connect(plain.server()).unwrap();
    let adds = |database: &Database, name: &str| {
        let session = database.write_session().unwrap();
        session.begin_write().unwrap();
        session.enter(&shop, &within(20_000));
        let sql = "INSERT INTO shop_items (name) VALUES (?1)";
        let added = session.components().execute(&shop, sql, &[text(name)]);
        session.leave();
        let without = session.without_roles().unwrap();
        session.commit().unwrap();
        (added, without)
    };
    auto.migrate(&shop, &tables).unwrap();
    let (added, without) = adds(&auto, "pen");
    assert_eq!((added.unwrap(), without), (1, vec!["shop".to_owned()]));
    let (added, _) = adds(&required, "ink");
    assert!(matches!(added, Err(SqlError::Internal(_))), "{added:?}");
    // With that right, the next start makes it.
    plain.as_administrator(&format!("ALTER ROLE {} CREATEROLE", plain.name));
    required.migrate(&shop, &tables).unwrap();
    for (database, name) in [(&required, "cap"), (&auto, "hat")] {
        let (added, without) = adds(database, name);
        assert_eq!((added.unwrap(), without), (1, Vec::new()));
    }
    let session = required.write_session().unwrap();
    let sql =
        "SELECT bool_and(NOT rolcanlogin AND NOT rolinherit AND NOT pg_has_role(current_user, oid, 'USAGE'))
        FROM pg_roles WHERE rolname LIKE 'tollgate\\_%' || ?1 || '/shop'";
    let schema = plain.server().schema;
    let is_apart: bool = session
        .engine
        .one(Once(sql), sql![schema], |row| row.get(0))
        .unwrap();
    assert!(is_apart, "it gives the login nothing by itself");
    let none = Database::connect(plain.server().with_roles(Roles::None)).unwrap();
    assert_eq!(adds(&none, "bag").1, ["shop"]);
    // Every session is looked at, not only the first.
    plain.as_administrator(&format!(
        "ALTER ROLE {} SET session_replication_role = replica",
        plain.name
    ));
    let refused = required.read_session().map(drop).unwrap_err();
    let told = tollgate_core::text::chain(&refused);
    assert!(told.contains("session_replication_role is replica"), "{told}");
}
