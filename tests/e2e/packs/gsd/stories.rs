//! Stories of agents with the pack `gsd`. Every call that a reply or refusal suggests is tried.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{at, completion, place, slice_completion, with};
use crate::harness::Place;
use crate::suggested_calls::Teller;

/// All that is stored about a unit.
async fn about(teller: &mut Teller<'_>, unit: &str) -> String {
    let shown = teller
        .ok("gsd_show", json!({"unit": unit, "limit": 50_000}))
        .await;
    shown["content"].as_str().unwrap().to_owned()
}

fn read(dir: &Path, file: &str) -> String {
    std::fs::read_to_string(dir.join(file)).unwrap_or_else(|err| panic!("{file}: {err}"))
}

/// Nothing that a week of planning, blockers, reviews and parking wrote is lost or hidden.
#[tokio::test]
async fn story_6_a_week_of_milestones() {
    let (place, app) = place();
    let mut ada = Teller::come(&place, "app").await;
    let planned = at(
        "M01",
        json!({"title": "Checkout", "vision": "People can pay", "success_criteria": ["a card is charged"],
            "key_risks": ["the gateway"], "definition_of_done": ["docs"], "actor": "ada", "slices": [
            {"slice_id": "S01", "title": "Cards", "goal": "Charge a card", "demo": "a test card", "risk": "high"},
            {"slice_id": "S02", "title": "Refunds", "depends": ["S01"]}]}),
    );
    ada.ok("gsd_plan_milestone", planned).await;
    let tasks = json!([{"task_id": "T01", "title": "Gateway", "description": "Call it.", "verify": "make gateway", "files": ["pay.rs"]},
        {"task_id": "T02", "title": "Retries"}]);
    let sliced = ada
        .ok(
            "gsd_plan_slice",
            at("M01/S01", json!({"tasks": tasks, "actor": "ada"})),
        )
        .await;
    let before = about(&mut ada, "M01/S01/T01").await;
    assert!(
        before.contains("make gateway") && before.contains("pay.rs"),
        "{before}"
    );
    let started = with(sliced["next_call"]["arguments"].clone(), "actor", "ada");
    let started = ada.ok("gsd_task_start", started).await;
    assert_eq!(started["unit"], "M01/S01/T01", "{started:#}");

    // What a blocker changed can be read, and a rename keeps the rest.
    let mut done = with(completion("M01/S01/T01"), "actor", "ada");
    done["blocker_discovered"] = json!(true);
    ada.ok("gsd_task_complete", done).await;
    let replan = at(
        "M01/S01",
        json!({"blocker_task_id": "T01", "blocker_description": "no idempotency", "what_changed": "a key for each order",
            "updated_tasks": [{"task_id": "T02", "title": "Retries with a key"}, {"task_id": "T03", "title": "Keys"}], "actor": "ada"}),
    );
    ada.ok("gsd_replan_slice", replan).await;
    assert!(about(&mut ada, "M01/S01").await.contains("a key for each order"));
    let renamed = json!({"title": "Checkout 2", "parked": true, "actor": "ada"});
    ada.ok("gsd_plan_milestone", at("M01", renamed)).await;
    let parked = with(at("M01/S01/T02", json!({})), "actor", "ada");
    ada.refused("gsd_task_start", parked, "MILESTONE_PARKED").await;
    let resumed = json!({"parked": false, "actor": "ada"});
    ada.ok("gsd_plan_milestone", at("M01", resumed)).await;
    let all = about(&mut ada, "M01").await;
    for kept in [
        "Checkout 2",
        "People can pay",
        "a card is charged",
        "the gateway",
        "docs",
    ] {
        assert!(all.contains(kept), "{kept}: {all}");
    }
    let slice = about(&mut ada, "M01/S01").await;
    assert!(
        slice.contains("Charge a card") && slice.contains("a test card"),
        "{slice}"
    );

    // The last task leads to the slice, whose text is the caller's.
    for task in ["M01/S01/T02", "M01/S01/T03"] {
        ada.ok("gsd_task_complete", with(completion(task), "actor", "ada"))
            .await;
    }
    let status = ada.ok("gsd_status", json!({})).await;
    assert_eq!(status["next"][0]["tool"], "gsd_slice_complete", "{status:#}");
    ada.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let assessed = json!({"completed_slice_id": "S01", "verdict": "adjusted", "assessment": "Refunds need a ledger.",
        "slice_changes": {"added": [{"slice_id": "S03", "title": "Ledger"}], "removed": ["S02"]}});
    ada.ok("gsd_reassess_roadmap", at("M01", assessed)).await;
    assert!(about(&mut ada, "M01").await.contains("Refunds need a ledger."));
    let skipped = at("M01/S03", json!({"reason": "next quarter", "actor": "ada"}));
    ada.ok("gsd_slice_skip", skipped).await;
    let finish = at(
        "M01",
        json!({"one_liner": "Paid", "narrative": "All.", "verification_passed": true}),
    );
    let missing = ada
        .refused("gsd_milestone_complete", finish.clone(), "VALIDATION_MISSING")
        .await;
    assert_eq!(missing["next_call"]["tool"], "gsd_show", "{missing:#}");
    let verdict = json!({"verdict": "pass", "rationale": "Looked at it."});
    ada.ok("gsd_validate_milestone", at("M01", verdict)).await;
    ada.ok("gsd_milestone_complete", finish).await;

    // A refusal by the host is among those of the pack, and the files are those of a whole rendering.
    let malformed = json!({"workspace": "app", "unit": 7});
    ada.session().refused("gsd_task_start", malformed).await;
    let audit = ada.ok("gsd_audit_log", json!({"limit": 200})).await;
    assert!(audit.to_string().contains("INVALID_ARGUMENTS"), "{audit:#}");
    let files = tree(&app.join(".gsd"));
    assert!(!files.iter().any(|(path, _)| path.contains("S02")), "{files:?}");
    ada.ok("gsd_render", json!({})).await;
    assert_eq!(tree(&app.join(".gsd")), files);
    assert!(ada.tried >= 8, "{}", ada.tried);
}

/// Every file below a directory, with its content.
fn tree(dir: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(tree(&path)),
            false => files.push((
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            )),
        }
    }
    files.sort();
    files
}

fn git(dir: &Path, arguments: &[&str]) {
    let identity = [
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.org",
        "-c",
        "init.defaultBranch=main",
    ];
    let status = Command::new("git")
        .current_dir(dir)
        .args(identity)
        .args(arguments)
        .status();
    assert!(status.unwrap().success(), "{arguments:?}");
}

/// The logs in Git carry the work to a colleague, whose first call destroys nothing.
#[tokio::test]
async fn story_7_a_clone_goes_on_with_the_work() {
    let (origin, app) = place();
    git(&app, &["init", "-q"]);
    let mut ada = Teller::come(&origin, "app").await;
    let slices = json!([{"slice_id": "S01", "title": "Cards"}]);
    let planned = at(
        "M01",
        json!({"title": "Checkout", "slices": slices, "actor": "ada"}),
    );
    ada.ok("gsd_plan_milestone", planned).await;
    let tasks = json!([{"task_id": "T01", "title": "Gateway"}, {"task_id": "T02", "title": "Retries"}]);
    let sliced = at("M01/S01", json!({"tasks": tasks, "actor": "ada"}));
    ada.ok("gsd_plan_slice", sliced).await;
    ada.ok(
        "gsd_task_complete",
        with(completion("M01/S01/T01"), "actor", "ada"),
    )
    .await;
    git(&app, &["add", "-A"]);
    git(&app, &["commit", "-qm", "first"]);

    let colleague = Place::new();
    let clone = colleague.path().join("app");
    git(colleague.path(), &["clone", "-q", app.to_str().unwrap(), "app"]);
    let config = format!("[workspaces.app]\npath = {clone:?}\nwrite = [\".gsd/\"]\n");
    std::fs::write(colleague.config(), config).unwrap();
    let mut bob = Teller::come(&colleague, "app").await;
    let log = read(&clone, ".gsd/event-log.jsonl");
    let start = with(at("M01/S01/T02", json!({})), "actor", "bob");
    let ahead = bob.refused("gsd_task_start", start.clone(), "LOG_AHEAD").await;
    assert_eq!(
        read(&clone, ".gsd/event-log.jsonl"),
        log,
        "nothing is written over it"
    );
    let status = bob.ok("gsd_status", json!({"workspace": "app"})).await;
    assert_eq!(status["next"][0]["next_call"]["tool"], "gsd_import", "{status:#}");
    let imported = bob.follow(&ahead["next_call"], "gsd_import").await;
    assert_eq!(imported["imported"], 3, "{imported:#}");
    assert!(about(&mut bob, "M01/S01/T01").await.contains("All of it."));
    bob.ok("gsd_task_start", start).await;
    bob.ok(
        "gsd_task_complete",
        with(completion("M01/S01/T02"), "actor", "bob"),
    )
    .await;
    let longer = read(&clone, ".gsd/event-log.jsonl");
    assert!(longer.starts_with(&log), "{longer}");

    // His work comes back by a pull.
    git(&clone, &["add", "-A"]);
    git(&clone, &["commit", "-qm", "second"]);
    git(&app, &["pull", "-q", clone.to_str().unwrap(), "HEAD"]);
    let ahead = ada
        .refused("gsd_slice_complete", slice_completion("M01/S01"), "LOG_AHEAD")
        .await;
    ada.follow(&ahead["next_call"], "gsd_import").await;
    ada.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let events: Vec<Value> = read(&app, ".gsd/event-log.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), 6, "{events:#?}");
}
