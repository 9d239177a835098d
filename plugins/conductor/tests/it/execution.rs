//! Prompts, submissions, retries, approval.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Bench, READY, result, step};

fn started(count: usize) -> Bench {
    let steps: Vec<Value> = (1..=count)
        .map(|number| step(&format!("part {number}"), json!([])))
        .collect();
    Bench::new().started(json!(steps))
}

fn submit(bench: &Bench, changes: Value) -> Value {
    let mut arguments = result("S1");
    for (key, value) in changes.as_object().unwrap() {
        arguments[key] = value.clone();
    }
    bench.reply("job_submit_step_result", arguments)
}

/// Stage, missing fields and reasons of a reply.
fn told(reply: &Value) -> String {
    format!(
        "{} {} {} {}\n",
        reply["next_action"], reply["stage"], reply["missing_fields"], reply["rejection_reasons"]
    )
}

#[test]
fn steps_follow_each_other_to_the_end() {
    let bench = started(2);
    let mut log = bench.run("job_next_step_prompt {} ? step_id place steps attempts_left");
    log += &told(&submit(&bench, json!({})));
    log += &bench.run(
        r#"
        job_get {} ? status current_step_index steps.0.status steps.1.status
        job_submit_step_result {"step_id": "S2", "model_claim": "MET", "summary": "x"}
        job_submit_step_result {"step_id": "S1", "model_claim": "MET", "summary": "x"}
        job_next_step_prompt {} ? step_id
        "#,
    );
    let last = bench.reply("job_submit_step_result", result("S2"));
    log += &format!(
        "{} {} {}\n",
        last["next_action"], last["status"], last["next_call"]["tool"]
    );
    log += &bench.run(
        r#"
        job_next_step_prompt {}
        job_pause {}
        job_fail {"reason": "too late"}
        devlog_list {} ? entries.1.content entries.2.content entries.3.content entries.4.content
        job_archive {} ? from status
        job_archive {}
        job_next_step_prompt {}
        job_submit_step_result {"step_id": "S1", "model_claim": "MET", "summary": "too late"}
        repo_map_query {}
        "#,
    );
    expect![[r#"
        ok step_id="S1" place=1 steps=2 attempts_left=3
        "NEXT_STEP_AVAILABLE" null [] []
        ok status="EXECUTING" current_step_index=1 steps.0.status="DONE" steps.1.status="PENDING"
        err STEP_NOT_ACTIVE: the prompt of step S2 has not been requested yet
          - STEP_NOT_ACTIVE (step_id): the prompt of step S2 has not been requested yet -> job_next_step_prompt {"job_id":"JOB"}
        err WRONG_STEP: step S1 is not the current one, which is S2 {"current_step_id":"S2"}
          - WRONG_STEP (step_id): step S1 is not the current one, which is S2 -> job_next_step_prompt {"job_id":"JOB"}
        ok step_id="S2"
        "JOB_COMPLETE" "COMPLETE" "job_export_bundle"
        err WRONG_STATUS: no step prompt is available while the job is COMPLETE {"status":"COMPLETE","allowed_statuses":["EXECUTING"]}
          - WRONG_STATUS: no step prompt is available while the job is COMPLETE -> job_export_bundle {"job_id":"JOB"}
        err WRONG_STATUS: the job cannot be paused while the job is COMPLETE {"status":"COMPLETE","allowed_statuses":["EXECUTING"]}
          - WRONG_STATUS: the job cannot be paused while the job is COMPLETE -> job_get {"job_id":"JOB"}
        err WRONG_STATUS: the job cannot be given up while the job is COMPLETE {"status":"COMPLETE","allowed_statuses":["PLANNING","READY","EXECUTING","PAUSED"]}
          - WRONG_STATUS: the job cannot be given up while the job is COMPLETE -> job_get {"job_id":"JOB"}
        ok entries.1.content="ready" entries.2.content="started" entries.3.content="exporter added" entries.4.content="exporter added"
        ok from="COMPLETE" status="ARCHIVED"
        err WRONG_STATUS: the job cannot be archived while the job is ARCHIVED {"status":"ARCHIVED","allowed_statuses":["PLANNING","COMPLETE","FAILED"]}
          - WRONG_STATUS: the job cannot be archived while the job is ARCHIVED
        err WRONG_STATUS: no step prompt is available while the job is ARCHIVED {"status":"ARCHIVED","allowed_statuses":["EXECUTING"]}
          - WRONG_STATUS: no step prompt is available while the job is ARCHIVED -> job_get {"job_id":"JOB"}
        err WRONG_STATUS: no step can be submitted while the job is ARCHIVED {"status":"ARCHIVED","allowed_statuses":["EXECUTING"]}
          - WRONG_STATUS: no step can be submitted while the job is ARCHIVED -> job_get {"job_id":"JOB"}
        err MAP_MISSING: there is no map of the repository yet
          - MAP_MISSING: there is no map of the repository yet -> repo_map_update {"job_id":"JOB"}
    "#]].assert_eq(&log);
}

#[test]
fn a_stage_tells_all_its_failures_and_stops_the_ones_after_it() {
    let bench = started(1);
    bench.run(
        r#"
        - job_update_policies {"policies": {"evidence_schema_mode": "strict", "require_tests_evidence": true, "require_commit_per_step": true, "max_retries_per_step": 50}}
        - job_next_step_prompt {}
        "#,
    );
    let mut log = String::new();
    let full = json!({"notes": "n", "tests_run": ["pytest"], "tests_passed": true, "criteria_checklist": {"c1": true, "c2": true}});
    let with = |changes: Value| {
        let mut evidence = full.clone();
        for (key, value) in changes.as_object().unwrap() {
            evidence[key] = value.clone();
        }
        evidence
    };
    for attempt in [
        json!({"summary": "done", "evidence": {}, "model_claim": "NOT_MET", "devlog_line": " "}),
        json!({"summary": "fixed it", "evidence": with(json!({"tests_passed": "yes", "criteria_checklist": []}))}),
        json!({"devlog_line": "", "evidence": full, "commit_hash": "not a hash"}),
        json!({"devlog_line": "", "evidence": full}),
        json!({"evidence": with(json!({"criteria_checklist": {"c2": false, "c7": true}})), "commit_hash": "0123456789"}),
        json!({"evidence": with(json!({"tests_passed": false})), "commit_hash": "0123456789"}),
        json!({"evidence": full, "model_claim": "PARTIAL", "commit_hash": "0123456789"}),
        json!({"evidence": full, "batch_commit_token": "BCT-XXXX"}),
        json!({"evidence": full, "commit_hash": "0123456789"}),
    ] {
        log += &told(&submit(&bench, attempt));
    }
    log += &bench.run("job_get {\"attempts\": 20} ? status attempts.0.accepted attempts.8.accepted");
    expect![[r#"
        "RETRY" "evidence" ["criteria_checklist","notes","tests_passed","tests_run"] ["criteria_checklist is missing","notes is missing","tests_passed is missing","tests_run is missing","summary has no content: \"done\""]
        "RETRY" "evidence" [] ["criteria_checklist must be of type object, not array","tests_passed must be of type boolean, not string","summary has no content: \"fixed it\""]
        "RETRY" "records" ["devlog_line"] ["devlog_line is missing","\"not a hash\" is not a commit hash"]
        "RETRY" "records" ["devlog_line","commit_hash"] ["devlog_line is missing","commit_hash is missing"]
        "RETRY" "checklist" ["criteria_checklist.c1"] ["criteria_checklist.c1 is missing: it works","c2 is false: it is tested","criteria_checklist.c7 is not a criterion; use c1 to c2"]
        "RETRY" "claim" [] ["tests_passed is false, so the claim cannot be MET; pass null if no tests were run"]
        "RETRY" "claim" [] ["the claim is PARTIAL: fix what is missing and submit again"]
        "RETRY" "records" [] ["batch_commit_token is not open: its batch was committed or never opened"]
        "JOB_COMPLETE" null [] []
        ok status="COMPLETE" attempts.0.accepted=false attempts.8.accepted=true
    "#]].assert_eq(&log);
}

#[test]
fn a_step_that_is_rejected_too_often_waits_for_a_person_or_fails_the_job() {
    let bench = started(1);
    bench.run("- job_next_step_prompt {}");
    let not_met = || submit(&bench, json!({"model_claim": "NOT_MET"}));
    let mut log = String::new();
    for reply in [not_met(), not_met(), not_met()] {
        log += &format!(
            "{} {} {}\n",
            reply["next_action"], reply["status"], reply["attempts_left"]
        );
    }
    log += &bench.run(
        r#"
        job_submit_step_result {"step_id": "S1", "model_claim": "MET", "summary": "x"}
        job_next_step_prompt {}
        job_resume {} ? status next_call.tool
        job_update_policies {"policies": {"retry_exhausted_action": "FAIL_JOB"}} ? changed
        plan_refine_steps {"edits": [{"op": "update", "step_id": "S1", "set": {"max_attempts": 1}}]} ? status unreadied
        job_submit_step_result {"step_id": "S1", "model_claim": "MET", "summary": "x"}
        job_next_step_prompt {} ? attempts_left
        "#,
    );
    let reply = not_met();
    log += &format!("{} {}\n", reply["next_action"], reply["status"]);
    log += &bench.run("job_get {} ? status status_reason");
    expect![[r#"
        "RETRY" "EXECUTING" 2
        "RETRY" "EXECUTING" 1
        "PAUSE_FOR_HUMAN" "PAUSED" 0
        err WRONG_STATUS: no step can be submitted while the job is PAUSED {"status":"PAUSED","allowed_statuses":["EXECUTING"]}
          - WRONG_STATUS: no step can be submitted while the job is PAUSED -> job_resume {"job_id":"JOB"}
        err WRONG_STATUS: no step prompt is available while the job is PAUSED {"status":"PAUSED","allowed_statuses":["EXECUTING"]}
          - WRONG_STATUS: no step prompt is available while the job is PAUSED -> job_resume {"job_id":"JOB"}
        ok status="EXECUTING" next_call.tool="job_next_step_prompt"
        ok changed=["retry_exhausted_action"]
        ok status="EXECUTING" unreadied=false
        err STEP_NOT_ACTIVE: the prompt of step S1 has not been requested yet
          - STEP_NOT_ACTIVE (step_id): the prompt of step S1 has not been requested yet -> job_next_step_prompt {"job_id":"JOB"}
        ok attempts_left=1
        "FAIL_JOB" "FAILED"
        ok status="FAILED" status_reason="S1 is not accepted (stage claim) and was rejected too often: the job has failed. Stop and tell the user the reasons. Last reasons: the claim is NOT_MET: fix what is missing and submit again"
    "#]].assert_eq(&log);
}

#[test]
fn a_step_in_place_of_one_that_was_tried_is_numbered_anew() {
    let bench = started(2);
    bench.run(
        r#"
        - plan_refine_steps {"edits": [{"op": "move", "step_id": "S2"}]}
        - job_next_step_prompt {}
        "#,
    );
    let mut rejected = result("S2");
    rejected["model_claim"] = json!("NOT_MET");
    bench.reply("job_submit_step_result", rejected);
    let log = bench.run(
        r#"
        plan_refine_steps {"edits": [{"op": "remove", "step_id": "S2"}]} ? steps.0.step_id steps.1
        plan_refine_steps {"edits": [{"op": "insert", "after": "S1", "step": {"title": "new", "instruction_prompt": "x", "acceptance_criteria": ["y"], "required_evidence": {"notes": "string"}, "context_refs": ["CTX-GONE"]}}]}
        plan_refine_steps {"edits": [{"op": "insert", "after": "S1", "step": {"title": "new", "instruction_prompt": "x", "acceptance_criteria": ["y"], "required_evidence": {"notes": "string"}}}]} ? steps.1.step_id
        "#,
    );
    expect![[r#"
        ok steps.0.step_id="S1" steps.1=null
        err CONTEXT_MISSING: step S3 names the context block CTX-GONE, which does not exist
          - CONTEXT_MISSING (S3): step S3 names the context block CTX-GONE, which does not exist
        ok steps.1.step_id="S3"
    "#]]
    .assert_eq(&log);
    let exported = bench.reply("job_export_bundle", json!({}));
    let document = exported["content"].as_str().unwrap();
    assert!(document.contains("### S2 was removed"), "{document}");
}

#[test]
fn a_rejection_drafts_the_mistake_that_later_prompts_remind_of() {
    let bench = started(2);
    bench.run(
        r#"
        - plan_refine_steps {"edits": [{"op": "update", "step_id": "S1", "set": {"tags": ["csv"]}}, {"op": "update", "step_id": "S2", "set": {"tags": ["CSV"]}}]}
        - job_update_policies {"policies": {"require_mistake_on_reject": true}}
        - job_next_step_prompt {}
        "#,
    );
    let rejected = submit(
        &bench,
        json!({"evidence": {"notes": "n", "criteria_checklist": {"c1": true, "c2": false}}}),
    );
    let mut log = format!("{}\n", rejected["mistake_draft"]["arguments"]).replace(&bench.job, "JOB");
    let refused = bench.call("job_submit_step_result", result("S1")).unwrap_err();
    log += &format!("{} {}\n", refused.code, refused.next_call.unwrap().tool);
    bench.learn(&rejected, "run the tests first");
    log += &told(&submit(&bench, json!({})));
    log += &bench.run("job_next_step_prompt {} ? step_id relevant_mistakes");
    log += &bench.run(r#"mistake_list {"tag": "csv"} ? mistakes.0.lesson truncated"#);
    expect![[r#"
        {"job_id":"JOB","attempt_id":"ATT-AYS9","lesson":"<what to do instead>"}
        MISTAKE_REQUIRED mistake_record
        "NEXT_STEP_AVAILABLE" null [] []
        ok step_id="S2" relevant_mistakes=["Avoid: c2 is false: it is tested / Instead: run the tests first"]
        ok mistakes.0.lesson="run the tests first" truncated=false
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_person_approves_before_the_gate_lets_it_pass() {
    let bench = Bench::new();
    bench.run(READY);
    let gated = json!({"steps": [step("deploy", json!([{"gate": "human_approval"}]))]});
    bench.reply("plan_propose_steps", gated);
    let mut log = bench.run(
        r#"
        job_set_ready {} ? warnings
        - job_start {}
        - job_next_step_prompt {}
        "#,
    );
    log += &told(&submit(&bench, json!({})));
    log += &bench.run(
        r#"
        step_approve {"step_id": "S1", "approved_by": "Ada"} ? approved unchanged
        step_approve {"step_id": "S1", "approved_by": "Ada"} ? approved unchanged
        step_revoke_approval {"step_id": "S1", "reason": "looked again"} ? approved unchanged
        step_revoke_approval {"step_id": "S1"} ? approved unchanged
        "#,
    );
    log += &told(&submit(&bench, json!({})));
    log += &bench.run(
        r#"
        step_approve {"step_id": "S1", "approved_by": "Ada", "note": "go"} ? approved
        step_approve {"step_id": "S7", "approved_by": "Ada"}
        "#,
    );
    log += &told(&submit(&bench, json!({})));
    log += &bench.run(r#"step_approve {"step_id": "S1", "approved_by": "Ada"}"#);
    expect![[r#"
        ok warnings=["a person must approve steps with step_approve"]
        "RETRY" "gates" [] ["gate human_approval: nobody has approved the step"]
        ok approved=true unchanged=false
        ok approved=true unchanged=true
        ok approved=false unchanged=false
        ok approved=false unchanged=true
        "RETRY" "gates" [] ["gate human_approval: nobody has approved the step"]
        ok approved=true
        err NOT_FOUND: there is no step S7
          - NOT_FOUND: there is no step S7
        "JOB_COMPLETE" null [] []
        err WRONG_STATUS: approvals cannot be given or revoked while the job is COMPLETE {"status":"COMPLETE","allowed_statuses":["PLANNING","READY","EXECUTING","PAUSED"]}
          - WRONG_STATUS: approvals cannot be given or revoked while the job is COMPLETE -> job_get {"job_id":"JOB"}
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_step_that_waits_for_a_person_is_in_the_list_until_somebody_decides() {
    let bench = Bench::new();
    bench.run(READY);
    let gated =
        json!({"steps": [step("deploy", json!([{"gate": "human_approval"}])), step("tell", json!([]))]});
    bench.reply("plan_propose_steps", gated);
    let listed = || {
        let all = bench.session.approvals();
        let lines = all.iter().map(|(asked, approval)| {
            let by = approval.answered_by.as_deref().unwrap_or("-");
            format!("{} {} {by}", asked.title, approval.status.as_str())
        });
        lines.collect::<Vec<_>>()
    };
    bench.run("- job_set_ready {}\n- job_start {}");
    assert!(listed().is_empty(), "no step is active yet");
    bench.run("- job_next_step_prompt {}");
    submit(&bench, json!({}));
    let title = "Approve S1 \"deploy\" of Export";
    assert_eq!(listed(), [format!("{title} pending -")]);
    let asked = bench.session.approvals().remove(0).0;
    let approve = asked.answering.unwrap().approve;
    assert_eq!(
        (approve.tool.as_str(), &approve.arguments["step_id"]),
        ("step_approve", &json!("S1"))
    );
    bench.run(r#"step_approve {"step_id": "S1", "approved_by": "Ada"}"#);
    assert_eq!(listed(), [format!("{title} approved Ada")]);
    bench.run(r#"step_revoke_approval {"step_id": "S1"}"#);
    assert_eq!(listed()[1..], [format!("{title} pending -")]);
    // Another content is another request, and a step without the gate waits for nobody.
    bench
        .run(r#"plan_refine_steps {"edits": [{"op": "update", "step_id": "S1", "set": {"title": "ship"}}]}"#);
    bench.run("- job_next_step_prompt {}");
    assert_eq!(
        listed()[1..],
        [
            format!("{title} withdrawn -"),
            "Approve S1 \"ship\" of Export pending -".to_owned()
        ]
    );
    bench.session.answer_approval(&bench.job, false, "Grace");
    bench.run("- job_next_step_prompt {}");
    assert_eq!(listed().len(), 3, "a rejection stands");
    bench.run(r#"job_fail {"reason": "given up"}"#);
    assert_eq!(listed()[2], "Approve S1 \"ship\" of Export rejected Grace");
}

#[test]
fn batches_put_commits_off_for_a_few_steps() {
    let bench = started(4);
    bench.run(r#"- job_update_policies {"policies": {"require_commit_per_step": true, "batch_commit_max_steps": 2}}"#);
    let mut log = bench.run(
        r#"
        git_commit {"defer_reason": "one commit for all", "paths": ["a"]}
        git_commit {}
        "#,
    );
    let opened = bench.reply("git_commit", json!({"defer_reason": "one commit for all"}));
    let token = opened["batch_commit_token"].clone();
    log += &format!("{}\n", opened["steps_left"]);
    log += &bench
        .run(r#"git_commit {"defer_reason": "again"}"#)
        .replace(token.as_str().unwrap(), "BCT");
    let with = |step: &str, key: &str, value: &Value| {
        bench.run("- job_next_step_prompt {}");
        let mut arguments = result(step);
        arguments[key] = value.clone();
        told(&bench.reply("job_submit_step_result", arguments))
    };
    log += &with("S1", "batch_commit_token", &token);
    log += &with("S2", "batch_commit_token", &token);
    log += &with("S3", "batch_commit_token", &token);
    log += &with("S3", "commit_hash", &json!("abcdef0"));
    log += &with("S4", "batch_commit_token", &token);
    log += &bench.run("job_get {} ? open_batch");
    expect![[r#"
        err INVALID_ARGUMENTS: defer_reason cannot be combined with summary or paths
          - INVALID_ARGUMENTS (defer_reason): defer_reason cannot be combined with summary or paths
        err INVALID_ARGUMENTS: summary is missing; and 1 more reason
          - INVALID_ARGUMENTS (summary): summary is missing
          - INVALID_ARGUMENTS (paths): paths is empty; name the files or directories to commit
        2
        err BATCH_OPEN: the batch that BCT opened must be committed first
          - BATCH_OPEN: the batch that BCT opened must be committed first -> git_commit {"job_id":"JOB","summary":"<summary of the changes>","paths":["<a changed path>"]}
        "NEXT_STEP_AVAILABLE" null [] []
        "NEXT_STEP_AVAILABLE" null [] []
        "RETRY" "records" [] ["batch_commit_token has expired; commit the batch and send commit_hash"]
        "NEXT_STEP_AVAILABLE" null [] []
        "RETRY" "records" [] ["batch_commit_token is not open: its batch was committed or never opened"]
        ok open_batch=null
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_step_with_a_commit_of_its_own_takes_no_token() {
    let bench = Bench::new().started(json!([
        {"title": "a", "instruction_prompt": "x", "acceptance_criteria": ["y"], "required_evidence": {"notes": "string"}, "strict_git": true},
        step("b", json!([])),
    ]));
    bench.run("- job_next_step_prompt {}");
    let token = bench.reply("git_commit", json!({"defer_reason": "later"}))["batch_commit_token"].clone();
    let mut submission = result("S1");
    submission["evidence"] = json!({"notes": "n"});
    submission["batch_commit_token"] = token;
    let reply = bench.reply("job_submit_step_result", submission);
    expect![[r#"
        "RETRY" "records" [] ["this step requires a commit of its own, not a batch_commit_token"]
    "#]]
    .assert_eq(&told(&reply));
}
