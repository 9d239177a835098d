//! Folders that clients keep their files in.

use std::path::{Path as FilePath, PathBuf};

use super::row::{Base, Path};

/// The folders of a user, with the variables that move some of them.
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
    /// Places of this system. Variables with empty values count as absent.
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

    /// The folder of caches, which may be emptied at any time.
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

    /// A program on the PATH, by the path that it is found under.
    #[must_use]
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let path = (self.variables)("PATH")?;
        std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|file| is_program(file))
    }
}

/// True for the path of a file that may be run.
pub(crate) fn is_program(file: &FilePath) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}
