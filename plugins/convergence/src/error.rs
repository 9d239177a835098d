//! Errors of the tools, with their remediations.

use tollgate_sdk::{Outcome, ToolError, Workspace};

/// No test command of this name is registered.
pub(crate) fn test_not_registered(workspace: &Workspace<'_>, name: &str) -> ToolError {
    let names: Vec<&str> = workspace
        .info()
        .tests
        .iter()
        .map(|test| test.name.as_str())
        .collect();
    ToolError::new(
        "TEST_NOT_REGISTERED",
        format!("workspace {} has no test command `{name}`", workspace.name()),
    )
    .remediation(format!(
        "Use a registered test command, or ask the operator to add `tests.{name} = [\"PROGRAM\", …]` to [workspaces.{}] \
         and grant `tests` to the pack. Record your own run with test_report.",
        workspace.name()
    ))
    .context("workspace", workspace.name())
    .context("registered", names)
}

/// A report that says nothing.
pub(crate) fn nothing_reported() -> ToolError {
    ToolError::new("NOTHING_REPORTED", "the report contains no result of a test run")
        .remediation("Pass exit_code, output or failing_tests, if possible all of them.")
}

/// The workspace does not let packs use Git.
pub(crate) fn git_not_allowed(workspace: &str) -> ToolError {
    ToolError::new(
        "GIT_NOT_ALLOWED",
        format!("git is not allowed in workspace {workspace}"),
    )
    .remediation(format!(
        "Ask the operator to set `git = \"read\"` in [workspaces.{workspace}] and to grant `git` to the pack."
    ))
    .context("workspace", workspace)
}

/// The workspace is no work tree.
pub(crate) fn not_a_repository(workspace: &str, outcome: &Outcome) -> ToolError {
    ToolError::new(
        "NOT_A_REPOSITORY",
        format!("workspace {workspace} is not a work tree of a Git repository"),
    )
    .remediation("Create a repository with `git init`, or use a workspace that is a repository.")
    .context("workspace", workspace)
    .context("git", complaint(outcome))
}

/// More changed than is read.
pub(crate) fn too_many_changes(workspace: &str) -> ToolError {
    ToolError::new(
        "TOO_MANY_CHANGES",
        format!("workspace {workspace} has more changes than can be read"),
    )
    .remediation("Commit finished changes, or add generated files to .gitignore.")
    .context("workspace", workspace)
}

/// Git did not end in its time.
pub(crate) fn git_too_slow(workspace: &str) -> ToolError {
    ToolError::new(
        "GIT_TOO_SLOW",
        format!("git did not finish in time in workspace {workspace}"),
    )
    .remediation(
        "Remove named pipes (for example a .gitignore that is a pipe), add large generated directories to .gitignore, \
         and call again.",
    )
    .context("workspace", workspace)
}

/// Files that cannot be hashed.
pub(crate) fn unreadable(workspace: &str, path: Option<&String>) -> ToolError {
    ToolError::new(
        "FILES_UNREADABLE",
        format!("changed files of workspace {workspace} cannot be read"),
    )
    .remediation("Make them readable by the host's user, or add them to .gitignore.")
    .context("workspace", workspace)
    .context("path", path.map(String::as_str))
}

/// Git failed for a reason of its own.
pub(crate) fn git_failed(workspace: &str, outcome: &Outcome) -> ToolError {
    ToolError::new("GIT_FAILED", format!("git failed in workspace {workspace}"))
        .remediation("Read git's message in context.")
        .context("workspace", workspace)
        .context("git", complaint(outcome))
}

/// The first line of what a program complained about.
fn complaint(outcome: &Outcome) -> String {
    let said = String::from_utf8_lossy(&outcome.stderr.bytes);
    let line = said.lines().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().chars().take(300).collect()
}
