//! Folders of clients' configuration files.

use std::path::{Path as FilePath, PathBuf};

use super::row::{Base, Path};

/// Folders of a user, and the variables that override some of them.
#[derive(Debug, Clone)]
pub struct Places {
    /// Folder of the project.
    pub project: PathBuf,
    home: PathBuf,
    config: PathBuf,
    desktop: PathBuf,
    variables: fn(&str) -> Option<PathBuf>,
}

impl Places {
    /// Folders of this system. Empty variables count as unset.
    #[must_use]
    pub fn new(project: PathBuf, home: PathBuf, variables: fn(&str) -> Option<PathBuf>) -> Places {
        let config = variables("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let config = config.unwrap_or_else(|| home.join(".config"));
        let desktop = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else {
            config.clone()
        };
        Places {
            project,
            home,
            config,
            desktop,
            variables,
        }
    }

    pub(super) fn of(&self, path: &Path) -> PathBuf {
        if let Some((variable, name)) = path.moved
            && let Some(folder) = (self.variables)(variable).filter(|folder| folder.is_absolute())
        {
            return if name.is_empty() {
                folder
            } else {
                folder.join(name)
            };
        }
        let base = match path.base {
            Base::Home => &self.home,
            Base::Config => &self.config,
            Base::Desktop => &self.desktop,
        };
        base.join(path.rest)
    }

    /// Cache folder, which may be emptied at any time.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        let moved = (self.variables)("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        moved.unwrap_or_else(|| {
            let name = if cfg!(target_os = "macos") {
                "Library/Caches"
            } else {
                ".cache"
            };
            self.home.join(name)
        })
    }

    /// Program on the PATH, by the path under which it is found.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let path = (self.variables)("PATH")?;
        std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|file| is_program(file))
    }
}

/// Returns whether a path is an executable file.
pub(crate) fn is_program(file: &FilePath) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}
