//! Tests of transactions whose BEGIN is sent with their first statement, and of transactions that conflict.

use super::*;
use crate::storage::Among;
use crate::storage::error::StoreFailure;
use crate::storage::fixture::operation;

const NOW: &str = "2026-03-01T00:00:00.000Z";

impl Shop {
    /// A shop with two things in it, and a session whose transactions begin with their first statement.
    fn open() -> Option<(Shop, Session)> {
        let shop = Shop::new()?;
        for name in ["ink", "pen"] {
            shop.add(name).unwrap();
        }
        shop.session.commit().unwrap();
        let late = shop.another();
        late.begin_late(true);
        Some((shop, late))
    }

    fn another(&self) -> Session {
        let session = self.database.write_session().unwrap();
        session.enter(&self.namespace, &within(20_000));
        session
    }

    fn price(&self, session: &Session, name: &str, price: i64) -> Result<u64, SqlError> {
        let sql = "UPDATE shop_items SET price = ?2 WHERE name = ?1";
        let values = [text(name), Value::Integer(price)];
        session.components().execute(&self.namespace, sql, &values)
    }

    fn prices(&self) -> Vec<Vec<Value>> {
        self.session.begin_read().unwrap();
        let sql = "SELECT price FROM shop_items ORDER BY name";
        let prices = self.query(sql, &[]).unwrap();
        self.session.commit().unwrap();
        prices
    }
}

fn numbers(numbers: &[i64]) -> Vec<Vec<Value>> {
    numbers
        .iter()
        .map(|number| vec![Value::Integer(*number)])
        .collect()
}

fn among(key: &str) -> Among {
    Among {
        shared: vec!["shop".to_owned()],
        keys: vec![format!("shop {key}")],
        envelope: None,
    }
}

#[test]
fn a_transaction_begins_with_its_first_statement() {
    let Some((shop, late)) = Shop::open() else { return };
    late.begin_write_among(&among("ink")).unwrap();
    late.savepoint().unwrap();
    assert_eq!(shop.price(&late, "ink", 8).unwrap(), 1);
    late.release().unwrap();
    late.ledger().record(&operation(1, None, NOW)).unwrap();
    late.commit().unwrap();
    assert_eq!(shop.prices(), numbers(&[8, 7]));
    // The host's own statement comes first, and the part that a call did is undone.
    late.begin_write_among(&among("ink")).unwrap();
    assert_eq!(late.ledger().head().unwrap().seq, 1);
    late.savepoint().unwrap();
    assert_eq!(shop.price(&late, "ink", 9).unwrap(), 1);
    late.undo().unwrap();
    late.ledger().record(&operation(2, None, NOW)).unwrap();
    late.commit().unwrap();
    assert_eq!(shop.prices(), numbers(&[8, 7]));
    // One that nothing is said in.
    late.begin_write().unwrap();
    assert!(late.in_transaction());
    late.rollback().unwrap();
    late.begin_write().unwrap();
    late.commit().unwrap();
    assert!(!late.in_transaction() && !late.must_begin_anew());
    late.begin_read().unwrap();
    assert_eq!(late.ledger().head().unwrap().seq, 2);
    late.commit().unwrap();
}

#[test]
fn a_transaction_whose_turn_does_not_come_begins_anew() {
    let Some((shop, late)) = Shop::open() else { return };
    let holder = shop.another();
    holder.begin_write_among(&among("ink")).unwrap();
    assert_eq!(shop.price(&holder, "ink", 8).unwrap(), 1);
    late.begin_write_among(&among("ink")).unwrap();
    let refused = shop.price(&late, "ink", 9).unwrap_err();
    assert!(matches!(refused, SqlError::TransactionState(_)), "{refused:?}");
    assert!(late.must_begin_anew() && !late.in_transaction() && !late.is_lost());
    // The same for a statement of the host's.
    late.begin_write_among(&among("ink")).unwrap();
    assert!(!late.must_begin_anew());
    let refused = late.ledger().head().unwrap_err();
    assert_eq!(refused.failure(), StoreFailure::Busy, "{refused}");
    assert!(late.must_begin_anew() && !late.in_transaction());
    // Nothing commits by itself, whoever did not notice.
    assert!(late.savepoint().is_err());
    assert!(late.ledger().record(&operation(1, None, NOW)).is_err());
    assert!(late.ledger().head().is_err());
    assert!(shop.price(&late, "ink", 9).is_err() && late.commit().is_err());
    holder.commit().unwrap();
    late.begin_late(false);
    late.begin_write_among(&among("ink")).unwrap();
    assert!(!late.must_begin_anew());
    assert_eq!(shop.price(&late, "ink", 9).unwrap(), 1);
    late.commit().unwrap();
    assert_eq!(shop.prices(), numbers(&[9, 7]));
}

#[test]
fn a_connection_that_was_lost_is_made_anew() {
    let Some((shop, late)) = Shop::open() else { return };
    let killer = shop.another();
    let lose = || {
        late.begin_write().unwrap();
        let pid = "SELECT pg_backend_pid()::bigint";
        let pid: i64 = late.engine.one(Once(pid), &[], |row| row.get(0)).unwrap();
        late.rollback().unwrap();
        killer.begin_write().unwrap();
        let kill = "SELECT pg_terminate_backend(?1::bigint::int, 5000)";
        let is_gone: bool = killer
            .engine
            .one(Once(kill), sql![pid], |row| row.get(0))
            .unwrap();
        assert!(is_gone);
        killer.commit().unwrap();
    };
    lose();
    // Its end had come, so that the beginning notices it; or it comes meanwhile, and it begins anew.
    late.begin_write_among(&among("ink")).unwrap();
    if shop.price(&late, "ink", 8).is_err() {
        assert!(late.must_begin_anew());
        late.begin_late(false);
        late.begin_write_among(&among("ink")).unwrap();
        assert_eq!(shop.price(&late, "ink", 8).unwrap(), 1);
    }
    late.commit().unwrap();
    assert_eq!(shop.prices(), numbers(&[8, 7]));
}

#[test]
fn of_two_that_wait_for_each_other_one_begins_anew() {
    let Some((shop, late)) = Shop::open() else { return };
    let other = shop.another();
    late.begin_write_among(&among("ink")).unwrap();
    other.begin_write_among(&among("pen")).unwrap();
    assert_eq!(shop.price(&late, "ink", 8).unwrap(), 1);
    assert_eq!(shop.price(&other, "pen", 8).unwrap(), 1);
    let namespace = shop.namespace.clone();
    let waiting = std::thread::spawn(move || {
        let sql = "UPDATE shop_items SET price = 9 WHERE name = 'pen'";
        let done = late.components().execute(&namespace, sql, &[]);
        (late, done)
    });
    let done = shop.price(&other, "ink", 9);
    // Whoever got through ends, so that the other one does not wait for ever.
    if done.is_ok() {
        other.commit().unwrap();
    }
    let (late, also_done) = waiting.join().unwrap();
    assert!(done.is_ok() != also_done.is_ok(), "{done:?} {also_done:?}");
    let (loser, refused) = match (done, also_done) {
        (Err(refused), _) => {
            late.commit().unwrap();
            (other, refused)
        }
        (_, Err(refused)) => (late, refused),
        _ => unreachable!(),
    };
    assert!(matches!(refused, SqlError::TransactionState(_)), "{refused:?}");
    assert!(loser.must_begin_anew() && !loser.in_transaction());
    let prices = shop.prices();
    assert!(
        prices == numbers(&[8, 9]) || prices == numbers(&[9, 8]),
        "{prices:?}"
    );
    loser.begin_late(false);
    loser.begin_write().unwrap();
    assert!(!loser.must_begin_anew());
    loser.rollback().unwrap();
}

#[test]
fn a_feed_is_read_after_the_calls_that_are_at_work() {
    let Some((shop, late)) = Shop::open() else { return };
    late.begin_write_among(&among("ink")).unwrap();
    assert_eq!(shop.price(&late, "ink", 8).unwrap(), 1);
    let (database, namespace) = (shop.database.clone(), shop.namespace.clone());
    let reading = std::thread::spawn(move || {
        let session = database.read_session().unwrap();
        session.begin_read_of_feed("shop").unwrap();
        session.enter(&namespace, &within(20_000));
        let sql = "SELECT price FROM shop_items WHERE name = 'ink'";
        let seen = session.components().query(&namespace, sql, &[]).unwrap();
        session.commit().unwrap();
        // Nothing is locked any more.
        session.begin_read_of_feed("shop").unwrap();
        session.commit().unwrap();
        seen
    });
    let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    let watching = shop.another();
    watching.begin_read().unwrap();
    while watching
        .engine
        .one(Once(waits), &[], |row| row.get::<i64>(0))
        .unwrap()
        == 0
    {
        assert!(!reading.is_finished(), "it does not wait");
    }
    watching.commit().unwrap();
    late.commit().unwrap();
    assert_eq!(reading.join().unwrap(), numbers(&[8]));
    let after = shop.another();
    after.begin_write_among(&among("ink")).unwrap();
    after.rollback().unwrap();
}

#[test]
fn a_batch_begins_a_transaction_and_is_undone_whole() {
    let Some((shop, late)) = Shop::open() else { return };
    let insert = |name: &str| Statement {
        sql: "INSERT INTO shop_items (name) VALUES (?1)".to_owned(),
        params: vec![text(name)],
    };
    let batch = |session: &Session, names: &[&str]| {
        let statements: Vec<Statement> = names.iter().map(|name| insert(name)).collect();
        session.components().batch(&shop.namespace, &statements)
    };
    late.begin_write_among(&among("new")).unwrap();
    late.savepoint().unwrap();
    assert_eq!(batch(&late, &["a", "b"]).unwrap(), [1, 1]);
    assert!(batch(&late, &["c", "a"]).is_err());
    assert_eq!(batch(&late, &[]).unwrap(), Vec::<u64>::new());
    let refused = late.components().batch(
        &shop.namespace,
        &[Statement {
            sql: "COMMIT".to_owned(),
            params: Vec::new(),
        }],
    );
    assert!(refused.is_err());
    assert_eq!(batch(&late, &["d"]).unwrap(), [1]);
    late.release().unwrap();
    late.commit().unwrap();
    shop.session.begin_read().unwrap();
    assert_eq!(shop.names(), rows(&["a", "b", "d", "ink", "pen"]));
    shop.session.commit().unwrap();
}
