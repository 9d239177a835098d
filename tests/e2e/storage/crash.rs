//! Durability of acknowledged replies after kill -9.

use serde_json::{Value, json};

use crate::harness::{Place, Session};

async fn create(session: &Session, title: &str) -> Value {
    let arguments = json!({"title": title, "spec_markdown": "# Goal\ng", "workspace": "w", "initial_phase": "spec_draft",
                           "actor": "a", "actor_role": "orchestrator"});
    session.ok("task_create", arguments).await["task"]["id"].clone()
}

#[tokio::test]
async fn acknowledged_state_is_there_after_a_kill() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let id = create(&session, "Kept").await;
    session
        .ok(
            "task_transition",
            json!({"task_id": id, "from_phase": "spec_draft", "to_phase": "spec_review", "actor": "a",
                   "actor_role": "orchestrator", "reason": "ready"}),
        )
        .await;
    session.kill();

    let session = place.serve(&[]).await;
    let task = session.ok("task_get", json!({"task_id": id})).await;
    assert_eq!(task["task"]["phase"], "spec_review");
    assert_eq!(task["task"]["title"], "Kept");
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_row_is_lost_when_killed_under_load() {
    let place = Place::new();
    let mut acknowledged: Vec<Value> = Vec::new();
    for round in 0..8_u64 {
        let session = place.serve(&[]).await;
        let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let load = futures::future::join_all((0..8).map(|worker| {
            let (session, told) = (&session, told.clone());
            async move {
                for number in 0.. {
                    let arguments = json!({"title": format!("{round}-{worker}-{number}"), "spec_markdown": "# Goal\ng",
                        "workspace": "w", "initial_phase": "spec_draft", "actor": "a", "actor_role": "orchestrator"});
                    let call = session.client().call_tool(crate::harness::params("task_create", arguments)).await;
                    match call.ok().and_then(|result| result.structured_content) {
                        Some(body) => told.send(body["task"]["id"].clone()).unwrap(),
                        None => return,
                    }
                }
            }
        }));
        // Killed after a number of replies that differs from round to round, so at no special moment.
        let killer = async {
            for _ in 0..(5 + round * 7) {
                acknowledged.push(heard.recv().await.unwrap());
            }
            session.kill();
        };
        tokio::join!(load, killer);
        while let Ok(id) = heard.try_recv() {
            acknowledged.push(id);
        }
    }
    let session = place.serve(&[]).await;
    for id in &acknowledged {
        session.ok("task_get", json!({"task_id": id})).await;
    }
    session.close().await;

    let tasks = place.sql("SELECT count(*) FROM task_store_tasks");
    assert_eq!(
        tasks,
        place.sql("SELECT count(*) FROM core_operations WHERE tool = 'task_create' AND success = 1")
    );
    assert_eq!(tasks, place.sql("SELECT count(*) FROM task_store_events"));
    assert_eq!(
        place.sql("SELECT max(seq) - count(*) FROM core_operations"),
        ["0"]
    );
    assert!(place.is_whole());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_on_one_data_directory_share_it() {
    let place = Place::new();
    let one = place.serve(&[]).await;
    let other = place.serve(&[]).await;
    let create_many = async |session: &Session| {
        let calls = (0..20).map(|number| {
            let title = format!("t{number}");
            async move { create(session, &title).await }
        });
        futures::future::join_all(calls).await
    };
    let (mine, theirs) = tokio::join!(create_many(&one), create_many(&other));
    for id in &theirs {
        one.ok("task_get", json!({"task_id": id})).await;
    }
    for id in &mine {
        other.ok("task_get", json!({"task_id": id})).await;
    }
    one.close().await;
    other.close().await;
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["40"]);
    assert_eq!(
        place.sql("SELECT max(seq) - count(*) FROM core_operations"),
        ["0"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_host_waits_for_ever_while_others_write_in_a_loop() {
    const HOSTS: usize = 3;
    const WRITES: usize = 40;
    let place = Place::new();
    let hosts = [
        place.serve(&[]).await,
        place.serve(&[]).await,
        place.serve(&[]).await,
    ];
    let finished = std::sync::atomic::AtomicUsize::new(0);
    // Each host writes until every host got its writes through; none can be left behind.
    let load = hosts.iter().map(|host| {
        let finished = &finished;
        async move {
            let mut written = 0;
            while finished.load(std::sync::atomic::Ordering::SeqCst) < HOSTS {
                create(host, "T").await;
                written += 1;
                if written == WRITES {
                    finished.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
            }
            written
        }
    });
    let written = futures::future::join_all(load).await;
    assert!(written.iter().all(|written| *written >= WRITES), "{written:?}");
    for host in hosts {
        host.close().await;
    }
    let rows = place.sql("SELECT count(*) FROM core_operations GROUP BY host_id ORDER BY 1");
    let mut expected: Vec<String> = written.iter().map(ToString::to_string).collect();
    expected.sort_by_key(|count| count.parse::<usize>().unwrap());
    assert_eq!(rows, expected);
}
