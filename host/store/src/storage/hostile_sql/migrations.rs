//! Tests of migrations that need more time, memory or storage than they have.

use super::super::Database;
use super::super::access::Bounds;
use super::super::engine::steps::{MigrationError, MigrationStep};
use super::{Place, TABLES, place, shop, step};

const DIGITS: &str = "CREATE TABLE shop_digits (d BIGINT PRIMARY KEY);
                      INSERT INTO shop_digits (d) VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)";

/// All pairs, triples and so on of digits: a table of 10 to the power of `places` rows.
fn many(places: usize) -> String {
    let tables: Vec<String> = (0..places)
        .map(|place| format!("shop_digits AS d{place}"))
        .collect();
    tables.join(", ")
}

/// Makes a great many rows, one by one.
fn rows_of_all() -> String {
    format!(
        "INSERT INTO shop_items (id, name) SELECT d0.d + 10 * d1.d + 100 * d2.d + 1000 * d3.d + 10000 * d4.d + 100000 * d5.d \
           + 1000000 * d6.d, 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' FROM {}",
        many(7)
    )
}

fn migrated(bounds: Bounds, sql: &str) -> (Place, Result<(), MigrationError>) {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::open(&dir.path().join("t.db")).unwrap();
    let done = database.migrate(
        &shop().bounded(bounds),
        &[step(&format!("{TABLES}; {DIGITS}; {sql}"))],
    );
    (Place { _dir: dir, database }, done)
}

fn bounds(storage: u64) -> Bounds {
    Bounds {
        storage,
        memory: 1 << 20,
    }
}

#[test]
fn a_migration_keeps_to_its_storage_quota() {
    let (place, done) = migrated(bounds(1 << 20), &rows_of_all());
    assert!(
        matches!(done, Err(MigrationError::OutOfStorage { mib: 1, .. })),
        "{done:?}"
    );
    assert!(done.unwrap_err().to_string().contains("limits.storage_mib"));
    // Nothing was changed, and the next one may.
    place.database.migrate(&shop(), &[step(TABLES)]).unwrap();
    let session = place.database.read_session().unwrap();
    let used = session.components().used_pages(&shop()).unwrap();
    assert!((1..10).contains(&used), "{used} pages are booked");
}

#[test]
fn a_migration_keeps_to_its_memory() {
    let greedy = format!("{} ORDER BY (d0.d * 7 + d3.d * 3 + d6.d) % 10", rows_of_all());
    let (place, done) = migrated(bounds(1 << 30), &greedy);
    assert!(
        matches!(done, Err(MigrationError::OutOfMemory { mib: 16, .. })),
        "{done:?}"
    );
    place.database.migrate(&shop(), &[step(TABLES)]).unwrap();
}

#[test]
fn a_migration_ends_and_another_host_writes_after_it() {
    let endless = format!(
        "{DIGITS}; DELETE FROM shop_digits WHERE d < (SELECT count(*) FROM {})",
        many(13)
    );
    let place = place();
    let neighbour = place.database.write_session().unwrap();
    std::thread::scope(|scope| {
        let migrating = scope.spawn(|| {
            let steps = [
                step(TABLES),
                MigrationStep {
                    name: "0002_endless".to_owned(),
                    sql: endless,
                },
            ];
            place.database.try_migrate(&shop(), &steps)
        });
        while !migrating.is_finished() {
            neighbour.begin_write().unwrap();
            neighbour.commit().unwrap();
        }
        let done = migrating.join().unwrap();
        assert!(
            matches!(done, Err(MigrationError::OutOfTime { seconds: 10, .. })),
            "{done:?}"
        );
    });
}
