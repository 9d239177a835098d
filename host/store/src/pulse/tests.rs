//! Tests with hosts of two data directories on one server. The tests run if `TOLLGATE_TEST_DATABASE` names a server.

use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::*;
use crate::liveness::Host;
use crate::storage::fixture::{self, Place};

/// A host of a data directory of its own.
struct Machine {
    host: Host,
    database: Database,
    dir: TempDir,
}

fn machine(place: &Place, id: &str) -> Machine {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let database = Database::connect(place.server()).unwrap();
    let new = NewPulse {
        version: "1".to_owned(),
        url: Some(format!("https://{id}.example/mcp")),
        lease: Duration::from_secs(5),
    };
    let host = Host::join_at(&data, id.to_owned(), &database, new).unwrap();
    Machine { host, database, dir }
}

/// Two hosts of two data directories, if tests run on a server.
fn two() -> Option<(Place, Machine, Machine)> {
    let (place, database) = fixture::database();
    if !database.is_on_server() {
        return None;
    }
    let (one, two) = (machine(&place, "hst_1"), machine(&place, "hst_2"));
    Some((place, one, two))
}

/// A host of another machine that says nothing after it joined.
fn stranger_host(id: &str) -> NewMember {
    NewMember {
        id: id.to_owned(),
        place: "elsewhere".to_owned(),
        lease_ms: 1,
        version: "1".to_owned(),
        machine: "m".to_owned(),
        url: None,
    }
}

/// Waits for what a pulse does in its time.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::yield_now();
    }
}

fn write(database: &Database) -> StoreResult<()> {
    let session = database.write_session().map_err(OpenError::into_cause)?;
    session.begin_write()?;
    session.commit()
}

#[test]
fn hosts_of_two_machines_see_each_other_until_one_ends() {
    let Some((_place, one, two)) = two() else { return };
    assert!(one.host.is_alive("hst_2") && two.host.is_alive("hst_1"));
    assert!(!one.host.is_alive("hst_3"));
    assert_eq!(one.host.others_alive().unwrap(), ["hst_2"]);
    one.host.note_workspaces(vec!["app".to_owned()]);
    wait_until("the other has the workspace", || {
        !two.host.hosts_with_workspace("app").is_empty()
    });
    let found = two.host.hosts_with_workspace("app");
    assert_eq!(found[0].url.as_deref(), Some("https://hst_1.example/mcp"));
    assert!(one.host.hosts_with_workspace("app").is_empty(), "it is its own");
    drop(one.host);
    assert!(!two.host.is_alive("hst_1"));
    assert_eq!(two.host.others_alive().unwrap(), [""; 0]);
}

#[test]
fn a_buried_host_writes_nothing_until_it_joins_again() {
    let Some((place, one, two)) = two() else { return };
    write(&one.database).unwrap();
    // Nobody buries a host that is alive.
    let session = two.database.write_session().unwrap();
    session.begin_write().unwrap();
    assert!(!session.roster().remove_dead("hst_1", false).unwrap());
    session.commit().unwrap();
    // As if it had been silent for longer than its lease.
    fixture::change(
        &session,
        "UPDATE core_hosts SET seen_at = seen_at - interval '1 hour' WHERE id = 'hst_1'",
    )
    .unwrap();
    session.begin_write().unwrap();
    let removed = session.roster().remove_dead("hst_1", false).unwrap();
    session.commit().unwrap();
    if removed {
        let joined = || session.roster().find("hst_1").unwrap().is_some();
        match write(&one.database) {
            Ok(()) => assert!(joined(), "it wrote without having joined again"),
            Err(err) => assert_eq!(err.failure(), StoreFailure::Lost, "{err}"),
        }
        wait_until("it joins again", joined);
    }
    write(&one.database).unwrap();
    drop((place, two));
}

#[test]
fn a_host_that_hangs_with_the_turn_to_write_loses_it_and_nobody_else_fails() {
    let Some((_place, one, two)) = two() else { return };
    let hanging = one.database.write_session().unwrap();
    hanging.begin_write().unwrap();
    let session = two.database.write_session().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| write(&two.database));
        // Its pulse goes on here, so what makes it look silent is done again and again.
        wait_until("the others get the turn", || {
            let silence = "UPDATE core_hosts SET seen_at = seen_at - interval '1 hour' WHERE id = 'hst_1'";
            fixture::change(&session, silence).unwrap();
            waiting.is_finished()
        });
        waiting.join().unwrap().unwrap();
    });
    let failure = hanging.commit().unwrap_err().failure();
    assert!(
        matches!(failure, StoreFailure::Lost | StoreFailure::Unknown),
        "{failure:?}"
    );
    wait_until("it writes again", || write(&one.database).is_ok());
}

#[test]
fn a_program_that_is_no_host_keeps_nobody_waiting_for_long() {
    let Some((place, one, _two)) = two() else { return };
    // It hangs before anybody knows of it.
    let stranger = Database::on(place.server().of_nobody()).write_session().unwrap();
    stranger.begin_write().unwrap();
    write(&one.database).unwrap();
    stranger.commit().unwrap_err();
}

#[test]
fn a_host_that_waits_to_bury_another_says_that_it_is_alive() {
    let Some((place, one, _two)) = two() else { return };
    let stranger = Database::on(place.server().of_nobody()).write_session().unwrap();
    stranger.begin_write().unwrap();
    fixture::change(
        &stranger,
        "SET LOCAL idle_in_transaction_session_timeout = '1min'",
    )
    .unwrap();
    let gone = stranger_host("hst_gone");
    one.database
        .write_session()
        .unwrap()
        .roster()
        .join(&gone)
        .unwrap();
    // Longer than the lease, after the time of a lease in which nobody judges.
    let until = Instant::now() + Duration::from_secs(14);
    while Instant::now() < until {
        assert!(!one.host.is_cut_off(), "it waits for the turn and says nothing");
        std::thread::sleep(Duration::from_millis(50));
    }
    stranger.rollback().unwrap();
    let session = one.database.read_session().unwrap();
    wait_until("the one that is gone is removed", || {
        session.roster().find("hst_gone").unwrap().is_none()
    });
}

#[test]
fn what_a_host_says_of_itself_is_shown_in_one_line() {
    let Some((_place, one, _two)) = two() else { return };
    let hostile = NewMember {
        lease_ms: 100_000,
        machine: "a\u{1b}[2J\nname".to_owned(),
        url: Some("http://x/\n\u{202e}".to_owned()),
        ..stranger_host("hst_hostile")
    };
    let session = one.database.write_session().unwrap();
    session.roster().join(&hostile).unwrap();
    let found = session.roster().find("hst_hostile").unwrap().unwrap();
    for text in [found.machine, found.url.unwrap()] {
        assert!(text.chars().all(|letter| !letter.is_control()), "{text:?}");
    }
    session.roster().leave("hst_hostile").unwrap();
}

#[test]
fn a_host_that_is_gone_is_buried_by_the_others() {
    let Some((_place, one, two)) = two() else { return };
    let session = two.database.write_session().unwrap();
    // A host that ended without a word, long ago.
    let gone = stranger_host("hst_gone");
    session.roster().join(&gone).unwrap();
    session.begin_write().unwrap();
    let mut envelope = fixture::envelope("env_1", None);
    envelope.host_id = "hst_gone".to_owned();
    session.envelopes().open(&envelope).unwrap();
    session.commit().unwrap();
    wait_until("the envelope is interrupted", || {
        let found = session.envelopes().get("env_1").unwrap().unwrap();
        found.closed_by.as_deref() == Some("HOST_GONE")
    });
    assert!(session.roster().find("hst_gone").unwrap().is_none());
    drop(one);
}

#[test]
fn hosts_share_secrets_and_the_time_of_the_server() {
    let Some((_place, one, two)) = two() else { return };
    let secret = one.database.shared_secret("s").unwrap().unwrap();
    assert_eq!(two.database.shared_secret("s").unwrap(), Some(secret));
    assert_ne!(two.database.shared_secret("t").unwrap(), Some(secret));
    let [a, b] = [&one, &two].map(|machine| machine.database.clock().unwrap().boot_ms());
    let server_ms = one.database.read_session().unwrap().roster().server_ms().unwrap();
    for time in [a, b] {
        assert!((time - server_ms).abs() < 5_000, "{time} {server_ms}");
    }
    let places =
        [&one, &two].map(|machine| place_of(&DataDir::existing(machine.dir.path()).unwrap()).unwrap());
    assert_ne!(places[0], places[1]);
    let lock = one.database.try_lock("work").unwrap();
    assert!(two.database.try_lock("work").unwrap().is_none());
    drop(lock);
    wait_until("the lock is free", || {
        two.database.try_lock("work").unwrap().is_some()
    });
}
