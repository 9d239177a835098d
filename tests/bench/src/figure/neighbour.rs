//! Delay of other tools' calls by a guest that stalls.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use tempfile::NamedTempFile;

use super::Setup;
use crate::client::Client;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::Sample;
use crate::workload::{self, CONFIG_FILE, Kind, Request};

/// Largest delay of a neighbour's read at the 99th percentile, in milliseconds.
const LIMIT: f64 = 5.0;
/// Ways to stall: in the guest, in one of its statements, and outside any transaction.
const STALLS: [&str; 3] = [
    "call_limits_spin",
    "call_limits_spin_in_sql",
    "call_limits_spin_running",
];

/// Measures a session's reads alone and beside each kind of stalled guest.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let Some(guests) = &setup.guests else {
        report.text("\nneighbours of stalled guests are left out: --guests names no folder");
        return Ok(());
    };
    let mut config = NamedTempFile::with_suffix_in(".toml", &setup.place)?;
    config.write_all(CONFIG_FILE.as_bytes())?;
    let call_limits = guests.join("call_limits.wasm");
    // They stall until their host is killed.
    writeln!(
        config,
        "[packs.call-limits]\nsource = {call_limits:?}\nlimits = {{ read_ms = 600000, run_ms = 600000 }}"
    )?;
    let dir = setup.fresh_dir()?;
    let mut alone = None;
    report.text("\na neighbour's reads, one after another, at the 99th percentile");
    for stall in std::iter::once(None).chain(STALLS.map(Some)) {
        let data = dir.path().join(stall.unwrap_or("alone"));
        let p99 = Quantity(reads(setup, config.path(), &data, stall)?, Unit::Milliseconds);
        let label = stall.map_or_else(|| "alone".to_owned(), |stall| format!("beside {stall}"));
        report.text(&format!("  {label:<33} {p99}"));
        let Some(stall) = stall else {
            alone = Some(p99);
            continue;
        };
        let baseline = alone.unwrap_or(p99);
        let later = Quantity(p99.0 - baseline.0, Unit::Milliseconds);
        report.add(Figure {
            name: format!("a neighbour's p99 beside {stall}"),
            value: p99,
            baseline: "alone",
            baseline_value: baseline,
            target: Some(Target::at_most("delay", later, LIMIT)),
        });
    }
    Ok(())
}

/// The 99th percentile of a session's reads, in milliseconds.
fn reads(setup: &Setup, config: &Path, data: &Path, stall: Option<&'static str>) -> anyhow::Result<f64> {
    let mut client = Client::start(setup.tollgate_with(config, data))?;
    let seeded = workload::seed(&mut client)?;
    if let Some(tool) = stall {
        let arguments = json!({});
        client.begin(&Request { tool, arguments })?;
    }
    let mut times = Vec::with_capacity(setup.effort.reads);
    for number in 0..setup.effort.reads {
        let request = Kind::Get.request(&seeded, number);
        times.push(client.run(&[request], 1)?.as_secs_f64() * 1e3);
    }
    Ok(Sample::of(times).percentile(0.99))
}
