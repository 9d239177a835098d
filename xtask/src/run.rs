//! Helpers for running programs, and the tasks that only run programs.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};

use crate::components::{self, Profile};

/// Folder of the workspace. Cargo provides its current location, because the folder may have moved since the build.
pub(crate) fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().unwrap_or(&xtask).to_owned()
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Prints a message on standard error, because standard output is for programs.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Command `cargo` in the workspace.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    // Cargo sets variables that describe the xtask package. Build scripts that read such variables would run again
    // after every switch between direct calls of cargo and calls through xtask.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"]
            .iter()
            .any(|start| text.starts_with(start))
        {
            cargo.env_remove(&name);
        }
    }
    cargo
}

/// Runs a command, which must succeed. Builds announce what they build, and how long this took last time.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let built = built(command);
    if let Some(name) = &built {
        let before = last_build(name).map_or_else(String::new, |seconds| {
            format!("; the last build took {}", duration(seconds))
        });
        say(&format!("xtask: building {name}{before}"));
    }
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    if let Some(name) = built {
        remember_build(&name, started.elapsed().as_secs());
    }
    Ok(())
}

/// Names of the packages and programs that a command builds, if it is a build.
fn built(command: &Command) -> Option<String> {
    let arguments: Vec<&str> = command.get_args().filter_map(OsStr::to_str).collect();
    let is_named = |before: &str| ["--package", "--bin"].contains(&before);
    let names: Vec<&str> = arguments
        .windows(2)
        .filter(|pair| is_named(pair[0]))
        .map(|pair| pair[1])
        .collect();
    let is_release = if arguments.contains(&"--release") {
        " (release)"
    } else if arguments.contains(&"dist") {
        " (dist)"
    } else {
        ""
    };
    (arguments.first() == Some(&"build") && !names.is_empty())
        .then(|| format!("{}{is_release}", names.join(", ")))
}

/// Duration in seconds of the last build that was not empty.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn last_build(name: &str) -> Option<u64> {
    std::fs::read_to_string(target().join("xtask-builds").join(name))
        .ok()?
        .parse()
        .ok()
}

/// Stores the duration of a build. A build of a few seconds counts as empty. A failure to write only means that the
/// duration is missing next time.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn remember_build(name: &str, seconds: u64) {
    if seconds < 5 {
        return;
    }
    let notes = target().join("xtask-builds");
    let _ = std::fs::create_dir_all(&notes);
    let _ = std::fs::write(notes.join(name), seconds.to_string());
}

/// Seconds as text for people.
fn duration(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// Runs a command, which must succeed. Shows its output, and returns the last line.
pub(crate) fn last_line(command: &mut Command) -> anyhow::Result<String> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
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
    say(
        "The demo has three steps. Times are those of a first run on two idle cores; later runs take seconds.\n\
         1 of 3: build the components, five packs and nine policies, about 7 minutes\n\
         2 of 3: build tollgate and the demo, about 3 minutes and 3 GB below target/\n\
         3 of 3: run the demo, about 10 seconds",
    );
    let tollgate = components::build_host_and(Profile::Dev, &["demo"])?;
    say("xtask: step 3 of 3, running the demo");
    let demo = Profile::Dev.folder().join("demo");
    run(Command::new(demo).arg("--server").arg(tollgate))
}

/// Folder with the npm dependencies of some files, installed once in the target folder.
pub(crate) fn npm_packages(folder: &str, files: &[&str]) -> anyhow::Result<PathBuf> {
    npm_packages_in(folder, files, target().join("npm").join(folder))
}

/// Like [`npm_packages`], with a separate folder for the installation.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn npm_packages_in(folder: &str, files: &[&str], to: PathBuf) -> anyhow::Result<PathBuf> {
    let from = root().join(folder);
    let lock = std::fs::read(from.join("package-lock.json"))?;
    let is_installed = std::fs::read(to.join("installed")).is_ok_and(|installed| installed == lock);
    std::fs::create_dir_all(&to)?;
    for file in files {
        std::fs::copy(from.join(file), to.join(file)).with_context(|| format!("cannot copy {file}"))?;
    }
    if !is_installed {
        let version = Command::new("npm")
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        version.context("there is no npm")?;
        say(&format!(
            "installing the dependencies of {folder} into {}",
            to.display()
        ));
        // `npm ci` is not used, because it refuses lock files without the packages for other systems, which npm itself
        // omits.
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{built, duration};

    #[test]
    fn builds_are_announced_by_what_they_build_and_nothing_else_is() {
        let named = |arguments: &[&str]| built(Command::new("cargo").args(arguments));
        let component = ["build", "--quiet", "--package", "gsd"];
        assert_eq!(named(&component).as_deref(), Some("gsd"));
        let programs = [
            "build",
            "--workspace",
            "--exclude",
            "guests",
            "--bin",
            "tollgate",
            "--release",
            "--bin",
            "demo",
        ];
        assert_eq!(named(&programs).as_deref(), Some("tollgate, demo (release)"));
        assert_eq!(named(&["test", "--package", "gsd"]), None);
        assert_eq!(named(&["build"]), None);
    }

    #[test]
    fn durations_have_minutes_when_there_are_some() {
        assert_eq!(
            (duration(41), duration(483)),
            ("41 s".to_owned(), "8 min 3 s".to_owned())
        );
    }
}
