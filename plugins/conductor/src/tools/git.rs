//! Tools that show the Git state of a job's repository.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_kit::git::text;
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use super::find_job;
use crate::error::{GitFault, Reason, Refusals};
use crate::git::{Git, parse};
use crate::model::JobId;
use crate::page::{self, Cursor};
use crate::store::job::Job;
use crate::submission::is_hash;

/// Maximum number of paths in one reply.
const MAX_SHOWN_PATHS: usize = 500;

impl From<GitFault> for ToolError {
    fn from(fault: GitFault) -> ToolError {
        Reason::Git(fault).into()
    }
}

/// Finds the job that a call names.
pub(super) fn job_of(cx: &Cx<'_>, id: &JobId) -> Result<Job, ToolError> {
    cx.transaction(|db| find_job(&db, id))
}

/// Show the branch, the head commit and all changed paths of the job's repository.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-charge" = "nothing"))]
pub(crate) struct GitStatus {
    job_id: JobId,
}

/// State of a repository.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StatusView {
    /// Current branch; absent when HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    /// Commit of HEAD; absent before the first commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// True if HEAD is detached.
    detached: bool,
    /// Unfinished operation, for example a merge or rebase.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_progress: Option<&'static str>,
    /// True if nothing is changed.
    clean: bool,
    /// Changed paths, at most 500.
    changes: Vec<parse::Entry>,
    /// Total number of changed paths.
    total: usize,
}

impl Tool for GitStatus {
    const NAME: &'static str = "git_status";
    const TITLE: &'static str = "Git status";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = StatusView;

    fn run(self, cx: &Cx<'_>) -> Result<StatusView, ToolError> {
        let job = job_of(cx, &self.job_id)?;
        let git = Git::open(cx, job.repo_root.as_deref())?;
        let status = git.status()?;
        let total = status.entries.len();
        let mut changes = status.entries;
        changes.truncate(MAX_SHOWN_PATHS);
        Ok(StatusView {
            detached: status.head.branch.is_none(),
            branch: status.head.branch,
            head: status.head.commit,
            in_progress: git.in_progress()?,
            clean: total == 0,
            changes,
            total,
        })
    }
}

/// List the changed paths with their line counts, since the current step began or since a commit. Includes
/// untracked files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-charge" = "nothing"))]
pub(crate) struct GitDiffSummary {
    job_id: JobId,
    /// Commit, tag or branch to compare with, for example main. Default: the state when the current step began.
    since: Option<String>,
}

/// A changed path.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeView {
    /// Path relative to the repository.
    path: String,
    /// Lines added and removed.
    lines: u64,
    /// True if the path did not exist before.
    new: bool,
}

/// Changes in a repository.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DiffView {
    /// Commit that is compared with; absent before the first commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Changed paths, at most 500.
    files: Vec<ChangeView>,
    /// Total number of changed paths.
    total: usize,
    /// Total number of lines added and removed.
    lines: u64,
}

impl Tool for GitDiffSummary {
    const NAME: &'static str = "git_diff_summary";
    const TITLE: &'static str = "Summarise changes";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = DiffView;

    fn run(self, cx: &Cx<'_>) -> Result<DiffView, ToolError> {
        let job = job_of(cx, &self.job_id)?;
        let git = Git::open(cx, job.repo_root.as_deref())?;
        let named = match &self.since {
            Some(name) => {
                let found = git.commit(name)?;
                let found = found.ok_or_else(|| Reason::not_found("commit", name))?;
                Some(crate::store::job::Baseline {
                    commit: Some(found),
                    ..Default::default()
                })
            }
            None => job.baseline,
        };
        let facts = git.facts(named.as_ref(), true)?;
        let since = match named {
            Some(baseline) => baseline.commit,
            None => git.head()?,
        };
        let files = facts.changed.into_iter();
        let mut files: Vec<ChangeView> = files
            .map(|change| ChangeView {
                path: change.path,
                lines: change.lines,
                new: change.new,
            })
            .collect();
        let total = files.len();
        let lines = files
            .iter()
            .fold(0_u64, |sum, file| sum.saturating_add(file.lines));
        files.truncate(MAX_SHOWN_PATHS);
        Ok(DiffView {
            since,
            files,
            total,
            lines,
        })
    }
}

/// Show the latest commits of the current branch, newest first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-charge" = "nothing"))]
pub(crate) struct GitLog {
    job_id: JobId,
    /// Maximum number of commits, 1 to 200. Default 20.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// next_cursor of the previous page. Default: the first page.
    cursor: Option<Cursor>,
}

/// A commit.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CommitLine {
    /// Hash of the commit.
    commit: String,
    /// Name of the author.
    author: String,
    /// Author date.
    at: String,
    /// First line of the message.
    subject: String,
}

/// Latest commits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogView {
    /// Commits, newest first.
    commits: Vec<CommitLine>,
    /// Value of `cursor` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Tool for GitLog {
    const NAME: &'static str = "git_log";
    const TITLE: &'static str = "Git log";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = LogView;

    fn run(self, cx: &Cx<'_>) -> Result<LogView, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 20);
        // The commit that the first page began with, and the number of commits before this page.
        let from = self.cursor.as_ref().and_then(|cursor| cursor.parts('.'));
        let from = from.and_then(|(head, skipped)| Some((head, skipped.parse::<u32>().ok()?)));
        if self.cursor.is_some() && !from.is_some_and(|(head, _)| is_hash(head)) {
            page::unknown(&mut refusals);
        }
        refusals.finish()?;
        let job = job_of(cx, &self.job_id)?;
        let git = Git::open(cx, job.repo_root.as_deref())?;
        let head = match from {
            Some((head, _)) => git.commit(head)?,
            None => git.head()?,
        };
        let Some(head) = head else {
            let mut refusals = Refusals::default();
            if from.is_some() {
                page::unknown(&mut refusals);
            }
            refusals.finish()?;
            return Ok(LogView {
                commits: Vec::new(),
                next_cursor: None,
            });
        };
        let skipped = from.map_or(0, |(_, skipped)| skipped);
        let (count, skip) = (format!("--max-count={}", limit + 1), format!("--skip={skipped}"));
        let printed = git.run(&[
            "log",
            "-z",
            &count,
            &skip,
            "--format=%H%x1f%an%x1f%aI%x1f%s",
            &head,
        ])?;
        let commits = printed.split(|byte| *byte == 0).filter_map(|record| {
            let mut fields = record.splitn(4, |byte| *byte == 0x1f).map(text);
            Some(CommitLine {
                commit: fields.next()?,
                author: fields.next()?,
                at: fields.next()?,
                subject: fields.next()?,
            })
        });
        let mut commits: Vec<CommitLine> = commits.collect();
        let has_more = commits.len() > limit as usize;
        commits.truncate(limit as usize);
        Ok(LogView {
            next_cursor: has_more.then(|| format!("{head}.{}", skipped.saturating_add(limit))),
            commits,
        })
    }
}
