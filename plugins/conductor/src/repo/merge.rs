//! Merge of a walk with the stored previous snapshot.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use conductor_repo::path;
use conductor_repo::snapshot::{self, Diff, Directory, FileRecord, Past as _, Snapshot, Taken, Walked};
use tollgate_sdk::DbError;

use super::kept::{self, KeptFile, Known, Summary, Table, directories_of};
use super::outline;
use super::past::Past;
use crate::store::part::Buckets;

/// A snapshot without the files of unchanged directories.
#[derive(Debug)]
pub(crate) struct Merged {
    /// Unchanged directories.
    same: BTreeSet<String>,
    /// Files outside the unchanged directories.
    pub known: Known,
    pub table: Table,
    /// Changes since the previous snapshot; `None` for the first.
    pub diff: Option<Diff>,
    /// All files added since the job's first snapshot.
    pub new: Vec<FileRecord>,
    /// Buckets of files that differ from those before; an empty one holds no files any more.
    pub changed: Buckets,
}

/// Merges a walk with the previous snapshot. `sequence` is the number of the new one.
pub(crate) fn merge(taken: Taken, past: Option<&Past<'_>>, sequence: u32) -> Result<Merged, DbError> {
    let Taken {
        snapshot,
        directories,
        ..
    } = taken;
    let same = directories.iter().filter(|walked| walked.is_same);
    let same = same.map(|walked| walked.directory.path.as_str()).collect();
    let mut sides = Sides {
        past,
        same,
        touched: BTreeSet::new(),
    };
    sides.touch(&snapshot)?;
    let old = sides.old_files();
    let diff = past.map(|_| {
        let mut diff = snapshot::diff(&old.snapshot, &snapshot);
        diff.unchanged += sides.rows().map(|(_, summary)| summary.count()).sum::<usize>();
        diff
    });
    let known = Known {
        since: since(&snapshot, past.map(|_| &old), diff.as_ref(), sequence),
        snapshot,
    };
    let mut summaries = summaries(&known);
    for (path, summary) in sides.rows() {
        // Files that Git tracks and `.gitignore` excludes may have been added.
        summaries.entry(path).or_default().add(summary);
    }
    let new = sides.new_files(&known)?;
    let changed = sides.changed(&known)?;
    let table = table(&directories, &summaries);
    Ok(Merged {
        same: sides.same.into_iter().map(str::to_owned).collect(),
        known,
        table,
        diff,
        new,
        changed,
    })
}

/// Files of unchanged directories.
pub(crate) fn same_files(merged: &Merged, past: Option<&Past<'_>>) -> Result<Vec<KeptFile>, DbError> {
    let Some(past) = past else {
        return Ok(Vec::new());
    };
    let shares: BTreeSet<u32> = merged.same.iter().map(|path| kept::share(path)).collect();
    past.load(shares.iter().copied())?;
    let mut files = Vec::new();
    for share in shares {
        let kept = past.share(share);
        let kept = kept
            .iter()
            .filter(|file| merged.same.contains(path::parent(&file.record.path)));
        files.extend(kept.cloned());
    }
    Ok(files)
}

/// Checks whether a file first seen in this snapshot was added since the job's first one.
fn is_new(since: u32) -> bool {
    since > 1
}

/// Both snapshots.
struct Sides<'p> {
    past: Option<&'p Past<'p>>,
    /// Directories whose files are unchanged.
    same: HashSet<&'p str>,
    /// Buckets of all other directories.
    touched: BTreeSet<u32>,
}

impl<'p> Sides<'p> {
    /// Collects and reads the buckets of changed directories.
    fn touch(&mut self, snapshot: &Snapshot) -> Result<(), DbError> {
        let before = self.past.map_or(&[][..], |past| past.directories());
        let before = before.iter().map(|directory| directory.path.as_str());
        let now = directories_of(&snapshot.files).map(|(directory, _)| directory);
        let other: HashSet<&str> = before
            .chain(now)
            .filter(|path| !self.same.contains(path))
            .collect();
        self.touched = other.into_iter().map(kept::share).collect();
        match self.past {
            Some(past) if past.table.is_some() => past.load(self.touched.iter().copied()),
            // The files may lie elsewhere, or belong to another repository.
            _ => {
                self.touched.extend(kept::all_shares());
                Ok(())
            }
        }
    }

    fn is_same(&self, file: &FileRecord) -> bool {
        self.same.contains(path::parent(&file.path))
    }

    /// Summaries of unchanged directories.
    fn rows(&self) -> impl Iterator<Item = (&'p str, &'p Summary)> {
        let table = self.past.and_then(|past| past.table.as_ref());
        let rows = table.into_iter().flat_map(Table::rows);
        let rows = rows.map(|(directory, summary)| (directory.path.as_str(), summary));
        rows.filter(|(path, _)| self.same.contains(path))
    }

    /// Previous files of changed directories.
    fn old_files(&self) -> Known {
        let Some(past) = self.past else {
            return Known::default();
        };
        let mut files = Vec::new();
        for share in &self.touched {
            let old = past.share(*share);
            files.extend(old.iter().filter(|file| !self.is_same(&file.record)).cloned());
        }
        Known::new(past.taken(), files, Vec::new())
    }

    /// Files added since the first snapshot.
    fn new_files(&self, known: &Known) -> Result<Vec<FileRecord>, DbError> {
        let new = known.files().filter(|(_, since)| is_new(*since));
        let mut new: Vec<FileRecord> = new.map(|(file, _)| file.clone()).collect();
        let Some(past) = self.past else {
            return Ok(new);
        };
        let rows = self.rows().filter(|(_, summary)| summary.has_new);
        let shares: BTreeSet<u32> = rows.map(|(path, _)| kept::share(path)).collect();
        past.load(shares.iter().copied())?;
        for share in shares {
            let files = past.share(share);
            let files = files
                .iter()
                .filter(|file| is_new(file.since) && self.is_same(&file.record));
            new.extend(files.map(|file| file.record.clone()));
        }
        new.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(new)
    }

    /// Buckets whose content changed.
    fn changed(&self, known: &Known) -> Result<Buckets, DbError> {
        let is_elsewhere = self.past.is_none_or(|past| past.table.is_none());
        let mut shares: BTreeMap<u32, Vec<(&FileRecord, u32)>> =
            self.touched.iter().map(|share| (*share, Vec::new())).collect();
        for (directory, files) in known.directories() {
            shares.entry(kept::share(directory)).or_default().extend(files);
        }
        let mut buckets = Buckets::new();
        for (share, mut files) in shares {
            let old = self.past.map(|past| past.share(share)).unwrap_or_default();
            let old = old.iter().map(|file| (&file.record, file.since));
            files.extend(old.clone().filter(|(file, _)| self.is_same(file)));
            files.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
            if is_elsewhere || !old.eq(files.iter().copied()) {
                buckets.insert(share, kept::bucket_of(&files)?);
            }
        }
        Ok(buckets)
    }
}

/// For each file, the first snapshot with it: 1 for those of a repository's first snapshot. A renamed file
/// keeps its number.
fn since(snapshot: &Snapshot, old: Option<&Known>, diff: Option<&Diff>, sequence: u32) -> Vec<u32> {
    let Some(old) = old else {
        return vec![1; snapshot.files.len()];
    };
    let files = &old.snapshot.files;
    let find = |path: &str| files.binary_search_by(|file| file.path.as_str().cmp(path)).ok();
    let moved: HashMap<&str, &str> = diff
        .iter()
        .flat_map(|diff| &diff.renamed)
        .map(|rename| (rename.to.as_str(), rename.from.as_str()))
        .collect();
    let age = |file: &FileRecord| {
        let before = moved.get(file.path.as_str()).copied().unwrap_or(&file.path);
        let place = find(before);
        place
            .and_then(|place| old.since.get(place).copied())
            .unwrap_or(sequence)
    };
    snapshot.files.iter().map(age).collect()
}

/// Summaries of the directories of the given files.
fn summaries(known: &Known) -> HashMap<&str, Summary> {
    let mut summaries: HashMap<&str, Summary> = HashMap::new();
    for (directory, files) in known.directories() {
        let summary = summaries.entry(directory).or_default();
        for (file, since) in files {
            summary.files += 1;
            summary.bytes = summary.bytes.saturating_add(file.size);
            summary.has_new |= is_new(since);
            if outline::is_key(&file.path) {
                summary.key_files.push(path::name(&file.path).to_owned());
            }
        }
    }
    summaries
}

/// All visited directories, then others with files that Git tracks although `.gitignore` excludes them.
fn table(walked: &[Walked], summaries: &HashMap<&str, Summary>) -> Table {
    let walked = walked.iter().map(|walked| &walked.directory);
    let mut others: BTreeSet<&str> = summaries.keys().copied().collect();
    for directory in walked.clone() {
        others.remove(directory.path.as_str());
    }
    let other = |path: &str| Directory {
        path: path.to_owned(),
        ..Directory::default()
    };
    let directories: Vec<Directory> = walked.cloned().chain(others.into_iter().map(other)).collect();
    let summary = |directory: &Directory| summaries.get(directory.path.as_str()).cloned();
    Table {
        summaries: directories
            .iter()
            .map(|directory| summary(directory).unwrap_or_default())
            .collect(),
        directories,
    }
}

#[cfg(test)]
mod tests {
    use conductor_repo::snapshot::{Content, Digest, Problem, Stamp, Trouble};
    use tollgate_sdk::native::Session;
    use tollgate_sdk::{CallInfo, Cx};

    use super::*;
    use crate::repo::kept::Head;

    fn file(path: &str, modified: i64) -> FileRecord {
        FileRecord {
            path: path.to_owned(),
            content: Content::Text {
                digest: Digest::of(path.as_bytes()),
            },
            size: 7,
            modified,
        }
    }

    /// A walk that listed the directories outside of `same`.
    fn walk(files: &[FileRecord], same: &[&str]) -> Taken {
        let mut taken = Taken::default();
        let directories: BTreeSet<&str> = files.iter().map(|file| path::parent(&file.path)).collect();
        for path in directories {
            let here = files.iter().filter(|file| path::parent(&file.path) == path);
            let is_same = same.contains(&path);
            taken.directories.push(Walked {
                directory: Directory {
                    path: path.to_owned(),
                    stamp: Some(Stamp {
                        fingerprint: 1,
                        rules: 2,
                    }),
                    files: u32::try_from(here.clone().count()).unwrap(),
                    ..Directory::default()
                },
                is_same,
            });
            taken.snapshot.files.extend(here.filter(|_| !is_same).cloned());
        }
        taken.snapshot.files.sort_by(|a, b| a.path.cmp(&b.path));
        taken
    }

    /// Buckets after a walk was merged with the stored ones.
    fn keep(mut buckets: Buckets, merged: &Merged) -> Buckets {
        buckets.extend(merged.changed.clone());
        buckets.extend([merged.table.bucket().unwrap(), Head::default().bucket().unwrap()]);
        buckets
    }

    fn paths(files: &[FileRecord]) -> Vec<&str> {
        files.iter().map(|file| file.path.as_str()).collect()
    }

    /// Merges a walk with the content of buckets.
    fn merged(buckets: &Buckets, taken: Taken, sequence: u32) -> Merged {
        let session = Session::new(&crate::PACK);
        let call = CallInfo::default();
        let cx = Cx::new(session.backend(), &call);
        let past = Past::of_buckets(&cx, buckets);
        let merged = merge(taken, Some(&past), sequence).unwrap();
        past.failed().unwrap();
        let mut files = same_files(&merged, Some(&past)).unwrap();
        let other = merged.known.files();
        files.extend(other.map(|(record, since)| KeptFile {
            record: record.clone(),
            since,
        }));
        // Entries that were not repeated are still stored.
        let kept = Known::from_buckets(&keep(buckets.clone(), &merged))
            .unwrap()
            .unwrap();
        assert_eq!(kept, Known::new(0, files, Vec::new()));
        merged
    }

    #[test]
    fn only_buckets_of_directories_with_changes_change() {
        let mut files: Vec<FileRecord> = (0..1_000)
            .map(|number| file(&format!("src/d{}/m{number}.rs", number % 50), 1))
            .collect();
        files.push(file("README.md", 1));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let first = merge(walk(&files, &[]), None, 1).unwrap();
        assert!(first.diff.is_none() && first.new.is_empty());
        let buckets = keep(Buckets::new(), &first);
        let all: Vec<String> = (0..50).map(|number| format!("src/d{number}")).collect();
        let same: Vec<&str> = all.iter().map(String::as_str).skip(1).collect();
        let second = merged(&buckets, walk(&files, &same), 2);
        assert!(second.changed.is_empty(), "listed again, and as it was");
        assert_eq!(second.diff.unwrap().unchanged, 1_001);
        files.retain(|file| file.path != "src/d0/m0.rs");
        files.push(file("src/d0/new.rs", 2));
        files
            .iter_mut()
            .find(|file| file.path == "src/d0/m50.rs")
            .unwrap()
            .modified = 2;
        let third = merged(&buckets, walk(&files, &same), 3);
        assert_eq!(third.changed.len(), 1);
        let diff = third.diff.as_ref().unwrap();
        assert_eq!(
            (&diff.added[..], &diff.removed[..], diff.unchanged),
            (
                &["src/d0/new.rs".to_owned()][..],
                &["src/d0/m0.rs".to_owned()][..],
                1_000
            )
        );
        assert_eq!(paths(&third.new), ["src/d0/new.rs"]);
        let kept = keep(buckets, &third);
        let same: Vec<&str> = all.iter().map(String::as_str).collect();
        let fourth = merged(&kept, walk(&files, &same), 4);
        assert_eq!(paths(&fourth.new), ["src/d0/new.rs"], "it is still new");
        assert_eq!(paths(&fourth.known.snapshot.files), ["README.md"]);
        let total: usize = fourth.table.summaries.iter().map(Summary::count).sum();
        assert_eq!(total, 1_001);
    }

    #[test]
    fn directories_come_go_and_move() {
        let files = [file("a/x", 1), file("b/y", 1), file("c/z", 1)];
        let buckets = keep(Buckets::new(), &merge(walk(&files, &[]), None, 1).unwrap());
        let mut moved = file("d/x", 1);
        moved.content = files[0].content;
        let now = [files[1].clone(), moved, file("e/new", 2)];
        let second = merged(&buckets, walk(&now, &["b"]), 2);
        let diff = second.diff.as_ref().unwrap();
        assert_eq!(
            (diff.renamed.len(), diff.removed.len(), diff.added.len()),
            (1, 1, 1)
        );
        assert_eq!(paths(&second.new), ["e/new"], "what moved is as old as it was");
        let kept = keep(buckets, &second);
        let third = merged(&kept, walk(&[], &[]), 3);
        assert_eq!(third.diff.unwrap().removed.len(), 3);
        assert!(third.table.directories.is_empty());
    }

    #[test]
    fn what_is_tracked_although_excluded_joins_a_directory_that_is_the_same() {
        let files = [file("a/x", 1), file("b/y", 1)];
        let buckets = keep(Buckets::new(), &merge(walk(&files, &[]), None, 1).unwrap());
        let mut taken = walk(&files, &["a"]);
        let tracked = [file("a/k.log", 1), file("out/o", 1)];
        taken.snapshot.files.extend(tracked);
        taken.snapshot.files.sort_by(|a, b| a.path.cmp(&b.path));
        let second = merged(&buckets, taken, 2);
        assert_eq!(paths(&second.new), ["a/k.log", "out/o"]);
        let said: Vec<(&str, u32)> = second
            .table
            .rows()
            .map(|(directory, summary)| (directory.path.as_str(), summary.files))
            .collect();
        assert_eq!(said, [("a", 2), ("b", 1), ("out", 1)]);
        assert_eq!(second.diff.as_ref().unwrap().added.len(), 2);
        let kept = keep(buckets, &second);
        let third = merged(&kept, walk(&files, &["b"]), 3);
        assert_eq!(third.diff.unwrap().removed, ["a/k.log", "out/o"]);
    }

    #[test]
    fn what_lay_by_path_comes_back_and_moves() {
        let paths = ["a", "a-b/x", "a/b", "a/b.c/d", "a/b/c", "a/z", "b"];
        let files = paths.map(|path| file(path, 1));
        let mut buckets = Buckets::from([Head {
            problems: vec![Problem {
                path: "x".to_owned(),
                what: Trouble::TooDeep,
            }],
            ..Head::default()
        }
        .bucket()
        .unwrap()]);
        for (number, records) in (0_u32..).zip([0..2, 2..3, 3..7]) {
            let records: Vec<(&FileRecord, u32)> =
                files[records].iter().rev().map(|file| (file, 3)).collect();
            buckets.insert(number * 20, kept::bucket_of(&records).unwrap());
        }
        let back = Known::from_buckets(&buckets).unwrap().unwrap();
        assert_eq!((back.snapshot.files, back.since), (files.to_vec(), vec![3; 7]));
        assert_eq!(back.snapshot.problems.len(), 1);
        let again = merged(&buckets, walk(&files, &[]), 4);
        assert_eq!(again.diff.as_ref().unwrap().unchanged, 7);
        let moved = keep(buckets, &again);
        let by_path = |buckets: &Buckets| buckets.range(..64).all(|(_, content)| content.is_empty());
        assert!(by_path(&moved));
        let back = Known::from_buckets(&moved).unwrap().unwrap();
        assert_eq!((back.snapshot.files, back.since), (files.to_vec(), vec![3; 7]));
        assert!(merged(&moved, walk(&files, &[]), 5).changed.is_empty());
        let other = merge(walk(&[], &[]), None, 6).unwrap();
        assert!(
            moved
                .keys()
                .all(|bucket| keep(Buckets::new(), &other).contains_key(bucket)),
            "of another repository nothing is left"
        );
        assert_eq!(Known::from_buckets(&Buckets::new()).unwrap(), None);
        assert!(Known::from_buckets(&Buckets::from([(64, vec![9])])).is_err());
    }
}
