//! `tollgate policies remove`

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::edit::Section;
use tollgate::config::protections::Records;
use tollgate_components::loading::Downloads;
use tollgate_store::data_dir::DataDir;

use crate::cli::config_file::ConfigFile;
use crate::cli::{self, Global, out};

#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    /// Name of the policy in the configuration
    name: String,
}

impl Remove {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let file = ConfigFile::open(global)?;
        let name = &self.name;
        let Some(settings) = file.config.policies.get(name) else {
            return self.forget(global, &file.config, &file.path);
        };
        let left = file.without(Section::Policies, name)?;
        file.replace(global, &left)?;
        let hash = settings.downloaded();
        let is_used = left
            .config
            .policies
            .values()
            .any(|other| other.downloaded() == hash);
        if let Some(hash) = hash.filter(|_| !is_used) {
            let data = DataDir::open(&file.config.data_dir(global.data_dir.as_deref())?)?;
            let downloads = Downloads::open(&data)?;
            downloads.remove(hash);
            let reference = settings.source.as_deref().and_then(|source| source.parse().ok());
            if let Some(reference) = reference {
                downloads.remove_evidence(&reference);
            }
        }
        file.print_removed(global, Section::Policies, name);
        Ok(ExitCode::SUCCESS)
    }

    /// Lets servers start without a policy that was already removed from the configuration.
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
                "{} has no [policies.{name}]; its removal is confirmed, so servers start without it",
                path.display()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
