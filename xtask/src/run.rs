//! Running programs, and the tasks that are no more than that.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::components::{self, Profile};

/// The folder of the workspace. Cargo says where that is now; the folder that this was built in may have moved.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().unwrap_or(&xtask).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Says something on standard error, which keeps standard output for programs.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// `cargo`, in the workspace.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Runs a command to its end. It must succeed.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("{command:?} cannot be run"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// Runs a command to its end, shows what it prints, and returns the last line of that. It must succeed.
pub(crate) fn last_line(command: &mut Command) -> anyhow::Result<String> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{command:?} cannot be run"))?;
    let mut last = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            last = line?;
            writeln!(std::io::stdout(), "{last}")?;
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(last)
}

/// Builds the host and becomes `tollgate serve`.
pub(crate) fn serve(flags: &[String]) -> anyhow::Result<()> {
    let tollgate = components::build_host(Profile::Dev)?;
    run(Command::new(tollgate).arg("serve").args(flags))
}

/// Builds the host and the demo, and runs the demo.
pub(crate) fn demo() -> anyhow::Result<()> {
    let tollgate = components::build_host_and(Profile::Dev, &["demo"])?;
    let demo = Profile::Dev.folder().join("demo");
    run(Command::new(demo).arg("--server").arg(tollgate))
}

/// Files of a folder with what they depend on from npm, installed once in the target folder.
pub(crate) fn npm_packages(folder: &str, files: &[&str]) -> anyhow::Result<PathBuf> {
    npm_packages_in(folder, files, target().join("npm").join(folder))
}

/// The same, installed in a folder of its own.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn npm_packages_in(folder: &str, files: &[&str], to: PathBuf) -> anyhow::Result<PathBuf> {
    let from = root().join(folder);
    let lock = std::fs::read(from.join("package-lock.json"))?;
    let is_installed = std::fs::read(to.join("installed")).is_ok_and(|installed| installed == lock);
    std::fs::create_dir_all(&to)?;
    for file in files {
        std::fs::copy(from.join(file), to.join(file)).with_context(|| format!("{file} cannot be copied"))?;
    }
    if !is_installed {
        let version = Command::new("npm")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        version.context("there is no npm")?;
        say(&format!(
            "installing what {folder} depends on into {}",
            to.display()
        ));
        // Not `npm ci`: it refuses locks without packages for other systems, which npm itself leaves out.
        run(Command::new("npm")
            .args([
                "install",
                "--no-save",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
            ])
            .current_dir(&to))?;
        std::fs::write(to.join("installed"), lock)?;
    }
    Ok(to)
}
