//! `tollgate packs prepare`

use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate::host::PackSelection;
use tollgate_components::loading::{How, Loader};

use crate::cli::{self, Global, out};

/// A prepared component.
pub(in crate::cli) struct Prepared {
    /// `pack` or `policy`.
    kind: &'static str,
    name: String,
    /// Source of its code, and the time that this took.
    brought: Option<(How, Duration)>,
}

impl Prepared {
    /// Text for a component that had to be compiled.
    pub(in crate::cli) fn compiled(&self) -> Option<String> {
        let (_, took) = self.brought.filter(|(how, _)| *how == How::Compiled)?;
        Some(format!(
            "{} {} in {:.1} s",
            self.kind,
            self.name,
            took.as_secs_f64()
        ))
    }
}

/// Prepared components, and the errors of the others.
pub(in crate::cli) type Preparation = (Vec<Prepared>, Vec<String>);

/// Compiles or unpacks the components that a start with these packs needs.
pub(in crate::cli) async fn prepare(
    global: &Global,
    config: &Config,
    pack_selection: &PackSelection,
) -> anyhow::Result<Preparation> {
    let context = cli::context(global, config)?;
    let workspaces = cli::workspaces(global, config, context.path())?;
    let loaded = context.load(config, workspaces, pack_selection).await?;
    let catalog = &loaded.catalog;
    let one = |kind, name: &str, hash: &str| Prepared {
        kind,
        name: name.to_owned(),
        brought: Loader::brought(context.loader(), hash),
    };
    let packs = catalog.packs().iter();
    let packs = packs.map(|pack| one("pack", &pack.manifest.name, &pack.hash));
    let policies = catalog.policies().policies();
    let policies = policies.map(|policy| one("policy", &policy.manifest.name, &policy.hash));
    let failures = catalog.failures().iter().map(ToString::to_string);
    let failures = failures.chain(catalog.policies().failures().map(ToString::to_string));
    Ok((packs.chain(policies).collect(), failures.collect()))
}

/// Exit code 1 if a component did not load.
pub(super) async fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let config = Config::load(global.config.as_deref())?;
    let (all, failures) = prepare(global, &config, &PackSelection::default()).await?;
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

fn row(prepared: &Prepared) -> Vec<String> {
    let (how, took) = match prepared.brought {
        Some((how, took)) => (word(how), format!("{} ms", took.as_millis())),
        None => ("", String::new()),
    };
    vec![
        prepared.kind.to_owned(),
        prepared.name.clone(),
        how.to_owned(),
        took,
    ]
}

fn as_json(prepared: &Prepared) -> Value {
    let took = prepared
        .brought
        .map(|(_, took)| u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
    json!({
        "kind": prepared.kind,
        "name": prepared.name,
        "code": prepared.brought.map(|(how, _)| how),
        "took_ms": took,
    })
}

fn word(how: How) -> &'static str {
    match how {
        How::Cached => "already cached",
        How::Unpacked => "unpacked from this program",
        How::Compiled => "compiled",
    }
}
