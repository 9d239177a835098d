//! A small Python project in a repository of its own, registered as a workspace.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::Place;

/// A Python package without an export, with one test, in a repository of its own.
const PROJECT: &[(&str, &str)] = &[
    (".gitignore", "__pycache__/\n.pytest_cache/\n"),
    ("README.md", "# report\n"),
    ("report/__init__.py", ""),
    (
        "report/data.py",
        "ROWS = [{\"name\": \"a\", \"total\": 1}, {\"name\": \"b, c\", \"total\": 2}]\n",
    ),
    (
        "report/cli.py",
        "def main(argv):\n    if argv == [\"count\"]:\n        from .data import ROWS\n        return str(len(ROWS))\n    return \"usage: report count\"\n",
    ),
    (
        "tests/test_cli.py",
        "from report.cli import main\n\n\ndef test_count():\n    assert main([\"count\"]) == \"2\"\n",
    ),
];

/// A workspace `app` with that project, whose tests are pytest.
pub(crate) struct Project {
    pub(crate) place: Place,
    pub(crate) root: PathBuf,
}

impl Project {
    pub(crate) fn new() -> Project {
        let python =
            std::env::var("TOLLGATE_TEST_PYTHON").expect("`cargo xtask test` sets TOLLGATE_TEST_PYTHON");
        let tests = format!("[{python:?}, \"-m\", \"pytest\", \"-q\", \"-p\", \"no:cacheprovider\"]");
        Project::of(
            "app",
            PROJECT,
            &format!("write = [\"DEVLOG.md\"]\ntests.default = {tests}\n"),
        )
    }

    /// A workspace with these files in one commit, and more lines of its configuration.
    pub(crate) fn of(workspace: &str, files: &[(&str, &str)], more: &str) -> Project {
        let root = tempfile::tempdir().unwrap().keep();
        let place = Place::with(&format!(
            "[workspaces.{workspace}]\npath = {root:?}\ngit = \"write\"\n{more}"
        ));
        let project = Project { place, root };
        for (path, content) in files {
            project.write(path, content);
        }
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["config", "user.name", "Ada"],
            &["config", "user.email", "ada@example.org"],
            &["add", "."],
            &["commit", "--quiet", "-m", "first"],
        ] {
            project.git(arguments);
        }
        project
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .args(arguments)
            .current_dir(&self.root)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// A step of a job for the conductor.
pub(crate) fn step(title: &str, criteria: &[&str], gates: Value) -> Value {
    json!({
        "title": title,
        "instruction_prompt": format!("{title}. Touch nothing else."),
        "acceptance_criteria": criteria,
        "required_evidence": {"changed_files": "array", "commands_run": "array"},
        "remediation_prompt": "Undo what is unrelated, isolate the failing test, fix the least, run the tests again.",
        "gates": gates,
    })
}
