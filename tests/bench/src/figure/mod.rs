//! The figures, and code that they share.

pub(crate) mod cluster;
pub(crate) mod console;
pub(crate) mod console_pages;
pub(crate) mod durable;
pub(crate) mod fairness;
pub(crate) mod idle;
pub(crate) mod in_process;
pub(crate) mod ledger;
pub(crate) mod list;
pub(crate) mod look;
pub(crate) mod memory;
pub(crate) mod neighbour;
pub(crate) mod policy;
pub(crate) mod reload;
pub(crate) mod repository;
pub(crate) mod scale;
pub(crate) mod start;
pub(crate) mod stdio;
pub(crate) mod tasks;

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::http::Server;
use crate::workload::{CONFIG_FILE, Kind, Request, Seeded};

/// Packs for the figures of start and memory: the pack that the calls use, and all packs.
const PACKS: [(&str, &[&str]); 2] = [("one pack", &["--packs", "task-store"]), ("all packs", &[])];

/// Amount of measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    name: &'static str,
    rounds: usize,
    /// Reads of one round.
    reads: usize,
    /// Writes of one round.
    writes: usize,
    warm_starts: usize,
    cold_starts: usize,
}

impl Effort {
    pub(crate) const FULL: Effort = Effort {
        name: "full",
        rounds: 9,
        reads: 2_000,
        writes: 300,
        warm_starts: 15,
        cold_starts: 5,
    };
    pub(crate) const QUICK: Effort = Effort {
        name: "quick",
        rounds: 3,
        reads: 500,
        writes: 100,
        warm_starts: 5,
        cold_starts: 2,
    };
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Effort {
            name,
            rounds,
            reads,
            writes,
            ..
        } = self;
        write!(
            f,
            "{name} run: {rounds} rounds of {reads} reads and {writes} writes"
        )
    }
}

/// Folders of other servers, if they are installed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peers {
    /// A folder with `server.mjs` and its modules.
    pub(crate) typescript: Option<PathBuf>,
    /// A virtual environment of Python with `server.py` in it.
    pub(crate) fastmcp: Option<PathBuf>,
}

/// Shared inputs of all figures.
pub(crate) struct Setup {
    executable: PathBuf,
    peers: Peers,
    /// Folder of components that misbehave, if they were built.
    guests: Option<PathBuf>,
    /// URL of a database on a PostgreSQL server, if there is one.
    postgres: Option<String>,
    place: TempDir,
    config: NamedTempFile,
    effort: Effort,
}

impl Setup {
    pub(crate) fn new(
        executable: PathBuf,
        peers: Peers,
        guests: Option<PathBuf>,
        postgres: Option<String>,
        dir: Option<&Path>,
        effort: Effort,
    ) -> anyhow::Result<Setup> {
        let place = match dir {
            Some(dir) => TempDir::with_prefix_in("tollgate-bench-", dir),
            None => TempDir::with_prefix("tollgate-bench-"),
        };
        let place = place.context("there is no place for databases")?;
        let mut config = NamedTempFile::with_suffix_in(".toml", &place)?;
        config.write_all(CONFIG_FILE.as_bytes())?;
        Ok(Setup {
            executable,
            peers,
            guests,
            postgres,
            place,
            config,
            effort,
        })
    }

    /// An empty directory for one measurement.
    fn fresh_dir(&self) -> anyhow::Result<TempDir> {
        TempDir::new_in(&self.place).context("a directory cannot be made")
    }

    /// URL of a database on a PostgreSQL server, if there is one.
    fn postgres(&self) -> Option<&str> {
        self.postgres.as_deref()
    }

    /// Command that starts tollgate.
    fn tollgate(&self, data_dir: &Path) -> Command {
        self.tollgate_with(self.config.path(), data_dir)
    }

    /// Command that starts tollgate with another configuration.
    fn tollgate_with(&self, config: &Path, data_dir: &Path) -> Command {
        let mut command = Command::new(&self.executable);
        for (name, _) in std::env::vars_os() {
            // Otherwise a filter in the user's environment would change what is measured.
            if name.to_string_lossy().starts_with("TOLLGATE_") {
                command.env_remove(name);
            }
        }
        command.arg("--config").arg(config);
        command.arg("--data-dir").arg(data_dir).arg("serve");
        command
    }

    /// Starts tollgate over HTTP with another configuration and the tools of all tiers.
    fn serve(&self, config: &Path, data_dir: &Path) -> anyhow::Result<Server> {
        let mut command = self.tollgate_with(config, data_dir);
        command.args(["--tier", "full"]);
        Server::start(command)
    }

    /// Command that starts the server without gate and sandbox, over a new database.
    fn plain(&self, dir: &Path) -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("plain-server").arg("--db").arg(dir.join("plain.db"));
        Ok(command)
    }

    /// Command that starts the server on the TypeScript SDK, without its database and rows.
    fn typescript(&self) -> Option<Command> {
        let folder = self.peers.typescript.as_ref()?;
        let mut command = Command::new("node");
        command.arg(folder.join("server.mjs"));
        Some(command)
    }

    /// Command that starts the server on FastMCP, without its database and rows.
    fn fastmcp(&self) -> Option<Command> {
        let folder = self.peers.fastmcp.as_ref()?;
        let mut command = Command::new(folder.join("bin/python"));
        command.arg(folder.join("server.py"));
        Some(command)
    }

    /// Command that starts the server with constant replies.
    fn null(&self, replies: &Value) -> anyhow::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("null-server")
            .arg("--replies")
            .arg(replies.to_string());
        Ok(command)
    }
}

/// Writes a token file and a configuration that uses it to `dir`, and returns the configuration's path.
fn config_with_tokens(dir: &Path, tokens: &[(&str, &str)], more: &str) -> anyhow::Result<PathBuf> {
    let token_file = dir.join("tokens");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&token_file)?;
    for (identity, token) in tokens {
        writeln!(file, "{identity} {token}")?;
    }
    let mut config = NamedTempFile::with_suffix_in(".toml", dir)?;
    write!(
        config,
        "{CONFIG_FILE}{more}[server.auth]\ntoken_file = {token_file:?}\n"
    )?;
    // The file must last as long as the host.
    let (_, path) = config.keep()?;
    Ok(path)
}

/// The calls of one kind in one round.
fn requests(kind: Kind, seeded: &Seeded, effort: &Effort) -> Vec<Request> {
    let calls = if kind == Kind::Create {
        effort.writes
    } else {
        effort.reads
    };
    (0..calls).map(|number| kind.request(seeded, number)).collect()
}

/// Mean time of a call, in microseconds.
fn per_call(all: Duration, calls: usize) -> f64 {
    all.as_secs_f64() * 1e6 / calls as f64
}
