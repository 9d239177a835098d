//! `tollgate packs check`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value};
use tollgate::check::{self, Report, Subject};
use tollgate::config::Config;
use tollgate_core::text::counted;
use tollgate_store::data_dir::DataDir;

use crate::cli::{self, Global, component, file, out, registry};

/// Longest arguments that a line shows, in characters.
const MAX_ARGUMENTS_CHARS: usize = 60;

/// Runs the component in a temporary data directory, with everything that it requests, and with copies of the
/// directories that `--workspace` names. Each tool and prompt is called with arguments generated from its schema: with
/// as few as possible, and with all. Each resource is read and each list of values is requested. A policy evaluates
/// calls.
#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    /// The component, a pack or a policy: a file, the name of a built-in one, https://…, or oci://HOST/NAME:TAG
    component: String,
    /// Settings of the component, in the form of its `config` table [default: generated from their schema]
    #[arg(long, value_name = "JSON|@FILE")]
    settings: Option<String>,
    /// Let the component run the programs that it asks for, as this user; otherwise none is started
    #[arg(long)]
    programs: bool,
    /// Time limit of the whole check
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    time: u64,
}

impl Check {
    /// Exit code 1 if there are problems, or if it is a policy and evaluated no call.
    pub(in crate::cli) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let (bytes, mut fetched) = component::look_at(global, &self.component).await?;
        fetched.as_mut().map_or(Ok(()), registry::judge)?;
        let subject = Subject {
            bytes,
            config: self.settings.as_deref().map(settings).transpose()?,
            programs: self.programs,
            workspaces: global.workspaces.clone(),
            time: Duration::from_secs(self.time),
        };
        let folder = tempfile::Builder::new()
            .prefix("tollgate-check-")
            .tempdir()
            .context("the directory for temporary files is not writable")?;
        let mut authority = cli::authority(global, &Config::default())?;
        authority.cache_dir = code_dir(global);
        let report = check::check(subject, folder.path(), authority).await?;
        if global.json {
            out::print_json(&serde_json::to_value(&report)?);
        } else {
            out::print(&tell(&report));
            let found = report.problems.iter().chain(&report.notes);
            found.for_each(|finding| out::warn(&finding.to_string()));
        }
        Ok(if report.problems.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Directory for compiled code, shared with hosts, because compiling a component with an interpreter takes many
/// seconds. `None` if it is not writable.
fn code_dir(global: &Global) -> Option<PathBuf> {
    let config = Config::load(global.config.as_deref()).unwrap_or_default();
    let named = global.cache_dir.clone().or_else(|| config.cache_dir.clone());
    let dir = named.or_else(|| config.data_dir(global.data_dir.as_deref()).ok())?;
    DataDir::open(&dir).is_ok().then_some(dir)
}

fn settings(argument: &str) -> anyhow::Result<Map<String, Value>> {
    let text = match argument.strip_prefix('@') {
        Some(path) => file::read(path.as_ref())?,
        None => argument.to_owned(),
    };
    serde_json::from_str(&text).context("the settings are not a JSON object")
}

/// Report of the check as text.
fn tell(report: &Report) -> String {
    let rows: Vec<Vec<String>> = report
        .calls
        .iter()
        .map(|called| {
            let address = called.address.clone();
            let with = address.unwrap_or_else(|| called.arguments.to_string());
            let shown: String = with.chars().take(MAX_ARGUMENTS_CHARS).collect();
            let cut = if shown.len() < with.len() { "…" } else { "" };
            vec![
                called.tool.clone(),
                called.outcome.clone(),
                format!("{:.1}", called.duration_ms),
                shown + cut,
            ]
        })
        .collect();
    let what = match (report.kind, &report.name) {
        (Some(kind), Some(name)) => {
            format!("{kind} {name} {}", report.version.as_deref().unwrap_or_default())
        }
        (Some(kind), None) => kind.to_owned(),
        (None, _) => "not a component for this host".to_owned(),
    };
    let calls = match rows.len() {
        0 => String::new(),
        _ => out::table(&["CALL", "OUTCOME", "MS", "WITH"], &rows) + "\n",
    };
    let verdict = match (report.problems.len(), report.notes.len()) {
        (0, 0) => "no problems".to_owned(),
        (0, notes) => format!("no problems, {}", counted(notes, "note")),
        (problems, notes) => format!("{}, {}", counted(problems, "problem"), counted(notes, "note")),
    };
    let judged = report.judged.map_or_else(String::new, |judged| {
        format!("evaluated {judged} of {}; ", counted(report.calls.len(), "call"))
    });
    format!(
        "{what}, {} bytes, sha256 {}\n{calls}{judged}{verdict}{}",
        report.bytes,
        report.sha256,
        untried(report)
    )
}

/// Lines about everything that was not exercised, grouped by reason.
fn untried(report: &Report) -> String {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for finding in &report.untried {
        let remedy = finding
            .remedy
            .map_or_else(String::new, |remedy| format!("; {remedy}"));
        let reason = format!("{}{remedy}", finding.found);
        reasons.entry(reason).or_default().push(&finding.about);
    }
    let lines = reasons
        .iter()
        .map(|(reason, about)| format!("\n  {}: {reason}", about.join(", ")));
    match report.untried.len() {
        0 => String::new(),
        count => format!("\nnot tried: {count}{}", lines.collect::<String>()),
    }
}
