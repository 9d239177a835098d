//! Facts that the pack `tasks` gets from its host: ends of connections, and test runs of the ledger.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Place, Session, until};

const HELD: &str = "SELECT count(*) FROM core_connections";

async fn bootstrap(session: &Session) {
    let step = |title: &str| json!({"title": title, "success_criteria": ["it holds"], "tests": ["make"]});
    let arguments =
        json!({"workspace": "w", "plan_title": "P", "task_title": "T", "steps": [step("one"), step("two")]});
    session.ok("tasks_bootstrap", arguments).await;
}

fn take(actor: &str) -> Value {
    json!({"workspace": "w", "actor": actor, "until": "connection"})
}

/// Two sessions of one HTTP server, and hosts of their own.
#[tokio::test]
async fn a_lease_ends_with_its_session_and_with_its_host() {
    let place = Place::new();
    let server = place.serve_http(&["--tier", "full"]);
    let ann = Session::over_http(&server).await;
    let bob = Session::over_http(&server).await;
    bootstrap(&ann).await;
    let path = async |session: &Session, actor: &str| {
        let taken = session.ok("tasks_take", take(actor)).await;
        taken["step"]["path"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(path(&ann, "ann").await, "s:0");
    assert_eq!(path(&bob, "bob").await, "s:1");
    assert_eq!(place.sql(HELD), ["2"]);
    ann.close().await;
    // Only her session has ended, and the server goes on.
    until(async || place.sql(HELD) == ["1"]).await;
    let carl = place.serve(&["--tier", "full"]).await;
    assert_eq!(path(&carl, "carl").await, "s:0");
    let close =
        json!({"workspace": "w", "task": "TASK-001", "path": "s:1", "checkpoints": "gate", "actor": "carl"});
    let held = carl.refused("tasks_close_step", close.clone()).await;
    assert_eq!(
        (&held["code"], &held["context"]["holder"]),
        (&json!("STEP_LEASE_HELD"), &json!("bob"))
    );
    // A killed server's sessions are over at once, although their rows are still there.
    drop(server);
    assert_eq!(place.sql(HELD), ["2"]);
    carl.ok("tasks_close_step", close).await;
    // So are those of a killed host on stdio, and the next one removes what it left.
    carl.kill();
    let dora = place.serve(&["--tier", "full"]).await;
    assert_eq!(path(&dora, "dora").await, "s:0");
    assert_eq!(place.sql(HELD), ["1"]);
    dora.close().await;
    assert_eq!(place.sql(HELD), ["0"]);
}

/// A command that is over when it has been answered holds nothing.
#[test]
fn a_single_call_has_no_connection_that_lasts() {
    let place = Place::new();
    let steps = json!([{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]);
    let plan = json!({"workspace": "w", "plan_title": "P", "task_title": "T", "steps": steps});
    assert_eq!(place.call("tasks_bootstrap", &plan).0, 0);
    let (code, refused) = place.call("tasks_take", &take("ann"));
    assert_ne!(code, 0);
    let said = refused.to_string();
    assert!(said.contains("omit until"), "{said}");
}

/// A place with two repositories whose tests pass while the file `broken` is not there. The test `none` runs none.
fn repository() -> Place {
    repository_with("")
}

/// Such a place with more configuration.
fn repository_with(more: &str) -> Place {
    let workspace = |name: &str| {
        format!(
            "[workspaces.{name}]\npath = \"{name}\"\ngit = \"read\"\ntests.default = [\"sh\", \"run.sh\"]\n\
             tests.none = [\"true\"]\n"
        )
    };
    let rule = "[packs.tasks.config.workspaces.w]\nevidence = \"required\"\n";
    let place = Place::with(&[workspace("w"), workspace("x"), rule.to_owned(), more.to_owned()].concat());
    for name in ["w", "x"] {
        make_repository(&place.path().join(name));
    }
    place
}

fn make_repository(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
    let run = "test -e broken && exit 1\necho 'running 1 test'\necho 'test adds ... ok'\necho\n\
        echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'\n";
    std::fs::write(path.join("run.sh"), run).unwrap();
    let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
        let status = Command::new("git")
            .current_dir(path)
            .args(identity)
            .args(arguments)
            .status();
        assert!(status.unwrap().success());
    }
}

#[tokio::test]
async fn a_checkpoint_is_proven_by_a_run_that_the_ledger_has() {
    let place = repository();
    let ann = place.serve(&["--tier", "full"]).await;
    bootstrap(&ann).await;
    ann.ok("envelope_open", json!({})).await;
    let about = |step: &str, mut arguments: Value| {
        arguments["workspace"] = json!("w");
        arguments["task"] = json!("TASK-001");
        arguments["path"] = json!(step);
        arguments
    };
    let capture =
        |step: &str, operation: &Value| about(step, json!({"items": [{"operation_id": operation}]}));
    let close = |step: &str| about(step, json!({"checkpoints": "gate"}));
    let run = async || ann.ok("test_run", json!({"workspace": "w"})).await["operation_id"].clone();
    let refused = async |tool: &str, arguments: Value| {
        let refused = ann.refused(tool, arguments).await;
        assert_eq!(refused["code"], "EVIDENCE_REQUIRED", "{refused:#}");
        refused["message"].as_str().unwrap().to_owned()
    };

    let invented = capture("s:0", &json!("op_01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    refused("tasks_evidence_capture", invented).await;
    let edit = place.sql("SELECT op_id FROM core_operations WHERE tool = 'tasks_bootstrap'");
    refused("tasks_evidence_capture", capture("s:0", &json!(edit[0]))).await;
    // A failing run is evidence of failure.
    let broken = place.path().join("w/broken");
    std::fs::write(&broken, "").unwrap();
    ann.ok("tasks_evidence_capture", capture("s:0", &run().await))
        .await;
    assert!(
        refused("tasks_close_step", close("s:0"))
            .await
            .contains("exit code 1")
    );
    std::fs::remove_file(&broken).unwrap();
    // A run before an edit that no call tells of is too old, once a call looked at the work tree.
    let before = run().await;
    std::fs::write(place.path().join("w/lib.rs"), "fn f() {}").unwrap();
    run().await;
    ann.ok("tasks_evidence_capture", capture("s:0", &before)).await;
    assert!(
        refused("tasks_close_step", close("s:0"))
            .await
            .contains("older than the last")
    );
    // A current one proves the step, and only that one: closing is a change.
    let passing = run().await;
    let captured = ann.ok("tasks_evidence_capture", capture("s:0", &passing)).await;
    assert_eq!(
        captured["next_calls"][0]["tool"], "tasks_close_step",
        "{captured:#}"
    );
    let suggested = captured["next_calls"][0]["arguments"].clone();
    ann.ok("tasks_close_step", suggested).await;
    ann.ok("tasks_evidence_capture", capture("s:1", &passing)).await;
    refused("tasks_close_step", close("s:1")).await;
    ann.ok("tasks_evidence_capture", capture("s:1", &run().await))
        .await;
    ann.ok("tasks_close_step", close("s:1")).await;
}

/// Whoever closes steps here has no way around a run on the work tree as it is.
#[tokio::test]
async fn required_evidence_is_a_run_on_the_work_tree_of_now() {
    let place = repository();
    let ann = place.serve(&["--tier", "full"]).await;
    bootstrap(&ann).await;
    let step = |mut arguments: Value| {
        arguments["workspace"] = json!("w");
        arguments["task"] = json!("TASK-001");
        arguments["path"] = json!("s:0");
        arguments
    };
    let capture = |operation: &Value| step(json!({"items": [{"operation_id": operation}]}));
    let close = || step(json!({"checkpoints": "gate"}));
    let run = async |workspace: &str, test: &str| {
        let ran = ann
            .ok("test_run", json!({"workspace": workspace, "test": test}))
            .await;
        ran["operation_id"].clone()
    };
    let refused = async |tool: &str, arguments: Value| {
        let refused = ann.refused(tool, arguments).await;
        assert_eq!(refused["code"], "EVIDENCE_REQUIRED", "{refused:#}");
        refused["blockers"].to_string() + refused["message"].as_str().unwrap()
    };
    let file = place.path().join("w/lib.rs");

    // Outside of envelopes nobody looks at what is tested.
    let outside = run("w", "default").await;
    let said = refused("tasks_evidence_capture", capture(&outside)).await;
    assert!(said.contains("outside an envelope"), "{said}");
    ann.ok("envelope_open", json!({})).await;
    let said = refused("tasks_evidence_capture", capture(&run("x", "default").await)).await;
    assert!(said.contains("ran in workspace x"), "{said}");
    let said = refused("tasks_evidence_capture", capture(&run("w", "none").await)).await;
    assert!(said.contains("ran no test"), "{said}");
    let typed = json!({"items": [{"title": "sh run.sh", "exit_code": 0, "body": "1 passed"}]});
    let kept = ann.ok("tasks_evidence_capture", step(typed)).await;
    assert_eq!(kept["warnings"][0]["code"], "STATED_EVIDENCE", "{kept:#}");
    let said = refused("tasks_close_step", close()).await;
    assert!(said.contains("only evidence that is not from test_run"), "{said}");

    // An edit that no call tells of counts at once, and undoing it as well.
    ann.ok("tasks_evidence_capture", capture(&run("w", "default").await))
        .await;
    std::fs::write(&file, "fn f() {}").unwrap();
    let batch = json!({"workspace": "w", "atomic": true, "operations": [{"tool": "tasks_close_step", "args": close()}]});
    let forced = json!({"completed": true, "force": true, "reason": "it is late"});
    for (tool, arguments) in [
        ("tasks_close_step", close()),
        ("tasks_verify", close()),
        ("tasks_progress", step(forced)),
    ] {
        let said = refused(tool, arguments).await;
        assert!(
            said.contains("work tree changed") || said.contains("older than"),
            "{tool}: {said}"
        );
    }
    let failed = ann.refused("tasks_batch", batch).await;
    assert_eq!(failed["context"]["code"], "EVIDENCE_REQUIRED", "{failed:#}");
    ann.ok("tasks_evidence_capture", capture(&run("w", "default").await))
        .await;
    ann.ok("tasks_close_step", close()).await;
    // Redo is no way around it either.
    ann.ok("tasks_undo", json!({"workspace": "w"})).await;
    std::fs::write(&file, "fn g() {}").unwrap();
    refused("tasks_redo", json!({"workspace": "w"})).await;
    // In the next envelope the work tree tells whether the run still counts.
    ann.ok("tasks_evidence_capture", capture(&run("w", "default").await))
        .await;
    ann.close().await;
    let bob = place.serve(&["--tier", "full"]).await;
    bob.ok("tasks_close_step", close()).await;
}

/// Tools that only record something are refused as well where edits are limited and nobody can see them.
#[tokio::test]
async fn evidence_is_not_captured_while_limited_edits_cannot_be_seen() {
    let place = repository_with("[envelope]\nauto = true\nmax_edits = 4\n");
    let ann = place.serve(&["--tier", "full"]).await;
    bootstrap(&ann).await;
    let capture = json!({"workspace": "w", "task": "TASK-001", "path": "s:0", "checks": ["it holds"]});
    let git = place.path().join("w/.git");
    std::fs::rename(&git, place.path().join("aside")).unwrap();
    let refused = ann.refused("tasks_evidence_capture", capture.clone()).await;
    assert_eq!(refused["code"], "WORK_TREE_UNSEEN", "{refused:#}");
    std::fs::rename(place.path().join("aside"), &git).unwrap();
    ann.ok("tasks_evidence_capture", capture).await;
    ann.close().await;
}
