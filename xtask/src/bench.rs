//! Measuring the release build.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::components::{self, Profile};
use crate::run::{cargo, root, run, say, target};

/// What the server in TypeScript consists of.
const TYPESCRIPT: [&str; 3] = ["package.json", "package-lock.json", "server.mjs"];

/// Builds what is measured and the bench, and runs it.
pub(crate) fn all(flags: &[String]) -> anyhow::Result<()> {
    let tollgate = components::build_host(Profile::Release)?;
    components::build_guests()?;
    run(cargo().args(["build", "--quiet", "--release", "--package", "bench"]))?;
    let mut bench = Command::new(Profile::Release.folder().join("bench"));
    bench.arg("--server").arg(tollgate);
    bench.arg("--guests").arg(root().join("target/components/guests"));
    match typescript() {
        Ok(folder) => {
            bench.arg("--typescript").arg(folder);
        }
        Err(err) => say(&format!(
            "the server in TypeScript is left out, because it cannot be installed: {err:#}"
        )),
    }
    run(bench.args(flags))
}

/// The server in TypeScript with what it depends on, installed once in the target folder.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn typescript() -> anyhow::Result<PathBuf> {
    let (from, to) = (root().join("tests/bench/typescript"), target().join("typescript"));
    let lock = |folder: &PathBuf| std::fs::read(folder.join("package-lock.json"));
    let is_installed = to.join("installed").exists() && lock(&to).ok() == lock(&from).ok();
    std::fs::create_dir_all(&to)?;
    for file in TYPESCRIPT {
        std::fs::copy(from.join(file), to.join(file)).with_context(|| format!("{file} cannot be copied"))?;
    }
    if !is_installed {
        let version = Command::new("npm")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        version.context("there is no npm")?;
        say(&format!(
            "installing the server in TypeScript into {}",
            to.display()
        ));
        run(Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&to))?;
        std::fs::write(to.join("installed"), "")?;
    }
    Ok(to)
}
