//! `tollgate packs accept`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::storage::Database;

use crate::cli::{self, Global, out};

#[derive(Debug, Args)]
pub(in crate::cli) struct Accept {
    /// Its name
    name: String,
}

impl Accept {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let site = cli::site(global, &config)?;
        let accepted = accept(site.database(), &self.name)?;
        if global.json {
            out::print_json(&json!({ "pack": self.name, "accepted": accepted }));
        } else {
            out::print(&format!("accepted {accepted} tools of {} as they are", self.name));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Accepts a pack's tools. How many were not what was accepted before.
pub(in crate::cli) fn accept(database: &Database, pack: &str) -> anyhow::Result<usize> {
    let session = database.write_session()?;
    session.begin_write()?;
    let accepted = session.accept_definitions(pack)?;
    session.commit()?;
    Ok(accepted)
}
