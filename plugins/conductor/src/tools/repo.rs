//! Snapshots of a job's repository, and what is said of its files.

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
use crate::arguments::{ENTRY, PATH, clip};
use crate::error::{Reason, Refusals};
use crate::model::JobId;
use crate::repo::kept::Known;
use crate::repo::knowledge;
use crate::repo::survey::{self, Before, Look};
use crate::store::description;
use crate::store::job::Job;
use crate::store::part::{self, Kind};
use crate::store::snapshot::SnapshotRecord;

/// Paths of one kind in one reply.
const SHOWN: usize = 100;
/// Descriptions in one call.
const AT_ONCE: usize = 500;

/// Take a snapshot of the job's repository: every file that .gitignore does not exclude, by its content,
/// and what changed since the last one. Only files whose size or time changed are read again, and what
/// they import is noted for the map.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoSnapshot {
    /// The job.
    job_id: JobId,
    /// The name of a registered workspace, or a path in one, if the job has none yet.
    #[schemars(length(min = 1, max = PATH))]
    repo_root: Option<String>,
    /// What to remember about this moment.
    #[schemars(length(min = 1, max = ENTRY))]
    notes: Option<String>,
    /// At most so many files; 50,000 if left out.
    #[schemars(range(min = 1, max = 50_000))]
    max_entries: Option<u32>,
    /// At most so many directories inside each other; 64 if left out.
    #[schemars(range(min = 1, max = 64))]
    max_depth: Option<u32>,
}

/// A snapshot that was just taken.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SnapshotView {
    /// The job.
    job_id: JobId,
    /// The snapshot; the job's first is its baseline.
    #[serde(flatten)]
    snapshot: SnapshotRecord,
    /// The paths that changed since the one before; absent for the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<ChangedPaths>,
    /// Files that came since the job's first snapshot and have no description, at most 100.
    new_without_description: Vec<String>,
    /// What could not be seen, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    /// A limit was reached: files are missing.
    partial: bool,
    /// What it took.
    effort: EffortView,
    /// What else should be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The call that makes or updates the map.
    next_call: NextCall,
}

/// Paths that changed between two snapshots, at most 100 of each kind.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedPaths {
    /// Came.
    added: Vec<String>,
    /// Went.
    removed: Vec<String>,
    /// Have other content.
    modified: Vec<String>,
    /// Moved with their content, as `from -> to`.
    renamed: Vec<String>,
}

/// What a walk did.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EffortView {
    /// Entries of directories looked at.
    listed: u64,
    /// Entries that .gitignore excluded.
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
        self.check()?;
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
    fn check(&self) -> Result<(), ToolError> {
        let mut refusals = Refusals::default();
        refusals.optional_text("notes", self.notes.as_deref(), ENTRY);
        super::conductor::check_root("repo_root", self.repo_root.as_deref(), &mut refusals);
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

    /// The job with its repository: its own, or the given one if it has none.
    fn rooted(&self, db: &Db<'_>, mut job: Job) -> Result<Job, ToolError> {
        match (&job.repo_root, &self.repo_root) {
            (Some(own), Some(given)) if own != given => Err(Reason::argument(
                "repo_root",
                format!(
                    "is {}, but the job's is {}; conductor_answer changes it",
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

/// The repository of a job, or that it has none.
pub(super) fn root_of(job: &Job) -> Result<&str, ToolError> {
    let root = job.repo_root.as_deref();
    root.ok_or_else(|| Reason::Repository("the job has no repo_root".to_owned()).into())
}

/// Gives a job without a repository the one that was just looked at.
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
    new.truncate(SHOWN);
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
        next_call: job_call("repo_map_update", &job_id),
        job_id,
        snapshot,
    }
}

fn changed(diff: &Diff) -> ChangedPaths {
    let shown = |paths: &[String]| paths.iter().take(SHOWN).cloned().collect();
    let renamed = diff.renamed.iter().take(SHOWN);
    ChangedPaths {
        added: shown(&diff.added),
        removed: shown(&diff.removed),
        modified: shown(&diff.modified),
        renamed: renamed
            .map(|rename| format!("{} -> {}", show(&rename.from), show(&rename.to)))
            .collect(),
    }
}

/// What could not be seen, in words.
pub(super) fn problems(problems: &[Problem]) -> Vec<String> {
    let told = problems.iter().take(SHOWN).map(|problem| {
        let why = match &problem.what {
            Trouble::TooMany => "the snapshot is full; what comes behind it is missing",
            Trouble::TooDeep => "lies too deep; what is in it is missing",
            Trouble::OtherRepository => "is a repository of its own",
            Trouble::NameNotUtf8 => "has a name that is not UTF-8",
            Trouble::Unreadable(why) => why,
        };
        format!("{}: {why}", show(&problem.path))
    });
    told.collect()
}

/// Say in one line each what files of the job's repository are for, or forget it. All are stored, or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoFileDescriptionsUpdate {
    /// The job.
    job_id: JobId,
    /// For each path one line of at most 200 characters, for at most 500 paths.
    #[serde(default)]
    descriptions: BTreeMap<String, String>,
    /// Paths whose description is forgotten.
    #[serde(default)]
    remove: Vec<String>,
}

/// What was stored, and what is still missing.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Described {
    /// The job.
    job_id: JobId,
    /// How many descriptions were stored.
    stored: usize,
    /// How many were forgotten.
    removed: usize,
    /// How many files have a description now.
    described: usize,
    /// Files that came since the job's first snapshot and have none, at most 100.
    new_without_description: Vec<String>,
    /// How many other files have none.
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
        new.truncate(SHOWN);
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
            refusals.add(Reason::argument("descriptions", "and remove are both empty"));
        }
        refusals.at_most("descriptions", self.descriptions.len(), AT_ONCE, "paths");
        refusals.at_most("remove", self.remove.len(), AT_ONCE, "paths");
        for path in self
            .remove
            .iter()
            .filter(|path| self.descriptions.contains_key(*path))
        {
            refusals.add(Reason::argument(
                "remove",
                format!("names {}, which is described too", show(path)),
            ));
        }
        refusals.finish()?;
        let mut refusals = Refusals::default();
        let access = access::open(cx, job.repo_root.as_deref());
        for fault in describe::check(&known.snapshot, &self.descriptions) {
            // A file may be younger than the snapshot.
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
            let meant = meant.as_ref().map(|meant| format!("; {} is", show(meant)));
            format!(
                "{} is no file of the repository{}",
                show(path),
                meant.unwrap_or_default()
            )
        }
        fault => fault.to_string(),
    }
}
