//! Tests of third-party clients with the entries that `tollgate clients add` writes for them.
//!
//! Pinned versions are installed below `target/clients-test`. Each client gets its own home, project and data
//! directory, and can reach only this machine, because starting or listing servers needs no account. A client that
//! cannot be installed or run is a failure. None is skipped.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::components::{self, Profile};
use crate::run::{npm_packages_in, root, say, target};
use crate::{python, test};

const FOLDER: &str = "tests/clients";
const FILES: [&str; 3] = ["package.json", "package-lock.json", "sdk.mjs"];
/// Timeout for a client, beyond its own.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Environment variable from which clients take the token, and the token.
const TOKEN: (&str, &str) = ("CLIENT_TOKEN", "0f5c1e6f6a4be1a2c07b8d93f0a4e5d6");
/// Address without a listener, so that connections to a client's vendor are refused at once.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Test the entries that `tollgate clients add` writes with the real clients
#[derive(Debug, Args)]
pub(crate) struct ClientsTest {
    /// Use this program instead of building one
    #[arg(long, value_name = "FILE")]
    tollgate: Option<PathBuf>,
    /// Skip the first round, in which nothing is prepared
    #[arg(long)]
    no_cold: bool,
    /// Only clients whose name contains this text
    filter: Option<String>,
}

/// A client and the way to query it.
struct Program {
    title: &'static str,
    package: &'static str,
    /// Name for `tollgate clients add`. SDKs and the Inspector read Cursor's file.
    client: &'static str,
    ask: Ask,
}

enum Ask {
    /// A command that connects to all servers, a required variable, and its output for a server that answers.
    Says(
        &'static [&'static str],
        Option<(&'static str, &'static str)>,
        &'static str,
    ),
    /// A command that lists servers but connects to none without an account, and its output for our server. `tollgate
    /// clients check` tests what the entry starts.
    Lists(&'static [&'static str], &'static str),
    /// Codex's app server, which reports the number of tools.
    AppServer,
    Inspector,
    TypeScript,
    Python,
}

const PROGRAMS: &[Program] = &[
    Program {
        title: "Claude Code",
        package: "@anthropic-ai/claude-code",
        client: "claude-code",
        ask: Ask::Says(&["claude", "mcp", "list"], None, "Connected"),
    },
    Program {
        title: "Codex",
        package: "@openai/codex",
        client: "codex",
        ask: Ask::AppServer,
    },
    Program {
        title: "Gemini CLI",
        package: "@google/gemini-cli",
        client: "gemini",
        ask: Ask::Says(
            &["gemini", "mcp", "list"],
            Some(("GEMINI_CLI_TRUST_WORKSPACE", "true")),
            "Connected",
        ),
    },
    Program {
        title: "opencode",
        package: "opencode-ai",
        client: "opencode",
        ask: Ask::Says(&["opencode", "mcp", "list"], None, "tollgate connected"),
    },
    Program {
        title: "Copilot CLI",
        package: "@github/copilot",
        client: "copilot",
        ask: Ask::Lists(&["copilot", "mcp", "get", "tollgate"], "Status: Enabled"),
    },
    Program {
        title: "Qwen Code",
        package: "@qwen-code/qwen-code",
        client: "qwen",
        ask: Ask::Says(&["qwen", "mcp", "list"], None, "Connected"),
    },
    Program {
        title: "MCP Inspector",
        package: "@modelcontextprotocol/inspector",
        client: "cursor",
        ask: Ask::Inspector,
    },
    Program {
        title: "TypeScript SDK",
        package: "@modelcontextprotocol/sdk",
        client: "cursor",
        ask: Ask::TypeScript,
    },
    Program {
        title: "Python SDK",
        package: "mcp",
        client: "cursor",
        ask: Ask::Python,
    },
];

impl ClientsTest {
    /// Tests all clients, prints the table, and fails if a client does not see the tools.
    pub(crate) fn all(&self) -> anyhow::Result<()> {
        let tollgate = match &self.tollgate {
            Some(file) => std::path::absolute(file)?,
            None => components::build_host(Profile::Dev)?,
        };
        let tools = Tools::install()?;
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        let is_meant = |program: &&Program| {
            let filter = self.filter.as_deref().unwrap_or_default().to_lowercase();
            program.title.to_lowercase().contains(&filter)
        };
        for program in PROGRAMS.iter().filter(is_meant) {
            let mut row = vec![program.title.to_owned(), tools.version(program)];
            let rounds = Rounds::of(program, &tollgate, &tools)?;
            for (name, came_to) in rounds.run(self.no_cold) {
                row.push(
                    came_to
                        .as_ref()
                        .map_or_else(|_| "FAILED".to_owned(), Clone::clone),
                );
                faults.extend(
                    came_to
                        .err()
                        .map(|err| format!("{}, {name}: {err:#}", program.title)),
                );
            }
            say(&row.join(" | "));
            rows.push(row);
        }
        ensure!(!rows.is_empty(), "no client has such a name");
        say(
            "\n| client | version | cold | after `clients add` | `clients check` | HTTP with a token | removed |\n|---|---|---|---|---|---|---|",
        );
        rows.iter()
            .for_each(|row| say(&format!("| {} |", row.join(" | "))));
        ensure!(faults.is_empty(), "{}", faults.join("\n"));
        Ok(())
    }
}

/// Rounds of one client, in its own folders.
struct Rounds<'a> {
    program: &'a Program,
    tollgate: &'a Path,
    tools: &'a Tools,
    work: PathBuf,
}

impl<'a> Rounds<'a> {
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn of(program: &'a Program, tollgate: &'a Path, tools: &'a Tools) -> anyhow::Result<Rounds<'a>> {
        let work = target()
            .join("clients-test/work")
            .join(program.title.replace(' ', "-"));
        if work.exists() {
            std::fs::remove_dir_all(&work)?;
        }
        for folder in ["home", "project/.git", "tmp"] {
            std::fs::create_dir_all(work.join(folder))?;
        }
        Ok(Rounds {
            program,
            tollgate,
            tools,
            work,
        })
    }

    fn run(&self, no_cold: bool) -> Vec<(&'static str, anyhow::Result<String>)> {
        let left_out = || Ok("not asked".to_owned());
        vec![
            ("cold", if no_cold { left_out() } else { self.cold() }),
            ("added", self.added()),
            ("check", self.check()),
            ("HTTP", self.http()),
            ("removal", self.remove()),
        ]
    }

    /// The first start on this data directory compiles all packs.
    fn cold(&self) -> anyhow::Result<String> {
        self.clients(&["add", self.program.client, "--no-check"])?;
        ensure!(!self.work.join("data").exists(), "the data directory is not new");
        self.ask()
    }

    /// `clients add` without flags prepares the packs, so that the client's next start is warm.
    fn added(&self) -> anyhow::Result<String> {
        self.clients(&["add", self.program.client])?;
        self.ask()
    }

    fn check(&self) -> anyhow::Result<String> {
        let said = self.clients(&["check", self.program.client])?;
        let line = said.lines().find(|line| line.starts_with('✔'));
        let sees = line
            .and_then(|line| line.split_once("sees "))
            .with_context(|| said.clone())?;
        Ok(sees.1.to_owned())
    }

    fn http(&self) -> anyhow::Result<String> {
        let server = Server::start(self.tollgate, &self.work)?;
        let add = [
            "add",
            self.program.client,
            "--http",
            &server.url,
            "--bearer-env",
            TOKEN.0,
            "--force",
        ];
        // The command ends with the result of the check, which uses HTTP as the client does.
        self.clients(&add)?;
        self.ask()
    }

    fn remove(&self) -> anyhow::Result<String> {
        self.clients(&["remove", self.program.client])?;
        let listed: Value = serde_json::from_str(&self.clients(&["list", "--json"])?)?;
        let left = listed
            .as_array()
            .into_iter()
            .flatten()
            .filter(|row| !row["entry"].is_null())
            .count();
        ensure!(left == 0, "entries are left: {listed}");
        Ok("yes".to_owned())
    }

    /// Runs `tollgate clients …`, which must succeed. Returns its output.
    fn clients(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.in_home(Command::new(self.tollgate));
        // A client does not inherit our variables later, so the entry must contain them.
        command
            .arg("--data-dir")
            .arg(self.work.join("data"))
            .arg("clients")
            .args(arguments);
        let output = command.output().context("cannot run tollgate")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "tollgate clients {}: {said}{stderr}",
            arguments.join(" ")
        );
        Ok(said)
    }

    /// Queries what the client sees, and reports the duration.
    fn ask(&self) -> anyhow::Result<String> {
        let started = Instant::now();
        let saw = match &self.program.ask {
            Ask::Says(line, variable, good) => {
                self.says(line, *variable, good)?;
                "connected".to_owned()
            }
            Ask::Lists(line, good) => {
                self.says(line, None, good)?;
                let check = self.check()?;
                format!("lists it; check: {check}")
            }
            Ask::AppServer => self.app_server()?,
            Ask::Inspector => self.inspector()?,
            Ask::TypeScript => {
                let script = self.tools.npm.join("sdk.mjs");
                self.script(self.tools.bin("node"), &script)?
            }
            Ask::Python => self.script(self.tools.python.clone(), &root().join(FOLDER).join("sdk.py"))?,
        };
        Ok(format!("{saw}, {:.1} s", started.elapsed().as_secs_f64()))
    }

    fn says(&self, line: &[&str], variable: Option<(&str, &str)>, good: &str) -> anyhow::Result<()> {
        let mut command = self.in_home(Command::new(self.tools.bin(line[0])));
        command.args(&line[1..]).envs(variable);
        let said = plain(&self.output(command)?);
        ensure!(
            said.contains("tollgate") && said.contains(good),
            "{} says: {said}",
            line.join(" ")
        );
        Ok(())
    }

    fn script(&self, program: PathBuf, script: &Path) -> anyhow::Result<String> {
        let mut command = self.in_home(Command::new(program));
        command.arg(script).arg(self.work.join("home/.cursor/mcp.json"));
        let said = self.output(command)?;
        let line = said
            .lines()
            .find(|line| line.ends_with(" tools") && !line.starts_with("0 "));
        Ok(line.with_context(|| format!("its output: {said}"))?.to_owned())
    }

    /// The Inspector reads its own file format, so it gets the command of the entry.
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn inspector(&self) -> anyhow::Result<String> {
        let text = std::fs::read_to_string(self.work.join("home/.cursor/mcp.json"))?;
        let entry = serde_json::from_str::<Value>(&text)?["mcpServers"]["tollgate"].clone();
        let mut command = self.in_home(Command::new(self.tools.bin("mcp-inspector")));
        command.arg("--cli");
        if let Some(url) = entry["url"].as_str() {
            let header = entry["headers"]["Authorization"].as_str().unwrap_or_default();
            let header = header.replace(&format!("${{env:{}}}", TOKEN.0), TOKEN.1);
            command.args([
                url,
                "--transport",
                "http",
                "--header",
                &format!("Authorization: {header}"),
            ]);
        } else {
            let words = entry["args"].as_array().into_iter().flatten();
            command.args(
                std::iter::once(&entry["command"])
                    .chain(words)
                    .filter_map(Value::as_str),
            );
        }
        let said = self.output_of(command.args(["--method", "tools/list"]))?;
        let json = said.find('{').map_or("", |start| &said[start..]);
        let listed = serde_json::Deserializer::from_str(json)
            .into_iter::<Value>()
            .next();
        let tools = listed
            .and_then(Result::ok)
            .and_then(|listed| Some(listed["tools"].as_array()?.len()));
        let tools = tools.filter(|tools| *tools > 0);
        Ok(format!(
            "{} tools",
            tools.with_context(|| format!("its output: {said}"))?
        ))
    }

    /// Queries Codex's app server through its protocol, which is lines of JSON.
    fn app_server(&self) -> anyhow::Result<String> {
        let mut command = self.in_home(Command::new(self.tools.bin("codex")));
        command
            .arg("app-server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut codex = Running(command.spawn().context("cannot run codex")?);
        let mut stdin = codex.0.stdin.take().context("codex has no standard input")?;
        let stdout = codex.0.stdout.take().context("codex has no standard output")?;
        let (lines, answers) = mpsc::channel();
        std::thread::spawn(move || {
            BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| lines.send(line))
        });
        let initialize = json!({"id": 0, "method": "initialize",
            "params": {"clientInfo": {"name": "clients-test", "version": "1"}}});
        let list = json!({"id": 1, "method": "mcpServerStatus/list", "params": {}});
        writeln!(
            stdin,
            "{initialize}\n{}\n{list}",
            json!({"method": "initialized"})
        )?;
        let mut said = String::new();
        loop {
            let line = answers
                .recv_timeout(TIMEOUT)
                .with_context(|| format!("codex printed only: {said}"))?;
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            if message["id"] == 1 {
                let servers = message["result"]["data"].as_array().cloned().unwrap_or_default();
                let ours = servers.iter().find(|server| server["name"] == "tollgate");
                let tools = ours.and_then(|server| Some(server["tools"].as_object()?.len()));
                let tools = tools
                    .filter(|tools| *tools > 0)
                    .with_context(|| format!("codex printed: {said}{line}"))?;
                return Ok(format!("{tools} tools"));
            }
            said += &line;
        }
    }

    /// Restricts a program to the folders of this client.
    fn in_home(&self, mut command: Command) -> Command {
        let paths = [
            self.tools.npm.join("node_modules/.bin"),
            "/usr/bin".into(),
            "/bin".into(),
        ];
        command
            .env_clear()
            .env("HOME", self.work.join("home"))
            .env("TMPDIR", self.work.join("tmp"))
            .env("PATH", std::env::join_paths(paths).unwrap_or_default())
            .envs([
                ("TERM", "dumb"),
                ("NO_COLOR", "1"),
                ("LANG", "C.UTF-8"),
                ("USER", "clients-test"),
            ])
            .envs(["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map(|name| (name, NOWHERE)))
            .envs(["NO_PROXY", "no_proxy"].map(|name| (name, "127.0.0.1,localhost")))
            .env(TOKEN.0, TOKEN.1)
            .current_dir(self.work.join("project"))
            .stdin(Stdio::null());
        command
    }

    fn output(&self, mut command: Command) -> anyhow::Result<String> {
        self.output_of(&mut command)
    }

    /// Runs a program to its end or its timeout.
    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn output_of(&self, command: &mut Command) -> anyhow::Result<String> {
        let path = self.work.join("said.txt");
        let file = File::create(&path)?;
        command.stdout(file.try_clone()?).stderr(file);
        let mut running = Running(
            command
                .spawn()
                .with_context(|| format!("cannot run {command:?}"))?,
        );
        let started = Instant::now();
        while running.0.try_wait()?.is_none() {
            if started.elapsed() > TIMEOUT {
                bail!(
                    "did not finish within {} s: {}",
                    TIMEOUT.as_secs(),
                    std::fs::read_to_string(&path)?
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(String::from_utf8_lossy(&std::fs::read(&path)?).into_owned())
    }
}

/// A program that is killed when its owner is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that requires the token.
struct Server {
    _running: Running,
    url: String,
}

impl Server {
    fn start(tollgate: &Path, work: &Path) -> anyhow::Result<Server> {
        let mut running = Running(
            Command::new(tollgate)
                .arg("--data-dir")
                .arg(work.join("data"))
                .args(["serve", "--http", "127.0.0.1:0"])
                .env("HOME", work.join("home"))
                .env("TOLLGATE_TOKEN", TOKEN.1)
                .current_dir(work.join("project"))
                .stderr(Stdio::piped())
                .spawn()
                .context("cannot run tollgate")?,
        );
        let mut lines = BufReader::new(
            running
                .0
                .stderr
                .take()
                .context("tollgate has no standard error")?,
        )
        .lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("serving ")?.1.trim().to_owned()));
        // The output must be read, or a server with much output would block.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(Server {
            _running: running,
            url: url.context("tollgate did not start to serve")?,
        })
    }
}

/// Folder of installed clients.
struct Tools {
    npm: PathBuf,
    python: PathBuf,
}

impl Tools {
    fn install() -> anyhow::Result<Tools> {
        let npm = npm_packages_in(FOLDER, &FILES, target().join("clients-test/npm"))?;
        let tools = Tools {
            npm,
            python: python::with("python", test::PYTHON_PACKAGES)?,
        };
        for program in PROGRAMS
            .iter()
            .filter(|program| !matches!(program.ask, Ask::Python))
        {
            let folder = tools.npm.join("node_modules").join(program.package);
            ensure!(folder.is_dir(), "npm did not install {}", program.package);
        }
        Ok(tools)
    }

    fn bin(&self, name: &str) -> PathBuf {
        self.npm.join("node_modules/.bin").join(name)
    }

    #[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
    fn version(&self, program: &Program) -> String {
        if matches!(program.ask, Ask::Python) {
            let pinned = test::PYTHON_PACKAGES
                .iter()
                .find_map(|package| package.strip_prefix("mcp=="));
            return pinned.unwrap_or_default().to_owned();
        }
        let manifest = self
            .npm
            .join("node_modules")
            .join(program.package)
            .join("package.json");
        let manifest = std::fs::read(manifest).unwrap_or_default();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
        manifest["version"].as_str().unwrap_or("?").to_owned()
    }
}

/// Text without terminal colours.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        let end = after
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or(after.len(), |end| end + 1);
        rest = &after[end..];
    }
    plain + rest
}
