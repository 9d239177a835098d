//! Resident memory after few and after many calls.

use super::Setup;
use crate::client::Client;
use crate::machine;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::workload;

/// After how many calls memory is looked at.
const CALLS: [usize; 3] = [1_000, 10_000, 110_000];
/// Calls in flight.
const IN_FLIGHT: usize = 32;
/// How much memory there may be, in MiB.
const LIMIT: f64 = 80.0;
/// By which part of itself memory may grow between the looks and count as flat: SQLite's page caches
/// fill with the database, here as anywhere.
const FLAT: f64 = 0.1;
/// By how much it may grow in a hundred thousand calls after that, in MiB.
const GROWTH: f64 = 5.0;

/// Measures tollgate and the server without gate and sandbox.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let plain = resident(Client::start(setup.plain(dir.path())?)?)?;
    let tollgate = resident(Client::start(setup.tollgate(&dir.path().join("data")))?)?;
    report.text(&format!(
        "\nresident memory, {IN_FLIGHT} in flight, nine reads for each write"
    ));
    for (index, calls) in CALLS.into_iter().enumerate() {
        let (value, baseline) = (mebibytes(tollgate[index]), mebibytes(plain[index]));
        report.text(&format!(
            "  after {calls:>6} calls: tollgate {value}, plain server {baseline}"
        ));
        report.add(Figure {
            name: format!("resident memory after {calls} calls"),
            value,
            baseline: "plain",
            baseline_value: baseline,
            target: Some(Target::at_most("is", value, LIMIT)),
        });
    }
    report.add(Figure {
        name: format!("its growth from {} to {} calls", CALLS[0], CALLS[1]),
        value: mebibytes(tollgate[1] - tollgate[0]),
        baseline: "plain",
        baseline_value: mebibytes(plain[1] - plain[0]),
        target: Some(Target::at_most(
            "is",
            mebibytes(tollgate[1] - tollgate[0]),
            tollgate[0] * FLAT,
        )),
    });
    let growth = mebibytes(tollgate[2] - tollgate[1]);
    report.add(Figure {
        name: format!("its growth from {} to {} calls", CALLS[1], CALLS[2]),
        value: growth,
        baseline: "plain",
        baseline_value: mebibytes(plain[2] - plain[1]),
        target: Some(Target::at_most("is", growth, GROWTH)),
    });
    Ok(())
}

fn mebibytes(value: f64) -> Quantity {
    Quantity(value, Unit::Mebibytes)
}

/// Memory after each number of calls, in MiB.
fn resident(mut client: Client) -> anyhow::Result<[f64; CALLS.len()]> {
    let tasks = workload::seed(&mut client)?;
    let mut made = 0;
    let mut looks = [0.0; CALLS.len()];
    for (calls, look) in CALLS.into_iter().zip(&mut looks) {
        client.run(&workload::mix(&tasks, calls - made), IN_FLIGHT)?;
        made = calls;
        *look = machine::resident_mib(client.process())?;
    }
    client.stop()?;
    Ok(looks)
}
