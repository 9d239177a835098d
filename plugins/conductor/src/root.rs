//! `repo_root`: the name of a registered workspace, or a path inside one.

/// A repository as the capabilities address it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    /// Name of the workspace.
    pub workspace: String,
    /// Directory inside the workspace, empty for the workspace itself.
    pub directory: String,
}

impl Root {
    /// Parses `workspace` or `workspace/path`. `None` if the path leaves the workspace or names none.
    pub(crate) fn parse(text: &str) -> Option<Root> {
        let text = text.trim().trim_end_matches('/');
        let (workspace, directory) = text.split_once('/').unwrap_or((text, ""));
        let plain =
            !workspace.is_empty() && workspace != "." && workspace != ".." && !workspace.contains('\\');
        (plain && (directory.is_empty() || stays_inside(directory))).then(|| Root {
            workspace: workspace.to_owned(),
            directory: directory.to_owned(),
        })
    }

    /// Text that names it.
    pub(crate) fn text(&self) -> String {
        match self.directory.as_str() {
            "" => self.workspace.clone(),
            directory => format!("{}/{directory}", self.workspace),
        }
    }

    /// Converts a path below the repository to one below the workspace.
    pub(crate) fn join(&self, path: &str) -> String {
        match (self.directory.as_str(), path) {
            ("", path) => path.to_owned(),
            (directory, "" | ".") => directory.to_owned(),
            (directory, path) => format!("{directory}/{path}"),
        }
    }
}

/// Checks that a path is relative and has no `..`.
pub(crate) fn stays_inside(path: &str) -> bool {
    let climbs = |part: &str| part == ".." || part.is_empty();
    !path.is_empty() && !path.contains(['\\', '\0']) && !path.trim_end_matches('/').split('/').any(climbs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_stay_in_their_workspace() {
        let root = Root::parse("main/packages/app/").unwrap();
        assert_eq!(
            (root.workspace.as_str(), root.directory.as_str()),
            ("main", "packages/app")
        );
        assert_eq!(root.join("src/a.py"), "packages/app/src/a.py");
        assert_eq!(Root::parse("main").unwrap().join("a"), "a");
        for bad in ["", "/etc", "..", "main/../other", "main//a", "C:\\x", "main/a\\b"] {
            assert_eq!(Root::parse(bad), None, "{bad}");
        }
    }
}
