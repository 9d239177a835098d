//! A pack that runs git, and repositories to run it in.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::native::{Session, Workspace};
use tollgate_sdk::{Command, Cx, Effect, Ending, GitAccess, Pack, Tool, ToolError, Want, tools};

/// Run git.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Git {
    arguments: Vec<String>,
    #[serde(default)]
    stdin: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Said {
    text: String,
}

impl Tool for Git {
    const NAME: &'static str = "hand_git";
    const TITLE: &'static str = "Git";
    const EFFECT: Effect = Effect::Run;
    type Output = Said;

    fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
        let command = Command::new("git").args(self.arguments).stdin(self.stdin);
        let text = match cx.workspace("main")?.run(&command) {
            Ok(outcome) => format!(
                "{} {}{}",
                match outcome.ending {
                    Ending::Exited(code) => code.to_string(),
                    other => format!("{other:?}"),
                },
                outcome.stdout.text(),
                outcome.stderr.text()
            ),
            Err(err) => format!("no: {err}"),
        };
        Ok(Said { text })
    }
}

/// Write a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    path: String,
    content: String,
}

impl Tool for Write {
    const NAME: &'static str = "hand_write";
    const TITLE: &'static str = "Write";
    const EFFECT: Effect = Effect::Run;
    type Output = Said;

    fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
        let written = cx.workspace("main")?.write(&self.path, self.content.as_bytes());
        Ok(Said {
            text: written.map_or_else(|err| format!("no: {err}"), |()| "ok".to_owned()),
        })
    }
}

pub(crate) const PACK: Pack = Pack {
    name: "hand",
    version: "0.1.0",
    summary: "Runs git.",
    wants: &[
        Want::WorkspaceRead("*"),
        Want::WorkspaceWrite("."),
        Want::Git(GitAccess::Write),
    ],
    tools: tools![Git, Write],
    ..Pack::EMPTY
};

/// A repository with two commits, in a place with a secret and a program that leaves a mark.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let place = Place {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir_all(place.at("main/docs")).unwrap();
        std::fs::create_dir(place.at("outside")).unwrap();
        std::fs::write(place.at("outside/secret"), "SECRET\n").unwrap();
        let script = format!("#!/bin/sh\ntouch {}\ncat\n", place.at("marker").display());
        std::fs::write(place.at("evil"), script).unwrap();
        std::fs::set_permissions(place.at("evil"), std::fs::Permissions::from_mode(0o755)).unwrap();
        place.git(&["init", "-q", "-b", "main"]);
        place.commit("a.txt", "one\n");
        place.git(&["branch", "side"]);
        place.commit("docs/b.md", "two\n");
        place
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Runs git as the operator, before anything is prepared.
    pub(crate) fn git(&self, arguments: &[&str]) {
        git_in(&self.at("main"), arguments);
    }

    pub(crate) fn commit(&self, path: &str, content: &str) {
        std::fs::write(self.at("main").join(path), content).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "x"]);
    }

    pub(crate) fn evil(&self) -> String {
        self.at("evil").display().to_string()
    }

    pub(crate) fn configure(&self, text: &str) {
        let path = self.at("main/.git/config");
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, before + text).unwrap();
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::new("main", &self.at("main")).git(GitAccess::Write)
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.at("marker").exists()
    }
}

pub(crate) fn git_in(directory: &Path, arguments: &[&str]) {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?} {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) fn run(session: &Session, arguments: &[&str], stdin: &str) -> String {
    said(
        session,
        "hand_git",
        &serde_json::json!({"arguments": arguments, "stdin": stdin}),
    )
}

pub(crate) fn said(session: &Session, tool: &str, arguments: &serde_json::Value) -> String {
    let reply = session.call(tool, &arguments.to_string()).unwrap();
    let body: serde_json::Value = serde_json::from_str(&reply.structured).unwrap();
    body["text"].as_str().unwrap().to_owned()
}

/// A change of a file of a repository.
pub(crate) type Change = fn(&Path);
/// The same, with something that it holds.
pub(crate) type BoxedChange = Box<dyn Fn(&Path)>;
