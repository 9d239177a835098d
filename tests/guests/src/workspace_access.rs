//! Reads, writes and runs anything on request, to test what the host permits.

use std::time::Duration;

use guests::Done;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use tollgate_sdk::{
    Command, Cx, Effect, FileEntry, GitAccess, Migration, Pack, Tool, ToolError, Value, Want, Workspace,
    WorkspaceError, tools,
    workspace::{MAX_READ, Upcoming},
};

/// List the permissions in all workspaces.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Describe {}

impl Tool for Describe {
    const NAME: &'static str = "workspace_access_describe";
    const TITLE: &'static str = "Describe";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let infos = cx.workspaces().into_iter().map(|name| {
            let info = cx.workspace(&name)?.info().clone();
            let tests: Vec<String> = info
                .tests
                .iter()
                .map(|test| format!("{}={}", test.name, test.argv.join(" ")))
                .collect();
            Ok(format!(
                "{name} write={:?} git={:?} tests={tests:?}",
                info.write_prefixes, info.git
            ))
        });
        Ok(Done::new(
            infos.collect::<Result<Vec<_>, WorkspaceError>>()?.join("; "),
        ))
    }
}

/// Read paths in one of several ways.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// Way to read: list, unless (list twice, the second time unless unchanged), stat or read.
    how: String,
    /// Paths to read, in this order.
    #[serde(deserialize_with = "with_nul")]
    paths: Vec<String>,
    /// Announce the requests before. Default false.
    #[serde(default)]
    ahead: bool,
    /// Name of the workspace. Default main.
    #[serde(default = "main")]
    workspace: String,
}

impl Tool for Look {
    const NAME: &'static str = "workspace_access_look";
    const TITLE: &'static str = "Look";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let workspace = cx.workspace(&self.workspace)?;
        if self.ahead {
            let upcoming = |path| match self.how.as_str() {
                "list" => Upcoming::List(path, 100),
                "unless" => Upcoming::ListUnless(path, None, 100),
                _ => Upcoming::Read(path, MAX_READ),
            };
            let paths = self.paths.iter().map(String::as_str);
            workspace.read_ahead(&paths.map(upcoming).collect::<Vec<_>>());
        }
        let seen = self.paths.iter().map(|path| {
            let seen = match self.how.as_str() {
                "list" => workspace.list(path, None, 100).map(|entries| names(&entries)),
                "unless" => twice(&workspace, path),
                "stat" => workspace
                    .stat(path)
                    .map(|entry| format!("{:?} {}", entry.kind, entry.size)),
                _ => workspace
                    .read(path, 1 << 16)
                    .map(|content| String::from_utf8_lossy(&content).into_owned()),
            };
            seen.unwrap_or_else(|err| err.to_string())
        });
        Ok(Done::new(seen.collect::<Vec<_>>().join("\n")))
    }
}

/// Reads texts in which the picture of a NUL stands for the character itself, which arguments may not hold.
fn with_nul<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    Ok(texts.iter().map(|text| text.replace('\u{2400}', "\0")).collect())
}

fn names(entries: &[FileEntry]) -> String {
    let names = entries
        .iter()
        .map(|entry| format!("{:?} {:?}", entry.path, entry.kind));
    names.collect::<Vec<_>>().join(", ")
}

/// Lists a directory, and then lists it again unless unchanged.
fn twice(workspace: &Workspace<'_>, path: &str) -> Result<String, WorkspaceError> {
    let Some(first) = workspace.list_unless(path, None, 100)? else {
        return Ok("nothing".to_owned());
    };
    let known = Some(first.fingerprint);
    workspace.read_ahead(&[Upcoming::ListUnless(path, known, 100)]);
    let again = workspace.list_unless(path, known, 100)?;
    let again = again.map_or_else(|| "the same".to_owned(), |again| names(&again.entries));
    Ok(format!("{}; {again}", names(&first.entries)))
}

/// A file to write.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path of the file in the workspace.
    path: String,
    /// Content to write to the file.
    content: String,
    /// Append to the file. Default false.
    #[serde(default)]
    append: bool,
}

impl File {
    fn write(&self, workspace: &Workspace<'_>) -> String {
        let content = self.content.as_bytes();
        let written = match self.append {
            true => workspace.append(&self.path, content),
            false => workspace.write(&self.path, content),
        };
        written.map_or_else(|err| err.to_string(), |()| "ok".to_owned())
    }
}

fn written(cx: &Cx<'_>, workspace: &str, files: &[File]) -> Result<Vec<String>, ToolError> {
    let workspace = cx.workspace(workspace)?;
    Ok(files.iter().map(|file| file.write(&workspace)).collect())
}

/// Result of a call that writes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Written {
    /// Result for each file.
    results: Vec<String>,
    /// True if files could not be updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale: Option<bool>,
    /// Reasons for outdated files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Write files in a write call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// Files to write, in this order.
    files: Vec<File>,
    /// Fail after the writes. Default false.
    #[serde(default)]
    fail: bool,
    /// Name of the workspace. Default main.
    #[serde(default = "main")]
    workspace: String,
}

impl Tool for Write {
    const NAME: &'static str = "workspace_access_write";
    const TITLE: &'static str = "Write";
    const EFFECT: Effect = Effect::Write;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let results = written(cx, &self.workspace, &self.files)?;
        if self.fail {
            return Err(ToolError::new("ASKED_TO_FAIL", results.join("; ")));
        }
        Ok(Written {
            results,
            stale: None,
            warnings: Vec::new(),
        })
    }
}

/// Write files in a read call.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteReading {
    /// Files to write, in this order.
    files: Vec<File>,
}

impl Tool for WriteReading {
    const NAME: &'static str = "workspace_access_write_reading";
    const TITLE: &'static str = "Write while reading";
    const EFFECT: Effect = Effect::Read;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let mut results = written(cx, &main(), &self.files)?;
        results.push(match cx.workspace("main")?.run(&Command::new("sh")) {
            Ok(_) => "ran".to_owned(),
            Err(err) => err.to_string(),
        });
        Ok(Done::new(results.join("; ")))
    }
}

/// Run a program.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Program to run, for example git.
    program: String,
    /// Arguments of the program.
    #[serde(default, deserialize_with = "with_nul")]
    arguments: Vec<String>,
    /// Text for standard input. Default empty.
    #[serde(default)]
    stdin: String,
    /// Timeout of the program in milliseconds.
    #[serde(default = "minute")]
    timeout_ms: u64,
    /// Maximum bytes of each output stream.
    #[serde(default = "kibibyte")]
    output_limit: u32,
    /// Hold a storage transaction during the run. Default false.
    #[serde(default)]
    in_transaction: bool,
    /// Files to write before the run.
    #[serde(default)]
    files: Vec<File>,
    /// File to read after the run and at the end, announced at the beginning. Default none.
    #[serde(default)]
    reads: Option<String>,
    /// Name of the workspace. Default main.
    #[serde(default = "main")]
    workspace: String,
}

impl Tool for Run {
    const NAME: &'static str = "workspace_access_run";
    const TITLE: &'static str = "Run";
    const EFFECT: Effect = Effect::Run;
    type Output = Done;

    fn run(self, cx: &Cx<'_>) -> Result<Done, ToolError> {
        let workspace = cx.workspace(&self.workspace)?;
        let reads = |results: &mut Vec<String>| {
            if let Some(path) = &self.reads {
                let content = workspace.read_at(path, 0, MAX_READ);
                let text = content.map(|content| String::from_utf8_lossy(&content).into_owned());
                results.push(text.unwrap_or_else(|err| err.to_string()));
                workspace.read_ahead(&[Upcoming::Read(path, MAX_READ)]);
            }
        };
        let mut before = Vec::new();
        reads(&mut before);
        let mut results = written(cx, &self.workspace, &self.files)?;
        reads(&mut results);
        let command = Command::new(&self.program)
            .args(self.arguments.clone())
            .stdin(self.stdin.clone())
            .timeout(Duration::from_millis(self.timeout_ms))
            .output_limit(self.output_limit);
        cx.progress(1, Some(2), "about to run");
        let outcome = match self.in_transaction {
            true => cx.transaction(|db| {
                db.execute(
                    "INSERT INTO workspace_access_rows (body) VALUES (?1)",
                    &[Value::Null],
                )?;
                Ok::<_, ToolError>(workspace.run(&command))
            })?,
            false => workspace.run(&command),
        };
        results.push(match outcome {
            Ok(outcome) => format!(
                "{:?} {} {} [{}] [{}]",
                outcome.ending,
                outcome.stdout.total,
                outcome.stderr.total,
                outcome.stdout.text(),
                outcome.stderr.text()
            ),
            Err(err) => err.to_string(),
        });
        reads(&mut results);
        Ok(Done::new([before, results].concat().join("; ")))
    }
}

fn main() -> String {
    "main".to_owned()
}

fn minute() -> u64 {
    60_000
}

fn kibibyte() -> u32 {
    1024
}

const PACK: Pack = Pack {
    name: "workspace-access",
    version: "0.1.0",
    summary: "Reads, writes and runs anything.",
    wants: &[
        Want::WorkspaceRead("*"),
        Want::WorkspaceWrite("."),
        Want::Process("sh"),
        Want::Process("echo"),
        Want::Process("no-such-program"),
        Want::Tests,
        Want::Git(GitAccess::Write),
    ],
    tools: tools![Describe, Look, Write, WriteReading, Run],
    migrations: &[Migration {
        name: "0001_init",
        sql: "CREATE TABLE workspace_access_rows (id INTEGER PRIMARY KEY, body BLOB);",
    }],
    ..Pack::EMPTY
};
tollgate_sdk::export_pack!(PACK);
