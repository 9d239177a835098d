//! `tollgate config`

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use tollgate::config::reference::{self, Entry};

use super::{Global, out};

/// Reads no file: the keys are those of this program. `tollgate doctor` checks a file.
#[derive(Debug, Args)]
pub(super) struct Keys {
    /// A key such as `server.tier`, or a table such as `envelope` to show all of its keys
    #[arg(value_name = "KEY")]
    key: Option<String>,
}

impl Keys {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let entries = reference::entries(self.key.as_deref()).map_err(|message| anyhow!(message))?;
        if global.json {
            out::print_json(&serde_json::json!(entries));
            return Ok(ExitCode::SUCCESS);
        }
        match &entries[..] {
            [entry] => out::print(&explain(entry)),
            entries => {
                let rows: Vec<Vec<String>> = entries
                    .iter()
                    .map(|entry| {
                        vec![
                            entry.key.clone(),
                            entry.default.clone(),
                            entry.description.to_owned(),
                        ]
                    })
                    .collect();
                out::print(&out::table(&["KEY", "DEFAULT", "MEANING"], &rows));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn explain(entry: &Entry) -> String {
    let name = entry.key.rsplit('.').next().unwrap_or(&entry.key);
    format!(
        "{}\n  {}\n  type:    {}\n  default: {}\n  example: {name} = {}",
        entry.key, entry.description, entry.holds, entry.default, entry.example
    )
}
