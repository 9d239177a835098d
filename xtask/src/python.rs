//! Virtual environments of Python in the target folder.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context as _;

use crate::run::{run, say, target};

/// Interpreter of an environment with these packages (`name==version`). Creates the environment if it is missing.
pub(crate) fn with(environment: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = target().join(environment);
    let python = folder.join("bin/python");
    if !has_all(&python, packages) {
        say(&format!(
            "installing {} into {}",
            packages.join(" "),
            folder.display()
        ));
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            .context("python3 with venv is needed (Debian: python3-venv)")?;
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet"])
            .args(packages))?;
    }
    Ok(python)
}

fn has_all(python: &PathBuf, packages: &[&str]) -> bool {
    let checks = packages.iter().map(|package| {
        let (name, version) = package.split_once("==").unwrap_or((package, ""));
        format!("assert m.version('{name}') == '{version}'")
    });
    let checks: Vec<String> = checks.collect();
    Command::new(python)
        .args([
            "-c",
            &format!("import importlib.metadata as m; {}", checks.join("; ")),
        ])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
