//! The demo: one task from idea to done, then a planner that is stopped by its envelope, over MCP.
//!
//! The demo is also a smoke test. Every outcome is expected, including refusals. The first difference ends the demo
//! with exit code 1.

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

/// Operator's configuration: a short wait between attempts, and a policy.
const CONFIG: &str = r#"[packs.task-store.config.retry]
backoff_ms = [2000]

[policies.no-giving-up]
source = "builtin:cel"
tools = ["task_transition"]
config = { when = "arguments.to_phase == 'failed'", code = "GIVING_UP", message = "agents may not move a task to failed", remediation = "Try again, or ask a person." }
"#;

/// Drive one task through a running tollgate and explain what happens.
#[derive(Debug, Parser)]
struct Args {
    /// The tollgate to start
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// Data directory, kept after the demo [default: a temporary directory, removed at the end]
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
    let executable = std::path::absolute(&args.server).context("--server is not a path")?;
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
        "There is one row for each call above, with its outcome. The row of a read follows its reply, so it may \
         come after the row of a later write. Rows hold hashes of arguments and results, never their content. \
         Triggers keep rows from being changed or removed.",
    );
    console.scene("The report: what happened in the envelope");
    console.say("The operator asks the data directory, with `tollgate ledger report`:");
    console.lines(&launch.run(&["ledger", "report"], "its mutations were used up")?);
    console.say("And `tollgate ledger verify` follows the hashes from row to row:");
    console.lines(&launch.run(&["ledger", "verify"], "rows verified")?);
    console.scene("Get it, and connect your own client");
    console.lines(&connect::instructions(&launch.executable));
    console.lines("Everything came out as expected.");
    Ok(())
}

fn introduce(console: &Console, launch: &Launch) {
    console
        .lines("One task from idea to done, over MCP, through a server that refuses what is not in order.");
    console.say(&format!(
        "The server is {}, started as a child process, as MCP clients do. Its data goes to {}. Each call below \
         shows the caller and its role, the tool, and the arguments, shortened. This is the operator's configuration:",
        launch.executable.display(),
        launch.data_dir.display()
    ));
    console.lines(&format!("\n{}", CONFIG.trim_end()));
}
