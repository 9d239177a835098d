//! `cargo xtask languages --figures`: the same policy in several languages, measured against Rust in the same run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::{Component, JAVASCRIPT, PYTHON, c, wasm};
use crate::components::{self, Profile, WASM};
use crate::run::{root, run, say, target};
use crate::session::{End, Session};

/// Number of compilations of each component, without a cache.
const ROUNDS: usize = 3;
/// Number of calls that the policies evaluate.
const CALLS: usize = 501;
/// Package of the policy in Rust.
const RUST: &str = "require-actor";
/// Another name of the same length, because a host refuses a component with the name of a built-in policy.
const RENAMED: &str = "require-aktor";

/// A component with its measurements.
struct Measured {
    language: &'static str,
    policy: &'static str,
    file: PathBuf,
    size: u64,
    /// Build time from the sources to the component, with all dependencies already installed or built.
    build: Duration,
    /// Median of the rounds.
    compile_ms: u64,
    /// Median of the calls.
    verdict_us: u64,
}

/// Builds the policies, measures them and prints a table.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(super) fn measure(tollgate: Option<&Path>) -> anyhow::Result<()> {
    let tollgate = match tollgate {
        Some(tollgate) => std::path::absolute(tollgate)?,
        None => components::build_host(Profile::Dist)?,
    };
    let work = target().join("figures");
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    std::fs::create_dir_all(&work)?;
    let mut all = made(&tollgate, &work)?;
    for one in &mut all {
        let rounds = (0..ROUNDS).map(|round| {
            let folder = work.join(format!("{}-{round}", one.policy));
            compile_ms(&tollgate, one, &folder)
        });
        let mut rounds: Vec<u64> = rounds.collect::<anyhow::Result<_>>()?;
        rounds.sort_unstable();
        one.compile_ms = rounds[ROUNDS / 2];
    }
    let mut verdicts = verdicts_us(&tollgate, &all, &work)?;
    for one in &mut all {
        let costs = verdicts
            .get_mut(one.policy)
            .context("a policy evaluated nothing")?;
        ensure!(
            costs.len() == CALLS,
            "{} evaluated {} calls",
            one.policy,
            costs.len()
        );
        costs.sort_unstable();
        one.verdict_us = costs[CALLS / 2];
    }
    say(&table(&all));
    Ok(())
}

/// Builds the policy in each language.
fn made(tollgate: &Path, work: &Path) -> anyhow::Result<Vec<Measured>> {
    let mut all = vec![in_rust(work)?];
    let javascript = super::javascript()?;
    all.push(timed("JavaScript", &JAVASCRIPT[1], work, |component| {
        super::make_javascript(&javascript, component, work)
    })?);
    let python = super::python()?;
    all.push(timed("Python", &PYTHON[1], work, |component| {
        super::make_python(&python, component, work)
    })?);
    if c::is_available()? {
        all.push(timed("C", &c::COMPONENTS[1], work, |component| {
            c::make(tollgate, component, work)
        })?);
    }
    Ok(all)
}

/// Rebuilds the Rust policy after a change of its sources. Its dependencies are already built.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn in_rust(work: &Path) -> anyhow::Result<Measured> {
    let home = components::cargo_home()?;
    let build = || {
        let mut build = components::component_build(&home, components::DIST);
        run(build.args(["--package", RUST]))
    };
    build()?;
    run(Command::new("touch").arg(root().join("plugins/policies").join(RUST).join("src/lib.rs")))?;
    let started = Instant::now();
    build()?;
    let build = started.elapsed();
    let name = format!("{}.wasm", RUST.replace('-', "_"));
    let mut bytes = std::fs::read(target().join(WASM).join(components::DIST).join(name))?;
    for at in 0..bytes.len().saturating_sub(RUST.len()) {
        if bytes[at..].starts_with(RUST.as_bytes()) {
            bytes[at..at + RENAMED.len()].copy_from_slice(RENAMED.as_bytes());
        }
    }
    let file = work.join(format!("{RENAMED}.wasm"));
    std::fs::write(&file, &bytes)?;
    Ok(Measured {
        language: "Rust",
        policy: RENAMED,
        size: bytes.len() as u64,
        file,
        build,
        compile_ms: 0,
        verdict_us: 0,
    })
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn timed(
    language: &'static str,
    component: &'static Component,
    work: &Path,
    make: impl FnOnce(&Component) -> anyhow::Result<()>,
) -> anyhow::Result<Measured> {
    let started = Instant::now();
    make(component)?;
    let build = started.elapsed();
    let file = wasm(work, component);
    Ok(Measured {
        language,
        policy: component.name,
        size: std::fs::metadata(&file)?.len(),
        file,
        build,
        compile_ms: 0,
        verdict_us: 0,
    })
}

/// Command for the host with a separate data directory and configuration.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn host(tollgate: &Path, policies: &[&Measured], folder: &Path) -> anyhow::Result<Command> {
    let tables = policies.iter().map(|one| {
        format!(
            "[policies.{}]\nsource = {:?}\nlimits.time_ms = 10000\n",
            one.policy, one.file
        )
    });
    std::fs::create_dir_all(folder)?;
    let config = folder.join("tollgate.toml");
    std::fs::write(&config, tables.collect::<String>())?;
    let mut host = Command::new(tollgate);
    host.env_remove("TOLLGATE_LOG")
        .arg("--data-dir")
        .arg(folder.join("data"))
        .arg("--config")
        .arg(config);
    Ok(host)
}

/// Time that the host needs to compile a component, once per data directory.
fn compile_ms(tollgate: &Path, one: &Measured, folder: &Path) -> anyhow::Result<u64> {
    let mut prepare = host(tollgate, &[one], folder)?;
    let output = prepare.args(["--json", "packs", "prepare"]).output()?;
    ensure!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let prepared = said["prepared"].as_array().context("nothing is prepared")?;
    let own = prepared.iter().find(|own| own["name"] == one.policy);
    own.and_then(|own| own["took_ms"].as_u64())
        .with_context(|| format!("{} was not prepared: {said}", one.policy))
}

/// Durations of the verdicts on the same calls, by policy, read from the ledger.
fn verdicts_us(tollgate: &Path, all: &[Measured], work: &Path) -> anyhow::Result<BTreeMap<String, Vec<u64>>> {
    let policies: Vec<&Measured> = all.iter().collect();
    let folder = work.join("verdicts");
    let prepare = host(tollgate, &policies, &folder)?
        .args(["packs", "prepare"])
        .status()?;
    ensure!(prepare.success(), "the policies failed to load");
    let mut session = Session::start(host(tollgate, &policies, &folder)?.arg("serve"))?;
    for id in 0..CALLS {
        let call = json!({"jsonrpc": "2.0", "id": format!("call {id}"), "method": "tools/call",
            "params": {"name": "task_list", "arguments": {}}});
        let answer = session.request(&call)?;
        ensure!(answer["result"]["isError"] != true, "the host answers {answer}");
    }
    session.end(&End::OfInput)?;
    let exported = host(tollgate, &policies, &folder)?
        .args(["ledger", "export"])
        .output()?;
    let mut costs: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in String::from_utf8(exported.stdout)?.lines() {
        let row: Value = serde_json::from_str(line)?;
        let verdicts = row["verdicts"].as_array().into_iter().flatten();
        for verdict in verdicts.filter(|_| row["tool"] == "task_list") {
            let policy = verdict["policy"].as_str().unwrap_or_default().to_owned();
            let cost = verdict["us"].as_u64().context("a verdict has no duration")?;
            costs.entry(policy).or_default().push(cost);
        }
    }
    Ok(costs)
}

/// Table of the figures, with their ratios to Rust.
fn table(all: &[Measured]) -> String {
    let rust = &all[0];
    let ratio = |own: f64, of_rust: f64| own / of_rust.max(f64::MIN_POSITIVE);
    let mut lines = vec![
        "| language | size | build | compile once | verdict, median |".to_owned(),
        "|---|---:|---:|---:|---:|".to_owned(),
    ];
    for one in all {
        let (size, of_rust) = (one.size as f64, rust.size as f64);
        let (build, build_of_rust) = (one.build.as_secs_f64(), rust.build.as_secs_f64());
        let (compile, compile_of_rust) = (one.compile_ms as f64, rust.compile_ms as f64);
        let (verdict, verdict_of_rust) = (one.verdict_us as f64, rust.verdict_us as f64);
        lines.push(format!(
            "| {} | {:.2} MiB ({:.1} x) | {build:.1} s ({:.1} x) | {compile:.0} ms ({:.1} x) | {verdict:.0} µs ({:.1} x) |",
            one.language,
            size / f64::from(1 << 20),
            ratio(size, of_rust),
            ratio(build, build_of_rust),
            ratio(compile, compile_of_rust),
            ratio(verdict, verdict_of_rust),
        ));
    }
    lines.join("\n")
}
