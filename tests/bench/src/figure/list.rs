//! `tools/list` with all packs: the list that clients read at every start, and its compact form.

use std::time::Instant;

use serde_json::json;

use super::Setup;
use crate::client::Client;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, Sample, take_turns};

/// Longest time to list all tools of all packs, in milliseconds.
const LIMIT: f64 = 3.0;
/// Lists in one round.
const LISTS: u32 = 20;

/// Measures the listings from the shortest to the longest.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    for (name, flags) in [
        ("compact", &["--compact"][..]),
        ("core tools", &[]),
        ("all tools", &["--tier", "full"]),
    ] {
        let dir = setup.fresh_dir()?;
        let mut command = setup.tollgate(&dir.path().join("data"));
        let mut tollgate = Client::start({
            command.args(flags);
            command
        })?;
        let mut null = Client::start(setup.null(&json!({}))?)?;
        let (tools, bytes) = tollgate.list_all()?;
        let null_round: Round<'_> = Box::new(|| round(&mut null));
        let tollgate_round: Round<'_> = Box::new(|| round(&mut tollgate));
        let [null_lists, lists] = take_turns(setup.effort.rounds, [null_round, tollgate_round])?;
        record(
            report,
            &format!("tools/list, {name}"),
            tools,
            bytes,
            [&null_lists, &lists],
        );
        tollgate.stop()?;
        null.stop()?;
    }
    Ok(())
}

/// Milliseconds for each of several lists, with all pages.
fn round(client: &mut Client) -> anyhow::Result<f64> {
    let started = Instant::now();
    for _ in 0..LISTS {
        let (tools, _) = client.list_all()?;
        anyhow::ensure!(tools > 0, "no tools were listed");
    }
    Ok(started.elapsed().as_secs_f64() * 1e3 / f64::from(LISTS))
}

fn record(report: &mut Report, name: &str, tools: usize, bytes: usize, [null, lists]: [&Sample; 2]) {
    report.heading(name);
    report.row("null server", null, Unit::Milliseconds, null);
    report.row("tollgate", lists, Unit::Milliseconds, null);
    report.text(&format!("  {tools} tools in {bytes} bytes"));
    let value = Quantity(lists.median(), Unit::Milliseconds);
    report.add(Figure {
        name: format!("{name}: {tools} tools"),
        value,
        baseline: "null",
        baseline_value: Quantity(null.median(), Unit::Milliseconds),
        target: Some(Target::at_most("takes", value, LIMIT)),
    });
}
