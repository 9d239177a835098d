//! The pack `gsd` through real clients: the seven points of GSD single-writer v3's “What Success Looks Like”, two
//! agents on two hosts, and files that cannot be written.
#![allow(clippy::disallowed_methods, reason = "the tests look at files")]

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Place, Session};

/// A place with a workspace `app` that packs may write `.gsd/` of, in a folder of its own.
fn place() -> (Place, PathBuf) {
    let place = Place::new();
    let app = place.path().join("app");
    std::fs::create_dir(&app).unwrap();
    let config = format!("[workspaces.app]\npath = {app:?}\nwrite = [\".gsd/\"]\n");
    std::fs::write(place.config(), config).unwrap();
    (place, app)
}

/// Arguments about a unit of workspace `app`, such as `M01/S01/T01`, beside others.
fn at(unit: &str, mut arguments: Value) -> Value {
    for (name, id) in ["milestone_id", "slice_id", "task_id"]
        .iter()
        .zip(unit.split('/'))
    {
        arguments[name] = json!(id);
    }
    arguments["workspace"] = json!("app");
    arguments
}

/// A milestone with a slice with two tasks.
async fn plan(client: &Session, milestone: &str) {
    let slices = json!([{"slice_id": "S01", "title": "Storage", "risk": "high", "demo": "rows survive"}]);
    client
        .ok(
            "gsd_plan_milestone",
            at(milestone, json!({"title": "Ship it", "slices": slices})),
        )
        .await;
    let tasks = json!([{"task_id": "T01", "title": "Schema"}, {"task_id": "T02", "title": "Queries"}]);
    client
        .ok(
            "gsd_plan_slice",
            at(
                &format!("{milestone}/S01"),
                json!({"goal": "Keep rows", "tasks": tasks}),
            ),
        )
        .await;
}

fn completion(unit: &str) -> Value {
    at(
        unit,
        json!({"one_liner": "Did it", "narrative": "All of it.", "verification": "Ran the tests.",
            "verification_evidence": [{"command": "make test", "exit_code": 0, "verdict": "pass", "duration_ms": 1200}]}),
    )
}

fn slice_completion(unit: &str) -> Value {
    at(
        unit,
        json!({"one_liner": "Did it", "narrative": "All of it.", "verification": "Ran it.", "uat_content": "Start it."}),
    )
}

fn with(mut arguments: Value, name: &str, value: &str) -> Value {
    arguments[name] = json!(value);
    arguments
}

#[tokio::test]
async fn success_1_completing_twice_is_refused() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    let error = client
        .refused("gsd_task_complete", completion("M01/S01/T01"))
        .await;
    assert_eq!(error["code"], "ALREADY_COMPLETE");
    assert_eq!(error["message"], "Task T01 is already complete");
    assert_eq!(error["context"]["same_content"], true);
    let other = with(completion("M01/S01/T01"), "narrative", "Something else.");
    let error = client.refused("gsd_complete_task", other).await;
    assert_eq!(error["context"]["same_content"], false);
}

#[tokio::test]
async fn success_2_a_slice_with_open_tasks_stays_open() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    let error = client
        .refused("gsd_slice_complete", slice_completion("M01/S01"))
        .await;
    assert_eq!(error["code"], "TASKS_OPEN");
    assert_eq!(
        error["message"],
        "Task T02 is not complete: it is pending (M01/S01/T02)"
    );
    client.ok("gsd_task_complete", completion("M01/S01/T02")).await;
    client.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let error = client
        .refused("gsd_slice_complete", slice_completion("M01/S01"))
        .await;
    assert_eq!(error["message"], "Slice S01 is already complete");
}

#[tokio::test]
async fn success_3_closed_work_is_not_planned_again() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    for task in ["M01/S01/T01", "M01/S01/T02"] {
        client.ok("gsd_task_complete", completion(task)).await;
    }
    let task = at("M01/S01/T01", json!({"title": "Another schema"}));
    let error = client.refused("gsd_plan_task", task).await;
    assert_eq!(error["message"], "Cannot re-plan: task T01 is already complete");
    client.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let tasks = json!({"tasks": [{"task_id": "T03", "title": "More"}]});
    let error = client.refused("gsd_plan_slice", at("M01/S01", tasks)).await;
    assert_eq!(error["message"], "Cannot re-plan: slice S01 is already complete");
}

#[tokio::test]
async fn success_4_the_wrong_agent_is_refused() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    let claim = at("M01/S01/T01", json!({"actor_name": "executor-01"}));
    client.ok("gsd_claim", claim).await;
    let other = with(completion("M01/S01/T01"), "actor_name", "executor-02");
    let error = client.refused("gsd_task_complete", other).await;
    assert_eq!(error["code"], "NOT_CLAIM_OWNER");
    assert_eq!(
        error["message"],
        "Unit M01/S01/T01 is owned by executor-01, not executor-02"
    );
    let error = client
        .refused("gsd_task_complete", completion("M01/S01/T01"))
        .await;
    assert_eq!(error["code"], "ACTOR_REQUIRED");
    let owner = with(completion("M01/S01/T01"), "actor_name", "executor-01");
    client.ok("gsd_task_complete", owner).await;
    assert_eq!(client.ok("gsd_claims", json!({})).await["claims"], json!([]));
}

#[tokio::test]
async fn success_5_the_audit_log_outlives_processes() {
    let (place, app) = place();
    let named = |arguments: Value, actor: &str, reason: &str| {
        with(with(arguments, "actor_name", actor), "trigger_reason", reason)
    };
    let first = place.serve(&[]).await;
    plan(&first, "M01").await;
    let call = named(completion("M01/S01/T01"), "executor-01", "plan-phase complete");
    first.ok("gsd_task_complete", call).await;
    first.close().await;
    let second = place.serve(&[]).await;
    let call = named(slice_completion("M01/S01"), "executor-02", "user asked");
    second.refused("gsd_slice_complete", call).await;
    second.close().await;
    let text = std::fs::read_to_string(app.join(".gsd/audit-log.jsonl")).unwrap();
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [planned, _, done, refused] = entries.as_slice() else {
        panic!("{text}");
    };
    assert_eq!(done["severity"], "info");
    assert_eq!(done["actor_name"], "executor-01");
    assert_eq!(done["trigger_reason"], "plan-phase complete");
    assert_eq!(refused["severity"], "error");
    assert_eq!(refused["code"], "TASKS_OPEN");
    assert_eq!(refused["actor_name"], "executor-02");
    assert_eq!(refused["trigger_reason"], "user asked");
    // One process is one session; another is another.
    assert_eq!(planned["session_id"], done["session_id"]);
    assert_ne!(planned["session_id"], refused["session_id"]);
    // What the file says is what is stored, and the ledger knows the operation.
    let third = place.serve(&[]).await;
    let stored = third.ok("gsd_audit_log", json!({"workspace": "app"})).await;
    assert_eq!(stored["entries"].as_array().unwrap().len(), 4);
    let operation = refused["op_id"].as_str().unwrap();
    let row = place.sql(&format!(
        "SELECT error_code FROM core_operations WHERE op_id = '{operation}'"
    ));
    assert_eq!(row, ["TASKS_OPEN"]);
}

#[tokio::test]
async fn success_6_mistakes_are_taken_back() {
    let (place, app) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    for task in ["M01/S01/T01", "M01/S01/T02"] {
        client.ok("gsd_task_complete", completion(task)).await;
    }
    let why = json!({"reason": "the tests never ran", "actor_name": "eve"});
    client.ok("gsd_task_reopen", at("M01/S01/T01", why)).await;
    let started = client.ok("gsd_task_start", at("M01/S01/T01", json!({}))).await;
    assert_eq!(started["reopened"][0]["reason"], "the tests never ran");
    assert_eq!(started["reopened"][0]["by"], "eve");
    let plan = std::fs::read_to_string(app.join(".gsd/milestones/M01/slices/S01/S01-PLAN.md")).unwrap();
    assert!(plan.contains("- [ ] **T01: Schema**"), "{plan}");
    assert!(plan.contains("Reopened by eve at "), "{plan}");
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    client.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let reopened = client
        .ok(
            "gsd_slice_reopen",
            at("M01/S01", json!({"reason": "rows are lost"})),
        )
        .await;
    assert_eq!(reopened["status"], "in_progress");
    assert_eq!(
        reopened["also"],
        json!([{"unit": "M01/S01/T01", "status": "pending"}, {"unit": "M01/S01/T02", "status": "pending"}])
    );
}

#[tokio::test]
async fn success_7_a_milestone_waits_for_those_it_depends_on() {
    let (place, _) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    let second = at(
        "M02",
        json!({"title": "Grow it", "depends_on": ["M01"],
        "slices": [{"slice_id": "S01", "title": "More"}]}),
    );
    let error = client.refused("gsd_plan_milestone", second.clone()).await;
    assert_eq!(error["code"], "DEPENDENCY_INCOMPLETE");
    assert_eq!(
        error["message"],
        "Milestone M02 depends on milestone M01, which is active, not complete"
    );
    for task in ["M01/S01/T01", "M01/S01/T02"] {
        client.ok("gsd_task_complete", completion(task)).await;
    }
    client.ok("gsd_slice_complete", slice_completion("M01/S01")).await;
    let finish = at(
        "M01",
        json!({"one_liner": "Did it", "narrative": "All.", "verification_passed": true}),
    );
    let error = client.refused("gsd_milestone_complete", finish.clone()).await;
    assert_eq!(error["code"], "VALIDATION_MISSING");
    let verdict = at("M01", json!({"verdict": "pass", "rationale": "Looked at it."}));
    client.ok("gsd_validate_milestone", verdict).await;
    client.ok("gsd_milestone_complete", finish).await;
    client.ok("gsd_plan_milestone", second).await;
}

#[tokio::test]
async fn two_agents_on_two_hosts_race_and_one_wins() {
    let (place, app) = place();
    let (one, two) = (place.serve(&[]).await, place.serve(&[]).await);
    for round in 1..=5 {
        let milestone = format!("M{round:02}");
        plan(&one, &milestone).await;
        let task = format!("{milestone}/S01/T01");
        let named = |actor: &str| with(completion(&task), "actor_name", actor);
        let claim = |actor: &str| at(&task, json!({"actor_name": actor}));
        let lost = race(&one, &two, "gsd_claim", claim("one"), claim("two")).await;
        assert_eq!(lost.1["code"], "NOT_CLAIM_OWNER");
        let (owner, other) = if lost.0 { ("two", "one") } else { ("one", "two") };
        assert_eq!(
            lost.1["message"],
            format!("Unit {task} is owned by {owner}, not {other}")
        );
        // Both are the owner now, as far as they say.
        let lost = race(&one, &two, "gsd_task_complete", named(owner), named(owner)).await;
        assert_eq!(lost.1["code"], "ALREADY_COMPLETE");
        assert_eq!(lost.1["message"], "Task T01 is already complete");
        let reopen = |actor: &str| at(&task, json!({"actor_name": actor, "reason": "again"}));
        let lost = race(&one, &two, "gsd_task_reopen", reopen("one"), reopen("two")).await;
        assert_eq!(lost.1["code"], "NOT_CLOSED");
    }
    // Each winner is one event, each loser one entry.
    let events = place.sql("SELECT count(*) FROM gsd_events");
    assert_eq!(events, [(5 * 5).to_string()]);
    let refusals = place.sql("SELECT count(*) FROM gsd_audit WHERE severity = 'error'");
    assert_eq!(refusals, [(5 * 3).to_string()]);
    // The next change puts the files of the logs right, whatever the race left there.
    plan(&one, "M09").await;
    let lines = std::fs::read_to_string(app.join(".gsd/event-log.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 5 * 5 + 2);
}

/// Makes two calls at once: whether the first one lost, and its error.
async fn race(one: &Session, two: &Session, tool: &str, first: Value, second: Value) -> (bool, Value) {
    let (first, second) = tokio::join!(one.call_raw(tool, first), two.call_raw(tool, second));
    let error = |result: rmcp::model::CallToolResult| {
        let failed = result.is_error == Some(true);
        failed.then(|| result.structured_content.unwrap()["error"].clone())
    };
    match (error(first), error(second)) {
        (Some(error), None) => (true, error),
        (None, Some(error)) => (false, error),
        both => panic!("{tool}: not one winner: {both:?}"),
    }
}

/// The files below a directory.
fn files(dir: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn files_are_written_and_written_anew() {
    let (place, app) = place();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    let claim = at("M01/S01", json!({"actor_name": "ada"}));
    client.ok("gsd_claim", claim).await;
    let all = [
        "M01-ROADMAP.md",
        "S01-PLAN.md",
        "STATE.md",
        "T01-SUMMARY.md",
        "audit-log.jsonl",
        "event-log.jsonl",
        "unit-claims.json",
    ];
    assert_eq!(files(&app.join(".gsd")), all);
    let claims = std::fs::read_to_string(app.join(".gsd/unit-claims.json")).unwrap();
    let claims: Value = serde_json::from_str(&claims).unwrap();
    assert_eq!(claims["M01/S01"]["agent"], "ada");
    std::fs::remove_dir_all(app.join(".gsd")).unwrap();
    let before = client.ok("gsd_status", json!({})).await;
    let rendered = client.ok("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(rendered["written"], 7);
    assert_eq!(files(&app.join(".gsd")), all);
    assert_eq!(client.ok("gsd_status", json!({})).await, before);
}

#[tokio::test]
async fn without_a_workspace_to_write_to_everything_else_works() {
    // `app` is only a label here.
    let place = Place::new();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    let done = client.ok("gsd_task_complete", completion("M01/S01/T01")).await;
    assert_eq!(done["stale"], false);
    assert_eq!(done["warnings"], json!([]));
    let error = client.refused("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(error["code"], "WORKSPACE_UNKNOWN");
    // Registered, but nothing may be written.
    let place = Place::new();
    let app = place.path().join("app");
    std::fs::create_dir(&app).unwrap();
    std::fs::write(place.config(), format!("[workspaces.app]\npath = {app:?}\n")).unwrap();
    let client = place.serve(&[]).await;
    plan(&client, "M01").await;
    assert!(!app.join(".gsd").exists());
    let error = client.refused("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(error["code"], "WORKSPACE_DENIED");
}

#[tokio::test]
async fn a_link_in_the_place_of_the_directory_is_not_followed() {
    let (place, app) = place();
    let outside = place.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, app.join(".gsd")).unwrap();
    let client = place.serve(&[]).await;
    let planned = client
        .ok("gsd_plan_milestone", at("M01", json!({"title": "Ship it"})))
        .await;
    assert_eq!(planned["stale"], true);
    assert!(!planned["warnings"].as_array().unwrap().is_empty());
    assert_eq!(files(&outside), Vec::<String>::new());
    assert_eq!(
        client.ok("gsd_status", json!({})).await["milestones"][0]["title"],
        "Ship it"
    );
}

/// Plans and completes with `app` being a file system of its own, mounted with options.
async fn on_file_system(options: &str) {
    let (place, app) = place();
    let mount = format!("mount -t tmpfs -o {options} none \"$0\" && exec \"$@\"");
    let client = place
        .serve_by(&[
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            &mount,
            app.to_str().unwrap(),
        ])
        .await;
    let vision = "Nothing is ever lost. ".repeat(300);
    for milestone in ["M01", "M02", "M03", "M04", "M05", "M06", "M07", "M08"] {
        let planned = client
            .ok(
                "gsd_plan_milestone",
                at(milestone, json!({"title": "Ship it", "vision": vision})),
            )
            .await;
        assert_eq!(planned["status"], "active");
    }
    let slices = json!([{"slice_id": "S01", "title": "Storage"}]);
    let last = client
        .ok(
            "gsd_plan_milestone",
            at(
                "M09",
                json!({"title": "Ship it", "vision": vision, "slices": slices}),
            ),
        )
        .await;
    assert_eq!(last["stale"], true, "{last}");
    let warning = last["warnings"][0].as_str().unwrap();
    assert!(warning.contains("app"), "{warning}");
    let status = client.ok("gsd_status", json!({})).await;
    assert_eq!(status["milestones"].as_array().unwrap().len(), 9);
    let rendered = client.ok("gsd_render", json!({"workspace": "app"})).await;
    assert_eq!(rendered["stale"], true);
    assert!(!rendered["warnings"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_full_disk_makes_files_stale_and_nothing_else() {
    on_file_system("size=64k").await;
}

#[tokio::test]
async fn a_read_only_directory_makes_files_stale_and_nothing_else() {
    on_file_system("ro").await;
}

#[tokio::test]
async fn bad_input_is_refused_with_every_mistake_named() {
    let (place, app) = place();
    let client = place.serve(&[]).await;
    client
        .ok(
            "gsd_plan_milestone",
            at(
                "M01",
                json!({"title": "a", "slices": [{"slice_id": "S01", "title": "b"}]}),
            ),
        )
        .await;
    // What the schema tells.
    let error = client
        .refused(
            "gsd_plan_milestone",
            json!({"milestone_id": "../M01", "title": "", "slices": [{"slice_id": "S1"}]}),
        )
        .await;
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    assert!(error["blockers"].as_array().unwrap().len() >= 4, "{error:#}");
    let tasks: Vec<Value> = (0..10_000)
        .map(|_| json!({"task_id": "T01", "title": "x"}))
        .collect();
    let error = client
        .refused("gsd_plan_slice", at("M01/S01", json!({"tasks": tasks})))
        .await;
    assert_eq!(error["code"], "INVALID_ARGUMENTS");
    // What only the pack can tell.
    let slices = json!([{"slice_id": "S01", "title": "two\nlines", "depends": ["S01"]},
        {"slice_id": "S02", "title": "x", "depends": ["S03"]}, {"slice_id": "S03", "title": "x", "depends": ["S02", "S09"]}]);
    let error = client
        .refused(
            "gsd_plan_milestone",
            at("M01", json!({"title": "a\r\nb", "slices": slices})),
        )
        .await;
    let codes: Vec<&str> = error["blockers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].as_str().unwrap())
        .collect();
    assert_eq!(
        codes,
        [
            "INVALID_ARGUMENTS",
            "INVALID_ARGUMENTS",
            "SLICE_DEPENDENCY_OPEN",
            "DEPENDENCY_CYCLE"
        ]
    );
    // Markdown in a title is text.
    let title = "** | [x] `T09` # <b>";
    let slices = json!([{"slice_id": "S01", "title": title}]);
    client
        .ok(
            "gsd_plan_milestone",
            at("M01", json!({"title": title, "slices": slices})),
        )
        .await;
    let roadmap = std::fs::read_to_string(app.join(".gsd/milestones/M01/M01-ROADMAP.md")).unwrap();
    assert!(
        roadmap.contains(r"- [ ] **S01: \*\* \| \[x\] \`T09\` \# \<b\>** risk:medium depends:[]"),
        "{roadmap}"
    );
}

#[tokio::test]
async fn an_alias_is_called_and_not_listed() {
    let (place, _) = place();
    let client = place.serve(&["--tier", "full"]).await;
    let listed = client.client().list_all_tools().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
    assert!(names.contains(&"gsd_task_complete"));
    assert!(!names.contains(&"gsd_complete_task"));
    plan(&client, "M01").await;
    client.ok("gsd_complete_task", completion("M01/S01/T01")).await;
    assert_eq!(place.ledger().last().unwrap(), "gsd_task_complete write ok");
}

#[test]
fn status_prints_a_tree() {
    let (place, _) = place();
    let slices = json!([{"slice_id": "S01", "title": "Storage"}]);
    let (code, _) = place.call(
        "gsd_plan_milestone",
        &at("M01", json!({"title": "Ship it", "slices": slices})),
    );
    assert_eq!(code, 0);
    let output = place.run(&["call", "gsd_status"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        text.trim_end(),
        "workspace app\nM01 Ship it (active, 0 of 1 slices closed)\n└─ [ ] S01 Storage (pending, 0 of 0 tasks closed)\n\
         next: plan the tasks of M01/S01 (gsd_plan_slice)"
    );
    let (_, structured) = place.call("gsd_status", &json!({}));
    assert_eq!(structured["slices"][0]["unit"], "M01/S01");
}
