//! `tollgate doctor`

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::config::{Config, ConfigError};
use tollgate::doctor::{self, Finding, State};
use tollgate::host::{HostContext, PackSelection};
use tollgate_core::clock::SystemClock;
use tollgate_sandbox::workspaces::Workspaces;
use tollgate_store::data_dir::DataDir;

use super::{Global, out};

/// Performs the steps of a start: creates a missing data directory, compiles components, and migrates tables.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// First drop objects in the database that belong to neither the host nor a component, with their rows, and
    /// recreate the host's triggers and indexes. Without this flag, such objects are only reported
    #[arg(long)]
    repair: bool,
}

impl Doctor {
    /// Exit code 1 if there is a problem.
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let found = look(global, self.repair).await?;
        let worst = found.iter().map(|finding| finding.state).max();
        let has_problem = worst == Some(State::Problem);
        if global.json {
            out::print_json(&json!({ "ok": !has_problem, "findings": found }));
        } else {
            out::print(&found.iter().map(tell).collect::<Vec<_>>().join("\n"));
        }
        Ok(if has_problem {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

fn tell(finding: &Finding) -> String {
    told(finding.state.as_str(), finding)
}

/// A finding as text: its severity, its subject, and the remedy.
pub(super) fn told(state: &str, finding: &Finding) -> String {
    let mut text = format!("{state:<8} {}: {}", finding.about, finding.what);
    if let Some(remedy) = &finding.remedy {
        text.push_str(&format!("\n         → {remedy}"));
    }
    tollgate_core::text::clean_lines(&text)
}

async fn look(global: &Global, repair: bool) -> anyhow::Result<Vec<Finding>> {
    let (config, mut found) = configuration(global);
    let data_dir = config.data_dir(global.data_dir.as_deref())?;
    let (workspaces, of_workspaces) = workspaces(global, &config, &data_dir);
    found.extend(of_workspaces);
    let registrations = super::registrations(global, &config)?;
    let authority = super::authority(global, &config)?;
    let environment = authority.environment.clone();
    match DataDir::open(&data_dir) {
        Err(err) => found.push(Finding::problem(
            "data directory",
            tollgate_core::text::chain(&err),
        )),
        Ok(data) => {
            let id = format!("hst_{}", uuid::Uuid::new_v4().simple());
            found.extend(doctor::place(&data, id));
            if repair {
                found.extend(doctor::repair(&global.existing_database(&config, &data)?));
            }
            if found
                .iter()
                .all(|finding| finding.about != "configuration" || finding.state < State::Problem)
            {
                let path = Config::file(global.config.as_deref())?;
                found.extend(doctor::protections(&data, &path, &config));
                found.extend(
                    config
                        .storage
                        .file_with_password(&path)
                        .and_then(|file| doctor::password(&file)),
                );
            }
            match HostContext::open(&data_dir, authority) {
                Err(err) => {
                    let finding = Finding::problem("database", format!("{err:#}"));
                    found.push(match doctor::remedy(err.as_ref()) {
                        Some(remedy) => finding.remedy(remedy),
                        None => finding,
                    });
                }
                Ok(context) => {
                    if let Some(server) = global.server(&config)? {
                        // Configurations that a start refuses did not get here.
                        let asked = doctor::server(&server, &SystemClock).into_iter();
                        found.extend(asked.filter(|finding| finding.state == State::Warning));
                    }
                    found.extend(doctor::store(&data, context.database()));
                    match context.load(&config, workspaces, &PackSelection::default()).await {
                        Ok(loaded) => {
                            found.extend(doctor::components(&loaded.catalog, &config, &registrations))
                        }
                        Err(err) => found.push(Finding::problem("packs", format!("{err:#}"))),
                    }
                }
            }
        }
    }
    found.extend(variables());
    if let Some(environment) = &environment {
        found.extend(doctor::programs(&config, &registrations, environment));
    }
    let variable = |name: &str| std::env::var(name).ok();
    found.extend(doctor::telemetry(config.telemetry.settings(variable)));
    found.extend(doctor::git(&registrations));
    let served = doctor::Served {
        http: config.server.http,
        hosts: &config.server.allowed_hosts,
        config: config.place(),
    };
    found.extend(doctor::clients(&super::clients::files(), &served));
    Ok(found)
}

/// Unknown variables whose names look like settings.
fn variables() -> impl Iterator<Item = Finding> {
    let unknown = super::variables::unknown(&super::command());
    unknown.into_iter().map(|(name, near)| {
        let finding = Finding::warning(
            format!("variable {name}"),
            "tollgate does not use a variable of this name",
        );
        finding.remedy(match near {
            Some(near) => format!("if you mean {near}, set that variable, and unset {name}"),
            None => format!("unset {name}; `tollgate serve --help` shows the variables"),
        })
    })
}

/// The configuration, or the defaults and everything that is wrong with the file.
fn configuration(global: &Global) -> (Config, Vec<Finding>) {
    let file = Config::file(global.config.as_deref()).unwrap_or_default();
    match Config::load(global.config.as_deref()) {
        Ok(config) if file.exists() => {
            let finding = Finding::ok("configuration", file.display().to_string());
            (config, vec![finding])
        }
        Ok(config) => {
            let what = format!("{} does not exist; the defaults apply", file.display());
            let finding = Finding::note("configuration", what);
            (config, vec![finding.remedy("to create one, run `tollgate init`")])
        }
        Err(ConfigError::Invalid { path, problems }) => {
            let found = problems
                .iter()
                .map(|problem| Finding::problem("configuration", format!("{path}:{problem}")));
            let found = found.chain([Finding::note(
                "configuration",
                "the rest is checked with the defaults",
            )]);
            (Config::default(), found.collect())
        }
        Err(err) => {
            let finding = Finding::problem("configuration", tollgate_core::text::chain(&err));
            let rest = Finding::note("configuration", "the rest is checked with the defaults");
            (Config::default(), vec![finding, rest])
        }
    }
}

fn workspaces(global: &Global, config: &Config, data_dir: &Path) -> (Workspaces, Vec<Finding>) {
    match super::workspaces(global, config, data_dir) {
        Ok(workspaces) if workspaces.names().is_empty() => {
            let finding = Finding::note(
                "workspaces",
                "none; packs that work on files have no directory to use",
            );
            let remedy = "register a workspace: [workspaces.main] with a path, or --workspace main=PATH";
            (workspaces, vec![finding.remedy(remedy)])
        }
        Ok(workspaces) => {
            let finding = Finding::ok("workspaces", workspaces.names().join(", "));
            (workspaces, vec![finding])
        }
        Err(err) => {
            let problems = err.to_string();
            let problems = problems
                .lines()
                .map(|problem| Finding::problem("workspaces", problem));
            (Workspaces::default(), problems.collect())
        }
    }
}
