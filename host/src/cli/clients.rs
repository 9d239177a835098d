//! `tollgate clients`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use tollgate::clients::{Client, Scope, Server};

use super::{Global, file, out, utf8};

#[derive(Debug, Subcommand)]
pub(super) enum Clients {
    /// Show what a client's configuration needs
    Print(Target),
    /// Add Tollgate to a client's configuration; everything else in it stays
    Add(Add),
}

#[derive(Debug, Args)]
pub(super) struct Target {
    /// Which client
    client: Client,
    /// The client connects to a running server instead of starting one
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// For all projects instead of the one in the current directory
    #[arg(long)]
    user: bool,
    /// More arguments of `serve`, after `--`
    #[arg(last = true, value_name = "ARGUMENT")]
    serve: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct Add {
    #[command(flatten)]
    target: Target,
    /// Replace an entry that says something else
    #[arg(long)]
    force: bool,
}

impl Clients {
    pub(super) fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        match self {
            Clients::Print(target) => {
                let server = target.server(global)?;
                match target.file() {
                    Ok(file) => out::warn(&format!("for {}:", file.display())),
                    Err(why) => out::warn(&why.to_string()),
                }
                out::print(target.client.snippet(&server).trim_end());
            }
            Clients::Add(Add { target, force }) => {
                let server = target.server(global)?;
                let file = target.file()?;
                let text = file::read(&file)?;
                let added = target
                    .client
                    .added(&text, &server, force)
                    .with_context(|| file.display().to_string())?;
                if added == text {
                    out::print(&format!("{} has it already", file.display()));
                } else {
                    file::replace(&file, &added)?;
                    out::print(&format!("added to {}", file.display()));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Target {
    fn server(&self, global: &Global) -> anyhow::Result<Server> {
        if let Some(url) = &self.http {
            anyhow::ensure!(
                self.serve.is_empty(),
                "arguments of `serve` mean nothing to a server that runs already"
            );
            return Ok(Server::Http { url: url.clone() });
        }
        let program = std::env::current_exe().context("this program does not know its own file")?;
        let mut args = vec!["serve".to_owned()];
        // The client starts the program elsewhere, so relative paths would be other ones there.
        for (flag, path) in [("--config", &global.config), ("--data-dir", &global.data_dir)] {
            if let Some(path) = path {
                args.extend([flag.to_owned(), utf8(&std::path::absolute(path)?)?]);
            }
        }
        args.extend(self.serve.iter().cloned());
        Ok(Server::Stdio {
            command: utf8(&program)?,
            args,
        })
    }

    fn file(&self) -> anyhow::Result<PathBuf> {
        let scope = if self.user { Scope::User } else { Scope::Project };
        let file = self.client.file(scope);
        Ok(match scope {
            Scope::Project => std::env::current_dir()?.join(file),
            Scope::User => etcetera::home_dir()
                .context("there is no home directory")?
                .join(file),
        })
    }
}
