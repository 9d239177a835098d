//! Taking over a changed configuration while serving: the new set works as a whole, or the old one stays.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use tollgate::config::Config;
use tollgate::gate::Gate;
use tollgate::host::Site;
use tollgate::mcp::{Listing, Listings};
use tollgate::watch::Watch;

use super::{Filters, Global, out};

/// What serving is done with, and what it is replaced by.
pub(super) struct Reload {
    pub(super) global: Global,
    pub(super) filters: Filters,
    pub(super) site: Arc<Site>,
    pub(super) gate: Arc<Gate>,
    pub(super) listings: Arc<Listings>,
    /// The one that is in force.
    pub(super) config: Config,
}

impl Reload {
    /// Looks at the configuration again whenever there is a reason to.
    pub(super) async fn keep_up(mut self, mut watch: Watch) {
        loop {
            watch.next().await;
            let started = Instant::now();
            match self.again(&mut watch).await {
                Ok(()) => out::warn(&format!(
                    "the configuration was loaded again in {} ms: {} packs",
                    started.elapsed().as_millis(),
                    self.gate.catalog().packs().len()
                )),
                Err(err) => {
                    self.gate.keep();
                    tracing::error!("the configuration was not taken over, what runs stays: {err:#}");
                }
            }
        }
    }

    async fn again(&mut self, watch: &mut Watch) -> anyhow::Result<()> {
        let config = Config::load(self.global.config.as_deref())?;
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
        let listing = Listing::new(&next.catalog);
        self.gate.replace(next);
        self.listings.replace(listing);
        watch.follow(files);
        for key in config.waiting_for_a_start(&self.config) {
            tracing::warn!("a change of {key} takes effect at the next start");
        }
        self.config = config;
        Ok(())
    }
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
