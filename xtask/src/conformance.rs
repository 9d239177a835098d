//! MCP's official conformance suite, the Inspector's lint and the Python client, run against the host.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::components::{self, Profile};
use crate::run::{npm_packages, root, run, say};
use crate::{python, test};

/// Protocol versions whose requirements are checked.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Folder with the manifests of the suite, the Inspector and Node.
const FOLDER: &str = "tests/conformance";
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];
/// Failures that are expected, with reasons.
const BASELINE: &str = "tests/conformance/baseline.yml";
/// Pack with everything that the suite expects.
const PACK: &str = "conformance";
/// Eras of the Python client: before and since 2026-07-28.
const ERAS: [&str; 2] = ["legacy", "2026-07-28"];

/// Runs all of these, and returns the number of checks.
pub(crate) fn all() -> anyhow::Result<String> {
    let tollgate = components::build_host(Profile::Dev)?;
    components::build_guests()?;
    let tools = Tools::install()?;
    let (mut faults, mut counts) = (Vec::new(), Vec::new());
    for revision in REVISIONS {
        faults.extend(suite(&tollgate, &tools, revision, &mut counts)?);
    }
    let mut listed = 0;
    for pack in components::names() {
        match lint(&tollgate, &tools, pack)? {
            Ok(tools) => listed += tools,
            Err(fault) => faults.push(fault),
        }
    }
    counts.push(format!(
        "inspector --strict: {listed} tools of {} packs",
        components::names().count()
    ));
    faults.extend(clients(&tollgate, &tools, &mut counts)?);
    counts.iter().for_each(|count| say(count));
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(counts.join("; "))
}

/// Checks one set of requirements against a host over HTTP. The result describes failures, if any.
fn suite(
    tollgate: &Path,
    tools: &Tools,
    revision: &str,
    counts: &mut Vec<String>,
) -> anyhow::Result<Option<String>> {
    let work = tools.work(revision)?;
    let server = Server::start(tollgate, &work)?;
    let results = work.join("results");
    let output = tools
        .node("conformance")
        .args(["server", "--requirements", revision, "--url", &server.url])
        .arg("--expected-failures")
        .arg(root().join(BASELINE))
        .arg("-o")
        .arg(&results)
        .output()
        .context("cannot run the conformance suite")?;
    let required = tools.required(revision)?;
    let counted = Counts::of(&results, &required)?;
    counts.push(format!("conformance {revision}: {}", counted.told()));
    let missing: Vec<&str> = required.difference(&counted.ran).map(String::as_str).collect();
    ensure!(missing.is_empty(), "did not run: {}", missing.join(", "));
    if output.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let end: Vec<&str> = said.lines().rev().take(40).collect();
    let end: Vec<&str> = end.into_iter().rev().collect();
    Ok(Some(format!(
        "{}\nconformance {revision} is not what {BASELINE} expects; see {}",
        end.join("\n"),
        results.display()
    )))
}

/// Runs the Inspector's lint on every tool of a pack. Returns their number, or its messages.
fn lint(tollgate: &Path, tools: &Tools, pack: &str) -> anyhow::Result<Result<usize, String>> {
    let work = tools.work("inspector")?;
    let output = tools
        .node("mcp-inspector")
        .arg("--cli")
        .arg(tollgate)
        .arg("--data-dir")
        .arg(work.join("data"))
        .args(["serve", "--tier", "full", "--packs", pack])
        .args(["--method", "tools/list", "--strict"])
        .output()
        .context("cannot run the Inspector")?;
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let listed = listed["tools"].as_array().map_or(0, Vec::len);
    if output.status.success() && listed > 0 {
        return Ok(Ok(listed));
    }
    Ok(Err(format!(
        "the Inspector does not accept pack {pack}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )))
}

/// Runs the Python client with everything that the pack offers, in both eras, over both transports.
fn clients(tollgate: &Path, tools: &Tools, counts: &mut Vec<String>) -> anyhow::Result<Vec<String>> {
    let python = python::with("python", test::PYTHON_PACKAGES)?;
    let script = root().join("tests/python/everything.py");
    let mut faults = Vec::new();
    let mut checks = 0;
    for era in ERAS {
        let work = tools.work("python")?;
        let server = Server::start(tollgate, &work)?;
        let config = config(&work);
        let stdio = [tollgate.as_os_str(), config.as_os_str()];
        for target in [&[server.url.as_ref()][..], &stdio[..]] {
            let output = Command::new(&python)
                .arg(&script)
                .arg(era)
                .args(target)
                .output()?;
            let said = String::from_utf8_lossy(&output.stdout);
            match said.trim().parse::<usize>() {
                Ok(passed) if output.status.success() => checks += passed,
                _ => faults.push(format!(
                    "the Python client, {era}, {target:?}: {said}{}",
                    String::from_utf8_lossy(&output.stderr)
                )),
            }
        }
    }
    counts.push(format!(
        "python client: {checks} checks passed, over stdio and HTTP, in both eras; {} of 4 runs failed",
        faults.len()
    ));
    Ok(faults)
}

/// A host that serves the pack.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn start(tollgate: &Path, work: &Path) -> anyhow::Result<Server> {
        let config = config(work);
        std::fs::write(&config, configuration(work))?;
        // The suite lists once, immediately, so a pack that is still being compiled would be missing.
        let mut prepare = Command::new(tollgate);
        prepare.arg("--config").arg(&config).args(["packs", "prepare"]);
        run(&mut prepare)?;
        let mut child = Command::new(tollgate)
            .arg("--config")
            .arg(config)
            .args(["serve", "--http", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run tollgate")?;
        let stderr = child.stderr.take().context("tollgate has no standard error")?;
        let mut server = Server {
            child,
            url: String::new(),
        };
        let mut lines = BufReader::new(stderr).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("serving ")?.1.to_owned()));
        server.url = url.context("tollgate did not start to serve")?;
        // The output must be read, or a server with much output would block.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Path of a host's configuration. Its folder is a workspace, and the data directory is not below it.
fn config(work: &Path) -> PathBuf {
    work.join("config/tollgate.toml")
}

/// Configuration of a host with only this pack. The pack may change the configuration, so that tools are added and
/// removed.
fn configuration(work: &Path) -> String {
    let component = root()
        .join("target/components/guests")
        .join(format!("{PACK}.wasm"));
    let others = components::names().map(|name| format!("[packs.{name}]\nenabled = false\n"));
    format!(
        "data_dir = {data:?}\n{others}\
         [packs.{PACK}]\nsource = {component:?}\nexclude = []\nfull_schemas = true\n\
         grants.workspaces = [{PACK:?}]\ngrants.client = [\"model\", \"roots\"]\n\
         [workspaces.{PACK}]\npath = {folder:?}\nwrite = [\"tollgate.toml\"]\n",
        data = work.join("data"),
        folder = work.join("config"),
        others = others.collect::<String>(),
    )
}

/// Numbers of checks of required scenarios, by result.
#[derive(Default)]
struct Counts {
    ran: BTreeSet<String>,
    passed: usize,
    failed: usize,
    warnings: usize,
    skipped: usize,
    failing: BTreeSet<String>,
    warning: BTreeSet<String>,
    /// Scenarios that are run but not required: the number that passed, and the names of the others.
    others: usize,
    other_failing: BTreeSet<String>,
}

impl Counts {
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn of(results: &Path, required: &BTreeSet<String>) -> anyhow::Result<Counts> {
        let mut counts = Counts::default();
        let folders = std::fs::read_dir(results).context("the conformance suite left no results")?;
        for folder in folders {
            let folder = folder?.path();
            let Ok(text) = std::fs::read(folder.join("checks.json")) else {
                continue;
            };
            let checks: Vec<Value> = serde_json::from_slice(&text)?;
            counts.add(scenario(&folder), &checks, required);
        }
        Ok(counts)
    }

    fn add(&mut self, scenario: String, checks: &[Value], required: &BTreeSet<String>) {
        let of = |status: &str| checks.iter().filter(|check| check["status"] == status).count();
        let failed = of("FAILURE");
        if !required.contains(&scenario) {
            self.others += usize::from(failed == 0);
            self.other_failing.extend((failed > 0).then_some(scenario));
            return;
        }
        self.passed += of("SUCCESS");
        self.warnings += of("WARNING");
        self.skipped += of("SKIPPED");
        self.failed += failed;
        self.failing.extend((failed > 0).then(|| scenario.clone()));
        self.warning.extend((of("WARNING") > 0).then(|| scenario.clone()));
        self.ran.insert(scenario);
    }

    fn told(&self) -> String {
        let list = |names: &BTreeSet<String>| match names.len() {
            0 => String::new(),
            _ => format!(
                " ({})",
                names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            ),
        };
        format!(
            "{} scenarios, {} checks passed, {} failed{}, {} warnings{}, {} skipped; not required: {} scenarios passed, {} failed{}",
            self.ran.len(),
            self.passed,
            self.failed,
            list(&self.failing),
            self.warnings,
            list(&self.warning),
            self.skipped,
            self.others,
            self.other_failing.len(),
            list(&self.other_failing),
        )
    }
}

/// Scenario of a result folder, for example `server-ping-2026-11-21T07-00-00-000Z`.
fn scenario(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let name = name.strip_prefix("server-").unwrap_or(&name);
    // The rest is a time, which has an unmistakable form.
    match name.rfind('T').and_then(|at| at.checked_sub("-2026-11-21".len())) {
        Some(at) => name[..at].to_owned(),
        None => name.to_owned(),
    }
}

/// Folder of the suite, the Inspector and Node.
struct Tools(PathBuf);

impl Tools {
    fn install() -> anyhow::Result<Tools> {
        let tools = Tools(npm_packages(FOLDER, &MANIFESTS)?);
        let version = tools.node("node").arg("--version").output();
        let version = version.context("npm did not install Node; does it run scripts of packages?")?;
        say(&format!(
            "node {}",
            String::from_utf8_lossy(&version.stdout).trim()
        ));
        Ok(tools)
    }

    /// Command that runs one of their programs with the installed Node.
    fn node(&self, program: &str) -> Command {
        let bin = self.0.join("node_modules/.bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(bin.clone()).chain(std::env::split_paths(&path));
        let mut command = Command::new(bin.join(program));
        command.current_dir(&self.0);
        if let Ok(path) = std::env::join_paths(paths) {
            command.env("PATH", path);
        }
        command
    }

    /// The scenarios that a revision requires of a server.
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn required(&self, revision: &str) -> anyhow::Result<BTreeSet<String>> {
        let suite = self.0.join("node_modules/@modelcontextprotocol/conformance");
        let text = std::fs::read_to_string(suite.join(format!("requirements/{revision}.yaml")))?;
        let server = text.lines().skip_while(|line| *line != "server:").skip(1);
        let named = server.map_while(|line| line.strip_prefix("  - "));
        let named: BTreeSet<String> = named.map(|name| name.trim().to_owned()).collect();
        ensure!(!named.is_empty(), "{revision} requires nothing of a server");
        Ok(named)
    }

    /// An empty folder to work in.
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn work(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.0.join("work").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(folder.join("config"))?;
        Ok(folder)
    }
}
