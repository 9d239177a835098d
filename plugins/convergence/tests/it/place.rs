//! A directory with a test command and a Git repository, and the pack's tools over it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use convergence::PACK;
use serde_json::{Value, json};
use tempfile::TempDir;
use tollgate_kit_test::script;
use tollgate_sdk::native::{Session, Workspace};
use tollgate_sdk::{GitAccess, ToolError};

/// A directory that goes with the test.
pub(crate) struct Place {
    dir: TempDir,
}

#[allow(clippy::disallowed_methods, reason = "tests make files")]
impl Place {
    pub(crate) fn new() -> Place {
        Place {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// With a repository that has one commit.
    pub(crate) fn repository() -> Place {
        let place = Place::new();
        place.git(&["init", "-q", "-b", "main"]);
        place.write("calc.py", "def add(a, b):\n    return a - b\n");
        place.write(".gitignore", "ignored/\n");
        place.commit("first");
        place
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn git(&self, arguments: &[&str]) {
        git(&self.path(), arguments);
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    /// The tools over this directory as workspace `default`, its test command being `sh run.sh`.
    pub(crate) fn session(&self) -> Session {
        self.session_with(|workspace| workspace.git(GitAccess::Read).test("default", &["sh", "run.sh"]))
    }

    pub(crate) fn session_with(&self, register: impl FnOnce(Workspace) -> Workspace) -> Session {
        Session::new(&PACK)
            .portable()
            .workspace(register(Workspace::new("default", &self.path())))
    }

    /// Sets the script of the test command, which determines its output and exit code.
    pub(crate) fn tests_print(&self, script: &str) {
        self.write("run.sh", script);
    }
}

/// Runs git as nobody in particular.
pub(crate) fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(["-c", "protocol.file.allow=always", "-c", "core.autocrlf=false"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The reply of a call that has to succeed.
pub(crate) fn reply(session: &Session, tool: &str, arguments: Value) -> Value {
    script(session).reply(&format!("{tool} {arguments}"))
}

/// The refusal of a call that has to be refused.
pub(crate) fn refusal(session: &Session, tool: &str, arguments: Value) -> ToolError {
    script(session).refusal(&format!("{tool} {arguments}"))
}

/// One line on a recorded state.
pub(crate) fn edit(session: &Session) -> String {
    let said = reply(session, "mutation_record", json!({}));
    let lines: Vec<&str> = said["short_diff"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let mut line = format!("{} [{}]", said["message"].as_str().unwrap(), lines.join(", "));
    for symbol in said["symbol_changes"].as_array().unwrap() {
        let _ = write!(line, " {}", symbol.as_str().unwrap());
    }
    line.push('\n');
    line
}
