//! From a source to a pack that can be called.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use thiserror::Error;
use tollgate_core::clock::Clock;
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_core::effect::Effect;
use tollgate_sandbox::bindings::exports::tollgate::host::pack as wit;
use tollgate_sandbox::bindings::tollgate::host::component::Want;
use tollgate_sandbox::bindings::{ToolPack, ToolPackPre};
use tollgate_sandbox::facts::{Facts, Transactions};
use tollgate_sandbox::granted::Granted;
use tollgate_sandbox::guest::{CallStore, GuestResult, Stopped};
use tollgate_sandbox::process::Launcher;
use tollgate_sandbox::progress::Progress;
use tollgate_sandbox::state::Setup;
use tollgate_sandbox::workspaces::{Access, Workspaces};
use tollgate_sandbox::{CallState, Limits, Sandbox};
use tollgate_store::artifacts::CallArtifacts;
use tollgate_store::data_dir::{DataDir, DataDirError};
use tollgate_store::storage::{self, Database, MigrationError, Namespace, Problems, Step};
use wasmtime::component::InstancePre;
use wasmtime::{Store, Trap};

use super::bring::pinned;
use super::cache::{Cache, How};
use super::code_cache::{Code, Codes};
use super::compile::Compiler;
use super::download::Downloads;
use super::grants::{self, Grants, Trust};
use super::inspect::{self, Inspection, Said};
use super::lint;
use super::manifest::Manifest;
use super::origin::Origin;
use super::ready::{Linked, Ready};
use super::version::World;
use crate::builtin;
use crate::host_tool::HostTools;
use crate::policies::{Described, InstancePool};

/// Time limit for a component to describe itself.
const DESCRIBE_TIME: Duration = Duration::from_secs(5);
/// Time limit of loading while clients wait.
const SOON: Duration = Duration::from_millis(500);

/// A component that should become a pack, and the operator's settings for it.
#[derive(Debug, Clone)]
pub struct Source {
    /// The name the operator gave it, which its manifest must state too.
    pub name: String,
    /// Origin of the bytes.
    pub origin: Origin,
    /// The hash its bytes must have, if pinned.
    pub sha256: Option<String>,
    /// Grants of the pack.
    pub grants: Grants,
    /// Limits of the pack's calls.
    pub limits: Limits,
    /// Its `config` table as a JSON object.
    pub config: serde_json::Map<String, Value>,
    /// Tools of it that must not exist.
    pub exclude: Vec<String>,
    /// True if its schemas may use all of JSON Schema, although some clients refuse such lists.
    pub full_schemas: bool,
    /// True if tasks of its idempotent tools are repeated whose hosts are gone.
    pub resume: bool,
}

/// A loaded pack.
pub struct Pack {
    /// Manifest of the pack, checked.
    pub manifest: Manifest,
    /// Origin of the bytes in words.
    pub origin: String,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// Its size in bytes.
    pub size: usize,
    /// Limits of the pack's calls.
    pub limits: Limits,
    /// Its `config` table as JSON text.
    pub config: String,
    /// Globs of tools that must not exist.
    pub exclude: Vec<String>,
    /// True if tasks of its idempotent tools are repeated whose hosts are gone.
    pub resume: bool,
    /// Its tables.
    pub namespace: Namespace,
    /// Further granted capabilities.
    pub granted: Arc<Granted>,
    /// Workspaces and programs it may use.
    pub access: Arc<Access>,
    ready: Ready,
    spares: InstancePool<ToolPack>,
}

impl Pack {
    /// True if the pack is part of this program.
    pub fn is_builtin(&self) -> bool {
        self.origin == Origin::Builtin(&[]).to_string()
    }

    /// True once its code is in memory.
    pub fn is_ready(&self) -> bool {
        self.ready.linked().is_some()
    }

    /// Makes an instance in the store of a call. Fails until the code is there, which the gate waits for.
    pub fn instantiate(&self, store: &mut CallStore) -> GuestResult<ToolPack> {
        let linked = self.ready.linked().ok_or_else(Stopped::without_code)?;
        Ok(linked.pre.instantiate(store)?)
    }

    /// Instances that were made before a call needs them.
    pub fn spares(&self) -> &InstancePool<ToolPack> {
        &self.spares
    }

    /// Brings its code in, if it is not there. The error is everything that is wrong.
    pub async fn ready(&self) -> Result<(), Vec<String>> {
        self.ready.wait().await
    }
}

/// Reason why a component did not become a pack: everything that is wrong, with remedies.
#[derive(Debug, Error)]
#[error("pack `{pack}` ({origin}) was not loaded: {}", .problems.join("; "))]
pub struct LoadError {
    /// The operator's name for it.
    pub pack: String,
    /// Origin of the bytes.
    pub origin: String,
    /// Problems.
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

/// Problems of a component's migrations, one message each.
pub fn migration_problems(read: &Result<Namespace, Problems>) -> Vec<String> {
    let problems = read
        .as_ref()
        .err()
        .map_or(&[][..], |Problems(problems)| problems.as_slice());
    let said = problems
        .iter()
        .map(|problem| format!("its migrations cannot be run: {problem}"));
    said.collect()
}

/// A component's code, before it is linked.
pub struct Prepared {
    pub code: Code,
    /// SHA-256 of its bytes, in hex.
    pub hash: String,
    /// Its size in bytes.
    pub size: usize,
}

/// Treatment of the tables of loaded packs and policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    /// The tables of each are migrated. A component whose tables cannot be migrated is not loaded.
    Migrate,
    /// The tables stay as they are until [`Catalog::migrate`](super::Catalog::migrate); a component whose tables
    /// could not be brought up to date is not loaded.
    Try,
    /// The tables stay as they are.
    Leave,
}

impl Tables {
    /// Does that with the tables of one component.
    pub fn bring(self, loader: &Loader, namespace: &Namespace, steps: &[Step]) -> Result<(), MigrationError> {
        match self {
            Tables::Migrate => loader.database.migrate(namespace, steps),
            Tables::Try => loader.database.try_migrate(namespace, steps),
            Tables::Leave => Ok(()),
        }
    }
}

/// The part of loading that is done before tools can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// Components that need neither the compiler nor another machine. The rest is left out for now.
    AtHand,
    /// Descriptions of all components. Code of packs that were described before is brought in when it is needed.
    Described,
    /// Everything.
    Whole,
}

/// Files that a loader leaves in its data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Compiled and downloaded components.
    Components,
    /// Nothing: what is there is used.
    Nothing,
}

/// Brings components in. Clones are the same loader.
#[derive(Clone)]
pub struct Loader(Arc<Parts>);

/// Parts that loading needs.
pub struct Parts {
    pub(super) sandbox: Arc<Sandbox>,
    /// The host's own tools.
    pub(super) host_tools: HostTools,
    pub(super) cache: Cache,
    pub(super) codes: Codes,
    pub(super) downloads: Downloads,
    pub(super) compiler: Compiler,
    database: Database,
    clock: Arc<dyn Clock>,
    /// Deadline by which components must have described themselves, if a check ends then.
    end: OnceLock<Instant>,
    /// Sources of the components' code and the times to bring it in, by SHA-256.
    pub(super) brought: Mutex<BTreeMap<String, (How, Duration)>>,
}

impl Deref for Loader {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Loader {
    /// A loader over a data directory, with the cache of another directory if one is named, for a host with tools of its own.
    pub fn new(
        data: &DataDir,
        (cache_dir, keep): (Option<&Path>, Keep),
        sandbox: Arc<Sandbox>,
        host_tools: HostTools,
        compiler: Compiler,
        database: Database,
        clock: Arc<dyn Clock>,
    ) -> Result<Loader, DataDirError> {
        let cache_dir = cache_dir.unwrap_or(data.path());
        let (cache, downloads) = match keep {
            Keep::Components => (Cache::open(DataDir::open(cache_dir)?)?, Downloads::open(data)?),
            Keep::Nothing if !cache_dir.exists() => (Cache::none(), Downloads::frozen(data)?),
            Keep::Nothing => (
                Cache::frozen(DataDir::existing(cache_dir)?)?,
                Downloads::frozen(data)?,
            ),
        };
        Ok(Loader(Arc::new(Parts {
            sandbox,
            host_tools,
            cache,
            codes: Codes::default(),
            downloads,
            compiler,
            database,
            clock,
            end: OnceLock::new(),
            brought: Mutex::default(),
        })))
    }

    /// The components that were downloaded.
    pub fn downloads(&self) -> &Downloads {
        &self.downloads
    }

    /// Everything up to the pack's migrations, which wait until its name and tools are known to be
    /// free. `None` if that takes longer than there is time.
    pub(super) async fn load(
        &self,
        source: Source,
        workspaces: &Workspaces,
        haste: Haste,
    ) -> Option<Result<Pack, LoadError>> {
        let origin = source.origin.to_string();
        let loaded = self.try_load(&source, workspaces, haste).await;
        loaded
            .map_err(|problems| LoadError::new(&source.name, &origin, problems))
            .transpose()
    }

    /// Inspects a component's kind and requests as far as possible. Nothing of it is kept but its compiled
    /// code.
    pub async fn inspect(&self, bytes: &[u8]) -> Inspection {
        inspect::inspection(bytes, async |world| {
            let hash = tollgate_core::hash::sha256_hex(bytes);
            let code = self.checked("the component", bytes, &hash, world).await?;
            if world == World::Policy {
                let prepared = Prepared {
                    code,
                    hash,
                    size: bytes.len(),
                };
                return Ok(Said::Policy(Described::prepared(self, prepared)?.manifest));
            }
            let pre = self.link(&code, ToolPackPre::new)?;
            Ok(Said::Pack(Manifest::check(self.describe(&pre)?)?))
        })
        .await
    }

    /// Applies the migrations of many components, all or none. Each comes with what it is called.
    pub(super) fn migrate_together(
        &self,
        components: Vec<(&Namespace, &[Step], String)>,
    ) -> anyhow::Result<()> {
        let steps = components
            .iter()
            .map(|(namespace, steps, _)| (*namespace, *steps));
        self.database.migrate_together(steps).map_err(|(namespace, err)| {
            let whose = components.iter().find(|(own, ..)| own.pack() == namespace);
            let whose = whose.map_or(namespace.as_str(), |(.., name)| name);
            anyhow::anyhow!("{whose} was not loaded: {}", tollgate_core::text::chain(&err))
        })
    }

    /// Packs whose tables are in the database, loaded or not.
    pub fn packs_with_tables(&self) -> Vec<String> {
        self.database.packs_with_tables().unwrap_or_default()
    }

    async fn try_load(
        &self,
        source: &Source,
        workspaces: &Workspaces,
        haste: Haste,
    ) -> Result<Option<Pack>, Vec<String>> {
        let Some(bytes) = self.bytes(&source.origin, haste).await? else {
            return Ok(None);
        };
        let (hash, size) = (pinned(&bytes, source.sha256.as_deref())?, bytes.len());
        let known = self.known_manifest(&hash);
        let (manifest, ready) = match known {
            Some(manifest) => (manifest, self.later(&source.name, bytes, hash.clone())),
            None if haste == Haste::AtHand => match self.described_soon(&source.name, bytes, &hash).await? {
                Some(described) => described,
                None => return Ok(None),
            },
            None => self.described(&source.name, bytes, &hash).await?,
        };
        let pack = self.pack(source, workspaces, manifest, ready, (hash, size))?;
        if haste == Haste::Whole {
            pack.ready().await?;
        }
        Ok(Some(pack))
    }

    /// Manifest of a pack from the build of this program or from an earlier load.
    fn known_manifest(&self, hash: &str) -> Option<Manifest> {
        let said: wit::Manifest = match builtin::manifest(hash) {
            Some(said) => serde_json::from_str(said).ok()?,
            None => serde_json::from_str(&self.cache.manifest(self.sandbox.engine(), hash)?).ok()?,
        };
        Manifest::check(said).ok()
    }

    /// The code of a pack whose manifest is known, when it is needed.
    fn later(&self, name: &str, bytes: Cow<'static, [u8]>, hash: String) -> Ready {
        let (loader, name) = (self.clone(), name.to_owned());
        Ready::later(async move {
            let code = loader.checked(&name, &bytes, &hash, World::ToolPack).await?;
            let pre = loader.link(&code, ToolPackPre::new)?;
            Ok(Linked { pre, _code: code })
        })
    }

    /// Has a pack say what it is, if its code is at hand and it does not take long.
    async fn described_soon(
        &self,
        name: &str,
        bytes: Cow<'static, [u8]>,
        hash: &str,
    ) -> Result<Option<(Manifest, Ready)>, Vec<String>> {
        let at_hand = async { self.at_hand(hash).await.ok_or(()) };
        let Ok(_held) = self.codes.get(hash, at_hand).await else {
            return Ok(None);
        };
        let described = tokio::time::timeout(SOON, self.described(name, bytes, hash)).await;
        described.ok().transpose()
    }

    /// Has a pack say what it is, and remembers it.
    async fn described(
        &self,
        name: &str,
        bytes: Cow<'static, [u8]>,
        hash: &str,
    ) -> Result<(Manifest, Ready), Vec<String>> {
        let code = self.checked(name, &bytes, hash, World::ToolPack).await?;
        let pre = self.link(&code, ToolPackPre::new)?;
        let (loader, asked) = (self.clone(), pre.clone());
        // It runs a guest, which blocks.
        let said = tokio::task::spawn_blocking(move || loader.describe(&asked)).await;
        let said =
            said.unwrap_or_else(|_| Err(vec!["the host failed while it was to describe itself".to_owned()]))?;
        let remembered = serde_json::to_string(&said);
        let manifest = Manifest::check(said)?;
        if let Ok(said) = remembered {
            self.cache.keep_manifest(self.sandbox.engine(), hash, &said);
        }
        Ok((manifest, Ready::now(Linked { pre, _code: code })))
    }

    /// The pack that a manifest and the operator's settings make.
    fn pack(
        &self,
        source: &Source,
        workspaces: &Workspaces,
        manifest: Manifest,
        ready: Ready,
        (hash, size): (String, usize),
    ) -> Result<Pack, Vec<String>> {
        if manifest.name != source.name {
            return Err(vec![format!(
                "it calls itself `{0}`; configure it as [packs.{0}]",
                manifest.name
            )]);
        }
        let trust = source.origin.trust();
        let table = format!("packs.{}", manifest.name);
        let mut problems = missing_grants(&table, &manifest.wants, &source.grants, trust);
        problems.extend(config_problems(
            &table,
            manifest.config_schema.as_ref(),
            &source.config,
        ));
        if !source.full_schemas {
            problems.extend(lint::full(&table, &manifest));
        }
        let namespace = Namespace::of_pack(&manifest.name).with_tables(&manifest.migrations);
        problems.extend(migration_problems(&namespace));
        let (Ok(namespace), true) = (namespace, problems.is_empty()) else {
            return Err(problems);
        };
        Ok(Pack {
            namespace: namespace.bounded(source.limits.of_tables()),
            granted: Arc::new(grants::granted(&manifest.wants, &source.grants, trust)),
            access: Arc::new(Access::new(
                workspaces,
                &source.grants.asked(&manifest.wants, trust),
                |name| source.grants.workspace(name, trust),
            )),
            manifest,
            origin: source.origin.to_string(),
            hash,
            size,
            limits: source.limits.clone(),
            config: Value::Object(source.config.clone()).to_string(),
            exclude: source.exclude.clone(),
            resume: source.resume,
            ready,
            spares: match source.origin {
                Origin::Builtin(_) => InstancePool::default(),
                // Others may do something when they are made that belongs to the call.
                _ => InstancePool::none(),
            },
        })
    }

    /// Joins a component to what this host offers.
    pub fn link<P>(
        &self,
        code: &Code,
        pre: impl FnOnce(InstancePre<CallState>) -> wasmtime::Result<P>,
    ) -> Result<P, Vec<String>> {
        self.sandbox
            .linker()
            .instantiate_pre(code.component())
            .and_then(pre)
            .map_err(|err| vec![format!("it does not fit this host: {err:#}")])
    }

    /// Gives components that are asked something no time after this.
    pub fn end_by(&self, end: Instant) {
        let _ = self.end.set(end);
    }

    fn describe(&self, pre: &ToolPackPre<CallState>) -> Result<wit::Manifest, Vec<String>> {
        self.ask("describe itself", |store| {
            pre.instantiate(&mut *store)?
                .tollgate_host_pack()
                .call_describe(store)
        })
    }

    /// Asks a component something while it is being loaded. It has no storage meanwhile: its session is on an empty
    /// database of its own, and nothing is written there either. Nor does it start programs.
    pub fn ask<T>(
        &self,
        what: &str,
        ask: impl FnOnce(&mut Store<CallState>) -> wasmtime::Result<T> + Send,
    ) -> Result<T, Vec<String>>
    where
        T: Send,
    {
        let session = storage::nowhere().map_err(one)?;
        session.freeze().map_err(one)?;
        let left = self
            .end
            .get()
            .map(|end| end.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Err(vec![format!("no time was left for it to {what}")]);
        }
        let time = left.map_or(DESCRIBE_TIME, |left| left.min(DESCRIBE_TIME));
        let deadline = Deadline::after(time, Cancel::default());
        let namespace = Namespace::of_pack("-");
        session.enter(&namespace, &deadline);
        let setup = Setup {
            namespace,
            facts: Facts::default(),
            deadline: deadline.clone(),
            clock: Arc::clone(&self.clock),
            transactions: Transactions::None,
            effect: Effect::Read,
            access: Arc::default(),
            launcher: Arc::new(Launcher::refusing()),
            progress: Progress::default(),
            artifacts: CallArtifacts::default(),
        };
        let state = CallState::new(setup, Box::new(session), &Limits::default());
        // On a thread that is not the runtime's: WASI blocks it when the component prints, as one that
        // panics does.
        let asked = std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let mut store = state.into_store(&self.sandbox);
                let _running = self.sandbox.running();
                ask(&mut store)
            });
            asking.join()
        });
        match asked {
            Ok(Err(_)) if deadline.is_over() => Err(vec![format!(
                "it does not {what} within {:.1} s",
                time.as_secs_f32()
            )]),
            Ok(said) => said.map_err(|err| match err.downcast_ref::<Trap>() {
                // What the program did at that place says little to who only adds it.
                Some(trap) => vec![format!("it does not {what}: it crashed ({trap})")],
                None => vec![format!("it does not {what}: {err:#}")],
            }),
            Err(_) => Err(vec![format!("the host failed while it was to {what}")]),
        }
    }
}

/// An error with all its causes, as one problem.
pub fn one(err: impl std::error::Error) -> Vec<String> {
    vec![tollgate_core::text::chain(&err)]
}

/// Requests of a component that are not granted, with the lines that grant them.
pub fn missing_grants(table: &str, wants: &[Want], grants: &Grants, trust: Trust) -> Vec<String> {
    grants::missing(wants, grants, trust)
        .into_iter()
        .map(|missing| {
            format!(
                "it wants to {} and was not granted it; to grant it, set `{}` in [{table}]",
                missing.what, missing.line
            )
        })
        .collect()
}

/// Problems of a component's `config` table by the component's own schema.
pub fn config_problems(
    table: &str,
    schema: Option<&Value>,
    config: &serde_json::Map<String, Value>,
) -> Vec<String> {
    let Some(schema) = schema else {
        return if config.is_empty() {
            Vec::new()
        } else {
            vec![format!("it takes no configuration; remove [{table}.config]")]
        };
    };
    match jsonschema::validator_for(schema) {
        Err(err) => vec![format!("its config schema is no JSON Schema: {err}")],
        Ok(validator) => validator
            .iter_errors(&Value::Object(config.clone()))
            .map(|err| {
                let at = err.instance_path().to_string().replace('/', ".");
                format!("[{table}.config]{at}: {err}")
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::clock::SystemClock;

    use super::super::catalog::compiled;
    use super::super::version;
    use super::*;

    #[tokio::test]
    async fn what_packs_said_at_build_time_is_what_they_say() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(place.path()).unwrap();
        let database = Database::open(&data.database()).unwrap();
        let loader = Loader::new(
            &data,
            (None, Keep::Components),
            Arc::new(Sandbox::new().unwrap()),
            HostTools::default(),
            // No component needs the compiler.
            Compiler::new("/nowhere/tollgate".into()),
            database,
            Arc::new(SystemClock),
        )
        .unwrap();
        for name in builtin::names() {
            let bytes = builtin::component(name).unwrap();
            let hash = builtin::sha256(bytes);
            let code = loader.checked(name, bytes, &hash, World::ToolPack).await.unwrap();
            let pre = loader.link(&code, ToolPackPre::new).unwrap();
            let said: wit::Manifest = serde_json::from_str(builtin::manifest(&hash).unwrap()).unwrap();
            assert!(said == loader.describe(&pre).unwrap(), "{name}");
            assert_eq!(loader.brought(&hash).unwrap().0, How::Unpacked);
            for tool in Manifest::check(said).unwrap().named() {
                assert!(compiled(&tool.input_schema).is_ok(), "{}", tool.name);
            }
        }
        for name in builtin::policies() {
            let hash = builtin::sha256(builtin::policy(name).unwrap());
            assert!(builtin::ahead(&hash).is_some(), "{name}");
        }
    }

    #[test]
    fn built_in_components_are_what_they_are_taken_for() {
        for name in builtin::names() {
            version::check(builtin::component(name).unwrap(), World::ToolPack).unwrap();
        }
        for name in builtin::policies() {
            version::check(builtin::policy(name).unwrap(), World::Policy).unwrap();
        }
    }
}
