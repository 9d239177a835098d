//! The demo: one task from idea to done, driven over MCP through a server that refuses what is not in order.
//!
//! It doubles as a smoke test. Every outcome, refusals included, is expected; the first one that is
//! different ends the demo with exit code 1.

mod actor;
mod answer;
mod connect;
mod console;
mod ledger;
mod server;
mod stage;
mod story;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use tempfile::{NamedTempFile, TempDir};

use console::Console;
use server::Launch;
use stage::Stage;
use story::Story;

/// What the demo changes in the pack's settings: a wait between attempts that is short enough to sit out.
const CONFIG: &str = "[packs.task-store.config.retry]\nbackoff_ms = [2000]\n";

/// Drive one task through a running tollgate and explain what happens.
#[derive(Debug, Parser)]
struct Args {
    /// The tollgate to start
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Where its data goes, and stays [default: a temporary directory, removed at the end]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let console = Console::new();
    match run(&console, Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            console.failure(&err);
            ExitCode::FAILURE
        }
    }
}

async fn run(console: &Console, args: Args) -> anyhow::Result<()> {
    let executable = std::path::absolute(&args.server).context("--server is no path")?;
    anyhow::ensure!(
        executable.is_file(),
        "there is no {}; `cargo xtask build` makes it",
        executable.display()
    );
    let place = TempDir::with_prefix("tollgate-demo-").context("a temporary directory cannot be made")?;
    let mut config = NamedTempFile::with_suffix_in(".toml", &place)?;
    config.write_all(CONFIG.as_bytes())?;
    let launch = Launch {
        executable,
        config: config.path().to_owned(),
        data_dir: args.data_dir.unwrap_or_else(|| place.path().join("data")),
    };
    introduce(console, &launch);

    let earlier = ledger::last_seq(&launch.database())?;
    let stage = Stage::open(console, &launch).await?;
    let seen = Story::new(stage).tell().await?;
    console.scene("The ledger: one row for each call, refused or not");
    let rows = ledger::since(&launch.database(), earlier)?;
    console.lines(&ledger::table(&rows));
    ledger::check(&rows, &seen)?;
    console.say(
        "The rows are as many as the calls above, each with its outcome. A read's row follows its reply, so \
         it may come after the row of a later write. The rows hold hashes of arguments and results, never \
         their content, and triggers keep them from being changed or removed.",
    );
    console.scene("Connect your own client");
    console.lines(&connect::instructions(&launch.executable));
    console.lines("Everything came out as expected.");
    Ok(())
}

fn introduce(console: &Console, launch: &Launch) {
    console
        .lines("One task from idea to done, over MCP, through a server that refuses what is not in order.");
    console.say(&format!(
        "The server is {}, started as a child process the way MCP clients do it. Its data goes to {}. \
         Each call below shows who makes it in which role, the tool, and its arguments, shortened.",
        launch.executable.display(),
        launch.data_dir.display()
    ));
}
