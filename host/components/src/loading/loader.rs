//! Dependencies of loading: directories, the sandbox, the compiler and the database.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tollgate_core::clock::Clock;
use tollgate_sandbox::Sandbox;
use tollgate_store::data_dir::{DataDir, DataDirError};
use tollgate_store::storage::{Database, MigrationError, MigrationStep, Namespace};

use super::cache::{Cache, How};
use super::code_cache::Codes;
use super::compile::Compiler;
use super::download::Downloads;

/// Treatment of the tables of loaded packs and policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    /// Migrates the tables of each component. A component whose tables cannot be migrated is not loaded.
    Migrate,
    /// Leaves the tables unchanged until the catalog's `migrate`. A component whose tables could not be migrated is
    /// not loaded.
    Try,
    /// Leaves the tables unchanged.
    Leave,
}

impl Tables {
    /// Applies this to the tables of one component.
    pub fn bring(
        self,
        loader: &Loader,
        namespace: &Namespace,
        steps: &[MigrationStep],
    ) -> Result<(), MigrationError> {
        match self {
            Tables::Migrate => loader.database.migrate(namespace, steps),
            Tables::Try => loader.database.try_migrate(namespace, steps),
            Tables::Leave => Ok(()),
        }
    }
}

/// Files that a loader stores in its data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Compiled and downloaded components.
    Components,
    /// Nothing. Existing files are used.
    Nothing,
}

/// Loads components. Clones are the same loader.
#[derive(Clone)]
pub struct Loader(Arc<Parts>);

/// Dependencies of loading.
pub struct Parts {
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) cache: Cache,
    pub(super) codes: Codes,
    pub(super) downloads: Downloads,
    pub(super) compiler: Compiler,
    pub(super) database: Database,
    pub(super) clock: Arc<dyn Clock>,
    /// Deadline by which components must have described themselves, for a check with a time limit.
    pub(super) end: OnceLock<Instant>,
    /// Sources of the components' code and the times it took to load, by SHA-256.
    pub(super) brought: Mutex<BTreeMap<String, (How, Duration)>>,
}

impl Deref for Loader {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Loader {
    /// A loader over a data directory, with the cache of another directory if one is given.
    pub fn new(
        data: &DataDir,
        (cache_dir, keep): (Option<&Path>, Keep),
        sandbox: Arc<Sandbox>,
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

    /// Downloaded components.
    pub fn downloads(&self) -> &Downloads {
        &self.downloads
    }

    /// Applies the migrations of many components, all or none. Each comes with its name for messages.
    pub(crate) fn migrate_together(
        &self,
        components: Vec<(&Namespace, &[MigrationStep], String)>,
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
}
