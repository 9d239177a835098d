//! Registered workspaces as callers see them: names, directories, access to Git, tests.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tollgate_sdk::{Command, Cx, GitAccess, Workspace, WorkspaceInfo};

use crate::arguments;
use crate::root::Root;
use crate::store::workspace::MAX_WORKSPACES;

/// A registered workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct WorkspaceLine {
    /// Name of the workspace, which repo_root starts with.
    pub name: String,
    /// Directory of the workspace, if Git could tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Access to Git: read, write or none.
    pub git: &'static str,
    /// Registered tests as `name = command`.
    pub tests: Vec<String>,
}

impl WorkspaceLine {
    fn new(info: &WorkspaceInfo, path: Option<&String>) -> WorkspaceLine {
        WorkspaceLine {
            name: info.name.clone(),
            path: path.cloned(),
            git: match info.git {
                Some(GitAccess::Write) => "write",
                Some(_) => "read",
                None => "none",
            },
            tests: info
                .tests
                .iter()
                .map(|test| format!("{} = {}", test.name, arguments::shell(&test.argv)))
                .collect(),
        }
    }
}

/// All workspaces that the pack may use. `paths` has the known directories.
pub(crate) fn all(cx: &Cx<'_>, paths: &BTreeMap<String, String>) -> Vec<WorkspaceLine> {
    let names = cx.workspaces();
    let open = names
        .iter()
        .take(MAX_WORKSPACES)
        .filter_map(|name| cx.workspace(name).ok());
    open.map(|workspace| WorkspaceLine::new(workspace.info(), paths.get(workspace.name())))
        .collect()
}

/// Workspace of a repository, if it can be used.
pub(crate) fn of(
    cx: &Cx<'_>,
    repo_root: Option<&str>,
    paths: &BTreeMap<String, String>,
) -> Option<WorkspaceLine> {
    let root = Root::parse(repo_root?)?;
    let workspace = cx.workspace(&root.workspace).ok()?;
    Some(WorkspaceLine::new(workspace.info(), paths.get(workspace.name())))
}

/// Names of the usable workspaces for a message.
pub(crate) fn names(cx: &Cx<'_>) -> String {
    let names = cx.workspaces();
    match names.is_empty() {
        true => "no workspace is registered for this pack".to_owned(),
        false => format!("registered: {}", names.join(", ")),
    }
}

/// Directory of each workspace in which Git may run. Only for tools that run programs.
pub(crate) fn learn(cx: &Cx<'_>) -> BTreeMap<String, String> {
    let names = cx.workspaces();
    let known = names.into_iter().take(MAX_WORKSPACES).filter_map(|name| {
        let workspace = cx.workspace(&name).ok()?;
        workspace.info().git?;
        Some((name, toplevel(&workspace)?))
    });
    known.collect()
}

/// Directory of a workspace according to Git; `None` if the workspace is in no repository.
fn toplevel(workspace: &Workspace<'_>) -> Option<String> {
    let command = Command::new("git")
        .args([
            "--no-optional-locks",
            "rev-parse",
            "--show-toplevel",
            "--show-prefix",
        ])
        .timeout(Duration::from_secs(10))
        .output_limit(64 << 10);
    let outcome = workspace.run(&command).ok()?;
    if !outcome.succeeded() {
        return None;
    }
    let printed = outcome.stdout.text().into_owned();
    let (top, prefix) = printed.split_once('\n')?;
    let path = format!("{top}/{}", prefix.trim_end_matches('\n'));
    top.starts_with('/')
        .then(|| path.trim_end_matches('/').to_owned())
}

/// Repository as the pack names it, for an absolute path in a workspace. Other texts stay as they are, without
/// blanks and slashes at their end.
pub(crate) fn root_of(given: &str, paths: &BTreeMap<String, String>) -> String {
    let given = given.trim();
    let given = if given == "/" {
        given
    } else {
        given.trim_end_matches('/')
    };
    let below = |path: &str| {
        let rest = given.strip_prefix(path.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
    };
    let found = paths
        .iter()
        .filter_map(|(name, path)| Some((path.len(), name, below(path)?)));
    match found.max_by_key(|(length, _, _)| *length) {
        Some((_, name, rest)) => format!("{name}{rest}"),
        None => given.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absolute_path_becomes_the_nearest_workspace() {
        let paths = BTreeMap::from([
            ("mono".to_owned(), "/src/mono".to_owned()),
            ("app".to_owned(), "/src/mono/app/".to_owned()),
        ]);
        let cases = [
            ("/src/mono", "mono"),
            ("/src/mono/lib/", "mono/lib"),
            (" /src/mono/app/x", "app/x"),
            ("/src/monolith", "/src/monolith"),
            ("/etc", "/etc"),
            ("/", "/"),
            ("mono/lib/", "mono/lib"),
            ("/src/mono/../x", "mono/../x"),
        ];
        for (given, root) in cases {
            assert_eq!(root_of(given, &paths), root, "{given}");
        }
        assert_eq!(Root::parse("mono/../x"), None, "it is refused afterwards");
    }
}
