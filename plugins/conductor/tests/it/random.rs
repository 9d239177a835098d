//! Whatever is called, a job stays in a legal state; whatever the arguments are, the answer is a reply
//! or a refusal.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tollgate_kit_test::{Arguments, edges_never_fail, never_panics};

use crate::harness::{Bench, READY, result, step};

/// The statuses that each tool may lead from and to, beside staying.
const MOVES: &[(&str, &str, &str)] = &[
    ("job_set_ready", "PLANNING", "READY"),
    ("plan_set_risks", "READY", "PLANNING"),
    ("plan_propose_steps", "READY", "PLANNING"),
    ("plan_refine_steps", "READY", "PLANNING"),
    ("template_apply", "READY", "PLANNING"),
    ("job_start", "READY", "EXECUTING"),
    ("job_pause", "EXECUTING", "PAUSED"),
    ("job_submit_step_result", "EXECUTING", "PAUSED"),
    ("job_resume", "PAUSED", "EXECUTING"),
    ("job_submit_step_result", "EXECUTING", "COMPLETE"),
    ("job_fail", "PLANNING", "FAILED"),
    ("job_fail", "READY", "FAILED"),
    ("job_fail", "EXECUTING", "FAILED"),
    ("job_fail", "PAUSED", "FAILED"),
    ("job_archive", "PLANNING", "ARCHIVED"),
    ("job_archive", "COMPLETE", "ARCHIVED"),
    ("job_archive", "FAILED", "ARCHIVED"),
];

fn event() -> impl Strategy<Value = (&'static str, Value)> {
    let id = || select(vec!["S1", "S2", "S3", "S4"]);
    prop_oneof![
        6 => Just(("job_set_ready", json!({}))),
        6 => Just(("job_start", json!({}))),
        12 => Just(("job_next_step_prompt", json!({}))),
        16 => (id(), select(vec!["MET", "MET", "MET", "NOT_MET"])).prop_map(|(id, claim)| {
            let mut arguments = result(id);
            arguments["model_claim"] = json!(claim);
            ("job_submit_step_result", arguments)
        }),
        2 => Just(("plan_set_risks", json!({"risks": []}))),
        1 => Just(("plan_propose_steps", json!({"steps": [step("a", json!([])), step("b", json!([]))]}))),
        2 => id().prop_map(|id| ("plan_refine_steps", json!({"edits": [{"op": "remove", "step_id": id}]}))),
        3 => id().prop_map(|id| ("plan_refine_steps", json!({"edits": [{"op": "update", "step_id": id, "set": {"title": "x"}}]}))),
        3 => id().prop_map(|id| ("plan_refine_steps", json!({"edits": [{"op": "insert", "after": id, "step": step("new", json!([]))}]}))),
        2 => (id(), id()).prop_map(|(id, after)| ("plan_refine_steps", json!({"edits": [{"op": "move", "step_id": id, "after": after}]}))),
        2 => Just(("job_pause", json!({}))),
        4 => Just(("job_resume", json!({}))),
        1 => Just(("job_fail", json!({"reason": "enough"}))),
        1 => Just(("job_archive", json!({}))),
        2 => id().prop_map(|id| ("step_approve", json!({"step_id": id, "approved_by": "Ada"}))),
        2 => Just(("git_commit", json!({"defer_reason": "later"}))),
    ]
}

fn status(bench: &Bench) -> String {
    let rows = bench
        .session
        .sql("SELECT status FROM conductor_jobs ORDER BY created_at LIMIT 1");
    rows[0].get(0).unwrap()
}

/// Checks the invariants after a call.
fn check(bench: &Bench, what: &str) {
    let one = |sql: &str| -> i64 { bench.session.sql(sql)[0].get(0).unwrap() };
    let gaps = one(
        "SELECT count(*) FROM conductor_steps s WHERE s.status <> 'PENDING' AND s.position > \
        (SELECT coalesce(min(o.position), 99) FROM conductor_steps o WHERE o.job_id = s.job_id AND o.status <> 'DONE')",
    );
    assert_eq!(
        gaps, 0,
        "{what}: only the first open step is worked on, and what is done comes first"
    );
    let done = one("SELECT count(*) FROM conductor_steps WHERE status = 'DONE'");
    let accepted = one("SELECT count(*) FROM conductor_attempts WHERE accepted = 1");
    assert_eq!(
        done, accepted,
        "{what}: every done step has its accepted submission"
    );
    let open = one("SELECT count(*) FROM conductor_steps WHERE status <> 'DONE'");
    match status(bench).as_str() {
        "EXECUTING" | "PAUSED" => assert!(open > 0, "{what}: there is something to do"),
        "COMPLETE" => assert_eq!(open, 0, "{what}"),
        "READY" => assert!(open > 0 && done == 0, "{what}"),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_called_the_job_stays_legal(calls in prop::collection::vec(event(), 1..80)) {
        let bench = Bench::new();
        bench.run(READY);
        bench.reply("plan_propose_steps", json!({"steps": [step("a", json!([])), step("b", json!([])), step("c", json!([]))]}));
        for (tool, arguments) in calls {
            let before = status(&bench);
            let said = bench.call(tool, arguments.clone());
            let now = status(&bench);
            if before != now {
                prop_assert!(said.is_ok(), "{tool} failed and moved {before} to {now}");
                prop_assert!(MOVES.contains(&(tool, before.as_str(), now.as_str())), "{tool} moved {before} to {now}");
            }
            check(&bench, &format!("{tool} {arguments}"));
        }
    }
}

#[test]
fn whatever_the_arguments_are_the_answer_is_a_reply_or_a_refusal() {
    let words = &["S1", "S2", "main", "md", "abcdef0", "file_exists", "tests_passed"];
    let bench = || Bench::new().started(json!([step("a", json!([])), step("b", json!([]))]));
    let arguments = Arguments::of(words).fixed("job_id", json!(bench().job));
    never_panics(&conductor::PACK, 64, &arguments, || bench().session);
}

#[test]
fn edges_of_arguments_are_taken_or_refused() {
    let bench = || Bench::new().started(json!([step("a", json!([])), step("b", json!([]))]));
    let arguments = Arguments::of(&["S1", "main", "tests_passed"]).fixed("job_id", json!(bench().job));
    edges_never_fail(&conductor::PACK, &arguments, || bench().session);
}

#[test]
fn what_is_not_shown_is_refused() {
    let bench = Bench::new();
    let refused = bench
        .call("job_fail", json!({"reason": "a\u{202e}b"}))
        .unwrap_err();
    assert_eq!(refused.message, "reason has the control character U+202E");
}
