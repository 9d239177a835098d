//! Findings about Git in workspaces: whether its settings can work.

use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tollgate_sandbox::workspaces::Registration;
use tollgate_sdk::permit::{self, Permitted, Unusable};
use tollgate_sdk::{Command, GitAccess};

use super::Finding;

/// Checks each workspace's prefixes, repository and accepted settings.
pub fn check(workspaces: &[Registration]) -> Vec<Finding> {
    workspaces.iter().flat_map(workspace).collect()
}

fn workspace(workspace: &Registration) -> Vec<Finding> {
    let name = &workspace.info.name;
    let about = format!("workspace {name}");
    let mut found = Vec::new();
    let prefixes = workspace.info.write_prefixes.iter();
    found.extend(prefixes.filter(|prefix| names_git(prefix)).map(|prefix| {
        Finding::warning(
            about.clone(),
            format!("`write` lists {prefix:?}, but packs may not write files of Git"),
        )
        .remedy(format!(
            "remove the entry from `write` in [workspaces.{name}]; to let packs commit, set git = \"write\""
        ))
    }));
    let accepted = workspace.git.accepted.iter();
    found.extend(accepted.filter_map(|pattern| Some((pattern, unfit(pattern)?))).map(|(pattern, why)| {
        Finding::warning(about.clone(), format!("git_config names {pattern:?}, which {why}")).remedy(format!(
            "name settings in [workspaces.{name}] as `git config --list` does: git_config = [\"filter.lfs.*\"]"
        ))
    }));
    if let Some(path) = workspace.git.repository.as_deref().filter(|path| !path.is_dir()) {
        let what = format!(
            "`repository` is {}, which does not exist or is not a directory",
            path.display()
        );
        let remedy = format!(
            "set `repository` in [workspaces.{name}] to the top of the work tree, or delete the key if the workspace is the \
             top of the work tree"
        );
        found.push(Finding::problem(about, what).remedy(remedy));
        return found;
    }
    found.extend(
        workspace
            .info
            .git
            .and_then(|access| repository(workspace, access)),
    );
    found
}

/// Returns whether a prefix is a git directory or below one.
fn names_git(prefix: &str) -> bool {
    prefix.split('/').any(permit::is_git_name)
}

/// Reason why a pattern can never match a setting, if it cannot.
fn unfit(pattern: &str) -> Option<&'static str> {
    let small = pattern.to_ascii_lowercase();
    if small.matches('*').count() > 1 {
        return Some("has more than one `*`");
    }
    if small == "include" || small.starts_with("include.") || small.starts_with("includeif.") {
        return Some("is never accepted");
    }
    let is_setting = small.contains('.') && !small.starts_with(['.', '*']) && !small.ends_with('.');
    (!is_setting || small.contains(['=', ' '])).then_some("is not the name of a setting")
}

/// Checks whether git can run in the workspace now.
fn repository(workspace: &Registration, access: GitAccess) -> Option<Finding> {
    let name = &workspace.info.name;
    let about = format!("workspace {name}");
    // A directory that cannot be opened is reported elsewhere.
    let tree = Dir::open_ambient_dir(&workspace.path, ambient_authority()).ok()?;
    let Ok(Permitted::Git(status)) =
        permit::command(&workspace.info, &[], &Command::new("git").args(["status"]))
    else {
        return None;
    };
    match permit::repository(name, &tree, &workspace.git, &status) {
        Ok(_) => None,
        Err(Unusable::Missing) => {
            let is_said = access == GitAccess::Write
                || workspace.git.repository.is_some()
                || !workspace.git.accepted.is_empty();
            is_said.then(|| {
                let what = format!("{} is not in a Git repository, so git does not run there", shown(&workspace.path));
                Finding::warning(about, what).remedy(format!(
                    "run `git init` in the workspace, or set `repository` in [workspaces.{name}] to the intended \
                     repository"
                ))
            })
        }
        Err(Unusable::Refused(why)) => Some(Finding::warning(about, why).remedy(format!(
            "fix the cause, or set git = \"none\" in [workspaces.{name}]"
        ))),
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use tollgate_sdk::WorkspaceInfo;
    use tollgate_sdk::permit::GitTerms;

    use super::*;

    fn told(path: &Path, write: &str, git: GitTerms) -> String {
        let registration = Registration {
            path: path.to_owned(),
            info: WorkspaceInfo {
                name: "main".to_owned(),
                write_prefixes: vec![write.to_owned()],
                git: Some(GitAccess::Read),
                tests: Vec::new(),
            },
            git,
        };
        let found = check(&[registration]);
        assert!(found.iter().all(|finding| finding.remedy.is_some()));
        found
            .iter()
            .map(|finding| finding.what.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn what_cannot_come_true_is_told() {
        let place = tempfile::tempdir().unwrap();
        let none = GitTerms::default;
        assert_eq!(told(place.path(), "src/", none()), "");
        for prefix in [".git/", ".GIT/hooks/", "sub/.git/"] {
            assert!(
                told(place.path(), prefix, none()).contains("files of Git"),
                "{prefix}"
            );
        }
        let gone = GitTerms {
            repository: Some(place.path().join("gone")),
            ..none()
        };
        assert!(told(place.path(), ".", gone).contains("gone, which does not exist or is not a directory"));
        let empty = GitTerms {
            repository: Some(place.path().to_owned()),
            ..none()
        };
        assert!(told(place.path(), ".", empty).contains("is not in a Git repository"));
    }

    #[test]
    fn settings_that_no_repository_has_are_told() {
        for good in ["filter.lfs.*", "core.hooksPath", "merge.*.driver"] {
            assert_eq!(unfit(good), None, "{good}");
        }
        for bad in [
            "filter",
            "*",
            "filter.*.*",
            "include.path",
            "includeIf.*",
            "filter.lfs.clean=x",
            ".x",
            "a b.c",
        ] {
            assert!(unfit(bad).is_some(), "{bad}");
        }
    }
}
