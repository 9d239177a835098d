//! Limits that hold over envelopes while two hosts race for what is left of them.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use serde_json::{Value, json};

use crate::envelopes::observed_edits::{git, write};
use crate::harness::{HttpServer, Place, Session};

/// Two hosts, on two machines if the database is on a server.
struct Hosts {
    _servers: Vec<HttpServer>,
    _other: Option<Place>,
}

/// A place with a window, whose default workspace is a repository.
fn in_repository(window: &str) -> Place {
    let place = Place::with(&format!(
        "[workspaces.default]\npath = \"work\"\ngit = \"read\"\ntests.default = [\"true\"]\n\
         [[envelope.window]]\n{window}"
    ));
    std::fs::create_dir(place.path().join("work")).unwrap();
    write(&place, "value", "0");
    git(&place, &["init", "-q"]);
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "first"]);
    place
}

/// Clients of two hosts by turns.
async fn crowd(place: &Place, count: usize) -> (Hosts, Vec<Session>) {
    let config = std::fs::read_to_string(place.config()).unwrap();
    // A work tree is on one machine.
    let is_anywhere = !config.contains("[workspaces");
    let other = is_anywhere.then(|| place.on_another_machine(&config)).flatten();
    let places = [place, other.as_ref().unwrap_or(place)];
    let servers: Vec<HttpServer> = places
        .iter()
        .map(|place| place.serve_http(&["--tier", "full"]))
        .collect();
    let mut sessions = Vec::new();
    for number in 0..count {
        sessions.push(Session::over_http(&servers[number % 2]).await);
    }
    let hosts = Hosts {
        _servers: servers,
        _other: other,
    };
    (hosts, sessions)
}

async fn code(session: &Session, tool: &str, arguments: Value) -> Option<String> {
    let reply = session.call_raw(tool, arguments).await;
    let structured = reply.structured_content.unwrap();
    structured["error"]["code"].as_str().map(str::to_owned)
}

fn task(envelope: Option<&str>) -> Value {
    let mut arguments = json!({"title": "T", "spec_markdown": "# Goal\ng", "workspace": "w",
        "initial_phase": "spec_draft", "actor_role": "orchestrator"});
    if let Some(envelope) = envelope {
        arguments["envelope_id"] = envelope.into();
    }
    arguments
}

async fn open(session: &Session, arguments: Value) -> String {
    let opened = session.ok("envelope_open", arguments).await;
    opened["envelope_id"].as_str().unwrap().to_owned()
}

fn verified(place: &Place) {
    let output = place.run(&["ledger", "verify"]);
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_used_up_to_the_last_unit_and_no_further() {
    let place = Place::with(
        "[[envelope.window]]\nby = \"everyone\"\nper = \"1h\"\nmax_mutations = 23\nmax_envelopes = 9\n",
    );
    let (hosts, sessions) = crowd(&place, 8).await;
    let racing = sessions.iter().map(|session| async move {
        let (mut envelopes, mut tasks) = (0, 0);
        // Each envelope has room for more than the window has.
        while code(session, "envelope_open", json!({})).await.is_none() {
            envelopes += 1;
        }
        let refusal = loop {
            match code(session, "task_create", task(None)).await {
                None => tasks += 1,
                Some(code) => break code,
            }
        };
        assert_eq!(refusal, "WINDOW_EXHAUSTED");
        (envelopes, tasks)
    });
    let used: Vec<(i32, i32)> = futures::future::join_all(racing).await;
    let sum = used
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(sum, (9, 23), "{used:?}");
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["23"]);
    assert_eq!(place.sql("SELECT count(*) FROM core_envelopes"), ["9"]);
    drop((sessions, hosts));
    verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_race_over_two_hosts_use_no_more_than_the_envelope_around_them() {
    let place = Place::new();
    let (hosts, sessions) = crowd(&place, 6).await;
    let around = open(&sessions[0], json!({"limits": {"max_mutations": 19}})).await;
    let mut parts = Vec::new();
    for session in &sessions {
        let limits = json!({"max_mutations": 7});
        parts.push(open(session, json!({"parent": around, "limits": limits})).await);
    }
    let racing = sessions.iter().zip(&parts).map(|(session, part)| async move {
        let mut tasks = 0;
        while code(session, "task_create", task(Some(part))).await.is_none() {
            tasks += 1;
        }
        tasks
    });
    let used: Vec<i32> = futures::future::join_all(racing).await;
    assert_eq!(used.iter().sum::<i32>(), 19, "{used:?}");
    assert!(used.iter().all(|part| *part <= 7), "{used:?}");
    assert_eq!(place.sql("SELECT count(*) FROM task_store_tasks"), ["19"]);
    let counts = place.sql(
        "SELECT CAST(parent IS NULL AS INTEGER) || ' ' || sum(mutation_count) FROM core_envelopes GROUP BY parent IS NULL ORDER BY 1",
    );
    assert_eq!(counts, ["0 19", "1 19"]);
    drop((sessions, hosts));
    verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_two_hosts_see_at_once_is_one() {
    let place = in_repository("per = \"1h\"\nmax_edits = 3\n");
    let (hosts, sessions) = crowd(&place, 4).await;
    for session in &sessions {
        open(session, json!({"workspace": "default"})).await;
    }
    for edit in 1..=4 {
        write(&place, "value", &edit.to_string());
        let runs = sessions
            .iter()
            .map(|session| code(session, "test_run", json!({})));
        let codes = futures::future::join_all(runs).await;
        let expected = (edit == 4).then(|| "WINDOW_EXHAUSTED".to_owned());
        assert!(codes.iter().all(|code| *code == expected), "{edit}: {codes:?}");
    }
    drop((sessions, hosts));
    verified(&place);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_by_workspace_counts_the_workspace_in_which_a_call_runs() {
    let place = in_repository("by = \"workspace\"\nper = \"1h\"\nmax_test_runs = 3\nmax_mutations = 4\n");
    let (hosts, sessions) = crowd(&place, 4).await;
    // One works in an envelope that names no workspace.
    let envelope = open(&sessions[3], json!({})).await;
    for (tool, limit) in [("test_run", 3), ("mutation_record", 4)] {
        let racing = sessions.iter().enumerate().map(|(number, session)| {
            let arguments = match number {
                0 => json!({"workspace": "default"}),
                3 => json!({"envelope_id": envelope}),
                _ => json!({}),
            };
            async move {
                let mut through = 0;
                loop {
                    match code(session, tool, arguments.clone()).await {
                        None => through += 1,
                        Some(code) => break (through, code),
                    }
                }
            }
        });
        let ended: Vec<(i32, String)> = futures::future::join_all(racing).await;
        let through: i32 = ended.iter().map(|(through, _)| through).sum();
        assert!(
            ended.iter().all(|(_, code)| code == "WINDOW_EXHAUSTED"),
            "{ended:?}"
        );
        assert_eq!(through, limit, "{tool}: {ended:?}");
    }
    // Another workspace has room of its own.
    assert_eq!(code(&sessions[0], "task_create", task(None)).await, None);
    drop((sessions, hosts));
    verified(&place);
}

#[tokio::test]
async fn calls_that_name_a_task_or_an_attempt_count_in_the_window_of_its_workspace() {
    let place = Place::with(
        "[workspaces.shop]\npath = \"work\"\n\
         [[envelope.window]]\nby = \"workspace\"\nper = \"1h\"\nmax_mutations = 6\n",
    );
    std::fs::create_dir(place.path().join("work")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    let mut arguments = task(None);
    arguments["workspace"] = "shop".into();
    arguments["initial_phase"] = "spec_review".into();
    arguments["spec_markdown"] = "# Goal\ng\n# Acceptance\n- a is done".into();
    let made = session.ok("task_create", arguments).await;
    let id = made["task"]["task_id"].as_str().unwrap();
    let checkpoint = |id: &str| json!({"task_id": id, "checkpoint_type": "note", "payload": {"a": 1}, "actor_role": "orchestrator"});
    session.ok("task_record_checkpoint", checkpoint(id)).await;
    // A pack that tells small letters from capitals has no such task, and the call counts for what it may have been.
    let unknown = session
        .refused("task_record_checkpoint", checkpoint(&id.to_uppercase()))
        .await;
    assert_eq!(unknown["code"], "NOT_FOUND", "{unknown:#}");
    let review = json!({"task_id": id, "review_type": "spec", "verdict": "approved", "findings": [],
        "reviewer_ref": "z", "actor_role": "spec_reviewer"});
    session.ok("task_append_review", review).await;
    let ready = json!({"task_id": id, "from_phase": "spec_review", "to_phase": "execution_ready", "reason": "r",
        "actor_role": "orchestrator"});
    session.ok("task_transition", ready).await;
    let begun = json!({"task_id": id, "phase": "executing", "runtime": "local", "executor_kind": "builder",
        "actor_role": "orchestrator"});
    let begun = session.ok("task_start_attempt", begun).await;
    let attempt = begun["attempt"]["attempt_id"].as_str().unwrap();
    // The sixth and last one is that of the spelling that the pack refused.
    let end = json!({"attempt_id": attempt, "status": "succeeded", "actor_role": "executor"});
    let refusal = session.refused("task_finish_attempt", end).await;
    assert_eq!(refusal["code"], "WINDOW_EXHAUSTED", "{refusal:#}");
    assert_eq!(code(&session, "task_create", task(None)).await, None);
    session.close().await;
    let rows = place.sql(
        "SELECT DISTINCT coalesce(workspace, '-') FROM core_operations WHERE tool LIKE 'task_%' ORDER BY 1",
    );
    assert_eq!(rows, ["-", "shop"]);
    verified(&place);
}

#[tokio::test]
async fn calls_that_name_no_registered_workspace_count_together_in_a_window_by_workspace() {
    let place = Place::with(
        "[workspaces.shop]\npath = \"work\"\n\
         [[envelope.window]]\nby = \"workspace\"\nper = \"1h\"\nmax_envelopes = 2\nmax_mutations = 3\n",
    );
    std::fs::create_dir(place.path().join("work")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    let spellings = ["Shop", "shop ", " shop", "shop/", "zz0"];
    let mut opened = 0;
    let mut open = async |arguments: Value| {
        let code = code(&session, "envelope_open", arguments).await;
        opened += i32::from(code.is_none());
        code
    };
    assert_eq!(open(json!({})).await, None);
    assert_eq!(open(json!({"workspace": "Shop"})).await, None);
    for spelling in spellings {
        let code = open(json!({ "workspace": spelling })).await;
        assert_eq!(code.as_deref(), Some("WINDOW_EXHAUSTED"), "{spelling:?}");
    }
    assert_eq!(open(json!({})).await.as_deref(), Some("WINDOW_EXHAUSTED"));
    let refusal = session.refused("envelope_open", json!({"workspace": "x"})).await;
    let words = refusal["message"].as_str().unwrap();
    assert!(words.starts_with(
        "all calls that name no registered workspace have reached the limit of envelopes (2 within 1h)"
    ));
    assert!(
        refusal["remediation"]
            .as_str()
            .unwrap()
            .contains("workspace_list"),
        "{refusal:#}"
    );
    // The registered one has room of its own.
    for expected in [None, None, Some("WINDOW_EXHAUSTED")] {
        let code = open(json!({"workspace": "shop"})).await;
        assert_eq!(code.as_deref(), expected);
    }
    assert_eq!(opened, 4);
    let mut made = 0;
    for spelling in spellings {
        let mut arguments = task(None);
        arguments["workspace"] = spelling.into();
        made += i32::from(code(&session, "task_create", arguments).await.is_none());
    }
    let without = json!({"title": "T", "goal": "g"});
    assert_eq!(made, 3);
    assert_eq!(
        code(&session, "conductor_init", without).await.as_deref(),
        Some("WINDOW_EXHAUSTED")
    );
    session.close().await;
    verified(&place);
}
