//! Tools for snapshots and file descriptions of a job's repository.

use std::collections::BTreeMap;

use conductor_repo::describe::{self, Fault};
use conductor_repo::path::show;
use conductor_repo::snapshot::{Diff, Limits, Problem, Trouble};
use conductor_repo::tree::{Kind as FileKind, Tree as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Db, Effect, Hints, NextCall, Tool, ToolError};

use super::{find_job, job_call};
use crate::access;
use crate::arguments::{MAX_ENTRY_CHARS, MAX_PATH_CHARS, clip};
use crate::error::{Reason, Refusals};
use crate::model::JobId;
use crate::repo::kept::Known;
use crate::repo::knowledge;
use crate::repo::survey::{self, Before, Look};
use crate::store::description;
use crate::store::job::Job;
use crate::store::part::{self, Kind};
use crate::store::snapshot::SnapshotRecord;

/// Maximum number of paths of one kind in one reply.
const MAX_SHOWN_PATHS: usize = 100;
/// Maximum number of descriptions in one call.
const MAX_DESCRIPTIONS: usize = 500;

/// Take a snapshot of the job's repository: every file that .gitignore does not exclude, by content, and the
/// changes since the last snapshot. Reads only files whose size or time changed, and records their imports for
/// the map. Then call repo_map_update.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct RepoSnapshot {
    job_id: JobId,
    /// Name of a registered workspace, or a path inside one. Only for a job without repo_root.
    #[schemars(length(min = 1, max = MAX_PATH_CHARS))]
    repo_root: Option<String>,
    /// Note stored with the snapshot. Default none.
    #[schemars(length(min = 1, max = MAX_ENTRY_CHARS))]
    notes: Option<String>,
    /// Maximum number of files. Default 50,000.
    #[schemars(range(min = 1, max = 50_000))]
    max_entries: Option<u32>,
    /// Maximum depth of nested directories. Default 64.
    #[schemars(range(min = 1, max = 64))]
    max_depth: Option<u32>,
}

/// A new snapshot.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SnapshotView {
    job_id: JobId,
    /// Snapshot; the job's first one is its baseline.
    #[serde(flatten)]
    snapshot: SnapshotRecord,
    /// Paths changed since the previous snapshot; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<ChangedPaths>,
    /// Files added since the job's first snapshot that have no description, at most 100.
    new_without_description: Vec<String>,
    /// Paths that could not be read, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    /// True if a limit was reached and files are missing.
    partial: bool,
    /// Work done by the walk.
    effort: EffortView,
    /// Other warnings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Call that creates or updates the map.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_call: Option<NextCall>,
}

/// Changed paths between two snapshots, at most 100 of each kind.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedPaths {
    /// Added paths.
    added: Vec<String>,
    /// Removed paths.
    removed: Vec<String>,
    /// Paths with other content.
    modified: Vec<String>,
    /// Renamed paths with the same content, as `from -> to`.
    renamed: Vec<String>,
}

/// Work done by a walk.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EffortView {
    /// Directory entries listed.
    listed: u64,
    /// Entries that .gitignore excludes.
    ignored: u64,
    /// Files read.
    read: u64,
    /// Bytes read.
    bytes: u64,
}

impl Tool for RepoSnapshot {
    const NAME: &'static str = "repo_snapshot";
    const TITLE: &'static str = "Take a snapshot";
    const EFFECT: Effect = Effect::Run;
    type Output = SnapshotView;

    fn run(self, cx: &Cx<'_>) -> Result<SnapshotView, ToolError> {
        self.check(cx)?;
        let (job, before) = cx.transaction(|db| {
            let job = self.rooted(&db, find_job(&db, &self.job_id)?)?;
            let before = Before::load(&db, &job.id)?;
            Ok::<_, ToolError>((job, before))
        })?;
        let root = root_of(&job)?;
        let look = survey::look(cx, root, before, &self.limits())?;
        cx.transaction(|db| {
            let record = look.store(cx, &db, &job.id, self.notes)?;
            look.keep_facts(&db, &job.id)?;
            if self.repo_root.is_some() {
                set_root(cx, &db, &job)?;
            }
            let descriptions = description::all(&db, &job.id)?;
            Ok(view(job.id, record, look, &descriptions))
        })
    }
}

impl RepoSnapshot {
    fn check(&self, cx: &Cx<'_>) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("notes", self.notes.as_deref(), MAX_ENTRY_CHARS);
        super::conductor::check_root(cx, "repo_root", self.repo_root.as_deref(), &mut refusals);
        for (name, value, most) in [
            ("max_entries", self.max_entries, 50_000),
            ("max_depth", self.max_depth, 64),
        ] {
            if let Some(value) = value.filter(|value| !(1..=most).contains(value)) {
                refusals.add(Reason::argument(
                    name,
                    format!("is {value}, not within 1 to {most}"),
                ));
            }
        }
        refusals.finish()
    }

    /// Job with its own repository, or with the given one if it has none.
    fn rooted(&self, db: &Db<'_>, mut job: Job) -> Result<Job, ToolError> {
        match (&job.repo_root, &self.repo_root) {
            (Some(own), Some(given)) if own != given => Err(Reason::argument(
                "repo_root",
                format!(
                    "is {}, but the job's repo_root is {}; change it with conductor_answer",
                    clip(given),
                    clip(own)
                ),
            )
            .into()),
            (None, Some(given)) => {
                super::editable(db, &job.id, crate::state::Event::EditPlan)?;
                job.repo_root = Some(given.clone());
                Ok(job)
            }
            _ => Ok(job),
        }
    }

    fn limits(&self) -> Limits {
        let defaults = Limits::default();
        Limits {
            entries: self.max_entries.map_or(defaults.entries, |most| most as usize),
            depth: self.max_depth.map_or(defaults.depth, |most| most as usize),
            ..defaults
        }
    }
}

/// Repository of a job, or a refusal.
pub(super) fn root_of(job: &Job) -> Result<&str, ToolError> {
    let root = job.repo_root.as_deref();
    root.ok_or_else(|| Reason::Repository("the job has no repo_root".to_owned()).into())
}

/// Stores the repository that was just read, for a job without one.
fn set_root(cx: &Cx<'_>, db: &Db<'_>, looked_at: &Job) -> Result<(), ToolError> {
    let (mut job, seen) = super::editable(db, &looked_at.id, crate::state::Event::EditPlan)?;
    if job.repo_root.is_some() {
        return Ok(());
    }
    job.repo_root.clone_from(&looked_at.repo_root);
    job.plan.repo_exists = Some(true);
    super::save(cx, db, seen, &mut job)
}

fn view(
    job_id: JobId,
    snapshot: SnapshotRecord,
    look: Look<'_>,
    descriptions: &describe::Descriptions,
) -> SnapshotView {
    let mut new = knowledge::undescribed(look.new_files(), descriptions);
    new.truncate(MAX_SHOWN_PATHS);
    SnapshotView {
        changed: look.diff().map(changed),
        new_without_description: new,
        problems: problems(look.problems()),
        partial: look.is_partial(),
        effort: EffortView {
            listed: look.effort.listed,
            ignored: look.effort.ignored,
            read: look.effort.read,
            bytes: look.effort.bytes,
        },
        warnings: look.warnings,
        next_call: Some(job_call("repo_map_update", &job_id)),
        job_id,
        snapshot,
    }
}

fn changed(diff: &Diff) -> ChangedPaths {
    let shown = |paths: &[String]| paths.iter().take(MAX_SHOWN_PATHS).cloned().collect();
    let renamed = diff.renamed.iter().take(MAX_SHOWN_PATHS);
    ChangedPaths {
        added: shown(&diff.added),
        removed: shown(&diff.removed),
        modified: shown(&diff.modified),
        renamed: renamed
            .map(|rename| format!("{} -> {}", show(&rename.from), show(&rename.to)))
            .collect(),
    }
}

/// Problems of a walk as text.
pub(super) fn problems(problems: &[Problem]) -> Vec<String> {
    let told = problems.iter().take(MAX_SHOWN_PATHS).map(|problem| {
        let why = match &problem.what {
            Trouble::TooMany => "the snapshot is full; paths after it are missing",
            Trouble::TooDeep => "is nested too deep; its content is missing",
            Trouble::OtherRepository => "is a repository of its own",
            Trouble::NameNotUtf8 => "has a name that is not UTF-8",
            Trouble::Unreadable(why) | Trouble::Settings(why) => why,
        };
        format!("{}: {why}", show(&problem.path))
    });
    told.collect()
}

/// Describe files of the job's repository in one line each, or remove descriptions. Stores all of them, or
/// none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct RepoFileDescriptionsUpdate {
    job_id: JobId,
    /// Description for each path: one line of at most 200 characters; at most 500 paths.
    #[serde(default)]
    descriptions: BTreeMap<String, String>,
    /// Paths of the files whose descriptions are removed. Default none.
    #[serde(default)]
    remove: Vec<String>,
}

/// Stored and missing descriptions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Described {
    job_id: JobId,
    /// Number of descriptions stored.
    stored: usize,
    /// Number of descriptions removed.
    removed: usize,
    /// Number of files with a description.
    described: usize,
    /// Files added since the job's first snapshot that have no description, at most 100.
    new_without_description: Vec<String>,
    /// Number of other files without a description.
    others_without_description: usize,
}

impl Tool for RepoFileDescriptionsUpdate {
    const NAME: &'static str = "repo_file_descriptions_update";
    const TITLE: &'static str = "Describe files";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = Described;

    fn run(self, cx: &Cx<'_>) -> Result<Described, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        let known = Known::from_buckets(&part::load(&cx.db, &job.id, Kind::Files)?)?.unwrap_or_default();
        self.check(cx, &job, &known)?;
        let mut removed = 0;
        for path in &self.remove {
            removed += usize::from(description::remove(&cx.db, &job.id, path)?);
        }
        for (path, text) in &self.descriptions {
            description::set(&cx.db, &job.id, path, text.trim(), cx.now())?;
        }
        let all = description::all(&cx.db, &job.id)?;
        let lacking = known.undescribed(&all);
        let mut new = lacking.new;
        new.truncate(MAX_SHOWN_PATHS);
        Ok(Described {
            stored: self.descriptions.len(),
            removed,
            described: all.len(),
            new_without_description: new,
            others_without_description: lacking.old.len(),
            job_id: job.id,
        })
    }
}

impl RepoFileDescriptionsUpdate {
    fn check(&self, cx: &Cx<'_>, job: &Job, known: &Known) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        if self.descriptions.is_empty() && self.remove.is_empty() {
            refusals.add(Reason::argument(
                "descriptions",
                "is empty, and so is remove; pass at least one of them",
            ));
        }
        refusals.at_most("descriptions", self.descriptions.len(), MAX_DESCRIPTIONS, "paths");
        refusals.at_most("remove", self.remove.len(), MAX_DESCRIPTIONS, "paths");
        for path in self
            .remove
            .iter()
            .filter(|path| self.descriptions.contains_key(*path))
        {
            refusals.add(Reason::argument(
                "remove",
                format!("contains {}, which is also in descriptions", show(path)),
            ));
        }
        refusals.finish()?;
        let mut refusals = Refusals::default();
        let access = access::open(cx, job.repo_root.as_deref());
        for fault in describe::check(&known.snapshot, &self.descriptions) {
            // A file may be newer than the snapshot.
            let is_there = match (&fault, &access) {
                (Fault::UnknownFile { path, .. }, Ok(access)) => {
                    access.stat(path).is_ok_and(|entry| entry.kind == FileKind::File)
                }
                _ => false,
            };
            if !is_there {
                refusals.add(Reason::Description(said(&fault)));
            }
        }
        for (path, text) in &self.descriptions {
            if crate::arguments::is_placeholder(text) {
                refusals.add(Reason::Description(format!(
                    "the description of {} is a placeholder",
                    show(path)
                )));
            }
        }
        refusals.finish()
    }
}

fn said(fault: &Fault) -> String {
    match fault {
        Fault::UnknownFile { path, meant } => {
            let meant = meant
                .as_ref()
                .map(|meant| format!("; did you mean {}?", show(meant)));
            format!(
                "{} is not a file of the repository{}",
                show(path),
                meant.unwrap_or_default()
            )
        }
        fault => fault.to_string(),
    }
}
