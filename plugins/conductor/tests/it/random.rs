//! Whatever is called, a job stays in a legal state; whatever the arguments are, the answer is a reply
//! or a refusal.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use tollgate_sdk::native::Session;

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

/// What has to hold after every call.
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

/// A value that fits a schema, or nearly.
fn value(schema: &Value) -> BoxedStrategy<Value> {
    let text = prop_oneof![
        6 => select(vec!["S1", "S2", "main", "md", "abcdef0", "file_exists", "tests_passed", "../x", "", " ", "\u{0}", "ä’{{x}}"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
        1 => (1_usize..40_000).prop_map(|length| "x".repeat(length)),
    ];
    let fitting = match schema["type"].as_str() {
        Some("string") => match schema["enum"].as_array() {
            Some(choices) => select(choices.clone()).boxed(),
            None => text.prop_map(Value::from).boxed(),
        },
        Some("integer") => prop_oneof![
            (0_i64..300).prop_map(Value::from),
            any::<i64>().prop_map(Value::from)
        ]
        .boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => prop::collection::vec(value(&schema["items"]), 0..4)
            .prop_map(Value::from)
            .boxed(),
        _ => object(schema),
    };
    let wrong = select(vec![
        json!(null),
        json!(-1),
        json!([[]]),
        json!({"a": {"b": 1e300}}),
    ]);
    prop_oneof![40 => fitting, 1 => wrong].boxed()
}

/// An object that fits a schema, or nearly: each property is mostly there.
fn object(schema: &Value) -> BoxedStrategy<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut fields = Just(Map::new()).boxed();
    for (name, property) in properties.filter(|(name, _)| *name != "job_id") {
        let likely = if required.contains(&json!(name)) {
            0.98
        } else {
            0.3
        };
        let name = name.clone();
        fields = (fields, prop::option::weighted(likely, value(property)))
            .prop_map(move |(mut fields, field)| {
                if let Some(field) = field {
                    fields.insert(name.clone(), field);
                }
                fields
            })
            .boxed();
    }
    fields.prop_map(Value::Object).boxed()
}

fn any_call() -> impl Strategy<Value = (&'static str, Value)> {
    let tools: Vec<_> = conductor::PACK
        .tools
        .iter()
        .map(|tool| {
            object(&(tool.input_schema)())
                .prop_map(|arguments| (tool.name, arguments))
                .boxed()
        })
        .collect();
    proptest::strategy::Union::new(tools)
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

    #[test]
    fn whatever_the_arguments_are_the_answer_is_a_reply_or_a_refusal(
        calls in prop::collection::vec(any_call(), 1..16),
    ) {
        let bench = Bench::new().started(json!([step("a", json!([])), step("b", json!([]))]));
        for (tool, mut arguments) in calls {
            arguments["job_id"] = json!(bench.job);
            if ["conductor_init", "job_list", "job_import", "template_list"].contains(&tool) {
                arguments.as_object_mut().unwrap().remove("job_id");
            }
            if let Err(err) = Session::call(&bench.session, tool, &arguments.to_string()) {
                prop_assert!(!err.code.starts_with("STORAGE") && err.code != "INTERNAL", "{tool} {arguments}: {err}");
                prop_assert!(err.code.chars().all(|c| c.is_ascii_uppercase() || c == '_'), "{}", err.code);
            }
        }
    }
}
