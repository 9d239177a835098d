//! `tollgate completions` and `tollgate man`: what shells and readers of manuals get.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;

use super::out;

/// A shell reads the script when it starts; the examples show where to put it.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// Shell that completes commands
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "tollgate", &mut script);
        out::print_text(&String::from_utf8_lossy(&script));
        ExitCode::SUCCESS
    }
}

/// One page for each command, such as `tollgate-ledger-tail.1`.
#[derive(Debug, Args)]
pub(super) struct Manual {
    /// Folder to write the pages to, which is created if it does not exist
    folder: PathBuf,
}

impl Manual {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        std::fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", self.folder.display()))?;
        let mut command = super::command().disable_help_subcommand(true);
        command.build();
        let pages = write(&self.folder, &command)?;
        out::print(&format!("wrote {pages} pages to {}", self.folder.display()));
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the pages of a command and all of its subcommands. Returns their number.
fn write(folder: &Path, command: &clap::Command) -> anyhow::Result<usize> {
    let man = Man::new(command.clone());
    let file = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page)?;
    #[allow(clippy::disallowed_methods, reason = "the user names the folder")]
    std::fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below
        .map(|below| write(folder, below))
        .sum::<anyhow::Result<usize>>()
        .map(|below| below + 1)
}
