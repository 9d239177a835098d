//! Cost of the host's scan of a work tree, compared with `git status` of the same work tree in the same round.
#![expect(clippy::disallowed_methods, reason = "the bench changes files of its own")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use tollgate_core::clock::SystemClock;
use tollgate_sandbox::process::{Environment, Launcher};
use tollgate_sandbox::work_tree;
use tollgate_sandbox::workspaces::{Registration, Workspace, Workspaces};
use tollgate_sdk::permit::GitTerms;
use tollgate_sdk::{GitAccess, WorkspaceInfo};

use super::{Setup, repository};
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::Sample;

/// Maximum ratio of a scan's time to that of `git status`.
const LIMIT: f64 = 3.0;
/// Numbers of files changed since the previous scan.
const EDITED: [usize; 3] = [0, 1, 200];
/// Number of files that are hidden by an uncommitted ignore rule.
const HIDDEN: usize = 500;
/// Umask of the supervisor's programs.
const UMASK: u32 = 0o077;

/// Measures scans of a repository after edits of few and of many files, and with an ignore rule that hides files from
/// Git.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    report.heading("a look at a work tree");
    let dir = setup.fresh_dir()?;
    let root = dir.path().join("app");
    repository::make(&root)?;
    let identity = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"];
    let commit = Command::new("git")
        .args(identity)
        .args(["commit", "--quiet", "--message", "first"])
        .current_dir(&root)
        .status()?;
    anyhow::ensure!(commit.success(), "git commit ended with {commit}");
    let workspace = open(&root, dir.path())?;
    let environment = Environment::new(|name| std::env::var(name).ok());
    let launcher = Launcher::new(setup.executable.clone(), Some(environment), UMASK);
    let look = || look(&workspace, &launcher);
    for edited in EDITED {
        let name = match edited {
            0 => "a look without an edit".to_owned(),
            1 => "a look after 1 edited file".to_owned(),
            many => format!("a look after {many} edited files"),
        };
        compare(setup, report, name, (&root, edited), look)?;
    }
    hide(&root)?;
    let name = format!("a look past a rule that hides {HIDDEN} files");
    compare(setup, report, name, (&root, 1), look)
}

/// Rounds of `git status` and a scan, each after the same number of edits.
fn compare(
    setup: &Setup,
    report: &mut Report,
    name: String,
    (root, edited): (&Path, usize),
    look: impl Fn() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (mut status, mut looks) = (Vec::new(), Vec::new());
    for round in 0..=setup.effort.rounds {
        edit(root, edited, round)?;
        let by_git = timed(|| git_status(root))?;
        let by_host = timed(&look)?;
        // The first round warms up.
        if round > 0 {
            status.push(by_git);
            looks.push(by_host);
        }
    }
    tell(report, name, &Sample::of(status), &Sample::of(looks));
    Ok(())
}

/// Hides a folder of files with an uncommitted ignore rule.
fn hide(root: &Path) -> anyhow::Result<()> {
    std::fs::write(root.join(".git/info/exclude"), "scratch/\n")?;
    std::fs::create_dir(root.join("scratch"))?;
    for number in 0..HIDDEN {
        std::fs::write(
            root.join(format!("scratch/{number}.ts")),
            format!("// {number}\n"),
        )?;
    }
    Ok(())
}

fn tell(report: &mut Report, name: String, status: &Sample, looks: &Sample) {
    report.row("git status", status, Unit::Microseconds, status);
    report.row(&name, looks, Unit::Microseconds, status);
    let times = Quantity(looks.median() / status.median(), Unit::Times);
    report.add(Figure {
        name,
        value: Quantity(looks.median(), Unit::Microseconds),
        baseline: "git status",
        baseline_value: Quantity(status.median(), Unit::Microseconds),
        target: Some(Target::at_most("is", times, LIMIT)),
    });
}

fn open(root: &Path, place: &Path) -> anyhow::Result<Arc<Workspace>> {
    let registration = Registration {
        path: root.to_owned(),
        info: WorkspaceInfo {
            name: "app".to_owned(),
            write_prefixes: Vec::new(),
            git: Some(GitAccess::Read),
            tests: Vec::new(),
        },
        git: GitTerms::default(),
    };
    let opened = Workspaces::open([registration], UMASK, &place.join("data"));
    let opened = opened.map_err(|problems| anyhow::anyhow!(problems.join("; ")))?;
    opened.get("app").cloned().context("the workspace was not opened")
}

fn look(workspace: &Workspace, launcher: &Launcher) -> anyhow::Result<()> {
    let seen = work_tree::look(workspace, launcher, &SystemClock);
    seen.map(drop).map_err(|why| anyhow::anyhow!(why))
}

fn git_status(root: &Path) -> anyhow::Result<()> {
    let status = Command::new("git")
        .args(["--no-optional-locks", "status", "--porcelain=v2", "-z"])
        .args(["--untracked-files=all", "--no-renames"])
        .current_dir(root)
        .stdout(Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "git status ended with {status}");
    Ok(())
}

/// Gives the first files new contents.
fn edit(root: &Path, files: usize, round: usize) -> anyhow::Result<()> {
    for number in 0..files {
        let package = number / 100 * 3;
        let file = root.join(format!("pack{package:04}/m{}.ts", number % 100));
        anyhow::ensure!(file.is_file(), "{} is missing", file.display());
        std::fs::write(file, format!("// round {round}\n"))?;
    }
    Ok(())
}

fn timed(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed().as_secs_f64() * 1e6)
}
