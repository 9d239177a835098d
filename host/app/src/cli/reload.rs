//! Reload of a changed configuration while serving. Either everything of the new configuration works, or the old one
//! stays.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use tokio::sync;
use tokio_util::sync::CancellationToken;
use tollgate::config::protections::{self, Records};
use tollgate::config::{Caps, Config};
use tollgate::host::HostContext;
use tollgate::watch::{Cause, Watch};
use tollgate_console::ConsoleSettings;
use tollgate_gate::Gate;
use tollgate_mcp::auth::{Keyring, Refreshed};
use tollgate_mcp::{Listing, Listings};
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_store::data_dir::DataDir;

use super::{Filters, Global, log, out};

/// Parts of a running server that a reload replaces.
pub(super) struct Reload {
    pub(super) global: Global,
    pub(super) filters: Filters,
    pub(super) context: Arc<HostContext>,
    pub(super) gate: Arc<Gate>,
    pub(super) listings: Arc<Listings>,
    /// Passes changed limits to the HTTP server.
    pub(super) bounds: sync::watch::Sender<Caps>,
    /// Passes changed viewers and approvers to the console.
    pub(super) viewers: sync::watch::Sender<ConsoleSettings>,
    /// Configuration in effect.
    pub(super) config: Config,
}

impl Reload {
    /// Loads what the start left out, then reloads the configuration whenever there is a reason.
    pub(super) async fn keep_up(mut self, mut watch: Watch, workspaces: Workspaces) {
        if let Err(err) = self.complete(workspaces).await {
            tracing::error!("loading the remaining packs and policies failed: {err:#}");
        }
        loop {
            let cause = watch.next().await;
            let started = Instant::now();
            match self.again(&mut watch, cause).await {
                Ok(()) => {
                    self.context.note_refused(None);
                    log::notice(&format!(
                        "the configuration was loaded again in {} ms: {}",
                        started.elapsed().as_millis(),
                        tollgate_core::text::counted(self.gate.catalog().packs().len(), "pack")
                    ));
                }
                Err(err) => {
                    self.gate.keep();
                    self.context.note_refused(Some(format!("{err:#}")));
                    tracing::error!(
                        "the changed configuration was not loaded, and the previous one stays in effect: {err:#}"
                    );
                }
            }
        }
    }

    /// Loads the code of all packs, and everything else that the start left out. Calls are served in the meantime.
    async fn complete(&self, workspaces: Workspaces) -> anyhow::Result<()> {
        let running = self.gate.generation();
        let ready = running.catalog.packs().iter().map(|pack| pack.ready());
        let (pack_selection, context) = (
            self.filters.pack_selection(&self.config)?,
            Arc::clone(&self.context),
        );
        if running.catalog.preparing().is_over() {
            let ready = futures::future::join_all(ready).await;
            if ready.iter().all(Result::is_ok) {
                return Ok(());
            }
        }
        let (config, runtime) = (self.config.clone(), tokio::runtime::Handle::current());
        // A stopping host does not wait for this.
        let given_up = CancellationToken::new();
        let _give_up = given_up.clone().drop_guard();
        // Loading is CPU work, and calls are served in the meantime.
        let loading = tokio::task::spawn_blocking(move || {
            let loading = context.complete(&config, workspaces, &pack_selection, &running);
            runtime.block_on(given_up.run_until_cancelled(loading))
        });
        let Some(whole) = loading.await?.transpose()? else {
            return Ok(());
        };
        super::log_state(&whole.catalog);
        let listing = Listing::new(&whole.catalog, self.filters.schemas(&self.config));
        if listing.tools().is_empty() {
            out::warn("no tool is listed; `tollgate tools` shows all tools, `--tier full` lists them");
        }
        // Requests for lists waited for this update.
        self.listings.replace(listing);
        self.gate.complete(whole);
        Ok(())
    }

    async fn again(&mut self, watch: &mut Watch, cause: Cause) -> anyhow::Result<()> {
        let config = self.changed(cause)?;
        let files = files(&self.global, &config);
        watch.follow(
            files
                .union(&self::files(&self.global, &self.config))
                .cloned()
                .collect(),
        );
        let (context, gate, global) = (
            Arc::clone(&self.context),
            Arc::clone(&self.gate),
            self.global.clone(),
        );
        let (wanted, pack_selection) = (config.clone(), self.filters.pack_selection(&config)?);
        let runtime = tokio::runtime::Handle::current();
        // Loading is CPU work, and calls are served in the meantime.
        let loading = tokio::task::spawn_blocking(move || {
            let workspaces = super::workspaces(&global, &wanted, context.path())?;
            let running = gate.generation();
            runtime.block_on(context.load_again(&wanted, workspaces, &pack_selection, &running))
        });
        let next = loading.await??;
        super::log_state(&next.catalog);
        let listing = Listing::new(&next.catalog, self.filters.schemas(&config));
        self.gate.replace(next);
        self.listings.replace(listing);
        let caps = config.server.limits.caps();
        self.bounds
            .send_if_modified(|now| std::mem::replace(now, caps.clone()) != caps);
        self.viewers.send_replace(config.server.console.clone());
        watch.follow(files);
        for key in config.waiting_for_a_start(&self.config) {
            tracing::warn!("a change of {key} takes effect at the next start");
        }
        remember(&self.context, &config, cause)?;
        self.config = config;
        Ok(())
    }
}

impl Reload {
    /// Current configuration. Unless a reload was requested explicitly, refuses one with fewer protections.
    fn changed(&self, cause: Cause) -> anyhow::Result<Config> {
        let is_asked = cause == Cause::Asked;
        let config = self.config.load_again(self.global.config.as_deref(), is_asked)?;
        if !is_asked {
            let records = Records::open(self.context.data())?;
            let record = self.config.place().map(|place| records.of(place)).transpose()?;
            let remembered = record.flatten().map(|record| record.protections);
            config.check_protections(&self.config, remembered.as_ref())?;
        }
        Ok(config)
    }
}

/// Tokens of an HTTP server, and the watch on their file.
pub(super) struct Keys {
    pub(super) keyring: Arc<Keyring>,
    pub(super) watch: Watch,
}

impl Keys {
    /// Reloads the file when it changes and on SIGHUP, whatever the configuration says by then.
    pub(super) async fn keep_up(mut self) {
        loop {
            self.watch.next().await;
            match self.keyring.refresh() {
                Ok(Refreshed { added, removed }) => {
                    let say = |what: &str, names: &[String]| match names {
                        [] => {}
                        names => log::notice(&format!("tokens {what}: {}", names.join(", "))),
                    };
                    say("removed", &removed);
                    say("added", &added);
                }
                Err(err) => tracing::error!(
                    "cannot load the token file: {:#}; new tokens are not accepted, and tokens that are no longer in it are revoked",
                    anyhow::Error::from(err)
                ),
            }
        }
    }
}

/// Refuses to start without policies that evaluated calls under this configuration before, or with fewer protections
/// than other configurations of this data directory. The error lists everything that is missing.
pub(super) fn check_start(global: &Global, data: &DataDir, config: &Config) -> anyhow::Result<()> {
    let path = Config::file(global.config.as_deref()).ok();
    let records = Records::open(data)?;
    let has = config.protections();
    let own = path
        .as_deref()
        .map(|path| records.of(path))
        .transpose()?
        .flatten();
    let lost: BTreeSet<String> = own
        .into_iter()
        .flat_map(|record| protections::lost(&record.protections, &has))
        .collect();
    let gone = protections::policies(&lost).into_iter().collect::<Vec<_>>();
    let shown = path
        .as_deref()
        .unwrap_or(Path::new("the configuration"))
        .display();
    anyhow::ensure!(
        gone.is_empty(),
        "{shown} no longer has the policies {}, which an earlier run applied. Tollgate does not start without them. Restore \
         [policies.NAME] in the file, or confirm each removal: tollgate policies remove NAME",
        gone.join(", "),
    );
    if let Some(missing) = records.missing(path.as_deref(), &has)? {
        anyhow::bail!(
            "{shown} {missing}. Tollgate does not start with this file. Add these keys to the file, name the other \
             file with --config, or accept the difference: tollgate{} policies accept --missing",
            named(global, path.as_deref()),
        );
    }
    if !lost.is_empty() {
        out::warn(&format!("{shown} no longer has {}", protections::describe(&lost)));
    }
    Ok(())
}

/// Flags that a command needs to select this configuration, if any.
fn named(global: &Global, path: Option<&Path>) -> String {
    match path.filter(|_| global.config.is_some()) {
        Some(path) => format!(" --config {}", path.display()),
        None => String::new(),
    }
}

/// Adds the protections of this configuration to the remembered ones. A start removes none: a protection that is
/// missing from the file may return soon, and a running server still applies it.
pub(super) fn remember_more(context: &HostContext, config: &Config) -> anyhow::Result<()> {
    if let Some(path) = config.place() {
        let records = Records::open(context.data())?;
        let mut protections = config.protections();
        protections.extend(
            records
                .of(path)?
                .into_iter()
                .flat_map(|record| protections::lasting(record.protections)),
        );
        records.remember(path, protections)?;
    }
    Ok(())
}

/// Remembers the protections of this configuration, for later starts and reloads. If the reload was requested
/// explicitly, other missing protections are accepted as well.
fn remember(context: &HostContext, config: &Config, cause: Cause) -> anyhow::Result<()> {
    let Some(path) = config.place() else {
        return Ok(());
    };
    let (records, has) = (Records::open(context.data())?, config.protections());
    if cause == Cause::Asked
        && let Some(missing) = records.missing(Some(path), &has)?
    {
        records.forget(path, &missing.protections)?;
    }
    Ok(records.remember(path, has)?)
}

/// Starts watching the configuration before reading it, so that no later change is missed.
pub(super) fn watched(global: &Global) -> anyhow::Result<(Config, Watch)> {
    let mut watch = Watch::new().context("cannot watch for configuration changes")?;
    watch.follow(files(global, &Config::default()));
    let config = Config::load(global.config.as_deref())?;
    watch.follow(files(global, &config));
    Ok((config, watch))
}

/// Files that make up a configuration.
fn files(global: &Global, config: &Config) -> BTreeSet<PathBuf> {
    let own = Config::file(global.config.as_deref()).ok();
    own.into_iter().chain(config.component_files()).collect()
}
