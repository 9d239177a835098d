//! Putting a host together: data directory, sandbox, packs, gate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use tollgate_sdk::Timestamp;

use crate::artifacts::ArtifactStore;
use crate::builtin;
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, PackConfig};
use crate::core_tools;
use crate::data_dir::DataDir;
use crate::gate::{Equipment, Gate, Keeping};
use crate::liveness::Host;
use crate::packs::compile::Compiler;
use crate::packs::{Catalog, Loader, Origin, Selection, Source};
use crate::policies;
use crate::process::{Environment, Launcher};
use crate::sandbox::Sandbox;
use crate::storage::Database;
use crate::workspaces::Workspaces;

/// Which packs to load, and which of their tools exist.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Only these packs; all enabled ones if empty.
    pub packs: Vec<String>,
    /// Of their tools, these.
    pub selection: Selection,
}

/// What the process gives the host to work with, taken up once by `main`.
#[derive(Debug)]
pub struct Authority {
    /// This program, which compiles components and supervises programs in processes of its own.
    pub executable: PathBuf,
    /// What programs get.
    pub environment: Environment,
    /// The user's own umask, for what programs and packs create in workspaces.
    pub umask: u32,
    /// The directories the operator registered.
    pub workspaces: Workspaces,
}

/// Opens the data directory and loads the packs. Packs that do not load are in the catalog's
/// failures, and the rest works.
pub async fn open(
    config: &Config,
    data_dir: &Path,
    authority: Authority,
    choice: &Choice,
) -> anyhow::Result<Gate> {
    let Authority {
        executable,
        environment,
        umask,
        workspaces,
    } = authority;
    let launcher = Arc::new(Launcher::new(executable.clone(), environment, umask));
    let data = DataDir::open(data_dir)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let sandbox = Arc::new(Sandbox::new()?);
    let database = Database::open(&data.database()).context("the database cannot be used")?;
    let loader = Loader::new(
        &data,
        Arc::clone(&sandbox),
        Compiler::new(executable),
        database.clone(),
        Arc::clone(&clock),
        workspaces.clone(),
        Arc::clone(&launcher),
    )?;
    let sources = sources(config, &choice.packs)?;
    let policies = policy_sources(config)?;
    let catalog = Catalog::load(&loader, sources, policies, &choice.selection).await;
    let host = Host::join(&data, clock.new_id("hst"))?;
    host.bury_the_dead(&database, &Timestamp::from_ms(clock.now_ms()).to_string())?;
    let artifacts = ArtifactStore::open(&data, config.artifacts.clone(), Arc::clone(&clock))?;
    let keeping = Keeping {
        data: Arc::new(data),
        settings: config.ledger.clone(),
        artifacts: artifacts.map(Arc::new),
    };
    let gate = Gate::open(
        Arc::new(catalog),
        Equipment {
            sandbox,
            launcher,
            workspaces,
            clock,
        },
        &database,
        config.envelope.settings(),
        host,
        keeping,
    )?;
    Ok(gate)
}

/// The built-in packs, then those of the configuration by name.
fn sources(config: &Config, wanted: &[String]) -> anyhow::Result<Vec<Source>> {
    let default = PackConfig::default();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|want| want == name);
    let mut sources = Vec::new();
    for name in builtin::names() {
        let settings = config.packs.get(name).unwrap_or(&default);
        if is_wanted(name) && settings.enabled.unwrap_or(true) {
            sources.push(source(name, settings)?);
        }
    }
    for (name, settings) in &config.packs {
        if builtin::component(name).is_none() && is_wanted(name) && settings.enabled.unwrap_or(true) {
            sources.push(source(name, settings)?);
        }
    }
    let unknown: Vec<&str> = wanted
        .iter()
        .filter(|want| *want != core_tools::PACK && !sources.iter().any(|source| source.name == **want))
        .map(String::as_str)
        .collect();
    anyhow::ensure!(
        unknown.is_empty(),
        "there is no enabled pack {}; `tollgate packs list` shows what there is",
        unknown.join(", ")
    );
    Ok(sources)
}

/// The policies of the configuration. Nothing starts without one of them.
fn policy_sources(config: &Config) -> anyhow::Result<Vec<policies::Source>> {
    let mut sources = Vec::new();
    let mut problems = Vec::new();
    for (name, settings) in &config.policies {
        match policy_origin(name, settings.source.as_deref()) {
            Ok(origin) => sources.push(settings.source(name, origin)),
            Err(problem) => problems.push(problem),
        }
    }
    anyhow::ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(sources)
}

/// Where a policy is: `builtin:NAME`, a path, or by default the built-in policy of the same name.
fn policy_origin(name: &str, source: Option<&str>) -> Result<Origin, String> {
    let builtin = match source {
        None => name,
        Some(source) => match source.strip_prefix("builtin:") {
            Some(builtin) => builtin,
            None => return Ok(Origin::File(source.into())),
        },
    };
    builtin::policy(builtin).map(Origin::Builtin).ok_or_else(|| {
        let all: Vec<&str> = builtin::policies().collect();
        let all = all.join(", ");
        match source {
            None => format!("[policies.{name}] names no source and is not built in; add `source = \"PATH\"` or \"builtin:NAME\" of {all}"),
            Some(_) => format!("[policies.{name}] source: there is no built-in policy {builtin}; there are {all}"),
        }
    })
}

fn source(name: &str, settings: &PackConfig) -> anyhow::Result<Source> {
    let origin = match (settings.source.as_deref(), builtin::component(name)) {
        (None | Some("builtin"), Some(bytes)) => Origin::Builtin(bytes),
        (Some("builtin"), None) => anyhow::bail!("[packs.{name}] source: there is no built-in pack {name}"),
        (Some(path), _) => Origin::File(path.into()),
        (None, None) => {
            anyhow::bail!("[packs.{name}] names no source and is not built in; add `source = \"PATH\"`")
        }
    };
    Ok(Source {
        name: name.to_owned(),
        origin,
        sha256: settings.sha256.clone(),
        grants: settings.grants.clone(),
        limits: settings.limits.limits(&builtin::limits(name)),
        config: settings.config.clone(),
        exclude: settings.exclude.clone(),
    })
}
