//! From the start of the process to the first list of tools.

use std::process::Command;
use std::time::Instant;

use serde_json::json;

use super::Setup;
use crate::client::Client;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, Sample, take_turns};

/// Limits in milliseconds.
const WARM_LIMIT: f64 = 100.0;
const COLD_LIMIT: f64 = 5_000.0;

/// Measures starts with compiled components in the data directory, and into an empty one.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let warm = || start(setup.tollgate(&dir.path().join("data")));
    let [null, warm] = take_turns(setup.effort.warm_starts, [null_round(setup), Box::new(warm)])?;
    record(report, "warm cache", &null, &warm, WARM_LIMIT);
    let cold = || start(setup.tollgate(&setup.fresh_dir()?.path().join("data")));
    let [null, cold] = take_turns(setup.effort.cold_starts, [null_round(setup), Box::new(cold)])?;
    record(report, "cold cache", &null, &cold, COLD_LIMIT);
    Ok(())
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

fn record(report: &mut Report, cache: &str, null: &Sample, tollgate: &Sample, limit: f64) {
    report.heading(&format!("start to first tools/list, {cache}"));
    report.row("null server", null, Unit::Milliseconds, null);
    report.row("tollgate", tollgate, Unit::Milliseconds, null);
    let value = Quantity(tollgate.median(), Unit::Milliseconds);
    report.add(Figure {
        name: format!("start to first tools/list, {cache}"),
        value,
        baseline: "null",
        baseline_value: Quantity(null.median(), Unit::Milliseconds),
        target: Some(Target::at_most("takes", value, limit)),
    });
}
