//! Whatever the arguments are, the answer is a reply or a refusal.

use serde_json::json;
use tollgate_kit_test::{Arguments, edges_never_fail, never_panics};

use crate::harness::{THREE_STEPS, after};

#[test]
fn whatever_the_arguments_are_the_answer_is_a_reply_or_a_refusal() {
    let words = &[
        "PLAN-001",
        "TASK-001",
        "STEP-00000001",
        "s:0",
        "s:0.t:0",
        "tests",
        "TODO",
        "ada",
    ];
    let arguments = Arguments::of(words).fixed("workspace", json!("w"));
    never_panics(&tasks::PACK, 48, &arguments, || after(&[THREE_STEPS]));
}

#[test]
fn edges_of_arguments_are_taken_or_refused() {
    let arguments = Arguments::of(&["TASK-001", "PLAN-001", "s:0"]).fixed("workspace", json!("w"));
    edges_never_fail(&tasks::PACK, &arguments, || after(&[THREE_STEPS]));
}
