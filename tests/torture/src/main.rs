//! Torture: several hosts on one data directory, mixed load, kill -9 at random moments, and a check of the database
//! after each kill.

mod check;
mod client;
mod host;
mod known;
mod load;
mod place;
mod promise;
mod round;
mod sabotage;
mod task;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use tempfile::TempDir;

use place::Place;
use promise::Broken;
use round::Torture;

/// Kill hosts under load, and check what they promised.
#[derive(Debug, Parser)]
struct Cli {
    /// The tollgate to torture
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Number of times that hosts are killed
    #[arg(long, default_value_t = 200)]
    rounds: u32,
    /// Host processes on one data directory
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    hosts: u32,
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

/// Rounds on one data directory. An empty one follows, so that first starts are tested as well and checks stay fast.
const ROUNDS_OF_A_DIRECTORY: u32 = 50;

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
    let (mut killed, mut checked) = (0, 0);
    for number in 0.. {
        let rounds = left.min(ROUNDS_OF_A_DIRECTORY);
        if rounds == 0 {
            break;
        }
        let dir = directory(cli)?;
        let seed = seed.wrapping_add(number);
        let (broken, more_killed, more_checked) = on_one_directory(cli, dir.path(), rounds, seed)?;
        left -= rounds;
        killed += more_killed;
        checked += more_checked;
        say(&format!(
            "{} of {} rounds: {killed} hosts killed, {checked} replies checked, {} broken promises",
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

/// Rounds before the sabotage, which needs data to break.
const ROUNDS_BEFORE_SABOTAGE: u32 = 3;

/// Breaks each promise, and fails if a break is not detected.
fn prove(cli: &Cli, seed: u64) -> anyhow::Result<Vec<Broken>> {
    let first = directory(cli)?;
    let compiled = Place::new(first.path())?;
    // Components are the same for all, and one look at their data compiles them.
    Torture::start(&cli.server, compiled.clone(), 1, seed)?.finish()?;
    for sabotage in sabotage::ALL {
        let dir = directory(cli)?;
        let place = Place::new(dir.path())?;
        place.take_compiled(&compiled)?;
        let mut torture = Torture::start(&cli.server, place, cli.hosts, seed)?;
        for round in 1..=ROUNDS_BEFORE_SABOTAGE {
            let broken = torture.round(round)?;
            if !broken.is_empty() {
                return Ok(broken);
            }
        }
        let noticed = torture.finish_after(sabotage)?;
        let named = noticed.iter().find(|broken| broken.promise() == sabotage.promise);
        let named = named.with_context(|| format!("nobody noticed that {}: {noticed:?}", sabotage.what))?;
        say(&format!("noticed: {}; {named}", sabotage.what));
    }
    say(&format!(
        "{} promises broken on purpose, all noticed",
        sabotage::ALL.len()
    ));
    Ok(Vec::new())
}

/// Data directory of one run.
fn directory(cli: &Cli) -> anyhow::Result<TempDir> {
    let mut dir = tempfile::Builder::new();
    dir.prefix("tollgate-torture-")
        .disable_cleanup(cli.keep.is_some());
    let dir = match &cli.keep {
        Some(keep) => dir.tempdir_in(keep),
        None => dir.tempdir(),
    };
    dir.context("there is no place for a data directory")
}

fn on_one_directory(
    cli: &Cli,
    dir: &Path,
    rounds: u32,
    seed: u64,
) -> anyhow::Result<(Vec<Broken>, u64, usize)> {
    let mut torture = Torture::start(&cli.server, Place::new(dir)?, cli.hosts, seed)?;
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
    let (killed, checked) = torture.tally();
    Ok((broken, killed, checked))
}

/// Prints a line. A closed standard output is not an error.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
