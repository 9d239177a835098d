//! Access of the pack to a job's repository, and the warnings about missing access.

use std::collections::BTreeMap;

use tollgate_sdk::{Cx, Db, DbError, GitAccess, Workspace, WorkspaceInfo};

use crate::gate::{Gate, Need};
use crate::git::Git;
use crate::model::StepId;
use crate::policy::Policies;
use crate::root::Root;
use crate::step::StepSpec;
use crate::store;
use crate::store::job::Job;
use crate::store::step::Step;
use crate::workspaces::{self, WorkspaceLine};

/// A repository that can be read.
pub(crate) struct Access<'a> {
    pub root: Root,
    pub workspace: Workspace<'a>,
}

impl Access<'_> {
    /// Checks whether the directory is in a repository: its own, one of the workspace, or one that contains the
    /// workspace.
    fn in_repository(&self, paths: &BTreeMap<String, String>) -> bool {
        let has_git = |directory: &str| {
            let place = format!("{directory}/.git");
            self.workspace.stat(place.trim_start_matches('/')).is_ok()
        };
        let inner = self.root.directory.match_indices('/').map(|(at, _)| at);
        let mut ends = inner.chain([0, self.root.directory.len()]);
        paths.contains_key(self.workspace.name())
            || ends.any(|end| self.root.directory.get(..end).is_some_and(has_git))
    }
}

/// Opens a job's repository, or explains why it cannot be read.
pub(crate) fn open<'a>(cx: &Cx<'a>, repo_root: Option<&str>) -> Result<Access<'a>, String> {
    let Some(text) = repo_root else {
        return Err("the job has no repo_root".to_owned());
    };
    let Some(root) = Root::parse(text) else {
        return Err(format!(
            "repo_root {text:?} is neither a workspace nor a path in one"
        ));
    };
    let workspace = cx.workspace(&root.workspace).map_err(|err| err.to_string())?;
    Ok(Access { root, workspace })
}

/// Workspace of a job's repository, with its directory if that is known.
pub(crate) fn workspace_line(
    cx: &Cx<'_>,
    db: &Db<'_>,
    repo_root: Option<&str>,
) -> Result<Option<WorkspaceLine>, DbError> {
    match repo_root {
        Some(_) => Ok(workspaces::of(cx, repo_root, &store::workspace::paths(db)?)),
        None => Ok(None),
    }
}

/// Warns about a repository that cannot be read.
pub(crate) fn workspace_warning(cx: &Cx<'_>, repo_root: Option<&str>) -> Vec<String> {
    let Some(root) = repo_root else {
        return Vec::new();
    };
    match open(cx, Some(root)) {
        Ok(_) => Vec::new(),
        Err(why) => vec![format!(
            "{why} ({}); gates that check files, Git or commands will fail. Ask the operator to register the workspace \
             under [workspaces.NAME]",
            workspaces::names(cx)
        )],
    }
}

/// Checks whether the workspace of a job has a registered test `default`.
pub(crate) fn has_tests(cx: &Cx<'_>, repo_root: Option<&str>) -> bool {
    let access = open(cx, repo_root);
    access.is_ok_and(|access| access.workspace.info().test("default").is_some())
}

/// Command line as it will run: a registered test may be given by its name alone.
pub(crate) fn command(info: &WorkspaceInfo, command: &[String]) -> Vec<String> {
    match command {
        [name] => info
            .test(name)
            .map_or_else(|| command.to_vec(), |test| test.argv.clone()),
        _ => command.to_vec(),
    }
}

/// Checks whether a command will be allowed to start.
fn may_run(info: &WorkspaceInfo, words: &[String]) -> bool {
    let words = command(info, words);
    let registered = info.tests.iter().any(|test| test.argv == words);
    registered || (words.first().is_some_and(|program| program == "git") && info.git.is_some())
}

/// Warns about everything that will fail for lack of a grant or of a repository, before any work is done. `paths` has
/// the directories of workspaces that are in a repository.
pub(crate) fn warnings(
    cx: &Cx<'_>,
    repo_root: Option<&str>,
    policies: &Policies,
    steps: &[(StepId, &StepSpec)],
    paths: &BTreeMap<String, String>,
) -> Vec<String> {
    let access = open(cx, repo_root);
    let in_repository = access.as_ref().is_ok_and(|access| access.in_repository(paths));
    let mut warnings = Vec::new();
    for (id, spec) in steps {
        for gate in spec.parsed_gates() {
            let why = gate
                .needs()
                .into_iter()
                .find_map(|need| lacking(&access, need, in_repository));
            if let Some(why) = why {
                warnings.push(format!("step {id}: gate {} will fail: {why}", gate.kind()));
            }
        }
    }
    let git = access
        .as_ref()
        .ok()
        .and_then(|access| access.workspace.info().git);
    let commits = policies.require_commit_per_step || steps.iter().any(|(_, spec)| spec.strict_git);
    if commits && git != Some(GitAccess::Write) {
        warnings.push(
            "commits are required, but git_commit cannot create them here: commit outside, or set git = \"write\" for \
             the workspace"
                .to_owned(),
        );
    }
    if policies.require_file_descriptions && git.is_none() {
        warnings.push("require_file_descriptions will refuse every step: Git is not available".to_owned());
    }
    if steps
        .iter()
        .any(|(_, spec)| spec.parsed_gates().contains(&Gate::HumanApproval))
    {
        warnings.push("a person must approve steps with step_approve".to_owned());
    }
    warnings
}

/// Warning that a job will commit and Git does not know who does. Runs Git.
pub(crate) fn nobody(cx: &Cx<'_>, job: &Job, steps: &[Step]) -> Option<String> {
    let wants = |step: &Step| step.spec.strict_git || step.spec.parsed_gates().iter().any(Gate::wants_commit);
    if !job.effective().require_commit_per_step && !steps.iter().any(wants) {
        return None;
    }
    let git = Git::open_to_write(cx, job.repo_root.as_deref()).ok()?;
    (!git.knows_committer().ok()?).then(|| {
        "Git has no user.name and user.email here: pass author_name and author_email to git_commit, or ask a person to \
         set them with git config"
            .to_owned()
    })
}

/// Missing grant for a fact that a gate needs.
fn lacking(access: &Result<Access<'_>, String>, need: Need<'_>, in_repository: bool) -> Option<String> {
    let access = match access {
        Ok(access) => access,
        Err(why) => return Some(why.clone()),
    };
    let info = access.workspace.info();
    match need {
        Need::Git if info.git.is_none() => Some(format!(
            "workspace {} does not allow Git; set git = \"read\"",
            access.root.workspace
        )),
        Need::Git if !in_repository => Some(format!(
            "{} is not in a Git repository; run git init there, or use gates on files and commands",
            access.root.text()
        )),
        Need::Command(words) if !may_run(info, words) => {
            let names: Vec<&str> = info.tests.iter().map(|test| test.name.as_str()).collect();
            let known = match names.is_empty() {
                true => "none is registered".to_owned(),
                false => format!("registered: {}", names.join(", ")),
            };
            Some(format!(
                "`{}` is not registered ({known}); add the command under [workspaces.{}] tests",
                words.join(" "),
                access.root.workspace
            ))
        }
        Need::Git | Need::Command(_) | Need::Path(_) | Need::Content(_) | Need::Map => None,
    }
}
