//! `tollgate policies remove`

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::edit::{self, Section};
use tollgate::data_dir::DataDir;
use tollgate::packs::Downloads;

use crate::cli::{Global, file, out};

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
        let settings = config.policies.get(name);
        ensure!(settings.is_some(), "{} has no [policies.{name}]", path.display());
        let without = edit::without(&text, Section::Policies, name)?;
        let left = Config::parse(&without, &path);
        let left = left.context("what is left would not load, so nothing was changed")?;
        file::replace(&path, &without)?;
        let hash = settings.and_then(|settings| settings.downloaded());
        let is_used = left.policies.values().any(|other| other.downloaded() == hash);
        if let Some(hash) = hash.filter(|_| !is_used) {
            let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
            Downloads::open(&data)?.remove(hash);
        }
        if global.json {
            out::print_json(&json!({ "removed": name, "config": path }));
        } else {
            out::print(&format!(
                "removed [policies.{name}] from {}; its tables stay in the database",
                path.display()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
