//! Cost of open console pages: CPU time of the host, and slowdown of the calls that the pages show.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::{Setup, config_with_tokens};
use crate::http::{Connection, Server};
use crate::machine;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::Sample;
use crate::workload::{self, Kind, Seeded};

/// Token of the caller, who also opens the console.
const BOB: &str = "bob-0123456789abcdef0123456789abcdef";
/// Number of open pages.
const PAGES: usize = 50;
/// Calls of a round, and the time between two of them: 100 in a second.
const CALLS: usize = 500;
const CALL_INTERVAL: Duration = Duration::from_millis(10);
/// Largest share of a core that the pages may cost, in percent.
const SHARE: f64 = 5.0;
/// Largest ratio of a call's time beside the pages to its time without them.
const SLOWER: f64 = 1.03;

/// One round of calls.
struct Measured {
    /// Share of a core that the host used, in percent.
    share: f64,
    /// Times of the calls in milliseconds.
    times: Vec<f64>,
}

/// Measures calls with and without pages, in turns.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    let dir = setup.fresh_dir()?;
    let server = serve(setup, dir.path(), "")?;
    let mut bob = server.connect(BOB)?;
    let seeded = workload::seed(&mut bob)?;
    round(&server, &mut bob, &seeded)?;
    let (mut shares, mut without, mut beside) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..setup.effort.rounds {
        let alone = round(&server, &mut bob, &seeded)?;
        let pages = Pages::open(&server)?;
        let watched = round(&server, &mut bob, &seeded)?;
        pages.close()?;
        shares.push(watched.share - alone.share);
        without.extend(alone.times);
        beside.extend(watched.times);
    }
    tell(
        report,
        &Sample::of(shares),
        &Sample::of(without),
        &Sample::of(beside),
    );
    Ok(())
}

/// A host on the data directory `data` of a folder, with [`BOB`] as a viewer of its console.
pub(super) fn serve(setup: &Setup, dir: &Path, config: &str) -> anyhow::Result<Server> {
    let more = format!("{config}[server.console]\nenabled = true\nviewers = [\"token:bob\"]\n");
    let config = config_with_tokens(dir, &[("bob", BOB)], &more)?;
    setup.serve(&config, &dir.join("data"))
}

fn tell(report: &mut Report, shares: &Sample, without: &Sample, beside: &Sample) {
    report.text(&format!(
        "\n{PAGES} open live pages of the console at 100 calls a second"
    ));
    let percent = |share| Quantity(share, Unit::Percent);
    report.text(&format!(
        "  CPU time, of one core: {} (from {} to {})",
        percent(shares.median()),
        percent(shares.min()),
        percent(shares.max())
    ));
    report.add(Figure {
        name: format!("CPU time of {PAGES} open pages"),
        value: percent(shares.median()),
        baseline: "target",
        baseline_value: percent(SHARE),
        target: Some(Target::at_most("is", percent(shares.median()), SHARE)),
    });
    for (name, part) in [("median", 0.5), ("p95", 0.95)] {
        let [without, beside] =
            [without, beside].map(|times| Quantity(times.percentile(part), Unit::Milliseconds));
        report.text(&format!("  a call, {name}: {beside}, without pages {without}"));
        report.add(Figure {
            name: format!("a call beside {PAGES} open pages, {name}"),
            value: beside,
            baseline: "without pages",
            baseline_value: without,
            target: Some(Target::at_most("takes", beside, without.0 * SLOWER)),
        });
    }
}

/// Calls at an even pace, half of them reads.
fn round(server: &Server, bob: &mut Connection, seeded: &Seeded) -> anyhow::Result<Measured> {
    let before = machine::processor_seconds(server.process())?;
    let started = Instant::now();
    let mut times = Vec::new();
    for number in 0..CALLS {
        let due = CALL_INTERVAL * u32::try_from(number)?;
        std::thread::sleep(due.saturating_sub(started.elapsed()));
        let kind = if number.is_multiple_of(2) {
            Kind::Get
        } else {
            Kind::Create
        };
        times.push(bob.time(&kind.request(seeded, number))?.as_secs_f64() * 1e3);
    }
    let used = machine::processor_seconds(server.process())? - before;
    Ok(Measured {
        share: used / started.elapsed().as_secs_f64() * 100.0,
        times,
    })
}

/// Open pages that behave like the console's script: a stream of rows, and the other parts whenever they change.
struct Pages(Vec<(TcpStream, JoinHandle<anyhow::Result<()>>)>);

impl Pages {
    fn open(server: &Server) -> anyhow::Result<Pages> {
        let open = |_| {
            let stream = ask(server.address(), "/console/live", "keep-alive")?;
            let (reader, address) = (stream.try_clone()?, server.address().to_owned());
            Ok((stream, std::thread::spawn(move || look(reader, &address))))
        };
        (0..PAGES).map(open).collect::<anyhow::Result<_>>().map(Pages)
    }

    fn close(self) -> anyhow::Result<()> {
        for (stream, reader) in self.0 {
            stream.shutdown(Shutdown::Both)?;
            reader.join().map_err(|_| anyhow::anyhow!("a page panicked"))??;
        }
        Ok(())
    }
}

/// Reads a stream until it is closed.
fn look(stream: TcpStream, address: &str) -> anyhow::Result<()> {
    for line in BufReader::new(stream).lines() {
        // Closing a page breaks its connection.
        let Ok(line) = line else { return Ok(()) };
        anyhow::ensure!(
            !line.starts_with("HTTP/1.1 4"),
            "the console refused a page: {line}"
        );
        if line.starts_with("event: parts") {
            let mut parts = Vec::new();
            ask(address, "/console/parts", "close")?.read_to_end(&mut parts)?;
            anyhow::ensure!(
                parts.starts_with(b"HTTP/1.1 200"),
                "the console refused the parts of a page"
            );
        }
    }
    Ok(())
}

/// Asks for a page.
pub(super) fn ask(address: &str, path: &str, connection: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).context("the server cannot be reached")?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {BOB}\r\nconnection: {connection}\r\n\r\n"
    )?;
    Ok(stream)
}
