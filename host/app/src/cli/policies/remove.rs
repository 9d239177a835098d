//! `tollgate policies remove`

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::edit::{self, Section};
use tollgate::config::protections::Records;
use tollgate_components::loading::Downloads;
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
        let Some(settings) = config.policies.get(name) else {
            return self.forget(global, &config, &path);
        };
        let without = edit::without(&text, Section::Policies, name)?;
        let left = Config::parse(&without, &path);
        let left = left.context("the remaining configuration would not load, so nothing was changed")?;
        file::reconfigure(global, &path, &config, &without, &left)?;
        let hash = settings.downloaded();
        let is_used = left.policies.values().any(|other| other.downloaded() == hash);
        if let Some(hash) = hash.filter(|_| !is_used) {
            let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
            let downloads = Downloads::open(&data)?;
            downloads.remove(hash);
            let reference = settings.source.as_deref().and_then(|source| source.parse().ok());
            if let Some(reference) = reference {
                downloads.remove_evidence(&reference);
            }
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

    /// Lets servers begin without a policy that is gone from the configuration already.
    fn forget(&self, global: &Global, config: &Config, path: &Path) -> anyhow::Result<ExitCode> {
        let name = &self.name;
        let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
        let records = Records::open(&data)?;
        let mut record = records
            .of(path)?
            .map(|record| record.protections)
            .unwrap_or_default();
        let missing = records.missing(Some(path), &config.protections())?;
        record.extend(missing.into_iter().flat_map(|missing| missing.protections));
        let is_its = |key: &&String| {
            let rest = key
                .strip_prefix("policies/")
                .and_then(|key| key.strip_prefix(name.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ' ']))
        };
        let gone: BTreeSet<String> = record.iter().filter(is_its).cloned().collect();
        ensure!(
            !gone.is_empty(),
            "{} has no [policies.{name}]{}",
            path.display(),
            cli::there_are(name, config.policies.keys())
        );
        records.forget(path, &gone)?;
        if global.json {
            out::print_json(&json!({ "forgotten": name, "config": path }));
        } else {
            out::print(&format!(
                "[policies.{name}] was gone from {} already; servers begin without it now",
                path.display()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
