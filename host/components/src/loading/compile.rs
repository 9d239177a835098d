//! Compilation of a component in a child process with limited memory and time.
//!
//! The compiler is less hardened against hostile input than the runtime, so the child process can neither open files
//! or connections nor start programs. Its output is nevertheless trusted: the host loads and runs it.
//!
//! If there is a cache, a keeper process runs between the host and the compiler. The keeper waits for the component's
//! turn, has it compiled and stores the code. The keeper is outside the client's process group and outlives its host,
//! so a client that gives up early finds the code on its next try.

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

/// Hidden subcommand that the child runs.
pub const SUBCOMMAND: &str = "compile-component";
/// Wall-clock limit of the child. Its CPU time has a much lower limit, because a busy machine takes longer.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(600);
/// Wall-clock limit of a keeper, which may have to wait for another.
const KEEPER_TIMEOUT: Duration = Duration::from_secs(1_500);
/// Interval at which a keeper polls.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Most bytes of code that are read from the child.
const MAX_CODE: u64 = 512 << 20;
/// Most bytes of the child's error message.
const MAX_STDERR_BYTES: u64 = 64 << 10;

/// Reason for which a component was not compiled.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The child could not be run.
    #[error("cannot start the compiler")]
    Start(#[source] std::io::Error),
    /// The child took too long.
    #[error("compiling took longer than {} s", COMPILE_TIMEOUT.as_secs())]
    TimedOut,
    /// The code is larger than any entry of the cache.
    #[error("its code has more than {MAX_CODE} bytes")]
    TooLarge,
    /// The compiler refused or died.
    #[error("it does not compile: {0}")]
    Refused(String),
}

/// Runs the child processes that compile.
#[derive(Debug, Clone)]
pub struct Compiler {
    executable: PathBuf,
}

impl Compiler {
    /// Creates a compiler whose children run the given `tollgate` binary.
    pub fn new(executable: PathBuf) -> Compiler {
        Compiler { executable }
    }

    /// Compiles a component for this machine.
    pub(super) async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        let mut command = tokio::process::Command::new(&self.executable);
        command.arg(SUBCOMMAND).kill_on_drop(true);
        run(command, component, COMPILE_TIMEOUT).await
    }

    /// Compiles a component into the cache in a directory. Returns its code if it could not be stored there.
    pub(super) async fn keep(
        &self,
        component: &[u8],
        home: &Path,
        hash: &str,
        settings: &str,
    ) -> Result<Option<Vec<u8>>, CompileError> {
        let mut command = tokio::process::Command::new(&self.executable);
        // Children have another working directory.
        let home = std::path::absolute(home).map_err(CompileError::Start)?;
        command.arg(SUBCOMMAND).arg("--keep-in").arg(home);
        command.args(["--sha256", hash, "--settings", settings]);
        let code = run(command, component, KEEPER_TIMEOUT).await?;
        Ok(Some(code).filter(|code| !code.is_empty()))
    }
}

/// Runs a child to its end and returns its output.
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

/// Sends a child its input and reads its output up to the limits.
async fn talk(child: &mut Child, component: &[u8]) -> std::io::Result<Output> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A child that died early closes the pipe; its exit status says why.
            let _ = stdin.write_all(component).await;
        }
    };
    let (_, stdout, stderr) =
        tokio::join!(feed, taken(stdout, MAX_CODE + 1), taken(stderr, MAX_STDERR_BYTES));
    Ok(Output {
        stdout: stdout?,
        stderr: stderr?,
        status: child.wait().await?,
    })
}

/// Reads the beginning of a stream. Output past the limit finds it closed.
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

/// Runs the child: reads a component from standard input, and writes its code to standard output or stores it.
pub fn run_child(flags: &Flags) -> anyhow::Result<()> {
    if let (Some(home), Some(hash), Some(settings)) = (&flags.keep_in, &flags.sha256, &flags.settings) {
        return keep(home, hash, settings);
    }
    if flags.with_parent {
        set_parent_process_death_signal(Some(Signal::KILL))
            .context("cannot make the compiler end with its parent process")?;
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

/// Runs the keeper. Standard error of the compiler is that of the keeper.
fn keep(home: &Path, hash: &str, settings: &str) -> anyhow::Result<()> {
    // Clients kill their whole process group, and terminals interrupt it.
    let _ = setsid();
    let parent = getppid();
    let component = input()?;
    anyhow::ensure!(
        tollgate_core::hash::sha256_hex(&component) == hash,
        "the component is incomplete"
    );
    let cache = Cache::open(DataDir::existing(home)?)?;
    let is_orphan = || getppid() != parent;
    let Some(turn) = turn(&cache, hash, is_orphan) else {
        // Another process compiles it, and no caller waits here.
        return Ok(());
    };
    if cache.has(hash, settings) {
        cache.end_turn(hash, turn);
        return Ok(());
    }
    // Without a host and without a cache the code has no use.
    let code = compile_alone(&component, || is_orphan() && !home.exists());
    let kept = code.map(|code| (cache.put(hash, settings, &code).is_ok(), code));
    cache.end_turn(hash, turn);
    match kept {
        Ok((true, _)) => Ok(()),
        Ok((false, code)) => Ok(std::io::stdout().lock().write_all(&code)?),
        Err(Some(why)) => Err(why),
        // The child printed the reason itself.
        Err(None) => std::process::exit(2),
    }
}

/// Waits for the lock on a component. `None` if the code of this process is not needed any more.
fn turn(cache: &Cache, hash: &str, is_orphan: impl Fn() -> bool) -> Option<Turn> {
    loop {
        if let Some(turn) = cache.try_turn(hash) {
            return Some(turn);
        }
        if is_orphan() {
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Compiles a component in a child that ends with this process. The error is empty if the child printed the reason.
fn compile_alone(component: &[u8], is_useless: impl Fn() -> bool) -> Result<Vec<u8>, Option<anyhow::Error>> {
    let failed = |err: std::io::Error| Some(anyhow::Error::new(err).context("cannot run the compiler"));
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

/// Waits for a child, and kills it when its time is up or its code is not needed any more. `None` if it was killed.
fn ended(
    child: &mut std::process::Child,
    is_useless: impl Fn() -> bool,
) -> std::io::Result<Option<std::process::ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > COMPILE_TIMEOUT || is_useless() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
