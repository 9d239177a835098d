//! `tollgate policies accept`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::config::protections::Records;
use tollgate_components::catalog::policy_owner;
use tollgate_store::data_dir::DataDir;

use crate::cli::packs::accept;
use crate::cli::{self, Global, out};

#[derive(Debug, Args)]
pub(in crate::cli) struct Accept {
    /// Its name in the configuration
    #[arg(required_unless_present = "missing")]
    name: Option<String>,
    /// Let hosts use this configuration although it lacks protections of other configurations on the data directory
    #[arg(long, conflicts_with = "name")]
    missing: bool,
}

impl Accept {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let Some(name) = &self.name else {
            return accept_missing(global, &config);
        };
        anyhow::ensure!(
            config.policies.contains_key(name),
            "the configuration has no [policies.{name}], so nothing was accepted{}",
            cli::there_are(name, config.policies.keys())
        );
        let context = cli::context(global, &config)?;
        let was_other = accept(context.database(), &policy_owner(name))? > 0;
        if global.json {
            out::print_json(&json!({ "policy": name, "accepted": was_other }));
        } else if was_other {
            out::print(&format!("accepted the current component of {name}"));
        } else {
            out::print(&format!(
                "{name} has not changed since it was accepted; nothing to accept"
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Accepts that this configuration lacks protections of other configurations on the data directory.
fn accept_missing(global: &Global, config: &Config) -> anyhow::Result<ExitCode> {
    let path = Config::file(global.config.as_deref())?;
    let data = DataDir::open(&config.data_dir(global.data_dir.as_deref())?)?;
    let records = Records::open(&data)?;
    let missing = records
        .missing(Some(&path), &config.protections())?
        .unwrap_or_default();
    if !missing.protections.is_empty() {
        records.forget(&path, &missing.protections)?;
    }
    if global.json {
        out::print_json(&json!({ "config": path, "accepted": missing.protections }));
    } else if missing.protections.is_empty() {
        out::print(&format!(
            "{} has all protections that other configurations set; nothing to accept",
            path.display()
        ));
    } else {
        out::print(&format!("accepted that {} {missing}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
