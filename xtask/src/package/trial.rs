//! Test of the packages: installs them from their files alone, in empty folders, and runs the result.

mod npm;
mod python;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, ensure};

use super::Made;
use super::release::VERSION;
use crate::run::run;
use crate::session::{End, Session};

/// Folder in which programs are started, within the test's folder.
const WORK: &str = "work";
/// Command lines with different exit codes: success, a refusal, and invalid arguments.
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

/// Tests all packages. Returns a summary.
pub(crate) fn all(made: &Made) -> anyhow::Result<String> {
    let place = Place::new(&made.folder)?;
    same_bytes(made)?;
    let program = archive(made, &place)?;
    let nodes = npm::all(made, &program, &place)?;
    python::all(made, &program, &place)?;
    Ok(format!("installed and tried with npm ({nodes}) and pip"))
}

/// Folder of installed packages.
struct Place {
    folder: PathBuf,
    /// Flags that keep the program away from the user's files, and timings out of its output.
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
}

/// Checks every file with `sha256sum` and the list of checksums.
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

/// Checks that the archive contains a working program. Returns its path, for comparison with the others.
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

/// Checks that the launcher behaves like the program itself: output, exit codes, signals, the end of its input.
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
        End::OfInput,
        End::Signal("TERM"),
        End::Signal("INT"),
        End::Signal("USR2"),
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

fn is_version(output: &Output) -> anyhow::Result<()> {
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && said.trim() == format!("tollgate {VERSION}"),
        "--version prints {said:?}, {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Checks that a command fails with this text, and prints nothing on standard output, which is the protocol channel.
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
    // The old file is removed first, because it may have a second name.
    if file.exists() {
        std::fs::remove_file(file)?;
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn executable(file: &Path) -> anyhow::Result<()> {
    run(Command::new("chmod").arg("a+x").arg(file))
}
