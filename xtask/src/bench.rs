//! Measuring the release build.

use std::process::Command;

use crate::components::{self, Profile};
use crate::run::{cargo, npm_packages, run, say};

/// What the server in TypeScript consists of.
const TYPESCRIPT: [&str; 3] = ["package.json", "package-lock.json", "server.mjs"];

/// Builds what is measured and the bench, and runs it.
pub(crate) fn all(flags: &[String]) -> anyhow::Result<()> {
    let tollgate = components::build_host(Profile::Release)?;
    run(cargo().args(["build", "--quiet", "--release", "--package", "bench"]))?;
    let mut bench = Command::new(Profile::Release.folder().join("bench"));
    bench.arg("--server").arg(tollgate);
    match npm_packages("tests/bench/typescript", &TYPESCRIPT) {
        Ok(folder) => {
            bench.arg("--typescript").arg(folder);
        }
        Err(err) => say(&format!(
            "the server in TypeScript is left out, because it cannot be installed: {err:#}"
        )),
    }
    run(bench.args(flags))
}
