//! MCP's official conformance suite and the Inspector's lint, against the host as it is.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::components::{self, Profile};
use crate::run::{root, run, say, target};

/// Revisions of the protocol whose requirements are checked.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// What the tools are installed from.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];
/// The pack that offers what the suite wants to find.
const PACK: &str = "conformance";

/// Runs both, and prints how many checks there were.
pub(crate) fn all() -> anyhow::Result<()> {
    let tollgate = components::build_host(Profile::Dev)?;
    components::build_guests()?;
    let tools = install()?;
    let work = tools.join("work");
    empty(&work)?;
    for revision in REVISIONS {
        suite(&tollgate, &tools, &work, revision)?;
    }
    for pack in components::packs() {
        lint(&tollgate, &tools, &work, pack)?;
    }
    Ok(())
}

/// One set of requirements, against a host over HTTP.
fn suite(tollgate: &Path, tools: &Path, work: &Path, revision: &str) -> anyhow::Result<()> {
    let server = Server::start(tollgate, work)?;
    let results = work.join(revision);
    let status = node(tools, "conformance")
        .args(["server", "--requirements", revision, "--url", &server.url])
        .arg("--expected-failures")
        .arg(root().join("tests/conformance/baseline.yml"))
        .arg("-o")
        .arg(&results)
        .stdout(Stdio::null())
        .status()
        .context("the conformance suite cannot be run")?;
    let counts = Counts::of(&results)?;
    say(&format!(
        "conformance {revision}: {} checks passed, {} failed, {} warnings, {} skipped; failing: {}",
        counts.passed,
        counts.failed,
        counts.warnings,
        counts.skipped,
        if counts.failing.is_empty() {
            "none".to_owned()
        } else {
            counts.failing.join(", ")
        },
    ));
    ensure!(
        status.success(),
        "the conformance suite found what tests/conformance/baseline.yml does not expect; see {}",
        results.display()
    );
    ensure!(counts.passed > 0, "no check ran");
    Ok(())
}

/// The Inspector's lint of every tool of a pack.
fn lint(tollgate: &Path, tools: &Path, work: &Path, pack: &str) -> anyhow::Result<()> {
    let output = node(tools, "mcp-inspector")
        .args(["--cli"])
        .arg(tollgate)
        .arg("--data-dir")
        .arg(work.join("data"))
        .args(["serve", "--tier", "full", "--packs", pack])
        .args(["--method", "tools/list", "--strict"])
        .output()
        .context("the Inspector cannot be run")?;
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let listed = listed["tools"].as_array().map_or(0, Vec::len);
    ensure!(
        output.status.success() && listed > 0,
        "the Inspector does not accept pack {pack}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    say(&format!(
        "inspector --strict, pack {pack}: {listed} tools, no complaint"
    ));
    Ok(())
}

/// A host that serves the pack for the suite.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn start(tollgate: &Path, work: &Path) -> anyhow::Result<Server> {
        let config = work.join("tollgate.toml");
        let component = root()
            .join("target/components/guests")
            .join(format!("{PACK}.wasm"));
        std::fs::write(&config, format!("[packs.{PACK}]\nsource = {component:?}\n"))?;
        let mut child = Command::new(tollgate)
            .arg("--config")
            .arg(config)
            .arg("--data-dir")
            .arg(work.join("data"))
            .args(["serve", "--http", "127.0.0.1:0", "--packs", PACK])
            .stderr(Stdio::piped())
            .spawn()
            .context("tollgate cannot be run")?;
        let stderr = child.stderr.take().context("tollgate has no standard error")?;
        let mut lines = BufReader::new(stderr).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("serving ")?.1.to_owned()));
        // Somebody must read on, or a talkative server would stall.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| say(&line)));
        let mut server = Server {
            child,
            url: String::new(),
        };
        server.url = url.context("tollgate does not serve")?;
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How many checks came to which end, and which scenarios failed.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    warnings: usize,
    skipped: usize,
    failing: Vec<String>,
}

impl Counts {
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn of(results: &Path) -> anyhow::Result<Counts> {
        let mut counts = Counts::default();
        let mut folders: Vec<PathBuf> = std::fs::read_dir(results)
            .context("the conformance suite left no results")?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        folders.sort();
        for folder in folders {
            let Ok(text) = std::fs::read(folder.join("checks.json")) else {
                continue;
            };
            let checks: Vec<Value> = serde_json::from_slice(&text)?;
            let of = |status: &str| checks.iter().filter(|check| check["status"] == status).count();
            counts.passed += of("SUCCESS");
            counts.warnings += of("WARNING");
            counts.skipped += of("SKIPPED");
            let failed = of("FAILURE");
            if failed > 0 {
                counts.failed += failed;
                counts.failing.push(scenario(&folder));
            }
        }
        Ok(counts)
    }
}

/// The scenario whose results are in a folder such as `server-ping-2026-11-21T07-00-00-000Z`.
fn scenario(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let name = name.strip_prefix("server-").unwrap_or(&name);
    match name.find("-20").filter(|at| name[at + 1..].len() > 20) {
        Some(at) => name[..at].to_owned(),
        None => name.to_owned(),
    }
}

/// A program of the installed tools, run by the installed Node.
fn node(tools: &Path, program: &str) -> Command {
    let bin = tools.join("node_modules/.bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(bin.clone()).chain(std::env::split_paths(&path));
    let mut command = Command::new(bin.join(program));
    command.current_dir(tools);
    if let Ok(path) = std::env::join_paths(paths) {
        command.env("PATH", path);
    }
    command
}

/// Node, the suite and the Inspector, installed once in the target folder.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn install() -> anyhow::Result<PathBuf> {
    let (from, to) = (root().join("tests/conformance"), target().join("conformance"));
    let lock = |folder: &Path| std::fs::read(folder.join("package-lock.json"));
    let is_installed = to.join("installed").exists() && lock(&to).ok() == lock(&from).ok();
    std::fs::create_dir_all(&to)?;
    for file in MANIFESTS {
        std::fs::copy(from.join(file), to.join(file)).with_context(|| format!("{file} cannot be copied"))?;
    }
    if !is_installed {
        say(&format!("installing the conformance suite into {}", to.display()));
        run(Command::new("npm")
            .args(["ci", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&to))
        .context("conformance needs npm")?;
        std::fs::write(to.join("installed"), "")?;
    }
    Ok(to)
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn empty(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    Ok(())
}
