//! `tollgate clients remove`

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use tollgate::clients::{Client, Scope};

use super::{change, entries, name, out, path, places, scope};

/// A file that contains only the entry is removed with it.
#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    /// Clients to remove Tollgate from
    #[arg(value_name = "CLIENT", required_unless_present = "all")]
    clients: Vec<Client>,
    /// All clients that have an entry
    #[arg(long, conflicts_with = "clients")]
    all: bool,
    /// From the file of the project in the current directory
    #[arg(long)]
    project: bool,
    /// Only print what would be removed, and from where
    #[arg(long)]
    dry_run: bool,
}

impl Remove {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let scope = scope(self.project);
        let entries = entries();
        let with_entry = entries
            .iter()
            .filter(|(_, there, ..)| *there == scope)
            .map(|(client, ..)| *client);
        let clients = if self.all {
            with_entry.collect()
        } else {
            self.clients
        };
        let mut is_missing = false;
        for client in clients {
            let file = path(client, scope, &places()?)?;
            let edit = |text: &str| Ok(client.removed(text)?.map(|left| keep_link(&file, left)));
            let is_removed = if self.dry_run {
                edit(&super::file::read(&file)?).map(|left| left.is_some())
            } else {
                change(&file, scope, 0, edit)
            };
            if is_removed.with_context(|| file.display().to_string())? {
                let would = if self.dry_run { "would be " } else { "" };
                out::print(&format!(
                    "{}: {would}removed from {}",
                    client.title(),
                    file.display()
                ));
                continue;
            }
            is_missing = true;
            let elsewhere = entries
                .iter()
                .any(|(there, other, ..)| *there == client && *other != scope);
            let hint = match (elsewhere, scope) {
                (false, _) => String::new(),
                (true, Scope::User) => format!(
                    "; `tollgate clients remove {} --project` removes the project's",
                    name(client)
                ),
                (true, Scope::Project) => {
                    format!("; `tollgate clients remove {}` removes the user's", name(client))
                }
            };
            out::print(&format!(
                "{}: {} has no entry{hint}",
                client.title(),
                file.display()
            ));
        }
        Ok(if is_missing {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// A link is kept. The file behind it is emptied instead of removed.
fn keep_link(file: &std::path::Path, left: String) -> String {
    if left.is_empty() && file.is_symlink() {
        "{}\n".to_owned()
    } else {
        left
    }
}
