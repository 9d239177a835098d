//! Random calls: nothing panics, phases change along legal edges only, and each change is one event.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tollgate_kit_test::{Arguments, edges_never_fail, never_panics};
use tollgate_sdk::native::Session;
use tollgate_sdk::{Effect, Reply, Row, ToolError};

use crate::harness::{EXECUTING, QUALITY_GATE, reply, run, script};

/// Legal transitions from each phase, written again to check the pack's own table. An open circuit leads to the phase
/// that it was opened in.
const EDGES: [(&str, &[&str]); 8] = [
    ("spec_draft", &["spec_review"]),
    ("spec_review", &["spec_draft", "execution_ready"]),
    ("execution_ready", &["executing"]),
    ("executing", &["spec_gate", "execution_ready", "circuit_open"]),
    ("spec_gate", &["quality_gate", "execution_ready", "circuit_open"]),
    (
        "quality_gate",
        &[
            "awaiting_approval",
            "completed",
            "execution_ready",
            "circuit_open",
        ],
    ),
    ("awaiting_approval", &["ready_to_resume", "execution_ready"]),
    ("ready_to_resume", &["executing", "completed"]),
];

/// Phase of a task, and the phase that its open circuit returns to.
type Place = (String, Option<String>);

/// The phases that a place leads to, besides `failed`.
fn next(place: &Place) -> Vec<&str> {
    let edges = |phase: &str| {
        let found = EDGES.iter().find(|(from, _)| *from == phase);
        found.map_or(&[][..], |(_, next)| *next)
    };
    match place {
        (phase, Some(from)) if phase == "circuit_open" => {
            let is_begun = edges(from).contains(&"execution_ready") && from != "spec_review";
            let back = is_begun.then_some("execution_ready");
            std::iter::once(from.as_str()).chain(back).collect()
        }
        (phase, _) => edges(phase).to_vec(),
    }
}

fn is_edge(tool: &str, from: &Place, to: &str) -> bool {
    match tool {
        "task_transition" => to == "failed" || next(from).contains(&to),
        // A start that is one too many opens the circuit.
        "task_open_circuit" | "task_start_attempt" => to == "circuit_open",
        _ => false,
    }
}

fn task() -> impl Strategy<Value = &'static str> {
    select(vec!["tsk_1", "tsk_1", "tsk_2"])
}

/// A line of a script. `go TASK n` is a move along the nth edge from wherever the task is, `current` is its
/// latest attempt and `pending` an approval that waits, so that tasks get far; the other lines mostly miss.
fn line() -> impl Strategy<Value = String> {
    let phases: Vec<&str> = EDGES
        .iter()
        .map(|(phase, _)| *phase)
        .chain(["circuit_open", "completed", "failed"])
        .collect();
    let edge = select(vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3]);
    let attempt = || select(vec!["current", "current", "current", "att_1", "att_2"]);
    let kind = || select(vec!["spec", "quality"]);
    let verdict = || {
        select(vec![
            "approved",
            "approved",
            "approved",
            "changes_requested",
            "blocked",
        ])
    };
    let status = select(vec!["succeeded", "failed", "aborted"]);
    let resolution = select(vec!["approved", "approved", "rejected", "request_changes"]);
    prop_oneof![
        1 => Just("create more".to_owned()),
        14 => (task(), edge).prop_map(|(task, edge)| format!("go {task} {edge}")),
        2 => (task(), select(phases.clone()), select(phases))
            .prop_map(|(task, from, to)| format!("move {task} {from} {to}")),
        6 => task().prop_map(|task| format!("start {task}")),
        3 => (task(), status).prop_map(|(task, status)| format!("finish {task}:current {status}")),
        2 => (task(), verdict()).prop_map(|(task, verdict)| format!("review {task} none spec {verdict}")),
        8 => (task(), attempt(), kind(), verdict())
            .prop_map(|(task, attempt, kind, verdict)| format!("review {task} {attempt} {kind} {verdict}")),
        3 => (task(), attempt(), 1..4).prop_map(|(task, attempt, key)| format!("ask {task} {attempt} v{key}")),
        3 => (task(), select(vec!["pending", "pending", "apr_1"]), resolution)
            .prop_map(|(task, approval, resolution)| format!("answer {task} {approval} {resolution}")),
        1 => task().prop_map(|task| format!("open {task}")),
        1 => (task(), select(vec!["-works", "-stops", "#"]))
            .prop_map(|(task, markdown)| format!("spec {task} {markdown}")),
        2 => (0_u32..8_000).prop_map(|ms| format!("+{ms}")),
    ]
}

/// A line with what depends on the session filled in.
fn resolve(session: &Session, line: &str) -> String {
    let task = if line.contains("tsk_2") { "tsk_2" } else { "tsk_1" };
    let row = session.sql(&format!(
        "SELECT phase, coalesce(current_attempt_id, 'att_9'), coalesce((SELECT min(id) FROM task_store_approvals \
         WHERE task_id = '{task}' AND status = 'pending'), 'apr_9') FROM task_store_tasks WHERE id = '{task}'"
    ));
    let Some(row) = row.first() else {
        return line.replace("go tsk_2 ", "get tsk_2").replace(":current", "");
    };
    let [phase, current, pending]: [String; 3] = [0, 1, 2].map(|column| row.get(column).unwrap());
    if let Some(nth) = line.strip_prefix(&format!("go {task} ")) {
        let places = places(session);
        let mut targets = next(&places[task]);
        targets.extend(targets.is_empty().then_some("failed"));
        let to = targets[nth.parse::<usize>().unwrap() % targets.len()];
        return format!("move {task} {phase} {to}");
    }
    line.replace(&format!("{task}:current"), &current)
        .replace("current", &current)
        .replace("pending", &pending)
}

/// The place of each task.
fn places(session: &Session) -> BTreeMap<String, Place> {
    let rows = session.sql(
        "SELECT t.id, t.phase, (SELECT c.from_phase FROM task_store_circuits c WHERE c.task_id = t.id) \
         FROM task_store_tasks t",
    );
    let place = |row: &Row| (row.get(0).unwrap(), (row.get(1).unwrap(), row.get(2).unwrap()));
    rows.iter().map(place).collect()
}

fn count(session: &Session, sql: &str) -> i64 {
    session.sql(sql)[0].get(0).unwrap()
}

fn events(session: &Session) -> i64 {
    count(session, "SELECT count(*) FROM task_store_events")
}

fn running(session: &Session) -> i64 {
    count(
        session,
        "SELECT count(*) FROM task_store_attempts WHERE status = 'running'",
    )
}

/// The number of events that a call has to leave, as its reply and the attempts that it ended say.
fn changes(tool: &str, effect: Effect, result: &Result<Reply, ToolError>, ended: i64) -> i64 {
    match result {
        Err(err) => i64::from(err.code == "RETRIES_EXHAUSTED" && err.context.contains_key("phase")),
        Ok(reply) => {
            let reply: Value = serde_json::from_str(&reply.structured).unwrap();
            let is_change = effect == Effect::Write && reply["replayed"] != json!(true);
            let ended = if tool == "task_transition" { ended } else { 0 };
            i64::from(is_change) + ended
        }
    }
}

/// Asserts the evidence of a task that has just moved, as the tables have it.
fn has_evidence(session: &Session, line: &str, task: &str, to: &str) {
    let verdict = |kind: &str, of: &str| {
        format!(
            "(SELECT verdict FROM task_store_reviews r WHERE r.task_id = t.id AND r.review_type = '{kind}' AND \
             r.spec_revision = t.spec_revision AND r.attempt_id {of} ORDER BY r.seq DESC LIMIT 1) = 'approved'"
        )
    };
    let attempt = |status: &str| {
        format!(
            "(SELECT status FROM task_store_attempts a WHERE a.task_id = t.id ORDER BY ordinal DESC LIMIT 1) = '{status}'"
        )
    };
    let of_spec = format!("t.acceptance_json <> '[]' AND {}", verdict("spec", "IS NULL"));
    let of_attempt = "= (SELECT max(a.id) FROM task_store_attempts a WHERE a.task_id = t.id AND a.id = t.current_attempt_id)";
    let of_ended = format!(
        "{of_attempt} AND r.created_at >= (SELECT a.finished_at FROM task_store_attempts a WHERE a.id = r.attempt_id)"
    );
    // Every denied request was requested again later, and each latest one was granted.
    let approvals = "NOT EXISTS (SELECT 1 FROM task_store_approvals p WHERE p.attempt_id = t.current_attempt_id AND \
        p.status <> 'approved' AND NOT EXISTS (SELECT 1 FROM task_store_approvals q WHERE q.attempt_id = p.attempt_id \
        AND q.seq > p.seq AND q.side_effect_kind = p.side_effect_kind AND q.created_at > p.resolved_at))";
    let evidence = match to {
        "executing" => format!("{of_spec} AND {}", attempt("running")),
        "completed" => [
            of_spec,
            verdict("spec", &of_ended),
            verdict("quality", &of_ended),
            attempt("succeeded"),
            approvals.to_owned(),
        ]
        .join(" AND "),
        "ready_to_resume" => format!(
            "{approvals} AND EXISTS (SELECT 1 FROM task_store_approvals p WHERE p.attempt_id = t.current_attempt_id \
             AND p.status = 'approved')"
        ),
        "failed" => {
            "NOT EXISTS (SELECT 1 FROM task_store_attempts a WHERE a.task_id = t.id AND a.status = 'running')"
                .to_owned()
        }
        _ => return,
    };
    let sql = format!("SELECT count(*) FROM task_store_tasks t WHERE t.id = '{task}' AND {evidence}");
    assert_eq!(
        count(session, &sql),
        1,
        "{line} moved {task} to {to} without evidence"
    );
}

/// Runs one line and checks what has to hold after every call.
fn step(session: &Session, line: &str) {
    let (before, logged, ran) = (places(session), events(session), running(session));
    let script = script(session);
    let (tool, arguments) = script.expand(line);
    let effect = task_store::PACK.tool(&tool).unwrap().effect;
    let result = script.call_with(&tool, &arguments);
    let changes = changes(&tool, effect, &result, ran - running(session));
    assert_eq!(events(session) - logged, changes, "{line}: {result:?}");
    for (id, (to, _)) in places(session) {
        if let Some(from) = before.get(&id).filter(|(from, _)| *from != to) {
            assert!(
                is_edge(&tool, from, &to),
                "{line} moved {id} from {from:?} to {to}"
            );
            assert!(result.is_ok() || changes == 1, "{line} moved {id} and failed");
            // A circuit returns a task to where it came from, whatever was asked meanwhile.
            if from.0 != "circuit_open" || to != "ready_to_resume" {
                has_evidence(session, line, &id, &to);
            }
        }
    }
    let crowded = "SELECT count(*) FROM (SELECT task_id FROM task_store_attempts WHERE status = 'running' \
        GROUP BY task_id HAVING count(*) > 1)";
    assert_eq!(count(session, crowded), 0, "{line}");
    let stale = "SELECT count(*) FROM task_store_tasks t WHERE t.updated_at <> \
        (SELECT max(e.created_at) FROM task_store_events e WHERE e.task_id = t.id)";
    assert_eq!(count(session, stale), 0, "{line}");
    let circuits = "SELECT count(*) FROM task_store_circuits c WHERE NOT EXISTS \
        (SELECT 1 FROM task_store_tasks t WHERE t.id = c.task_id AND t.phase = 'circuit_open')";
    assert_eq!(count(session, circuits), 0, "{line}");
    let resets = format!("SELECT count(*) FROM task_store_resets WHERE resets > {RESETS}");
    assert_eq!(count(session, &resets), 0, "{line}");
}

/// Resets of a circuit that the random tests allow. Nobody asks for more.
const RESETS: u32 = 1;

/// Ready tasks can be started, waiting ones cannot, and no task is missing from either list.
fn the_ready_list_is_right(session: &Session) {
    let list = reply(session, "task_list_ready");
    let ids = |list: &Value| -> Vec<String> {
        let tasks = list.as_array().into_iter().flatten();
        tasks
            .map(|entry| entry["task"]["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (ready, waiting) = (ids(&list["ready"]), ids(&list["waiting"]));
    let queued = places(session)
        .values()
        .filter(|(phase, _)| phase == "execution_ready")
        .count();
    assert_eq!(ready.len() + waiting.len(), queued.min(20), "{list}");
    for entry in list["waiting"].as_array().into_iter().flatten() {
        assert_ne!(entry["waiting_for"], json!([]), "{entry}");
    }
    for id in &waiting {
        // Time passes with every call, so a wait may just have ended.
        if let Err(err) = script(session).call(&format!("start {id}")) {
            assert_ne!(err.blockers, [], "{id}");
        }
    }
    for id in &ready {
        run(session, &format!("- start {id}"));
    }
}

/// Checks that every transition that recovery calls ready succeeds, and that all others are refused.
fn recovery_is_right(session: &Session) {
    for id in places(session).into_keys() {
        let recovery = reply(session, &format!("recover {id}"));
        for offered in recovery["transitions"].as_array().unwrap() {
            let arguments = offered["next_call"]["arguments"].to_string();
            session.sql("SAVEPOINT attempt");
            let result = script(session).call_with("task_transition", &arguments);
            session.sql("ROLLBACK TO attempt");
            session.sql("RELEASE attempt");
            assert_eq!(offered["ready"], json!(result.is_ok()), "{offered} {result:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_called_the_store_stays_right(
        setup in select(vec![EXECUTING, QUALITY_GATE]),
        lines in prop::collection::vec(line(), 1..160),
    ) {
        let session = Session::new(&task_store::PACK).config(&json!({"retry": {"backoff_ms": [2_000, 6_000], "max_resets": RESETS}}));
        run(&session, setup);
        for line in &lines {
            match line.strip_prefix('+') {
                Some(ms) => session.advance_ms(ms.parse().unwrap()),
                None => step(&session, &resolve(&session, line)),
            }
        }
        recovery_is_right(&session);
        the_ready_list_is_right(&session);
    }

    #[test]
    fn whatever_the_markdown_is_it_is_read(markdown in "[#*\\-\\[\\]x:. \\nA-Za-z0-9>`]{0,400}") {
        let session = Session::new(&task_store::PACK);
        let arguments = json!({"title": "t", "spec_markdown": markdown, "workspace": "w", "initial_phase": "spec_draft",
            "actor": "boss", "actor_role": "orchestrator"});
        if let Err(err) = session.call("task_create", &arguments.to_string()) {
            prop_assert_eq!(err.code, "INVALID_ARGUMENTS");
        }
    }
}

#[test]
fn whatever_the_arguments_are_the_answer_is_a_reply_or_a_refusal() {
    let words = &[
        "tsk_1",
        "att_1",
        "apr_1",
        "rev_1",
        "orchestrator",
        "executor",
        "main",
    ];
    never_panics(&task_store::PACK, 96, &Arguments::of(words), || {
        let session = Session::new(&task_store::PACK);
        run(&session, EXECUTING);
        session
    });
}

#[test]
fn what_is_not_shown_is_refused() {
    let session = Session::new(&task_store::PACK);
    for field in ["title", "spec_markdown", "workspace", "actor"] {
        let mut arguments = json!({"title": "t", "spec_markdown": "m", "workspace": "w", "initial_phase": "spec_draft",
            "actor": "boss", "actor_role": "orchestrator"});
        arguments[field] = json!("a\u{202e}b");
        let err = session.call("task_create", &arguments.to_string()).unwrap_err();
        assert_eq!(err.message, format!("{field} has the control character U+202E"));
    }
}

#[test]
fn edges_of_arguments_are_taken_or_refused() {
    let arguments = Arguments::of(&["tsk_1", "att_1", "main"]).fixed("task_id", json!("tsk_1"));
    edges_never_fail(&task_store::PACK, &arguments, || {
        let session = Session::new(&task_store::PACK);
        run(&session, EXECUTING);
        session
    });
}
