//! Taking over a changed configuration while serving: the new set works as a whole, or the old one stays.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use tokio::sync;
use tokio_util::sync::CancellationToken;
use tollgate::config::protections::{self, Records};
use tollgate::config::{Caps, Config};
use tollgate::host::Site;
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
    pub(super) site: Arc<Site>,
    pub(super) gate: Arc<Gate>,
    pub(super) listings: Arc<Listings>,
    /// Channel of changed limits to a server over HTTP.
    pub(super) bounds: sync::watch::Sender<Caps>,
    /// Channel of changed viewers and approvers to the console.
    pub(super) viewers: sync::watch::Sender<ConsoleSettings>,
    /// The one that is in force.
    pub(super) config: Config,
}

impl Reload {
    /// Loads what there was no time for, then looks at the configuration again whenever there is a reason to.
    pub(super) async fn keep_up(mut self, mut watch: Watch, workspaces: Workspaces) {
        if let Err(err) = self.complete(workspaces).await {
            tracing::error!("what is missing could not be loaded: {err:#}");
        }
        loop {
            let cause = watch.next().await;
            let started = Instant::now();
            match self.again(&mut watch, cause).await {
                Ok(()) => {
                    self.site.note_refused(None);
                    log::notice(&format!(
                        "the configuration was loaded again in {} ms: {} packs",
                        started.elapsed().as_millis(),
                        self.gate.catalog().packs().len()
                    ));
                }
                Err(err) => {
                    self.gate.keep();
                    self.site.note_refused(Some(format!("{err:#}")));
                    tracing::error!("the configuration was not taken over, what runs stays: {err:#}");
                }
            }
        }
    }

    /// Brings in the code of all packs, and everything else that the start was without. Calls are served meanwhile.
    async fn complete(&self, workspaces: Workspaces) -> anyhow::Result<()> {
        let running = self.gate.generation();
        let ready = running.catalog.packs().iter().map(|pack| pack.ready());
        let (choice, site) = (self.filters.choice(&self.config)?, Arc::clone(&self.site));
        if running.catalog.preparing().is_over() {
            let ready = futures::future::join_all(ready).await;
            if ready.iter().all(Result::is_ok) {
                return Ok(());
            }
        }
        let (config, runtime) = (self.config.clone(), tokio::runtime::Handle::current());
        // A host that stops meanwhile does not wait for it.
        let given_up = CancellationToken::new();
        let _give_up = given_up.clone().drop_guard();
        // Loading is work for the processor, and calls are served meanwhile.
        let loading = tokio::task::spawn_blocking(move || {
            let loading = site.complete(&config, workspaces, &choice, &running);
            runtime.block_on(given_up.run_until_cancelled(loading))
        });
        let Some(whole) = loading.await?.transpose()? else {
            return Ok(());
        };
        super::log_state(&whole.catalog);
        let listing = Listing::new(&whole.catalog, self.filters.schemas(&self.config));
        if listing.tools().is_empty() {
            out::warn("no tool is listed; `tollgate tools` shows which exist, `--tier full` lists them all");
        }
        // A list that waited for this is made of what it says.
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
        let (site, gate, global) = (
            Arc::clone(&self.site),
            Arc::clone(&self.gate),
            self.global.clone(),
        );
        let (wanted, choice) = (config.clone(), self.filters.choice(&config)?);
        let runtime = tokio::runtime::Handle::current();
        // Loading is work for the processor, and calls are served meanwhile.
        let loading = tokio::task::spawn_blocking(move || {
            let workspaces = super::workspaces(&global, &wanted, site.path())?;
            let running = gate.generation();
            runtime.block_on(site.load_again(&wanted, workspaces, &choice, &running))
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
        remember(&self.site, &config, cause)?;
        self.config = config;
        Ok(())
    }
}

impl Reload {
    /// The configuration as it is now. Without being asked to, none is taken that protects less.
    fn changed(&self, cause: Cause) -> anyhow::Result<Config> {
        let is_asked = cause == Cause::Asked;
        let config = self.config.load_again(self.global.config.as_deref(), is_asked)?;
        if !is_asked {
            let records = Records::open(self.site.data())?;
            let record = self.config.place().map(|place| records.of(place)).transpose()?;
            let remembered = record.flatten().map(|record| record.protections);
            config.check_protections(&self.config, remembered.as_ref())?;
        }
        Ok(config)
    }
}

/// The tokens that a server over HTTP goes by, and the watch over their file.
pub(super) struct Keys {
    pub(super) keyring: Arc<Keyring>,
    pub(super) watch: Watch,
}

impl Keys {
    /// Takes over the file whenever it changes, and at SIGHUP, whatever the configuration says then.
    pub(super) async fn keep_up(mut self) {
        loop {
            self.watch.next().await;
            match self.keyring.refresh() {
                Ok(Refreshed { added, removed }) => {
                    let say = |what: &str, names: &[String]| match names {
                        [] => {}
                        names => log::notice(&format!("tokens {what}: {}", names.join(", "))),
                    };
                    say("that are none any more", &removed);
                    say("that are new", &added);
                }
                Err(err) => tracing::error!(
                    "the token file is not as it should be; tokens that it lacks stopped, and new ones are not taken: {:#}",
                    anyhow::Error::from(err)
                ),
            }
        }
    }
}

/// Refuses to make calls without policies that judged calls before under this configuration, or with less than other
/// configurations protect on this data directory, and says what else it lacks.
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
        "{shown} no longer has the policies {}, which judged calls here, so nothing is served; put the configuration back, or take \
         each away: tollgate policies remove NAME",
        gone.join(", "),
    );
    if let Some(missing) = records.missing(path.as_deref(), &has)? {
        anyhow::bail!(
            "{shown} {missing}, so nothing is served; use that configuration, or accept this one as it is: tollgate{} policies \
             accept --missing",
            named(global, path.as_deref()),
        );
    }
    if !lost.is_empty() {
        out::warn(&format!("{shown} no longer has {}", protections::describe(&lost)));
    }
    Ok(())
}

/// Flags with which a command names this configuration, if it must.
fn named(global: &Global, path: Option<&Path>) -> String {
    match path.filter(|_| global.config.is_some()) {
        Some(path) => format!(" --config {}", path.display()),
        None => String::new(),
    }
}

/// Remembers what this configuration protects beside what it protected before. A start takes nothing away: what the
/// file lost may be back soon, and a server that runs still holds to it.
pub(super) fn remember_more(site: &Site, config: &Config) -> anyhow::Result<()> {
    if let Some(path) = config.place() {
        let records = Records::open(site.data())?;
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

/// Remembers what this configuration protects, for starts and reloads to come. Who asked for it does without whatever else
/// it lacks.
fn remember(site: &Site, config: &Config, cause: Cause) -> anyhow::Result<()> {
    let Some(path) = config.place() else {
        return Ok(());
    };
    let (records, has) = (Records::open(site.data())?, config.protections());
    if cause == Cause::Asked
        && let Some(missing) = records.missing(Some(path), &has)?
    {
        records.forget(path, &missing.protections)?;
    }
    Ok(records.remember(path, has)?)
}

/// Begins to watch the configuration and reads it, so that no change after that goes unnoticed.
pub(super) fn watched(global: &Global) -> anyhow::Result<(Config, Watch)> {
    let mut watch = Watch::new().context("the process cannot be told of changes")?;
    watch.follow(files(global, &Config::default()));
    let config = Config::load(global.config.as_deref())?;
    watch.follow(files(global, &config));
    Ok((config, watch))
}

/// The files that a configuration is made of.
fn files(global: &Global, config: &Config) -> BTreeSet<PathBuf> {
    let own = Config::file(global.config.as_deref()).ok();
    own.into_iter().chain(config.component_files()).collect()
}
