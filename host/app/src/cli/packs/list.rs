//! `tollgate packs list`

use std::process::ExitCode;

use serde_json::json;
use tollgate::config::Config;
use tollgate::host::PackSelection;
use tollgate_components::catalog::Catalog;

use crate::cli::{self, Global, out};

/// Exit code 1 if a pack did not load.
pub(super) async fn run(global: &Global) -> anyhow::Result<ExitCode> {
    let config = Config::load(global.config.as_deref())?;
    let gate = cli::open_quietly(global, &config, &PackSelection::default()).await?;
    let catalog = gate.catalog();
    if global.json {
        out::print_json(&as_json(&catalog));
    } else {
        out::print(&out::table(
            &["PACK", "VERSION", "TOOLS", "SOURCE", "SHA-256", "SUMMARY"],
            &rows(&catalog),
        ));
        for failure in catalog.failures() {
            out::warn(&failure.to_string());
        }
        for change in catalog.changes() {
            out::warn(&format!(
                "{change}; run `tollgate packs accept {}` if the change is intended",
                change.pack
            ));
        }
    }
    Ok(if catalog.failures().is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn rows(catalog: &Catalog) -> Vec<Vec<String>> {
    catalog
        .packs()
        .iter()
        .map(|pack| {
            vec![
                pack.manifest.name.clone(),
                pack.manifest.version.clone(),
                pack.manifest.tools.len().to_string(),
                pack.origin.clone(),
                pack.hash[..12].to_owned(),
                pack.manifest.summary.clone(),
            ]
        })
        .collect()
}

fn as_json(catalog: &Catalog) -> serde_json::Value {
    let packs: Vec<_> = catalog
        .packs()
        .iter()
        .map(|pack| {
            json!({
                "name": pack.manifest.name,
                "version": pack.manifest.version,
                "summary": pack.manifest.summary,
                "source": pack.origin,
                "sha256": pack.hash,
                "bytes": pack.size,
                "tools": pack.manifest.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
            })
        })
        .collect();
    let failures: Vec<_> = catalog
        .failures()
        .iter()
        .map(
            |failure| json!({ "pack": failure.pack, "source": failure.origin, "problems": failure.problems }),
        )
        .collect();
    json!({ "packs": packs, "failures": failures, "changes": catalog.changes() })
}
