//! Interview, plan, steps, and the ready gate.

use expect_test::expect;
use serde_json::json;

use crate::harness::{Bench, READY, check, step};

#[test]
fn the_interview_leads_from_phase_to_phase() {
    check(
        r#"
        conductor_next_questions {} ? phase required_open
        conductor_answer {"answers": {"repo_exists": false, "out_of_scope": [], "deliverables": ["export.py"]}} ? stored interview.phase interview.required_open
        conductor_answer {"answers": {"definition_of_done": ["it exports"], "tests_expected": ["unit tests"], "invariants": []}} ? interview.phase interview.required_open
        conductor_answer {"answers": {"repo_exists": true, "risks": [{"risk": "large reports"}]}} ? interview.phase interview.required_open
        conductor_answer {"answers": {"repo_root": "main/app"}} ? interview.phase interview.required_open warnings
        conductor_answer {"answers": {}}
        conductor_answer {"answers": {"goal": " ", "repo_root": "../x", "invariants": ["<one invariant>"], "risks": [{"risk": ""}]}}
        "#,
        expect![[r#"
            ok phase=2 required_open=["deliverables","definition_of_done","invariants","steps"]
            ok stored=["out_of_scope","deliverables","repo_exists"] interview.phase=2 interview.required_open=["definition_of_done","invariants","steps"]
            ok interview.phase=5 interview.required_open=["steps"]
            ok interview.phase=4 interview.required_open=["repo_root","steps"]
            ok interview.phase=5 interview.required_open=["steps"] warnings=["workspace `main` does not exist or is not granted to this pack (no workspace is registered for this pack); gates that check files, Git or commands will fail. Ask the operator to register the workspace under [workspaces.NAME]"]
            err INVALID_ARGUMENTS: answers contains no answer
              - INVALID_ARGUMENTS (answers): answers contains no answer
            err INVALID_ARGUMENTS: answers.invariants[0] is still a placeholder; say what it stands for; and 3 more reasons
              - INVALID_ARGUMENTS (answers.invariants[0]): answers.invariants[0] is still a placeholder; say what it stands for
              - INVALID_ARGUMENTS (answers.risks[0].risk): answers.risks[0].risk is blank
              - INVALID_ARGUMENTS (answers.goal): answers.goal is blank
              - INVALID_ARGUMENTS (answers.repo_root): answers.repo_root must be the name of a workspace, or a path in one without `..` (no workspace is registered for this pack)
        "#]],
    );
}

#[test]
fn one_text_is_a_list_and_large_plans_need_a_search_for_faults() {
    let bench = Bench::new();
    let answers = json!({"repo_exists": false, "constraints": "no new dependencies", "invariants": "patches only",
        "deliverables": ["export.py"], "definition_of_done": "it exports"});
    bench.reply("conductor_answer", json!({"answers": answers}));
    let seen = bench.reply("job_get", json!({}));
    assert_eq!(
        seen["plan"]["constraints"],
        json!(["no new dependencies"]),
        "{seen}"
    );
    let steps: Vec<_> = ["a", "b", "c", "d"].map(|title| step(title, json!([]))).into();
    bench.reply("plan_propose_steps", json!({ "steps": steps }));
    let asked = bench.reply("conductor_next_questions", json!({}));
    let open = json!([
        "failure_modes",
        "hidden_dependencies",
        "smallest_proof",
        "decide_now"
    ]);
    assert_eq!(
        (&asked["required_open"], &asked["complete"]),
        (&open, &json!(false)),
        "{asked}"
    );
    let questions = asked["questions"].as_array().unwrap();
    let required = questions.iter().filter(|question| question["required"] == true);
    assert_eq!(required.count(), 4, "{asked}");
}

#[test]
fn the_ready_gate_lists_every_gap_and_each_call_is_the_one_that_closes_it() {
    let bench = Bench::new();
    let mut log = bench.run("job_set_ready {}");
    bench.run(
        r#"
        - conductor_answer {"answers": {"repo_exists": true}}
        - plan_propose_steps {"steps": [{"title": "empty"}, {"title": "lost", "instruction_prompt": "x", "acceptance_criteria": ["y"], "required_evidence": {"notes": "string"}, "context_refs": ["CTX-GONE"]}]}
        - job_update_policies {"policies": {"prompt_max_chars": 2000, "require_repo_snapshot_on_init": true}}
        "#,
    );
    log += &bench.run("job_set_ready {}");
    let long = json!({"edits": [{"op": "update", "step_id": "S2", "set": {"instruction_prompt": "x".repeat(3000)}}]});
    bench.reply("plan_refine_steps", long);
    bench.run(r#"- conductor_answer {"answers": {"repo_root": "main"}}"#);
    log += &bench.run("job_set_ready {}");
    expect![[r#"
        err PLAN_INCOMPLETE: the plan has 4 gaps
          - DELIVERABLES_MISSING (deliverables): the plan has no deliverables -> plan_set_deliverables {"job_id":"JOB","deliverables":["<one deliverable per entry>"]}
          - DEFINITION_OF_DONE_MISSING (definition_of_done): the plan has no definition of done -> plan_set_definition_of_done {"job_id":"JOB","definition_of_done":["<one condition per entry>"]}
          - INVARIANTS_MISSING (invariants): the plan has no invariants; an empty list is enough -> plan_set_invariants {"job_id":"JOB","invariants":[]}
          - STEPS_MISSING (steps): the plan has no steps -> plan_propose_steps {"job_id":"JOB","steps":[{"title":"<a short title>"}]}
        err PLAN_INCOMPLETE: the plan has 8 gaps
          - DELIVERABLES_MISSING (deliverables): the plan has no deliverables -> plan_set_deliverables {"job_id":"JOB","deliverables":["<one deliverable per entry>"]}
          - DEFINITION_OF_DONE_MISSING (definition_of_done): the plan has no definition of done -> plan_set_definition_of_done {"job_id":"JOB","definition_of_done":["<one condition per entry>"]}
          - INVARIANTS_MISSING (invariants): the plan has no invariants; an empty list is enough -> plan_set_invariants {"job_id":"JOB","invariants":[]}
          - REPO_ROOT_MISSING (repo_root): the job has no repo_root -> conductor_answer {"job_id":"JOB","answers":{"repo_root":"<name of a workspace>"}}
          - STEP_INSTRUCTION_MISSING (S1): step S1 has no instruction_prompt -> plan_refine_steps {"job_id":"JOB","edits":[{"op":"update","step_id":"S1","set":{"instruction_prompt":"<what to do>"}}]}
          - STEP_CRITERIA_MISSING (S1): step S1 has no acceptance_criteria -> plan_refine_steps {"job_id":"JOB","edits":[{"op":"update","step_id":"S1","set":{"acceptance_criteria":["<one criterion per entry>"]}}]}
          - STEP_EVIDENCE_MISSING (S1): step S1 has no required_evidence -> plan_refine_steps {"job_id":"JOB","edits":[{"op":"update","step_id":"S1","set":{"required_evidence":{"changed_files":"array"}}}]}
          - CONTEXT_MISSING (S2): step S2 names the context block CTX-GONE, which does not exist -> plan_refine_steps {"job_id":"JOB","edits":[{"op":"update","step_id":"S2","set":{"context_refs":[]}}]}
        err PLAN_INCOMPLETE: the plan has 9 gaps
          - DELIVERABLES_MISSING (deliverables): the plan has no deliverables -> plan_set_deliverables {"job_id":"JOB","deliverables":["<one deliverable per entry>"]}
          - DEFINITION_OF_DONE_MISSING (definition_of_done): the plan has no definition of done -> plan_set_definition_of_done {"job_id":"JOB","definition_of_done":["<one condition per entry>"]}
          - INVARIANTS_MISSING (invariants): the plan has no invariants; an empty list is enough -> plan_set_invariants {"job_id":"JOB","invariants":[]}
          - BASELINE_MISSING (repo_root): there is no snapshot of the repository to compare later states with -> repo_snapshot {"job_id":"JOB"}
          - STEP_INSTRUCTION_MISSING (S1): step S1 has no instruction_prompt -> plan_refine_steps {"job_id":"JOB","edits":[{"op":"update","step_id":"S1","set":{"instruction_prompt":"<what to do>"}}]}
          - STEP_CRITERIA_MISSING (S1): step S1 has no acceptance_criteria -> plan_refine_steps {"job_id":"JOB","edits":[{"op":"update","step_id":"S1","set":{"acceptance_criteria":["<one criterion per entry>"]}}]}
          - STEP_EVIDENCE_MISSING (S1): step S1 has no required_evidence -> plan_refine_steps {"job_id":"JOB","edits":[{"op":"update","step_id":"S1","set":{"required_evidence":{"changed_files":"array"}}}]}
          - CONTEXT_MISSING (S2): step S2 names the context block CTX-GONE, which does not exist -> plan_refine_steps {"job_id":"JOB","edits":[{"op":"update","step_id":"S2","set":{"context_refs":[]}}]}
          - PROMPT_TOO_LONG (S2): the prompt of step S2 has 4127 characters without any context -> job_update_policies {"job_id":"JOB","policies":{"prompt_max_chars":8127}}
    "#]].assert_eq(&log);
}

#[test]
fn placeholders_of_ready_calls_are_not_taken_for_answers() {
    let bench = Bench::new();
    let refused = bench.call("job_set_ready", json!({})).unwrap_err();
    for blocker in refused.blockers {
        let call = blocker.next_call.unwrap();
        let result = bench.call(&call.tool, serde_json::Value::Object(call.arguments));
        let closes = blocker.code == "INVARIANTS_MISSING";
        assert_eq!(result.is_ok(), closes, "{}", blocker.code);
    }
}

#[test]
fn editing_a_ready_plan_takes_it_back() {
    let bench = Bench::new();
    bench.run(READY);
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    let log = bench.run(
        r#"
        job_set_ready {} ? status warnings steps next_call.tool
        job_set_ready {} ? status
        plan_set_constraints {"constraints": ["small commits"]} ? status unreadied stored required_open
        plan_set_risks {"risks": [{"risk": "slow"}]} ? status unreadied
        job_set_ready {} ? status warnings
        plan_refine_steps {"edits": [{"op": "update", "step_id": "S1", "set": {"title": "uno"}}]} ? status unreadied
        plan_set_deliverables {"deliverables": []}
        plan_set_invariants {"invariants": []} ? stored
        plan_set_assumptions {"assumptions": ["python 3"]} ? stored
        plan_set_definition_of_done {"definition_of_done": ["x", "<y z>"]}
        job_start {}
        "#,
    );
    expect![[r#"
        ok status="READY" warnings=[] steps=["S1: one"] next_call.tool="job_start"
        ok status="READY"
        ok status="PLANNING" unreadied=true stored=1 required_open=[]
        ok status="PLANNING" unreadied=false
        ok status="READY" warnings=["risk has no mitigation: slow"]
        ok status="PLANNING" unreadied=true
        err INVALID_ARGUMENTS: deliverables is empty
          - INVALID_ARGUMENTS (deliverables): deliverables is empty
        ok stored=0
        ok stored=1
        err INVALID_ARGUMENTS: definition_of_done[1] is still a placeholder; say what it stands for
          - INVALID_ARGUMENTS (definition_of_done[1]): definition_of_done[1] is still a placeholder; say what it stands for
        err WRONG_STATUS: the job cannot be started while the job is PLANNING {"status":"PLANNING","allowed_statuses":["READY"]}
          - WRONG_STATUS: the job cannot be started while the job is PLANNING -> job_set_ready {"job_id":"JOB"}
    "#]].assert_eq(&log);
}

#[test]
fn steps_are_checked_whole() {
    check(
        r#"
        plan_propose_steps {"steps": [{"title": " ", "required_evidence": {"tests_passed": "string", "": "array"}, "gates": [{"gate": "nope"}, {"gate": "file_exists"}], "max_attempts": 0}, {"title": "fine"}]}
        plan_propose_steps {"steps": []}
        plan_propose_steps {"steps": [{"title": "a"}, {"title": "b", "tags": ["High-Risk", "high-risk"]}]} ? steps.0.title steps.1.title steps.2.title warnings
        "#,
        expect![[r#"
            err INVALID_ARGUMENTS: steps[0].title is blank; and 5 more reasons
              - INVALID_ARGUMENTS (steps[0].title): steps[0].title is blank
              - INVALID_ARGUMENTS (steps[0].max_attempts): steps[0].max_attempts is 0, not within 1 to 100
              - INVALID_ARGUMENTS (steps[0].required_evidence): steps[0].required_evidence is blank
              - INVALID_ARGUMENTS (steps[0].required_evidence.tests_passed): steps[0].required_evidence.tests_passed must be of type boolean, not string
              - INVALID_ARGUMENTS (gates): steps[0].gates[0]: "nope" is not a gate; use one of tests_passed, tests_fail, fail_to_pass, tests_unchanged, lint_passed, evidence_bool_true, criteria_checklist_complete, changed_files_allowlist, forbid_paths, changed_files_minimum, file_exists, file_not_exists, file_contains, file_lacks, reachable, no_uncommitted_changes, diff_max_lines, diff_min_lines, commit_exists, command_exit_0, command_output_contains, command_output_regex, json_schema_valid, human_approval
              - INVALID_ARGUMENTS (steps[0].gates[1]): steps[0].gates[1] file_exists requires paths
            err INVALID_ARGUMENTS: steps is empty
              - INVALID_ARGUMENTS (steps): steps is empty
            ok steps.0.title="a" steps.1.title="Checkpoint before: b" steps.2.title="b" warnings=["S1 has no instruction_prompt","S1 has no acceptance_criteria","S1 has no required_evidence","S1 has no remediation_prompt for when it fails","S3 has no instruction_prompt","S3 has no acceptance_criteria","S3 has no required_evidence","S3 has no remediation_prompt for when it fails"]
        "#]],
    );
}

#[test]
fn checkpoints_are_inserted_once() {
    let bench = Bench::new();
    let steps: Vec<_> = ["a", "b", "c", "d", "e"]
        .map(|title| step(title, json!([])))
        .to_vec();
    bench.reply("plan_propose_steps", json!({"steps": steps}));
    let log = bench.run(
        r#"
        job_get {} ? steps.4.title steps.5.title steps.5.step_id
        plan_refine_steps {"edits": [{"op": "remove", "step_id": "S6"}]} ? steps.4.title steps.5
        plan_refine_steps {"edits": [{"op": "insert", "after": "S5", "step": {"title": "f"}}]} ? steps.5.title steps.5.step_id steps.6
        "#,
    );
    expect![[r#"
        ok steps.4.title="e" steps.5.title="Final checkpoint" steps.5.step_id="S6"
        ok steps.4.title="e" steps.5=null
        ok steps.5.title="f" steps.5.step_id="S7" steps.6=null
    "#]]
    .assert_eq(&log);
}

#[test]
fn checkpoints_count_as_steps() {
    let bench = Bench::new();
    let steps: Vec<_> = (0..100)
        .map(|number| step(&format!("step {number}"), json!([])))
        .collect();
    let refused = bench
        .call("plan_propose_steps", json!({"steps": steps}))
        .unwrap_err();
    assert_eq!(
        refused.message,
        "steps has 120 steps with their checkpoints; at most 100 are allowed"
    );
    let chain = bench.reply("plan_propose_steps", json!({"steps": &steps[..80]}));
    assert_eq!(chain["steps"].as_array().unwrap().len(), 96);
}

#[test]
fn edits_are_all_or_none() {
    let bench = Bench::new();
    let steps: Vec<_> = ["a", "b", "c"].map(|title| step(title, json!([]))).to_vec();
    bench.reply("plan_propose_steps", json!({"steps": steps}));
    let log = bench.run(
        r#"
        plan_refine_steps {"edits": [{"op": "remove", "step_id": "S1"}, {"op": "update", "step_id": "S9", "set": {}}, {"op": "update", "step_id": "S2"}, {"op": "insert"}, {"op": "move", "step_id": "S2", "after": "S2"}]}
        job_get {} ? steps.0.step_id steps.1.step_id steps.2.step_id
        plan_refine_steps {"edits": [{"op": "move", "step_id": "S3"}, {"op": "insert", "after": "S3", "step": {"title": "d"}}, {"op": "remove", "step_id": "S2"}]} ? steps.0.step_id steps.1.step_id steps.2.step_id steps.3
        plan_refine_steps {"edits": []}
        "#,
    );
    expect![[r#"
        err NOT_FOUND: there is no step S9; and 3 more reasons
          - NOT_FOUND: there is no step S9
          - INVALID_ARGUMENTS (edits[2].set): edits[2].set is missing
          - INVALID_ARGUMENTS (edits[3].step): edits[3].step is missing
          - INVALID_ARGUMENTS (edits[4].after): edits[4].after is the step itself
        ok steps.0.step_id="S1" steps.1.step_id="S2" steps.2.step_id="S3"
        ok steps.0.step_id="S3" steps.1.step_id="S4" steps.2.step_id="S1" steps.3=null
        err INVALID_ARGUMENTS: edits is empty
          - INVALID_ARGUMENTS (edits): edits is empty
    "#]]
    .assert_eq(&log);
}

#[test]
fn policies_change_until_the_end() {
    check(
        r#"
        job_get {} ? policies changed_policies
        job_update_policies {"policies": {"max_retries_per_step": 5, "commit_message_template": "{job_id} {step_id} {title}: {summary}"}} ? changed
        job_update_policies {"policies": {"batch_commit_max_steps": 0, "prompt_max_chars": 3, "commit_message_template": "x"}}
        job_update_policies {"policies": {}}
        job_fail {"reason": "not needed"} ? from status
        job_update_policies {"policies": {"max_retries_per_step": 1}}
        job_archive {} ? from status
        job_list {} ? jobs
        job_list {"status": "ARCHIVED"} ? jobs.0.title
        job_get {"job_id": "JOB-NONE"}
        job_list {"limit": 0}
        "#,
        expect![[r#"
            ok policies={"require_devlog_per_step":true,"require_commit_per_step":false,"allow_batch_commits":true,"batch_commit_max_steps":3,"require_tests_evidence":true,"require_diff_summary":true,"require_repo_snapshot_on_init":false,"inject_invariants_every_step":true,"inject_mistakes_every_step":true,"evidence_schema_mode":"loose","require_mistake_on_reject":false,"require_file_descriptions":false,"checkpoint_interval_steps":5,"max_retries_per_step":2,"retry_exhausted_action":"PAUSE_FOR_HUMAN","commit_message_template":"{step_id}: {summary}","prompt_max_chars":16000} changed_policies=[]
            ok changed=["max_retries_per_step","commit_message_template"]
            err INVALID_ARGUMENTS: policies.batch_commit_max_steps is 0, not within 1 to 20; and 2 more reasons
              - INVALID_ARGUMENTS (policies.batch_commit_max_steps): policies.batch_commit_max_steps is 0, not within 1 to 20
              - INVALID_ARGUMENTS (policies.prompt_max_chars): policies.prompt_max_chars is 3, not within 2000 to 100000
              - INVALID_ARGUMENTS (policies.commit_message_template): policies.commit_message_template must contain {summary}
            err INVALID_ARGUMENTS: policies changes nothing
              - INVALID_ARGUMENTS (policies): policies changes nothing
            ok from="PLANNING" status="FAILED"
            err WRONG_STATUS: the policies cannot be changed while the job is FAILED {"status":"FAILED","allowed_statuses":["PLANNING","READY","EXECUTING","PAUSED"]}
              - WRONG_STATUS: the policies cannot be changed while the job is FAILED -> job_get {"job_id":"JOB"}
            ok from="FAILED" status="ARCHIVED"
            ok jobs=[]
            ok jobs.0.title="Export"
            err NOT_FOUND: there is no job JOB-NONE
              - NOT_FOUND: there is no job JOB-NONE -> job_list {}
            err INVALID_ARGUMENTS: limit is 0, not within 1 to 200
              - INVALID_ARGUMENTS (limit): limit is 0, not within 1 to 200
        "#]],
    );
}

#[test]
fn a_job_begins_with_what_can_be_used() {
    check(
        r#"
        conductor_init {"title": "", "goal": "<what is built>", "repo_root": "/etc", "tags": [" "], "policies": {"max_retries_per_step": 101}}
        conductor_init {"title": "Another", "goal": "Do it", "repo_root": "nowhere", "tags": ["B", "b "]} ? status warnings
        "#,
        expect![[r#"
            err INVALID_ARGUMENTS: title is blank; and 4 more reasons
              - INVALID_ARGUMENTS (title): title is blank
              - INVALID_ARGUMENTS (goal): goal is still a placeholder; say what it stands for
              - INVALID_ARGUMENTS (tags[0]): tags[0] is blank
              - INVALID_ARGUMENTS (repo_root): repo_root must be the name of a workspace, or a path in one without `..` (no workspace is registered for this pack)
              - INVALID_ARGUMENTS (policies.max_retries_per_step): policies.max_retries_per_step is 101, not within 0 to 100
            ok status="PLANNING" warnings=["workspace `nowhere` does not exist or is not granted to this pack (no workspace is registered for this pack); gates that check files, Git or commands will fail. Ask the operator to register the workspace under [workspaces.NAME]"]
        "#]],
    );
}

/// Answers to the four questions about faults in a plan.
const FAULTS: &str = r#"{"failure_modes": ["quotes"], "hidden_dependencies": [], "smallest_proof": ["one row"], "decide_now": []}"#;

#[test]
fn a_longer_plan_needs_a_search_for_faults() {
    let bench = Bench::new();
    bench.run(READY);
    let steps: Vec<_> = ["a", "b", "c", "d"].map(|title| step(title, json!([]))).to_vec();
    bench.reply("plan_propose_steps", json!({"steps": &steps[..3]}));
    let mut log = bench.run("job_set_ready {} ? status warnings");
    bench.reply("plan_propose_steps", json!({"steps": steps}));
    log += &bench.run("job_set_ready {}");
    let next = bench
        .call("job_set_ready", json!({}))
        .unwrap_err()
        .next_call
        .unwrap();
    let placeholder = bench
        .call(&next.tool, serde_json::Value::Object(next.arguments))
        .unwrap_err();
    log += &format!("{}\n", placeholder.message);
    log += &bench.run(&format!(
        "conductor_next_questions {{\"last_answers\": {FAULTS}}} ? complete\njob_set_ready {{}} ? status"
    ));
    expect![[r#"
        ok status="READY" warnings=[]
        err PLAN_INCOMPLETE: the plan has 1 gap
          - FAULTS_MISSING (answers): questions about how the plan can fail are open: failure_modes, hidden_dependencies, smallest_proof, decide_now are not answered -> conductor_answer {"job_id":"JOB","answers":{"failure_modes":["<one finding per entry, or an empty list>"],"hidden_dependencies":["<one finding per entry, or an empty list>"],"smallest_proof":["<one finding per entry, or an empty list>"],"decide_now":["<one finding per entry, or an empty list>"]}}
        answers.failure_modes[0] is still a placeholder; say what it stands for; and 3 more reasons
        ok complete=true
        ok status="READY"
    "#]].assert_eq(&log);
}

#[test]
fn questions_offer_what_the_repository_shows() {
    let bench = Bench::with_repository();
    bench.write("Cargo.toml", "[package]\nname = \"shop\"\n");
    bench.write("src/main.rs", "fn main() {}\n");
    bench.run("- repo_map_update {}");
    let asked = bench.reply("conductor_next_questions", json!({"all": true}));
    let offered: String = asked["questions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|question| !question["suggestion"].is_null())
        .map(|question| format!("{} {}\n", question["key"], question["suggestion"]))
        .collect();
    expect![[r#"
        "target_environment" ["Rust"]
        "tests_expected" ["the registered test passes: fail = sh -c 'echo 1 failed; exit 3'","the registered test passes: pass = true","the registered test passes: say = echo '12 passed'"]
        "invariants" ["Patch files; never overwrite a whole file.","Add no dependency without approval.","Do not change or remove existing tests.","Change no public interface without its documentation and tests.","Add a test for every fixed bug.","Keep results deterministic."]
        "key_files" ["Cargo.toml","src/main.rs"]
        "entrypoints" ["src/main.rs"]
    "#]].assert_eq(&offered);
}

#[test]
fn a_workspace_is_named_wherever_it_matters() {
    let bench = Bench::with_repository();
    let place = bench.dir.as_ref().unwrap().path().canonicalize().unwrap();
    let place = place.to_str().unwrap();
    let init = json!({"title": "Deep", "goal": "Go down", "repo_root": format!("{place}/sub/")});
    std::fs::create_dir(format!("{place}/sub")).unwrap();
    let begun = bench.session.call("conductor_init", &init.to_string()).unwrap();
    let begun: serde_json::Value = serde_json::from_str(&begun.structured).unwrap();
    let shown = bench.reply("job_get", json!({"job_id": begun["job_id"]}));
    let mut log = format!(
        "{}\n{} {}\n",
        begun["workspaces"], shown["repo_root"], shown["workspace"]
    );
    log += &bench.run(&format!(
        r#"
        conductor_answer {{"answers": {{"repo_root": "{place}"}}}} ? stored
        job_get {{}} ? repo_root
        conductor_answer {{"answers": {{"repo_root": "/etc"}}}}
        conductor_answer {{"answers": {{"repo_root": "{place}/../x"}}}}
        "#
    ));
    expect![[r#"
        [{"name":"main","path":"/home/ada/shop","git":"write","tests":["fail = sh -c 'echo 1 failed; exit 3'","pass = true","say = echo '12 passed'"]}]
        "main/sub" {"name":"main","path":"/home/ada/shop","git":"write","tests":["fail = sh -c 'echo 1 failed; exit 3'","pass = true","say = echo '12 passed'"]}
        ok stored=["repo_root"]
        ok repo_root="main"
        err INVALID_ARGUMENTS: answers.repo_root must be the name of a workspace, or a path in one without `..` (registered: main)
          - INVALID_ARGUMENTS (answers.repo_root): answers.repo_root must be the name of a workspace, or a path in one without `..` (registered: main)
        err INVALID_ARGUMENTS: answers.repo_root must be the name of a workspace, or a path in one without `..` (registered: main)
          - INVALID_ARGUMENTS (answers.repo_root): answers.repo_root must be the name of a workspace, or a path in one without `..` (registered: main)
    "#]].assert_eq(&log.replace(place, "/home/ada/shop"));
}

#[test]
fn obvious_forms_are_understood() {
    let bench = Bench::new();
    bench.run(READY);
    let lower = format!(" {} ", bench.job.to_lowercase());
    let mut listed = step("one", json!([]));
    listed["required_evidence"] = json!(["changed_files", "tests_passed", "speed"]);
    let arguments = json!({"job_id": lower, "steps": [listed]});
    bench
        .session
        .call("plan_propose_steps", &arguments.to_string())
        .unwrap();
    let log = bench.run(
        r#"
        job_get {"step_id": " s1 "} ? step.required_evidence
        plan_set_risks {"risks": ["slow", {"risk": "large", "mitigation": "measure"}]} ? stored
        plan_set_risks {"risks": [{"risc": "typo"}]}
        conductor_answer {"answers": {"risks": ["slow"], "constraints": [], "unknowns": ["who"], "architecture": ["one file"]}} ? stored
        job_get {} ? plan.risks plan.unknowns
        "#,
    );
    expect![[r#"
        ok step.required_evidence={"changed_files":"array","speed":"string","tests_passed":"boolean"}
        ok stored=2
        err INVALID_ARGUMENTS: the arguments of plan_set_risks do not match the tool's input schema: unknown field `risc`, expected `risk` or `mitigation` at line 1 column 17
        ok stored=["constraints","unknowns","architecture","risks"]
        ok plan.risks=[{"risk":"slow"}] plan.unknowns=["who"]
    "#]].assert_eq(&log);
}

#[test]
fn invariants_are_offered_at_the_beginning() {
    let begun = Bench::new().reply("conductor_init", json!({"title": "Other", "goal": "Look"}));
    let offered = begun["invariant_templates"].as_array().unwrap();
    assert!(offered.len() > 2, "{begun}");
}

#[test]
fn an_answer_to_no_question_names_the_call_that_stores_the_others() {
    let bench = Bench::new();
    let answers =
        json!({"deliverables": ["a.csv"], "deliverable": "b.csv", "definition_of_done": "it exports"});
    let refused = bench
        .call("conductor_answer", json!({"answers": answers}))
        .unwrap_err();
    assert_eq!(refused.code, "INVALID_ARGUMENTS");
    assert!(
        refused
            .message
            .starts_with("nothing was stored: no question has the key deliverable; "),
        "{refused:?}"
    );
    let next = serde_json::to_value(refused.next_call.unwrap()).unwrap();
    let stored = bench.follow(&next)["stored"].clone();
    assert_eq!(stored, json!(["deliverables", "definition_of_done"]));
    let refused = bench
        .call("conductor_answer", json!({"answers": {"nothing": 1}}))
        .unwrap_err();
    let next = serde_json::to_value(refused.next_call.unwrap()).unwrap();
    assert_eq!(next["tool"], json!("conductor_next_questions"));
    bench.follow(&next);
    // A value of the wrong kind is another fault. A list takes the place of a sentence.
    let refused = bench
        .call("conductor_answer", json!({"answers": {"risks": 1}}))
        .unwrap_err();
    let message = "nothing was stored: answers.risks: invalid type";
    assert!(refused.message.starts_with(message), "{refused:?}");
    bench.reply(
        "conductor_answer",
        json!({"answers": {"target_environment": ["Linux", "Python"]}}),
    );
}
