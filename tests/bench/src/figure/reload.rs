//! Time from the signal to the client's notification of a changed list, during calls.

use std::path::Path;
use std::time::Instant;

use anyhow::Context as _;
use serde_json::json;

use super::Setup;
use crate::client::Client;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Sample, take_turns};
use crate::workload::Request;

/// Limit in milliseconds.
const LIMIT: f64 = 300.0;

/// Measures how long a host with all packs takes to replace all of them. A call that fails during the reload ends the
/// bench.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let config = dir.path().join("tollgate.toml");
    write(&config, "core")?;
    let mut client = Client::start(setup.tollgate_with(&config, &dir.path().join("data")))?;
    let mut tiers = ["full", "core"].into_iter().cycle();
    let mut round = || {
        write(&config, tiers.next().context("a cycle has no end")?)?;
        reload(&mut client)
    };
    let [sample] = take_turns(setup.effort.warm_starts, [Box::new(&mut round)])?;
    client.stop()?;
    record(report, &sample);
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "the configuration is the bench's own")]
fn write(config: &Path, tier: &str) -> anyhow::Result<()> {
    std::fs::write(config, format!("[server]\ntier = {tier:?}\n"))
        .context("the configuration cannot be written")
}

/// Milliseconds until the client is notified of the new list, with one call after another in the meantime.
fn reload(client: &mut Client) -> anyhow::Result<f64> {
    let heard = client.notes();
    let call = [Request {
        tool: "task_list",
        arguments: json!({"limit": 5}),
    }];
    let started = Instant::now();
    let process = i32::try_from(client.process())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let process = process.context("the server has no number")?;
    rustix::process::kill_process(process, rustix::process::Signal::HUP)?;
    while client.notes() == heard {
        client.run(&call, 1)?;
    }
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn record(report: &mut Report, sample: &Sample) {
    report.heading("reload with all packs, during calls");
    report.row("tollgate", sample, Unit::Milliseconds, sample);
    let value = Quantity(sample.median(), Unit::Milliseconds);
    report.add(Figure {
        name: "reload with all packs".to_owned(),
        value,
        baseline: "itself",
        baseline_value: value,
        target: Some(Target::at_most("takes", value, LIMIT)),
    });
}
