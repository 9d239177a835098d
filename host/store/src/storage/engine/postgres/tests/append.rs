//! Tests of ledger rows on a server.

use super::*;

#[test]
fn a_row_on_a_server_goes_after_the_end_alone() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    session.begin_write().unwrap();
    session.ledger().record(&operation(1, None, NOW)).unwrap();
    session.commit().unwrap();
    // Whoever brings a place of his own must know the end.
    let sql = "INSERT INTO core_operations SELECT (r).* FROM (
        SELECT jsonb_populate_record(o, jsonb_build_object('seq', 3, 'op_id', 'op_x')) AS r FROM core_operations AS o) AS x";
    session.begin_write().unwrap();
    let refused = change(&session, sql).unwrap_err();
    assert_eq!(refused.failure(), StoreFailure::Fenced, "{refused}");
    session.rollback().unwrap();
    // An end that is no hash gives none to the next row.
    session.begin_write().unwrap();
    change(&session, "UPDATE core_streams SET hash = 'x'").unwrap();
    let row = operation(2, None, NOW);
    let recorded = session.ledger().record(&row).and_then(|()| session.commit());
    recorded.unwrap_err();
    assert!(!session.in_transaction() && !session.ledger().has("op_2").unwrap());
    // One that is another hash is found.
    session.begin_write().unwrap();
    change(&session, "UPDATE core_streams SET hash = repeat('0', 64)").unwrap();
    session.ledger().record(&operation(2, None, NOW)).unwrap();
    session.commit().unwrap();
    let broken = fixture::verify(&session, None).unwrap();
    assert!(broken.what.contains("does not follow"), "{broken}");
}

#[test]
fn nothing_is_committed_without_the_row_as_it_should_be() {
    let Some((place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    let schema = place.server().schema;
    let trigger = |body: &str| {
        let name = format!("\"{schema}\".hostile");
        for sql in [
            format!(
                "CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
            ),
            format!(
                "CREATE OR REPLACE TRIGGER zz_hostile BEFORE INSERT ON core_operations FOR EACH ROW EXECUTE FUNCTION {name}()"
            ),
        ] {
            change(&session, &sql).unwrap();
        }
    };
    for body in [
        "RETURN NULL;",
        "NEW.hash := repeat('0', 64); RETURN NEW;",
        "NEW.seq := NEW.seq + 7; RETURN NEW;",
        "NEW.op_id := 'op_other'; RETURN NEW;",
        "RAISE EXCEPTION 'no';",
    ] {
        trigger(body);
        session.begin_write().unwrap();
        change(
            &session,
            "INSERT INTO core_intents (op_id, host_id, operation) VALUES ('op_i', 'h', '{}')",
        )
        .unwrap();
        let row = operation(1, None, NOW);
        let recorded = session.ledger().record(&row).and_then(|()| session.commit());
        assert!(recorded.is_err(), "{body}");
        assert!(!session.in_transaction(), "{body}");
        assert_eq!(session.ledger().head().unwrap().seq, 0, "{body}");
        assert!(session.intents().hosts().unwrap().is_empty(), "{body}");
    }
    // A value that cannot be sent takes what was written before with it.
    change(&session, "DROP FUNCTION hostile CASCADE").unwrap();
    session.begin_write().unwrap();
    change(
        &session,
        "INSERT INTO core_intents (op_id, host_id, operation) VALUES ('op_i', 'h', '{}')",
    )
    .unwrap();
    let Engine::Postgres(postgres) = &session.engine else {
        panic!("the session is on a server")
    };
    let sql = "SELECT set_config('tollgate.row', ?1, true)";
    postgres.add_last(Text::from(sql), "op_1", sql!["a\0b"]).unwrap();
    session.commit().unwrap_err();
    assert!(session.intents().hosts().unwrap().is_empty());
    // The session goes on.
    session.begin_write().unwrap();
    session.ledger().record(&operation(2, None, NOW)).unwrap();
    session.ledger().record(&operation(3, None, NOW)).unwrap();
    session.commit().unwrap();
    assert_eq!(fixture::verify(&session, None), None);
    assert!(session.ledger().has("op_2").unwrap() && session.ledger().has("op_3").unwrap());
}

#[test]
fn hosts_write_side_by_side_and_their_rows_make_one_chain() {
    let Some((_place, database)) = database() else {
        return;
    };
    let session = database.write_session().unwrap();
    let among = |shared: &[&str], key: &str| Among {
        shared: shared.iter().map(ToString::to_string).collect(),
        keys: vec![key.to_owned()],
        envelope: Some("env_1".to_owned()),
    };
    let other = database.write_session().unwrap();
    session.begin_write_among(&among(&["p"], "p a")).unwrap();
    // Another key is free.
    other.begin_write_among(&among(&["p"], "p b")).unwrap();
    other.rollback().unwrap();
    // The turn of all is not.
    let busy = other.begin_write_before(&after(100)).unwrap_err();
    assert_eq!(busy.failure(), StoreFailure::Busy, "{busy}");
    session.commit().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let database = &database;
            scope.spawn(move || {
                let session = database.write_session().unwrap();
                for number in 0..25 {
                    session
                        .begin_write_among(&among(&["p"], &format!("p {thread}")))
                        .unwrap();
                    let row = operation(thread * 100 + number, None, NOW);
                    session.ledger().record(&row).unwrap();
                    session.commit().unwrap();
                }
            });
        }
    });
    let session = database.read_session().unwrap();
    assert_eq!(fixture::verify(&session, None), None);
    assert_eq!(session.ledger().head().unwrap().seq, 100);
}
