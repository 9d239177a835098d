//! What is depended on: licences, sources, versions beside each other, and what is known to be unsound.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

use crate::run::{cargo, root, run, say, target};

/// The tool that `deny.toml` is for.
const TOOL: &str = "cargo-deny";
const VERSION: &str = "0.0.0";

/// Checks dependencies, and returns what it came to.
pub(crate) fn check() -> anyhow::Result<String> {
    let tool = tool()?;
    let deny = || {
        let mut deny = Command::new(&tool);
        deny.current_dir(root()).arg("--offline");
        deny
    };
    run(deny().args(["check", "bans", "licenses", "sources"]))?;
    // Advisories are published from day to day, so they have to be fetched.
    let fetched = Command::new(&tool)
        .args(["fetch", "db"])
        .current_dir(root())
        .output();
    let known = if fetched.is_ok_and(|output| output.status.success()) {
        run(deny().args(["check", "advisories"]))?;
        "no advisory is about them"
    } else {
        say("the list of advisories cannot be fetched; without it nothing is said about them");
        "advisories were not looked at"
    };
    Ok(format!(
        "licences, sources and versions are as deny.toml says; {known}"
    ))
}

/// The tool, installed once in the target folder.
fn tool() -> anyhow::Result<PathBuf> {
    let folder = target().join("tools");
    let tool = folder.join("bin").join(TOOL);
    let there = Command::new(&tool).arg("--version").output();
    let is_there =
        there.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == format!("{TOOL} {VERSION}"));
    if !is_there {
        say(&format!("installing {TOOL} {VERSION} into {}", folder.display()));
        run(cargo()
            .args([
                "install",
                TOOL,
                "--version",
                VERSION,
                "--locked",
                "--quiet",
                "--root",
            ])
            .arg(&folder))
        .with_context(|| format!("{TOOL} cannot be installed"))?;
    }
    Ok(tool)
}
