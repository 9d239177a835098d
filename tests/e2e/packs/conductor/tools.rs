//! The tools and prompts of the conductor, called by a real client from the first plan to the end of a job. Tools without
//! a part in this story are called by the check of every built-in pack, in `components::authoring`.

use std::collections::BTreeSet;

use expect_test::expect;
use rmcp::model::GetPromptRequestParams;
use serde_json::{Value, json};

use crate::gate::person;
use crate::harness::Place;
use crate::packs::conductor::project::{Project, step};

#[tokio::test]
async fn prompts_are_listed_said_and_recorded() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let prompts = session.client().list_all_prompts().await.unwrap();
    let listed: Vec<String> = prompts
        .iter()
        .map(|prompt| {
            let arguments = prompt.arguments.iter().flatten();
            let arguments: Vec<_> = arguments
                .map(|argument| format!("{} {:?}", argument.name, argument.required))
                .collect();
            format!("{}({})", prompt.name, arguments.join(", "))
        })
        .collect();
    assert_eq!(
        listed,
        [
            "execute_job(job_id Some(true))",
            "gsd_resume_work(workspace Some(false), actor Some(false))",
            "plan_job(goal Some(true))",
            "tasks_resume_work(workspace Some(false), actor Some(false))"
        ]
    );
    let ask = async |name: &str, arguments: Value| {
        let mut request = GetPromptRequestParams::new(name);
        request.arguments = arguments.as_object().cloned();
        match session.client().get_prompt(request).await {
            Ok(result) => serde_json::to_value(&result.messages[0].content).unwrap()["text"]
                .as_str()
                .unwrap()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            Err(err) => err.to_string(),
        }
    };
    let mut log = String::new();
    for (name, arguments) in [
        ("plan_job", json!({"goal": "Export reports"})),
        ("plan_job", json!({})),
        ("execute_job", json!({"job_id": "JOB-NONE"})),
        ("job_get", json!({"job_id": "JOB-NONE"})),
    ] {
        log += &ask(name, arguments).await;
        log += "\n";
    }
    // A prompt is no tool.
    let called = session
        .client()
        .call_tool(crate::harness::params("plan_job", json!({"goal": "x"})))
        .await;
    log += &called.unwrap_err().to_string();
    session.close().await;
    expect![[r#"
        Plan this job: Export reports
        Mcp error: -32602: INVALID_ARGUMENTS: the arguments do not match the tool's input schema({"error":{"code":"INVALID_ARGUMENTS","message":"the arguments do not match the tool's input schema","remediation":"Correct every field named in blockers and call again.","blockers":[{"code":"INVALID_FIELD","message":"goal is required","field":"goal"}],"context":{"tool":"plan_job"}}})
        Mcp error: -32602: NOT_FOUND: there is no job JOB-NONE({"error":{"code":"NOT_FOUND","message":"there is no job JOB-NONE","remediation":"Look the id up with job_get or job_list. If your tool list lacks job_get, job_list, use tool_call.","blockers":[{"code":"NOT_FOUND","message":"there is no job JOB-NONE","next_call":{"tool":"job_list","arguments":{}}}],"context":{},"next_call":{"tool":"job_list","arguments":{}}}})
        Mcp error: -32602: there is no prompt `job_get`
        Mcp error: -32602: there is no tool `plan_job`"#]].assert_eq(&log);
    assert_eq!(
        place.ledger(),
        [
            "plan_job read ok",
            "plan_job read INVALID_ARGUMENTS",
            "execute_job read NOT_FOUND"
        ]
    );
}

#[tokio::test]
async fn tools_of_all_families_answer_a_real_client() {
    let project = Project::new();
    let session = project.place.serve(&["--tier", "full"]).await;
    let listed = session.client().list_all_tools().await.unwrap();
    let listed: BTreeSet<String> = listed.iter().map(|tool| tool.name.to_string()).collect();
    let begun = session
        .ok(
            "conductor_init",
            json!({"title": "All", "goal": "Use everything", "repo_root": "app"}),
        )
        .await;
    let job = begun["job_id"].clone();
    let mut called = BTreeSet::from(["conductor_init".to_owned()]);
    let mut call = async |tool: &str, mut arguments: Value| {
        called.insert(tool.to_owned());
        if !matches!(tool, "job_list" | "job_import" | "template_list") {
            arguments["job_id"] = job.clone();
        }
        session.ok(tool, arguments).await
    };
    plan_with_everything(&mut call).await;
    // A client cannot approve for its user: a person does, at a terminal.
    let approval = json!({"job_id": job, "step_id": "S1", "approved_by": "Ada"});
    person::allows(&project.place, "step_approve", &approval);
    execute_with_everything(&project, &mut call).await;
    // The one way to end a job that this one did not take.
    let doomed = session
        .ok("conductor_init", json!({"title": "Doomed", "goal": "Fail"}))
        .await;
    session
        .ok(
            "job_fail",
            json!({"job_id": doomed["job_id"], "reason": "not needed"}),
        )
        .await;
    called.extend(["job_fail".to_owned(), "step_approve".to_owned()]);
    session.close().await;
    let unlisted: Vec<&String> = called.difference(&listed).collect();
    assert!(unlisted.is_empty(), "called under a former name: {unlisted:?}");
}

async fn plan_with_everything(call: &mut impl AsyncFnMut(&str, Value) -> Value) {
    call("conductor_next_questions", json!({"all": true})).await;
    call("conductor_answer", json!({"answers": {"deliverables": ["x"]}})).await;
    let block = call(
        "context_add_block",
        json!({"block_type": "NOTES", "content": "a note"}),
    )
    .await["context_id"]
        .clone();
    call(
        "context_update_block",
        json!({"context_id": block, "content": "another note"}),
    )
    .await;
    assert_eq!(
        call("context_get_block", json!({"context_id": block})).await["content"],
        "another note"
    );
    assert_eq!(
        call("context_search", json!({"query": "another"})).await["total"],
        1
    );
    call("context_delete_block", json!({"context_id": block})).await;
    call("plan_set_deliverables", json!({"deliverables": ["y"]})).await;
    call("plan_set_invariants", json!({"invariants": []})).await;
    call("plan_set_constraints", json!({"constraints": ["small"]})).await;
    call("plan_set_assumptions", json!({"assumptions": []})).await;
    call(
        "plan_set_definition_of_done",
        json!({"definition_of_done": ["z"]}),
    )
    .await;
    call(
        "plan_set_risks",
        json!({"risks": [{"risk": "slow", "mitigation": "measure"}]}),
    )
    .await;
    call("template_list", json!({})).await;
    call(
        "template_apply",
        json!({"name": "tdd_loop", "variables": {"behaviour": "x"}}),
    )
    .await;
    call(
        "plan_propose_steps",
        json!({"steps": [step("one", &["c"], json!([])), step("two", &["c"], json!([]))]}),
    )
    .await;
    call(
        "plan_refine_steps",
        json!({"edits": [{"op": "remove", "step_id": "S2"}]}),
    )
    .await;
    call(
        "job_update_policies",
        json!({"policies": {"require_tests_evidence": false, "require_diff_summary": false}}),
    )
    .await;
    call("job_set_ready", json!({})).await;
}

async fn execute_with_everything(project: &Project, call: &mut impl AsyncFnMut(&str, Value) -> Value) {
    call("job_start", json!({})).await;
    project.write("report/new.py", "X = 1\n");
    call("job_pause", json!({"reason": "lunch"})).await;
    call("job_resume", json!({})).await;
    call("job_next_step_prompt", json!({})).await;
    call("step_revoke_approval", json!({"step_id": "S1"})).await;
    know_the_repository(call).await;
    assert_eq!(call("git_status", json!({})).await["total"], 1);
    assert_eq!(call("git_diff_summary", json!({})).await["lines"], 1);
    call("git_branch", json!({"name": "work"})).await;
    let commit = call(
        "git_commit",
        json!({"summary": "new file", "paths": ["report/new.py"]}),
    )
    .await;
    call("git_tag", json!({"name": "v1"})).await;
    assert_eq!(
        call("git_log", json!({})).await["commits"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    call("devlog_append", json!({"content": "a line"})).await;
    call(
        "decision_record",
        json!({"decision": "so", "rationale": "because"}),
    )
    .await;
    call(
        "mistake_record",
        json!({"title": "t", "what_happened": "w", "why": "y", "lesson": "l", "avoid_next_time": "a"}),
    )
    .await;
    call("mistake_list", json!({})).await;
    let submitted = call(
        "job_submit_step_result",
        json!({"step_id": "S1", "model_claim": "MET", "summary": "done with care", "devlog_line": "one",
            "commit_hash": commit["commit_hash"], "evidence": {"changed_files": ["report/new.py"], "commands_run": []}}),
    )
    .await;
    assert_eq!(submitted["next_action"], "JOB_COMPLETE", "{submitted}");
    call("devlog_list", json!({})).await;
    call("devlog_export", json!({})).await;
    call("job_get", json!({"attempts": 5, "step_id": "S1"})).await;
    call("job_list", json!({})).await;
    call("template_save", json!({"name": "mine", "summary": "saved"})).await;
    let bundle = call("job_export_bundle", json!({"format": "json"})).await;
    let bundle: Value = serde_json::from_str(bundle["content"].as_str().unwrap()).unwrap();
    let copy = call("job_import", json!({"bundle": bundle})).await;
    assert_eq!(copy["status"], "COMPLETE");
    call("repo_documents_write", json!({"documents": ["DEVLOG.md"]})).await;
    call("job_archive", json!({})).await;
    call("job_delete", json!({"reason": "everything was tried"})).await;
}

/// Adds a Python package and a new file to the repository.
async fn know_the_repository(call: &mut impl AsyncFnMut(&str, Value) -> Value) {
    let taken = call("repo_snapshot", json!({"notes": "before the commit"})).await;
    assert_eq!(taken["changed"]["added"], json!(["report/new.py"]), "{taken}");
    assert_eq!(
        taken["new_without_description"],
        json!(["report/new.py"]),
        "{taken}"
    );
    let said = json!({"descriptions": {"report/new.py": "A constant"}});
    assert_eq!(call("repo_file_descriptions_update", said).await["stored"], 1);
    let map = call("repo_map_update", json!({})).await;
    assert_eq!(map["languages"][0]["language"], "Python", "{map}");
    let page = call("repo_map_query", json!({"text": "constant"})).await;
    assert_eq!(page["files"][0]["path"], "report/new.py", "{page}");
    let exported = call("repo_map_export", json!({})).await;
    assert!(
        exported["content"]
            .as_str()
            .unwrap()
            .contains("`report/new.py`: A constant"),
        "{exported}"
    );
    let stale = call("repo_find_stale_candidates", json!({})).await;
    assert!(stale["ages_at"].is_string(), "{stale}");
    let plan = call("repo_hygiene_suggest", json!({})).await;
    assert_eq!(plan["unread"], 0, "{plan}");
}

#[tokio::test]
async fn a_committer_without_a_name_is_told_before_the_work() {
    let project = Project::new();
    project.git(&["config", "--unset", "user.name"]);
    let home = format!("HOME={}", project.place.path().display());
    let session = project
        .place
        .serve_by(&["env", &home, "GIT_CONFIG_NOSYSTEM=1"])
        .await;
    let steps = json!({"steps": [step("Change it", &["it is changed"], json!([{"gate": "commit_exists"}]))]});
    let job =
        crate::packs::conductor::stories::ready(&session, "Change it", ("plan_propose_steps", steps)).await;
    let word = "Git has no user.name and user.email here: pass author_name and author_email to git_commit";
    for tool in ["job_set_ready", "job_start"] {
        let reply = session.ok(tool, json!({"job_id": job})).await;
        assert!(reply["warnings"].to_string().contains(word), "{reply:#}");
    }
    session.close().await;
}
