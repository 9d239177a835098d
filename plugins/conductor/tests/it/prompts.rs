//! Content of a step's prompt.

use expect_test::expect_file;
use serde_json::json;

use crate::harness::{Bench, READY, step};

/// A job whose second step has something in every section.
fn rich() -> Bench {
    let bench = Bench::new();
    bench.run(READY);
    let notes = json!({"block_type": "SNIPPET", "content": "def rows(report):\n    return report.rows\n"});
    let context = bench.reply("context_add_block", notes)["context_id"].clone();
    let mut second = step(
        "Write the exporter",
        json!([{"gate": "command_exit_0", "command": ["pytest", "-q"]}, {"gate": "human_approval"}]),
    );
    second["context_refs"] = json!([context]);
    second["tags"] = json!(["csv"]);
    second["expected_outputs"] = json!(["export.py", "tests/test_export.py"]);
    bench.reply(
        "plan_propose_steps",
        json!({"steps": [step("Look around", json!([])), second]}),
    );
    bench.run(
        r#"
        - plan_set_constraints {"constraints": ["small commits"]}
        - context_add_block {"block_type": "RESEARCH", "content": "Findings\n- run the tests before and after\n2. keep diffs small", "tags": ["best-practice"]}
        - context_add_block {"block_type": "RESEARCH", "content": "- not about the process"}
        - mistake_record {"title": "Quotes", "what_happened": "a", "why": "b", "lesson": "c", "avoid_next_time": "writing quotes by hand", "tags": ["csv"]}
        - mistake_record {"title": "Elsewhere", "what_happened": "a", "why": "b", "lesson": "c", "avoid_next_time": "d", "tags": ["html"]}
        - job_update_policies {"policies": {"require_tests_evidence": true, "require_diff_summary": true, "require_commit_per_step": true, "evidence_schema_mode": "strict", "require_file_descriptions": true}}
        - job_set_ready {}
        - job_start {}
        "#,
    );
    bench
}

fn second_prompt(bench: &Bench) -> String {
    bench.run("- job_next_step_prompt {}");
    let evidence = json!({"notes": "looked", "criteria_checklist": {"c1": true, "c2": true}, "tests_run": [],
        "tests_passed": null, "diff_summary": "nothing was changed in this step"});
    bench.run(r#"- job_update_policies {"policies": {"require_commit_per_step": false, "require_file_descriptions": false}}"#);
    bench.reply(
        "job_submit_step_result",
        json!({"step_id": "S1", "model_claim": "MET", "summary": "looked around in the code", "devlog_line": "looked",
            "evidence": evidence}),
    );
    bench.run(r#"- job_update_policies {"policies": {"require_commit_per_step": true, "require_file_descriptions": true}}"#);
    let prompt = bench.reply("job_next_step_prompt", json!({}));
    prompt["prompt"].as_str().unwrap().replace(&bench.job, "JOB")
}

#[test]
fn every_section_is_there_and_the_same_state_gives_the_same_bytes() {
    let prompt = second_prompt(&rich());
    expect_file!["snapshots/prompt.md"].assert_eq(&prompt);
    assert_eq!(second_prompt(&rich()), prompt);
    let headings: Vec<&str> = prompt
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    assert_eq!(
        headings.join(", "),
        "Step Objective, Non-Negotiable Invariants, What to Produce, Acceptance Criteria, Required Evidence Format, \
         Reminder of Relevant Mistakes, If Stuck"
    );
}

#[test]
fn context_gives_way_first_and_the_limit_holds() {
    let bench = Bench::new();
    bench.run(READY);
    let mut refs = Vec::new();
    for size in [500_usize, 8_000, 30_000] {
        let block = json!({"block_type": "NOTES", "content": "word ".repeat(size / 5)});
        refs.push(bench.reply("context_add_block", block)["context_id"].clone());
    }
    let mut only = step("one", json!([]));
    only["context_refs"] = json!(refs);
    bench.reply("plan_propose_steps", json!({"steps": [only]}));
    bench.run("- context_add_block {\"block_type\": \"RESEARCH\", \"content\": \"- rule one\", \"tags\": [\"process\"]}\n- job_set_ready {}\n- job_start {}");
    let mut whole = None;
    for limit in [100_000, 20_000, 6_000, 3_000, 2_000] {
        bench.reply(
            "job_update_policies",
            json!({"policies": {"prompt_max_chars": limit}}),
        );
        let prompt = bench.reply("job_next_step_prompt", json!({}))["prompt"]
            .as_str()
            .unwrap()
            .to_owned();
        let length = prompt.chars().count();
        assert!(length <= limit, "{length} > {limit}");
        assert!(
            prompt.contains("Do this: one.") && prompt.contains("- c2: it is tested"),
            "{prompt}"
        );
        if limit >= 3_000 {
            assert!(prompt.contains("- rule one"), "{limit}: {prompt}");
        }
        // Room is used: less than the whole is cut only as far as it has to be.
        match &whole {
            None => whole = Some(length),
            Some(whole) if *whole > limit && limit > 3_000 => {
                assert!(length > limit / 2, "{length} of {limit}")
            }
            Some(_) => {}
        }
    }
    // A plan that grew under way still fits, and says where it was cut.
    let long = json!({"edits": [{"op": "update", "step_id": "S1", "set": {"instruction_prompt": "long ".repeat(1000)}}]});
    bench.reply("plan_refine_steps", long);
    let prompt = bench.reply("job_next_step_prompt", json!({}))["prompt"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(prompt.chars().count() <= 2_000);
    assert!(
        prompt.contains("[cut: job_get with step_id shows the whole instruction]"),
        "{prompt}"
    );
}

#[test]
fn the_prompts_for_people_say_where_a_job_stands() {
    let bench = Bench::new();
    let say = |name: &str, arguments: serde_json::Value| {
        let said = bench.session.prompt(name, &arguments.to_string());
        said.map(|text| text.lines().take(2).collect::<Vec<_>>().join(" / "))
            .unwrap_or_else(|err| err.to_string())
            .replace(&bench.job, "JOB")
            + "\n"
    };
    let mut log = say("plan_job", json!({"goal": "Export reports"}));
    log += &say("plan_job", json!({"goal": bench.job}));
    log += &say("plan_job", json!({"goal": " "}));
    log += &say("plan_job", json!({}));
    log += &say("execute_job", json!({"job_id": bench.job}));
    bench.run(READY);
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    bench.run("- job_set_ready {}");
    log += &say("execute_job", json!({"job_id": bench.job}));
    bench.run("- job_start {}\n- job_pause {}");
    log += &say("execute_job", json!({"job_id": bench.job}));
    log += &say("execute_job", json!({"job_id": "JOB-NONE"}));
    log += &say("other", json!({}));
    expect_test::expect![[r#"
        Plan this job: Export reports / Call conductor_init with a title, this goal, and repo_root if there is a repository.
        Continue planning the job JOB (PLANNING): Export reports as CSV / Call conductor_next_questions with this job_id.
        INVALID_ARGUMENTS: goal is blank
        INVALID_ARGUMENTS: the arguments do not match the prompt plan_job: missing field `goal` at line 1 column 2
        Execute the job JOB, "Export" (0 steps, PLANNING): Export reports as CSV / The job is not ready: tell the user, and continue only after job_set_ready accepts it.
        Execute the job JOB, "Export" (1 steps, READY): Export reports as CSV / Call job_start, then job_next_step_prompt.
        Execute the job JOB, "Export" (1 steps, PAUSED): Export reports as CSV / The job is paused: tell the user why (job_get), and call job_resume only when they say so. Step 1 of 1 is next: S1, one.
        NOT_FOUND: there is no job JOB-NONE
        UNKNOWN_PROMPT: `other` is not a prompt of conductor
    "#]].assert_eq(&log);
    let described: Vec<_> = conductor::PACK
        .prompts
        .iter()
        .map(|prompt| {
            (
                prompt.name,
                prompt.description().len() > 20,
                prompt.arguments().len(),
            )
        })
        .collect();
    assert_eq!(described, [("plan_job", true, 1), ("execute_job", true, 1)]);
}
