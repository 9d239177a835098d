//! Compiling a component in a child process with little memory and little time.
//!
//! The compiler is not built to withstand hostile input the way the runtime is, so it runs where it can neither open
//! a file or a connection nor start anything. What it returns is trusted all the same: the host loads and runs it.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use wasmtime::Engine;

use super::confine;
use crate::process::children;
use crate::sandbox;

/// The hidden subcommand that the child runs.
pub const SUBCOMMAND: &str = "compile-component";
/// Wall time of the child.
const TIME: Duration = Duration::from_secs(120);
/// Most bytes of code that are taken from the child.
const MAX_CODE: u64 = 512 << 20;
/// Most bytes of what it says of its failure.
const MAX_SAID: u64 = 64 << 10;

/// Why a component was not compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The child could not be run.
    #[error("the compiler could not be started")]
    Start(#[source] std::io::Error),
    /// The child took too long.
    #[error("compiling took longer than {} s", TIME.as_secs())]
    TimedOut,
    /// The code is larger than any entry of the cache.
    #[error("its code has more than {MAX_CODE} bytes")]
    TooLarge,
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
        let mut command = tokio::process::Command::new(&self.executable);
        command
            .arg(SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let (mut child, _started) =
            children::start(|| command.spawn(), Child::id).map_err(CompileError::Start)?;
        let ended = tokio::time::timeout(TIME, talk(&mut child, component)).await;
        let output = ended
            .map_err(|_| CompileError::TimedOut)?
            .map_err(CompileError::Start)?;
        if output.stdout.len() as u64 > MAX_CODE {
            return Err(CompileError::TooLarge);
        }
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

/// Gives a child its input and takes what it says, of which there may be only so much.
async fn talk(child: &mut Child, component: &[u8]) -> std::io::Result<Output> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A child that died early closes the pipe; its exit says why.
            let _ = stdin.write_all(component).await;
        }
    };
    let (_, stdout, stderr) = tokio::join!(feed, taken(stdout, MAX_CODE + 1), taken(stderr, MAX_SAID));
    Ok(Output {
        stdout: stdout?,
        stderr: stderr?,
        status: child.wait().await?,
    })
}

/// The beginning of what a stream holds. Who says more finds it closed.
async fn taken(stream: Option<impl AsyncRead + Unpin>, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    if let Some(stream) = stream {
        stream.take(limit).read_to_end(&mut all).await?;
    }
    Ok(all)
}

/// The child's side: reads a component from standard input, writes its code to standard output.
pub fn run_child() -> anyhow::Result<()> {
    confine::limit()?;
    let mut component = Vec::new();
    std::io::stdin().lock().read_to_end(&mut component)?;
    let engine = Engine::new(&sandbox::engine_config()).map_err(|err| anyhow::anyhow!("{err:#}"))?;
    confine::confine()?;
    let code = engine
        .precompile_component(&component)
        .map_err(|err| anyhow::anyhow!("{err:#}"))?;
    std::io::stdout().lock().write_all(&code)?;
    Ok(())
}
