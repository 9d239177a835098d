//! Command line, one file per command.

mod approvals;
mod backup;
mod call;
mod clients;
mod component;
mod config;
mod config_file;
mod console;
mod doctor;
mod envelopes;
mod examples;
mod file;
mod flag_help;
mod global;
mod healthcheck;
mod init;
mod ledger;
mod log;
mod new;
mod out;
mod packs;
mod policies;
mod registry;
mod reload;
mod serve;
mod shell;
mod stats;
mod storage;
mod tasks;
mod terminal;
mod tokens;
mod tools;
mod update;
mod variables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tollgate::config::{Config, doc};
use tollgate::doctor as examined;
use tollgate::host::{self, Authority, HostContext, PackSelection};
use tollgate_components::catalog::{Catalog, Selection};
use tollgate_components::loading::{Haste, compile};
use tollgate_components::tools::Tier;
use tollgate_core::clock::{self, Clock as _, SystemClock};
use tollgate_core::text;
use tollgate_gate::Gate;
use tollgate_gate::core_tools;
use tollgate_mcp::Schemas;
use tollgate_sandbox::process::{self, Environment};
use tollgate_sandbox::workspaces::{self, Registration, Workspaces};

use global::{Global, LogFormat};
use variables::Variables;

/// An MCP server that hosts tool packs as sandboxed WebAssembly components.
#[derive(Debug, Parser)]
#[command(
    name = "tollgate",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve MCP over standard input and output, or over HTTP
    Serve(serve::Serve),
    /// Make one call through the gate and print its result
    Call(call::Call),
    /// Show the tools
    Tools(tools::Tools),
    /// List, check, add, update and remove packs
    #[command(subcommand, alias = "pack")]
    Packs(packs::Packs),
    /// List, check, add and remove policies, and test them on cases and on recorded calls
    #[command(subcommand, alias = "policy")]
    Policies(policies::Policies),
    /// Write a configuration file to start from
    Init(init::Init),
    /// Explain the configuration's keys
    Config(config::Keys),
    /// Create a crate for a new pack or policy
    #[command(subcommand)]
    New(new::New),
    /// Check everything, and explain how to fix each problem
    Doctor(doctor::Doctor),
    /// Connect MCP clients: find them, add Tollgate to them, check the result
    #[command(subcommand)]
    Clients(clients::Clients),
    /// Read, check, export and prune the ledger
    #[command(subcommand)]
    Ledger(ledger::Ledger),
    /// Show requests for approval, and answer them
    #[command(subcommand)]
    Approvals(approvals::Approvals),
    /// Show and cancel calls that continue without their clients
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    /// Show the envelopes
    Envelopes(envelopes::Envelopes),
    /// Show how often each tool was called, how long it took, and how it failed
    Stats(stats::Stats),
    /// Open the web console on this machine: find a running one, or serve it
    Console(console::Console),
    /// Back up the data directory, even while hosts are running
    Backup(backup::Backup),
    /// Restore a data directory from a backup
    Restore(backup::Restore),
    /// Show and check the database, and move it between a file and a PostgreSQL server
    #[command(subcommand)]
    Storage(storage::Storage),
    /// Check whether a server works; exit code 0 means yes
    #[command(name = "healthcheck")]
    HealthCheck(healthcheck::HealthCheck),
    /// Create, list and revoke bearer tokens for a server over HTTP
    #[command(subcommand)]
    Tokens(tokens::Tokens),
    /// Print a shell's completion script
    Completions(shell::Completions),
    /// Write the manual pages
    Man(shell::Manual),
    /// Compile a component from standard input to standard output
    #[command(name = compile::SUBCOMMAND, hide = true)]
    CompileComponent(compile::Flags),
    /// Run the program that standard input names, and end all of its processes
    #[command(name = process::SUBCOMMAND, hide = true)]
    SuperviseProgram,
}

/// Choice of the tools that exist and are listed.
#[derive(Debug, Clone, Default, Args)]
struct Filters {
    /// Load only these packs; `core` is the host's own tools
    #[arg(long, value_delimiter = ',', value_name = "PACK,…", env = "TOLLGATE_PACKS")]
    packs: Vec<String>,
    /// Offer only tools that match a pattern, and list them whatever their tier
    #[arg(long, value_delimiter = ',', value_name = "GLOB,…", env = "TOLLGATE_TOOLS")]
    tools: Vec<String>,
    /// Omit tools that match a pattern
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "GLOB,…",
        env = "TOLLGATE_EXCLUDE_TOOLS"
    )]
    exclude_tools: Vec<String>,
    #[arg(long, help = doc("server.read_only"), env = "TOLLGATE_READ_ONLY")]
    read_only: bool,
    #[arg(long, help = doc("server.tier"), env = "TOLLGATE_TIER")]
    tier: Option<Tier>,
    #[arg(long, help = doc("server.compact"), env = "TOLLGATE_COMPACT")]
    compact: bool,
    #[arg(long, help = doc("server.output_schemas"), env = "TOLLGATE_OUTPUT_SCHEMAS")]
    output_schemas: bool,
}

impl Filters {
    /// Level of detail of listed schemas.
    fn schemas(&self, config: &Config) -> Schemas {
        if self.output_schemas || config.server.output_schemas {
            Schemas::Whole
        } else {
            Schemas::Brief
        }
    }

    /// Selection by the flags and the configuration.
    fn pack_selection(&self, config: &Config) -> anyhow::Result<PackSelection> {
        for pattern in self.tools.iter().chain(&self.exclude_tools) {
            globset::Glob::new(pattern).with_context(|| format!("{pattern:?} is not a tool pattern"))?;
        }
        Ok(PackSelection {
            packs: self.packs.clone(),
            selection: Selection {
                core: self.packs.is_empty() || self.packs.iter().any(|pack| pack == core_tools::PACK),
                tools: self.tools.clone(),
                exclude: self.exclude_tools.clone(),
                read_only: self.read_only || config.server.read_only,
                tier: self.tier.or(config.server.tier),
                compact: self.compact || config.server.compact,
            },
        })
    }
}

/// Runs the command line.
pub(crate) fn main() -> ExitCode {
    // Files that this process creates, including the database, are private to its user.
    let umask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let parsed = command().try_get_matches().and_then(|matches| {
        let variables = Variables::of(&command(), &matches);
        Ok((Cli::from_arg_matches(&matches)?, variables))
    });
    let (mut cli, variables) = match parsed {
        Ok(parsed) => parsed,
        Err(said) => return help(&said),
    };
    cli.global.umask = umask.as_raw_mode();
    log::to_stderr(&cli.global);
    let result = match cli.command {
        Command::CompileComponent(flags) => compile::run_child(&flags).map(|()| ExitCode::SUCCESS),
        Command::SuperviseProgram => process::run_child().map(|()| ExitCode::SUCCESS),
        command => runtime(&command, &cli.global)
            .context("cannot start the runtime")
            .and_then(|runtime| runtime.block_on(run(command, &cli.global))),
    };
    let result = result.and_then(|code| out::finish().map(|()| code));
    result.unwrap_or_else(|err| {
        out::error(&err);
        variables.named_in(&format!("{err:#}")).for_each(|name| {
            out::warn(&format!(
                "the rejected value comes from the environment variable {name}"
            ));
        });
        if let Some(remedy) = examined::remedy(err.as_ref()) {
            out::warn(remedy);
        }
        ExitCode::from(2)
    })
}

/// Creates the runtime for a command. For one client over stdio, a single worker suffices. With more, each message
/// would wake a second worker in vain, and replies would move between workers. Guests run on other threads in any case.
fn runtime(command: &Command, global: &Global) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if matches!(command, Command::Serve(serve) if serve.is_over_stdio(global)) {
        builder.worker_threads(1);
    }
    builder.enable_all().build()
}

/// The whole command line.
fn command() -> clap::Command {
    examples::with_examples(Cli::command())
}

/// Prints help, the version, or what is wrong with the command line.
fn help(said: &clap::Error) -> ExitCode {
    if said.use_stderr() {
        // The message repeats what was typed, or the value of a variable.
        out::refuse(&said.render().to_string());
        if let Some(name) = variables::behind(&command(), said) {
            out::warn(&format!(
                "the rejected value comes from the environment variable {name}"
            ));
        }
        return ExitCode::from(2);
    }
    out::is_written(said.print());
    match out::finish() {
        Ok(()) => u8::try_from(said.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(err) => {
            out::error(&err);
            ExitCode::from(2)
        }
    }
}

async fn run(command: Command, global: &Global) -> anyhow::Result<ExitCode> {
    outlive_file_limits();
    match command {
        Command::Serve(serve) => serve.run(global).await,
        Command::Call(call) => call.run(global).await,
        Command::Tools(tools) => tools.run(global).await,
        Command::Packs(packs) => packs.run(global).await,
        Command::Policies(policies) => policies.run(global).await,
        Command::Init(init) => init.run(global),
        Command::Config(keys) => keys.run(global),
        Command::New(new) => new.run(global),
        Command::Doctor(doctor) => doctor.run(global).await,
        Command::Clients(clients) => clients.run(global).await,
        Command::Ledger(ledger) => ledger.run(global).await,
        Command::Approvals(approvals) => approvals.run(global).await,
        Command::Tasks(tasks) => tasks.run(global).await,
        Command::Envelopes(envelopes) => envelopes.run(global).await,
        Command::Stats(stats) => stats.run(global),
        Command::Console(console) => console.run(global).await,
        Command::Backup(backup) => backup.run(global),
        Command::Restore(restore) => restore.run(global),
        Command::Storage(storage) => storage.run(global).await,
        Command::HealthCheck(check) => check.run(global),
        Command::Tokens(tokens) => tokens.run(global),
        Command::Completions(completions) => Ok(completions.run()),
        Command::Man(manual) => manual.run(),
        Command::CompileComponent(flags) => compile::run_child(&flags).map(|()| ExitCode::SUCCESS),
        Command::SuperviseProgram => process::run_child().map(|()| ExitCode::SUCCESS),
    }
}

/// Makes writes beyond the file size limit fail like writes to a full disk, instead of ending the process. Programs
/// that packs start get the system's default again, because handlers do not survive `exec`.
fn outlive_file_limits() {
    let kind = SignalKind::from_raw(nix::libc::SIGXFSZ);
    if let Err(err) = signal(kind) {
        tracing::warn!(%err, "cannot handle SIGXFSZ; a limit on file sizes (ulimit -f) would end this process");
    }
}

/// Opens the gate, and reports packs that did not load.
async fn open(global: &Global, config: &Config, pack_selection: &PackSelection) -> anyhow::Result<Gate> {
    let gate = open_in(global, config, pack_selection, Haste::Described).await?;
    log_state(&gate.catalog());
    Ok(gate)
}

/// Logs packs that did not load, and tools that differ from the accepted ones.
fn log_state(catalog: &Catalog) {
    for failure in catalog.failures() {
        tracing::error!("{failure}");
    }
    for unloaded in catalog.policies().failures() {
        tracing::error!(
            "{unloaded}; until it loads, the calls that it evaluates are refused (with fail_open = true they pass)"
        );
    }
    for change in catalog.changes() {
        tracing::warn!(
            "{change}; run `tollgate packs accept {}` if the change is intended",
            change.pack
        );
    }
    for change in catalog.policy_changes() {
        tracing::warn!(
            "{change}; run `tollgate policies accept {}` if the change is intended",
            change.policy
        );
    }
}

/// Opens the gate with everything loaded, according to the flags and the configuration.
async fn open_quietly(
    global: &Global,
    config: &Config,
    pack_selection: &PackSelection,
) -> anyhow::Result<Gate> {
    open_in(global, config, pack_selection, Haste::Whole).await
}

async fn open_in(
    global: &Global,
    config: &Config,
    pack_selection: &PackSelection,
    haste: Haste,
) -> anyhow::Result<Gate> {
    let data_dir = config.data_dir(global.data_dir.as_deref())?;
    let workspaces = workspaces(global, config, &data_dir)?;
    let authority = authority(global, config)?;
    host::open_in(config, &data_dir, authority, workspaces, pack_selection, haste).await
}

/// Opens the data directory without loading components.
fn context(global: &Global, config: &Config) -> anyhow::Result<HostContext> {
    HostContext::open(
        &config.data_dir(global.data_dir.as_deref())?,
        authority(global, config)?,
    )
}

/// Resources of this process for a host.
fn authority(global: &Global, config: &Config) -> anyhow::Result<Authority> {
    Ok(Authority {
        executable: std::env::current_exe()
            .context("cannot determine the path of the tollgate executable")?,
        environment: Some(Environment::new(|name| std::env::var(name).ok())),
        umask: global.umask,
        cache_dir: global.cache_dir.clone().or_else(|| config.cache_dir.clone()),
        server: global.server(config)?,
    })
}

/// Explanation if the current directory is not a workspace. A server prints it, because its packs will need one. Other
/// commands rarely do, and a refusal then says what to do.
const NO_PLACE: &str = "the current directory and the data directory overlap, so the current directory is not a \
     workspace; register a workspace with --workspace";

/// Returns whether no workspace is named and the current directory cannot be one.
fn has_no_place(global: &Global, config: &Config, data_dir: &Path) -> anyhow::Result<bool> {
    let here = std::env::current_dir().context("cannot determine the current directory")?;
    let nothing_named = config.workspaces.is_empty() && global.workspaces.is_empty();
    Ok(nothing_named && workspaces::overlap(&here, data_dir))
}

/// Opens the directories that packs may use.
fn workspaces(global: &Global, config: &Config, data_dir: &Path) -> anyhow::Result<Workspaces> {
    if has_no_place(global, config, data_dir)? {
        tracing::info!("{NO_PLACE}");
        return Ok(Workspaces::default());
    }
    Workspaces::open(registrations(global, config)?, global.umask, data_dir)
        .map_err(|problems| anyhow::anyhow!("{}", problems.join("\n")))
}

/// Directories named by flags and configuration.
fn registrations(global: &Global, config: &Config) -> anyhow::Result<Vec<Registration>> {
    let here = std::env::current_dir().context("cannot determine the current directory")?;
    Ok(config.registrations(&global.workspaces, &here))
}

/// Parses a time, or a duration before now, in the ledger's format.
fn time(text: &str) -> Result<String, String> {
    clock::since(text, SystemClock.now_ms())
        .ok_or_else(|| "not a time; write 30m, 24h, 7d, 2w, or 2026-11-21T06:00:00Z".to_owned())
}

/// Checks for a path of this system. Programs elsewhere name the same directory differently.
fn path(path: PathBuf) -> Result<PathBuf, String> {
    let text = path.to_string_lossy();
    let mut letters = text.chars();
    let is_drive = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic())
        && letters.next() == Some(':')
        && matches!(letters.next(), Some('\\' | '/'));
    if is_drive || text.starts_with("\\\\") {
        return Err("that is a Windows path; in WSL, C:\\code is /mnt/c/code".to_owned());
    }
    Ok(path)
}

/// `NAME=PATH`.
fn workspace(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, place)) if text::is_name(name) && !place.is_empty() => {
            Ok((name.to_owned(), path(place.into())?))
        }
        _ => Err("write NAME=PATH; a name consists of letters, digits, `-`, `_` and `.`".to_owned()),
    }
}

/// Lists the known names, as the end of a sentence about an unknown one.
fn there_are<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    match text::nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean {near}?"),
        None if known.is_empty() => "; none exist".to_owned(),
        None => format!("; existing names: {}", known.join(", ")),
    }
}

/// Path as UTF-8 text, as configuration files require.
fn utf8(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str();
    Ok(text
        .with_context(|| {
            format!(
                "the path {} is not UTF-8, and configuration files need UTF-8 paths",
                path.display()
            )
        })?
        .to_owned())
}

#[cfg(test)]
mod tests {
    use std::thread::available_parallelism;

    use super::*;

    /// Number of runtime workers for a command line.
    fn workers(args: &[&str]) -> usize {
        let nowhere = ["tollgate", "--config", "/dev/null"];
        let cli = Cli::try_parse_from(nowhere.iter().chain(args)).unwrap();
        let runtime = runtime(&cli.command, &cli.global).unwrap();
        runtime.metrics().num_workers()
    }

    #[test]
    fn one_client_on_pipes_has_one_worker_and_servers_have_the_machine() {
        assert_eq!(workers(&["serve"]), 1);
        let cores = available_parallelism().unwrap().get();
        assert_eq!(workers(&["serve", "--http", "8765"]), cores);
    }
}
