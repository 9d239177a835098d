//! Durable writes: tollgate's group commit compared with single commits and with other servers, and the gate's share of
//! a write's CPU time.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Context as _;

use super::{Setup, per_call, requests};
use crate::client::Client;
use crate::gate_part::GatePart;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::rows::{Bare, Rows, Which};
use crate::sample::{Round, Sample, take_turns};
use crate::workload::{self, Kind, Request};

/// Number of calls in flight in the concurrent case.
const MANY: usize = 32;
/// Required ratio of group commit to single commits.
const OVER_BARE: f64 = 8.0;
/// Required ratio of group commit to a server in TypeScript.
const OVER_TYPESCRIPT: f64 = 2.5;
/// Largest ratio of a single call's time to that of a server in TypeScript.
const ALONE_OVER_TYPESCRIPT: f64 = 1.0;
/// Number of other servers: one on the TypeScript SDK, one on FastMCP.
const PEERS: usize = 2;
/// Largest ratio of a single call's time to that of a bare commit.
const ALONE: f64 = 2.0;
/// CPU time that the gate may add to a write, in microseconds.
const GATE_LIMIT: f64 = 25.0;
/// Number of bare flushes that are measured.
const FLUSHES: usize = 200;

/// Measures durable writes.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let data = dir.path().join("data");
    let mut tollgate = Client::start(setup.tollgate(&data))?;
    let tasks = workload::seed(&mut tollgate)?;
    let database = data.join("tollgate.db");
    let mut bare = Bare::create(&dir.path().join("bare.db"), Rows::of(&database, Which::All)?)?;
    let rows = dir.path().join("rows.json");
    #[allow(clippy::disallowed_methods, reason = "the bench's own directory")]
    std::fs::write(&rows, serde_json::to_vec(&Rows::of(&database, Which::Pack)?)?)?;
    let mut peers = [
        Peer::start("TypeScript", setup.typescript(), dir.path(), &rows)?,
        Peer::start("FastMCP", setup.fastmcp(), dir.path(), &rows)?,
    ];
    let flush = flush(dir.path())?;
    report.text(&format!(
        "\ndurable writes: flushing 4 KiB to this disk takes {}",
        Quantity(flush.median(), Unit::Microseconds)
    ));
    for peer in peers.iter().filter(|peer| peer.client.is_none()) {
        report.text(&format!("  {} is not installed: skipped", peer.name));
    }
    let requests = requests(Kind::Create, &tasks, &setup.effort);
    let calls = |client: &mut Client, in_flight| -> anyhow::Result<f64> {
        Ok(per_call(client.run(&requests, in_flight)?, requests.len()))
    };
    let bare_round: Round<'_> = Box::new(|| commits(&mut bare, &requests));
    let mut tollgate_many = Vec::new();
    let [typescript_round, fastmcp_round] = peers.each_mut().map(|peer| -> Round<'_> {
        Box::new(|| match &mut peer.client {
            Some(client) => {
                peer.many.push(calls(client, MANY)?);
                calls(client, 1)
            }
            None => Ok(f64::NAN),
        })
    });
    let tollgate_round: Round<'_> = Box::new(|| {
        tollgate_many.push(calls(&mut tollgate, MANY)?);
        calls(&mut tollgate, 1)
    });
    let [one_by_one, typescript_alone, fastmcp_alone, alone] = take_turns(
        setup.effort.rounds,
        [bare_round, typescript_round, fastmcp_round, tollgate_round],
    )?;
    let many = after_warm_up(tollgate_many);
    tollgate.stop()?;
    record(report, &one_by_one, &many, &alone);
    let own = Durable { alone, many };
    let samples: [Sample; PEERS] = [typescript_alone, fastmcp_alone];
    for (peer, alone) in peers.into_iter().zip(samples) {
        peer.record(report, alone, &own)?;
    }
    gate_part(setup, report)
}

/// Samples of one server: one call in flight, and many.
struct Durable {
    alone: Sample,
    many: Sample,
}

/// Sample of the rounds that were collected aside. Like in [`take_turns`], the first one does not count.
fn after_warm_up(rounds: Vec<f64>) -> Sample {
    Sample::of(rounds.into_iter().skip(1))
}

/// One round of commits: microseconds for each.
fn commits(bare: &mut Bare, requests: &[Request]) -> anyhow::Result<f64> {
    let started = Instant::now();
    for _ in requests {
        bare.commit()?;
    }
    Ok(per_call(started.elapsed(), requests.len()))
}

/// Another server that inserts the pack's rows, if it is installed.
struct Peer {
    name: &'static str,
    client: Option<Client>,
    /// Rounds with many calls in flight.
    many: Vec<f64>,
}

impl Peer {
    /// Starts the server over a new database.
    fn start(name: &'static str, command: Option<Command>, dir: &Path, rows: &Path) -> anyhow::Result<Peer> {
        let client = command.map(|mut command| {
            command.arg(dir.join(name).with_extension("db")).arg(rows);
            Client::start(command).with_context(|| format!("the server on {name}"))
        });
        Ok(Peer {
            name,
            client: client.transpose()?,
            many: Vec::new(),
        })
    }

    /// Adds the measured samples to the report, and stops the server.
    fn record(self, report: &mut Report, alone: Sample, tollgate: &Durable) -> anyhow::Result<()> {
        let Some(client) = self.client else {
            return Ok(());
        };
        client.stop()?;
        report.heading(&format!(
            "task_create, durable, against a server on {} and SQLite",
            self.name
        ));
        let many = after_warm_up(self.many);
        let times = Quantity(many.median() / tollgate.many.median(), Unit::Times);
        let faster = Target::at_least("speed", times, OVER_TYPESCRIPT);
        let times = Quantity(tollgate.alone.median() / alone.median(), Unit::Times);
        let no_slower = Target::at_most("takes", times, ALONE_OVER_TYPESCRIPT);
        for (in_flight, peer, own, target) in [
            ("32 in flight", &many, &tollgate.many, faster),
            ("1 in flight", &alone, &tollgate.alone, no_slower),
        ] {
            report.row(
                &format!("{}, {in_flight}", self.name),
                peer,
                Unit::Microseconds,
                peer,
            );
            report.row(&format!("tollgate, {in_flight}"), own, Unit::Microseconds, peer);
            report.add(Figure {
                name: format!("durable task_create, stdio, {in_flight}"),
                value: Quantity(own.median(), Unit::Microseconds),
                baseline: self.name,
                baseline_value: Quantity(peer.median(), Unit::Microseconds),
                target: (self.name == "TypeScript").then_some(target),
            });
        }
        Ok(())
    }
}

/// Microseconds that a flush takes after a write of one page.
fn flush(dir: &Path) -> anyhow::Result<Sample> {
    let mut file = tempfile::tempfile_in(dir).context("a file cannot be made")?;
    let flushes = (0..FLUSHES).map(|_| {
        file.write_all(&[1; 4096])?;
        let started = Instant::now();
        file.sync_data()?;
        Ok(started.elapsed().as_secs_f64() * 1e6)
    });
    Ok(Sample::of(flushes.collect::<anyhow::Result<Vec<f64>>>()?))
}

fn record(report: &mut Report, one_by_one: &Sample, many: &Sample, alone: &Sample) {
    report.heading("task_create, durable, against bare commits of the same rows");
    report.row("bare, one by one", one_by_one, Unit::Microseconds, one_by_one);
    report.row("tollgate, one in flight", alone, Unit::Microseconds, one_by_one);
    report.row("tollgate, 32 in flight", many, Unit::Microseconds, one_by_one);
    let against = |name: &str, sample: &Sample, target: Target| Figure {
        name: name.to_owned(),
        value: Quantity(sample.median(), Unit::Microseconds),
        baseline: "bare",
        baseline_value: Quantity(one_by_one.median(), Unit::Microseconds),
        target: Some(target),
    };
    let times = Quantity(one_by_one.median() / many.median(), Unit::Times);
    let faster = Target::at_least("speed", times, OVER_BARE);
    report.add(against("durable task_create, stdio, 32 in flight", many, faster));
    let times = Quantity(alone.median() / one_by_one.median(), Unit::Times);
    let slower = Target::at_most("takes", times, ALONE);
    report.add(against("durable task_create, stdio, 1 in flight", alone, slower));
}

/// The gate's own part of a write, without a guest.
fn gate_part(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let mut part = GatePart::open(&dir.path().join("gate.db"))?;
    let request = workload::create(0);
    let mut with = || part.round(&request, setup.effort.writes);
    let [sample] = take_turns(setup.effort.rounds, [Box::new(&mut with)])?;
    report.heading("what the gate adds to a write: CPU time, 32 calls in a commit");
    report.row(
        "admission, fingerprint, ledger row",
        &sample,
        Unit::Microseconds,
        &sample,
    );
    let value = Quantity(sample.median(), Unit::Microseconds);
    report.add(Figure {
        name: "the gate's part of a write, CPU time".to_owned(),
        value,
        baseline: "itself",
        baseline_value: value,
        target: Some(Target::at_most("adds", value, GATE_LIMIT)),
    });
    Ok(())
}
