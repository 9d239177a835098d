//! The benchmark: cost of the gate, with each figure compared to a baseline measured in the same run.
//!
//! Targets are for orientation. A figure that misses its target is only marked. The benchmark fails only if a call or a
//! server fails.

mod baseline;
mod client;
mod figure;
mod gate_part;
mod http;
mod machine;
mod native;
mod page;
mod report;
mod rows;
mod sample;
mod workload;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand, ValueEnum};

use figure::{Effort, Peers, Setup};
use report::Report;

/// Measure what the gate costs.
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    measure: Option<Measure>,
    #[command(subcommand)]
    server: Option<Server>,
}

#[derive(Debug, Args)]
struct Measure {
    /// The tollgate to measure, a release build
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Folder of the TypeScript server to compare with; omit it to skip that comparison
    #[arg(long, value_name = "DIR")]
    typescript: Option<PathBuf>,
    /// Folder of components that misbehave; omit it to skip the figures of their neighbours
    #[arg(long, value_name = "DIR")]
    guests: Option<PathBuf>,
    /// Folder of the FastMCP server to compare with; omit it to skip that comparison
    #[arg(long, value_name = "DIR")]
    fastmcp: Option<PathBuf>,
    /// PostgreSQL database for hosts; omit it to skip the figures of several hosts
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    /// Write everything into this Markdown file as well, with charts beside it
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Fewer and shorter rounds
    #[arg(long)]
    quick: bool,
    /// Folder for databases; the cost of a commit depends on its disk [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Measure only these
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
}

/// Figures that can be measured separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    InProcess,
    Stdio,
    Durable,
    Start,
    Reload,
    List,
    Memory,
    Ledger,
    Scale,
    Policy,
    Repository,
    Look,
    Neighbour,
    Fairness,
    Idle,
    Console,
    ConsolePages,
    Tasks,
    Cluster,
}

impl Part {
    fn measure(self, setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
        match self {
            Part::InProcess => figure::in_process::measure(setup, report),
            Part::Stdio => figure::stdio::measure(setup, report),
            Part::Durable => figure::durable::measure(setup, report),
            Part::Start => figure::start::measure(setup, report),
            Part::Reload => figure::reload::measure(setup, report),
            Part::List => figure::list::measure(setup, report),
            Part::Memory => figure::memory::measure(setup, report),
            Part::Ledger => figure::ledger::measure(setup, report),
            Part::Scale => figure::scale::measure(setup, report),
            Part::Policy => figure::policy::measure(setup, report),
            Part::Repository => figure::repository::measure(setup, report),
            Part::Look => figure::look::measure(setup, report),
            Part::Neighbour => figure::neighbour::measure(setup, report),
            Part::Fairness => figure::fairness::measure(setup, report),
            Part::Idle => figure::idle::measure(setup, report),
            Part::Console => figure::console::measure(setup, report),
            Part::ConsolePages => figure::console_pages::measure(setup, report),
            Part::Tasks => figure::tasks::measure(setup, report),
            Part::Cluster => figure::cluster::measure(setup, report),
        }
    }
}

/// The servers that tollgate is compared with. The bench starts them itself.
#[derive(Debug, Subcommand)]
enum Server {
    /// Serve the same tools natively, without gate, sandbox or ledger
    PlainServer {
        /// A database that does not exist yet
        #[arg(long, value_name = "FILE")]
        db: PathBuf,
    },
    /// Serve constant replies
    NullServer {
        /// A JSON object with the reply for each task and tool
        #[arg(long, value_name = "JSON")]
        replies: String,
    },
}

fn main() -> ExitCode {
    // The benchmark also opens databases itself.
    if let Err(err) = tollgate_store::storage::prepare() {
        let _ = writeln!(std::io::stderr().lock(), "bench: {err}");
        return ExitCode::FAILURE;
    }
    let result = match Cli::parse() {
        Cli {
            server: Some(Server::PlainServer { db }),
            ..
        } => baseline::serve_plain(&db),
        Cli {
            server: Some(Server::NullServer { replies }),
            ..
        } => baseline::serve_null(&replies),
        Cli {
            measure: Some(measure),
            ..
        } => run(&measure),
        Cli { .. } => Err(anyhow::anyhow!(
            "say which server to measure: --server target/release/tollgate"
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            let _ = writeln!(std::io::stderr().lock(), "bench: {err:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(measure: &Measure) -> anyhow::Result<()> {
    let executable = std::path::absolute(&measure.server).context("--server is no path")?;
    anyhow::ensure!(executable.is_file(), "there is no {}", executable.display());
    let effort = if measure.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    // Configurations in other folders refer to its files.
    let guests = measure.guests.as_ref().map(std::path::absolute).transpose()?;
    let setup = Setup::new(
        executable,
        Peers {
            typescript: measure.typescript.clone(),
            fastmcp: measure.fastmcp.clone(),
        },
        guests,
        measure.postgres.clone(),
        measure.dir.as_deref(),
        effort,
    )?;
    let mut report = Report::new();
    report.text(&machine::describe());
    report.text(&format!(
        "{effort}; medians with the smallest and the largest round"
    ));
    for part in Part::value_variants() {
        if measure.only.is_empty() || measure.only.contains(part) {
            part.measure(&setup, &mut report)?;
        }
    }
    report.summary();
    match &measure.report {
        Some(file) => page::write(&report, file),
        None => Ok(()),
    }
}
