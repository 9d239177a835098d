//! CPU time of a host without calls.

use std::time::Duration;

use super::Setup;
use crate::client::Client;
use crate::machine;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::workload;

/// Largest share of a core that a host may use, in percent.
const LIMIT: f64 = 0.5;
/// Time before the measurement, and duration of the measurement.
const QUIET: Duration = Duration::from_secs(2);
const WATCHED: Duration = Duration::from_secs(20);

/// Measures tollgate and the server without gate and sandbox, each after some calls.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let plain = percent(Client::start(setup.plain(dir.path())?)?)?;
    let tollgate = percent(Client::start(setup.tollgate(&dir.path().join("data")))?)?;
    report.text(&format!(
        "\nCPU time of an idle host, of one core over {} s: tollgate {tollgate}, plain server {plain}",
        WATCHED.as_secs()
    ));
    report.add(Figure {
        name: "CPU time of an idle host".to_owned(),
        value: tollgate,
        baseline: "plain",
        baseline_value: plain,
        target: Some(Target::at_most("is", tollgate, LIMIT)),
    });
    Ok(())
}

fn percent(mut client: Client) -> anyhow::Result<Quantity> {
    workload::seed(&mut client)?;
    std::thread::sleep(QUIET);
    let before = machine::processor_seconds(client.process())?;
    std::thread::sleep(WATCHED);
    let used = machine::processor_seconds(client.process())? - before;
    client.stop()?;
    Ok(Quantity(used / WATCHED.as_secs_f64() * 100.0, Unit::Percent))
}
