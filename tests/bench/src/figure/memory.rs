//! Resident memory after few and after many calls.

use super::{PACKS, Setup};
use crate::client::Client;
use crate::machine;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::workload;

/// Numbers of calls after which memory is measured.
const CALLS: [usize; 3] = [1_000, 10_000, 110_000];
/// Calls in flight.
const IN_FLIGHT: usize = 32;
/// Largest resident memory, in MiB.
const LIMIT: f64 = 70.0;
/// Largest relative growth between measurements that counts as flat: SQLite's page caches fill with the database, here
/// as anywhere.
const FLAT: f64 = 0.1;
/// Largest growth in the next hundred thousand calls, in MiB.
const GROWTH: f64 = 5.0;

/// Memory after each number of calls, in MiB.
type Looks = [f64; CALLS.len()];

/// Measures tollgate and the server without gate and sandbox.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let plain = resident(Client::start(setup.plain(dir.path())?)?)?;
    for (packs, flags) in PACKS {
        let dir = setup.fresh_dir()?;
        let mut command = setup.tollgate(&dir.path().join("data"));
        command.args(flags);
        record(report, packs, &resident(Client::start(command)?)?, &plain);
    }
    Ok(())
}

fn record(report: &mut Report, packs: &str, tollgate: &Looks, plain: &Looks) {
    report.text(&format!(
        "\nresident memory with {packs}, {IN_FLIGHT} in flight, nine reads for each write"
    ));
    for (index, calls) in CALLS.into_iter().enumerate() {
        let (value, baseline) = (mebibytes(tollgate[index]), mebibytes(plain[index]));
        report.text(&format!(
            "  after {calls:>6} calls: tollgate {value}, plain server {baseline}"
        ));
        report.add(Figure {
            name: format!("resident memory with {packs} after {calls} calls"),
            value,
            baseline: "plain",
            baseline_value: baseline,
            target: Some(Target::at_most("is", value, LIMIT)),
        });
    }
    for (before, limit) in [(0, tollgate[0] * FLAT), (1, GROWTH)] {
        let growth = mebibytes(tollgate[before + 1] - tollgate[before]);
        report.add(Figure {
            name: format!(
                "growth of resident memory with {packs} from {} to {} calls",
                CALLS[before],
                CALLS[before + 1]
            ),
            value: growth,
            baseline: "plain",
            baseline_value: mebibytes(plain[before + 1] - plain[before]),
            target: Some(Target::at_most("is", growth, limit)),
        });
    }
}

fn mebibytes(value: f64) -> Quantity {
    Quantity(value, Unit::Mebibytes)
}

fn resident(mut client: Client) -> anyhow::Result<Looks> {
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
