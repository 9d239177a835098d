//! `tollgate init`

use std::process::ExitCode;

use clap::Args;
use tollgate::config::Config;
use tollgate::config::template::TEMPLATE;

use super::{Global, file, out};

/// The file is the one that `--config` names, or the user's own. One that is there stays as it is.
#[derive(Debug, Args)]
pub(super) struct Init {
    /// Print it instead of writing it
    #[arg(long)]
    print: bool,
}

impl Init {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        if self.print {
            out::print(TEMPLATE.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        let path = Config::file(global.config.as_deref())?;
        file::create(&path, TEMPLATE)?;
        out::print(&format!(
            "wrote {}; `tollgate doctor` checks it, `tollgate clients add` connects your clients",
            path.display()
        ));
        Ok(ExitCode::SUCCESS)
    }
}
