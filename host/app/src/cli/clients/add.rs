//! `tollgate clients add` and `tollgate clients print`

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use tollgate::clients::{Client, EditError, Entry, Places, Server};
use tollgate::host::PackSelection;

use super::target::{Target, config};
use super::{Global, change, name, out, path, places, shell, show};
use crate::cli::packs::prepare::{self, Prepared};

/// Without a name, adds to all installed clients.
#[derive(Debug, Args)]
pub(in crate::cli) struct Add {
    /// Clients to add Tollgate to [default: all installed ones]
    #[arg(value_name = "CLIENT")]
    clients: Vec<Client>,
    #[command(flatten)]
    target: Target,
    /// Replace an existing entry that differs
    #[arg(long)]
    force: bool,
    /// Only print what would be added, and where
    #[arg(long)]
    dry_run: bool,
    /// Print the client's own command that adds the server, or run it, instead of changing its file
    #[arg(long, value_name = "HOW", num_args = 0..=1, default_missing_value = "print", require_equals = true)]
    command: Option<How>,
    /// Neither prepare the packs nor check the entry
    #[arg(long)]
    no_check: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    Print,
    Run,
}

/// Nothing is changed.
#[derive(Debug, Args)]
pub(in crate::cli) struct Print {
    /// Client to print the entry of
    client: Client,
    #[command(flatten)]
    target: Target,
}

impl Print {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let places = places()?;
        let server = self.target.server(global, self.client, &places)?;
        match path(self.client, self.target.scope(), &places) {
            Ok(file) => out::warn(&format!("for {}:", file.display())),
            Err(why) => out::warn(&why.to_string()),
        }
        out::print(self.client.snippet(&server)?.trim_end());
        Ok(ExitCode::SUCCESS)
    }
}

impl Add {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        let places = places()?;
        let clients = self.chosen(&places)?;
        let mut added = Vec::new();
        let mut has_failed = false;
        for client in clients {
            // An error for one client does not affect the others.
            match self.add(client, global, &places) {
                Ok(Some(server)) => added.push((client, server)),
                Ok(None) => {}
                Err(err) if self.clients.len() == 1 => return Err(err),
                Err(err) => {
                    has_failed = true;
                    out::warn(&format!("{}: {err:#}", client.title()));
                }
            }
        }
        if !self.no_check && !added.is_empty() {
            has_failed |= !self.check(global, &added).await?;
        }
        Ok(if has_failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Named clients, or all installed ones.
    fn chosen(&self, places: &Places) -> anyhow::Result<Vec<Client>> {
        if !self.clients.is_empty() {
            return Ok(self.clients.clone());
        }
        let is_meant = |client: &Client| {
            client.is_installed(places) && client.file(self.target.scope(), places).is_some()
        };
        let found: Vec<Client> = Client::value_variants()
            .iter()
            .copied()
            .filter(is_meant)
            .collect();
        let all: Vec<String> = Client::value_variants()
            .iter()
            .map(|client| name(*client))
            .collect();
        ensure!(
            !found.is_empty(),
            "no client was found; name one of: {}",
            all.join(", ")
        );
        let titles: Vec<&str> = found.iter().map(|client| client.title()).collect();
        let asks = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if asks && !self.yes && !self.dry_run && self.command.is_none() {
            let question = format!("tollgate: add to {}? [Y/n] ", titles.join(", "));
            write!(
                std::io::stderr(),
                "{}",
                tollgate_core::text::clean_prose(&question)
            )?;
            let mut answer = String::new();
            std::io::stdin().lock().read_line(&mut answer)?;
            ensure!(
                matches!(answer.trim(), "" | "y" | "Y" | "yes"),
                "nothing was added; name the clients to add Tollgate to"
            );
        }
        Ok(found)
    }

    /// Adds the entry. Returns the server if the entry can be checked now.
    fn add(&self, client: Client, global: &Global, places: &Places) -> anyhow::Result<Option<Server>> {
        let scope = self.target.scope();
        let server = self.target.server(global, client, places)?;
        if let Some(how) = self.command {
            let line = client.command(&server, scope)?.with_context(|| {
                format!(
                    "{} has no command that adds this entry; omit --command to change its file instead",
                    client.title()
                )
            })?;
            if how == How::Print || self.dry_run {
                out::print(&shell(&line));
                return Ok(None);
            }
            run(&line)?;
            return Ok(Some(server));
        }
        let file = path(client, scope, places)?;
        let edit = |text: &str| {
            client
                .added(text, &server, self.force)
                .map(Some)
                .map_err(Into::into)
        };
        if self.dry_run {
            return dry_run(client, &server, &file, edit);
        }
        let is_changed = change(&file, scope, global.umask, edit);
        if let Err(err) = &is_changed
            && let Some(EditError::Unreadable(_)) = err.downcast_ref()
        {
            out::print(client.snippet(&server)?.trim_end());
        }
        if is_changed.with_context(|| file.display().to_string())? {
            out::print(&format!("{}: added to {}", client.title(), file.display()));
        } else {
            out::print(&format!(
                "{}: {} already has this entry",
                client.title(),
                file.display()
            ));
        }
        if let Some(step) = client.next_step(scope) {
            out::print(&format!("  next: {step}"));
        }
        Ok(Some(server))
    }

    /// Prepares the packs, and checks what the clients see.
    async fn check(&self, global: &Global, added: &[(Client, Server)]) -> anyhow::Result<bool> {
        let places = places()?;
        if added
            .iter()
            .any(|(_, server)| matches!(server, Server::Stdio { .. }))
        {
            self.prepare(global).await;
        }
        let mut is_fine = true;
        for (client, server) in added {
            let scope = self.target.scope();
            let text = super::file::read(&path(*client, scope, &places)?)?;
            let start_sec = client
                .found(&text)
                .map_err(anyhow::Error::msg)?
                .map_or(30, |entry| entry.start_sec);
            // The rest of the file, which others may have written, is not run.
            let entry = Entry {
                server: server.clone(),
                env: Vec::new(),
                is_disabled: false,
                start_sec,
            };
            is_fine &= show::look(*client, scope, &entry).await;
        }
        Ok(is_fine)
    }

    /// Does the same as `tollgate packs prepare`, so that the client's first start is fast. Entries stay even if this
    /// fails.
    async fn prepare(&self, global: &Global) {
        let started = Instant::now();
        let config = config(global);
        let pack_selection = PackSelection {
            packs: self.target.packs.clone(),
            ..PackSelection::default()
        };
        let preparing = prepare::prepare(global, &config, &pack_selection);
        tokio::pin!(preparing);
        let quiet = tokio::time::timeout(Duration::from_secs(1), &mut preparing).await;
        let is_quick = quiet.is_ok();
        let prepared = match quiet {
            Ok(prepared) => prepared,
            Err(_) => {
                out::warn("preparing packs and policies, which happens once");
                preparing.await
            }
        };
        match prepared {
            Ok((all, failures)) => {
                let compiled: Vec<String> = all.iter().filter_map(Prepared::compiled).collect();
                if !compiled.is_empty() {
                    out::warn(&format!("compiled {}", compiled.join(", ")));
                }
                if !is_quick {
                    out::warn(&format!("prepared in {:.1} s", started.elapsed().as_secs_f64()));
                }
                failures.iter().for_each(|failure| out::warn(failure));
            }
            Err(err) => out::warn(&format!(
                "the packs were not prepared: {err:#}; the entry stays; run `tollgate packs prepare` to try again"
            )),
        }
    }
}

/// Reports what would be done.
fn dry_run(
    client: Client,
    server: &Server,
    file: &Path,
    edit: impl Fn(&str) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<Option<Server>> {
    let before = super::file::read(file)?;
    let after = edit(&before).with_context(|| file.display().to_string())?;
    if after.is_none_or(|after| after == before) {
        out::print(&format!(
            "{}: {} already has this entry",
            client.title(),
            file.display()
        ));
        return Ok(None);
    }
    out::print(&format!(
        "{}: would be added to {}:",
        client.title(),
        file.display()
    ));
    out::print(client.snippet(server)?.trim_end());
    Ok(None)
}

/// Runs a client's own command.
fn run(line: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = line.split_first().context("the command is empty")?;
    let status = std::process::Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| {
            format!("cannot start {program}; omit --command to change the client's file instead")
        })?;
    ensure!(status.success(), "`{}` failed: {status}", shell(line));
    Ok(())
}
