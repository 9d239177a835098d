//! Compiling a component in a child process with little memory and little time.
//!
//! The compiler is not built to withstand hostile input the way the runtime is, so it runs where
//! it can only harm itself.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, setrlimit};
use thiserror::Error;
use tokio::io::AsyncWriteExt as _;
use wasmtime::Engine;

use crate::sandbox;

/// The hidden subcommand that the child runs.
pub const SUBCOMMAND: &str = "compile-component";
/// Address space of the child, in bytes.
const MEMORY: u64 = 4 << 30;
/// Processor time of the child, in seconds.
const CPU_SECONDS: u64 = 120;
/// Wall time of the child.
const TIME: Duration = Duration::from_secs(120);

/// Why a component was not compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The child could not be run.
    #[error("the compiler could not be started")]
    Start(#[source] std::io::Error),
    /// The child took too long.
    #[error("compiling took longer than {} s", TIME.as_secs())]
    TimedOut,
    /// The compiler refused or died.
    #[error("it does not compile: {0}")]
    Refused(String),
}

/// Runs compiling children.
#[derive(Debug, Clone)]
pub struct Compiler {
    executable: PathBuf,
}

impl Compiler {
    /// Children run the given `tollgate` binary.
    pub fn new(executable: PathBuf) -> Compiler {
        Compiler { executable }
    }

    /// Compiles a component to code for this machine.
    pub async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        let mut child = tokio::process::Command::new(&self.executable)
            .arg(SUBCOMMAND)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(CompileError::Start)?;
        let stdin = child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A child that died early closes the pipe; its exit says why.
                let _ = stdin.write_all(component).await;
            }
        };
        let run = async { tokio::join!(feed, child.wait_with_output()).1 };
        let output = tokio::time::timeout(TIME, run)
            .await
            .map_err(|_| CompileError::TimedOut)?
            .map_err(CompileError::Start)?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = crate::text::clean(crate::text::cut(said.trim(), 2_000));
        let why = if said.is_empty() {
            output.status.to_string()
        } else {
            said
        };
        Err(CompileError::Refused(why))
    }
}

/// The child's side: reads a component from standard input, writes its code to standard output.
pub fn run_child() -> anyhow::Result<()> {
    limit(Resource::As, MEMORY).context("cannot limit memory")?;
    limit(Resource::Cpu, CPU_SECONDS).context("cannot limit processor time")?;
    let mut component = Vec::new();
    std::io::stdin().lock().read_to_end(&mut component)?;
    let code = Engine::new(&sandbox::engine_config())
        .and_then(|engine| engine.precompile_component(&component))
        .map_err(|err| anyhow::anyhow!("{err:#}"))?;
    std::io::stdout().lock().write_all(&code)?;
    Ok(())
}

fn limit(resource: Resource, value: u64) -> rustix::io::Result<()> {
    setrlimit(
        resource,
        Rlimit {
            current: Some(value),
            maximum: Some(value),
        },
    )
}
