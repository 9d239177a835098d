//! `tollgate clients list` and `tollgate clients check`

use std::process::ExitCode;

use clap::{Args, ValueEnum as _};
use serde_json::json;
use tollgate::clients::look::{self, LookError};
use tollgate::clients::{Client, Entry, Scope, Server};

use super::{Global, entries, name, out, places, scope, tell};

/// Shows each client: whether it is installed, its files, and their entries.
pub(super) fn list(global: &Global) -> anyhow::Result<ExitCode> {
    let places = places()?;
    let entries = entries();
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for client in Client::value_variants() {
        let is_installed = client.is_installed(&places);
        for scope in [Scope::User, Scope::Project] {
            let Some(file) = client.file(scope, &places) else {
                continue;
            };
            let entry = entries
                .iter()
                .find(|(_, _, path, _)| *path == file)
                .map(|(.., entry)| entry);
            // A missing project file is not worth a line.
            if scope == Scope::Project && !file.is_file() {
                continue;
            }
            let said = entry.map_or_else(|| "-".to_owned(), describe);
            let installed = if is_installed { "yes" } else { "no" };
            let scope = if scope == Scope::User { "user" } else { "project" };
            all.push(json!({
                "client": name(*client), "title": client.title(), "installed": is_installed,
                "scope": scope, "file": file, "entry": entry.map(describe),
            }));
            rows.push(
                [
                    &name(*client),
                    installed,
                    scope,
                    &file.display().to_string(),
                    &said,
                ]
                .map(str::to_owned)
                .to_vec(),
            );
        }
    }
    if global.json {
        out::print_json(&json!(all));
    } else {
        out::print(&out::table(
            &["CLIENT", "INSTALLED", "SCOPE", "FILE", "ENTRY"],
            &rows,
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(entry: &Result<Entry, String>) -> String {
    match entry {
        Err(why) => format!("cannot be read: {why}"),
        Ok(entry) if entry.is_disabled => "switched off".to_owned(),
        Ok(Entry {
            server: Server::Stdio { command, args },
            ..
        }) => {
            format!("starts {command} {}", args.join(" "))
        }
        Ok(Entry {
            server: Server::Http { url, .. },
            ..
        }) => format!("connects to {url}"),
    }
}

/// The exit code is 1 if a client sees no tools.
#[derive(Debug, Args)]
pub(in crate::cli) struct Check {
    /// Clients to check [default: those that have an entry]
    #[arg(value_name = "CLIENT")]
    clients: Vec<Client>,
    /// Entries of the project in the current directory. Check only entries that you trust; an entry may start any
    /// program
    #[arg(long)]
    project: bool,
}

impl Check {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let mut is_fine = true;
        let wanted = scope(self.project);
        // A project's file may be untrusted, and clients ask before they start what it names.
        let entries: Vec<_> = entries()
            .into_iter()
            .filter(|(_, scope, ..)| *scope == wanted)
            .collect();
        for client in &self.clients {
            let is_there = entries.iter().any(|(there, ..)| there == client);
            if !is_there {
                is_fine = false;
                tell(
                    "✘",
                    *client,
                    &format!(
                        "has no entry; to add one, run `tollgate clients add {}`",
                        name(*client)
                    ),
                );
            }
        }
        let is_meant = |client: &Client| self.clients.is_empty() || self.clients.contains(client);
        let meant: Vec<_> = entries.iter().filter(|(client, ..)| is_meant(client)).collect();
        if meant.is_empty() && self.clients.is_empty() {
            is_fine = false;
            let hint = if self.project {
                ""
            } else {
                " (--project checks this project's entries)"
            };
            out::print(&format!(
                "no client has an entry{hint}; to add one, run `tollgate clients add`"
            ));
        }
        for (client, scope, path, entry) in meant {
            is_fine &= match entry {
                Ok(entry) => look(*client, *scope, entry).await,
                Err(why) => {
                    tell(
                        "✘",
                        *client,
                        &format!("cannot be checked: {} cannot be read: {why}", path.display()),
                    );
                    false
                }
            };
        }
        Ok(if is_fine {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Starts an entry as its client would, and reports what the client sees.
pub(super) async fn look(client: Client, scope: Scope, entry: &Entry) -> bool {
    if entry.is_disabled {
        tell(
            "✘",
            client,
            "sees no tools: the entry is switched off; switch it on in the client",
        );
        return false;
    }
    match look::look(entry, |name| std::env::var(name).ok()).await {
        Ok(seen) if seen.tools == 0 => {
            tell(
                "✘",
                client,
                "sees no tools: the server lists no tools; `tollgate tools` shows all tools",
            );
            false
        }
        Ok(seen) => {
            let sees = if scope == Scope::Project && client.next_step(scope).is_some() {
                "will see"
            } else {
                "sees"
            };
            tell(
                "✔",
                client,
                &format!(
                    "{sees} {} ({:.1} s)",
                    tollgate_core::text::counted(seen.tools, "tool"),
                    seen.took.as_secs_f64()
                ),
            );
            true
        }
        Err(why @ LookError::Asked) => {
            tell("?", client, &format!("was not checked: {why}"));
            true
        }
        Err(why) => {
            tell(
                "✘",
                client,
                &format!("sees no tools: {}", tollgate_core::text::chain(&why)),
            );
            false
        }
    }
}
