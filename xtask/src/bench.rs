//! Measuring the build that is shipped.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

use crate::components::{self, Profile};
use crate::run::{npm_packages, root, run, say, target};
use crate::{postgres, python};

/// Files of the server in TypeScript.
const TYPESCRIPT: [&str; 3] = ["package.json", "package-lock.json", "server.mjs"];
/// Packages of the server on FastMCP.
const FASTMCP: &[&str] = &["fastmcp==4.1.2"];

/// Builds what is measured and the bench, and runs it.
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
                "what {flag} names is left out, because it cannot be installed: {err:#}"
            )),
        }
    }
    let ran = run(bench.args(flags));
    drop(database);
    ran
}

/// The server on FastMCP with what it depends on.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn fastmcp() -> anyhow::Result<PathBuf> {
    python::with("fastmcp", FASTMCP)?;
    let folder = target().join("fastmcp");
    let server = root().join("tests/bench/fastmcp/server.py");
    std::fs::copy(server, folder.join("server.py")).context("server.py cannot be copied")?;
    Ok(folder)
}
