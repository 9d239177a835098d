//! The tool that commits to a job's repository, or defers a commit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use test_readers::digest::Encoder;
use tollgate_kit::test_runs::names;
use tollgate_sdk::{Cx, Effect, Event, Tool, ToolError};

use super::current;
use super::git::job_of;
use crate::arguments::{MAX_ENTRY_CHARS, MAX_PATH_CHARS};
use crate::entity;
use crate::error::{GitFault, Reason, Refusals};
use crate::git::Git;
use crate::model::{JobId, StepId};
use crate::root::stays_inside;
use crate::store::batch::{self, Batch};
use crate::store::job::Job;
use crate::store::{short_id, step};

/// Most paths of a commit that its row names.
const MAX_PATHS: usize = 500;

/// Commit only the named paths of the job's repository, with a message from the job's template. With
/// defer_reason, commit nothing and return a batch token, which a few submissions may pass in place of a commit
/// hash. A commit closes the open batch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct GitCommit {
    job_id: JobId,
    /// Summary of the changes for the message. Required unless defer_reason is given.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    summary: Option<String>,
    /// Files or directories to commit, relative to the repository.
    #[serde(default)]
    paths: Vec<String>,
    /// Step that the commit belongs to. Default: the current step.
    step_id: Option<StepId>,
    /// Reason to defer the commit. Do not combine with summary or paths.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    defer_reason: Option<String>,
    /// Author name, if the Git configuration has none. Requires author_email.
    author_name: Option<String>,
    /// Author e-mail address. Requires author_name.
    author_email: Option<String>,
}

/// A commit, or a deferred one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Committed {
    /// Hash of the new commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_hash: Option<String>,
    /// Message of the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Committed paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    /// Token of the deferred commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_commit_token: Option<String>,
    /// Number of steps for which the token is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps_left: Option<u32>,
    /// True if the commit closed the open batch.
    settled_batch: bool,
}

impl Tool for GitCommit {
    const NAME: &'static str = "git_commit";
    const TITLE: &'static str = "Commit named paths";
    const EFFECT: Effect = Effect::Run;
    type Output = Committed;

    fn run(self, cx: &Cx<'_>) -> Result<Committed, ToolError> {
        self.check()?;
        match self.defer_reason.clone() {
            Some(reason) => self.defer(cx, reason),
            None => self.commit(cx),
        }
    }
}

impl GitCommit {
    fn check(&self) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("defer_reason", self.defer_reason.as_deref(), MAX_ENTRY_CHARS);
        refusals.optional_text("summary", self.summary.as_deref(), MAX_ENTRY_CHARS);
        if self.defer_reason.is_some() {
            if self.summary.is_some() || !self.paths.is_empty() {
                refusals.add(Reason::argument(
                    "defer_reason",
                    "cannot be combined with summary or paths",
                ));
            }
            return refusals.finish();
        }
        if self.summary.is_none() {
            refusals.add(Reason::argument("summary", "is missing"));
        }
        if self.paths.is_empty() {
            refusals.add(Reason::argument(
                "paths",
                "is empty; name the files or directories to commit",
            ));
        }
        refusals.at_most("paths", self.paths.len(), 500, "paths");
        self.check_paths(&mut refusals);
        self.check_author(&mut refusals);
        refusals.next_calls(|reason| self.status_for(reason));
        refusals.finish()
    }

    /// Call that shows the paths that can be named.
    fn status_for(&self, reason: &Reason) -> Option<tollgate_sdk::NextCall> {
        let is_path = matches!(reason, Reason::Git(GitFault::Path { .. }));
        is_path.then(|| super::job_call("git_status", &self.job_id))
    }

    fn check_paths(&self, refusals: &mut Refusals) {
        for path in &self.paths {
            if !stays_inside(path) || path.len() > MAX_PATH_CHARS {
                refusals.add(Reason::Git(GitFault::Path {
                    path: crate::arguments::clip(path),
                    fault: "leads out of the repository".to_owned(),
                }));
            }
        }
    }

    fn check_author(&self, refusals: &mut Refusals) {
        if self.author_name.is_some() != self.author_email.is_some() {
            refusals.add(Reason::argument(
                "author_name",
                "and author_email must be passed together",
            ));
        }
        for (field, text) in [
            ("author_name", &self.author_name),
            ("author_email", &self.author_email),
        ] {
            let odd = |text: &str| text.trim().is_empty() || text.contains(['\n', '<', '>', '/']);
            if text.as_deref().is_some_and(odd) {
                refusals.add(Reason::argument(
                    field,
                    "is blank or contains `<`, `>`, `/` or a line break",
                ));
            }
        }
    }

    /// Opens a batch. Does not need Git.
    fn defer(self, cx: &Cx<'_>, reason: String) -> Result<Committed, ToolError> {
        cx.transaction(|db| {
            let job = super::find_job(&db, &self.job_id)?;
            let policies = job.effective();
            let mut refusals = Refusals::default();
            super::after(&job, crate::state::Event::Submit)?;
            if !policies.allow_batch_commits {
                refusals.add(Reason::BatchForbidden);
            }
            if let Some(open) = batch::open(&db, &job.id)? {
                let commit = serde_json::json!({
                    "job_id": job.id, "summary": "<summary of the changes>", "paths": ["<a changed path>"],
                });
                let call = tollgate_sdk::NextCall::new("git_commit", commit);
                refusals.add_with(Reason::BatchOpen(open.token.to_string()), Some(call));
            }
            refusals.finish()?;
            let opened = Batch {
                token: short_id(cx, |id| batch::exists(&db, id))?,
                reason: reason.trim().to_owned(),
                steps_left: policies.batch_commit_max_steps,
                steps: Vec::new(),
                settled_by: None,
                created_at: cx.now(),
            };
            batch::insert(&db, &job.id, &opened)?;
            super::lifecycle::note(
                cx,
                &db,
                &job,
                &format!("commit deferred with {}: {reason}", opened.token),
            )?;
            Ok(Committed {
                commit_hash: None,
                message: None,
                files: Vec::new(),
                batch_commit_token: Some(opened.token.to_string()),
                steps_left: Some(opened.steps_left),
                settled_batch: false,
            })
        })
    }

    fn commit(self, cx: &Cx<'_>) -> Result<Committed, ToolError> {
        let job = job_of(cx, &self.job_id)?;
        let message = self.message(cx, &job)?;
        let git = Git::open_to_write(cx, job.repo_root.as_deref())?;
        if let Some(what) = git.in_progress()? {
            return Err(GitFault::InProgress(what.to_owned()).into());
        }
        let specs: Vec<String> = self.paths.iter().map(|path| git.pathspec(path)).collect();
        let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
        let files = self.changed(&git, &specs)?;
        let identity = self.identity();
        let mut commit: Vec<&str> = identity
            .iter()
            .flat_map(|setting| ["-c", setting.as_str()])
            .collect();
        // A commit that cannot succeed is refused here, before the index changes.
        git.check_identity(&commit)?;
        let mut add = vec!["add", "--all", "--"];
        add.extend(&specs);
        git.run(&add)?;
        // The repository may have a cleanup mode that removes lines of the message as comments.
        commit.extend([
            "commit",
            "--quiet",
            "--cleanup=whitespace",
            "--file=-",
            "--only",
            "--",
        ]);
        commit.extend(&specs);
        git.run_with(&commit, message.as_bytes())?;
        let hash = git.head()?.ok_or(GitFault::NothingToCommit)?;
        let settled_batch = cx.transaction(|db| batch::settle(&db, &job.id, &hash))?;
        entity::job(&job.id);
        cx.ledger().append(&recorded(&hash, &files))?;
        Ok(Committed {
            commit_hash: Some(hash),
            message: Some(message),
            files,
            batch_commit_token: None,
            steps_left: None,
            settled_batch,
        })
    }

    /// Git settings that name the committer.
    fn identity(&self) -> Vec<String> {
        let name = self.author_name.iter().map(|name| format!("user.name={name}"));
        let email = self
            .author_email
            .iter()
            .map(|email| format!("user.email={email}"));
        name.chain(email).collect()
    }

    /// Commit message from the job's template.
    fn message(&self, cx: &Cx<'_>, job: &Job) -> Result<String, ToolError> {
        let steps = cx.transaction(|db| step::all(&db, &job.id))?;
        let step = match &self.step_id {
            Some(id) => Some(super::find_step(&steps, id.as_str())?),
            None => current(&steps).map(|(_, step)| step).or(steps.last()),
        };
        let (id, title) = match step {
            Some(step) => (step.step_id.as_str(), step.spec.title.as_str()),
            None => ("", job.title.as_str()),
        };
        let summary = self.summary.as_deref().unwrap_or_default().trim();
        Ok(fill(
            &job.effective().commit_message_template,
            job.id.as_str(),
            id,
            title,
            summary,
        ))
    }

    /// Changed files below the named paths, which are also given as Git takes them. Fails for a path without changes.
    fn changed(&self, git: &Git<'_>, specs: &[&str]) -> Result<Vec<String>, ToolError> {
        let committable = git.committable(specs)?;
        let mut refusals = Refusals::default();
        let mut changed = Vec::new();
        for path in &self.paths {
            let wanted = path.trim_start_matches("./").trim_end_matches('/');
            let below = committable.iter().filter(|entry| {
                let rest = entry.path.strip_prefix(wanted);
                wanted.is_empty()
                    || wanted == "."
                    || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            let before = changed.len();
            changed.extend(below);
            if changed.len() == before {
                refusals.add(Reason::Git(GitFault::Path {
                    path: crate::arguments::clip(path),
                    fault: "has no changes".to_owned(),
                }));
            }
        }
        if changed.is_empty() {
            refusals = Refusals::default();
            let status = super::job_call("git_status", &self.job_id);
            refusals.add_with(Reason::Git(GitFault::NothingToCommit), Some(status));
        }
        refusals.next_calls(|reason| self.status_for(reason));
        refusals.finish()?;
        let mut files: Vec<String> = changed.into_iter().map(|entry| entry.path.clone()).collect();
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// A commit for the row of the call.
fn recorded(hash: &str, files: &[String]) -> Event {
    let mut fingerprint = Encoder::new("conductor.commit.v1");
    fingerprint.field(hash.as_bytes());
    let paths = names(files.iter().map(String::as_str));
    let note = match files.len() {
        1 => format!("commit {hash} of 1 file"),
        many => format!("commit {hash} of {many} files"),
    };
    Event::new("git.committed")
        .changed(paths.into_iter().take(MAX_PATHS))
        .mutation(&fingerprint.finish())
        .note(note)
}

/// Fills a template in one pass, so that braces in a summary stay as they are.
pub(crate) fn fill(template: &str, job: &str, step: &str, title: &str, summary: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text += before;
        let found = [
            ("job_id}", job),
            ("step_id}", step),
            ("title}", title),
            ("summary}", summary),
        ]
        .into_iter()
        .find_map(|(name, value)| after.strip_prefix(name).map(|rest| (rest, value)));
        match found {
            // A separator is removed with the empty value that it follows.
            Some((after, "")) => rest = without_separator(&mut text, after),
            Some((after, value)) => {
                text += value;
                rest = after;
            }
            None => {
                text.push('{');
                rest = after;
            }
        }
    }
    text + rest + "\n"
}

/// Removes the brackets around an empty value and the separator after it. Returns the rest of `after`.
fn without_separator<'t>(text: &mut String, after: &'t str) -> &'t str {
    let mut rest = after;
    for (open, close) in [('[', ']'), ('(', ')')] {
        if text.ends_with(open) && after.starts_with(close) {
            text.pop();
            rest = &after[close.len_utf8()..];
        }
    }
    let separated = rest.trim_start_matches([':', '-', '–', '—', '|', '/']);
    let begins_line = text.is_empty() || text.ends_with('\n');
    match begins_line || separated.len() < rest.len() {
        true => separated.trim_start_matches([' ', '\t']),
        false => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::fill;
    use crate::policy::COMMIT_TEMPLATE;

    #[test]
    fn a_message_without_a_step_has_no_separator_of_one() {
        let said = |template, step| fill(template, "JOB-1", step, "Title", "add {x}: it");
        for (template, with, without) in [
            (COMMIT_TEMPLATE, "S1: add {x}: it\n", "add {x}: it\n"),
            ("[{step_id}] {summary}", "[S1] add {x}: it\n", "add {x}: it\n"),
            (
                "{job_id}/{step_id}: {summary}",
                "JOB-1/S1: add {x}: it\n",
                "JOB-1/add {x}: it\n",
            ),
            (
                "{summary}\n\nStep {step_id}",
                "add {x}: it\n\nStep S1\n",
                "add {x}: it\n\nStep \n",
            ),
            (
                "{unknown} {summary}",
                "{unknown} add {x}: it\n",
                "{unknown} add {x}: it\n",
            ),
        ] {
            assert_eq!(
                (said(template, "S1"), said(template, "")),
                (with.to_owned(), without.to_owned())
            );
        }
    }
}
