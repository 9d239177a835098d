//! Workspaces of native sessions: real directories under the host's rules, and real processes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::spawn;
use crate::permit::{self, Asked, GitBounds, GitCommand, GitTerms, Permitted, Refused, Unusable};
use crate::process::MAX_OUTPUT;
use crate::tree::{FileWrite, Tree};
use crate::{
    Command, Effect, FileEntry, GitAccess, Listing, Outcome, ProcessError, TestCommand, WorkspaceError,
    WorkspaceInfo,
};

/// A directory that an operator registered. Read-only, without tests and git, until more is allowed.
///
/// ```
/// # use tollgate_sdk::{GitAccess, native::Workspace};
/// let folder = tempfile::tempdir().unwrap();
/// let workspace = Workspace::new("main", folder.path())
///     .write("notes/")
///     .git(GitAccess::Read)
///     .test("default", &["cargo", "test"]);
/// # let _ = workspace;
/// ```
#[derive(Debug, Clone)]
pub struct Workspace {
    info: WorkspaceInfo,
    tree: std::sync::Arc<Tree>,
    git: GitTerms,
}

impl Workspace {
    /// Opens a directory under a name.
    ///
    /// # Panics
    /// If the directory cannot be opened.
    #[must_use]
    pub fn new(name: &str, path: &Path) -> Workspace {
        let dir = Dir::open_ambient_dir(path, ambient_authority())
            .unwrap_or_else(|err| panic!("{} cannot be opened: {err}", path.display()));
        Workspace {
            info: WorkspaceInfo {
                name: name.to_owned(),
                ..WorkspaceInfo::default()
            },
            tree: std::sync::Arc::new(Tree::new(dir, 0o022)),
            git: GitTerms::default(),
        }
    }

    /// Lets packs that request it write below a prefix.
    #[must_use]
    pub fn write(mut self, prefix: &str) -> Workspace {
        self.info.write_prefixes.push(prefix.to_owned());
        self
    }

    /// Lets packs that request it use git.
    #[must_use]
    pub fn git(mut self, access: GitAccess) -> Workspace {
        self.info.git = Some(access);
        self
    }

    /// Lets git use the repository in this directory, which is outside the workspace.
    #[must_use]
    pub fn repository(mut self, path: &Path) -> Workspace {
        self.git.repository = Some(path.to_owned());
        self
    }

    /// Accepts settings of the repository's own configuration, for example `filter.lfs.*`.
    #[must_use]
    pub fn git_config(mut self, pattern: &str) -> Workspace {
        self.git.accepted.push(pattern.to_owned());
        self
    }

    /// Registers a test command.
    #[must_use]
    pub fn test(mut self, name: &str, argv: &[&str]) -> Workspace {
        self.info.tests.push(TestCommand {
            name: name.to_owned(),
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
        });
        self.info.tests.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }
}

impl Workspace {
    /// Runs git as the host would.
    fn run_git(&self, git: &GitCommand, command: &Command) -> Result<Outcome, ProcessError> {
        let dir = self.tree.dir();
        let found = match permit::repository(&self.info.name, dir, &self.git, git) {
            Ok(found) => found,
            Err(Unusable::Missing) => return Ok(permit::no_repository(&self.info.name)),
            Err(Unusable::Refused(why)) => return Err(ProcessError::Denied(why)),
        };
        let run = |arguments: &[String], command: &Command| {
            let argv: Vec<String> = std::iter::once("git".to_owned())
                .chain(arguments.iter().cloned())
                .collect();
            spawn::run(dir, &argv, &found.environment, command)
        };
        let bounds = GitBounds {
            tree: dir,
            top: &found.prefix,
            prefixes: &self.info.write_prefixes,
        };
        let asking = Command::new("git")
            .timeout(command.timeout)
            .output_limit(MAX_OUTPUT);
        git.keep_within(bounds, &mut |question| run(question, &asking))?;
        let outcome = run(&git.arguments, command)?;
        git.kept_within(bounds)?;
        Ok(outcome)
    }
}

/// All workspaces of a session, with the pack's requests and the granted programs.
#[derive(Default)]
pub(super) struct Workspaces {
    asked: Asked,
    programs: Vec<String>,
    workspaces: BTreeMap<String, Workspace>,
    effect: Cell<Option<Effect>>,
    held_back: RefCell<Vec<(String, FileWrite)>>,
}

impl Workspaces {
    pub(super) fn new(asked: Asked) -> Workspaces {
        Workspaces {
            asked,
            ..Workspaces::default()
        }
    }

    pub(super) fn add(&mut self, workspace: Workspace) {
        self.workspaces.insert(workspace.info.name.clone(), workspace);
    }

    /// Grants a program. The pack must request the program as well.
    pub(super) fn allow(&mut self, program: &str) {
        if self.asked.programs.iter().any(|asked| asked == program) {
            self.programs.push(program.to_owned());
        }
    }

    /// Sets the effect of the next call.
    pub(super) fn enter(&self, effect: Effect) {
        self.effect.set(Some(effect));
        self.held_back.borrow_mut().clear();
    }

    /// Ends a call. Applies deferred writes if the call succeeded. Returns the writes that failed.
    pub(super) fn leave(&self, succeeded: bool) -> Vec<String> {
        self.effect.set(None);
        let held_back = self.held_back.take();
        let held_back = held_back.into_iter().filter(|_| succeeded);
        held_back
            .filter_map(|(name, change)| {
                let workspace = self.workspaces.get(&name)?;
                workspace.tree.apply(&change).err().map(|err| err.to_string())
            })
            .collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        let names = self.workspaces.keys();
        names.filter(|name| self.asked.reads(name)).cloned().collect()
    }

    pub(super) fn describe(&self, name: &str) -> Result<WorkspaceInfo, WorkspaceError> {
        self.find(name)
            .map(|workspace| self.asked.within(&workspace.info))
    }

    pub(super) fn list(
        &self,
        name: &str,
        directory: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        self.find(name)?.tree.list(directory, after, limit)
    }

    pub(super) fn list_unless(
        &self,
        name: &str,
        directory: &str,
        known: Option<u64>,
        limit: u32,
    ) -> Result<Option<Listing>, WorkspaceError> {
        self.find(name)?.tree.list_unless(directory, known, limit)
    }

    pub(super) fn stat(&self, name: &str, path: &str) -> Result<FileEntry, WorkspaceError> {
        self.find(name)?.tree.stat(path)
    }

    pub(super) fn read(
        &self,
        name: &str,
        path: &str,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<u8>, WorkspaceError> {
        self.find(name)?.tree.read(path, offset, limit)
    }

    pub(super) fn write(
        &self,
        name: &str,
        path: &str,
        content: &[u8],
        append: bool,
    ) -> Result<(), WorkspaceError> {
        let change = FileWrite::new(path, content, append)?;
        let workspace = self.find(name)?;
        if !self.asked.within(&workspace.info).may_write(&change.path) {
            return Err(WorkspaceError::Denied(format!(
                "`{path}` is not below a prefix that the pack may write to"
            )));
        }
        match self.effect.get() {
            Some(Effect::Read) => Err(WorkspaceError::Denied("this tool is read-only".to_owned())),
            Some(Effect::Write) => {
                self.held_back.borrow_mut().push((name.to_owned(), change));
                Ok(())
            }
            Some(Effect::Run) | None => workspace.tree.apply(&change),
        }
    }

    pub(super) fn run(&self, name: &str, command: &Command) -> Result<Outcome, ProcessError> {
        if self.effect.get() != Some(Effect::Run) {
            return Err(ProcessError::Denied(
                "only `run` tools start processes".to_owned(),
            ));
        }
        let workspace = self
            .find(name)
            .map_err(|_| ProcessError::UnknownWorkspace(name.to_owned()))?;
        let info = self.asked.within(&workspace.info);
        let permitted = permit::command(&info, &self.programs, command).map_err(|refused| {
            ProcessError::Denied(match refused {
                Refused::Program => format!("the pack may not run `{}` in `{name}`", command.program),
                Refused::Git(why) => why,
            })
        })?;
        match permitted {
            Permitted::Program(argv) => spawn::run(workspace.tree.dir(), &argv, &[], command),
            Permitted::Git(git) => workspace.run_git(&git, command),
        }
    }

    fn find(&self, name: &str) -> Result<&Workspace, WorkspaceError> {
        self.workspaces
            .get(name)
            .filter(|_| self.asked.reads(name))
            .ok_or_else(|| WorkspaceError::Unknown(name.to_owned()))
    }
}
