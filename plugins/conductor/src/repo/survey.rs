//! Taking a snapshot of a job's repository and keeping it.
//!
//! Looking takes time and happens outside of any transaction; what was found is stored in one, if no
//! other snapshot of the job came between.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use conductor_repo::snapshot::{self, Diff, Digest, Effort, FileRecord, Limits, Snapshot, Taken};
use conductor_repo::tree::{Tree as _, TreeError};
use tollgate_sdk::{Cx, Db, DbError, ToolError};

use super::kept::{self, Known, Learned, Stamps};
use super::outline;
use crate::access::{self, Access};
use crate::error::{GitFault, Reason};
use crate::git::Git;
use crate::model::JobId;
use crate::store::part::{self, Buckets, Kind};
use crate::store::snapshot::{self as rows, Changes, SnapshotRecord};
use crate::store::{description, short_id};

/// What was known before a look.
#[derive(Debug, Default)]
pub(crate) struct Before {
    latest: Option<SnapshotRecord>,
    files: Buckets,
}

impl Before {
    /// What the rows of a job say.
    pub(crate) fn load(db: &Db<'_>, job: &JobId) -> Result<Before, DbError> {
        Ok(Before {
            latest: rows::latest(db, job)?,
            files: part::load(db, job, Kind::Files)?,
        })
    }

    /// Whether the last snapshot was of this repository.
    fn knows(&self, repo_root: &str) -> bool {
        self.latest
            .as_ref()
            .is_some_and(|latest| latest.repo_root == repo_root)
    }

    /// The number of the next snapshot.
    fn next(&self) -> u32 {
        let last = self.latest.as_ref().map_or(0, |latest| latest.sequence);
        last.saturating_add(1)
    }
}

/// What a look found.
pub(crate) struct Look {
    repo_root: String,
    before: Before,
    pub known: Known,
    /// What changed since the one before; none for the first.
    pub diff: Option<Diff>,
    pub effort: Effort,
    pub warnings: Vec<String>,
    /// What is written in the files that were read.
    pub learned: Learned,
    changed: Buckets,
}

/// Opens the repository of a job for reading.
pub(crate) fn open<'a>(cx: &Cx<'a>, repo_root: Option<&str>) -> Result<Access<'a>, ToolError> {
    access::open(cx, repo_root).map_err(|why| Reason::Repository(why).into())
}

/// Looks at a repository. The facts of what is read are taken at once, so that nothing is read twice.
pub(crate) fn look(cx: &Cx<'_>, repo_root: &str, before: Before, limits: &Limits) -> Result<Look, ToolError> {
    let access = open(cx, Some(repo_root))?;
    let mut learned = Learned::default();
    let mut observe = |file: &FileRecord, bytes: &[u8]| learned.learn(file, bytes);
    let now = cx.now().as_ms();
    let read = OnceCell::new();
    let taken = match before.knows(repo_root) {
        false => snapshot::take(&access, limits, None, now, &mut observe),
        true => {
            let read = || read.get_or_init(|| Known::from_buckets(&before.files));
            let seen = || Some(&read().as_ref().ok()?.as_ref()?.snapshot);
            snapshot::take_after(&access, limits, &seen, now, &mut observe)
        }
    };
    let taken = taken.map_err(unreadable)?;
    let previous = read.into_inner().transpose()?.flatten();
    let seen = previous.as_ref().map(|known| &known.snapshot);
    let mut warnings = Vec::new();
    let (tracked, stamps) = tracked(cx, repo_root, &access, &taken, previous.as_ref(), &mut warnings);
    let taken = snapshot::add(&access, limits, seen, taken, &tracked, &mut observe).map_err(unreadable)?;
    let diff = seen.map(|seen| snapshot::diff(seen, &taken.snapshot));
    let sequence = before.next();
    let known = Known {
        since: since(&taken.snapshot, previous.as_ref(), diff.as_ref(), sequence),
        snapshot: taken.snapshot,
        stamps,
        tracked,
        is_by_path: false,
    };
    Ok(Look {
        repo_root: repo_root.to_owned(),
        changed: known.changed_buckets(previous.as_ref())?,
        learned,
        before,
        known,
        diff,
        effort: taken.effort,
        warnings,
    })
}

fn unreadable(err: TreeError) -> ToolError {
    Reason::Repository(err.to_string()).into()
}

/// What Git tracks although `.gitignore` excludes it. Git is asked only if something was excluded, and not
/// again while its index and what is excluded are the same.
fn tracked(
    cx: &Cx<'_>,
    repo_root: &str,
    access: &Access<'_>,
    taken: &Taken,
    previous: Option<&Known>,
    warnings: &mut Vec<String>,
) -> (Vec<String>, Option<Stamps>) {
    if taken.effort.ignored == 0 {
        return (Vec::new(), None);
    }
    let stamps = stamps(access, taken);
    if let Some(previous) = previous
        && stamps.is_some()
        && previous.stamps == stamps
    {
        return (previous.tracked.clone(), stamps);
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
    let excluded = Digest::of(taken.excluded.join("\0").as_bytes());
    Some([(index.size, index.modified), (excluded.short(), 0)])
}

/// For each file the snapshot that saw it first, 1 for those of the first of a repository. A file that
/// moved stays as old as it was.
fn since(snapshot: &Snapshot, previous: Option<&Known>, diff: Option<&Diff>, sequence: u32) -> Vec<u32> {
    let Some(previous) = previous else {
        return vec![1; snapshot.files.len()];
    };
    let files = &previous.snapshot.files;
    let find = |path: &str| files.binary_search_by(|file| file.path.as_str().cmp(path)).ok();
    let moved: BTreeMap<&str, &str> = diff
        .iter()
        .flat_map(|diff| &diff.renamed)
        .map(|rename| (rename.to.as_str(), rename.from.as_str()))
        .collect();
    // Both lists are sorted and nearly the same, so that the next is mostly where it is expected.
    let mut expected = 0;
    let age = |file: &FileRecord| {
        let is_next = files.get(expected).is_some_and(|next| next.path == file.path);
        let before = || moved.get(file.path.as_str()).copied().unwrap_or(&file.path);
        let place = if is_next { Some(expected) } else { find(before()) };
        expected = place.map_or(expected, |place| place + 1);
        place
            .and_then(|place| previous.since.get(place).copied())
            .unwrap_or(sequence)
    };
    snapshot.files.iter().map(age).collect()
}

impl Look {
    /// Keeps what was found. What is said of files moves along with them.
    pub(crate) fn store(
        &self,
        cx: &Cx<'_>,
        db: &Db<'_>,
        job: &JobId,
        notes: Option<String>,
    ) -> Result<SnapshotRecord, ToolError> {
        if rows::latest(db, job)? != self.before.latest {
            return Err(crate::tools::moved_meanwhile(job));
        }
        let snapshot = &self.known.snapshot;
        let bytes: u64 = snapshot.files.iter().map(|file| file.size).sum();
        let record = SnapshotRecord {
            snapshot_id: short_id(cx, |id| rows::exists(db, id))?,
            sequence: self.before.next(),
            repo_root: self.repo_root.clone(),
            taken_at: cx.now(),
            files: u32::try_from(snapshot.files.len()).unwrap_or(u32::MAX),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            changes: self.diff.as_ref().map(|diff| Changes {
                added: diff.added.len(),
                removed: diff.removed.len(),
                modified: diff.modified.len(),
                renamed: diff.renamed.len(),
                unchanged: diff.unchanged,
            }),
            key_files: outline::key_files(snapshot),
            notes,
            file_tree: outline::tree(snapshot),
        };
        rows::insert(db, job, &record)?;
        for (bucket, content) in &self.changed {
            if !content.is_empty() || self.before.files.contains_key(bucket) {
                part::put(db, job, Kind::Files, *bucket, content)?;
            }
        }
        self.move_descriptions(cx, db, job)?;
        Ok(record)
    }

    /// Adds what was learned to what is kept.
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
        let renames = self.diff.iter().flat_map(|diff| &diff.renamed);
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
