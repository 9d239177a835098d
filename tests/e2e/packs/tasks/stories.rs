//! Stories of agents with the pack `tasks`. Each goes to its end by the calls that replies suggest.

use serde_json::{Value, json};

use crate::harness::Place;
use crate::suggested_calls::{Teller, shown};

const SHOP: &str = "shop";

fn step(title: &str) -> Value {
    json!({"title": title, "success_criteria": [format!("{title} holds")], "tests": [format!("make {title}")]})
}

/// A run of a command as evidence, for a step that an actor works on.
fn evidence(task: &Value, step: &Value, actor: &str, exit_code: i64) -> Value {
    let items = json!([{"kind": "cmd_output", "title": "make test", "body": "ran", "exit_code": exit_code}]);
    json!({"task": task, "step_id": step["step_id"], "items": items, "actor": actor})
}

/// Takes the first ready step, attaches evidence, and closes it as suggested. Returns the reply of the close.
async fn one_step(teller: &mut Teller<'_>, actor: &str) -> Value {
    let taken = teller.ok("tasks_take", json!({"actor": actor})).await;
    assert_eq!(taken["taken"], true, "{taken:#}");
    let proof = evidence(&taken["task"], &taken["step"], actor, 0);
    let captured = teller.ok("tasks_evidence_capture", proof).await;
    let mut close = captured["next_calls"][0].clone();
    close["arguments"]["actor"] = json!(actor);
    teller.follow(&close, "tasks_close_step").await
}

/// One call makes the plan, both agents work in one task at once, replies lead to the end, and events say who.
#[tokio::test]
async fn story_1_two_agents_divide_a_plan() {
    let place = Place::new();
    let mut ann = Teller::come(&place, SHOP).await;
    let mut bob = Teller::come(&place, SHOP).await;
    let tasks = json!([
        {"title": "Storage", "steps": [step("schema"), step("queries")]},
        {"title": "Server", "depends_on": ["Storage"], "steps": [step("routes")]},
        {"title": "Docs", "priority": "LOW", "steps": [step("readme")]},
    ]);
    let made = json!({"plan_title": "Shop", "tasks": tasks, "actor": "ann"});
    let made = ann.ok("tasks_bootstrap", made).await;
    assert_eq!(made["tasks"], json!(["TASK-001", "TASK-002", "TASK-003"]));

    let first = ann.ok("tasks_take", json!({"actor": "ann"})).await;
    assert_eq!(
        (&first["task"], &first["step"]["path"]),
        (&json!("TASK-001"), &json!("s:0"))
    );
    let next = bob.ok("tasks_next", json!({"owner": "bob"})).await;
    assert_eq!(
        next["ready"][0]["step"]["path"], "s:1",
        "the free step beside ann's: {next:#}"
    );
    let second = bob.ok("tasks_take", json!({"actor": "bob"})).await;
    assert_eq!(second["step"]["path"], "s:1");

    let proof = evidence(&first["task"], &first["step"], "ann", 0);
    let captured = ann.ok("tasks_evidence_capture", proof).await;
    ann.follow(&captured["next_calls"][0], "tasks_close_step").await;
    let proof = evidence(&second["task"], &second["step"], "bob", 0);
    let captured = bob.ok("tasks_evidence_capture", proof).await;
    let closed = bob.follow(&captured["next_calls"][0], "tasks_close_step").await;
    let next = bob.ok("tasks_next", json!({"owner": "bob"})).await;
    assert_eq!(
        next["ready"][0]["next_call"]["tool"], "tasks_complete",
        "{next:#}"
    );
    bob.follow(&closed["next_calls"][0], "tasks_complete").await;

    let routes = one_step(&mut ann, "ann").await;
    ann.follow(&routes["next_calls"][0], "tasks_complete").await;
    let readme = one_step(&mut bob, "bob").await;
    let last = bob.follow(&readme["next_calls"][0], "tasks_complete").await;
    let done = bob.follow(&last["next_calls"][0], "tasks_complete").await;
    assert_eq!(done["plan"], "PLAN-001");
    let events = ann.ok("tasks_delta", json!({"cursor": 0, "limit": 200})).await;
    let events = events["events"].as_array().unwrap();
    let closings: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "step_done")
        .map(|event| &event["actor"])
        .collect();
    assert_eq!(closings, ["ann", "bob", "ann", "bob"]);
    assert!(ann.tried + bob.tried > 15, "{}", ann.tried + bob.tried);
}

/// Nothing of what was written is lost, the lease ends with its owner's connection, and a failing run is told.
#[tokio::test]
async fn story_2_a_third_agent_resumes_after_a_crash() {
    let place = Place::new();
    let mut ann = Teller::come(&place, SHOP).await;
    let steps = json!([step("charge"), step("refund")]);
    ann.ok(
        "tasks_bootstrap",
        json!({"plan_title": "Pay", "task_title": "Cards", "steps": steps}),
    )
    .await;
    let taken = ann
        .ok("tasks_take", json!({"actor": "ann", "until": "connection"}))
        .await;
    let mut bob = Teller::come(&place, SHOP).await;
    let claimed = json!({"task": "TASK-001", "path": "s:1", "actor": "bob"});
    bob.ok("tasks_step_claim", claimed).await;
    let note = format!(
        "{}DO NOT use the order id",
        "The gateway wants an idempotency key. ".repeat(40)
    );
    let noted = json!({"task": "TASK-001", "path": "s:0", "note": note, "actor": "ann"});
    ann.ok("tasks_note", noted).await;
    let body = format!("{}FAILED", "test charge ... ok\n".repeat(400));
    let items = json!([{"kind": "cmd_output", "title": "make charge", "body": body, "exit_code": 1}]);
    let proof = json!({"task": "TASK-001", "step_id": taken["step"]["step_id"], "checkpoint": "tests", "items": items, "actor": "ann"});
    ann.ok("tasks_evidence_capture", proof).await;
    // Her lease holds while she is there.
    let verify = json!({"task": "TASK-001", "path": "s:0", "checkpoints": {"tests": {"confirmed": true}}, "actor": "carl"});
    let held = bob
        .refused("tasks_verify", verify.clone(), "STEP_LEASE_HELD")
        .await;
    assert_eq!(held["context"]["holder"], "ann", "{held:#}");
    ann.session().kill();

    let mut carl = Teller::come(&place, SHOP).await;
    let pack = carl
        .ok(
            "tasks_resume_pack",
            json!({"task": "TASK-001", "max_chars": 4000}),
        )
        .await;
    assert_eq!(pack["radar"]["step"]["path"], "s:0", "{pack:#}");
    let all = shown(&mut carl, json!({"task": "TASK-001", "path": "s:0"}), 3_000).await;
    assert!(
        all.contains("DO NOT use the order id") && all.contains("FAILED"),
        "{all}"
    );
    // The other lease has no end of its own: its holder may be at work, and nobody suggests a takeover.
    let other = json!({"task": "TASK-001", "path": "s:1", "checkpoints": "gate", "actor": "carl"});
    let held = carl.refused("tasks_close_step", other, "STEP_LEASE_HELD").await;
    assert_eq!(held["next_call"]["tool"], "tasks_next", "{held:#}");
    let mine = carl.ok("tasks_take", json!({"actor": "carl"})).await;
    assert_eq!(mine["step"]["path"], "s:0", "the lease ended with its connection");
    let warned = carl.ok("tasks_verify", verify).await;
    assert_eq!(warned["warnings"][0]["code"], "FAILING_EVIDENCE", "{warned:#}");
    let step = json!({"step_id": mine["step"]["step_id"]});
    carl.ok(
        "tasks_evidence_capture",
        evidence(&mine["task"], &step, "carl", 0),
    )
    .await;
}

/// An agent takes its whole batch back with one call, and leaves what others wrote since.
#[tokio::test]
async fn story_3_a_wrong_batch_is_undone() {
    let place = Place::new();
    let mut bob = Teller::come(&place, SHOP).await;
    let mut ann = Teller::come(&place, SHOP).await;
    let steps = json!([step("one"), step("two"), step("three")]);
    bob.ok(
        "tasks_bootstrap",
        json!({"plan_title": "P", "task_title": "T", "steps": steps}),
    )
    .await;
    let rename = |path: &str| {
        let ops = json!([{"op": "set", "field": "title", "value": "wrong"}]);
        json!({"tool": "tasks_patch", "args": {"task": "TASK-001", "kind": "step", "path": path, "ops": ops}})
    };
    let operations = json!([rename("s:0"), rename("s:1"), rename("s:2")]);
    let batch = json!({"operations": operations, "atomic": true, "actor": "bob"});
    assert_eq!(bob.ok("tasks_batch", batch).await["succeeded"], 3);
    ann.ok(
        "tasks_note",
        json!({"task": "TASK-001", "note": "half done", "actor": "ann"}),
    )
    .await;

    let history = bob.ok("tasks_history", json!({"task": "TASK-001"})).await;
    let told = history.to_string();
    assert!(
        told.contains("title") && told.contains("s:0") || told.contains("wrong"),
        "{history:#}"
    );
    bob.ok("tasks_undo", json!({"actor": "bob"})).await;
    let mirror = bob.ok("tasks_mirror", json!({"task": "TASK-001"})).await;
    let steps = mirror["steps"].as_array().unwrap();
    let titles: Vec<&Value> = steps.iter().map(|step| &step["title"]).collect();
    assert_eq!(titles, ["one", "two", "three"]);
    let kept = ann.ok("tasks_search", json!({"query": "half done"})).await;
    assert_eq!(kept["matches"][0]["kind"], "note", "{kept:#}");
    bob.refused("tasks_undo", json!({"actor": "carl"}), "NOTHING_TO_UNDO")
        .await;
    bob.ok("tasks_redo", json!({"actor": "bob"})).await;
    bob.ok("tasks_undo", json!({"actor": "bob"})).await;
}

/// New steps go where they belong, in one call each.
#[tokio::test]
async fn story_4_a_plan_changes_in_the_middle() {
    let place = Place::new();
    let mut ann = Teller::come(&place, SHOP).await;
    let steps = json!([step("parse"), step("store"), step("serve")]);
    ann.ok(
        "tasks_bootstrap",
        json!({"plan_title": "P", "task_title": "T", "steps": steps}),
    )
    .await;
    one_step(&mut ann, "ann").await;
    let inserted = json!({"task": "TASK-001", "position": 1, "steps": [step("check")], "actor": "ann"});
    let inserted = ann.ok("tasks_decompose", inserted).await;
    assert_eq!(inserted["steps"][0]["path"], "s:1", "{inserted:#}");
    let moved = json!({"task": "TASK-001", "path": "s:3", "position": 1, "actor": "ann"});
    assert_eq!(ann.ok("tasks_move", moved).await["step"]["path"], "s:1");
    let below = json!({"task": "TASK-001", "path": "s:2", "parent_step": "s:3", "actor": "ann"});
    assert_eq!(ann.ok("tasks_move", below).await["step"]["path"], "s:2.s:0");
    let mirror = ann.ok("tasks_mirror", json!({"task": "TASK-001"})).await;
    let order: Vec<String> = mirror["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            format!(
                "{} {}",
                step["path"].as_str().unwrap(),
                step["title"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(order, ["s:0 parse", "s:1 serve", "s:2 store", "s:2.s:0 check"]);
    let next = ann.ok("tasks_next", json!({"owner": "ann"})).await;
    assert_eq!(next["ready"][0]["step"]["path"], "s:1", "{next:#}");
}

/// Finished work is reopened for a reason that stays, with new confirmations, and no undo leads astray.
#[tokio::test]
async fn story_5_a_review_reopens_finished_work() {
    let place = Place::new();
    let mut ann = Teller::come(&place, SHOP).await;
    let tasks = json!([
        {"title": "Storage", "steps": [step("schema")]},
        {"title": "Server", "depends_on": ["Storage"], "steps": [step("routes")]},
    ]);
    ann.ok("tasks_bootstrap", json!({"plan_title": "Shop", "tasks": tasks}))
        .await;
    let closed = one_step(&mut ann, "ann").await;
    ann.follow(&closed["next_calls"][0], "tasks_complete").await;
    let closed = one_step(&mut ann, "ann").await;
    let closed = ann.follow(&closed["next_calls"][0], "tasks_complete").await;
    ann.follow(&closed["next_calls"][0], "tasks_complete").await;

    let why = "the review found a race";
    let reopen =
        json!({"task": "TASK-001", "path": "s:0", "completed": false, "reason": why, "actor": "eve"});
    // The plan and what was finished because of this work come first; the refusals show these, and eve decides.
    for (task, status) in [("PLAN-001", "ACTIVE"), ("TASK-002", "TODO")] {
        let refused = ann.call("tasks_progress", reopen.clone()).await["error"].clone();
        let shown = ann.follow(&refused["next_call"], "tasks_show").await;
        assert!(shown.to_string().contains(task), "{refused:#}");
        let again = json!({"task": task, "status": status, "reason": why, "actor": "eve"});
        ann.ok("tasks_complete", again).await;
    }
    ann.ok("tasks_progress", reopen).await;
    // Undoing the reopening of the plan would finish it over open tasks.
    let history = ann.ok("tasks_history", json!({"task": "PLAN-001"})).await;
    let reopening = history["operations"].as_array().unwrap().iter().find(|entry| {
        let operation = &entry["operation"];
        operation["actor"] == "eve" && entry["tasks"] == json!(["PLAN-001"])
    });
    let operation = reopening.unwrap_or_else(|| panic!("{history:#}"))["operation"]["seq"].clone();
    let undo = ann.call("tasks_undo", json!({"operation": operation})).await;
    assert!(undo["error"]["code"].is_string(), "{undo:#}");
    for id in ["PLAN-001", "TASK-001", "TASK-002"] {
        let lint = ann.ok("tasks_lint", json!({"task": id})).await;
        assert_eq!(lint["issues"], json!([]), "{lint:#}");
    }

    let all = shown(&mut ann, json!({"task": "TASK-001", "path": "s:0"}), 2_000).await;
    assert!(all.contains(why), "{all}");
    let history = ann.ok("tasks_history", json!({"task": "TASK-001"})).await;
    assert!(history.to_string().contains(why), "{history:#}");
    let handoff = ann.ok("tasks_handoff", json!({"task": "TASK-002"})).await;
    assert_eq!(handoff["risks"], json!(["waits for TASK-001"]), "{handoff:#}");
    // What was confirmed before does not close it again.
    let done = json!({"task": "TASK-001", "path": "s:0"});
    ann.refused("tasks_done", done, "CHECKPOINTS_NOT_CONFIRMED").await;
    let taken = ann.ok("tasks_take", json!({"actor": "ann"})).await;
    assert_eq!(taken["task"], "TASK-001", "{taken:#}");
}

/// A client with room for 600 bytes finds its way, and no view is longer.
#[tokio::test]
async fn story_8_views_of_600_bytes_suffice() {
    let place = Place::new();
    let mut ann = Teller::come(&place, SHOP).await;
    let tasks = json!([
        {"title": "Storage", "steps": [step("schema"), step("queries")]},
        {"title": "Server", "depends_on": ["Storage"], "steps": [step("routes")]},
    ]);
    ann.ok("tasks_bootstrap", json!({"plan_title": "Shop", "tasks": tasks}))
        .await;
    let mut mutations = 0;
    loop {
        for view in ["tasks_radar", "tasks_next", "tasks_handoff", "tasks_resume_pack"] {
            let mut arguments = json!({"max_chars": 600});
            if view != "tasks_next" {
                arguments["task"] = json!("PLAN-001");
            }
            let mut seen = ann.ok(view, arguments).await;
            let budget = seen.as_object_mut().unwrap().remove("budget").unwrap();
            assert!(seen.to_string().len() <= 600, "{view}: {seen}");
            assert_eq!(budget["used_chars"], seen.to_string().len(), "{view}");
        }
        let next = ann.ok("tasks_next", json!({"max_chars": 600})).await;
        let Some(ready) = next["ready"].get(0) else {
            break;
        };
        if ready.get("step").is_some() {
            let proof = evidence(&ready["task"], &ready["step"], "ann", 0);
            let captured = ann.ok("tasks_evidence_capture", proof).await;
            ann.follow(&captured["next_calls"][0], "tasks_close_step").await;
            mutations += 2;
        } else {
            ann.follow(&ready["next_call"], "tasks_complete").await;
            mutations += 1;
        }
        assert!(mutations < 30, "there is no end");
    }
    assert_eq!(mutations, 9);
    let end = ann
        .ok("tasks_radar", json!({"task": "PLAN-001", "max_chars": 600}))
        .await;
    assert_eq!(end["next"], "Nothing: this work is finished.", "{end:#}");
}
