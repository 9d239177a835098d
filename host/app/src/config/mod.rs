//! The configuration from file, environment and flags, validated as a whole before anything starts.

mod address;
mod check;
mod cluster;
pub mod edit;
mod envelope;
mod http;
mod keys;
mod limits;
mod packs;
mod policies;
mod policy_source;
pub mod protections;
pub mod reference;
mod storage;
mod telemetry;
pub mod template;
pub mod trust;
mod workspaces;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use serde::Deserialize;
use thiserror::Error;
use tollgate_components::tools::Tier;
use tollgate_core::file;
use tollgate_core::text::counted;
use tollgate_gate::ApprovalSettings;
use tollgate_registry::HostSettings;
use tollgate_sandbox::workspaces::Registration;
use tollgate_store::artifacts::ArtifactSettings;
use tollgate_store::ledger::LedgerSettings;

pub use address::address;
pub use check::Problem;
pub use cluster::ClusterConfig;
pub use envelope::EnvelopeConfig;
pub use http::HttpLimits;
pub use keys::{default_of, doc};
pub use limits::LimitsConfig;
pub use packs::PackConfig;
pub use policies::PolicyConfig;
pub use policy_source::{PolicySource, builtin_policy};
pub use storage::{StorageConfig, StorageError};
pub use telemetry::TelemetryConfig;
pub use tollgate_console::ConsoleSettings;
pub use tollgate_mcp::auth::Auth;
pub use tollgate_mcp::http::Caps;
pub use trust::TrustConfig;
pub use workspaces::{Git, WorkspaceConfig};

/// Maximum bytes of a configuration file.
const MAX_BYTES: u64 = 1 << 20;
/// Source of components in this program.
const BUILTIN: &str = "builtin";
/// Prefix of a source on another machine.
const HTTPS: &str = "https://";
/// Prefix of a source in a registry.
const OCI: &str = tollgate_registry::SCHEME;

/// Reason why the configuration cannot be used. Nothing was started.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The path does not exist.
    #[error(
        "there is no configuration {0}; create one with `tollgate --config {0} init`, or omit --config to use the \
         defaults"
    )]
    Missing(String),
    /// The path is a folder.
    #[error("the configuration {0} is a folder; name a file in it, such as {0}/tollgate.toml")]
    Folder(String),
    /// The file cannot be read.
    #[error("cannot read the configuration {path}")]
    Unreadable {
        /// Path of the file.
        path: String,
        #[source]
        source: std::io::Error,
    },
    /// The file has mistakes.
    #[error("the configuration {path} has {}:\n{}", counted(.problems.len(), "problem"),
        .problems.iter().map(|problem| format!("  {path}:{problem}")).collect::<Vec<_>>().join("\n"))]
    Invalid {
        /// Path of the file.
        path: String,
        /// Mistakes in the order of the file.
        problems: Vec<Problem>,
    },
    /// The file existed before and is missing now.
    #[error(
        "the configuration {0} has disappeared; restore the file, or create an empty one if nothing is to be configured"
    )]
    Gone(String),
    /// The path is not a regular file.
    #[error("the configuration {0} is no longer a file; replace it by a regular file")]
    NotAFile(String),
    /// The file had settings before and is empty now.
    #[error("the configuration {0} is empty; if that is intended, send SIGHUP")]
    Emptied(String),
    /// The file would remove protections.
    #[error(
        "the configuration {path} no longer has {lost}; if that is intended and the file is complete, send SIGHUP, or remove policies \
         with `tollgate policies remove`"
    )]
    Weaker {
        /// Path of the file.
        path: String,
        /// Missing protections.
        lost: String,
    },
    /// There is no home directory for the data.
    #[error("there is no home directory; pass a data directory with --data-dir")]
    NoHome,
}

/// The configuration file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Data directory.
    pub data_dir: Option<PathBuf>,
    /// Folder of compiled components, if it is not in the data directory.
    pub cache_dir: Option<PathBuf>,
    /// The database.
    pub storage: StorageConfig,
    /// Settings of this host in a cluster.
    pub cluster: ClusterConfig,
    /// Settings of serving.
    pub server: Server,
    /// Envelopes: defaults and ceilings.
    pub envelope: EnvelopeConfig,
    /// Approvals: approvers and notifications.
    pub approvals: ApprovalsConfig,
    /// Ledger: retention and mirror.
    pub ledger: LedgerSettings,
    /// Retention of artifacts.
    pub artifacts: ArtifactSettings,
    /// Export of metrics and spans.
    pub telemetry: TelemetryConfig,
    /// Directories that packs may use, by name.
    pub workspaces: BTreeMap<String, WorkspaceConfig>,
    /// Settings of packs, built in or not, by name.
    pub packs: BTreeMap<String, PackConfig>,
    /// Policies, by the operator's name for each.
    pub policies: BTreeMap<String, PolicyConfig>,
    /// Registries, by host.
    pub registries: BTreeMap<String, HostSettings>,
    /// Signatures that are accepted.
    pub trust: TrustConfig,
    /// File that the configuration was read from, if any.
    #[serde(skip)]
    file: Option<PathBuf>,
    /// Path of the file when it was read, with links resolved.
    #[serde(skip)]
    place: Option<PathBuf>,
    /// Content of the file.
    #[serde(skip)]
    said: toml::Table,
}

/// The `[server]` table.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Serve HTTP at this address instead of stdio.
    #[serde(deserialize_with = "address::deserialize")]
    pub http: Option<std::net::SocketAddr>,
    /// Additional host names under which clients reach the server.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may use the server.
    pub allowed_origins: Vec<String>,
    /// Authentication.
    pub auth: Auth,
    /// The console.
    pub console: ConsoleSettings,
    /// Limits.
    pub limits: HttpLimits,
    /// Highest tier of listed tools.
    pub tier: Option<Tier>,
    /// If true, only tools that read exist.
    pub read_only: bool,
    /// If true, only the tools that find and call others are listed.
    pub compact: bool,
    /// If true, tools are listed with their full schemas.
    pub output_schemas: bool,
}

/// The `[approvals]` table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalsConfig {
    approvers: Vec<String>,
    /// Program that is notified of each request, with its arguments.
    pub notify: Vec<String>,
}

impl ApprovalsConfig {
    /// Settings for the gate. If only the console has approvers, they apply to `approval_resolve` as well. Otherwise a
    /// viewer could answer there.
    pub fn settings(&self, console: &ConsoleSettings) -> ApprovalSettings {
        let mut approvers = self.approvers.clone();
        if approvers.is_empty() && !console.approvers.is_empty() {
            approvers.clone_from(&console.approvers);
            approvers.push("local".to_owned());
        }
        ApprovalSettings { approvers }
    }
}

impl Config {
    /// Reads the named file, or the user's own if it exists, or uses the defaults.
    pub fn load(named: Option<&Path>) -> Result<Config, ConfigError> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => match user_config() {
                // A dangling link, or a folder that cannot be entered, does not count as a missing file.
                Some(path) if !is_missing(&path) => path,
                _ => return Ok(Config::default()),
            },
        };
        let text = Config::read(&path)?;
        Config::parse(&text, &path)
    }

    /// Reads the configuration that replaces this one. A missing or empty file is refused, because it may be partially
    /// written, and a lost file does not mean that the defaults are wanted.
    pub fn load_again(&self, named: Option<&Path>, is_asked: bool) -> Result<Config, ConfigError> {
        let Some(path) = &self.file else {
            return Config::load(named);
        };
        let shown = || path.display().to_string();
        match std::fs::metadata(path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(ConfigError::NotAFile(shown())),
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Err(ConfigError::Gone(shown())),
            Err(_) => {}
        }
        let text = Config::read(path)?;
        if text.trim().is_empty() && !self.said.is_empty() && !is_asked {
            return Err(ConfigError::Emptied(shown()));
        }
        Config::parse(&text, path)
    }

    /// Refuses to replace an earlier configuration with this one if it lacks `remembered` protections. Without
    /// remembered ones, none may be missing.
    pub fn check_protections(
        &self,
        before: &Config,
        remembered: Option<&BTreeSet<String>>,
    ) -> Result<(), ConfigError> {
        let (had, has) = (before.protections(), self.protections());
        let lost: BTreeSet<String> = protections::lost(&had, &has)
            .into_iter()
            .filter(|key| remembered.is_none_or(|remembered| remembered.contains(key)))
            .collect();
        if lost.is_empty() {
            return Ok(());
        }
        Err(ConfigError::Weaker {
            path: before
                .file
                .as_deref()
                .unwrap_or(Path::new(""))
                .display()
                .to_string(),
            lost: protections::describe(&lost),
        })
    }

    /// Protections of the configuration, by key.
    pub fn protections(&self) -> BTreeSet<String> {
        protections::find(&self.said)
    }

    /// Path of the file when it was read. A link that was changed later does not affect it.
    pub fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// Path of the named file, or of the user's own, which need not exist.
    pub fn file(named: Option<&Path>) -> Result<PathBuf, ConfigError> {
        named
            .map(Path::to_owned)
            .or_else(user_config)
            .ok_or(ConfigError::NoHome)
    }

    /// A configuration file's text.
    pub fn read(path: &Path) -> Result<String, ConfigError> {
        let read = file::read(path, MAX_BYTES).map(|(text, _)| text);
        read.map_err(|source| {
            let path = path.display().to_string();
            match source.kind() {
                std::io::ErrorKind::NotFound => ConfigError::Missing(path),
                std::io::ErrorKind::IsADirectory => ConfigError::Folder(path),
                _ => ConfigError::Unreadable { path, source },
            }
        })
    }

    /// Parses a configuration's text. Relative paths in it are relative to the file.
    pub fn parse(text: &str, path: &Path) -> Result<Config, ConfigError> {
        let invalid = |problems| ConfigError::Invalid {
            path: path.display().to_string(),
            problems,
        };
        let problems = check::check(text);
        if !problems.is_empty() {
            return Err(invalid(problems));
        }
        // Text that passed the check always has the right shape. This is a safety net.
        let mut config: Config =
            toml::from_str(text).map_err(|err| invalid(vec![Problem::from_toml(text, &err)]))?;
        config.file = Some(path.to_owned());
        config.place = Some(protections::canonical(path));
        config.said = toml::from_str(text).map_err(|err| invalid(vec![Problem::from_toml(text, &err)]))?;
        let base = path.parent().unwrap_or(Path::new(""));
        for dir in [&mut config.data_dir, &mut config.cache_dir]
            .into_iter()
            .flatten()
        {
            *dir = base.join(&*dir);
        }
        config.storage.rebase(base);
        config.server.auth.rebase(base);
        config.telemetry.rebase(base);
        for workspace in config.workspaces.values_mut() {
            workspace.path = base.join(&workspace.path);
            workspace.repository = workspace.repository.take().map(|path| base.join(path));
        }
        config.trust.rebase(base);
        for pack in config.packs.values_mut() {
            if let Some(source) = pack.source.as_mut().filter(|source| is_path(source)) {
                *source = base.join(&*source).display().to_string();
            }
        }
        for policy in config.policies.values_mut() {
            policy.start_from(base);
        }
        Ok(config)
    }

    /// Directories to open: those of the file, changed by flags, and those that only flags name. If there are none, the
    /// directory `here` becomes the read-only workspace `default`.
    pub fn registrations(&self, flags: &[(String, PathBuf)], here: &Path) -> Vec<Registration> {
        let mut workspaces = self.workspaces.clone();
        for (name, path) in flags {
            workspaces.entry(name.clone()).or_default().path.clone_from(path);
        }
        if workspaces.is_empty() {
            workspaces.entry("default".to_owned()).or_default().path = here.to_owned();
        }
        workspaces
            .iter()
            .map(|(name, workspace)| workspace.registration(name))
            .collect()
    }

    /// Files that packs and policies are loaded from.
    pub fn component_files(&self) -> impl Iterator<Item = PathBuf> {
        let enabled = self.packs.values().filter(|pack| pack.enabled != Some(false));
        let packs = enabled.filter_map(|pack| pack.source.as_deref().filter(|source| is_path(source)));
        let policies = self.policies.values().filter_map(PolicyConfig::path);
        packs.chain(policies).map(PathBuf::from)
    }

    /// Changed keys that a running host cannot apply.
    pub fn waiting_for_a_start(&self, before: &Config) -> Vec<&'static str> {
        let (server, was) = (&self.server, &before.server);
        let waiting = [
            ("data_dir", self.data_dir != before.data_dir),
            ("cache_dir", self.cache_dir != before.cache_dir),
            ("storage", self.storage != before.storage),
            ("cluster", self.cluster != before.cluster),
            ("server.http", server.http != was.http),
            ("server.allowed_hosts", server.allowed_hosts != was.allowed_hosts),
            (
                "server.allowed_origins",
                server.allowed_origins != was.allowed_origins,
            ),
            ("server.auth", server.auth != was.auth),
            (
                "approvals.notify",
                self.approvals.notify != before.approvals.notify,
            ),
            (
                "server.console.enabled",
                server.console.enabled != was.console.enabled,
            ),
            ("ledger", self.ledger != before.ledger),
            ("artifacts", self.artifacts != before.artifacts),
            ("telemetry", self.telemetry != before.telemetry),
        ];
        let changed = waiting.into_iter().filter(|(_, is_other)| *is_other);
        let limits = server.limits.waiting_for_a_start(&was.limits);
        changed.map(|(key, _)| key).chain(limits).collect()
    }

    /// Data directory from a flag, from the file, or the user's default.
    pub fn data_dir(&self, flag: Option<&Path>) -> Result<PathBuf, ConfigError> {
        if let Some(path) = flag.or(self.data_dir.as_deref()) {
            return Ok(path.to_owned());
        }
        let dirs = etcetera::choose_base_strategy().map_err(|_| ConfigError::NoHome)?;
        Ok(dirs.data_dir().join("tollgate"))
    }
}

/// Returns whether a path does not exist, not even as a dangling link.
fn is_missing(path: &Path) -> bool {
    let found = std::fs::symlink_metadata(path);
    found.is_err_and(|err| err.kind() == std::io::ErrorKind::NotFound)
}

/// Returns whether a component's source is a path.
fn is_path(source: &str) -> bool {
    source != BUILTIN && !source.starts_with(HTTPS) && !source.starts_with(OCI)
}

/// User's own configuration. Never one in the current directory, because a repository must not be able to grant
/// anything.
fn user_config() -> Option<PathBuf> {
    let dirs = etcetera::choose_base_strategy().ok()?;
    Some(dirs.config_dir().join("tollgate").join("tollgate.toml"))
}
