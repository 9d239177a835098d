//! `tollgate packs add`

use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::edit::{self, Entry, Section};
use tollgate::host::{Choice, Site};
use tollgate_components::builtin;
use tollgate_components::catalog::Inspection;
use tollgate_components::loading::Haste;

use super::accept::accept;
use super::inspect;
use crate::cli::component::{Component, workspaces};
use crate::cli::{self, Global, file, out};

/// A component asks, you grant. Without the grants that it asks for, and if it would not load, nothing is
/// changed. Servers that run take it over by themselves.
#[derive(Debug, Args)]
pub(in crate::cli) struct Add {
    #[command(flatten)]
    component: Component,
}

impl Add {
    /// Exit code 1 if it asks for more than it is granted.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let component = &self.component;
        let path = Config::file(global.config.as_deref())?;
        let text = file::read(&path)?;
        let config = Config::parse(&text, &path)?;
        let site = cli::site(global, &config)?;
        let (source, bytes) = component.bytes(&site, &config).await?;
        let inspection = Inspection::of(site.loader(), &bytes).await;
        ensure!(
            !inspection.is_policy(),
            "{source} is a policy; add it with: tollgate policies add {source} (nothing was changed)"
        );
        let Some(name) = inspection.name().filter(|_| inspection.problems.is_empty()) else {
            bail!(
                "{source} cannot be a pack here: {}",
                inspection.problems.join("; ")
            );
        };
        ensure!(
            builtin::component(name).is_none(),
            "it calls itself {name}, which is built in; nothing was changed"
        );
        let there = config.packs.get(name).map(|pack| &pack.grants);
        let workspaces = workspaces(global, &config)?;
        let grants = component.granted(there, name, &inspection, &workspaces)?;
        let missing = inspection.missing(&grants);
        if !missing.is_empty() {
            out::print(&inspect::tell(&inspection, &workspaces));
            out::warn(&format!(
                "{name} asks for more than it is granted, so nothing was changed. To add it with all of it:"
            ));
            out::warn(&component.again("packs", &missing, &workspaces));
            return Ok(ExitCode::FAILURE);
        }
        let entry = Entry {
            section: Section::Packs,
            name: name.to_owned(),
            source,
            sha256: component.pin(&inspection),
            grants,
            settings: Vec::new(),
        };
        let with = edit::with(&text, &entry, component.replace)?;
        let before = config;
        let config = Config::parse(&with, &path)
            .context("the new configuration would not load, so nothing was changed")?;
        try_out(global, &site, &config, name).await?;
        file::reconfigure(global, &path, &before, &with, &config)?;
        // Whoever adds it has just looked at it.
        accept(site.database(), name)?;
        if global.json {
            out::print_json(&json!({ "added": name, "sha256": inspection.sha256, "config": path }));
        } else {
            out::print(&format!("added [packs.{name}] to {}", path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Loads what the next start lists, and the code of the new pack, and refuses what would not be there.
pub(in crate::cli) async fn try_out(
    global: &Global,
    site: &Site,
    config: &Config,
    name: &str,
) -> anyhow::Result<()> {
    let data_dir = config.data_dir(global.data_dir.as_deref())?;
    let workspaces = cli::workspaces(global, config, &data_dir)?;
    let choice = Choice::default();
    let loaded = site
        .load_in(config, workspaces, &choice, Haste::Described)
        .await?;
    let packs = loaded.catalog.packs().iter();
    for pack in packs.filter(|pack| pack.manifest.name == name) {
        if let Err(problems) = pack.ready().await {
            bail!(
                "{name} cannot be loaded: {}; nothing was changed",
                problems.join("; ")
            );
        }
    }
    match loaded
        .catalog
        .failures()
        .iter()
        .find(|failure| failure.pack == name)
    {
        Some(failure) => bail!("{failure}; nothing was changed"),
        None => Ok(()),
    }
}
