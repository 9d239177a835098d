//! Compiling a component in a child process with little memory and little time.
//!
//! The compiler is not built to withstand hostile input the way the runtime is, so it runs where it can neither open
//! a file or a connection nor start anything. What it returns is trusted all the same: the host loads and runs it.
//!
//! Where there is a cache, a keeper stands between the two: a process that waits for the component's turn, has it
//! compiled and keeps the code. It is in no group of a client's and outlives its host, so that a client that gives up
//! early finds the code at its next try.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Signal, getppid, set_parent_process_death_signal, setsid};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;
use tollgate_sandbox::process::children;
use tollgate_store::data_dir::DataDir;
use wasmtime::Engine;

use super::cache::{Cache, Turn};
use super::confine;

/// The hidden subcommand that the child runs.
pub const SUBCOMMAND: &str = "compile-component";
/// Wall time of the child. Its processor time is limited as well, and much lower: a busy machine takes longer.
const TIME: Duration = Duration::from_secs(600);
/// Wall time of a keeper, which may have to wait for another.
const KEEPER_TIME: Duration = Duration::from_secs(1_500);
/// Time between two looks of a keeper at what it waits for.
const PAUSE: Duration = Duration::from_millis(20);
/// Most bytes of code that are taken from the child.
const MAX_CODE: u64 = 512 << 20;
/// Most bytes of what it says of its failure.
const MAX_SAID: u64 = 64 << 10;

/// Reason why a component was not compiled.
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
    pub(super) async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        let mut command = tokio::process::Command::new(&self.executable);
        command.arg(SUBCOMMAND).kill_on_drop(true);
        run(command, component, TIME).await
    }

    /// Compiles a component into the cache in a directory. Returns its code if it could not be kept there.
    pub(super) async fn keep(
        &self,
        component: &[u8],
        home: &Path,
        hash: &str,
        settings: &str,
    ) -> Result<Option<Vec<u8>>, CompileError> {
        let mut command = tokio::process::Command::new(&self.executable);
        // Children work elsewhere.
        let home = std::path::absolute(home).map_err(CompileError::Start)?;
        command.arg(SUBCOMMAND).arg("--keep-in").arg(home);
        command.args(["--sha256", hash, "--settings", settings]);
        let code = run(command, component, KEEPER_TIME).await?;
        Ok(Some(code).filter(|code| !code.is_empty()))
    }
}

/// Runs a child to its end and returns what it printed.
async fn run(
    mut command: tokio::process::Command,
    component: &[u8],
    time: Duration,
) -> Result<Vec<u8>, CompileError> {
    command
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut child, _started) =
        children::start(|| command.spawn(), Child::id).map_err(CompileError::Start)?;
    let ended = tokio::time::timeout(time, talk(&mut child, component)).await;
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
    let said = tollgate_core::text::clean(tollgate_core::text::cut(said.trim(), 2_000));
    let why = if said.is_empty() {
        output.status.to_string()
    } else {
        said
    };
    Err(CompileError::Refused(why))
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

/// Flags of a child.
#[derive(Debug, clap::Args)]
pub struct Flags {
    /// Keep the code in the cache of this directory
    #[arg(long, requires = "sha256", requires = "settings")]
    keep_in: Option<PathBuf>,
    /// SHA-256 of the component
    #[arg(long)]
    sha256: Option<String>,
    /// Target and settings of the code
    #[arg(long)]
    settings: Option<String>,
    /// End when the parent does
    #[arg(long)]
    with_parent: bool,
}

/// The child's side: reads a component from standard input, writes its code to standard output or keeps it.
pub fn run_child(flags: &Flags) -> anyhow::Result<()> {
    if let (Some(home), Some(hash), Some(settings)) = (&flags.keep_in, &flags.sha256, &flags.settings) {
        return keep(home, hash, settings);
    }
    if flags.with_parent {
        set_parent_process_death_signal(Some(Signal::KILL)).context("cannot end with its parent")?;
    }
    confine::limit()?;
    let component = input()?;
    let engine = Engine::new(&tollgate_sandbox::engine_config()).map_err(|err| anyhow::anyhow!("{err:#}"))?;
    confine::confine()?;
    let code = engine
        .precompile_component(&component)
        .map_err(|err| anyhow::anyhow!("{err:#}"))?;
    std::io::stdout().lock().write_all(&code)?;
    Ok(())
}

fn input() -> std::io::Result<Vec<u8>> {
    let mut component = Vec::new();
    std::io::stdin().lock().read_to_end(&mut component)?;
    Ok(component)
}

/// The keeper's side. What the compiler says on standard error goes where the keeper's own goes.
fn keep(home: &Path, hash: &str, settings: &str) -> anyhow::Result<()> {
    // Clients end all of a group, and terminals interrupt it.
    let _ = setsid();
    let parent = getppid();
    let component = input()?;
    anyhow::ensure!(
        tollgate_core::hash::sha256_hex(&component) == hash,
        "the component is not whole"
    );
    let cache = Cache::open(DataDir::existing(home)?)?;
    let is_orphan = || getppid() != parent;
    let Some(turn) = turn(&cache, hash, is_orphan) else {
        // Somebody else compiles it, and nobody waits here.
        return Ok(());
    };
    if cache.has(hash, settings) {
        cache.end_turn(hash, turn);
        return Ok(());
    }
    // Without a host and without a cache the code is of no use.
    let code = compile_alone(&component, || is_orphan() && !home.exists());
    let kept = code.map(|code| (cache.put(hash, settings, &code).is_ok(), code));
    cache.end_turn(hash, turn);
    match kept {
        Ok((true, _)) => Ok(()),
        Ok((false, code)) => Ok(std::io::stdout().lock().write_all(&code)?),
        Err(Some(why)) => Err(why),
        // It said why itself.
        Err(None) => std::process::exit(2),
    }
}

/// Waits for a component's turn. `None` if nobody wants the code of this process any more.
fn turn(cache: &Cache, hash: &str, is_orphan: impl Fn() -> bool) -> Option<Turn> {
    loop {
        if let Some(turn) = cache.try_turn(hash) {
            return Some(turn);
        }
        if is_orphan() {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Compiles a component in a child that ends with this process. The error is empty if the child said what it is.
fn compile_alone(component: &[u8], is_useless: impl Fn() -> bool) -> Result<Vec<u8>, Option<anyhow::Error>> {
    let failed = |err: std::io::Error| Some(anyhow::Error::new(err).context("the compiler could not be run"));
    let mut child = std::process::Command::new(std::env::current_exe().map_err(failed)?)
        .args([SUBCOMMAND, "--with-parent"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (code, status) = std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(component)));
        let reading = scope.spawn(move || {
            let mut code = Vec::new();
            let read = stdout.map(|stdout| stdout.take(MAX_CODE + 1).read_to_end(&mut code));
            read.transpose().map(|_| code)
        });
        let status = ended(&mut child, is_useless);
        let code = reading.join();
        (
            code.unwrap_or_else(|_| Err(std::io::Error::other("the reader failed"))),
            status,
        )
    });
    match status.map_err(failed)? {
        None => Err(Some(CompileError::TimedOut.into())),
        Some(status) if !status.success() => Err(None),
        Some(_) => {
            let code = code.map_err(failed)?;
            let is_right = !code.is_empty() && code.len() as u64 <= MAX_CODE;
            is_right
                .then_some(code)
                .ok_or(Some(CompileError::TooLarge.into()))
        }
    }
}

/// Waits for a child, and kills it when its time is over or it is of no use. `None` if it was killed.
fn ended(
    child: &mut std::process::Child,
    is_useless: impl Fn() -> bool,
) -> std::io::Result<Option<std::process::ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > TIME || is_useless() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}
