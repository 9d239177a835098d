//! Prompts, templates and refusals: all that is needed is told, once, and where it belongs.

use serde_json::{Value, json};

use crate::cheats::{accepted, accepted_with, caught, caught_with, gated};
use crate::harness::{Bench, READY, repository, step};

fn prompt(bench: &Bench) -> String {
    let reply = bench.reply("job_next_step_prompt", json!({}));
    reply["prompt"].as_str().unwrap().to_owned()
}

#[track_caller]
fn has(text: &str, words: &str) {
    assert!(text.contains(words), "{words:?} is not in: {text}");
}

#[track_caller]
fn lacks(text: &str, words: &str) {
    assert!(!text.contains(words), "{words:?} is in: {text}");
}

#[test]
fn a_hash_is_given_once_wherever_the_plan_wants_it() {
    for gates in [json!([{"gate": "commit_exists"}]), json!([])] {
        let bench = Bench::with_repository();
        bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
        let mut one = step("one", gates);
        one["required_evidence"] = json!(["notes", "commit_hash"]);
        let bench = bench.started(json!([one, step("two", json!([]))]));
        let text = prompt(&bench);
        assert_eq!(text.matches("\"commit_hash\":").count(), 1, "{text}");
        has(&text, "\"commit_hash\": \"<hash of the commit>\"");
        has(&text, "- a commit_hash (create the commit with git_commit");
        caught(&bench, "commit_hash is missing");
        bench.write("b.txt", "1\n");
        bench.git(&["add", "b.txt"]);
        bench.git(&["commit", "--quiet", "-m", "S1: add b"]);
        let hash = bench.git(&["rev-parse", "HEAD"]);
        let evidence = |hash: &str| json!({"notes": "n", "invariants_checked": true, "commit_hash": hash});
        caught_with(
            &bench,
            json!({"commit_hash": hash, "evidence": evidence("abcdef1234567")}),
            "but abcdef1234567 in the evidence; send one of them",
        );
        caught_with(
            &bench,
            json!({"evidence": evidence("abcdef1234567")}),
            "abcdef1234567",
        );
        // The evidence alone is enough, and so is the field alone.
        accepted_with(&bench, json!({"evidence": evidence(&hash)}));
    }
}

#[test]
fn prompts_of_bundles_say_when_they_were_rendered() {
    let bench = gated(json!([]));
    let document = bench.reply("job_export_bundle", json!({"format": "md"}));
    has(
        document["content"].as_str().unwrap(),
        "## Prompts\n\n> Rendered from the state of the job at the export.",
    );
}

#[test]
fn an_accepted_step_teaches_nothing_that_nobody_wrote() {
    let gates = json!([{"gate": "file_exists", "paths": ["b.txt"]}]);
    let bench = Bench::with_repository();
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    let mut two = step("two", json!([]));
    two["tags"] = json!(["csv"]);
    let mut one = step("one", gates);
    one["tags"] = json!(["csv"]);
    let bench = bench.started(json!([one, two]));
    prompt(&bench);
    // A forgotten field is no mistake to remember.
    caught_with(
        &bench,
        json!({"evidence": {"notes": "n"}, "devlog_line": ""}),
        "missing",
    );
    assert_eq!(bench.reply("mistake_list", json!({}))["mistakes"], json!([]));
    caught(&bench, "b.txt does not exist");
    let retry = prompt(&bench);
    assert_eq!(retry.matches("b.txt does not exist").count(), 1, "{retry}");
    caught(&bench, "b.txt does not exist");
    let retry = prompt(&bench);
    assert_eq!(retry.matches("b.txt does not exist").count(), 1, "{retry}");
    bench.write("b.txt", "1\n");
    accepted(&bench);
    let next = prompt(&bench);
    has(&next, "Avoid: gate file_exists: b.txt does not exist");
    lacks(&next, "Instead:");
}

#[test]
fn answers_about_faults_reach_those_who_execute() {
    let bench = Bench::with_repository();
    bench.run(READY);
    bench.reply(
        "conductor_answer",
        json!({"answers": {"decide_now": ["lines end with \\n"], "failure_modes": ["quotes in names"],
            "smallest_proof": ["one row"], "hidden_dependencies": ["the locale"]}}),
    );
    let steps: Vec<Value> = (0..4).map(|_| step("part", json!([]))).collect();
    bench.reply("plan_propose_steps", json!({"steps": steps}));
    bench.run("- job_set_ready {}\n- job_start {}");
    let first = prompt(&bench);
    for words in [
        "- Decided: lines end with \\n",
        "- May go wrong: quotes in names",
        "- Smallest proof: one row",
        "- Depends on: the locale",
    ] {
        has(&first, words);
    }
    accepted(&bench);
    let second = prompt(&bench);
    has(&second, "- Decided: lines end with \\n");
    lacks(&second, "quotes in names");
}

#[test]
fn the_first_instructions_lead_through_both_halves() {
    // The share of a pack if a client has five with instructions.
    let guide = conductor::PACK.instructions;
    let begin = guide.get(..198).unwrap_or(guide);
    for words in [
        "job_start",
        "job_next_step_prompt",
        "job_submit_step_result",
        "job_set_ready. ",
    ] {
        has(begin, words);
    }
}

#[test]
fn a_repository_that_is_answered_is_read_like_one_that_is_given() {
    let dir = repository();
    std::fs::write(dir.path().join("README.md"), "# app\n").unwrap();
    let workspace =
        tollgate_sdk::native::Workspace::new("main", dir.path()).git(tollgate_sdk::GitAccess::Write);
    let session = tollgate_sdk::native::Session::new(&conductor::PACK).workspace(workspace);
    let begun = session
        .call(
            "conductor_init",
            &json!({"title": "Export", "goal": "Export reports"}).to_string(),
        )
        .unwrap();
    let begun: Value = serde_json::from_str(&begun.structured).unwrap();
    let bench = Bench {
        job: begun["job_id"].as_str().unwrap().to_owned(),
        session,
        dir: Some(dir),
    };
    let wrong = bench.call(
        "conductor_answer",
        json!({"job_id": bench.job, "answers": {"repo_root": "../x"}}),
    );
    assert_eq!(wrong.unwrap_err().code, "INVALID_ARGUMENTS");
    let reply = bench.reply("conductor_answer", json!({"answers": {"repo_root": "main"}}));
    assert_eq!(reply["warnings"], Value::Null, "{reply}");
    bench.run(READY);
    let open = bench.reply("conductor_next_questions", json!({"all": true}));
    has(&open.to_string(), "README.md");
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    let ready = bench.reply("job_set_ready", json!({}));
    assert_eq!(ready["status"], json!("READY"), "{ready}");
}

#[test]
fn prompts_name_files_submissions_and_no_blank_notes() {
    let bench = Bench::with_repository();
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 1}}"#);
    let mut one = step(
        "one",
        json!([{"gate": "changed_files_allowlist", "paths": ["b.txt", "docs/**"]}, {"gate": "file_exists", "paths": ["b.txt", "c.txt"]}]),
    );
    one["required_evidence"] = json!(["changed_files"]);
    let bench = bench.started(json!([one, step("two", json!([]))]));
    let first = prompt(&bench);
    has(&first, "## What to Produce\n- b.txt, c.txt\n");
    has(&first, "2 submissions are left");
    lacks(&first, "\"notes\"");
    caught_with(
        &bench,
        json!({"evidence": {"changed_files": [], "invariants_checked": true}}),
        "b.txt does not exist",
    );
    has(
        &prompt(&bench),
        "This is the last submission: if it is rejected, the job pauses.",
    );
}
