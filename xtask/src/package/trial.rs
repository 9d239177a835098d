//! Installs packages from their files alone, in empty folders, and tries what was installed.

mod session;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, ensure};

use self::session::Session;
use super::Made;
use super::release::VERSION;
use crate::run::{run, target};

/// Nobody listens there: what wants a registry fails.
const NO_REGISTRY: &str = "http://127.0.0.1:9/";
/// Where programs are started, in the folder of the trial.
const WORK: &str = "work";
/// Makes a new Node start the program as an old one does.
const OLD_NODE: &str = "delete process.execve;\n";

/// Calls of the program that its exit code tells apart: success, a refusal, and arguments that are none.
const CALLS: [&[&str]; 4] = [
    &["--version"],
    &["call", "--packs", "task-store", "task_list"],
    &[
        "call",
        "--packs",
        "task-store",
        "task_get",
        r#"{"task_id": "tsk_none"}"#,
    ],
    &["--no-such-flag"],
];

/// Tries all packages. Returns what it came to.
pub(crate) fn all(made: &Made) -> anyhow::Result<String> {
    let place = Place::new(&made.folder)?;
    same_bytes(made)?;
    let program = archive(made, &place)?;
    let nodes = npm(made, &program, &place)?;
    python(made, &program, &place)?;
    Ok(format!("installed and tried with npm ({nodes}) and pip"))
}

/// Where packages are installed.
struct Place {
    folder: PathBuf,
    /// Flags of the program that keep it away from the files of whoever runs this, and times out of what it prints.
    own: Vec<OsString>,
}

impl Place {
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn new(folder: &Path) -> anyhow::Result<Place> {
        let folder = folder.join("trial");
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        let folder = folder.canonicalize()?;
        let data = folder.join("data").into_os_string();
        let own = ["--log", "off", "--config", "/dev/null", "--data-dir"].map(OsString::from);
        let own = own.into_iter().chain([data]).collect();
        std::fs::create_dir(folder.join(WORK))?;
        Ok(Place { folder, own })
    }

    /// An empty folder.
    fn empty(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// npm or npx in a folder, without a registry and with a cache of its own.
    fn npm(&self, tool: &str, folder: &Path) -> Command {
        let mut npm = Command::new(tool);
        npm.arg("--offline")
            .env("npm_config_registry", NO_REGISTRY)
            .env("npm_config_cache", self.folder.join("npm-cache"))
            .env("npm_config_audit", "false")
            .env("npm_config_fund", "false")
            .env("npm_config_loglevel", "error")
            .current_dir(folder);
        npm
    }
}

/// `sha256sum` finds every file as the list has it.
fn same_bytes(made: &Made) -> anyhow::Result<()> {
    let folder = made.archive.parent().context("the files are in a folder")?;
    let sums = super::archive::checksums(&made.files[..made.files.len() - 1])?;
    ensure!(
        sums.lines().count() == made.files.len() - 1,
        "a file has no checksum"
    );
    run(Command::new("sha256sum")
        .args(["--check", "--quiet", "--strict", super::CHECKSUMS])
        .current_dir(folder))
}

/// The archive holds a program that runs. Returns where it is: the others are compared with it.
fn archive(made: &Made, place: &Place) -> anyhow::Result<PathBuf> {
    let folder = place.empty("archive")?;
    run(Command::new("tar")
        .arg("-xzf")
        .arg(&made.archive)
        .current_dir(&folder))?;
    let name = made
        .archive
        .file_name()
        .and_then(OsStr::to_str)
        .context("the archive has a name")?;
    let unpacked = folder.join(name.trim_end_matches(".tar.gz")).join("tollgate");
    is_version(&Command::new(&unpacked).arg("--version").output()?)?;
    Ok(unpacked)
}

/// The packages for npm, with every Node there is. Returns which.
fn npm(made: &Made, program: &Path, place: &Place) -> anyhow::Result<String> {
    let folder = place.empty("npm")?;
    run(place
        .npm("npm", &folder)
        .arg("install")
        .args([&made.wrapper, &made.platform])
        .stdout(Stdio::null()))?;
    let npx = place
        .npm("npx", &folder)
        .args(["--no", "tollgate", "--", "--version"])
        .output()?;
    is_version(&npx)?;
    let shim = folder.join("node_modules/.bin/tollgate");
    let old = place.folder.join("old-node.cjs");
    write(&old, OLD_NODE)?;
    let mut tried = Vec::new();
    for node in nodes() {
        let version = Command::new(&node).arg("--version").output()?;
        let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
        let has_execve = Command::new(&node)
            .args(["-p", "typeof process.execve"])
            .output()?;
        let has_execve = has_execve.stdout.starts_with(b"function");
        let mut starts = vec![(version.clone(), vec![node.clone().into_os_string()])];
        if has_execve {
            let start = vec![node.clone().into(), "--require".into(), old.clone().into()];
            starts.push((format!("{version} without execve"), start));
        }
        for (name, mut start) in starts {
            start.push(shim.clone().into());
            as_the_program(&start, program, place).with_context(|| format!("the shim under Node {name}"))?;
            tried.push(name);
        }
    }
    not_whole(made, place, &folder)?;
    Ok(tried.join(", "))
}

/// Node on the path, and the newer one that the conformance suite installs, if it was installed.
fn nodes() -> Vec<PathBuf> {
    let newer = target().join("npm/tests/conformance/node_modules/.bin/node");
    let newer = newer.exists().then_some(newer);
    [PathBuf::from("node")].into_iter().chain(newer).collect()
}

/// The wheel, in an environment of its own.
fn python(made: &Made, program: &Path, place: &Place) -> anyhow::Result<()> {
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
    // A folder that is not an environment, as some clients' extensions use.
    let aside = place.folder.join("aside");
    run(pip().arg("--target").arg(&aside).arg(&made.wheel))?;
    let mut module = Command::new("python3");
    is_version(
        &module
            .args(["-m", "tollgate_mcp", "--version"])
            .env("PYTHONPATH", &aside)
            .output()?,
    )?;
    // A stranger's program of the same name in its place is not started.
    let script = bin.join("tollgate");
    write(&script, "#!/bin/sh\necho stranger\n")?;
    executable(&script)?;
    let replaced = Command::new(bin.join("tollgate-mcp")).arg("--version").output()?;
    refuses(&replaced, "install tollgate-mcp again")
}

/// What is started behaves as the program itself: output, exit codes, signals, and the end of standard input.
fn as_the_program(start: &[OsString], program: &Path, place: &Place) -> anyhow::Result<()> {
    let itself = [program.as_os_str().to_owned()];
    for call in CALLS {
        let outputs = [start, itself.as_slice()].map(|start| {
            let mut command = command(start, place);
            command.args(call).output()
        });
        let [shim, direct] = outputs;
        let (shim, direct) = (shim?, direct?);
        ensure!(
            shim.status == direct.status && shim.stdout == direct.stdout && shim.stderr == direct.stderr,
            "{call:?} ended with {} and not {}: {}{}",
            shim.status,
            direct.status,
            String::from_utf8_lossy(&shim.stdout),
            String::from_utf8_lossy(&shim.stderr)
        );
    }
    for end in [
        session::End::OfInput,
        session::End::Signal("TERM"),
        session::End::Signal("INT"),
        session::End::Signal("USR2"),
    ] {
        let mut ended = Vec::new();
        for start in [start, itself.as_slice()] {
            let mut serve = command(start, place);
            serve.args(["serve", "--packs", "task-store"]);
            let session = Session::start(&mut serve)?;
            ended.push((session.tools, session.end(&end)?));
        }
        ensure!(ended[0].0 > 0, "no tools are listed");
        ensure!(
            ended[0] == ended[1],
            "after {end:?}: {:?}, and the program itself: {:?}",
            ended[0],
            ended[1]
        );
    }
    Ok(())
}

fn command(start: &[OsString], place: &Place) -> Command {
    let (program, before) = start
        .split_first()
        .map_or((OsStr::new("false"), &[][..]), |(first, rest)| {
            (first.as_os_str(), rest)
        });
    let mut command = Command::new(program);
    command
        .args(before)
        .args(&place.own)
        .current_dir(place.folder.join(WORK))
        .stdin(Stdio::null());
    command
}

/// An installation that lacks a part says which, and starts nothing.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn not_whole(made: &Made, place: &Place, whole: &Path) -> anyhow::Result<()> {
    let folder = place.empty("npm-alone")?;
    run(place
        .npm("npm", &folder)
        .arg("install")
        .arg(&made.wrapper)
        .stdout(Stdio::null()))?;
    let alone = || {
        Command::new(folder.join("node_modules/.bin/tollgate"))
            .arg("--version")
            .output()
    };
    let wanted = format!("@{VERSION} is not installed");
    refuses(&alone()?, &wanted)?;
    for platform in &super::platform::PLATFORMS {
        refuses(&alone()?, platform.name)?;
    }
    // A package of another version is not started.
    let installed = whole.join("node_modules/@tollgate");
    let other = folder.join("node_modules/@tollgate");
    std::os::unix::fs::symlink(&installed, &other)?;
    is_version(&alone()?)?;
    let package = std::fs::read_dir(&installed)?
        .next()
        .context("the platform's package is installed")??;
    let manifest = package.path().join("package.json");
    let text = std::fs::read_to_string(&manifest)?;
    write(
        &manifest,
        &text.replace(&format!("\"version\": \"{VERSION}\""), "\"version\": \"9.9.9\""),
    )?;
    refuses(&alone()?, "has version 9.9.9")?;
    // A program that lost its permission, as some ways to copy make it.
    write(&manifest, &text)?;
    let program = package.path().join("bin/tollgate");
    run(Command::new("chmod").arg("a-x").arg(&program))?;
    refuses(&alone()?, "cannot be run")?;
    executable(&program)
}

fn is_version(output: &Output) -> anyhow::Result<()> {
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && said.trim() == format!("tollgate {VERSION}"),
        "--version says {said:?}, {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Nothing on standard output, which is the wire, and a failure with this text.
fn refuses(output: &Output, text: &str) -> anyhow::Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(1) && output.stdout.is_empty() && said.contains(text),
        "{} and {said:?} on standard error, which should be a failure with {text:?}",
        output.status
    );
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    // Not into a file that another name has as well.
    if file.exists() {
        std::fs::remove_file(file)?;
    }
    std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}

fn executable(file: &Path) -> anyhow::Result<()> {
    run(Command::new("chmod").arg("a+x").arg(file))
}
