//! Benchmarks of the release build.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

use crate::components::{self, Profile};
use crate::run::{npm_packages, root, run, say, target};
use crate::{postgres, python};

/// Files of the TypeScript server.
const TYPESCRIPT: [&str; 3] = ["package.json", "package-lock.json", "server.mjs"];
/// Packages of the FastMCP server.
const FASTMCP: &[&str] = &["fastmcp==4.1.2"];

/// Builds the host and the bench, and runs the bench.
pub(crate) fn all(flags: &[String]) -> anyhow::Result<()> {
    let tollgate = components::build_host_and(Profile::Dist, &["bench"])?;
    components::build_guests()?;
    let mut bench = Command::new(Profile::Dist.folder().join("bench"));
    bench.arg("--server").arg(tollgate);
    bench.arg("--guests").arg(root().join("target/components/guests"));
    let database = match postgres::newest().and_then(|binaries| postgres::Server::start(&binaries)) {
        Ok(server) => {
            bench
                .arg("--postgres")
                .arg(format!("{}?sslmode=disable", server.url()));
            Some(server)
        }
        Err(err) => {
            say(&format!(
                "figures of hosts with one PostgreSQL database are left out: {err:#}"
            ));
            None
        }
    };
    let typescript = npm_packages("tests/bench/typescript", &TYPESCRIPT);
    for (flag, peer) in [("--typescript", typescript), ("--fastmcp", fastmcp())] {
        match peer {
            Ok(folder) => {
                bench.arg(flag).arg(folder);
            }
            Err(err) => say(&format!(
                "skipping what {flag} names, because it cannot be installed: {err:#}"
            )),
        }
    }
    let ran = run(bench.args(flags));
    drop(database);
    ran
}

/// The FastMCP server and its dependencies.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn fastmcp() -> anyhow::Result<PathBuf> {
    python::with("fastmcp", FASTMCP)?;
    let folder = target().join("fastmcp");
    let server = root().join("tests/bench/fastmcp/server.py");
    std::fs::copy(server, folder.join("server.py")).context("cannot copy server.py")?;
    Ok(folder)
}
