//! `tollgate policies accept`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::packs::policy_owner;

use crate::cli::packs::accept;
use crate::cli::{self, Global, out};

#[derive(Debug, Args)]
pub(in crate::cli) struct Accept {
    /// Its name in the configuration
    name: String,
}

impl Accept {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        anyhow::ensure!(
            config.policies.contains_key(&self.name),
            "the configuration has no [policies.{}]",
            self.name
        );
        let site = cli::site(global, &config)?;
        let was_other = accept(site.database(), &policy_owner(&self.name))? > 0;
        if global.json {
            out::print_json(&json!({ "policy": self.name, "accepted": was_other }));
        } else if was_other {
            out::print(&format!("accepted {} as it is", self.name));
        } else {
            out::print(&format!("{} is what was accepted", self.name));
        }
        Ok(ExitCode::SUCCESS)
    }
}
