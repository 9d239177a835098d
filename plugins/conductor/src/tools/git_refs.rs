//! Tools for branches and tags of a job's repository.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_kit::git::lines;
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use super::git::job_of;
use crate::arguments::MAX_TITLE_CHARS;
use crate::error::{GitFault, Reason, Refusals};
use crate::git::Git;
use crate::model::JobId;

/// Refuses a name that Git does not accept or takes for an option.
fn check_name(field: &str, name: Option<&str>, refusals: &mut Refusals) {
    let Some(name) = name else {
        return;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
    let fine = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(plain)
        && name.len() <= 100
        && !name.contains("..")
        && !name.contains("//")
        && !name.ends_with(['/', '.'])
        && !name
            .split('/')
            .any(|part| part.starts_with('.') || part.ends_with(".lock"));
    if !fine {
        refusals.add(Reason::argument(
            field,
            "is not a valid name: use letters, digits, `.`, `_`, `-` and `/`",
        ));
    } else if is_ambiguous(name) {
        refusals.add(Reason::argument(
            field,
            format!("`{name}` means something else to Git: use a name that is not a commit's or `HEAD`, and does not begin with `refs/`, `heads/`, `tags/` or `remotes/`"),
        ));
    }
}

/// Checks whether Git reads a name as something other than the branch or tag of that name.
fn is_ambiguous(name: &str) -> bool {
    let first = name.split('/').next().unwrap_or_default();
    let is_pseudoref = !name.contains('/') && name.ends_with("HEAD");
    let is_commit = name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_pseudoref || is_commit || matches!(first, "refs" | "heads" | "tags" | "remotes")
}

/// Refuses a name that a reference of another kind has, because `git` would warn and take either.
fn check_free(git: &Git<'_>, name: &str, others: &str, what: &str) -> Result<(), ToolError> {
    if refs(git, others)?.iter().any(|other| other == name) {
        let mut refusals = Refusals::default();
        refusals.add(Reason::argument(
            "name",
            format!("`{name}` is already a {what}: use another name"),
        ));
        refusals.finish()?;
    }
    Ok(())
}

/// List the branches of the job's repository, or switch to one. A branch that does not exist is created.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct GitBranch {
    job_id: JobId,
    /// Branch to switch to, for example feature/csv. Default: only list the branches.
    #[schemars(length(min = 1, max = 100))]
    name: Option<String>,
}

/// Branches of a repository.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Branches {
    /// Current branch; absent when HEAD is detached.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    /// Names of the branches, sorted.
    branches: Vec<String>,
    /// True if this call created the branch.
    created: bool,
}

impl Tool for GitBranch {
    const NAME: &'static str = "git_branch";
    const TITLE: &'static str = "Branches";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Branches;

    fn run(self, cx: &Cx<'_>) -> Result<Branches, ToolError> {
        let mut refusals = Refusals::default();
        check_name("name", self.name.as_deref(), &mut refusals);
        refusals.finish()?;
        let job = job_of(cx, &self.job_id)?;
        let root = job.repo_root.as_deref();
        let mut created = false;
        let git = match &self.name {
            None => Git::open(cx, root)?,
            Some(name) => {
                let git = Git::open_to_write(cx, root)?;
                if let Some(what) = git.in_progress()? {
                    return Err(GitFault::InProgress(what.to_owned()).into());
                }
                created = !refs(&git, "refs/heads")?.contains(name);
                if created {
                    check_free(&git, name, "refs/tags", "tag")?;
                }
                match created {
                    true => git.run(&["switch", "--quiet", "--create", name])?,
                    false => git.run(&["switch", "--quiet", "--no-guess", name])?,
                };
                git
            }
        };
        Ok(Branches {
            current: git.status()?.head.branch,
            branches: refs(&git, "refs/heads")?,
            created,
        })
    }
}

/// Short names of the references below a prefix.
fn refs(git: &Git<'_>, prefix: &str) -> Result<Vec<String>, GitFault> {
    let printed = git.run(&["for-each-ref", "--format=%(refname:lstrip=2)", prefix])?;
    Ok(lines(&printed).collect())
}

/// List the tags of the job's repository, or tag the current commit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct GitTag {
    job_id: JobId,
    /// Tag to create, for example v1.2.0. Default: only list the tags.
    #[schemars(length(min = 1, max = 100))]
    name: Option<String>,
}

/// Tags of a repository.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tags {
    /// Names of the tags, sorted.
    tags: Vec<String>,
    /// Commit that was tagged.
    #[serde(skip_serializing_if = "Option::is_none")]
    tagged: Option<String>,
}

impl Tool for GitTag {
    const NAME: &'static str = "git_tag";
    const TITLE: &'static str = "Tags";
    const EFFECT: Effect = Effect::Run;
    type Output = Tags;

    fn run(self, cx: &Cx<'_>) -> Result<Tags, ToolError> {
        let mut refusals = Refusals::default();
        check_name("name", self.name.as_deref(), &mut refusals);
        refusals.at_most(
            "name",
            self.name.as_deref().unwrap_or_default().len(),
            MAX_TITLE_CHARS,
            "characters",
        );
        refusals.finish()?;
        let job = job_of(cx, &self.job_id)?;
        let root = job.repo_root.as_deref();
        let (git, tagged) = match &self.name {
            None => (Git::open(cx, root)?, None),
            Some(name) => {
                let git = Git::open_to_write(cx, root)?;
                check_free(&git, name, "refs/heads", "branch")?;
                let head = git.head()?.ok_or_else(|| Reason::not_found("commit", "HEAD"))?;
                git.run(&["tag", "--no-sign", name, &head])?;
                (git, Some(head))
            }
        };
        Ok(Tags {
            tags: refs(&git, "refs/tags")?,
            tagged,
        })
    }
}
