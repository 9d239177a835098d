//! Bundle that desktop clients install with one click.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::components::{self, Profile};
use crate::run::{npm_packages, root, run, say, target};
use crate::sbom;

/// Schema version of the manifest: the newest that is not experimental.
const MANIFEST: &str = "0.3";
/// Path of the program in the bundle.
const PROGRAM: &str = "server/tollgate";
/// Package files of the official tool.
const TOOL: [&str; 2] = ["package.json", "package-lock.json"];

/// Builds the host, packs it with its manifest and its SBOM, and tests the result.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn make(profile: Profile) -> anyhow::Result<()> {
    let tollgate = components::build_host(profile)?;
    let folder = target().join("bundle");
    let (content, unpacked) = (folder.join("content"), folder.join("unpacked"));
    for old in [&content, &unpacked] {
        if old.exists() {
            std::fs::remove_dir_all(old)?;
        }
    }
    fill(&content, &tollgate, &folder.join("data"))?;
    let tool = npm_packages("tests/bundle", &TOOL)?.join("node_modules/.bin/mcpb");
    let mcpb = |arguments: &[&Path]| run(Command::new(&tool).args(arguments).stdout(Stdio::null()));
    mcpb(&[Path::new("validate"), &content.join("manifest.json")])?;
    let name = format!(
        "tollgate-{}-{}.mcpb",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    );
    let bundle = folder.join(name);
    mcpb(&[Path::new("pack"), &content, &bundle])?;
    mcpb(&[Path::new("unpack"), &bundle, &unpacked])?;
    let tools = start(&unpacked, &folder.join("data"))?;
    let size = std::fs::metadata(&bundle)?.len() >> 20;
    say(&format!(
        "{} ({size} MiB) starts and lists {tools} tools",
        bundle.display()
    ));
    Ok(())
}

/// Writes all files of the bundle.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn fill(content: &Path, tollgate: &Path, data: &Path) -> anyhow::Result<()> {
    let program = content.join(PROGRAM);
    std::fs::create_dir_all(program.parent().context("the program is in a folder")?)?;
    std::fs::copy(tollgate, &program)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        std::fs::copy(root().join(file), content.join(file))?;
    }
    let listed = Command::new(tollgate)
        .args([
            "--json",
            "tools",
            "--tier",
            "core",
            "--config",
            "/dev/null",
            "--data-dir",
        ])
        .arg(data)
        .output()?;
    let listed = serde_json::from_slice(&listed.stdout).context("the tools are not listed")?;
    let write = |name: &str, value: &Value| std::fs::write(content.join(name), format!("{value:#}\n"));
    write("manifest.json", &manifest(&listed))?;
    write(sbom::FILE, &sbom::bill()?)?;
    Ok(())
}

/// Manifest that a client displays, configures with its user, and runs.
fn manifest(listed: &Value) -> Value {
    let tools = listed.as_array().into_iter().flatten();
    let tools = tools.map(|tool| json!({"name": tool["name"], "description": tool["description"]}));
    let (platform, data) = match std::env::consts::OS {
        "macos" => ("darwin", "${HOME}/Library/Application Support/tollgate"),
        _ => ("linux", "${HOME}/.local/share/tollgate"),
    };
    json!({
        "manifest_version": MANIFEST,
        "name": "tollgate",
        "display_name": "Tollgate",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Tool packs for agents in a sandbox, behind one gate with budgets, policies and a ledger.",
        "long_description": "Tollgate runs tool packs as sandboxed WebAssembly components: tasks, plans, guided jobs, \
            tests and repositories. Every call passes one gate and leaves a row in a ledger that can be checked.",
        "author": {"name": "The Tollgate authors"},
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["tasks", "planning", "sandbox", "audit", "wasm"],
        "server": {
            "type": "binary",
            "entry_point": PROGRAM,
            "mcp_config": {
                "command": format!("${{__dirname}}/{PROGRAM}"),
                "args": [
                    "serve",
                    "--data-dir", "${user_config.data_dir}",
                    "--workspace", "default=${user_config.workspace}",
                    "--tier", "${user_config.tier}",
                ],
                "env": {},
            },
        },
        "tools": tools.collect::<Vec<Value>>(),
        "tools_generated": true,
        "prompts_generated": true,
        "compatibility": {"platforms": [platform]},
        "user_config": {
            "workspace": {
                "type": "directory",
                "title": "Workspace",
                "description": "The folder that packs may read as the workspace `default`, usually a Git repository.",
                "required": true,
                "default": "${HOME}",
            },
            "data_dir": {
                "type": "directory",
                "title": "Data directory",
                "description": "Directory of tasks, plans and the ledger.",
                "required": true,
                "default": data,
            },
            "tier": {
                "type": "string",
                "title": "Listed tools",
                "description": "core, standard or full. Tools that are not listed can still be called.",
                "required": true,
                "default": "core",
            },
        },
    })
}

/// Starts an unpacked bundle as a client would, and counts the listed tools.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn start(unpacked: &Path, data: &Path) -> anyhow::Result<usize> {
    let manifest: Value = serde_json::from_str(&std::fs::read_to_string(unpacked.join("manifest.json"))?)?;
    let config = &manifest["server"]["mcp_config"];
    let filled = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        text.replace("${__dirname}", &unpacked.to_string_lossy())
            .replace("${user_config.data_dir}", &data.to_string_lossy())
            .replace("${user_config.workspace}", &unpacked.to_string_lossy())
            .replace("${user_config.tier}", "core")
    };
    let arguments = config["args"].as_array().into_iter().flatten();
    let mut server = Command::new(filled(&config["command"]))
        .args(arguments.map(filled))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("the unpacked program does not start")?;
    let (stdin, stdout) = (server.stdin.take(), server.stdout.take());
    let (mut stdin, stdout) = stdin.zip(stdout).context("the server has no pipes")?;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "xtask", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    writeln!(stdin, "{initialize}\n{initialized}\n{list}")?;
    let mut count = None;
    for line in BufReader::new(stdout).lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["id"] == 2 {
            count = message["result"]["tools"].as_array().map(Vec::len);
            break;
        }
    }
    drop(stdin);
    let ended = server.wait()?;
    ensure!(ended.success(), "the unpacked program ended with {ended}");
    count
        .filter(|count| *count > 0)
        .context("the unpacked program lists no tools")
}
