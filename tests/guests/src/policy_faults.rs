//! Policy with the faults that its settings select: `{"before": FAULT, "after": FAULT}`.

#![allow(unsafe_code, reason = "the exports are made by hand, below the SDK")]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tollgate_sdk::guest::bindings::tollgate::host::component::Migration;
use tollgate_sdk::guest::bindings::tollgate::host::ledger::{self, Filter};
use tollgate_sdk::guest::bindings::tollgate::host::storage::{self, Value as Sql};
use tollgate_sdk::guest::policy::bindings::exports::tollgate::host::judge::{
    Denial, Guest, Manifest, Note, Outcome, Phase, Problem, Question, Request, Review, Verdict,
};
use tollgate_sdk::guest::policy::export_component;

/// Filter for the newest call, which only a policy with access to the ledger may see.
const NEWEST: Filter = Filter {
    envelope_id: None,
    pack: None,
    tool: None,
    success: None,
    failure_fingerprint: None,
    effect: None,
    connection: None,
    actor: None,
    args_hash: None,
    after: None,
    since: None,
    newest_first: true,
    limit: 1,
};

/// True if this instance has evaluated a call before.
static USED: AtomicBool = AtomicBool::new(false);

struct PolicyFaults;
export_component!(PolicyFaults);

impl Guest for PolicyFaults {
    fn describe() -> Manifest {
        Manifest {
            // A pack of that name has tables.
            name: "task-store".to_owned(),
            version: "0.1.0".to_owned(),
            summary: "Judges badly.".to_owned(),
            phase: Phase::Both,
            wants: Vec::new(),
            migrations: vec![Migration {
                name: "0001_init".to_owned(),
                sql: "CREATE TABLE policy_task_store_seen (op_id TEXT PRIMARY KEY)".to_owned(),
            }],
            config_schema: Some("{}".to_owned()),
        }
    }

    fn configure(settings: String) -> Result<(), Vec<Problem>> {
        let settings: Value = serde_json::from_str(&settings).unwrap_or_default();
        let problem = |key: &str| Problem {
            key: key.to_owned(),
            message: "is not to its liking".to_owned(),
        };
        if settings.get("dozes") == Some(&Value::Bool(true)) {
            doze();
        }
        match settings.get("dislikes").and_then(Value::as_array) {
            Some(keys) => Err(keys.iter().filter_map(Value::as_str).map(problem).collect()),
            None => Ok(()),
        }
    }

    fn before_call(request: Request) -> Result<(Verdict, Vec<Note>), String> {
        match deed(&request, "before").as_str() {
            "amend to no object" => Ok((Verdict::Amend("][".to_owned()), Vec::new())),
            "amend to what no tool takes" => Ok((Verdict::Amend(r#"{"bogus": 1}"#.to_owned()), Vec::new())),
            "ask" => Ok((
                Verdict::Ask(Question {
                    message: "Really?".to_owned(),
                    otherwise: denial(),
                }),
                Vec::new(),
            )),
            "deny" => Ok((Verdict::Deny(denial()), Vec::new())),
            "flood notes" => Ok((Verdict::Pass, flood())),
            deed => misdeed(deed, &request).map(|()| (Verdict::Pass, Vec::new())),
        }
    }

    fn after_call(request: Request, outcome: Outcome) -> Result<(Review, Vec<Note>), String> {
        match deed(&request, "after").as_str() {
            "deny" => Ok((Review::Deny(denial()), Vec::new())),
            "deny success" if outcome.success => Ok((Review::Deny(denial()), Vec::new())),
            deed => misdeed(deed, &request).map(|()| (Review::Pass, Vec::new())),
        }
    }
}

fn deed(request: &Request, phase: &str) -> String {
    let settings: Value = serde_json::from_str(&request.settings).unwrap_or_default();
    settings
        .get(phase)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// A denial with texts that could confuse a terminal or a reader.
fn denial() -> Denial {
    Denial {
        code: "no; DROP TABLE".to_owned(),
        reason: format!("\u{1b}[31mno\u{202e}\n{}", "!".repeat(100_000)),
        remediation: String::new(),
        next_call: None,
    }
}

fn flood() -> Vec<Note> {
    let note = |number: usize| Note {
        key: format!("{number}\u{1b}[31m"),
        value: "x".repeat(10_000),
    };
    (0..200).map(note).collect()
}

/// Waits in the host without end.
fn doze() {
    std::thread::sleep(std::time::Duration::from_secs(3_600));
}

fn misdeed(deed: &str, request: &Request) -> Result<(), String> {
    let seen = || vec![Sql::Text(request.op_id.clone())];
    match deed {
        "trap" => panic!("it traps"),
        "loop" => loop {
            black_box(());
        },
        "grow" => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 1 << 20]);
                black_box(&kept);
            }
        }
        "sleep" => {
            doze();
            Ok(())
        }
        "be used twice" => match USED.swap(true, Ordering::Relaxed) {
            true => Err("it was used before".to_owned()),
            false => Ok(()),
        },
        "give up" => Err("it \u{1b}[31m cannot".to_owned()),
        "remember" => storage::execute("INSERT INTO policy_task_store_seen (op_id) VALUES (?1)", &seen())
            .map(drop)
            .map_err(|err| format!("{err:?}")),
        "look back" => ledger::query(&NEWEST).map(drop).map_err(|err| format!("{err:?}")),
        "pry" => storage::query("SELECT id FROM task_store_tasks", &[])
            .map(drop)
            .map_err(|err| format!("{err:?}")),
        _ => Ok(()),
    }
}
