//! Every tool of the contract of `tasks`, called by a real client with the inputs that the contract names. Tools without
//! a part in this story are called by the check of every built-in pack, in `components::authoring`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::contract;
use crate::harness::{Place, Session};

/// A client that records the tools that it called.
struct Driver {
    session: Session,
    called: BTreeSet<String>,
}

impl Driver {
    /// Calls a tool and returns the value at a pointer of its reply.
    async fn call(&mut self, tool: &str, mut arguments: Value, at: &str) -> Value {
        arguments["workspace"] = json!("acme/repo");
        let tool = format!("tasks_{tool}");
        let reply = self.session.ok(&tool, arguments).await;
        self.called.insert(tool);
        reply.pointer(at).cloned().unwrap_or(Value::Null)
    }

    /// Calls a tool and checks the value at a pointer of its reply.
    async fn says(&mut self, tool: &str, arguments: Value, at: &str, wanted: Value) {
        let found = self.call(tool, arguments.clone(), at).await;
        assert_eq!(found, wanted, "{tool} {arguments} {at}");
    }

    /// Calls a tool that must be refused, and returns the codes of its blockers.
    async fn refused(&self, tool: &str, mut arguments: Value) -> Vec<String> {
        arguments["workspace"] = json!("acme/repo");
        let refusal = self.session.refused(&format!("tasks_{tool}"), arguments).await;
        let blockers = refusal["blockers"].as_array().into_iter().flatten();
        blockers
            .map(|blocker| blocker["code"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Calls the tools for plans, tasks, templates and the focus.
    async fn plans(&mut self) {
        let step = |title: &str| json!({"title": title, "success_criteria": ["holds"], "tests": ["cargo test"], "blockers": []});
        let bootstrap = json!({"plan_title": "Ship", "task_title": "Build", "description": "d", "steps": [step("one"), step("two")]});
        self.says("bootstrap", bootstrap, "/task", json!("TASK-001"))
            .await;
        self.says(
            "create",
            json!({"kind": "plan", "title": "Other"}),
            "/plan",
            json!("PLAN-002"),
        )
        .await;
        let create =
            json!({"plan": "PLAN-001", "title": "Docs", "priority": "HIGH", "tags": ["t"], "domain": "docs"});
        self.says("create", create, "/task", json!("TASK-002")).await;
        let edit = json!({"task": "TASK-002", "title": "Write docs", "new_domain": "manual", "depends_on": ["TASK-001"], "expected_revision": 1});
        self.says("edit", edit, "/revision", json!(2)).await;
        assert_eq!(
            self.refused("edit", json!({"task": "TASK-001", "depends_on": ["TASK-002"]}))
                .await,
            ["DEPENDENCY_CYCLE"]
        );
        assert_eq!(
            self.refused("complete", json!({"task": "TASK-002", "status": "ACTIVE"}))
                .await,
            ["DEPENDENCY_OPEN"]
        );
        let steps = json!({"plan": "PLAN-001", "steps": ["a", "b"], "doc": "d"});
        self.says("plan", steps, "/revision", json!(3)).await;
        self.says(
            "plan",
            json!({"plan": "PLAN-001", "advance": true}),
            "/revision",
            json!(4),
        )
        .await;
        let contract = json!({"plan": "PLAN-001", "current": "We ship.", "contract_data": {"by": "Friday"}});
        self.says("contract", contract, "/revision", json!(5)).await;
        self.says(
            "contract",
            json!({"plan": "PLAN-001", "clear": true}),
            "/revision",
            json!(6),
        )
        .await;
        self.says(
            "templates_list",
            json!({}),
            "/templates/0/name",
            json!("basic-task"),
        )
        .await;
        let save = json!({"name": "mine", "kind": "task", "description": "d", "steps": [{"title": "s", "success_criteria": ["c"], "tests": ["t"]}]});
        self.says("template_save", save, "/ids/0", json!("mine")).await;
        let scaffold = json!({"template": "mine", "title": "From mine", "plan": "PLAN-002"});
        self.call("scaffold", scaffold, "").await;
        self.says(
            "focus_set",
            json!({"task": "TASK-001"}),
            "/focus",
            json!("TASK-001"),
        )
        .await;
        self.says("focus_get", json!({}), "/focus", json!("TASK-001"))
            .await;
    }

    /// Calls the tools for steps, nodes, leases and the gate.
    async fn steps(&mut self) {
        let task = "TASK-001";
        let steps = json!([{"title": "inner", "tests": ["t"]}]);
        let made = json!({"task": task, "path": "s:1", "steps": steps});
        let inner = self.call("decompose", made, "/steps/0").await;
        assert_eq!(inner["path"], "s:1.s:0");
        let same = json!({"task": task, "step_id": inner["step_id"], "position": 0});
        self.says("move", same, "/step/path", json!("s:1.s:0")).await;
        let define = json!({"task": task, "step_id": inner["step_id"], "title": "inner step", "success_criteria": ["c"], "tests": [], "blockers": ["b"]});
        self.says("define", define, "/step/path", json!("s:1.s:0")).await;
        let both = json!({"task": task, "path": "s:0", "step_id": inner["step_id"]});
        assert_eq!(self.refused("done", both).await, ["TARGET_MISMATCH"]);
        let block = json!({"task": task, "path": "s:0", "reason": "no key", "events": true});
        self.says("block", block, "/events/0/type", json!("step_blocked"))
            .await;
        assert_eq!(
            self.refused("done", json!({"task": task, "path": "s:0"})).await,
            [
                "CHECKPOINTS_NOT_CONFIRMED",
                "CHECKPOINTS_NOT_CONFIRMED",
                "STEP_BLOCKED"
            ]
        );
        let unblock = json!({"task": task, "path": "s:0", "blocked": false, "events": true});
        self.says("block", unblock, "/events/0/type", json!("step_unblocked"))
            .await;
        let claim = json!({"task": task, "path": "s:0", "owner": "ada", "events": 50});
        self.call("step_claim", claim, "").await;
        let named = json!({"task": task, "path": "s:0", "owner": "ada"});
        self.call("step_renew", named.clone(), "").await;
        let verify = json!({"task": task, "path": "s:0", "checkpoints": {"criteria": {"confirmed": true}}, "events": true});
        assert_eq!(self.refused("verify", verify.clone()).await, ["STEP_LEASE_HELD"]);
        self.call("step_release", named, "").await;
        self.says("verify", verify, "/events/1/type", json!("step_verified"))
            .await;
        let items = json!([{"kind": "cmd_output", "title": "cargo test", "body": "ok", "exit_code": 0}, {"kind": "url", "uri": "https://ci"}]);
        let evidence = json!({"task": task, "path": "s:0", "checkpoint": "tests", "items": items, "checks": ["seen"], "attachments": ["log.txt"]});
        let ids = self.call("evidence_capture", evidence, "/ids").await;
        assert_eq!(ids.as_array().map(Vec::len), Some(4));
        let note =
            json!({"task": task, "path": "s:0", "note": "went well", "decision": true, "events": true});
        self.says("note", note, "/events/0/type", json!("note_added"))
            .await;
        let node = json!({"task": task, "parent_step": "s:1", "title": "node"});
        self.says("task_add", node, "/node/path", json!("s:1.t:0")).await;
        let done = json!({"task": task, "path": "s:1.t:0", "status": "DONE"});
        self.says("task_define", done, "/node/path", json!("s:1.t:0"))
            .await;
        self.call("task_delete", json!({"task": task, "path": "s:1.t:0"}), "")
            .await;
        let close = json!({"task": task, "path": "s:0", "checkpoints": {"tests": {"confirmed": true}}, "events": true});
        self.says("close_step", close, "/events/1/type", json!("step_done"))
            .await;
        let reopen = json!({"task": task, "path": "s:0", "completed": false, "events": true});
        self.says("progress", reopen, "/events/0/type", json!("step_reopened"))
            .await;
        // What was confirmed is to be confirmed again.
        assert_eq!(
            self.refused("done", json!({"task": task, "path": "s:0"})).await,
            ["CHECKPOINTS_NOT_CONFIRMED"; 2]
        );
        let again = json!({"task": task, "path": "s:0", "checkpoints": "gate"});
        self.call("verify", again, "").await;
        self.says(
            "done",
            json!({"task": task, "path": "s:0"}),
            "/step/path",
            json!("s:0"),
        )
        .await;
    }

    /// Calls the tools that show the state of work.
    async fn views(&mut self) {
        let task = json!({"task": "TASK-001", "max_chars": 3000});
        self.says("radar", json!({}), "/task", json!("TASK-001")).await;
        self.says("radar", task.clone(), "/budget/max_chars", json!(3000))
            .await;
        self.says("handoff", task.clone(), "/done/0", json!("s:0 one"))
            .await;
        self.says("context_pack", task.clone(), "/radar/task", json!("TASK-001"))
            .await;
        self.says("resume_pack", task, "/radar/task", json!("TASK-001"))
            .await;
        let resume = json!({"plan": "PLAN-001", "events_limit": 3});
        self.call("resume", resume, "").await;
        self.says(
            "context",
            json!({"kind": "plan"}),
            "/entries/0/id",
            json!("PLAN-001"),
        )
        .await;
        self.says(
            "mirror",
            json!({"task": "TASK-001", "path": "s:1"}),
            "/steps/0/path",
            json!("s:1"),
        )
        .await;
        self.says(
            "delta",
            json!({"cursor": 1, "limit": 2}),
            "/next_cursor",
            json!(3),
        )
        .await;
        self.call("lint", json!({"task": "TASK-001"}), "").await;
        self.says(
            "next",
            json!({"plan": "PLAN-001"}),
            "/ready/0/task",
            json!("TASK-001"),
        )
        .await;
        self.call("storage", json!({}), "").await;
        self.says("show", json!({"task": "TASK-001"}), "/task", json!("TASK-001"))
            .await;
        self.says(
            "search",
            json!({"query": "Build"}),
            "/matches/0/title",
            json!("Build"),
        )
        .await;
        let known = self.session.ok("tasks_workspaces", json!({})).await;
        assert!(known.to_string().contains("acme/repo"), "{known:#}");
        self.called.insert("tasks_workspaces".to_owned());
        self.says("focus_clear", json!({}), "/focus", Value::Null).await;
    }

    /// Calls the tools for patches, batches, undo and the end of work.
    async fn ends(&mut self) {
        let ops = json!([{"op": "set", "field": "title", "value": "Builds"}]);
        let patch = json!({"task": "TASK-001", "kind": "task_detail", "ops": ops});
        let revision = self.call("patch", patch, "/revision").await;
        self.says(
            "undo",
            json!({"task": "TASK-001", "expected_revision": revision}),
            "/task",
            json!("TASK-001"),
        )
        .await;
        self.says("redo", json!({"task": "TASK-001"}), "/task", json!("TASK-001"))
            .await;
        self.call("history", json!({"task": "TASK-001", "limit": 5}), "")
            .await;
        let close = |path: &str| json!({"tool": "tasks_close_step", "args": {"task": "TASK-001", "path": path, "checkpoints": "all"}});
        let batch = json!({"operations": [close("s:1.s:0"), close("s:1")], "atomic": true, "compact": true});
        self.says("batch", batch, "/succeeded", json!(2)).await;
        let dry = json!({"task": "TASK-001", "apply": false});
        self.says("close_task", dry, "/applied", json!(false)).await;
        self.says(
            "close_task",
            json!({"task": "TASK-001", "apply": true}),
            "/applied",
            json!(true),
        )
        .await;
        let empty = json!({"task": "TASK-002", "allow_empty": true});
        self.says("complete", empty, "/task", json!("TASK-002")).await;
        self.says(
            "complete",
            json!({"task": "PLAN-001"}),
            "/plan",
            json!("PLAN-001"),
        )
        .await;
        self.call("delete", json!({"task": "PLAN-002"}), "").await;
        assert_eq!(
            self.refused("radar", json!({"task": "PLAN-002"})).await,
            ["NOT_FOUND"]
        );
    }
}

#[tokio::test]
async fn every_tool_of_the_contract_does_what_it_says() {
    let place = Place::new();
    let session = place.serve(&["--tier", "full"]).await;
    let tools = session.client().list_all_tools().await.unwrap();
    let listed: BTreeSet<String> = tools.into_iter().map(|tool| tool.name.to_string()).collect();
    let mut driver = Driver {
        session,
        called: BTreeSet::new(),
    };
    driver.plans().await;
    driver.steps().await;
    driver.views().await;
    driver.ends().await;
    driver.call("take", json!({"actor": "ann"}), "").await;
    let unlisted: Vec<&String> = driver.called.difference(&listed).collect();
    assert!(unlisted.is_empty(), "called under a former name: {unlisted:?}");
    let contract = contract();
    let uncalled: Vec<&String> = contract.difference(&driver.called).collect();
    assert!(uncalled.is_empty(), "{uncalled:?}");
    driver.session.close().await;
}

#[tokio::test]
async fn large_evidence_is_an_artifact_and_other_packs_make_it_old() {
    let place = Place::with("[artifacts]\nenabled = true\n");
    let session = place.serve(&["--tier", "full"]).await;
    let envelope = session.ok("envelope_open", json!({})).await["id"].clone();
    let call = async |tool: &str, mut arguments: Value| {
        arguments["envelope_id"] = envelope.clone();
        arguments["workspace"] = json!("w");
        session.ok(tool, arguments).await
    };
    let steps = json!([{"title": "one", "success_criteria": ["c"], "tests": ["t"]}]);
    call(
        "tasks_bootstrap",
        json!({"plan_title": "P", "task_title": "T", "steps": steps}),
    )
    .await;
    let body = "line\n".repeat(8_000);
    let items = json!([{"kind": "cmd_output", "body": body}]);
    let evidence = json!({"task": "TASK-001", "path": "s:0", "checkpoint": "tests", "items": items});
    let kept = call("tasks_evidence_capture", evidence).await;
    let id = &kept["artifacts"][0];
    let slice = session
        .ok("artifact_get", json!({"artifact_id": id, "offset": 39_990}))
        .await;
    assert_eq!(slice["content"], "line\nline\n");
    let fresh = call("tasks_resume_pack", json!({"task": "TASK-001"})).await;
    assert_eq!(&fresh["evidence"][0]["item"]["artifact"], id);
    assert_eq!(place.sql("SELECT length(body) FROM tasks_bodies"), ["2000"]);

    let verify = json!({"task": "TASK-001", "path": "s:0", "checkpoints": {"tests": {"confirmed": true}}});
    assert_eq!(call("tasks_verify", verify.clone()).await.get("warnings"), None);
    let elsewhere = json!({"title": "T", "spec_markdown": "# Goal\ng", "initial_phase": "spec_draft",
        "actor": "ada", "actor_role": "orchestrator"});
    call("task_create", elsewhere).await;
    let verified = call("tasks_verify", verify).await;
    assert_eq!(verified["warnings"][0]["code"], "STALE_EVIDENCE");
    session.close().await;
    assert!(place.run(&["ledger", "verify"]).status.success());
}
