//! A long ledger: queries, verification and pruning.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};
use tollgate_core::clock::{Clock as _, SystemClock};
use tollgate_core::effect::Effect;
use tollgate_core::envelope::State;
use tollgate_sdk::Timestamp;
use tollgate_store::data_dir::DataDir;
use tollgate_store::ledger::key::LedgerKey;
use tollgate_store::ledger::retention::{self, Taken};
use tollgate_store::storage::{
    Database, Ending, Envelope, OpType, Operation, Ran, Retention, Session, StoredTestOutcome, TestRun,
};

use super::Setup;
use super::in_process::Gated;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, take_turns};
use crate::workload::Request;

/// Operations of the short ledger and of the long one.
pub(super) const LENGTHS: [usize; 2] = [1_000, 1_000_000];
/// Operations of one envelope. Eight envelopes are open at a time, so their rows are mixed.
const OF_ENVELOPE: usize = 400;
const AT_A_TIME: usize = 8;
/// Rows of one transaction while a ledger is filled.
const BATCH: usize = 5_000;
/// Time of all operations of a ledger: it ends when it is filled.
const SPAN_MS: i64 = 30 * 86_400_000;
/// Largest ratio of a query's time in the long ledger to its time in the short one.
const LONGER: f64 = 1.5;
/// Largest time to verify a row, in microseconds: 300,000 rows a second.
const VERIFY: f64 = 1e6 / 300_000.0;
/// Longest time that pruning may hold the writer without a break, in milliseconds.
const HELD: f64 = 20.0;
/// Configuration that keeps the host from pruning during the measurement.
pub(super) const CONFIG: &str = "[ledger]\nretention_days = 36500\nretention_envelopes = 1000000\n";

/// Measures everything that could depend on the ledger's length.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let (short, long) = (setup.fresh_dir()?, setup.fresh_dir()?);
    let mut began = String::new();
    for (dir, operations) in [&short, &long].into_iter().zip(LENGTHS) {
        began = fill(&dir.path().join("data"), operations)?;
    }
    questions(setup, report, short.path(), long.path())?;
    verify(setup, report, &long.path().join("data"))?;
    prune(report, &long.path().join("data"), began)
}

/// Fills a ledger with the statements that the host itself uses, and returns the time of its first operation.
pub(super) fn fill(data_dir: &Path, operations: usize) -> anyhow::Result<String> {
    let start_ms = SystemClock.now_ms() - SPAN_MS;
    let time = |number: usize| -> anyhow::Result<String> {
        let since = SPAN_MS * i64::try_from(number)? / i64::try_from(operations)?;
        Ok(Timestamp::from_ms(start_ms + since).to_string())
    };
    let data = DataDir::open(data_dir)?;
    let session = Database::open(&data.database())?.write_session()?;
    let group = OF_ENVELOPE * AT_A_TIME;
    for start in (0..operations).step_by(BATCH) {
        session.begin_write()?;
        for number in start..operations.min(start + BATCH) {
            let envelope = id(number / group * AT_A_TIME + number % AT_A_TIME);
            let now = time(number)?;
            if number % group < AT_A_TIME {
                session.envelopes().open(&open(&envelope, &now))?;
            }
            session.ledger().record(&operation(number, &envelope, &now))?;
            if number % group >= group - AT_A_TIME {
                session
                    .envelopes()
                    .close(&envelope, Ending::by_host(State::ClosedSuccess, "BENCH", &now, 0))?;
            }
        }
        session.commit()?;
    }
    time(0)
}

pub(super) fn id(envelope: usize) -> String {
    format!("env_{envelope:026}")
}

fn open(id: &str, now: &str) -> Envelope {
    Envelope {
        id: id.to_owned(),
        workspace: Some("notes-app".to_owned()),
        opened_at: now.to_owned(),
        // A host that is gone, so that its open envelopes are interrupted.
        host_id: String::new(),
        connection: "con_01jq0000000000000000000000".to_owned(),
        ..Envelope::default()
    }
}

/// Id of an operation. It differs from an envelope's id, because the end of an envelope that a host left open gets an
/// id like that.
pub(super) fn op_id(number: usize) -> String {
    format!("op_1{number:025}")
}

/// A row as the host writes it. Most are of a pack's tool, some of tests, and some refused or denied by a policy.
fn operation(number: usize, envelope: &str, now: &str) -> Operation {
    let hash = |salt: usize| format!("{:064x}", number * 7 + salt);
    let row = Operation {
        op_id: op_id(number),
        envelope_id: Some(envelope.to_owned()).filter(|_| !number.is_multiple_of(10)),
        timestamp: now.to_owned(),
        duration_ms: 0.125,
        actor: Some("builder-7".to_owned()),
        client: Some("bench 1.0".to_owned()),
        connection: "con_01jq0000000000000000000000".to_owned(),
        request_id: Some(number.to_string()),
        host_id: "hst_01jq0000000000000000000000".to_owned(),
        args_hash: hash(1),
        result_hash: Some(hash(2)),
        verdicts: number
            .is_multiple_of(8)
            .then(|| verdicts(number.is_multiple_of(200))),
        ..Operation::default()
    };
    match number % 25 {
        7 => tested(number, row),
        _ => changed(number, hash(3), row),
    }
}

/// Verdicts of two policies, as JSON.
fn verdicts(denied: bool) -> String {
    let said = if denied { "deny" } else { "allow" };
    json!([
        {"policy": "freeze", "mode": "enforce", "phase": "request", "verdict": said, "us": 40},
        {"policy": "secret-scan", "mode": "audit", "phase": "request", "verdict": "allow", "us": 90},
    ])
    .to_string()
}

fn changed(number: usize, fingerprint: String, row: Operation) -> Operation {
    let refused = number.is_multiple_of(20);
    let code = if number.is_multiple_of(200) {
        "FROZEN"
    } else {
        "TRANSITION_NOT_ALLOWED"
    };
    Operation {
        op_type: OpType::Mutation,
        success: Some(!refused),
        pack: "task-store".to_owned(),
        tool: "task_transition".to_owned(),
        effect: Effect::Write,
        error_code: refused.then(|| code.to_owned()),
        failure_class: refused.then(|| "tool_error".to_owned()),
        changed_paths: Some(r#"["task_store_events","task_store_tasks"]"#.to_owned()),
        mutation_fingerprint: Some(fingerprint),
        ..row
    }
}

/// A run of tests. Every third fails, in one of forty ways.
fn tested(number: usize, row: Operation) -> Operation {
    let failed = number.is_multiple_of(3);
    let result = if failed { Ran::Failed } else { Ran::Passed };
    let outcome = StoredTestOutcome {
        result,
        failed: Some(u32::from(failed)),
        total: Some(12),
        message: failed.then(|| "AssertionError: 2 != 3".to_owned()),
        runs: vec![TestRun {
            workspace: "notes-app".to_owned(),
            test: "default".to_owned(),
            result,
        }],
    };
    Operation {
        op_type: OpType::TestRun,
        success: Some(true),
        pack: "convergence".to_owned(),
        tool: "test_run".to_owned(),
        effect: Effect::Run,
        failure_fingerprint: failed.then(|| format!("{:064x}", number % 40)),
        failing_tests: failed.then(|| r#"["tests/test_notes.py::test_export"]"#.to_owned()),
        outcome: serde_json::to_string(&outcome).ok(),
        workspace: Some("notes-app".to_owned()),
        ..row
    }
}

fn questions(setup: &Setup, report: &mut Report, short: &Path, long: &Path) -> anyhow::Result<()> {
    let gates = [
        Gated::open_with(setup, short, CONFIG)?,
        Gated::open_with(setup, long, CONFIG)?,
    ];
    let envelope = id(1);
    let asked: [(&str, &'static str, Value); 4] = [
        ("envelope_get", "envelope_get", json!({"envelope_id": envelope})),
        ("ledger_query, the newest", "ledger_query", json!({})),
        (
            "ledger_query of an envelope",
            "ledger_query",
            json!({"envelope_id": envelope}),
        ),
        (
            "ledger_query of failures",
            "ledger_query",
            json!({"success": false}),
        ),
    ];
    for (name, tool, arguments) in asked {
        let requests: Vec<Request> = (0..setup.effort.reads / 4)
            .map(|_| Request {
                tool,
                arguments: arguments.clone(),
            })
            .collect();
        let rounds = gates
            .each_ref()
            .map(|gate| -> Round<'_> { Box::new(|| gate.round(&requests)) });
        let [few, many] = take_turns(setup.effort.rounds, rounds)?;
        report.heading(&format!("{name}, through the gate"));
        report.row("1,000 operations", &few, Unit::Microseconds, &few);
        report.row("1,000,000 operations", &many, Unit::Microseconds, &few);
        let value = Quantity(many.median(), Unit::Microseconds);
        report.add(Figure {
            name: format!("{name}, 1,000,000 operations"),
            value,
            baseline: "1,000",
            baseline_value: Quantity(few.median(), Unit::Microseconds),
            target: Some(Target::at_most("takes", value, few.median() * LONGER)),
        });
    }
    Ok(())
}

fn verify(setup: &Setup, report: &mut Report, data_dir: &Path) -> anyhow::Result<()> {
    let session = Database::open(&DataDir::open(data_dir)?.database())?.read_session()?;
    let round: Round<'_> = Box::new(|| {
        let started = Instant::now();
        let verified = session.ledger().verify(None, &[])?;
        anyhow::ensure!(verified.broken.is_none(), "{:?}", verified.broken);
        Ok(started.elapsed().as_secs_f64() * 1e6 / verified.rows as f64)
    });
    let [sample] = take_turns(setup.effort.rounds.min(3), [round])?;
    let value = Quantity(sample.median(), Unit::Microseconds);
    report.text(&format!(
        "\nverifying: {:.0} rows a second",
        1e6 / sample.median()
    ));
    report.add(Figure {
        name: "verifying, for each row".to_owned(),
        value,
        baseline: "300,000 rows/s",
        baseline_value: Quantity(VERIFY, Unit::Microseconds),
        target: Some(Target::at_most("takes", value, VERIFY)),
    });
    Ok(())
}

fn prune(report: &mut Report, data_dir: &Path, began: String) -> anyhow::Result<()> {
    let data = DataDir::open(data_dir)?;
    let database = Database::open(&data.database())?;
    let session = database.write_session()?;
    // The oldest tenth of the envelopes is pruned.
    let envelopes = LENGTHS[1] / OF_ENVELOPE * 9 / 10;
    let retention = Retention {
        cutoff: began,
        envelopes: u32::try_from(envelopes)?,
    };
    let mut held = Vec::new();
    let started = Instant::now();
    let pruned = retention::prune(&data, &database, &retention, 0, |batch| {
        let since = Instant::now();
        session.begin_write()?;
        session.maintenance().prune(&batch)?;
        session.commit()?;
        held.push(since.elapsed());
        Ok(Taken::Out(since.elapsed()))
    })?;
    let all = started.elapsed();
    held.sort_unstable();
    let rows = pruned.rows_in_envelopes + pruned.rows_outside;
    let longest = *held.last().context("nothing was pruned")?;
    let middle = held[held.len() / 2];
    report.text(&format!(
        "\npruning {rows} rows in {} batches: {:.1} s, {:.0} rows a second; the writer is held for {:.1} ms at the median, {:.1} ms at most",
        held.len(),
        all.as_secs_f64(),
        rows as f64 / all.as_secs_f64(),
        ms(middle),
        ms(longest),
    ));
    holds_together(&data, &session)?;
    report.add(Figure {
        name: "pruning holds the writer, at most".to_owned(),
        value: Quantity(ms(longest), Unit::Milliseconds),
        baseline: "median",
        baseline_value: Quantity(ms(middle), Unit::Milliseconds),
        target: Some(Target::at_most(
            "is",
            Quantity(ms(longest), Unit::Milliseconds),
            HELD,
        )),
    });
    Ok(())
}

fn holds_together(data: &DataDir, session: &Session) -> anyhow::Result<()> {
    let verified = session
        .ledger()
        .verify(None, &[LedgerKey::open(data)?.public()])?;
    anyhow::ensure!(verified.broken.is_none(), "{:?}", verified.broken);
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
