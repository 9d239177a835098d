//! Time that policies add to a call: none, one and eight of them, in one process.

use super::in_process::Gated;
use super::{Setup, requests};
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, take_turns};
use crate::workload::{self, CONFIG_FILE, Kind};

/// Number of policies, and the largest time that they may add to a call, in microseconds.
const CASES: [(usize, f64); 2] = [(1, 30.0), (8, 200.0)];

/// A configuration with this number of policies, each of which evaluates every argument.
fn config(policies: usize) -> String {
    let table = |number| {
        format!(
            "\n[policies.guard-{number}]\nsource = \"builtin:path-guard\"\nconfig = {{ deny = [\"**/*.pem\"] }}\n"
        )
    };
    CONFIG_FILE.to_owned() + &(0..policies).map(table).collect::<String>()
}

/// Measures a read and a write with no, one and eight policies.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dirs = [setup.fresh_dir()?, setup.fresh_dir()?, setup.fresh_dir()?];
    let mut gates = Vec::new();
    for (dir, policies) in dirs.iter().zip([0, CASES[0].0, CASES[1].0]) {
        let mut gate = Gated::open_with(setup, dir.path(), &config(policies))?;
        let tasks = workload::seed(&mut gate)?;
        gates.push((gate, tasks));
    }
    for kind in [Kind::Get, Kind::Create] {
        let calls: Vec<_> = gates
            .iter()
            .map(|(gate, tasks)| (gate, requests(kind, tasks, &setup.effort)))
            .collect();
        let [none, one, eight] = &calls[..] else {
            anyhow::bail!("three gates are compared");
        };
        let round = |(gate, requests): &(&Gated, Vec<_>)| gate.round(requests);
        let rounds: [Round<'_>; 3] = [
            Box::new(|| round(none)),
            Box::new(|| round(one)),
            Box::new(|| round(eight)),
        ];
        let [none, one, eight] = take_turns(setup.effort.rounds, rounds)?;
        report.heading(&format!("{} judged by policies, one call at a time", kind.name()));
        report.row("by none", &none, Unit::Microseconds, &none);
        for ((policies, limit), judged) in CASES.into_iter().zip([one, eight]) {
            report.row(&format!("by {policies}"), &judged, Unit::Microseconds, &none);
            let more = Quantity(judged.median() - none.median(), Unit::Microseconds);
            report.add(Figure {
                name: match policies {
                    1 => format!("{}, 1 policy", kind.name()),
                    _ => format!("{}, {policies} policies", kind.name()),
                },
                value: Quantity(judged.median(), Unit::Microseconds),
                baseline: "none",
                baseline_value: Quantity(none.median(), Unit::Microseconds),
                target: Some(Target::at_most("adds", more, limit)),
            });
        }
    }
    Ok(())
}
