//! `tollgate tools`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate::config::Config;
use tollgate_components::tools::Tier;

use super::{Filters, Global, out};

/// Every tool that exists is shown, with the tier that lists it.
#[derive(Debug, Args)]
pub(super) struct Tools {
    #[command(flatten)]
    filters: Filters,
}

impl Tools {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let config = Config::load(global.config.as_deref())?;
        let mut pack_selection = self.filters.pack_selection(&config)?;
        pack_selection.selection.tier = self.filters.tier.or(Some(Tier::Full));
        pack_selection.selection.compact = self.filters.compact;
        let gate = super::open(global, &config, &pack_selection).await?;
        let catalog = gate.catalog();
        let tools = catalog.listed();
        if global.json {
            let tools: Vec<_> = tools
                .map(|tool| {
                    json!({
                        "name": tool.spec.name,
                        "pack": tool.pack_name(),
                        "effect": tool.spec.effect,
                        "tier": tool.spec.tier,
                        "title": tool.spec.title,
                        "description": tool.spec.description,
                        "aliases": tool.spec.aliases,
                        "inputSchema": tool.spec.input_schema,
                        "outputSchema": *tool.spec.output_schema,
                    })
                })
                .collect();
            out::print_json(&tools.into());
        } else {
            let rows: Vec<Vec<String>> = tools
                .map(|tool| {
                    vec![
                        tool.spec.name.clone(),
                        tool.pack_name().to_owned(),
                        tool.spec.effect.as_str().to_owned(),
                        format!("{:?}", tool.spec.tier).to_lowercase(),
                        tool.spec.title.clone(),
                    ]
                })
                .collect();
            out::print(&out::table(&["TOOL", "PACK", "EFFECT", "TIER", "TITLE"], &rows));
        }
        Ok(ExitCode::SUCCESS)
    }
}
