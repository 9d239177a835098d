//! `tollgate packs add`

use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Args;
use tollgate::config::Config;
use tollgate::config::edit::{Entry, Section};
use tollgate::host::{HostContext, PackSelection};
use tollgate_components::builtin;
use tollgate_components::catalog::Inspection;
use tollgate_components::loading::Haste;

use super::accept::accept;
use super::inspect;
use crate::cli::component::{Component, workspaces};
use crate::cli::config_file::ConfigFile;
use crate::cli::{self, Global, out};

/// A component asks for grants, and you give them. If a grant is missing or the component would not load,
/// nothing is changed. Running servers load it by themselves.
#[derive(Debug, Args)]
pub(in crate::cli) struct Add {
    #[command(flatten)]
    component: Component,
}

impl Add {
    /// Exit code 1 if it asks for more than it is granted.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let component = &self.component;
        let file = ConfigFile::open(global)?;
        let context = cli::context(global, &file.config)?;
        let (source, bytes) = component.bytes(&context, &file.config).await?;
        let inspection = Inspection::of(context.loader(), &bytes).await;
        ensure!(
            !inspection.is_policy(),
            "{source} is a policy; add it with: tollgate policies add {source} (nothing was changed)"
        );
        let Some(name) = inspection.name().filter(|_| inspection.problems.is_empty()) else {
            bail!(
                "{source} cannot be used as a pack: {}",
                inspection.problems.join("; ")
            );
        };
        ensure!(
            builtin::component(name).is_none(),
            "the component has the name of the built-in pack {name}; nothing was changed"
        );
        let there = file.config.packs.get(name).map(|pack| &pack.grants);
        let workspaces = workspaces(global, &file.config)?;
        let grants = component.granted(there, name, &inspection, &workspaces)?;
        let missing = inspection.missing(&grants);
        if !missing.is_empty() {
            out::print(&inspect::tell(&inspection, &workspaces));
            out::warn(&format!(
                "{name} requests more than it is granted, so nothing was changed. To add it with all of these grants:"
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
        let with = file.with(&entry, component.replace)?;
        try_out(global, &context, &with.config, name).await?;
        file.replace(global, &with)?;
        // The user has just reviewed the component.
        accept(context.database(), name)?;
        file.print_added(global, Section::Packs, name, &inspection.sha256);
        Ok(ExitCode::SUCCESS)
    }
}

/// Loads everything that the next start would list, and the code of the new pack. Fails if anything would be missing.
pub(in crate::cli) async fn try_out(
    global: &Global,
    context: &HostContext,
    config: &Config,
    name: &str,
) -> anyhow::Result<()> {
    let data_dir = config.data_dir(global.data_dir.as_deref())?;
    let workspaces = cli::workspaces(global, config, &data_dir)?;
    let pack_selection = PackSelection::default();
    let loaded = context
        .load_in(config, workspaces, &pack_selection, Haste::Described)
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
