//! Calls whose connection to a PostgreSQL server is cut at a commit, at its answer, or before. Skipped without a
//! server.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::time::{Duration, Instant};

use proxy::{Cut, End, Proxy};
use serde_json::{Value, json};

use crate::harness::{Place, Session, until};
use crate::share::share;

/// Suffix of the message that commits a row of the ledger.
const COMMIT: &[u8] = b" END; COMMIT\0";
/// The commit reaches the server, but its answer reaches no one.
const CUT_AFTER: Cut = Cut::Answer(0);
/// The commit does not reach the server.
const CUT_BEFORE: Cut = Cut::Question(0);
/// Time for which a half-open connection remains.
const SILENCE: Duration = Duration::from_millis(50);
/// One of this many places is cut, from a random one on.
const ONE_OF: usize = 60;

/// A place whose hosts connect to the server through a proxy, if there is a server.
fn place(mark: &'static [u8]) -> Option<(Place, Proxy)> {
    let mut place = Place::new();
    let server = place.server()?;
    let proxy = Proxy::to(server.address(), mark).unwrap();
    server.go_by(proxy.address());
    Some((place, proxy))
}

fn create(title: &str) -> Value {
    json!({"title": title, "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft", "actor": "ada",
           "actor_role": "orchestrator"})
}

fn assert_verified(place: &Place) {
    let verified = place.run(&["ledger", "verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stderr)
    );
}

async fn each_call_is_done_once(cut: Cut) {
    let Some((place, proxy)) = place(COMMIT) else {
        return;
    };
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", create("before")).await;
    for round in 0..5 {
        proxy.cut_next(cut, End::Closed);
        session.ok("task_create", create(&format!("cut {round}"))).await;
        assert!(proxy.was_cut(), "no commit came by");
    }
    session.ok("task_create", create("after")).await;
    session.close().await;
    let titles = place.sql("SELECT title FROM task_store_tasks ORDER BY title");
    assert_eq!(
        titles,
        ["after", "before", "cut 0", "cut 1", "cut 2", "cut 3", "cut 4"]
    );
    assert_eq!(place.ledger(), ["task_create write ok"; 7]);
    assert_verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_found() {
    each_call_is_done_once(CUT_AFTER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_never_came_is_done_again() {
    each_call_is_done_once(CUT_BEFORE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_done_once_wherever_its_last_trip_is_cut() {
    let Some((place, proxy)) = place(COMMIT) else {
        return;
    };
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", create("first")).await;
    let trip = proxy.last_trip();
    assert!(trip.question >= COMMIT.len() && trip.answer > 0, "{trip:?}");
    let questions = (0..=trip.question).map(Cut::Question);
    let cuts: Vec<Cut> = questions.chain((0..=trip.answer).map(Cut::Answer)).collect();
    let ends = [End::Closed, End::Silent(SILENCE)];
    let mut done = vec!["first".to_owned()];
    let mut perhaps = Vec::new();
    for place in share(0..cuts.len() * ends.len(), ONE_OF) {
        let (cut, end) = (cuts[place / 2], ends[place % 2]);
        let title = format!("{cut:?} {end:?}");
        proxy.cut_next(cut, end);
        let result = session.call_raw("task_create", create(&title)).await;
        assert!(proxy.was_cut(), "{title}: no commit came by");
        match result.structured_content.unwrap()["error"]["code"].as_str() {
            None => done.push(title.clone()),
            Some("OUTCOME_UNKNOWN") => perhaps.push(title.clone()),
            Some(code) => panic!("{title}: {code}"),
        }
        let next = format!("after {title}");
        session.ok("task_create", create(&next)).await;
        done.push(next);
    }
    session.close().await;
    let titles = place.sql("SELECT title FROM task_store_tasks");
    let times = |title: &String| titles.iter().filter(|found| *found == title).count();
    for title in &done {
        assert_eq!(times(title), 1, "{title}");
    }
    for title in &perhaps {
        assert!(times(title) <= 1, "{title} was done twice");
    }
    let rows = place.sql("SELECT count(*) FROM core_operations WHERE tool = 'task_create' AND success = 1");
    assert_eq!(rows, [titles.len().to_string()]);
    assert_verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_come_while_the_server_is_away_are_refused_and_have_their_rows_later() {
    let Some((place, proxy)) = place(b"") else {
        return;
    };
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", create("before")).await;
    proxy.be_away(true);
    let mut refused = 0;
    for round in 0..5 {
        for (tool, arguments) in [
            ("task_create", create(&format!("{round}"))),
            ("task_list", json!({"limit": 1})),
        ] {
            let refusal = session.refused(tool, arguments).await;
            assert_eq!(refusal["code"], "STORAGE_UNREACHABLE", "{refusal:#}");
            refused += 1;
        }
    }
    // One that is malformed needs no database to be refused.
    let malformed = session.refused("task_create", json!({})).await;
    assert_eq!(malformed["code"], "INVALID_ARGUMENTS", "{malformed:#}");
    proxy.be_away(false);
    // Hosts connect anew by themselves, and calls that wait are done.
    let until = Instant::now() + Duration::from_secs(20);
    while session.call_raw("task_create", create("after")).await.is_error == Some(true) {
        refused += 1;
        assert!(Instant::now() < until, "the host does not come back");
    }
    session.close().await;
    assert_eq!(
        place.sql("SELECT title FROM task_store_tasks ORDER BY title"),
        ["after", "before"]
    );
    let rows = place.sql("SELECT count(*) FROM core_operations WHERE error_code = 'STORAGE_UNREACHABLE'");
    assert_eq!(rows, [refused.to_string()]);
    let rows = place.sql("SELECT count(*) FROM core_operations WHERE error_code = 'INVALID_ARGUMENTS'");
    assert_eq!(rows, ["1"]);
    assert_verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_takes_a_trip_for_each_statement_and_one_more() {
    // The connection of the writer is the one that commits rows.
    let Some((place, proxy)) = place(COMMIT) else {
        return;
    };
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("task_create", create("prepares the statements")).await;
    let mut fewest = u64::MAX;
    for round in 0..8 {
        let before = proxy.trips_beside_mark();
        session.ok("task_create", create(&format!("{round}"))).await;
        // Maintenance may come in between.
        fewest = fewest.min(proxy.trips_beside_mark() - before);
    }
    session.close().await;
    assert_eq!(fewest, 3, "the task with the beginning, its event, and the end");
    assert_verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_loses_its_connection_before_the_commit_runs_again() {
    // It goes before a component's first statement.
    let Some((place, proxy)) = place(b"SAVEPOINT statement") else {
        return;
    };
    let session = place.serve(&["--tier", "full"]).await;
    for title in ["first", "second"] {
        proxy.cut_next(Cut::Answer(0), End::Closed);
        session.ok("task_create", create(title)).await;
        assert!(proxy.was_cut(), "no statement came by");
    }
    session.close().await;
    assert_eq!(
        place.sql("SELECT title FROM task_store_tasks ORDER BY title"),
        ["first", "second"]
    );
    assert_eq!(place.ledger(), ["task_create write ok"; 2]);
    assert_verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_whose_commit_never_came_is_opened_once() {
    let Some((place, proxy)) = place(COMMIT) else {
        return;
    };
    let session = place.serve(&["--tier", "full"]).await;
    for cut in [CUT_BEFORE, CUT_AFTER] {
        proxy.cut_next(cut, End::Closed);
        let opened = session.ok("envelope_open", json!({"label": "cut"})).await;
        assert!(proxy.was_cut(), "no commit came by");
        let got = session
            .ok("envelope_get", json!({"envelope_id": opened["id"]}))
            .await;
        assert_eq!(got["label"], "cut");
    }
    session.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM core_envelopes"), ["2"]);
    assert_verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_reads_and_loses_its_connection_is_told_so() {
    let Some((place, proxy)) = place(b"task_store_tasks") else {
        return;
    };
    let session = place.serve(&["--tier", "full"]).await;
    let list = || json!({"limit": 1});
    proxy.cut_next(Cut::Answer(0), End::Closed);
    let refusal = session.refused("task_list", list()).await;
    assert!(proxy.was_cut(), "no statement came by");
    assert_eq!(refusal["code"], "STORAGE_UNREACHABLE", "{refusal:#}");
    session.ok("task_list", list()).await;
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ends_while_the_server_is_away_has_its_row_later() {
    let Some((place, proxy)) = place(b"") else {
        return;
    };
    let folder = place.path().join("w");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        folder.join("run.sh"),
        "touch began\nuntil [ -e go ]; do sleep 0.05; done\n",
    )
    .unwrap();
    let config = "[workspaces.w]\npath = \"w\"\ntests.default = [\"sh\", \"run.sh\"]\n";
    std::fs::write(place.config(), config).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    let envelope = session.ok("envelope_open", json!({})).await["envelope_id"].clone();
    let run = session.call_raw("test_run", json!({"workspace": "w", "envelope_id": envelope}));
    let away = async {
        until(async || folder.join("began").exists()).await;
        proxy.be_away(true);
        std::fs::write(folder.join("go"), "").unwrap();
    };
    let (ran, ()) = tokio::join!(run, away);
    let told = ran.structured_content.unwrap();
    assert_eq!(told["error"]["code"], "OUTCOME_UNKNOWN", "{told:#}");
    proxy.be_away(false);
    // Its pack could not store how the tests ended.
    let row = "SELECT error_code || ' ' || (SELECT count(*) FROM core_intents) FROM core_operations WHERE tool = 'test_run'";
    until(async || place.sql(row) == ["OUTCOME_UNKNOWN 0"]).await;
    let counted = "SELECT test_run_count FROM core_envelopes";
    assert_eq!(place.sql(counted), ["1"]);
    session.close().await;
    assert_verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_leaves_while_the_server_is_away_is_noticed_later() {
    let Some((place, proxy)) = place(b"") else {
        return;
    };
    let server = place.serve_http(&["--tier", "full"]);
    let (leaves, stays) = (
        Session::over_http(&server).await,
        Session::over_http(&server).await,
    );
    leaves.ok("envelope_open", json!({})).await;
    proxy.be_away(true);
    // From now on nothing waits for the server any more.
    let refusal = stays.refused("task_create", create("away")).await;
    assert_eq!(refusal["code"], "STORAGE_UNREACHABLE", "{refusal:#}");
    leaves.close().await;
    proxy.be_away(false);
    let closed = "SELECT state || ' ' || closed_by FROM core_envelopes";
    until(async || place.sql(closed) == ["CLOSED_INTERRUPTED DISCONNECTED"]).await;
    stays.close().await;
}
