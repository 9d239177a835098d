//! Time from the start of the process to the first list of tools.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::json;

use super::{PACKS, Setup};
use crate::client::Client;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, Sample, take_turns};

/// Limits in milliseconds.
const WARM_LIMIT: f64 = 100.0;
const COLD_LIMIT: f64 = 300.0;
/// Limit below the shortest timeout of a client for the start of a server, in milliseconds.
const BUSY_LIMIT: f64 = 1_500.0;
/// Busy threads for each core during the start.
const BUSY: usize = 2;

/// Measures starts with compiled components in the data directory, with an empty one, and with an empty one on a busy
/// machine.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    for (packs, flags) in PACKS {
        let tollgate = |data: &Path| {
            let mut command = setup.tollgate(&data.join("data"));
            command.args(flags);
            command
        };
        let dir = setup.fresh_dir()?;
        let warm = || start(tollgate(dir.path()));
        let [null, warm] = take_turns(setup.effort.warm_starts, [null_round(setup), Box::new(warm)])?;
        record(report, &format!("{packs}, warm cache"), &null, &warm, WARM_LIMIT);
        let cold = || start(tollgate(setup.fresh_dir()?.path()));
        let [null, cold] = take_turns(setup.effort.cold_starts, [null_round(setup), Box::new(cold)])?;
        record(report, &format!("{packs}, cold cache"), &null, &cold, COLD_LIMIT);
        let busy = Busy::start(BUSY * cores());
        let cold = || start(tollgate(setup.fresh_dir()?.path()));
        let [null, cold] = take_turns(setup.effort.cold_starts, [null_round(setup), Box::new(cold)])?;
        drop(busy);
        let what = format!("{packs}, cold cache, busy machine");
        record(report, &what, &null, &cold, BUSY_LIMIT);
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Threads that compute until this is dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn start(threads: usize) -> Busy {
        let is_over = Arc::new(AtomicBool::new(false));
        for _ in 0..threads {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::black_box((0..1_000_000_u64).sum::<u64>());
                }
            });
        }
        Busy(is_over)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn null_round(setup: &Setup) -> Round<'_> {
    Box::new(|| start(setup.null(&json!({}))?))
}

/// Milliseconds until a new process has listed its tools.
fn start(command: Command) -> anyhow::Result<f64> {
    let started = Instant::now();
    let mut client = Client::start(command)?;
    let tools = client.list_tools()?;
    let elapsed = started.elapsed();
    anyhow::ensure!(tools > 0, "no tools were listed");
    client.stop()?;
    Ok(elapsed.as_secs_f64() * 1e3)
}

fn record(report: &mut Report, what: &str, null: &Sample, tollgate: &Sample, limit: f64) {
    report.heading(&format!("start to first tools/list, {what}"));
    report.row("null server", null, Unit::Milliseconds, null);
    report.row("tollgate", tollgate, Unit::Milliseconds, null);
    let value = Quantity(tollgate.median(), Unit::Milliseconds);
    report.add(Figure {
        name: format!("start to first tools/list, {what}"),
        value,
        baseline: "null",
        baseline_value: Quantity(null.median(), Unit::Milliseconds),
        target: Some(Target::at_most("takes", value, limit)),
    });
}
