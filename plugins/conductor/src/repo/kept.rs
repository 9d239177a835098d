//! Snapshots, facts and ages as the bytes of buckets.
//!
//! What a record falls into follows from its path or content alone, so that a change touches few
//! buckets however many files there are.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use conductor_repo::facts::{self, FactBook, Facts};
use conductor_repo::path;
use conductor_repo::snapshot::{Digest, FileRecord, Problem, Snapshot};
use conductor_repo::stale::Ages;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tollgate_sdk::DbError;

use crate::store::part::Buckets;

/// Buckets that facts fall into.
const SHARES: u32 = 64;
/// The bucket of what is no list.
const HEAD: u32 = SHARES;
/// The first of as many buckets that files fall into, all of a directory into the same. In those before
/// [`HEAD`] they lay by path, which took much sorting.
const DIRECTORIES: u32 = HEAD + 1;

/// A snapshot as it is kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    pub snapshot: Snapshot,
    /// For each file the number of the snapshot that saw it first.
    pub since: Vec<u32>,
    /// The state of Git's index and of what is excluded that `tracked` comes from.
    pub stamps: Option<Stamps>,
    /// What Git tracks although `.gitignore` excludes it.
    pub tracked: Vec<String>,
    /// It lay in buckets by path.
    pub is_by_path: bool,
}

/// What is kept of a snapshot beside its files.
#[derive(Serialize, Deserialize)]
struct Head {
    taken: i64,
    problems: Vec<Problem>,
    stamps: Option<Stamps>,
    tracked: Vec<String>,
}

/// Size and time of `.git/index`, then a hash of what is excluded.
pub(crate) type Stamps = [(u64, i64); 2];

#[derive(Serialize, Deserialize)]
struct KeptFile {
    record: FileRecord,
    since: u32,
}

impl Known {
    /// The snapshot in these buckets, if there is one.
    pub(crate) fn from_buckets(buckets: &Buckets) -> Result<Option<Known>, DbError> {
        let Some(head) = buckets.get(&HEAD) else {
            return Ok(None);
        };
        let head: Head = decode(head)?;
        let mut directories: Vec<Vec<KeptFile>> = Vec::new();
        for (_, bytes) in buckets.iter().filter(|(bucket, _)| **bucket != HEAD) {
            if !bytes.is_empty() {
                add_files(bytes, &mut directories)?;
            }
        }
        directories.sort_by(|a, b| directory_of(a).cmp(directory_of(b)));
        let mut files: Vec<KeptFile> = directories.into_iter().flatten().collect();
        // Mostly they are in order now, which a stable sort makes use of.
        files.sort_by(|a, b| a.record.path.cmp(&b.record.path));
        let (files, since) = files.into_iter().map(|file| (file.record, file.since)).unzip();
        Ok(Some(Known {
            snapshot: Snapshot {
                taken: head.taken,
                files,
                problems: head.problems,
            },
            since,
            stamps: head.stamps,
            tracked: head.tracked,
            is_by_path: buckets.range(..HEAD).any(|(_, content)| !content.is_empty()),
        }))
    }

    /// The buckets that differ from those of what was known before; empty ones hold nothing any more.
    pub(crate) fn changed_buckets(&self, before: Option<&Known>) -> Result<Buckets, DbError> {
        let changed = self.changed_shares(before);
        let mut shares: BTreeMap<u32, Vec<(&FileRecord, u32)>> =
            changed.iter().map(|share| (*share, Vec::new())).collect();
        for (record, since) in self.snapshot.files.iter().zip(&self.since) {
            if let Some(files) = shares.get_mut(&share(&record.path)) {
                files.push((record, *since));
            }
        }
        let mut buckets = Buckets::new();
        for (bucket, files) in &shares {
            let bytes = if files.is_empty() {
                Vec::new()
            } else {
                encode(files)?
            };
            buckets.insert(*bucket, bytes);
        }
        let head = Head {
            taken: self.snapshot.taken,
            problems: self.snapshot.problems.clone(),
            stamps: self.stamps,
            tracked: self.tracked.clone(),
        };
        buckets.insert(HEAD, encode(&head)?);
        Ok(buckets)
    }

    /// Where a file came, went or is not what it was.
    fn changed_shares(&self, before: Option<&Known>) -> BTreeSet<u32> {
        // Those by path are emptied, whatever they hold.
        let Some(before) = before.filter(|before| !before.is_by_path) else {
            return (0..HEAD).chain(DIRECTORIES..DIRECTORIES + SHARES).collect();
        };
        let mut changed = BTreeSet::new();
        let (mut old, mut new) = (before.records().peekable(), self.records().peekable());
        loop {
            let path = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(was), Some(is)) if was.0.path == is.0.path => {
                    let path = (was != is).then_some(&is.0.path);
                    old.next();
                    new.next();
                    path
                }
                (Some(was), is) if is.is_none_or(|is| was.0.path < is.0.path) => {
                    old.next().map(|(record, _)| &record.path)
                }
                _ => new.next().map(|(record, _)| &record.path),
            };
            changed.extend(path.map(|path| share(path)));
        }
        changed
    }

    fn records(&self) -> impl Iterator<Item = (&FileRecord, &u32)> {
        self.snapshot.files.iter().zip(&self.since)
    }
}

/// The facts in these buckets.
pub(crate) fn book_from(buckets: &Buckets) -> Result<FactBook, DbError> {
    let mut book = FactBook::default();
    for bytes in buckets.values() {
        add_facts(bytes, &mut book)?;
    }
    Ok(book)
}

/// Adds the facts of one bucket.
pub(crate) fn add_facts(bytes: &[u8], book: &mut FactBook) -> Result<(), DbError> {
    if bytes.is_empty() {
        return Ok(());
    }
    for (digest, reading, facts) in decode::<Vec<(Digest, String, Facts)>>(bytes)? {
        book.insert(digest, reading, facts);
    }
    Ok(())
}

/// The buckets of some facts that hold what changed.
pub(crate) fn changed_facts(book: &FactBook, learned: &Learned) -> Result<Buckets, DbError> {
    let changed = book.changed().map(|digest| digest.share(SHARES));
    let changed: BTreeSet<u32> = changed.chain(learned.shares.keys().copied()).collect();
    let mut shares: BTreeMap<u32, Vec<(Digest, &str, &Facts)>> =
        changed.into_iter().map(|share| (share, Vec::new())).collect();
    for (digest, reading, facts) in book.rows() {
        if let Some(share) = shares.get_mut(&digest.share(SHARES)) {
            share.push((digest, reading, facts));
        }
    }
    shares
        .iter()
        .map(|(bucket, rows)| {
            Ok((
                *bucket,
                if rows.is_empty() {
                    Vec::new()
                } else {
                    encode(rows)?
                },
            ))
        })
        .collect()
}

/// Facts that a walk learned, written down at once: those of a large repository would not fit into the
/// memory of a component as they are.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// How many rows each bucket has, and the rows.
    shares: BTreeMap<u32, (usize, Vec<u8>)>,
    seen: HashSet<(Digest, String)>,
}

impl Learned {
    /// Reads a file that a walk shows. What cannot be written down is read by the next update of the map.
    pub(crate) fn learn(&mut self, file: &FileRecord, bytes: &[u8]) {
        let Some((digest, reading)) = facts::key(file) else {
            return;
        };
        if !self.seen.insert((digest, reading.to_owned())) {
            return;
        }
        if let Ok(row) = encode(&(digest, reading, Facts::read(&file.path, bytes))) {
            let (rows, written) = self.shares.entry(digest.share(SHARES)).or_default();
            *rows += 1;
            written.extend(row);
        }
    }

    /// The buckets that hold what was learned.
    pub(crate) fn buckets(&self) -> Result<Buckets, DbError> {
        let bucket = |(share, (rows, written)): (&u32, &(usize, Vec<u8>))| {
            let mut bytes = encode(rows)?;
            bytes.extend(written);
            Ok((*share, bytes))
        };
        self.shares.iter().map(bucket).collect()
    }

    /// Adds what was learned to what is known.
    pub(crate) fn add_to(&self, book: &mut FactBook) -> Result<(), DbError> {
        self.buckets()?
            .values()
            .try_for_each(|bytes| add_facts(bytes, book))
    }
}

/// The bytes of a bucket with those of another added.
pub(crate) fn merged(known: &[u8], learned: Vec<u8>) -> Result<Vec<u8>, DbError> {
    if known.is_empty() {
        return Ok(learned);
    }
    let mut book = FactBook::default();
    add_facts(known, &mut book)?;
    add_facts(&learned, &mut book)?;
    encode(&book.rows().collect::<Vec<_>>())
}

/// What Git knew of files, and at which commit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptAges {
    pub commit: String,
    pub ages: Ages,
}

/// The ages in these buckets.
pub(crate) fn ages_from(buckets: &Buckets) -> Result<Option<KeptAges>, DbError> {
    buckets.get(&HEAD).map(|bytes| decode(bytes)).transpose()
}

/// The bucket that holds ages.
pub(crate) fn ages_to(ages: &KeptAges) -> Result<Buckets, DbError> {
    Ok(Buckets::from([(HEAD, encode(ages)?)]))
}

/// The bucket of a file.
fn share(path: &str) -> u32 {
    DIRECTORIES + Digest::of(path::parent(path).as_bytes()).share(SHARES)
}

/// Adds the files of one bucket, each directory's apart.
fn add_files(bytes: &[u8], directories: &mut Vec<Vec<KeptFile>>) -> Result<(), DbError> {
    for file in decode::<Vec<KeptFile>>(bytes)? {
        match directories.last_mut() {
            Some(files) if directory_of(files) == path::parent(&file.record.path) => files.push(file),
            _ => directories.push(vec![file]),
        }
    }
    Ok(())
}

fn directory_of(files: &[KeptFile]) -> &str {
    files.first().map_or("", |file| path::parent(&file.record.path))
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, DbError> {
    postcard::to_allocvec(value).map_err(|_| DbError::Internal)
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DbError> {
    postcard::from_bytes(bytes).map_err(|_| DbError::Type {
        column: 0,
        wanted: std::any::type_name::<T>(),
    })
}

#[cfg(test)]
mod tests {
    use conductor_repo::snapshot::{Content, Trouble};

    use super::*;

    #[test]
    fn a_snapshot_comes_back_and_a_change_touches_one_bucket() {
        let file = |number: u32| FileRecord {
            path: format!("src/m{number}.rs"),
            content: Content::Text {
                digest: Digest::of(&number.to_be_bytes()),
            },
            size: 7,
            modified: 1,
        };
        let mut known = Known::default();
        known.snapshot.files = (0..1_000).map(file).collect();
        known.snapshot.files.sort_by(|a, b| a.path.cmp(&b.path));
        known.since = (0..1_000).collect();
        known.snapshot.problems = vec![Problem {
            path: "x".to_owned(),
            what: Trouble::TooDeep,
        }];
        let mut buckets = known.changed_buckets(None).unwrap();
        let back = Known::from_buckets(&buckets).unwrap().unwrap();
        assert_eq!((&back.snapshot, &back.since), (&known.snapshot, &known.since));
        known.snapshot.files[500].modified = 2;
        let changed = known.changed_buckets(Some(&back)).unwrap();
        assert_eq!(changed.len(), 2, "its bucket, and what is no list");
        buckets.extend(changed);
        assert_eq!(
            Known::from_buckets(&buckets).unwrap().unwrap().snapshot,
            known.snapshot
        );
        known.snapshot.files.clear();
        known.since.clear();
        buckets.extend(known.changed_buckets(Some(&back)).unwrap());
        assert_eq!(
            Known::from_buckets(&buckets).unwrap().unwrap().snapshot,
            known.snapshot
        );
        assert_eq!(Known::from_buckets(&Buckets::new()).unwrap(), None);
        assert!(Known::from_buckets(&Buckets::from([(HEAD, vec![9])])).is_err());
    }

    #[test]
    fn what_lay_by_path_comes_back_and_moves() {
        let file = |path: &str| FileRecord {
            path: path.to_owned(),
            content: Content::Symlink,
            size: 1,
            modified: 1,
        };
        let paths = ["a", "a-b/x", "a/b", "a/b.c/d", "a/b/c", "a/z", "b"];
        let mut known = Known::default();
        known.snapshot.files = paths.map(file).into();
        known.since = vec![3; paths.len()];
        let head = known.changed_buckets(None).unwrap().remove(&HEAD).unwrap();
        let mut buckets = Buckets::from([(HEAD, head)]);
        for (number, records) in (0_u32..).zip([0..2, 2..3, 3..7]) {
            let records: Vec<(&FileRecord, u32)> = known.snapshot.files[records]
                .iter()
                .rev()
                .map(|file| (file, 3))
                .collect();
            buckets.insert(number * 20, encode(&records).unwrap());
        }
        let other = Known::default().changed_buckets(None).unwrap();
        assert!(
            buckets.keys().all(|bucket| other.contains_key(bucket)),
            "another repository"
        );
        let back = Known::from_buckets(&buckets).unwrap().unwrap();
        assert_eq!((&back.snapshot, &back.since), (&known.snapshot, &known.since));
        let moved = back.changed_buckets(Some(&back)).unwrap();
        assert!(moved.range(..HEAD).all(|(_, content)| content.is_empty()));
        buckets.extend(moved);
        let again = Known::from_buckets(&buckets).unwrap().unwrap();
        assert_eq!((&again.snapshot, &again.since), (&known.snapshot, &known.since));
        assert_eq!(
            again.changed_buckets(Some(&again)).unwrap().len(),
            1,
            "nothing but the head"
        );
    }
}
