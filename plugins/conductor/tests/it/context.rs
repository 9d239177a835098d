//! Context blocks and their search.

use expect_test::expect;
use serde_json::json;

use crate::harness::{Bench, step};

fn add(bench: &Bench, kind: &str, content: &str, tags: &[&str]) -> String {
    let block = json!({"block_type": kind, "content": content, "tags": tags});
    bench.reply("context_add_block", block)["context_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn blocks_are_kept_changed_and_deleted() {
    let bench = Bench::new();
    let id = add(&bench, "NOTES", "äöü and more", &["Umlaut", "umlaut "]);
    let log = bench.run(&format!(
        r#"
        context_get_block {{"context_id": "{id}", "offset": 1, "max_chars": 4}} ? content next_cursor tags chars
        context_update_block {{"context_id": "{id}", "block_type": "DECISION", "tags": []}} ? block_type tags chars
        context_update_block {{"context_id": "{id}"}}
        context_get_block {{"context_id": "{id}", "max_chars": 0}}
        context_delete_block {{"context_id": "{id}"}} ? deleted
        context_get_block {{"context_id": "{id}"}}
        context_add_block {{"block_type": "NOTES", "content": " "}}
        "#
    ));
    expect![[r#"
        ok content="öü a" next_cursor="5" tags=["umlaut"] chars=12
        ok block_type="DECISION" tags=[] chars=12
        err INVALID_ARGUMENTS: content is missing; pass block_type, content or tags
          - INVALID_ARGUMENTS (content): content is missing; pass block_type, content or tags
        err INVALID_ARGUMENTS: max_chars is 0, not within 1 to 200000
          - INVALID_ARGUMENTS (max_chars): max_chars is 0, not within 1 to 200000
        ok deleted="CTX"
        err NOT_FOUND: there is no context block CTX
          - NOT_FOUND: there is no context block CTX
        err INVALID_ARGUMENTS: content is blank
          - INVALID_ARGUMENTS (content): content is blank
    "#]]
    .assert_eq(&log.replace(&id, "CTX"));
}

#[test]
fn blocks_that_are_too_large_are_refused_and_nothing_is_lost() {
    let bench = Bench::new();
    let huge = bench.call(
        "context_add_block",
        json!({"block_type": "OUTPUT", "content": "x".repeat(5 << 20)}),
    );
    expect![
        "INVALID_ARGUMENTS: content has 5242880 characters; at most 262144 are allowed; and 1 more reason"
    ]
    .assert_eq(&huge.unwrap_err().to_string());
    for _ in 0..8 {
        add(&bench, "OUTPUT", &"x".repeat(256 << 10), &[]);
    }
    let full = bench.call(
        "context_add_block",
        json!({"block_type": "OUTPUT", "content": "one more"}),
    );
    expect!["INVALID_ARGUMENTS: content has 2097160 bytes together with the job's other blocks; at most 2097152 are allowed"]
        .assert_eq(&full.unwrap_err().to_string());
    let found = bench.reply("context_search", json!({"query": "one"}));
    assert_eq!(found["total"], 0);
}

#[test]
fn rare_words_and_tags_come_first() {
    let bench = Bench::new();
    let blocks = [
        add(&bench, "NOTES", "the report, the report, the report", &[]),
        add(&bench, "RESEARCH", "the csv writer\nquotes fields", &[]),
        add(&bench, "SNIPPET", "the end", &["csv"]),
        add(&bench, "NOTES", "nothing of it", &[]),
    ];
    let mut log = bench.run(
        r#"
        context_search {"query": "CSV report the"} ? total matches.0.context_id matches.0.excerpt matches.1.context_id matches.2.context_id
        context_search {"query": "report", "block_type": "RESEARCH"} ? total
        context_search {"query": "  "}
        context_search {"query": "the", "limit": 1} ? total matches.1
        "#,
    );
    for (place, id) in blocks.iter().enumerate() {
        log = log.replace(id, &format!("block {place}"));
    }
    expect![[r#"
        ok total=3 matches.0.context_id="block 2" matches.0.excerpt="the end" matches.1.context_id="block 0" matches.2.context_id="block 1"
        ok total=0
        err INVALID_ARGUMENTS: query is blank
          - INVALID_ARGUMENTS (query): query is blank
        ok total=3 matches.1=null
    "#]].assert_eq(&log);
}

#[test]
fn a_block_that_a_step_names_stays() {
    let bench = Bench::new();
    let id = add(&bench, "NOTES", "conventions", &[]);
    let steps = json!({"steps": [{"title": "a", "context_refs": [id]}]});
    bench.reply("plan_propose_steps", steps);
    let refused = bench
        .call("context_delete_block", json!({"context_id": id}))
        .unwrap_err();
    expect!["INVALID_ARGUMENTS: context_id is used by step S1"].assert_eq(&refused.to_string());
}

#[test]
fn research_is_stored_while_planning_only() {
    let bench = Bench::new();
    let research = json!({"block_type": "RESEARCH", "content": "- read first", "tags": ["process"]});
    let kept = bench.reply("context_add_block", research.clone());
    let bench = bench.started(json!([step("one", json!([]))]));
    let change = json!({"context_id": kept["context_id"], "content": "- always say yes"});
    for (tool, arguments) in [("context_add_block", research), ("context_update_block", change)] {
        let refused = bench.call(tool, arguments).unwrap_err();
        assert!(
            refused.message.contains("stored while planning"),
            "{}",
            refused.message
        );
    }
}
