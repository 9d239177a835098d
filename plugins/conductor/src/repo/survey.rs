//! Taking and storing a snapshot of a job's repository.
//!
//! Reading the repository takes time and happens outside of any transaction. The result is stored in one,
//! unless another snapshot of the job was stored in between.

use conductor_repo::path;
use conductor_repo::snapshot::{self, Diff, Digest, Effort, FileRecord, Limits, Problem, Taken};
use conductor_repo::tree::{Tree as _, TreeError};
use tollgate_sdk::{Cx, Db, DbError, ToolError};

use super::kept::{self, Head, KeptFile, Known, Learned, Stamps, Summary};
use super::merge::{self, Merged};
use super::outline;
use super::past::{Kept, Past};
use crate::access::{self, Access};
use crate::error::{GitFault, Reason};
use crate::git::Git;
use crate::model::JobId;
use crate::store::part::{self, Kind};
use crate::store::snapshot::{self as rows, Changes, SnapshotRecord};
use crate::store::{description, short_id};

/// Stored data before the repository is read.
#[derive(Debug, Default)]
pub(crate) struct Before {
    job: Option<JobId>,
    latest: Option<SnapshotRecord>,
    kept: Option<Kept>,
}

impl Before {
    /// Loads the data of a job.
    pub(crate) fn load(db: &Db<'_>, job: &JobId) -> Result<Before, DbError> {
        Ok(Before {
            job: Some(job.clone()),
            latest: rows::latest(db, job)?,
            kept: Kept::load(db, job)?,
        })
    }

    /// Checks whether the last snapshot was of this repository.
    fn knows(&self, repo_root: &str) -> bool {
        self.latest
            .as_ref()
            .is_some_and(|latest| latest.repo_root == repo_root)
    }

    /// Number of the next snapshot.
    fn next(&self) -> u32 {
        let last = self.latest.as_ref().map_or(0, |latest| latest.sequence);
        last.saturating_add(1)
    }
}

/// Result of reading a repository.
pub(crate) struct Look<'a> {
    repo_root: String,
    latest: Option<SnapshotRecord>,
    sequence: u32,
    /// True if the new buckets replace stored ones.
    replaces: bool,
    past: Option<Past<'a>>,
    head: Head,
    merged: Merged,
    pub effort: Effort,
    pub warnings: Vec<String>,
    /// Facts of the files that were read.
    pub learned: Learned,
}

/// Opens the repository of a job for reading.
pub(crate) fn open<'a>(cx: &Cx<'a>, repo_root: Option<&str>) -> Result<Access<'a>, ToolError> {
    access::open(cx, repo_root).map_err(|why| Reason::Repository(why).into())
}

/// Reads a repository. Facts are extracted at once, so that no file is read twice.
pub(crate) fn look<'a>(
    cx: &'a Cx<'a>,
    repo_root: &str,
    before: Before,
    limits: &Limits,
) -> Result<Look<'a>, ToolError> {
    let access = open(cx, Some(repo_root))?;
    let mut learned = Learned::default();
    let mut observe = |file: &FileRecord, bytes: &[u8]| learned.learn(file, bytes);
    let sequence = before.next();
    let replaces = before.kept.is_some();
    let knows = before.knows(repo_root);
    let past = before.job.zip(before.kept.filter(|_| knows));
    let past = past.map(|(job, kept)| Past::new(cx, job, kept));
    let seen = past.as_ref().map(|past| past as &dyn snapshot::Past);
    let taken = snapshot::take(&access, limits, seen, cx.now().as_ms(), &mut observe).map_err(unreadable)?;
    let mut warnings = Vec::new();
    let head = past.as_ref().map(|past| &past.head);
    let (tracked, stamps) = tracked(cx, repo_root, &access, &taken, head, &mut warnings);
    let taken = snapshot::add(&access, limits, seen, taken, &tracked, &mut observe).map_err(unreadable)?;
    let effort = taken.effort;
    let head = Head {
        taken: taken.snapshot.taken,
        problems: taken.snapshot.problems.clone(),
        stamps,
        tracked,
    };
    let merged = merge::merge(taken, past.as_ref(), sequence)?;
    if let Some(past) = &past {
        past.failed()?;
    }
    Ok(Look {
        repo_root: repo_root.to_owned(),
        latest: before.latest,
        sequence,
        replaces,
        past,
        head,
        merged,
        effort,
        warnings,
        learned,
    })
}

fn unreadable(err: TreeError) -> ToolError {
    Reason::Repository(err.to_string()).into()
}

/// Files that Git tracks although `.gitignore` excludes them. Git runs only if something was excluded, and not
/// again while its index and the excluded entries are unchanged.
fn tracked(
    cx: &Cx<'_>,
    repo_root: &str,
    access: &Access<'_>,
    taken: &Taken,
    before: Option<&Head>,
    warnings: &mut Vec<String>,
) -> (Vec<String>, Option<Stamps>) {
    if taken.effort.ignored == 0 {
        return (Vec::new(), None);
    }
    let stamps = stamps(access, taken);
    if let Some(before) = before
        && stamps.is_some()
        && before.stamps == stamps
    {
        return (before.tracked.clone(), stamps);
    }
    match Git::open(cx, Some(repo_root)).and_then(|git| git.tracked_but_ignored(taken)) {
        Ok(tracked) => (tracked, stamps),
        Err(GitFault::NoRepository(_)) => (Vec::new(), None),
        Err(fault) => {
            warnings.push(format!(
                "files that Git tracks although .gitignore excludes them are left out: {fault}"
            ));
            (Vec::new(), None)
        }
    }
}

fn stamps(access: &Access<'_>, taken: &Taken) -> Option<Stamps> {
    let index = access.stat(".git/index").ok()?;
    let excluded: Vec<String> = taken.excluded().collect();
    let excluded = Digest::of(excluded.join("\0").as_bytes());
    Some([(index.size, index.modified), (excluded.short(), 0)])
}

impl Look<'_> {
    /// Changes since the previous snapshot; `None` for the first.
    pub(crate) fn diff(&self) -> Option<&Diff> {
        self.merged.diff.as_ref()
    }

    /// Paths that could not be read.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.merged.known.snapshot.problems
    }

    /// Checks whether a limit was reached.
    pub(crate) fn is_partial(&self) -> bool {
        self.merged.known.snapshot.is_partial()
    }

    /// Files added since the job's first snapshot.
    pub(crate) fn new_files(&self) -> &[FileRecord] {
        &self.merged.new
    }

    /// All files.
    pub(crate) fn known(&self) -> Result<Known, DbError> {
        let other = self.merged.known.files();
        let mut files: Vec<KeptFile> = other
            .map(|(record, since)| KeptFile {
                record: record.clone(),
                since,
            })
            .collect();
        files.extend(merge::same_files(&self.merged, self.past.as_ref())?);
        let snapshot = &self.merged.known.snapshot;
        let mut known = Known::new(snapshot.taken, files, snapshot.problems.clone());
        known.snapshot.above = snapshot.above.clone();
        Ok(known)
    }

    /// Stores the result. Descriptions follow renamed files.
    pub(crate) fn store(
        &self,
        cx: &Cx<'_>,
        db: &Db<'_>,
        job: &JobId,
        notes: Option<String>,
    ) -> Result<SnapshotRecord, ToolError> {
        if rows::latest(db, job)? != self.latest {
            return Err(crate::tools::conflict(job));
        }
        let record = self.record(cx, db, notes)?;
        rows::insert(db, job, &record)?;
        let changed = self
            .merged
            .changed
            .iter()
            .map(|(bucket, content)| (*bucket, content.as_slice()));
        let above = kept::above_bucket(&self.merged.known.snapshot.above)?;
        let kept = [self.head.bucket()?, self.merged.table.bucket()?, above];
        let kept = kept.iter().map(|(bucket, content)| (*bucket, content.as_slice()));
        for (bucket, content) in changed.chain(kept) {
            if self.replaces || !content.is_empty() {
                part::put(db, job, Kind::Files, bucket, content)?;
            }
        }
        self.move_descriptions(cx, db, job)?;
        Ok(record)
    }

    fn record(&self, cx: &Cx<'_>, db: &Db<'_>, notes: Option<String>) -> Result<SnapshotRecord, ToolError> {
        let table = &self.merged.table;
        let bytes: u64 = table.summaries.iter().map(|summary| summary.bytes).sum();
        let files: usize = table.summaries.iter().map(Summary::count).sum();
        let directories = table.rows();
        let directories = directories.map(|(directory, summary)| (directory.path.as_str(), summary.count()));
        let roots = self
            .merged
            .known
            .directories()
            .filter(|(directory, _)| directory.is_empty());
        let roots: Vec<&str> = roots
            .flat_map(|(_, files)| files.map(|(file, _)| file.path.as_str()))
            .collect();
        let key_files = table.rows().flat_map(|(directory, summary)| {
            let names = summary.key_files.iter();
            names.map(|name| path::below(&directory.path, name))
        });
        Ok(SnapshotRecord {
            snapshot_id: short_id(cx, |id| rows::exists(db, id))?,
            sequence: self.sequence,
            repo_root: self.repo_root.clone(),
            taken_at: cx.now(),
            files: u32::try_from(files).unwrap_or(u32::MAX),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            changes: self.diff().map(|diff| Changes {
                added: diff.added.len(),
                removed: diff.removed.len(),
                modified: diff.modified.len(),
                renamed: diff.renamed.len(),
                unchanged: diff.unchanged,
            }),
            key_files: outline::key_files(key_files.collect()),
            notes,
            file_tree: outline::tree(directories, &roots),
        })
    }

    /// Merges the new facts into the stored ones.
    pub(crate) fn keep_facts(&self, db: &Db<'_>, job: &JobId) -> Result<(), DbError> {
        let is_first = !part::any(db, job, Kind::Facts)?;
        for (bucket, learned) in self.learned.buckets()? {
            let known = match is_first {
                true => Vec::new(),
                false => part::bucket(db, job, Kind::Facts, bucket)?,
            };
            part::put(db, job, Kind::Facts, bucket, &kept::merged(&known, learned)?)?;
        }
        Ok(())
    }

    fn move_descriptions(&self, cx: &Cx<'_>, db: &Db<'_>, job: &JobId) -> Result<(), DbError> {
        let renames = self.diff().into_iter().flat_map(|diff| &diff.renamed);
        let mut renames = renames.peekable();
        if renames.peek().is_none() {
            return Ok(());
        }
        let said = description::all(db, job)?;
        for rename in renames {
            if let Some(text) = said.get(&rename.from) {
                description::remove(db, job, &rename.from)?;
                if !said.contains_key(&rename.to) {
                    description::set(db, job, &rename.to, text, cx.now())?;
                }
            }
        }
        Ok(())
    }
}
