//! The clients' lines: whether what they start is there.

use std::path::{Path, PathBuf};

use clap::ValueEnum as _;

use super::Finding;
use crate::clients::{Client, Scope, Server, is_program};

/// A client's file that is there: with its text, or why it cannot be read.
pub type File = (Client, Scope, PathBuf, Result<String, String>);

/// Looks at the files of clients. `http` is the address that `server.http` names.
pub fn check(files: &[File], http: Option<std::net::SocketAddr>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (client, scope, path, text) in files {
        let about = format!("client {}", path.display());
        let again = remedy(*client, *scope);
        let entry = match text {
            Ok(text) => client.found(text),
            Err(why) => Err(why.clone()),
        };
        found.extend(match entry {
            Err(why) => Some(Finding::warning(about, format!("it cannot be read: {why}"))),
            Ok(None) => None,
            Ok(Some(entry)) if entry.is_disabled => {
                Some(Finding::note(about, "the entry is switched off").remedy(again))
            }
            Ok(Some(entry)) => Some(match entry.server {
                Server::Http { url, .. } => Finding::ok(about, format!("it connects to {url}")),
                Server::Stdio { command, args } => started(about, &command, &args, http, &again),
            }),
        });
    }
    if found.is_empty() {
        found.push(
            Finding::note("clients", "no client of this project or user knows Tollgate")
                .remedy("tollgate clients add, which finds the clients that are installed"),
        );
    }
    found
}

/// The command that writes the entry anew.
fn remedy(client: Client, scope: Scope) -> String {
    let name = client
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default();
    let scope = if scope == Scope::Project { " --project" } else { "" };
    format!("tollgate clients add {name}{scope} --force")
}

/// A client that starts the program itself.
fn started(
    about: String,
    command: &str,
    args: &[String],
    http: Option<std::net::SocketAddr>,
    again: &str,
) -> Finding {
    // Without a slash it is looked up in the client's own PATH, which is not known here.
    if command.contains('/') && !is_program(Path::new(command)) {
        return Finding::problem(about, format!("it starts {command}, which is no program")).remedy(again);
    }
    let file = args.iter().skip_while(|argument| *argument != "--config").nth(1);
    if let Some(file) = file.filter(|file| !Path::new(file).is_file()) {
        return Finding::problem(
            about,
            format!("it names the configuration {file}, which is not there"),
        )
        .remedy(format!("tollgate init --config {file}, or {again}"));
    }
    if let Some(address) = http {
        return Finding::problem(
            about,
            format!(
                "it starts another server at {address}, which server.http names, and none that speaks with the client"
            ),
        )
        .remedy(again);
    }
    Finding::ok(about, format!("it starts {command} {}", args.join(" ")))
}
