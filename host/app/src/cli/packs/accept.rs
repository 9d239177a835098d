//! `tollgate packs accept`

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate_components::builtin;
use tollgate_store::storage::Database;

use crate::cli::{self, Global, out};

#[derive(Debug, Args)]
pub(in crate::cli) struct Accept {
    /// Name of the pack in the configuration
    name: String,
}

impl Accept {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let context = cli::context(global, &config)?;
        let accepted = accept(context.database(), &self.name)?;
        if accepted == 0 {
            self.check_known(&config, context.database())?;
        }
        if global.json {
            out::print_json(&json!({ "pack": self.name, "accepted": accepted }));
        } else if accepted == 0 {
            out::print(&format!(
                "the tools of {} have not changed since they were accepted; nothing to accept",
                self.name
            ));
        } else {
            out::print(&format!(
                "accepted the current definitions of {} of {}",
                tollgate_core::text::counted(accepted, "tool"),
                self.name
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Accept {
    /// Refuses a name that no pack has.
    fn check_known(&self, config: &Config, database: &Database) -> anyhow::Result<()> {
        let seen = database.read_session()?.components().defined_packs()?;
        let mut known: BTreeSet<&str> = builtin::names().collect();
        known.extend(config.packs.keys().map(String::as_str));
        known.extend(
            seen.iter()
                .map(String::as_str)
                .filter(|name| !name.starts_with("policies.")),
        );
        anyhow::ensure!(
            known.contains(self.name.as_str()),
            "unknown pack {}; nothing was accepted. Known packs: {}",
            self.name,
            known.into_iter().collect::<Vec<_>>().join(", ")
        );
        Ok(())
    }
}

/// Accepts a pack's tools. Returns how many differed from the accepted ones.
pub(in crate::cli) fn accept(database: &Database, pack: &str) -> anyhow::Result<usize> {
    let session = database.write_session()?;
    session.begin_write()?;
    let accepted = session.components().accept_definitions(pack)?;
    session.commit()?;
    Ok(accepted)
}
