//! `tollgate packs remove`

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use tollgate::config::edit::Section;
use tollgate_components::builtin;
use tollgate_components::loading::{Downloads, Origin};
use tollgate_store::data_dir::DataDir;

use crate::cli::config_file::ConfigFile;
use crate::cli::{self, Global};

#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    /// Name of the pack in the configuration
    name: String,
}

impl Remove {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let file = ConfigFile::open(global)?;
        let name = &self.name;
        let Some(settings) = file.config.packs.get(name) else {
            match builtin::component(name) {
                Some(_) => bail!(
                    "{name} is built in; to switch it off, add to {}:\n[packs.{name}]\nenabled = false",
                    file.path.display()
                ),
                None => bail!(
                    "{} has no [packs.{name}]{}",
                    file.path.display(),
                    cli::there_are(name, file.config.packs.keys())
                ),
            }
        };
        file.replace(global, &file.without(Section::Packs, name)?)?;
        let downloads = || -> anyhow::Result<Downloads> {
            let data = DataDir::open(&file.config.data_dir(global.data_dir.as_deref())?)?;
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
        file.print_removed(global, Section::Packs, name);
        Ok(ExitCode::SUCCESS)
    }
}
