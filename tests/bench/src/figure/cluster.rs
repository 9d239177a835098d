//! Hosts on a PostgreSQL database: a call compared with a call on a database file, and ten distant hosts compared with
//! one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use proxy::Proxy;
use serde_json::json;

use super::{Setup, per_call};
use crate::client::Client;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::{Round, take_turns};
use crate::workload::{self, Kind, Request};

/// Number of hosts in the larger round.
const HOSTS: usize = 10;
/// Simulated round-trip time to the server.
const TRIP: Duration = Duration::from_millis(20);
/// Concurrent calls of each host.
const IN_FLIGHT: usize = 4;
/// Calls of each host in a round.
const CALLS: usize = 12;
/// Minimum ratio of the calls of ten hosts to those of one.
const LEAST: f64 = 6.0;
/// Maximum ratio of a call's time on a server of this machine to that on a file.
const OVER_FILE: f64 = 3.0;

/// Measures the cost and the benefit of a server.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let Some(url) = setup.postgres() else {
        report.text("\nhosts on one PostgreSQL database: there is no server: skipped");
        return Ok(());
    };
    beside_file(setup, url, report)?;
    many(setup, url, report)
}

/// Measures a writing call, one at a time, in turns on a server of this machine and on a file.
fn beside_file(setup: &Setup, url: &str, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let joint = if url.contains('?') { '&' } else { '?' };
    let mut on_server = setup.tollgate(&dir.path().join("server"));
    on_server.env("TOLLGATE_DATABASE", format!("{url}{joint}schema=bench_single"));
    let mut on_server = Client::start(on_server)?;
    let mut on_file = Client::start(setup.tollgate(&dir.path().join("file")))?;
    let tasks = [workload::seed(&mut on_file)?, workload::seed(&mut on_server)?];
    let requests = tasks.map(|tasks| super::requests(Kind::Create, &tasks, &setup.effort));
    let [file, server] = {
        let calls = |client: &mut Client, requests: &[Request]| -> anyhow::Result<f64> {
            Ok(per_call(client.run(requests, 1)?, requests.len()))
        };
        let file: Round<'_> = Box::new(|| calls(&mut on_file, &requests[0]));
        let server: Round<'_> = Box::new(|| calls(&mut on_server, &requests[1]));
        take_turns(setup.effort.rounds, [file, server])?
    };
    on_server.stop()?;
    on_file.stop()?;
    let (file, server) = (
        Quantity(file.median(), Unit::Microseconds),
        Quantity(server.median(), Unit::Microseconds),
    );
    report.text(&format!(
        "\na call that writes, one at a time: {server} with PostgreSQL on this machine, {file} with a file"
    ));
    report.add(Figure {
        name: "task_create on PostgreSQL of this machine".to_owned(),
        value: server,
        baseline: "on a file",
        baseline_value: file,
        target: Some(Target::at_most("takes", server, file.0 * OVER_FILE)),
    });
    Ok(())
}

/// Measures calls about a separate workspace of each host: one host with the database to itself, then ten.
fn many(setup: &Setup, url: &str, report: &mut Report) -> anyhow::Result<()> {
    let server = address(url)?;
    let proxy = Proxy::to(server, b"")?;
    let far = url.replace(&server.to_string(), &proxy.address().to_string());
    let dir = setup.fresh_dir()?;
    let host = |number: usize| -> anyhow::Result<Client> {
        let mut command = setup.tollgate(&dir.path().join(number.to_string()));
        command.args(["--tier", "full"]).env("TOLLGATE_DATABASE", &far);
        Client::start(command)
    };
    let mut hosts = vec![host(0)?];
    // Warms up plans and caches.
    hosts[0].run(&requests(0, 0), 1)?;
    proxy.delay(TRIP / 2);
    let alone = rate(&mut hosts, 1)?;
    proxy.delay(Duration::ZERO);
    for number in 1..HOSTS {
        hosts.push(host(number)?);
    }
    for (number, host) in hosts.iter_mut().enumerate() {
        host.run(&requests(number, 1), 1)?;
    }
    proxy.delay(TRIP / 2);
    let together = rate(&mut hosts, 2)?;
    proxy.delay(Duration::ZERO);
    for host in hosts {
        host.stop()?;
    }
    let ratio = together / alone;
    let [alone, together] = [alone, together].map(|rate| Quantity(1e3 / rate, Unit::Milliseconds));
    report.text(&format!(
        "\ncalls of hosts with one PostgreSQL database {} ms away, each about its own workspace, {IN_FLIGHT} in flight\n  \
         one host ends one each {alone}, {HOSTS} hosts one each {together}: {ratio:.1} times as many",
        TRIP.as_millis()
    ));
    report.add(Figure {
        name: format!("time between two calls of {HOSTS} hosts"),
        value: together,
        baseline: "one host",
        baseline_value: alone,
        target: Some(Target::at_most("takes", together, alone.0 / LEAST)),
    });
    Ok(())
}

/// Calls a second, over all hosts.
fn rate(hosts: &mut [Client], round: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let count = hosts.len();
    std::thread::scope(|scope| {
        let running: Vec<_> = hosts
            .iter_mut()
            .enumerate()
            .map(|(number, host)| scope.spawn(move || host.run(&requests(number, round), IN_FLIGHT)))
            .collect();
        running.into_iter().try_for_each(|host| {
            let ran = host.join().map_err(|_| anyhow::anyhow!("a client panicked"))?;
            ran.map(drop)
        })
    })?;
    #[allow(clippy::cast_precision_loss, reason = "some hundred calls")]
    Ok((count * CALLS) as f64 / began.elapsed().as_secs_f64())
}

fn requests(host: usize, round: usize) -> Vec<Request> {
    let request = |number: usize| Request {
        tool: "tasks_create",
        arguments: json!({"workspace": format!("host-{host}"), "title": format!("Plan {round}.{number}")}),
    };
    (0..CALLS).map(request).collect()
}

/// Address of a server, from its URL.
fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let (_, rest) = url.split_once("://").context("the URL has no scheme")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let address = authority.rsplit('@').next().unwrap_or_default();
    address.parse().context("the URL has no address and port")
}
