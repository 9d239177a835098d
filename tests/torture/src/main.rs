//! Torture: several hosts on one database, mixed load, kill -9 at random moments, and a check of the database after each kill. On a
//! PostgreSQL server, the server and the way to it fail as well.

mod check;
mod client;
mod host;
mod known;
mod load;
mod look;
mod place;
mod promise;
mod round;
mod sabotage;
mod server;
mod tally;
mod task;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use tempfile::TempDir;

use place::Place;
use promise::Broken;
use round::Torture;
use server::Server;
use tally::Tally;

/// Kill hosts under load, and check what they promised.
#[derive(Debug, Parser)]
struct Cli {
    /// The tollgate to torture
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Number of times that hosts are killed
    #[arg(long, default_value_t = 200)]
    rounds: u32,
    /// Host processes on one database
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    hosts: u32,
    /// A PostgreSQL server for the databases, which is harmed as well: postgres://USER@IP:PORT/postgres, with a superuser, no password,
    /// and somebody who starts it again
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Data directories that the hosts of one database on a server have among them; without it each has its own
    #[arg(long, requires = "database", value_parser = clap::value_parser!(u32).range(1..))]
    directories: Option<u32>,
    /// Makes the same decisions again; their timing is the machine's
    #[arg(long)]
    seed: Option<u64>,
    /// Break each promise on purpose instead, and see that it is noticed
    #[arg(long)]
    prove: bool,
    /// Make data directories in this one, and leave them behind
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Rounds on one database. An empty one follows, so that first starts are tested as well and checks stay fast.
const ROUNDS_OF_A_DATABASE: u32 = 50;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let seed = cli.seed.unwrap_or_else(|| fastrand::u64(..));
    say(&format!(
        "torture: {} rounds, {} hosts, seed {seed}",
        cli.rounds, cli.hosts
    ));
    let outcome = if cli.prove {
        prove(&cli, seed)
    } else {
        torture(&cli, seed)
    };
    let broken = match outcome {
        Ok(broken) => broken,
        Err(err) => {
            say(&format!("torture: it could not go on: {err:#} (--seed {seed})"));
            return ExitCode::FAILURE;
        }
    };
    if broken.is_empty() {
        return ExitCode::SUCCESS;
    }
    for broken in &broken {
        say(&format!("BROKEN {broken}"));
    }
    say(&format!(
        "{} broken promises; again with --seed {seed}",
        broken.len()
    ));
    ExitCode::FAILURE
}

/// Runs all rounds, up to the first broken promise.
fn torture(cli: &Cli, seed: u64) -> anyhow::Result<Vec<Broken>> {
    let mut left = cli.rounds;
    let mut total = Tally::default();
    for number in 0.. {
        let rounds = left.min(ROUNDS_OF_A_DATABASE);
        if rounds == 0 {
            break;
        }
        let scratch = Scratch::new(cli)?;
        let seed = seed.wrapping_add(number);
        let (broken, tally) = on_one_database(cli, &scratch, rounds, seed)?;
        left -= rounds;
        total += tally;
        say(&format!(
            "{} of {} rounds: {total}, {} broken promises",
            cli.rounds - left,
            cli.rounds,
            broken.len()
        ));
        if !broken.is_empty() {
            return Ok(broken);
        }
    }
    Ok(Vec::new())
}

/// Fewest and most rounds before the sabotage, which needs data to break.
const ROUNDS_BEFORE_SABOTAGE: (u32, u32) = (3, 50);

/// Breaks each promise, and fails if a break is not detected.
fn prove(cli: &Cli, seed: u64) -> anyhow::Result<Vec<Broken>> {
    let first = Scratch::new(cli)?;
    let compiled = first.place()?;
    // All databases share the components, so one run compiles them for all.
    Torture::start(&cli.server, compiled.clone(), 1, seed)?.finish()?;
    let fitting = sabotage::ALL
        .iter()
        .filter(|sabotage| sabotage.fits(&compiled.database));
    let mut noticed_all = 0;
    for sabotage in fitting {
        let scratch = Scratch::new(cli)?;
        let place = scratch.place()?;
        place.take_compiled(&compiled)?;
        let mut torture = Torture::start(&cli.server, place, cli.hosts, seed)?;
        let (fewest, most) = ROUNDS_BEFORE_SABOTAGE;
        for round in 1..=most {
            let broken = torture.round(round)?;
            if !broken.is_empty() {
                return Ok(broken);
            }
            if round >= fewest && torture.has_data()? {
                break;
            }
        }
        let noticed = torture.finish_after(sabotage)?;
        let named = noticed.iter().find(|broken| broken.promise() == sabotage.promise);
        let named = named.with_context(|| format!("nobody noticed that {}: {noticed:?}", sabotage.what))?;
        say(&format!("noticed: {}; {named}", sabotage.what));
        noticed_all += 1;
    }
    say(&format!("{noticed_all} promises broken on purpose, all noticed"));
    Ok(Vec::new())
}

/// Directory and database of one run. Both are removed with it, unless they are kept.
struct Scratch {
    dir: TempDir,
    server: Option<(Server, u32)>,
    /// Server that has the database, and the database's name.
    made: Option<(Server, String)>,
}

impl Scratch {
    fn new(cli: &Cli) -> anyhow::Result<Scratch> {
        let mut dir = tempfile::Builder::new();
        dir.prefix("tollgate-torture-")
            .disable_cleanup(cli.keep.is_some());
        let dir = match &cli.keep {
            Some(keep) => dir.tempdir_in(keep),
            None => dir.tempdir(),
        };
        let mut scratch = Scratch {
            dir: dir.context("there is no place for a data directory")?,
            server: None,
            made: None,
        };
        if let Some(url) = &cli.database {
            let server = Server::from_url(url)?;
            let name = format!("torture_{:016x}", fastrand::u64(..));
            scratch.server = Some((server.new_database(&name)?, cli.directories.unwrap_or(cli.hosts)));
            scratch.made = Some((server, name)).filter(|_| cli.keep.is_none());
        }
        Ok(scratch)
    }

    fn place(&self) -> anyhow::Result<Place> {
        Place::new(self.dir.path(), self.server.clone())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some((server, name)) = &self.made
            && let Err(err) = server.drop_database(name)
        {
            say(&format!("torture: the database {name} is left behind: {err:#}"));
        }
    }
}

fn on_one_database(
    cli: &Cli,
    scratch: &Scratch,
    rounds: u32,
    seed: u64,
) -> anyhow::Result<(Vec<Broken>, Tally)> {
    let mut torture = Torture::start(&cli.server, scratch.place()?, cli.hosts, seed)?;
    let mut broken = Vec::new();
    for round in 1..=rounds {
        broken = torture.round(round)?;
        if !broken.is_empty() {
            break;
        }
    }
    if broken.is_empty() {
        broken = torture.finish()?;
    }
    Ok((broken, torture.tally()))
}

/// Prints a line. A closed standard output is not an error.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
