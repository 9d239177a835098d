//! The directories the operator registered, opened once, and what each component may do in them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate_sdk::permit::Asked;
use tollgate_sdk::tree::{FileWrite, Tree};
use tollgate_sdk::{WorkspaceError, WorkspaceInfo};

/// A registered directory.
#[derive(Debug)]
pub struct Workspace {
    /// What the operator lets components do in it.
    pub info: WorkspaceInfo,
    /// The directory.
    pub tree: Tree,
}

/// All registered directories, by name.
#[derive(Debug, Clone, Default)]
pub struct Workspaces(BTreeMap<String, Arc<Workspace>>);

impl Workspaces {
    /// Opened directories.
    pub fn new(workspaces: impl IntoIterator<Item = Workspace>) -> Workspaces {
        Workspaces(
            workspaces
                .into_iter()
                .map(|workspace| (workspace.info.name.clone(), Arc::new(workspace)))
                .collect(),
        )
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Arc<Workspace>> {
        self.0.get(name)
    }
}

/// What one component may touch: what it asked for, was granted, and the workspaces allow.
#[derive(Debug, Default)]
pub struct Access {
    workspaces: BTreeMap<String, Reach>,
    programs: Vec<String>,
}

/// One workspace as one component has it.
#[derive(Debug, Clone)]
pub struct Reach {
    /// What the component may do.
    pub info: WorkspaceInfo,
    /// Where.
    pub workspace: Arc<Workspace>,
}

impl Access {
    /// What a component asked for, of the workspaces it was granted.
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
        }
    }

    /// The names of the workspaces, sorted.
    pub fn names(&self) -> Vec<String> {
        self.workspaces.keys().cloned().collect()
    }

    /// One workspace, if the component may use it.
    pub fn workspace(&self, name: &str) -> Result<&Reach, WorkspaceError> {
        self.workspaces
            .get(name)
            .ok_or_else(|| WorkspaceError::Unknown(crate::text::clean(crate::text::cut(name, 100))))
    }

    /// Programs the component may run with any arguments.
    pub fn programs(&self) -> &[String] {
        &self.programs
    }
}

/// A write that waits for its call's commit.
#[derive(Debug, Clone)]
pub struct HeldBack {
    /// Where.
    pub workspace: Arc<Workspace>,
    /// What.
    pub change: FileWrite,
}
