//! Guests that wait in the host: each wait ends at its call's deadline.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Place, Session, guest};

/// Every way to wait without end.
const WAYS: [&str; 6] = ["thread", "block", "instant", "never", "poll", "again"];
/// Far less than any guest waits, and enough for a busy machine.
const SOON: Duration = Duration::from_secs(20);

fn limit_sleep() -> Place {
    let limits = "{ read_ms = 100, write_ms = 100, run_ms = 100 }";
    Place::with(&format!(
        "[packs.limit-sleep]\nsource = {:?}\nlimits = {limits}\n",
        guest("limit-sleep")
    ))
}

async fn start(place: &Place) -> Session {
    place.serve(&["--tier", "full"]).await
}

#[tokio::test]
async fn a_guest_that_sleeps_ends_with_its_time() {
    let place = limit_sleep();
    let session = start(&place).await;
    for tool in ["limit_sleep_read", "limit_sleep_write", "limit_sleep_run"] {
        for how in WAYS {
            let started = Instant::now();
            let refusal = session.refused(tool, json!({ "how": how })).await;
            assert_eq!(refusal["code"], "DEADLINE_EXCEEDED", "{tool} {how}: {refusal:#}");
            assert!(started.elapsed() < SOON, "{tool} {how}: {:?}", started.elapsed());
        }
        // Who sleeps for less than its time wakes up, and what has nothing to wait for does not wait.
        for how in [
            json!({"how": "thread", "ms": 1}),
            json!({"how": "stdin"}),
            json!({"how": "output"}),
        ] {
            let shown = how.to_string();
            let reply = session.call_raw(tool, how).await.structured_content.unwrap();
            let is_awake = reply["result"] == "awake";
            // A busy machine may be too slow for a tenth of a second, but nothing else goes wrong.
            let is_late = reply["error"]["code"] == "DEADLINE_EXCEEDED";
            assert!(is_awake || is_late, "{tool} {shown}: {reply:#}");
        }
    }
    session.close().await;
}

#[tokio::test]
async fn a_sleeping_writer_keeps_nobody_waiting() {
    let place = limit_sleep();
    let session = start(&place).await;
    let started = Instant::now();
    let asleep = async {
        session
            .call_raw("limit_sleep_write", json!({"how": "never"}))
            .await
    };
    let writes = async {
        for _ in 0..3 {
            session.ok("envelope_open", json!({})).await;
        }
    };
    tokio::join!(asleep, writes);
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_sleeps_wakes_when_its_call_is_cancelled() {
    let place = Place::with(&format!(
        "[packs.limit-sleep]\nsource = {:?}\nlimits = {{ run_ms = 600000 }}\n",
        guest("limit-sleep")
    ));
    let session = start(&place).await;
    let sent = session.begin("limit_sleep_run", json!({"how": "never"})).await;
    let intents = "SELECT count(*) FROM core_intents";
    crate::harness::until(async || place.sql(intents) == ["1"]).await;
    sent.cancel(None).await.unwrap();
    let cancelled = "SELECT count(*) FROM core_operations WHERE error_code = 'CANCELLED'";
    crate::harness::until(async || place.sql(cancelled) == ["1"]).await;
    session.close().await;
}

#[test]
fn settings_that_make_a_policy_sleep_are_refused_in_time() {
    let place = Place::with(&format!(
        "[policies.policy-faults]\nsource = {:?}\ntools = [\"task_get\"]\nconfig = {{ dozes = true }}\n",
        guest("policy-faults")
    ));
    let started = Instant::now();
    let (code, refusal): (i32, Value) = place.call("task_get", &json!({"task_id": "x"}));
    assert_eq!(
        (code, &refusal["error"]["code"]),
        (1, &json!("POLICY_FAILED")),
        "{refusal:#}"
    );
    assert!(started.elapsed() < SOON * 2, "{:?}", started.elapsed());
}
