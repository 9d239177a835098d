//! `tollgate packs outdated`

use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use tollgate::config::Config;
use tollgate_components::loading::{self, Registries};
use tollgate_registry::{Reference, RegistryError, versions_after};

use crate::cli::{Global, out, registry};

/// A component of the configuration that comes from a registry.
struct Row {
    section: &'static str,
    name: String,
    reference: Reference,
    found: Result<State, RegistryError>,
}

/// State of the component's tag, and later versions.
struct State {
    /// True if the tag now points to another manifest.
    is_moved: bool,
    /// Later versions, latest first.
    later: Vec<String>,
}

/// Exit code 1 if a registry cannot be asked.
pub(super) async fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let config = Config::load(global.config.as_deref())?;
    let registries = registry::open(&config)?;
    let mut rows = Vec::new();
    for (section, name, source) in sources(&config) {
        let reference: Reference = source.parse()?;
        let found = state(&registries, &reference).await;
        rows.push(Row {
            section,
            name,
            reference,
            found,
        });
    }
    if global.json {
        out::print_json(&json!({ "components": rows.iter().map(as_json).collect::<Vec<_>>() }));
    } else if rows.is_empty() {
        out::print("no pack or policy comes from a registry");
    } else {
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        out::print(&out::table(
            &["KIND", "NAME", "TAG", "STATE", "LATEST", "REPOSITORY"],
            &cells,
        ));
        for row in &rows {
            if let Err(err) = &row.found {
                out::warn(&format!("{} {}: {err}", row.section, row.name));
            }
        }
    }
    let is_whole = rows.iter().all(|row| row.found.is_ok());
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Components of the configuration that come from a registry: section, name and source.
fn sources(config: &Config) -> Vec<(&'static str, String, String)> {
    let packs = config
        .packs
        .iter()
        .map(|(name, pack)| ("packs", name, pack.source.as_ref()));
    let policies = config
        .policies
        .iter()
        .map(|(name, policy)| ("policies", name, policy.source.as_ref()));
    let all = packs
        .chain(policies)
        .filter_map(|(section, name, source)| Some((section, name.clone(), source?.clone())));
    all.filter(|(_, _, source)| registry::is_reference(source))
        .collect()
}

async fn state(registries: &Arc<Registries>, reference: &Reference) -> Result<State, RegistryError> {
    let (registries, reference) = (Arc::clone(registries), reference.clone());
    loading::run_registry(move || {
        let Some(tag) = reference.tag() else {
            return Ok(State {
                is_moved: false,
                later: Vec::new(),
            });
        };
        let now = registries.client.resolve(&reference.tagged(tag)?)?;
        let tags = registries.client.tags(&reference)?;
        Ok(State {
            is_moved: Some(&now.digest) != reference.digest(),
            later: versions_after(tag, &tags),
        })
    })
    .await
}

fn word(state: &State, has_tag: bool) -> &'static str {
    match (has_tag, state.is_moved, state.later.is_empty()) {
        (false, ..) => "pinned without a tag",
        (true, true, _) => "the tag has moved",
        (true, false, false) => "outdated",
        (true, false, true) => "up to date",
    }
}

fn cells(row: &Row) -> Vec<String> {
    let tag = row.reference.tag().unwrap_or_default();
    let (state, latest) = match &row.found {
        Ok(state) => {
            let latest = state.later.first().map_or(tag, String::as_str);
            (word(state, row.reference.tag().is_some()), latest.to_owned())
        }
        Err(_) => ("unknown", String::new()),
    };
    vec![
        row.section.trim_end_matches('s').replace("policie", "policy"),
        row.name.clone(),
        tag.to_owned(),
        state.to_owned(),
        latest,
        row.reference.repository(),
    ]
}

fn as_json(row: &Row) -> Value {
    let state = match &row.found {
        Ok(state) => json!({ "moved": state.is_moved, "later": state.later }),
        Err(err) => json!({ "error": err.to_string() }),
    };
    json!({
        "section": row.section,
        "name": row.name,
        "source": row.reference.to_string(),
        "tag": row.reference.tag(),
        "state": state,
    })
}
