//! `tollgate packs remove`

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::edit::{self, Section};
use tollgate_components::builtin;
use tollgate_components::loading::{Downloads, Origin};
use tollgate_store::data_dir::DataDir;

use crate::cli::{self, Global, file, out};

#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    /// Its name
    name: String,
}

impl Remove {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let path = Config::file(global.config.as_deref())?;
        let text = file::read(&path)?;
        let config = Config::parse(&text, &path)?;
        let name = &self.name;
        let Some(settings) = config.packs.get(name) else {
            match builtin::component(name) {
                Some(_) => bail!(
                    "{name} is built in; to do without it, add to {}:\n[packs.{name}]\nenabled = false",
                    path.display()
                ),
                None => bail!(
                    "{} has no [packs.{name}]{}",
                    path.display(),
                    cli::there_are(name, config.packs.keys())
                ),
            }
        };
        let without = edit::without(&text, Section::Packs, name)?;
        let left = Config::parse(&without, &path);
        let left = left.context("the remaining configuration would not load, so nothing was changed")?;
        file::reconfigure(global, &path, &config, &without, &left)?;
        let downloads = || -> anyhow::Result<Downloads> {
            let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
            Ok(Downloads::open(&data)?)
        };
        match settings.origin(None) {
            Some(Origin::Https { sha256, .. }) => {
                downloads()?.remove(&sha256);
            }
            Some(Origin::Oci { reference, sha256 }) => {
                let downloads = downloads()?;
                downloads.remove(&sha256);
                downloads.remove_evidence(&reference);
            }
            _ => {}
        }
        if global.json {
            out::print_json(&json!({ "removed": name, "config": path }));
        } else {
            out::print(&format!(
                "removed [packs.{name}] from {}; its tables stay in the database",
                path.display()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
