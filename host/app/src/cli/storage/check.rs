//! `tollgate storage check`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate::doctor::{self as examined, Finding, State};
use tollgate_core::clock::SystemClock;
use tollgate_store::data_dir::{DATABASE, DataDir};
use tollgate_store::storage::Server;

use super::{Global, doctor, out};

/// Nothing is changed. A line is ok, warn (a host works, but see the remedy) or fail (a host does not start).
#[derive(Debug, Args)]
pub(in crate::cli) struct Check {}

impl Check {
    /// Exit code 1 if something fails.
    #[allow(clippy::unused_self, reason = "it has no flags of its own")]
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let data_dir = config.data_dir(global.data_dir.as_deref())?;
        let found = match global.server(&config)? {
            Some(server) => of_server(global, &config, &data_dir, &server)?,
            None => of_file(&DataDir::existing(&data_dir)?)?,
        };
        let fails = found.iter().any(|finding| finding.state == State::Problem);
        if global.json {
            let told: Vec<_> = found.iter().map(as_json).collect();
            out::print_json(&json!({ "ok": !fails, "checks": told }));
        } else {
            let told: Vec<String> = found
                .iter()
                .map(|finding| doctor::told(word(finding), finding))
                .collect();
            out::print(&told.join("\n"));
        }
        Ok(match fails {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }
}

/// Findings about the server, and about the database if a host has used it.
fn of_server(
    global: &Global,
    config: &Config,
    data_dir: &std::path::Path,
    server: &Server,
) -> anyhow::Result<Vec<Finding>> {
    let mut found = examined::server(server, &SystemClock);
    let is_reached = found.iter().all(|finding| finding.state < State::Problem);
    let has_tables = !found
        .iter()
        .any(|finding| finding.about == "triggers" && finding.state == State::Warning);
    // Signatures of the ledger are checked with the key in the data directory.
    if is_reached && has_tables && data_dir.exists() {
        let data = DataDir::existing(data_dir)?;
        let database = global.existing_database(config, &data)?;
        found.extend(examined::store(&data, &database));
    }
    Ok(found)
}

fn of_file(data: &DataDir) -> anyhow::Result<Vec<Finding>> {
    anyhow::ensure!(
        data.has(DATABASE),
        "there is no database in {}; no host has ever used this directory",
        data.path().display()
    );
    let database = tollgate_store::storage::Database::existing(&data.database());
    Ok(examined::store(data, &database))
}

const fn word(finding: &Finding) -> &'static str {
    match finding.state {
        State::Ok | State::Note => "ok",
        State::Warning => "warn",
        State::Problem => "fail",
    }
}

fn as_json(finding: &Finding) -> serde_json::Value {
    let mut told = json!(finding);
    told["state"] = json!(word(finding));
    told
}
