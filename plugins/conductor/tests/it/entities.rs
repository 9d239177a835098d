//! Parts that every call shares: the name of its caller, the entities that it changes, and pages of lists.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Bench, result, step};

/// Entities that the events of a call name, without the job's id and the letters of other ids.
fn touched(bench: &Bench, tool: &str, arguments: Value) -> String {
    let before = bench.session.events().len();
    bench.reply(tool, arguments);
    let events = bench.session.events();
    let names = events.iter().skip(before).flat_map(|event| &event.changed);
    let names: Vec<String> = names
        .map(|name| {
            let parts = name.split('/').map(|part| match part.split_once('-') {
                Some((kind, _)) if part != bench.job => format!("{kind}-…"),
                _ => part.replace(&bench.job, "JOB"),
            });
            parts.collect::<Vec<_>>().join("/")
        })
        .collect();
    format!("{tool}: {}\n", names.join(" "))
}

#[test]
fn a_call_names_the_entities_that_it_changes() {
    let bench = Bench::with_repository();
    let steps = json!([step("one", json!([])), step("two", json!([]))]);
    let mut log = String::new();
    for (tool, arguments) in [
        (
            "conductor_answer",
            json!({"answers": {"deliverables": ["x"], "definition_of_done": ["y"], "invariants": []}}),
        ),
        (
            "context_add_block",
            json!({"block_type": "NOTES", "content": "n"}),
        ),
        ("plan_set_risks", json!({"risks": ["r"]})),
        ("plan_propose_steps", json!({"steps": steps})),
        (
            "plan_refine_steps",
            json!({"edits": [{"op": "update", "step_id": "S2", "set": {"title": "second"}}]}),
        ),
        (
            "job_update_policies",
            json!({"policies": {"require_tests_evidence": false, "require_diff_summary": false}}),
        ),
        ("job_set_ready", json!({})),
        ("job_start", json!({})),
        ("job_next_step_prompt", json!({})),
        ("job_submit_step_result", result("S1")),
        ("devlog_append", json!({"content": "a line"})),
        ("job_pause", json!({"reason": "lunch"})),
        ("job_get", json!({})),
        ("job_list", json!({})),
    ] {
        log += &touched(&bench, tool, arguments);
    }
    expect![[r#"
        conductor_answer: conductor/JOB
        context_add_block: conductor/JOB/CTX-… conductor/JOB
        plan_set_risks: conductor/JOB
        plan_propose_steps: conductor/JOB/S1 conductor/JOB/S2 conductor/JOB
        plan_refine_steps: conductor/JOB/S2 conductor/JOB
        job_update_policies: conductor/JOB/LOG-… conductor/JOB
        job_set_ready: conductor/JOB conductor/JOB/LOG-…
        job_start: conductor/JOB conductor/JOB/LOG-…
        job_next_step_prompt: conductor/JOB/S1
        job_submit_step_result: conductor/JOB conductor/JOB/S1 conductor/JOB/S1/ATT-… conductor/JOB/LOG-…
        devlog_append: conductor/JOB conductor/JOB/LOG-…
        job_pause: conductor/JOB conductor/JOB/LOG-…
        job_get: 
        job_list: 
    "#]]
    .assert_eq(&log);
}

#[test]
fn every_tool_takes_the_name_of_its_caller_and_lists_it_nowhere() {
    let bench = Bench::new();
    for tool in conductor::PACK.tools {
        let schema = (tool.input_schema)();
        let actor = &schema["properties"]["actor"];
        assert_eq!(
            (&actor["type"], &actor["x-unlisted"]),
            (&json!("string"), &json!(true)),
            "{}",
            tool.name
        );
        assert!(
            schema["required"]
                .as_array()
                .is_none_or(|names| !names.contains(&json!("actor"))),
            "{}",
            tool.name
        );
        // Whatever else is wrong with the call, its actor is not.
        let called = bench.call(tool.name, json!({"actor": "ada"}));
        let refusal = called.err().map(|err| format!("{err:?}")).unwrap_or_default();
        assert!(!refusal.contains("actor"), "{}: {refusal}", tool.name);
    }
    let listed = bench.reply("job_list", json!({"actor": "ada", "limit": 1}));
    assert!(listed["jobs"].is_array());
    for wrong in [json!(" "), json!(7), json!("x".repeat(201))] {
        let refusal = bench.call("job_list", json!({"actor": wrong})).unwrap_err();
        assert!(refusal.blockers[0].message.contains("actor"), "{refusal:?}");
    }
}

/// Entries of all pages of a list, with the number of pages.
fn pages(bench: &Bench, tool: &str, arguments: &Value, list: &str) -> (Vec<Value>, usize) {
    let mut arguments = arguments.clone();
    let (mut all, mut count) = (Vec::new(), 0);
    loop {
        let page = bench.reply(tool, arguments.clone());
        all.extend(page[list].as_array().unwrap().iter().cloned());
        count += 1;
        assert!(count < 50, "{tool} has no last page");
        match &page["next_cursor"] {
            Value::Null => return (all, count),
            cursor => arguments["cursor"] = cursor.clone(),
        }
    }
}

#[test]
fn lists_have_pages_by_limit_and_cursor() {
    let bench = Bench::with_repository();
    for number in 0..5 {
        bench.reply(
            "conductor_init",
            json!({"title": format!("Job {number}"), "goal": "g"}),
        );
        bench.reply("devlog_append", json!({"content": format!("line {number}")}));
        bench.reply(
            "mistake_record",
            json!({"title": format!("m{number}"), "what_happened": "w", "why": "y", "lesson": "l",
                "avoid_next_time": format!("a{number}"), "tags": [if number == 2 { "odd" } else { "even" }]}),
        );
        bench.reply(
            "context_add_block",
            json!({"block_type": "NOTES", "content": format!("the word of note {number}")}),
        );
        bench.write(&format!("src/m{number}.py"), "import os\n");
        bench.commit_all(&format!("commit {number}"));
    }
    bench.reply("repo_map_update", json!({}));
    let mut log = String::new();
    for (tool, arguments, list) in [
        ("job_list", json!({}), "jobs"),
        ("devlog_list", json!({"log_type": "DEVLOG"}), "entries"),
        ("mistake_list", json!({}), "mistakes"),
        ("mistake_list", json!({"tag": "even"}), "mistakes"),
        ("context_search", json!({"query": "word"}), "matches"),
        ("repo_map_query", json!({"path": "src"}), "files"),
        ("repo_find_stale_candidates", json!({}), "candidates"),
        ("repo_hygiene_suggest", json!({}), "suggestions"),
        ("git_log", json!({}), "commits"),
    ] {
        let (whole, one) = pages(&bench, tool, &arguments, list);
        assert_eq!(one, 1, "{tool}");
        let mut in_parts = arguments.clone();
        in_parts["limit"] = json!(2);
        let (mut parts, count) = pages(&bench, tool, &in_parts, list);
        if tool == "devlog_list" {
            // Pages go back in time, and each is read forwards.
            parts.sort_by_key(|entry| entry["content"].as_str().map(str::to_owned));
        }
        assert_eq!(parts, whole, "{tool}");
        log += &format!("{tool}: {} in {count} pages\n", whole.len());
        let mut wrong = arguments.clone();
        wrong["cursor"] = json!("zebra");
        if tool != "repo_map_query" {
            let refusal = bench.call(tool, wrong).unwrap_err();
            assert!(
                refusal.blockers[0].message.contains("next_cursor"),
                "{tool}: {refusal:?}"
            );
        }
    }
    expect![[r#"
        job_list: 6 in 3 pages
        devlog_list: 5 in 3 pages
        mistake_list: 5 in 3 pages
        mistake_list: 4 in 2 pages
        context_search: 5 in 3 pages
        repo_map_query: 5 in 3 pages
        repo_find_stale_candidates: 5 in 3 pages
        repo_hygiene_suggest: 7 in 4 pages
        git_log: 6 in 3 pages
    "#]]
    .assert_eq(&log);
    // Old names still go on.
    let second = bench.reply("job_list", json!({"limit": 2, "offset": 2}));
    assert_eq!(second["jobs"][1]["title"], json!("Job 2"), "{second}");
    let rest = bench.reply("repo_map_query", json!({"path": "src", "after": "src/m3.py"}));
    assert_eq!(rest["files"][0]["path"], json!("src/m4.py"), "{rest}");
}
