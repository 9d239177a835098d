//! `tollgate packs prepare`

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate::host::Choice;
use tollgate::packs::{How, Loader};

use crate::cli::{self, Global, out};

/// A component that is ready: pack or policy, its name, where its code came from, and how long that took.
type Prepared<'a> = (&'static str, &'a str, Option<(How, Duration)>);

/// Exit code 1 if a component did not load.
pub(super) async fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let config = Config::load(global.config.as_deref())?;
    let site = cli::site(global, &config)?;
    let workspaces = cli::workspaces(global, &config, site.path())?;
    let loaded = site.load(&config, workspaces, &Choice::default()).await?;
    let catalog = &loaded.catalog;
    let brought = |hash: &str| Loader::brought(site.loader(), hash);
    let packs = catalog.packs().iter();
    let packs = packs.map(|pack| ("pack", pack.manifest.name.as_str(), brought(&pack.hash)));
    let policies = catalog.policies().policies();
    let policies = policies.map(|policy| ("policy", policy.manifest.name.as_str(), brought(&policy.hash)));
    let all: Vec<Prepared<'_>> = packs.chain(policies).collect();
    let failures: Vec<String> = catalog
        .failures()
        .iter()
        .map(ToString::to_string)
        .chain(catalog.policies().failures().map(ToString::to_string))
        .collect();
    if global.json {
        let prepared: Vec<Value> = all.iter().map(as_json).collect();
        out::print_json(&json!({ "prepared": prepared, "failures": failures }));
    } else {
        let rows: Vec<Vec<String>> = all.iter().map(row).collect();
        out::print(&out::table(&["KIND", "NAME", "CODE", "TOOK"], &rows));
        failures.iter().for_each(|failure| out::warn(failure));
    }
    Ok(if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn row((kind, name, brought): &Prepared<'_>) -> Vec<String> {
    let (how, took) = match brought {
        Some((how, took)) => (word(*how), format!("{} ms", took.as_millis())),
        None => ("", String::new()),
    };
    vec![(*kind).to_owned(), (*name).to_owned(), how.to_owned(), took]
}

fn as_json((kind, name, brought): &Prepared<'_>) -> Value {
    let took = brought.map(|(_, took)| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    json!({
        "kind": kind,
        "name": name,
        "code": brought.map(|(how, _)| how),
        "took_ms": took,
    })
}

fn word(how: How) -> &'static str {
    match how {
        How::Cached => "was there already",
        How::Unpacked => "unpacked from this program",
        How::Compiled => "compiled",
    }
}
