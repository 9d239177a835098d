//! From a source to a pack that can be called.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use wasmtime::component::Component;

use super::cache::Cache;
use super::compile::{CompileError, Compiler};
use super::download::Downloads;
use super::grants::{self, Granted, Grants, Trust};
use super::inspect::{self, Inspection};
use super::manifest::{Effect, Manifest};
use super::origin::Origin;
use super::version;
use crate::artifacts::CallArtifacts;
use crate::clock::Clock;
use crate::data_dir::{DataDir, DataDirError};
use crate::deadline::{Cancel, Deadline};
use crate::process::Launcher;
use crate::progress::Progress;
use crate::sandbox::bindings::ToolPackPre;
use crate::sandbox::bindings::exports::tollgate::host::pack as wit;
use crate::sandbox::state::{Facts, Setup, Transactions};
use crate::sandbox::{CallState, Limits, Sandbox};
use crate::storage::{Database, Namespace};
use crate::workspaces::{Access, Workspaces};

/// How long a component may take to describe itself.
const DESCRIBE_TIME: Duration = Duration::from_secs(5);

/// A component that should become a pack, and the operator's settings for it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The name the operator gave it, which its manifest must state too.
    pub name: String,
    /// Where its bytes are.
    pub origin: Origin,
    /// The hash its bytes must have, if pinned.
    pub sha256: Option<String>,
    /// What it may touch.
    pub grants: Grants,
    /// What its calls may use.
    pub limits: Limits,
    /// Its `config` table as a JSON object.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Tools of it that must not exist.
    pub exclude: Vec<String>,
}

/// A loaded pack.
pub struct Pack {
    /// What it says of itself, checked.
    pub manifest: Manifest,
    /// Where it came from.
    pub origin: String,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// How many bytes it has.
    pub size: usize,
    /// What its calls may use.
    pub limits: Limits,
    /// Its `config` table as JSON text.
    pub config: String,
    /// Globs of tools that must not exist.
    pub exclude: Vec<String>,
    /// Its tables.
    pub namespace: Namespace,
    /// What it may use beside them.
    pub granted: Arc<Granted>,
    /// Workspaces and programs it may use.
    pub access: Arc<Access>,
    pre: ToolPackPre<CallState>,
}

impl Pack {
    /// Whether it is part of this program.
    pub fn is_builtin(&self) -> bool {
        self.origin == Origin::Builtin(&[]).to_string()
    }

    /// What a call instantiates.
    pub(crate) fn pre(&self) -> &ToolPackPre<CallState> {
        &self.pre
    }
}

/// Why a component did not become a pack: everything that is wrong with it, and what to do.
#[derive(Debug, Error)]
#[error("pack `{pack}` ({origin}) was not loaded: {}", .problems.join("; "))]
pub struct LoadError {
    /// The operator's name for it.
    pub pack: String,
    /// Where its bytes are.
    pub origin: String,
    /// What is wrong.
    pub problems: Vec<String>,
}

impl LoadError {
    pub(super) fn new(pack: &str, origin: &str, problems: Vec<String>) -> LoadError {
        LoadError {
            pack: pack.to_owned(),
            origin: origin.to_owned(),
            problems,
        }
    }
}

/// What loading needs.
pub struct Loader {
    sandbox: Arc<Sandbox>,
    cache: Cache,
    downloads: Downloads,
    compiler: Compiler,
    database: Database,
    clock: Arc<dyn Clock>,
    launcher: Arc<Launcher>,
}

impl Loader {
    /// A loader over a data directory.
    pub fn new(
        data: &DataDir,
        sandbox: Arc<Sandbox>,
        compiler: Compiler,
        database: Database,
        clock: Arc<dyn Clock>,
        launcher: Arc<Launcher>,
    ) -> Result<Loader, DataDirError> {
        Ok(Loader {
            sandbox,
            cache: Cache::open(data)?,
            downloads: Downloads::open(data)?,
            compiler,
            database,
            clock,
            launcher,
        })
    }

    /// The components that were downloaded.
    pub fn downloads(&self) -> &Downloads {
        &self.downloads
    }

    /// Everything up to the pack's migrations, which wait until its name and tools are known to be
    /// free.
    pub async fn load(&self, source: Source, workspaces: &Workspaces) -> Result<Pack, LoadError> {
        let origin = source.origin.to_string();
        self.try_load(&source, workspaces)
            .await
            .map_err(|problems| LoadError::new(&source.name, &origin, problems))
    }

    /// What a component is and wants, as far as it can be told. Nothing of it is kept but its compiled
    /// code.
    pub async fn inspect(&self, bytes: &[u8]) -> Inspection {
        inspect::inspection(bytes, async {
            let pre = self.prepare(bytes).await?;
            Manifest::check(self.describe(&pre)?)
        })
        .await
    }

    /// Applies a loaded pack's migrations.
    pub fn migrate(&self, pack: &Pack) -> Result<(), LoadError> {
        self.database
            .migrate(&pack.namespace, &pack.manifest.migrations)
            .map_err(|err| LoadError::new(&pack.manifest.name, &pack.origin, vec![err.to_string()]))
    }

    /// Applies the migrations of many packs, all or none.
    pub(super) fn migrate_together(&self, packs: &[Arc<Pack>]) -> Result<(), LoadError> {
        let steps = packs
            .iter()
            .map(|pack| (&pack.namespace, pack.manifest.migrations.as_slice()));
        self.database.migrate_together(steps).map_err(|(namespace, err)| {
            let pack = packs.iter().find(|pack| pack.namespace.pack() == namespace);
            let origin = pack.map_or("", |pack| pack.origin.as_str());
            LoadError::new(&namespace, origin, vec![crate::text::chain(&err)])
        })
    }

    /// Packs whose tables are in the database, loaded or not.
    pub fn packs_with_tables(&self) -> Vec<String> {
        self.database.packs_with_tables().unwrap_or_default()
    }

    async fn try_load(&self, source: &Source, workspaces: &Workspaces) -> Result<Pack, Vec<String>> {
        let bytes = source.origin.bytes(&self.downloads).await?;
        let hash = crate::hash::sha256_hex(&bytes);
        if let Some(pin) = source
            .sha256
            .as_ref()
            .filter(|pin| !pin.eq_ignore_ascii_case(&hash))
        {
            return Err(vec![format!(
                "its SHA-256 is {hash}, pinned is {pin}; pin the new one if you trust the change"
            )]);
        }
        let pre = self.prepare(&bytes).await?;
        let manifest = Manifest::check(self.describe(&pre)?)?;
        if manifest.name != source.name {
            return Err(vec![format!(
                "it calls itself `{0}`; configure it as [packs.{0}]",
                manifest.name
            )]);
        }
        let trust = source.origin.trust();
        let mut problems = missing_grants(&manifest, &source.grants, trust);
        problems.extend(config_problems(&manifest, &source.config));
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Pack {
            namespace: Namespace::of_pack(&manifest.name),
            granted: Arc::new(Granted::of(&manifest.wants, &source.grants, trust)),
            access: Arc::new(Access::new(
                workspaces,
                &source.grants.asked(&manifest.wants, trust),
                |name| source.grants.workspace(name, trust),
            )),
            manifest,
            origin: source.origin.to_string(),
            hash,
            size: bytes.len(),
            limits: source.limits.clone(),
            config: serde_json::Value::Object(source.config.clone()).to_string(),
            exclude: source.exclude.clone(),
            pre,
        })
    }

    /// Checks and compiles a component, so that it can be instantiated.
    async fn prepare(&self, bytes: &[u8]) -> Result<ToolPackPre<CallState>, Vec<String>> {
        version::check(bytes).map_err(one)?;
        let component = self.component(bytes).await?;
        self.sandbox
            .linker()
            .instantiate_pre(&component)
            .and_then(ToolPackPre::new)
            .map_err(|err| vec![format!("it does not fit this host: {err:#}")])
    }

    async fn component(&self, bytes: &[u8]) -> Result<Component, Vec<String>> {
        let engine = self.sandbox.engine();
        if let Some(component) = self.cache.get(engine, bytes) {
            return Ok(component);
        }
        let code = self
            .compiler
            .compile(bytes)
            .await
            .map_err(|err: CompileError| one(err))?;
        self.cache
            .put(engine, bytes, &code)
            .map_err(|err| vec![format!("its compiled code does not load: {err:#}")])
    }

    /// Asks a component what it is. It has no storage meanwhile.
    fn describe(&self, pre: &ToolPackPre<CallState>) -> Result<wit::Manifest, Vec<String>> {
        let failed = |err: wasmtime::Error| vec![format!("it does not describe itself: {err:#}")];
        let session = self.database.read_session().map_err(one)?;
        let deadline = Deadline::after(DESCRIBE_TIME, Cancel::default());
        let setup = Setup {
            namespace: Namespace::of_pack("-"),
            facts: Facts::default(),
            deadline,
            clock: Arc::clone(&self.clock),
            transactions: Transactions::None,
            effect: Effect::Read,
            access: Arc::default(),
            launcher: Arc::clone(&self.launcher),
            progress: Progress::default(),
            artifacts: CallArtifacts::default(),
        };
        let state = CallState::new(setup, Box::new(session), &Limits::default());
        let mut store = state.into_store(&self.sandbox);
        let _running = self.sandbox.running();
        let instance = pre.instantiate(&mut store).map_err(failed)?;
        instance
            .tollgate_host_pack()
            .call_describe(&mut store)
            .map_err(failed)
    }
}

/// An error with all its causes, as one problem.
pub(super) fn one(err: impl std::error::Error) -> Vec<String> {
    vec![crate::text::chain(&err)]
}

fn missing_grants(manifest: &Manifest, grants: &Grants, trust: Trust) -> Vec<String> {
    grants::missing(&manifest.wants, grants, trust)
        .into_iter()
        .map(|missing| {
            format!(
                "it wants to {} and was not granted it; to grant it, set `{}` in [packs.{}]",
                missing.what, missing.line, manifest.name
            )
        })
        .collect()
}

fn config_problems(manifest: &Manifest, config: &serde_json::Map<String, serde_json::Value>) -> Vec<String> {
    let config = serde_json::Value::Object(config.clone());
    match &manifest.config_schema {
        None if config.as_object().is_some_and(|config| !config.is_empty()) => {
            vec![format!(
                "it takes no configuration; remove [packs.{}.config]",
                manifest.name
            )]
        }
        None => Vec::new(),
        Some(schema) => match jsonschema::validator_for(schema) {
            Err(err) => vec![format!("its config schema is no JSON Schema: {err}")],
            Ok(validator) => validator
                .iter_errors(&config)
                .map(|err| {
                    let at = err.instance_path().to_string().replace('/', ".");
                    format!("[packs.{}.config]{at}: {err}", manifest.name)
                })
                .collect(),
        },
    }
}
