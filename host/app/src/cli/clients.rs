//! `tollgate clients`

mod add;
mod remove;
mod runner;
mod show;
mod target;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum as _};
use tollgate::clients::{Client, Entry, Places, Scope};
use tollgate::doctor::ClientFile;

use super::{Global, file, out, utf8};

#[derive(Debug, Subcommand)]
pub(super) enum Clients {
    /// Show all known clients: whether they are installed, their files, and the entries in them
    List,
    /// Add Tollgate to clients' configurations; all other content is kept
    #[command(
        after_help = "Examples:\n  tollgate clients add                 all clients that are installed here\n  \
        tollgate clients add codex           one client, for all your projects\n  \
        tollgate clients add claude-code --project --packs task-store\n  \
        tollgate clients add cursor --http http://127.0.0.1:8765/mcp --bearer-env TOLLGATE_TOKEN\n  \
        tollgate clients add claude-code -- --tier standard"
    )]
    Add(add::Add),
    /// Start each entry as its client does, and count the tools that the client sees
    Check(show::Check),
    /// Remove Tollgate from clients' configurations; all other content is kept
    Remove(remove::Remove),
    /// Print a client's entry, for you to paste
    Print(add::Print),
}

impl Clients {
    pub(super) async fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            Clients::List => show::list(global),
            Clients::Add(add) => add.run(global).await,
            Clients::Check(check) => check.run().await,
            Clients::Remove(remove) => remove.run(),
            Clients::Print(print) => print.run(global),
        }
    }
}

/// Folders of the current user.
fn places() -> anyhow::Result<Places> {
    let project = std::env::current_dir().context("cannot determine the current directory")?;
    let home = etcetera::home_dir().context("there is no home directory; set HOME")?;
    Ok(Places::new(project, home, |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }))
}

/// A client's name on the command line.
fn name(client: Client) -> String {
    client
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

fn scope(is_project: bool) -> Scope {
    if is_project { Scope::Project } else { Scope::User }
}

/// Configuration file of a client. Some clients only have one per user.
fn path(client: Client, scope: Scope, places: &Places) -> anyhow::Result<PathBuf> {
    client.file(scope, places).with_context(|| {
        format!(
            "{} has no project configuration file; omit --project",
            client.title()
        )
    })
}

/// Existing client configuration files of this user and in this directory.
pub(super) fn files() -> Vec<ClientFile> {
    let Ok(places) = places() else { return Vec::new() };
    let mut files: Vec<ClientFile> = Vec::new();
    for scope in [Scope::Project, Scope::User] {
        for client in Client::value_variants() {
            let Some(path) = client.file(scope, &places).filter(|path| path.is_file()) else {
                continue;
            };
            // Builds of the same editor share a project's file.
            if !files.iter().any(|(_, _, there, _)| *there == path) {
                let text = file::read(&path).map_err(|err| format!("{err:#}"));
                files.push((*client, scope, path, text));
            }
        }
    }
    files
}

/// Existing entries. Files that cannot be read have an error instead.
fn entries() -> Vec<(Client, Scope, PathBuf, Result<Entry, String>)> {
    let found = files().into_iter().filter_map(|(client, scope, path, text)| {
        let entry = text.and_then(|text| client.found(&text)).transpose()?;
        Some((client, scope, path, entry))
    });
    found.collect()
}

/// Changes a file that its client may write at the same time. The original content must be unchanged when the file is
/// replaced. `None` leaves the file as it is, and empty text removes it.
fn change(
    path: &Path,
    scope: Scope,
    umask: u32,
    edit: impl Fn(&str) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<bool> {
    const TRIES: usize = 5;
    let path = &behind_links(path);
    for _ in 0..TRIES {
        let before = file::read(path)?;
        let Some(after) = edit(&before)? else {
            return Ok(false);
        };
        if after == before {
            return Ok(false);
        }
        if file::read(path)? != before {
            continue;
        }
        let is_new = !path.exists();
        if after.is_empty() {
            #[allow(
                clippy::disallowed_methods,
                reason = "the file is the client's, and held this entry alone"
            )]
            std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
            return Ok(true);
        }
        file::replace(path, &after)?;
        if is_new && scope == Scope::Project {
            share(path, umask)?;
        }
        return Ok(true);
    }
    anyhow::bail!(
        "{} keeps changing; close its client and try again",
        path.display()
    )
}

/// Gives a new file in a project the permissions of the user's umask, because others work on the project.
fn share(path: &Path, umask: u32) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let rights = std::fs::Permissions::from_mode(0o666 & !umask);
    std::fs::set_permissions(path, rights).with_context(|| path.display().to_string())
}

/// File that a path refers to, also through a link whose target does not exist yet.
fn behind_links(path: &Path) -> PathBuf {
    const MAX_LINKS: usize = 16;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    path
}

/// Prints a line that begins with a mark.
fn tell(mark: &str, client: Client, text: &str) {
    out::print(&format!("{mark} {} {text}", client.title()));
}

/// Quotes words for a shell.
fn shell(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+%".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
