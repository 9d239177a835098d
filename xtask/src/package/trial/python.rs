//! Test of the wheel, installed by pip without an index.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

use super::super::Made;
use super::{Place, as_the_program, executable, is_version, refuses, write};
use crate::run::run;

/// Tests the wheel in a virtual environment.
pub(super) fn all(made: &Made, program: &Path, place: &Place) -> anyhow::Result<()> {
    let folder = place.folder.join("python");
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
        .context("python3 with venv is needed (Debian: python3-venv)")?;
    let bin = folder.join("bin");
    let pip = || {
        let mut pip = Command::new(bin.join("python"));
        pip.args([
            "-m",
            "pip",
            "--isolated",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--no-index",
        ]);
        pip
    };
    run(pip().arg(&made.wheel))?;
    for start in [
        vec![bin.join("tollgate").into_os_string()],
        vec![bin.join("tollgate-mcp").into_os_string()],
        vec![
            bin.join("python").into_os_string(),
            "-m".into(),
            "tollgate_mcp".into(),
        ],
    ] {
        as_the_program(&start, program, place).with_context(|| format!("{start:?} of the wheel"))?;
    }
    aside(place, || {
        let mut install = pip();
        install.arg(&made.wheel);
        install
    })?;
    // Another program with the same name in its place is not started.
    let script = bin.join("tollgate");
    write(&script, "#!/bin/sh\necho stranger\n")?;
    executable(&script)?;
    let replaced = Command::new(bin.join("tollgate-mcp")).arg("--version").output()?;
    refuses(&replaced, "install tollgate-mcp again")
}

/// Tests a target folder that is not an environment, as some clients' extensions use.
fn aside(place: &Place, install: impl Fn() -> Command) -> anyhow::Result<()> {
    let folder = place.folder.join("aside");
    run(install().arg("--target").arg(&folder))?;
    let mut module = Command::new("python3");
    module
        .args(["-m", "tollgate_mcp", "--version"])
        .env("PYTHONPATH", &folder);
    is_version(&module.output()?)
}
