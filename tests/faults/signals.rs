//! Stopped hosts, and clients that disconnect in the middle of a message.

use rmcp::model::{ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::harness::{Place, Session, guest, params, until};
use crate::load::{Load, texts};

fn signal(session: &Session, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(session.pid()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_was_stopped_goes_on_where_it_was() {
    let place = Place::new();
    let (one, other) = (place.serve(&[]).await, place.serve(&[]).await);
    let (mut load, mut meanwhile) = (Load::default(), Load::default());
    load.create_many(&one, 3).await;
    signal(&one, Signal::STOP);
    // It holds no lock now, so others go on.
    meanwhile.create_many(&other, 3).await;
    let waiting = load.create_many(&one, 3);
    let waking = async {
        meanwhile.create_many(&other, 3).await;
        signal(&one, Signal::CONT);
    };
    tokio::join!(waiting, waking);
    one.close().await;
    other.close().await;
    load.check(&place.data());
    assert_eq!(
        texts(
            &place.data().join("tollgate.db"),
            "SELECT id FROM task_store_tasks"
        )
        .len(),
        12
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_stopped_with_the_lock_keeps_others_from_writing_and_from_nothing_else() {
    let call_limits = guest("call-limits");
    let place = Place::with(&format!(
        "[packs.call-limits]\nsource = {call_limits:?}\nlimits = {{ write_ms = 600000 }}\n"
    ));
    let (holder, other) = (
        place.serve(&["--tier", "full"]).await,
        place.serve(&["--tier", "full"]).await,
    );
    let mut load = Load::default();
    load.create_many(&other, 3).await;
    let call = ClientRequest::CallToolRequest(Request::new(params("call_limits_spin_writing", json!({}))));
    let options = PeerRequestOptions::no_options();
    let spinning = holder
        .client()
        .send_cancellable_request(call, options)
        .await
        .unwrap();
    let asking = Connection::open(place.data().join("tollgate.db")).unwrap();
    asking.busy_timeout(std::time::Duration::ZERO).unwrap();
    until(async || match asking.execute_batch("BEGIN IMMEDIATE") {
        Ok(()) => {
            asking.execute_batch("ROLLBACK").unwrap();
            false
        }
        Err(_) => true,
    })
    .await;
    signal(&holder, Signal::STOP);
    let refusal = load.until_refused(&other).await;
    assert_eq!(refusal["code"], "STORAGE_BUSY", "{refusal:#}");
    other.ok("task_list", json!({})).await;
    signal(&holder, Signal::CONT);
    spinning.cancel(None).await.unwrap();
    until(async || load.create(&other).await.is_none()).await;
    load.create_many(&other, 3).await;
    other.close().await;
    holder.close().await;
    load.check(&place.data());
    let told = "SELECT error_code FROM core_operations WHERE tool = 'call_limits_spin_writing'";
    assert_eq!(texts(&place.data().join("tollgate.db"), told), ["CANCELLED"]);
}

#[test]
fn a_client_that_goes_in_the_middle_of_a_message_leaves_nothing_half_done() {
    let place = Place::new();
    let mut wire = place.wire(&[]);
    wire.initialize("2025-11-25");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "task_create",
        "arguments": {"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
                      "actor": "a", "actor_role": "orchestrator"}}});
    let text = call.to_string();
    wire.send_part(&text.as_bytes()[..text.len() / 2]);
    wire.close_stdin();
    assert!(wire.wait().success());
    crate::load::consistent(&place.data().join("tollgate.db"));
    assert_eq!(place.ledger(), Vec::<String>::new());
}

#[test]
fn a_client_that_stops_reading_and_goes_leaves_a_whole_ledger() {
    let place = Place::new();
    let mut wire = place.wire(&[]);
    wire.initialize("2025-11-25");
    for id in 1..=200 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "task_create",
            "arguments": {"title": "T", "spec_markdown": format!("# Goal\n{}", "g".repeat(4096)), "workspace": "w",
                          "initial_phase": "spec_draft", "actor": "a", "actor_role": "orchestrator"}}});
        wire.send(call.to_string().as_bytes());
    }
    wire.close_stdout();
    wire.close_stdin();
    let status = wire.wait();
    assert!(status.code().is_some(), "{status}");
    let database = place.data().join("tollgate.db");
    crate::load::consistent(&database);
    let requests = "SELECT request_id FROM core_operations GROUP BY request_id HAVING count(*) > 1";
    assert_eq!(texts(&database, requests), Vec::<String>::new());
}
