//! Stories of packs, by a client that knows only the listed tools and the tools named in replies. The client gets from
//! a first call to the end, even with a short list.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

mod loops;
mod teams;
mod work_trees;

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::gate::person;
use crate::harness::{Place, Session};

/// A client that calls only tools that it has seen, and calls unlisted ones through `tool_call`.
struct Newcomer {
    session: Session,
    listed: BTreeSet<String>,
    named: BTreeSet<String>,
    all: BTreeSet<String>,
}

impl Newcomer {
    async fn come(place: &Place) -> Newcomer {
        let session = place.serve(&["--tier", "full"]).await;
        let all = names(&session).await;
        session.close().await;
        let session = place.serve(&[]).await;
        let listed = names(&session).await;
        Newcomer {
            session,
            named: listed.clone(),
            listed,
            all,
        }
    }

    /// Makes a call, and returns the reply or the refusal.
    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        assert!(self.named.contains(tool), "nothing has named {tool}");
        let reply = if self.listed.contains(tool) {
            self.session.call_raw(tool, arguments).await
        } else {
            let relayed = json!({"tool": tool, "arguments": arguments});
            self.session.call_raw("tool_call", relayed).await
        };
        let reply = reply.structured_content.unwrap();
        let text = reply.to_string();
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        self.named
            .extend(words.filter(|word| self.all.contains(*word)).map(str::to_owned));
        reply
    }

    async fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.call(tool, arguments).await;
        assert!(reply.get("error").is_none(), "{tool}: {reply}");
        reply
    }

    /// Makes a call that must be refused with this code, and returns the error.
    async fn refused(&mut self, tool: &str, arguments: Value, code: &str) -> Value {
        let reply = self.call(tool, arguments).await;
        assert_eq!(reply["error"]["code"], code, "{tool}: {reply}");
        reply["error"].clone()
    }

    /// Makes the call that a reply suggests.
    async fn follow(&mut self, next: &Value) -> Value {
        let tool = next["tool"].as_str().unwrap_or_else(|| panic!("no call: {next}"));
        self.ok(tool, next["arguments"].clone()).await
    }
}

async fn names(session: &Session) -> BTreeSet<String> {
    let tools = session.client().list_all_tools().await.unwrap();
    tools.into_iter().map(|tool| tool.name.into_owned()).collect()
}

/// Arguments merged with others.
fn with(mut arguments: Value, more: &Value) -> Value {
    let (object, more) = (arguments.as_object_mut().unwrap(), more.as_object().unwrap());
    object.extend(more.clone());
    arguments
}

const SPEC: &str =
    "# Goal\ng\n# Scope in\na\n# Scope out\nb\n# Inputs\nc\n# Outputs\nd\n# Acceptance\n- e\n# Risks\nf\n";

#[tokio::test]
async fn a_task_of_the_store_is_brought_to_its_end() {
    let place = Place::new();
    let mut newcomer = Newcomer::come(&place).await;
    let actor = json!({"actor": "ada", "actor_role": "orchestrator"});
    let created =
        json!({"title": "T", "spec_markdown": SPEC, "workspace": "w", "initial_phase": "spec_draft"});
    let task = newcomer.ok("task_create", with(created, &actor)).await["task"]["id"].clone();
    let transition = |from: &str, to: &str| {
        let moved = json!({"task_id": task, "from_phase": from, "to_phase": to, "reason": "it goes on"});
        with(moved, &actor)
    };
    let review = |kind: &str| {
        json!({"task_id": task, "review_type": kind, "reviewer_ref": "bob", "verdict": "approved", "summary": "good",
            "findings": [], "actor": "bob", "actor_role": format!("{kind}_reviewer")})
    };
    newcomer
        .ok("task_transition", transition("spec_draft", "spec_review"))
        .await;
    newcomer
        .refused(
            "task_transition",
            transition("spec_review", "execution_ready"),
            "SPEC_NOT_APPROVED",
        )
        .await;
    newcomer.ok("task_append_review", review("spec")).await;
    newcomer
        .ok("task_transition", transition("spec_review", "execution_ready"))
        .await;
    let attempt = with(
        json!({"task_id": task, "phase": "executing", "runtime": "local", "executor_kind": "builder"}),
        &actor,
    );
    newcomer.ok("task_start_attempt", attempt).await;
    // Whoever lost the thread is told where the task stands and every call that leads on.
    let recovered = newcomer.ok("task_recover", json!({"task_id": task})).await;
    assert_eq!(recovered["phase"], "execution_ready", "{recovered}");
    let attempt = json!({"attempt_id": recovered["latest_attempt"]["attempt_id"]});
    for (from, to, kind) in [
        ("execution_ready", "executing", None),
        ("executing", "spec_gate", None),
        ("spec_gate", "quality_gate", Some("spec")),
        ("quality_gate", "completed", Some("quality")),
    ] {
        let transition = with(transition(from, to), &attempt);
        if let Some(kind) = kind {
            let code = format!("{}_NOT_APPROVED", kind.to_uppercase());
            newcomer
                .refused("task_transition", transition.clone(), &code)
                .await;
            let review = with(review(kind), &attempt);
            if kind == "spec" {
                // The result is reviewed, so the attempt ends first.
                newcomer
                    .refused("task_append_review", review.clone(), "ATTEMPT_RUNNING")
                    .await;
                let ended = json!({"status": "succeeded", "actor": "eve", "actor_role": "executor"});
                newcomer.ok("task_finish_attempt", with(ended, &attempt)).await;
            }
            newcomer.ok("task_append_review", review).await;
        }
        newcomer.ok("task_transition", transition).await;
    }
    let task = newcomer.ok("task_recover", json!({"task_id": task})).await;
    assert_eq!(task["phase"], "completed", "{task}");
}

#[tokio::test]
async fn a_plan_of_steps_is_brought_to_its_end() {
    let place = Place::new();
    let mut newcomer = Newcomer::come(&place).await;
    let steps = json!([
        {"title": "one", "success_criteria": ["a"], "tests": ["b"]},
        {"title": "two", "success_criteria": ["a"], "tests": ["b"]},
    ]);
    let begun = json!({"workspace": "w", "plan_title": "P", "task_title": "T", "steps": steps});
    let begun = newcomer.ok("tasks_bootstrap", begun).await;
    newcomer.follow(&begun["next_calls"][0]).await;
    for _ in 0..2 {
        let next = newcomer.ok("tasks_next", json!({"workspace": "w"})).await;
        let captured = json!({"workspace": "w", "task": begun["task"], "path": next["ready"][0]["step"]["path"],
            "items": [{"kind": "cmd_output", "title": "tests", "body": "ok"}]});
        newcomer.follow(&next["ready"][0]["next_call"]).await;
        let captured = newcomer.ok("tasks_evidence_capture", captured).await;
        newcomer.follow(&captured["next_calls"][0]).await;
    }
    let ended = json!({"workspace": "w", "task": begun["task"]});
    let ended = newcomer.ok("tasks_complete", ended).await;
    newcomer.follow(&ended["next_calls"][0]).await;
    let plan = newcomer
        .ok("tasks_radar", json!({"workspace": "w", "task": "PLAN-001"}))
        .await;
    assert_eq!(plan["next"], "Nothing: this work is finished.", "{plan}");
}

#[tokio::test]
async fn a_milestone_is_brought_to_its_end() {
    let place = Place::new();
    let mut newcomer = Newcomer::come(&place).await;
    let whose = json!({"workspace": "w", "milestone_id": "M01", "actor_name": "ada"});
    let of_slice = with(json!({"slice_id": "S01"}), &whose);
    let done = json!({"one_liner": "o", "narrative": "n", "verification": "v"});
    let planned = json!({"title": "m", "slices": [{"slice_id": "S01", "title": "s"}]});
    newcomer.ok("gsd_plan_milestone", with(planned, &whose)).await;
    let tasks = json!({"goal": "g", "tasks": [{"task_id": "T01", "title": "t"}]});
    let planned = newcomer.ok("gsd_plan_slice", with(tasks, &of_slice)).await;
    let started = &planned["next_call"];
    assert_eq!(started["tool"], "gsd_task_start", "{planned}");
    newcomer
        .ok(
            "gsd_task_start",
            with(started["arguments"].clone(), &json!({"actor_name": "ada"})),
        )
        .await;
    let of_task = with(json!({"task_id": "T01"}), &of_slice);
    newcomer
        .ok("gsd_task_complete", with(done.clone(), &of_task))
        .await;
    let accepted = with(json!({"uat_content": "u"}), &of_slice);
    newcomer.ok("gsd_slice_complete", with(done, &accepted)).await;
    let next = async |newcomer: &mut Newcomer| {
        let status = newcomer.ok("gsd_status", json!({"workspace": "w"})).await;
        status["next"][0]["tool"].as_str().map(str::to_owned)
    };
    let tool = next(&mut newcomer).await.unwrap();
    let verdict = json!({"verdict": "pass", "rationale": "it holds"});
    newcomer.ok(&tool, with(verdict, &whose)).await;
    let tool = next(&mut newcomer).await.unwrap();
    let told = json!({"one_liner": "o", "narrative": "n", "verification_passed": true});
    let ended = newcomer.ok(&tool, with(told, &whose)).await;
    assert_eq!(ended["status"], "complete", "{ended}");
    assert_eq!(next(&mut newcomer).await, None);
}

#[tokio::test]
async fn a_job_is_brought_to_its_end() {
    let place = Place::new();
    let mut newcomer = Newcomer::come(&place).await;
    let begun = json!({"title": "t", "goal": "g"});
    let job = json!({"job_id": newcomer.ok("conductor_init", begun).await["job_id"]});
    let gaps = newcomer
        .refused("job_set_ready", job.clone(), "PLAN_INCOMPLETE")
        .await;
    // Each gap holds the call that closes it, with a place for what only the caller knows.
    for gap in gaps["blockers"].as_array().unwrap() {
        let mut next = gap["next_call"].clone();
        for known in next["arguments"].as_object_mut().unwrap().values_mut() {
            if known[0].as_str().is_some_and(|place| place.starts_with('<')) {
                known[0] = json!("what the caller knows");
            }
        }
        if next["tool"] != "plan_propose_steps" {
            newcomer.follow(&next).await;
        }
    }
    let step = json!({"title": "s", "instruction_prompt": "do it", "acceptance_criteria": ["done"],
        "required_evidence": {"changed_files": "array"}, "checkpoint": true,
        "remediation_prompt": "undo it", "gates": [{"gate": "human_approval"}]});
    newcomer
        .ok("plan_propose_steps", with(json!({"steps": [step]}), &job))
        .await;
    newcomer.ok("job_set_ready", job.clone()).await;
    newcomer.ok("job_start", job.clone()).await;
    let prompt = newcomer.ok("job_next_step_prompt", job.clone()).await;
    let submitted = with(
        json!({"step_id": prompt["step_id"], "model_claim": "MET", "summary": "did it", "devlog_line": "did it",
            "evidence": {"changed_files": [], "diff_summary": "nothing", "tests_run": ["none"], "tests_passed": true,
                "criteria_checklist": {"c1": true}, "invariants_checked": true}}),
        &job,
    );
    let rejected = newcomer.ok("job_submit_step_result", submitted.clone()).await;
    assert_eq!(rejected["stage"], "gates", "{rejected}");
    let approved = with(json!({"step_id": prompt["step_id"], "approved_by": "Ada"}), &job);
    newcomer
        .refused("step_approve", approved.clone(), "PERSON_REQUIRED")
        .await;
    person::allows(&place, "step_approve", &approved);
    newcomer.ok("job_next_step_prompt", job.clone()).await;
    let accepted = newcomer.ok("job_submit_step_result", submitted).await;
    assert_eq!(accepted["status"], "COMPLETE", "{accepted}");
}

#[tokio::test]
async fn a_failing_test_leads_to_one_that_passes() {
    let place = Place::new();
    let folder = place.path().join("work");
    std::fs::create_dir(&folder).unwrap();
    let made = Command::new("git")
        .args(["init", "--quiet"])
        .arg(&folder)
        .status();
    assert!(made.unwrap().success());
    let config =
        format!("[workspaces.default]\npath = {folder:?}\ntests.default = [\"test\", \"-e\", \"fixed\"]\n");
    std::fs::write(place.config(), config).unwrap();
    let mut newcomer = Newcomer::come(&place).await;
    let limits = json!({"limits": {"max_mutations": 3}});
    let opened = newcomer.ok("envelope_open", limits).await;
    let envelope = json!({"envelope_id": opened["id"]});
    let failed = newcomer.ok("test_run", envelope.clone()).await;
    assert_eq!(failed["passed"], false, "{failed}");
    std::fs::write(folder.join("fixed"), "").unwrap();
    let note = json!({"note": "the file is there"});
    newcomer.ok("mutation_record", with(note, &envelope)).await;
    let passed = newcomer.ok("test_run", envelope.clone()).await;
    assert_eq!(passed["passed"], true, "{passed}");
    let ended = json!({"outcome": "success"});
    newcomer.ok("envelope_close", with(ended, &envelope)).await;
}
