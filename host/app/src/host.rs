//! Assembly of a host: data directory, sandbox, packs, gate.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use tollgate_components::catalog::{Catalog, Selection};
use tollgate_components::loading::compile::Compiler;
use tollgate_components::loading::{Haste, Keep, Loader, Tables};
use tollgate_components::policies;
use tollgate_core::clock::Clock;
use tollgate_gate::core_tools;
use tollgate_gate::{CallServices, Gate, Generation, Maintenance};
use tollgate_sandbox::Sandbox;
use tollgate_sandbox::process::{Environment, Launcher};
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_sdk::Timestamp;
use tollgate_store::artifacts::{ArtifactSettings, ArtifactStore};
use tollgate_store::data_dir::{DATABASE, DataDir};
use tollgate_store::liveness::{Host, hosts_alive};
use tollgate_store::pulse::NewPulse;
use tollgate_store::storage::{Database, Server};

use crate::config::Config;
use crate::sources::{policy_sources, sources};

/// Packs to load, and the selection of their tools.
#[derive(Debug, Clone, Default)]
pub struct PackSelection {
    /// Only these packs; all enabled ones if empty.
    pub packs: Vec<String>,
    /// Selected tools of these packs.
    pub selection: Selection,
}

/// Resources that the process gives the host, obtained once by `main`.
#[derive(Debug)]
pub struct Authority {
    /// This program, which compiles components and supervises programs in separate processes.
    pub executable: PathBuf,
    /// Environment of programs; `None` if none may be started.
    pub environment: Option<Environment>,
    /// The user's own umask, for what programs and packs create in workspaces.
    pub umask: u32,
    /// Folder of compiled components, if it is not in the data directory.
    pub cache_dir: Option<PathBuf>,
    /// Database server, if the database is not a file of the data directory.
    pub server: Option<Server>,
}

/// Environment of a host: its data directory, sandbox and database, and the means to start programs. Loaded components
/// can be replaced.
pub struct HostContext {
    data: Arc<DataDir>,
    sandbox: Arc<Sandbox>,
    database: Database,
    launcher: Arc<Launcher>,
    clock: Arc<dyn Clock>,
    loader: Loader,
    /// Reason why the current configuration file is not in effect, if it is not.
    refused: Mutex<Option<String>>,
}

impl HostContext {
    /// Opens a data directory.
    pub fn open(data_dir: &Path, authority: Authority) -> anyhow::Result<HostContext> {
        let data = DataDir::open(data_dir)?;
        if let Some(server) = authority.server.clone() {
            let database = Database::connect(server).context("cannot use the database")?;
            return HostContext::on(data, database, authority, Keep::Components);
        }
        if !data.has(DATABASE) {
            // If someone moved the database away, a new empty one beside it would split the work of the two.
            let alive = hosts_alive(&data)?;
            anyhow::ensure!(
                alive.is_empty(),
                "{DATABASE} is missing from {} while host {} is running; stop it, put the file back with its \
                 -wal, and start again",
                data_dir.display(),
                alive.join(", ")
            );
        }
        let database = Database::open(&data.database()).context("cannot use the database")?;
        HostContext::on(data, database, authority, Keep::Components)
    }

    /// Opens a data directory as it is: nothing is created, migrated or stored.
    pub fn frozen(data_dir: &Path, authority: Authority) -> anyhow::Result<HostContext> {
        let data = DataDir::existing(data_dir)?;
        if let Some(server) = authority.server.clone() {
            return HostContext::on(data, Database::on(server), authority, Keep::Nothing);
        }
        anyhow::ensure!(
            data.has(DATABASE),
            "there is no ledger in {}; no host has ever used this directory",
            data_dir.display()
        );
        let database = Database::existing(&data.database());
        HostContext::on(data, database, authority, Keep::Nothing)
    }

    fn on(
        data: DataDir,
        database: Database,
        authority: Authority,
        keep: Keep,
    ) -> anyhow::Result<HostContext> {
        let Authority {
            executable,
            environment,
            umask,
            cache_dir,
            server: _,
        } = authority;
        let launcher = Arc::new(Launcher::new(executable.clone(), environment, umask));
        let clock: Arc<dyn Clock> = database.clock()?;
        let sandbox = Arc::new(Sandbox::new()?);
        let loader = Loader::new(
            &data,
            (cache_dir.as_deref(), keep),
            Arc::clone(&sandbox),
            Compiler::new(executable),
            database.clone(),
            Arc::clone(&clock),
        )?;
        Ok(HostContext {
            data: Arc::new(data),
            sandbox,
            database,
            launcher,
            clock,
            loader,
            refused: Mutex::default(),
        })
    }

    /// Records why the configuration file was refused, or `None` if it is in effect.
    pub fn note_refused(&self, why: Option<String>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Reason why the configuration file was refused, if it was.
    pub fn refused(&self) -> Option<String> {
        self.refused
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The data directory.
    pub fn path(&self) -> &Path {
        self.data.path()
    }

    /// Opened data directory.
    pub fn data(&self) -> &DataDir {
        &self.data
    }

    /// Dependencies of calls.
    pub fn services(&self) -> CallServices {
        CallServices {
            sandbox: Arc::clone(&self.sandbox),
            launcher: Arc::clone(&self.launcher),
            clock: Arc::clone(&self.clock),
        }
    }

    /// Stored artifacts, if any are kept.
    pub fn artifacts(&self) -> anyhow::Result<Option<ArtifactStore>> {
        let clock = Arc::clone(&self.clock);
        Ok(ArtifactStore::open(
            &self.data,
            ArtifactSettings::default(),
            clock,
            &self.database,
        )?)
    }

    /// The clock of calls.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Loader of components.
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// Loads the components of a configuration. Packs that fail to load are listed in the catalog's failures, and the
    /// rest works.
    pub async fn load(
        &self,
        config: &Config,
        workspaces: Workspaces,
        pack_selection: &PackSelection,
    ) -> anyhow::Result<Generation> {
        self.load_in(config, workspaces, pack_selection, Haste::Whole)
            .await
    }

    /// Like [`load`](HostContext::load), with a degree of haste.
    pub async fn load_in(
        &self,
        config: &Config,
        workspaces: Workspaces,
        pack_selection: &PackSelection,
        haste: Haste,
    ) -> anyhow::Result<Generation> {
        let mut loaded = self
            .load_with(config, workspaces, pack_selection, (Tables::Migrate, haste))
            .await?;
        self.remember(&mut loaded);
        Ok(loaded)
    }

    /// Loads what a hasty load left out. Components that fail to load are listed in the catalog's failures, as in a
    /// full load.
    pub async fn complete(
        &self,
        config: &Config,
        workspaces: Workspaces,
        pack_selection: &PackSelection,
        running: &Generation,
    ) -> anyhow::Result<Generation> {
        let mut whole = self
            .load_with(
                config,
                workspaces,
                pack_selection,
                (Tables::Migrate, Haste::Whole),
            )
            .await?;
        if let Some(catalog) = Arc::get_mut(&mut whole.catalog) {
            catalog.inherit(&running.catalog);
        }
        self.remember(&mut whole);
        Ok(whole)
    }

    /// Loads the components of a configuration to replace the running ones. Fails without changes if a pack that loaded
    /// before does not load.
    pub async fn load_again(
        &self,
        config: &Config,
        workspaces: Workspaces,
        pack_selection: &PackSelection,
        running: &Generation,
    ) -> anyhow::Result<Generation> {
        let mut next = self
            .load_with(config, workspaces, pack_selection, (Tables::Try, Haste::Whole))
            .await?;
        let failed_before = |name: &str| {
            running
                .catalog
                .failures()
                .iter()
                .any(|failure| failure.pack == name)
        };
        let failures = next.catalog.failures().iter();
        let policy_failed_before = |name: &str| {
            let mut unloaded = running.catalog.policies().failures();
            unloaded.any(|unloaded| unloaded.policy == name)
        };
        let policies = next.catalog.policies().failures();
        let policies = policies.filter(|unloaded| !policy_failed_before(&unloaded.policy));
        let fresh: Vec<String> = failures
            .filter(|failure| !failed_before(&failure.pack))
            .map(ToString::to_string)
            .chain(policies.map(ToString::to_string))
            .collect();
        anyhow::ensure!(fresh.is_empty(), "{}", fresh.join("\n"));
        next.catalog.migrate(&self.loader)?;
        if let Some(catalog) = Arc::get_mut(&mut next.catalog) {
            catalog.inherit(&running.catalog);
        }
        self.remember(&mut next);
        Ok(next)
    }

    /// Everything works without this. Only changes of tools are not noticed until the next start.
    fn remember(&self, loaded: &mut Generation) {
        let now = Timestamp::from_ms(self.clock.now_ms()).to_string();
        let Some(catalog) = Arc::get_mut(&mut loaded.catalog) else {
            return;
        };
        if let Err(err) = catalog.remember(&self.database, &now) {
            tracing::error!("storing the definitions of tools failed: {err:#}");
        }
    }

    /// Makes the loader use the registries and the trust of a configuration, if it names a component in a registry.
    pub fn use_registries(&self, config: &Config) -> anyhow::Result<()> {
        if config.uses_registries() {
            let registries = config.open_registries(|name| std::env::var(name).ok())?;
            self.loader.downloads().use_registries(Arc::new(registries));
        }
        Ok(())
    }

    async fn load_with(
        &self,
        config: &Config,
        workspaces: Workspaces,
        pack_selection: &PackSelection,
        how: (Tables, Haste),
    ) -> anyhow::Result<Generation> {
        let sources = sources(config, &pack_selection.packs)?;
        let policies = policy_sources(config)?;
        self.use_registries(config)?;
        let selection = &pack_selection.selection;
        let catalog = Catalog::load(
            &self.loader,
            core_tools::TOOLS,
            &workspaces,
            sources,
            policies,
            selection,
            how,
        )
        .await;
        Ok(Generation {
            catalog: Arc::new(catalog),
            envelopes: config.envelope.settings(),
            approvals: config.approvals.settings(&config.server.console),
            workspaces,
        })
    }

    /// Loads the components of a configuration with one policy replaced, and changes nothing.
    pub async fn load_to_try(
        &self,
        config: &Config,
        workspaces: &Workspaces,
        policy: policies::Source,
    ) -> anyhow::Result<Arc<Catalog>> {
        let sources = sources(config, &[])?;
        let selection = Selection::default();
        let catalog = Catalog::load(
            &self.loader,
            core_tools::TOOLS,
            workspaces,
            sources,
            vec![policy],
            &selection,
            // Recorded calls are not run again, so packs do not need their code.
            (Tables::Leave, Haste::Described),
        );
        Ok(Arc::new(catalog.await))
    }

    /// Opens the gate over the loaded components, as one of the hosts of the data directory.
    pub fn gate(&self, config: &Config, generation: Generation) -> anyhow::Result<Gate> {
        let host = Host::join_at(
            &self.data,
            self.clock.new_id("hst"),
            &self.database,
            NewPulse {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                url: config.cluster.url(config.server.auth.resource.as_deref()),
                lease: config.cluster.lease(),
            },
        )?;
        self.database.know_heads(generation.head_of());
        host.clean_up_after_dead_hosts(&self.database, &*self.clock)?;
        let artifacts = ArtifactStore::open(
            &self.data,
            config.artifacts.clone(),
            Arc::clone(&self.clock),
            &self.database,
        )?;
        let maintenance = Maintenance {
            data: Arc::clone(&self.data),
            settings: config.ledger.clone(),
            artifacts: artifacts.map(Arc::new),
        };
        Gate::open(generation, self.services(), &self.database, host, maintenance)
    }
}

/// Opens a data directory, loads its components, and opens the gate. Code is loaded when a call needs it.
pub async fn open(
    config: &Config,
    data_dir: &Path,
    authority: Authority,
    workspaces: Workspaces,
    pack_selection: &PackSelection,
) -> anyhow::Result<Gate> {
    open_in(
        config,
        data_dir,
        authority,
        workspaces,
        pack_selection,
        Haste::Described,
    )
    .await
}

/// Like [`open`], with a degree of haste.
pub async fn open_in(
    config: &Config,
    data_dir: &Path,
    authority: Authority,
    workspaces: Workspaces,
    pack_selection: &PackSelection,
    haste: Haste,
) -> anyhow::Result<Gate> {
    let context = HostContext::open(data_dir, authority)?;
    let generation = context.load_in(config, workspaces, pack_selection, haste).await?;
    context.gate(config, generation)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use tempfile::TempDir;
    use tollgate_components::packs::Pack;
    use tollgate_gate::{Call, Caller, Gate};
    use tollgate_sandbox::workspaces::Workspaces;

    use super::*;

    /// A host with the pack `task-store`.
    async fn open() -> (TempDir, Gate, Arc<Pack>) {
        let place = tempfile::tempdir().unwrap();
        let authority = Authority {
            // No component needs the compiler.
            executable: "/nowhere/tollgate".into(),
            environment: None,
            umask: 0o077,
            cache_dir: None,
            server: None,
        };
        let pack_selection = PackSelection {
            packs: vec!["task-store".to_owned()],
            ..PackSelection::default()
        };
        let config = Config::default();
        let opened = super::open(
            &config,
            place.path(),
            authority,
            Workspaces::default(),
            &pack_selection,
        );
        let gate = opened.await.unwrap();
        let pack = Arc::clone(&gate.catalog().packs()[0]);
        (place, gate, pack)
    }

    async fn call(gate: &Gate, tool: &str, arguments: Value) -> Result<Value, String> {
        let arguments = arguments.as_object().cloned().unwrap();
        let call = Call::new(tool, arguments, Caller::default());
        let result = gate.call(call).await.unwrap().result;
        result
            .map(|reply| Value::Object(reply.structured()))
            .map_err(|refusal| refusal.code)
    }

    fn task(title: &str) -> Value {
        json!({"title": title, "spec_markdown": "# Goal\nNone.", "workspace": "w", "initial_phase": "spec_draft",
            "actor": "ada", "actor_role": "orchestrator"})
    }

    /// Waits until an instance is ready. After a call with no other call behind it, the next instance is prepared.
    async fn stocked(pack: &Pack) {
        let ready = async {
            while pack.pool().ready() == 0 {
                tokio::task::yield_now().await;
            }
        };
        let patience = std::time::Duration::from_secs(30);
        tokio::time::timeout(patience, ready).await.unwrap();
    }

    #[tokio::test]
    async fn calls_in_instances_made_in_advance_are_as_calls_in_their_own() {
        let (_place, gate, pack) = open().await;
        assert_eq!(pack.pool().ready(), 0);
        let mut ids = Vec::new();
        for title in ["one", "two", "three"] {
            let created = call(&gate, "task_create", task(title)).await.unwrap();
            assert_eq!(created["task"]["title"], title);
            ids.push(created["task"]["id"].as_str().unwrap().to_owned());
            stocked(&pack).await;
            // A refused call leaves no state to the next instance.
            let lost = call(&gate, "task_get", json!({"task_id": "task_lost"})).await;
            lost.unwrap_err();
            stocked(&pack).await;
            let listed = call(&gate, "task_list", json!({})).await.unwrap();
            assert_eq!(listed["tasks"].as_array().unwrap().len(), ids.len());
            stocked(&pack).await;
        }
        ids.dedup();
        assert_eq!(ids.len(), 3);
    }
}
