//! Ids of what was deleted, and context that changes after its plan was agreed.

use serde_json::{Value, json};

use crate::harness::{Bench, READY, step};

fn exported(bench: &Bench) -> Value {
    let exported = bench.reply("job_export_bundle", json!({"format": "json"}));
    serde_json::from_str(exported["content"].as_str().unwrap()).unwrap()
}

#[test]
fn ids_of_deleted_jobs_and_blocks_are_not_given_again() {
    let bench = Bench::new();
    let block = bench.reply(
        "context_add_block",
        json!({"block_type": "NOTES", "content": "one"}),
    );
    let kept = bench.reply(
        "context_add_block",
        json!({"block_type": "NOTES", "content": "two"}),
    );
    let bundle = exported(&bench);
    bench.reply("context_delete_block", json!({"context_id": block["context_id"]}));
    bench.reply("job_delete", json!({}));
    let imported = bench.reply("job_import", json!({"bundle": bundle}));
    assert_eq!(imported["renamed_from"], json!(bench.job));
    let view = bench.reply(
        "context_search",
        json!({"job_id": imported["job_id"], "query": "one two"}),
    );
    let text = view["matches"].to_string();
    for old in [&block, &kept] {
        assert!(!text.contains(old["context_id"].as_str().unwrap()), "{text}");
    }
    assert_eq!(view["total"], json!(2));
}

#[test]
fn numbers_of_removed_steps_are_not_given_again() {
    let bench = Bench::new().started(json!([step("one", json!([])), step("two", json!([]))]));
    let edits = json!([
        {"op": "remove", "step_id": "S2"},
        {"op": "insert", "after": "S1", "step": step("three", json!([]))},
    ]);
    let chain = bench.reply("plan_refine_steps", json!({"edits": edits}));
    assert_eq!(chain["steps"][1]["step_id"], json!("S3"));
    let edits = json!([{"op": "remove", "step_id": "S3"}]);
    bench.reply("plan_refine_steps", json!({"edits": edits}));
    let edits = json!([{"op": "insert", "after": "S1", "step": step("four", json!([]))}]);
    let chain = bench.reply("plan_refine_steps", json!({"edits": edits}));
    assert_eq!(chain["steps"][1]["step_id"], json!("S4"));
    // The same goes for a copy of the job.
    let imported = bench.reply("job_import", json!({"bundle": exported(&bench)}));
    let edits = json!([{"op": "remove", "step_id": "S4"}, {"op": "insert", "after": "S1", "step": step("five", json!([]))}]);
    let chain = bench.reply(
        "plan_refine_steps",
        json!({"job_id": imported["job_id"], "edits": edits}),
    );
    assert_eq!(chain["steps"][1]["step_id"], json!("S5"));
}

#[test]
fn context_that_changes_after_the_agreement_is_shown() {
    let bench = Bench::new();
    let block = bench.reply(
        "context_add_block",
        json!({"block_type": "NOTES", "content": "ten columns"}),
    );
    let id = block["context_id"].clone();
    bench.run(READY);
    let mut planned = step("one", json!([]));
    planned["context_refs"] = json!([id]);
    bench.reply("plan_propose_steps", json!({"steps": [planned]}));
    bench.reply(
        "context_update_block",
        json!({"context_id": id, "content": "nine columns"}),
    );
    bench.run("- job_set_ready {}");
    bench.as_agent();
    let change = |content: &str| {
        bench.reply(
            "context_update_block",
            json!({"context_id": id, "content": content}),
        );
    };
    change("no columns");
    bench.run("- job_set_ready {}\n- job_start {}");
    let prompt = bench.reply("job_next_step_prompt", json!({}))["prompt"].to_string();
    assert!(
        prompt.contains("(NOTES, changed since the plan was agreed)"),
        "{prompt}"
    );
    let view = bench.reply("job_get", json!({}));
    let line = format!(
        "plan changed: {}, the context of S1: \"nine columns\" becomes \"no columns\"",
        id.as_str().unwrap()
    );
    assert_eq!(view["plan_changes"], json!([line]));
    assert!(exported(&bench)["context"][0]["changed_at"].is_string());
}
