//! Torture: killing hosts under load.

use std::process::Command;

use anyhow::bail;

use crate::components::{self, Profile};
use crate::postgres::{self, Server};
use crate::run::last_line;

/// Flag for the database engine, which only xtask interprets.
const ENGINE: &str = "--engine";

/// Builds the host and the torture, runs it with flags such as `--rounds 1000 --seed 7`, and returns a summary. With
/// `--engine postgres` the database is on a server, which is started for the run and is harmed as well.
pub(crate) fn all(flags: &[String]) -> anyhow::Result<String> {
    let mut flags = flags.to_vec();
    let engine = flags.iter().position(|flag| flag == ENGINE);
    let named: Vec<String> = match engine {
        Some(at) => flags.drain(at..flags.len().min(at + 2)).collect(),
        None => Vec::new(),
    };
    match named.get(1).map(String::as_str) {
        None if named.is_empty() => run(&flags),
        Some("sqlite") => run(&flags),
        Some("postgres") => on(&postgres::server()?, &flags),
        _ => bail!("{ENGINE} is sqlite or postgres"),
    }
}

/// Runs the torture on a running server.
pub(crate) fn on(server: &Server, flags: &[String]) -> anyhow::Result<String> {
    let named = ["--database".to_owned(), server.url()];
    run(&[&named[..], flags].concat())
}

fn run(flags: &[String]) -> anyhow::Result<String> {
    let tollgate = components::build_host_and(Profile::Dev, &["torture"])?;
    let torture = Profile::Dev.folder().join("torture");
    last_line(Command::new(torture).arg("--server").arg(tollgate).args(flags))
}
