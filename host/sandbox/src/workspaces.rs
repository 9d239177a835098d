//! Directories that the operator registered, opened once, and the rights of each component in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use tollgate_core::git_head::{self, Repository};
use tollgate_sdk::permit::{Asked, GitTerms};
use tollgate_sdk::tree::{FileWrite, Tree};
use tollgate_sdk::{WorkspaceError, WorkspaceInfo};

use crate::looked::Memory;

/// A registered directory.
#[derive(Debug)]
pub struct Workspace {
    /// Rights of components, set by the operator.
    pub info: WorkspaceInfo,
    /// Path of the directory when it was opened.
    pub path: PathBuf,
    /// The directory.
    pub tree: Tree,
    /// Operator's terms for the repository.
    pub git: GitTerms,
    /// Held by a git command that writes.
    pub git_writes: Mutex<()>,
    /// Data of earlier scans of its work tree.
    pub(crate) looked: Mutex<Memory>,
    /// Repository that it belongs to, if it existed at the start.
    repository: Option<Repository>,
}

/// A directory as the operator registers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// Path of the directory.
    pub path: PathBuf,
    /// Rights of components.
    pub info: WorkspaceInfo,
    /// Repository that git may use in it.
    pub git: GitTerms,
}

impl Workspace {
    /// Opens a directory. Its path is looked up only once, here.
    fn open(registration: Registration, umask: u32) -> Result<Workspace, String> {
        let Registration { path, info, git } = registration;
        let dir = Dir::open_ambient_dir(&path, ambient_authority())
            .map_err(|err| format!("workspace `{}`: cannot open {}: {err}", info.name, path.display()))?;
        Ok(Workspace {
            info,
            tree: Tree::new(dir, umask),
            repository: Repository::discover(&path, git.repository.as_deref()),
            path,
            git,
            git_writes: Mutex::new(()),
            looked: Mutex::default(),
        })
    }

    /// Commit that its work tree is at.
    pub fn git_head(&self) -> Option<String> {
        self.info.git?;
        git_head::head_below(self.tree.dir()).or_else(|| self.repository.as_ref()?.head())
    }

    /// Metadata of its work tree's index, if the index is in its usual place.
    pub(crate) fn git_index(&self) -> Option<Metadata> {
        git_head::index_below(self.tree.dir()).or_else(|| self.repository.as_ref()?.index())
    }

    /// True if its repository has uncommitted ignore rules.
    pub(crate) fn has_git_excludes(&self) -> bool {
        git_head::has_excludes_below(self.tree.dir())
            || self.repository.as_ref().is_some_and(Repository::has_excludes)
    }
}

/// All registered directories, by name.
#[derive(Debug, Clone, Default)]
pub struct Workspaces(Arc<BTreeMap<String, Arc<Workspace>>>);

impl Workspaces {
    /// Opens the directories that the operator registered. The error names every directory that cannot be opened, and
    /// every one that would expose the host's own data to packs.
    pub fn open(
        registrations: impl IntoIterator<Item = Registration>,
        umask: u32,
        data_dir: &Path,
    ) -> Result<Workspaces, Vec<String>> {
        let (mut opened, mut problems) = (BTreeMap::new(), Vec::new());
        for registration in registrations {
            if overlap(&registration.path, data_dir) {
                problems.push(format!(
                    "workspace `{}`: {} and the data directory {} overlap, so packs could \
                     reach the host's own files; move one of them",
                    registration.info.name,
                    registration.path.display(),
                    data_dir.display()
                ));
                continue;
            }
            match Workspace::open(registration, umask) {
                Ok(workspace) => {
                    opened.insert(workspace.info.name.clone(), Arc::new(workspace));
                }
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(Workspaces(Arc::new(opened)))
        } else {
            Err(problems)
        }
    }

    /// Names of the workspaces, sorted.
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Workspace with a name.
    pub fn get(&self, name: &str) -> Option<&Arc<Workspace>> {
        self.0.get(name)
    }
}

/// True if one directory is the other or below it. For a directory that does not exist yet, its future path counts.
pub fn overlap(one: &Path, other: &Path) -> bool {
    let (one, other) = (resolved(one), resolved(other));
    one.starts_with(&other) || other.starts_with(&one)
}

fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let exists = path
        .ancestors()
        .find_map(|place| Some((place, place.canonicalize().ok()?)));
    match exists {
        Some((place, real)) => real.join(path.strip_prefix(place).unwrap_or(Path::new(""))),
        None => path,
    }
}

/// Access of one component: requested, granted, and allowed by the workspaces.
#[derive(Debug, Default)]
pub struct Access {
    workspaces: BTreeMap<String, Reach>,
    programs: Vec<String>,
    /// Prefixes below which it requests to write, allowed or not.
    asks_to_write: Vec<String>,
}

/// A workspace as one component may use it.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Rights of the component.
    pub info: WorkspaceInfo,
    /// Workspace.
    pub workspace: Arc<Workspace>,
}

impl Access {
    /// Access for the requests of a component, to the workspaces that it was granted.
    pub fn new(workspaces: &Workspaces, asked: &Asked, granted: impl Fn(&str) -> bool) -> Access {
        let reach = |workspace: &Arc<Workspace>| Reach {
            info: asked.within(&workspace.info),
            workspace: Arc::clone(workspace),
        };
        Access {
            workspaces: workspaces
                .0
                .iter()
                .filter(|(name, _)| asked.reads(name) && granted(name))
                .map(|(name, workspace)| (name.clone(), reach(workspace)))
                .collect(),
            programs: asked.programs.clone(),
            asks_to_write: asked.write.clone(),
        }
    }

    /// Names of the workspaces, sorted.
    pub fn names(&self) -> Vec<String> {
        self.workspaces.keys().cloned().collect()
    }

    /// Workspace with a name, if the component may use it.
    pub fn workspace(&self, name: &str) -> Result<&Reach, WorkspaceError> {
        self.workspaces.get(name).ok_or_else(|| {
            WorkspaceError::Unknown(tollgate_core::text::clean(tollgate_core::text::cut(name, 100)))
        })
    }

    /// Prefixes below which the component requests to write, allowed or not.
    pub fn asks_to_write(&self) -> &[String] {
        &self.asks_to_write
    }

    /// Programs that the component may run with any arguments.
    pub fn programs(&self) -> &[String] {
        &self.programs
    }
}

/// A write that is deferred until its call's commit.
#[derive(Debug, Clone)]
pub struct DeferredWrite {
    /// Workspace.
    pub workspace: Arc<Workspace>,
    /// Change.
    pub change: FileWrite,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_overlap_whatever_they_are_called() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("home")).unwrap();
        std::os::unix::fs::symlink("home", place.path().join("link")).unwrap();
        let at = |path: &str| place.path().join(path);
        assert!(overlap(&at("home"), &at("link/not/yet")));
        assert!(overlap(&at("link/not/yet"), &at("home")));
        assert!(overlap(&at("home"), &at("link")));
        assert!(!overlap(&at("home"), &at("homes")));
    }
}
