//! The clients' lines: whether what they start is there.

use std::path::{Path, PathBuf};

use super::Finding;
use crate::clients::{Client, Server};

/// Looks at the files of clients that are there: each with its text, or why it cannot be read.
pub fn check(files: &[(Client, PathBuf, Result<String, String>)]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (client, path, text) in files {
        let about = format!("client {}", path.display());
        let server = match text {
            Ok(text) => client.found(text),
            Err(why) => Err(why.clone()),
        };
        match server {
            Err(why) => found.push(Finding::warning(about, format!("it cannot be read: {why}"))),
            Ok(None) => {}
            Ok(Some(Server::Http { url })) => found.push(Finding::ok(about, format!("it connects to {url}"))),
            Ok(Some(Server::Stdio { command, args })) => found.push(started(about, &command, &args)),
        }
    }
    if found.is_empty() {
        found.push(
            Finding::note("clients", "no client of this project or user knows Tollgate")
                .remedy("tollgate clients add claude-code (or cursor, vscode, codex, gemini)"),
        );
    }
    found
}

/// A client that starts the program itself.
fn started(about: String, command: &str, args: &[String]) -> Finding {
    let is_program =
        Path::new(command).is_file() && rustix::fs::access(command, rustix::fs::Access::EXEC_OK).is_ok();
    // Without a slash it is looked up in the client's own PATH, which is not known here.
    if command.contains('/') && !is_program {
        return Finding::problem(about, format!("it starts {command}, which is no program"))
            .remedy("tollgate clients add NAME --force");
    }
    let file = args.iter().skip_while(|argument| *argument != "--config").nth(1);
    match file {
        Some(file) if !Path::new(file).is_file() => Finding::problem(
            about,
            format!("it names the configuration {file}, which is not there"),
        )
        .remedy(format!(
            "tollgate init --config {file}, or tollgate clients add NAME --force"
        )),
        _ => Finding::ok(about, format!("it starts {command} {}", args.join(" "))),
    }
}
