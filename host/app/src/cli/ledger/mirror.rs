//! `tollgate ledger mirror`

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tollgate_core::text::counted;
use tollgate_store::ledger::mirror;

use super::{Global, open};
use crate::cli::out;

/// Rewrite the files of the mirror
#[derive(Debug, Args)]
pub(in crate::cli) struct Mirror {}

impl Mirror {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let opened = open(global)?;
        let rebuilt = mirror::Mirror::open(&opened.data)?.rebuild(&opened.session)?;
        if global.json {
            out::print_json(&json!(rebuilt));
        } else {
            let place = opened.data.path().join("ledger");
            out::print(&format!(
                "{} in {} in {}",
                counted(rebuilt.rows, "operation"),
                counted(rebuilt.files, "file"),
                place.display()
            ));
        }
        Ok(ExitCode::SUCCESS)
    }
}
