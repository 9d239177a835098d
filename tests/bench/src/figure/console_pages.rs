//! Time of each console page over a short ledger and over a long one.

use std::io::Read as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::Setup;
use super::ledger::{self, LENGTHS};
use crate::http::Server;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, take_turns};

/// Number of requests for a page in one round.
const LOOKS: usize = 20;
/// Maximum time of a page over a million operations, in milliseconds.
const MOST: f64 = 50.0;
/// Maximum time until the console has counted everything that its figures show.
const COUNT_TIMEOUT: Duration = Duration::from_secs(300);
/// Text with which a page shows that counting is not finished.
const COUNTING: &str = "are still being counted";

/// Measures the pages, in turns on two hosts.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dirs = [setup.fresh_dir()?, setup.fresh_dir()?];
    for (dir, operations) in dirs.iter().zip(LENGTHS) {
        ledger::fill(&dir.path().join("data"), operations)?;
    }
    let serve = |dir: &tempfile::TempDir| super::console::serve(setup, dir.path(), ledger::CONFIG);
    let hosts = [serve(&dirs[0])?, serve(&dirs[1])?];
    let started = Instant::now();
    let (mut page, first) = look(&hosts[1], "/console/stats?since=14d")?;
    while page.contains(COUNTING) {
        anyhow::ensure!(started.elapsed() < COUNT_TIMEOUT, "the console counts for ever");
        std::thread::sleep(Duration::from_millis(100));
        page = look(&hosts[1], "/console/stats?since=14d")?.0;
    }
    report.text(&format!(
        "\npages of the console: the first of figures came {:.0} ms after the start of the host, and showed all after {:.1} s",
        ms(first),
        started.elapsed().as_secs_f64(),
    ));
    for (name, path) in paths() {
        let rounds = hosts
            .each_ref()
            .map(|host| -> Round<'_> { Box::new(|| round(host, &path)) });
        let [short, long] = take_turns(setup.effort.rounds, rounds)?;
        report.heading(&format!("page of the console: {name}"));
        report.row("1,000 operations", &short, Unit::Milliseconds, &short);
        report.row("1,000,000 operations", &long, Unit::Milliseconds, &short);
        let value = Quantity(long.median(), Unit::Milliseconds);
        report.add(Figure {
            name: format!("page of the console, {name}, 1,000,000 operations"),
            value,
            baseline: "1,000",
            baseline_value: Quantity(short.median(), Unit::Milliseconds),
            target: Some(Target::at_most("takes", value, MOST)),
        });
    }
    Ok(())
}

/// All pages, and filters without matches, which scan the most rows.
fn paths() -> Vec<(&'static str, String)> {
    // Both exist in the short ledger as well.
    let (envelope, operation) = (ledger::id(1), ledger::op_id(7));
    [
        ("live", "/console/".to_owned()),
        ("live, a tool", "/console/?q=tool:test_run+failed".to_owned()),
        ("live, nobody's calls", "/console/?q=who:nobody".to_owned()),
        ("live, no policy's calls", "/console/?q=policy:none".to_owned()),
        ("live, the oldest", "/console/?before=60".to_owned()),
        ("its parts", "/console/parts".to_owned()),
        ("envelopes", "/console/envelopes".to_owned()),
        ("an envelope", format!("/console/envelopes/{envelope}")),
        ("an operation", format!("/console/operations/{operation}")),
        ("approvals", "/console/approvals".to_owned()),
        ("policies", "/console/policies".to_owned()),
        ("tests", "/console/tests".to_owned()),
        ("an hour", "/console/stats?since=1h".to_owned()),
        ("a day", "/console/stats".to_owned()),
        ("a week", "/console/stats?since=7d".to_owned()),
        ("two weeks", "/console/stats?since=14d".to_owned()),
        ("the work of packs", "/console/views/tasks_radar".to_owned()),
        ("host", "/console/host".to_owned()),
    ]
    .into()
}

/// Median time of some requests, in milliseconds.
fn round(host: &Server, path: &str) -> anyhow::Result<f64> {
    let times = (0..LOOKS).map(|_| Ok(ms(look(host, path)?.1)));
    Ok(crate::sample::Sample::of(times.collect::<anyhow::Result<Vec<f64>>>()?).median())
}

/// A page and its total time, including the connection.
fn look(host: &Server, path: &str) -> anyhow::Result<(String, Duration)> {
    let started = Instant::now();
    let mut page = String::new();
    super::console::ask(host.address(), path, "close")?.read_to_string(&mut page)?;
    let took = started.elapsed();
    let status = page.lines().next().context("the console wrote nothing")?;
    anyhow::ensure!(status == "HTTP/1.1 200 OK", "{path}: {status}");
    Ok((page, took))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
