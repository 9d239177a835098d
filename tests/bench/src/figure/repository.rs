//! Time that the pack `conductor` needs for a repository of 20,000 files, compared with `git ls-files` and reading the
//! same files. Measures snapshot and map of a new job, and both again after one change.
//!
//! Calls go through the whole server over standard input. Times are wall-clock times.
#![expect(
    clippy::disallowed_methods,
    reason = "the bench makes and reads files of its own"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::Setup;
use crate::client::Client;
use crate::report::{Figure, Quantity, Report, Target, Unit};
use crate::sample::Sample;
use crate::workload::{Request, Tools as _};

/// Files of the repository.
const FILES: usize = 20_000;
/// Files in one package.
const IN_PACKAGE: usize = 100;
/// Largest ratio of a first snapshot or a first map to listing and reading the files.
const FIRST: f64 = 3.0;
/// Largest ratio of a second snapshot after one change to the first.
const SECOND: f64 = 0.1;

/// Times of one round, in microseconds.
#[derive(Default)]
struct Times {
    baseline: Vec<f64>,
    snapshot: Vec<f64>,
    map: Vec<f64>,
    snapshot_again: Vec<f64>,
    map_again: Vec<f64>,
}

/// Measures a new job in each round.
pub(crate) fn measure(setup: &Setup, report: &mut Report) -> anyhow::Result<()> {
    report.heading(&format!("a repository of {FILES} files"));
    let dir = setup.fresh_dir()?;
    let root = dir.path().join("app");
    make(&root)?;
    let config = dir.path().join("tollgate.toml");
    let written = format!(
        "[workspaces.app]\npath = {:?}\ngit = \"read\"\n",
        root.display().to_string()
    );
    std::fs::write(&config, written)?;
    let mut command = Command::new(&setup.executable);
    command.arg("--config").arg(&config);
    command
        .arg("--data-dir")
        .arg(dir.path().join("data"))
        .arg("serve");
    let mut client = Client::start(command)?;
    let mut times = Times::default();
    for round in 0..=setup.effort.rounds {
        let mut counted = Times::default();
        run(&root, &mut client, round, &mut counted)?;
        // The first round warms up.
        if round > 0 {
            times.baseline.append(&mut counted.baseline);
            times.snapshot.append(&mut counted.snapshot);
            times.map.append(&mut counted.map);
            times.snapshot_again.append(&mut counted.snapshot_again);
            times.map_again.append(&mut counted.map_again);
        }
    }
    client.stop()?;
    tell(report, times);
    Ok(())
}

fn run(root: &Path, client: &mut Client, round: usize, times: &mut Times) -> anyhow::Result<()> {
    times.baseline.push(timed(|| native(root))?.0);
    let job = json!({"title": "Bench", "goal": "Measure"});
    let job = client.call(&Request {
        tool: "conductor_init",
        arguments: job,
    })?;
    let job = job.get("job_id").cloned().unwrap_or_default();
    let call = |client: &mut Client, tool: &'static str, arguments: Value| {
        timed(|| client.call(&Request { tool, arguments }))
    };
    let with_root = json!({"job_id": job, "repo_root": "app"});
    let (first, taken) = call(client, "repo_snapshot", with_root)?;
    anyhow::ensure!(
        taken.get("files") == Some(&json!(FILES + FILES / IN_PACKAGE * 2 + 1)),
        "{taken}"
    );
    times.snapshot.push(first);
    times
        .map
        .push(call(client, "repo_map_update", json!({"job_id": job}))?.0);
    settle();
    let changed = root.join("pack0000/m1.ts");
    std::fs::write(changed, format!("import {{ work }} from './m4';\n// {round}\n"))?;
    let (again, taken) = call(client, "repo_snapshot", json!({"job_id": job}))?;
    let modified = taken.pointer("/changes/modified");
    anyhow::ensure!(modified == Some(&json!(1)), "{taken}");
    times.snapshot_again.push(again);
    let (again, _) = call(client, "repo_map_update", json!({"job_id": job}))?;
    times.map_again.push(again);
    Ok(())
}

/// Waits, because files that changed within the second before a snapshot are read again by the next one.
fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(1_100));
}

fn tell(report: &mut Report, times: Times) {
    let baseline = Sample::of(times.baseline);
    let first = Sample::of(times.snapshot);
    let again = Sample::of(times.snapshot_again);
    let figures = [
        ("repo_snapshot, first", first.clone(), &baseline, Some(FIRST)),
        (
            "repo_map_update, first",
            Sample::of(times.map),
            &baseline,
            Some(FIRST),
        ),
        ("repo_snapshot after one change", again, &first, Some(SECOND)),
        (
            "repo_map_update after one change",
            Sample::of(times.map_again),
            &baseline,
            None,
        ),
    ];
    report.row(
        "git ls-files and reading",
        &baseline,
        Unit::Microseconds,
        &baseline,
    );
    for (name, sample, beside, limit) in figures {
        report.row(name, &sample, Unit::Microseconds, beside);
        let times = Quantity(sample.median() / beside.median(), Unit::Times);
        report.add(Figure {
            name: name.to_owned(),
            value: Quantity(sample.median(), Unit::Microseconds),
            baseline: if limit == Some(SECOND) {
                "first"
            } else {
                "git and reading"
            },
            baseline_value: Quantity(beside.median(), Unit::Microseconds),
            target: limit.map(|limit| Target::at_most("is", times, limit)),
        });
    }
}

fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(f64, T)> {
    let started = Instant::now();
    let result = work()?;
    Ok((started.elapsed().as_secs_f64() * 1e6, result))
}

/// Lists and reads the files without any analysis.
fn native(root: &Path) -> anyhow::Result<usize> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()?;
    let listed = String::from_utf8(listed.stdout).context("a name is not UTF-8")?;
    let mut bytes = 0;
    for name in listed.split_terminator('\0') {
        bytes += std::fs::read(root.join(name))?.len();
    }
    Ok(bytes)
}

/// Creates packages of Python, TypeScript and Rust whose files import each other, all of them added to Git, and some
/// ignored build output.
pub(super) fn make(root: &Path) -> anyhow::Result<()> {
    for package in 0..FILES / IN_PACKAGE {
        let folder = root.join(format!("pack{package:04}"));
        std::fs::create_dir_all(folder.join("target"))?;
        std::fs::write(folder.join("target/out.log"), "built")?;
        let (manifest, index) = match package % 3 {
            0 => (
                "package.json",
                format!("{{\"name\": \"pack{package}\", \"main\": \"m0.ts\"}}"),
            ),
            1 => ("pyproject.toml", format!("[project]\nname = \"pack{package}\"\n")),
            _ => (
                "Cargo.toml",
                format!("[package]\nname = \"pack{package}\"\n[lib]\npath = \"lib.rs\"\n"),
            ),
        };
        std::fs::write(folder.join(manifest), index)?;
        let modules: String = (0..IN_PACKAGE)
            .map(|number| format!("mod m{number};\n"))
            .collect();
        std::fs::write(
            folder.join("lib.rs"),
            if package % 3 == 2 { modules } else { String::new() },
        )?;
        for number in 0..IN_PACKAGE {
            let (ending, text) = source(package, number);
            std::fs::write(folder.join(format!("m{number}.{ending}")), text)?;
        }
    }
    std::fs::write(root.join(".gitignore"), "target/\n*.tmp\n")?;
    for arguments in [["init", "--quiet"], ["add", "--all"]] {
        let status = Command::new("git").args(arguments).current_dir(root).status()?;
        anyhow::ensure!(status.success(), "git {arguments:?} ended with {status}");
    }
    Ok(())
}

/// About 4 KiB of code, like a file of a real project.
fn source(package: usize, number: usize) -> (&'static str, String) {
    let next = (number + 3) % IN_PACKAGE;
    let (ending, mut text) = match package % 3 {
        0 => (
            "ts",
            format!("import fs from 'node:fs';\nimport {{ work }} from './m{next}';\n\n"),
        ),
        1 => ("py", format!("import os\nfrom .m{next} import work\n\n")),
        _ => ("rs", format!("use std::fmt;\nuse crate::m{next}::work;\n\n")),
    };
    for line in 0..60 {
        let _ = match package % 3 {
            0 => writeln!(
                text,
                "export const step{line} = (value: number) => work(value, {package}) + {number};\n"
            ),
            1 => writeln!(
                text,
                "def step_{line}(value):\n    return work(value, {package}) + {number}  # as before\n"
            ),
            _ => writeln!(
                text,
                "pub fn step_{line}(value: u64) -> u64 {{\n    work(value, {package}) + {number}\n}}\n"
            ),
        };
    }
    (ending, text)
}
