//! Test of the npm packages: installed without a registry, and started by every available Node.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

use super::super::Made;
use super::super::platform::PLATFORMS;
use super::super::release::VERSION;
use super::{Place, as_the_program, executable, is_version, refuses, write};
use crate::run::{run, target};

/// Address without a listener, so that any access to a registry fails.
const NO_REGISTRY: &str = "http://127.0.0.1:9/";
/// Makes a new Node start the program in the way an old one does.
const OLD_NODE: &str = "delete process.execve;\n";

/// Unsupported platforms, as Node names them, and the launcher's message about them.
const FOREIGN: [(&str, &str); 3] = [
    (
        "Object.defineProperty(process, 'platform', {value: 'win32'});\n",
        "no program for win32-",
    ),
    (
        "Object.defineProperty(process, 'arch', {value: 'riscv64'});\n",
        "-riscv64; tollgate runs on linux-x64-gnu, linux-arm64-gnu, darwin-x64, darwin-arm64",
    ),
    (
        "Object.defineProperty(process, 'platform', {value: 'linux'});\nrequire('node:fs').existsSync = () => false;\n",
        "needs glibc; tollgate runs on",
    ),
];

/// Tests the npm packages with every available Node. Returns their versions.
pub(super) fn all(made: &Made, program: &Path, place: &Place) -> anyhow::Result<String> {
    let folder = place.empty("npm")?;
    run(npm(place, "npm", &folder)
        .arg("install")
        .args([&made.wrapper, &made.platform])
        .stdout(Stdio::null()))?;
    let npx = npm(place, "npx", &folder)
        .args(["--no", "tollgate", "--", "--version"])
        .output()?;
    is_version(&npx)?;
    let shim = folder.join("node_modules/.bin/tollgate");
    let old = place.folder.join("old-node.cjs");
    write(&old, OLD_NODE)?;
    let mut tried = Vec::new();
    for node in nodes() {
        for (name, mut start) in starts(&node, &old)? {
            start.push(shim.clone().into());
            as_the_program(&start, program, place).with_context(|| format!("the shim under Node {name}"))?;
            tried.push(name);
        }
    }
    foreign(place, &shim)?;
    not_whole(made, place, &folder)?;
    Ok(tried.join(", "))
}

/// Checks that on an unsupported platform the launcher names the supported ones.
fn foreign(place: &Place, shim: &Path) -> anyhow::Result<()> {
    for (script, says) in FOREIGN {
        let file = place.folder.join("foreign.cjs");
        write(&file, script)?;
        let mut node = Command::new("node");
        node.arg("--require").arg(&file).arg(shim).arg("--version");
        refuses(&node.output()?, says)?;
    }
    Ok(())
}

/// Ways in which a Node can start the program, with their names.
fn starts(node: &Path, old: &Path) -> anyhow::Result<Vec<(String, Vec<OsString>)>> {
    let print = |what: &str| {
        let said = Command::new(node).args(["-p", what]).output()?;
        anyhow::Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    };
    let version = print("process.version")?;
    let mut starts = vec![(version.clone(), vec![node.into()])];
    if print("typeof process.execve")? == "function" {
        let start = vec![node.into(), "--require".into(), old.into()];
        starts.push((format!("{version} without execve"), start));
    }
    Ok(starts)
}

/// Node on the PATH, and the newer one that the conformance suite installs, if present.
fn nodes() -> Vec<PathBuf> {
    let newer = target().join("npm/tests/conformance/node_modules/.bin/node");
    let newer = newer.exists().then_some(newer);
    [PathBuf::from("node")].into_iter().chain(newer).collect()
}

/// Checks that an incomplete installation reports the missing part and starts nothing.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn not_whole(made: &Made, place: &Place, whole: &Path) -> anyhow::Result<()> {
    let folder = place.empty("npm-alone")?;
    run(npm(place, "npm", &folder)
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
    let platforms = PLATFORMS.map(|platform| platform.name).join(", ");
    refuses(&alone()?, &platforms)?;
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
    // Some ways of copying remove the program's execute permission.
    write(&manifest, &text)?;
    let program = package.path().join("bin/tollgate");
    run(Command::new("chmod").arg("a-x").arg(&program))?;
    refuses(&alone()?, "cannot be run")?;
    executable(&program)
}

/// Command for npm or npx in a folder, without a registry and with a separate cache.
fn npm(place: &Place, tool: &str, folder: &Path) -> Command {
    let mut npm = Command::new(tool);
    npm.arg("--offline")
        .env("npm_config_registry", NO_REGISTRY)
        .env("npm_config_cache", place.folder.join("npm-cache"))
        .env("npm_config_audit", "false")
        .env("npm_config_fund", "false")
        .env("npm_config_loglevel", "error")
        .current_dir(folder);
    npm
}
