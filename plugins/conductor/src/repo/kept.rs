//! Snapshots, facts and ages as the bytes of buckets.
//!
//! The bucket of a record depends on its path or content alone, so that a change affects few buckets, however
//! many files there are.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use conductor_repo::facts::{self, FactBook, Facts};
use conductor_repo::path;
use conductor_repo::snapshot::{Digest, Directory, FileRecord, Problem, Snapshot};
use conductor_repo::stale::Ages;
use conductor_repo::tree::Above;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tollgate_sdk::DbError;

use crate::store::part::Buckets;

/// Number of buckets for facts.
const SHARE_COUNT: u32 = 64;
/// Bucket of data that is not a list.
pub(crate) const HEAD_BUCKET: u32 = SHARE_COUNT;
/// First of the buckets for files; all files of a directory are in the same one. Old snapshots have their files
/// in the buckets before [`HEAD_BUCKET`], by path.
const FIRST_FILE_BUCKET: u32 = HEAD_BUCKET + 1;
/// Bucket of the directory table. Missing in old snapshots, whose files are by path.
pub(crate) const TABLE_BUCKET: u32 = FIRST_FILE_BUCKET + SHARE_COUNT;
/// Bucket of the ignore files above the repository. Missing or empty if there are none.
pub(crate) const ABOVE_BUCKET: u32 = TABLE_BUCKET + 1;

/// All files of a stored snapshot.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    pub snapshot: Snapshot,
    /// For each file, the number of the first snapshot with it.
    pub since: Vec<u32>,
}

/// Stored data of a snapshot besides its files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Head {
    pub taken: i64,
    pub problems: Vec<Problem>,
    /// State of Git's index and of the excluded entries from which `tracked` was computed.
    pub stamps: Option<Stamps>,
    /// Paths that Git tracks although `.gitignore` excludes them.
    pub tracked: Vec<String>,
}

/// Size and time of `.git/index`, then a hash of the excluded entries.
pub(crate) type Stamps = [(u64, i64); 2];

/// Stored data of directories: of all that the walk visited, and of all others with files.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Table {
    pub directories: Vec<Directory>,
    /// Summary of each directory.
    pub summaries: Vec<Summary>,
}

/// Summary of the files of one directory in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub files: u32,
    pub bytes: u64,
    /// Names of files to read first.
    pub key_files: Vec<String>,
    /// True if a file was added since the job's first snapshot.
    pub has_new: bool,
}

/// A file of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptFile {
    pub record: FileRecord,
    /// Number of the first snapshot with the file.
    pub since: u32,
}

impl Head {
    pub(crate) fn of_buckets(buckets: &Buckets) -> Result<Option<Head>, DbError> {
        buckets.get(&HEAD_BUCKET).map(|bytes| decode(bytes)).transpose()
    }

    /// Bucket in which it is stored.
    pub(crate) fn bucket(&self) -> Result<(u32, Vec<u8>), DbError> {
        Ok((HEAD_BUCKET, encode(self)?))
    }
}

impl Table {
    pub(crate) fn of_buckets(buckets: &Buckets) -> Result<Option<Table>, DbError> {
        buckets.get(&TABLE_BUCKET).map(|bytes| decode(bytes)).transpose()
    }

    /// Bucket in which it is stored.
    pub(crate) fn bucket(&self) -> Result<(u32, Vec<u8>), DbError> {
        Ok((TABLE_BUCKET, encode(self)?))
    }

    /// Directories with their summaries.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&Directory, &Summary)> {
        self.directories.iter().zip(&self.summaries)
    }
}

impl Known {
    /// All files, and the data besides them, if there is a snapshot.
    pub(crate) fn from_buckets(buckets: &Buckets) -> Result<Option<Known>, DbError> {
        let Some(head) = Head::of_buckets(buckets)? else {
            return Ok(None);
        };
        let mut directories: Vec<Vec<KeptFile>> = Vec::new();
        for (_, bytes) in buckets
            .iter()
            .filter(|(bucket, _)| ![HEAD_BUCKET, TABLE_BUCKET, ABOVE_BUCKET].contains(bucket))
        {
            let mut files = files_in(bytes)?.into_iter().peekable();
            while let Some(first) = files.next() {
                let mut found = vec![first];
                while let Some(next) =
                    files.next_if(|next| directory_of(&found) == path::parent(&next.record.path))
                {
                    found.push(next);
                }
                directories.push(found);
            }
        }
        directories.sort_by(|a, b| directory_of(a).cmp(directory_of(b)));
        let files = directories.into_iter().flatten().collect();
        let mut known = Known::new(head.taken, files, head.problems);
        known.snapshot.above = above_from(buckets)?;
        Ok(Some(known))
    }

    /// Collects these files, in any order.
    pub(crate) fn new(taken: i64, mut files: Vec<KeptFile>, problems: Vec<Problem>) -> Known {
        // The files are mostly in order, which a stable sort uses.
        files.sort_by(|a, b| a.record.path.cmp(&b.record.path));
        let (files, since) = files.into_iter().map(|file| (file.record, file.since)).unzip();
        Known {
            snapshot: Snapshot {
                taken,
                files,
                problems,
                above: Above::default(),
            },
            since,
        }
    }

    /// Files by directory: not in directory order, and a directory occurs again after its subdirectories.
    pub(crate) fn directories(
        &self,
    ) -> impl Iterator<Item = (&str, impl Iterator<Item = (&FileRecord, u32)>)> {
        let mut since = self.since.as_slice();
        directories_of(&self.snapshot.files).map(move |(directory, files)| {
            let (here, rest) = since.split_at_checked(files.len()).unwrap_or((since, &[]));
            since = rest;
            (directory, files.iter().zip(here.iter().copied()))
        })
    }

    /// Each file with the number of the first snapshot with it.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&FileRecord, u32)> {
        self.snapshot.files.iter().zip(self.since.iter().copied())
    }
}

/// Ignore files above a repository, as a bucket.
pub(crate) fn above_bucket(above: &Above) -> Result<(u32, Vec<u8>), DbError> {
    let bytes = match above.prefix.is_empty() {
        true => Vec::new(),
        false => encode(above)?,
    };
    Ok((ABOVE_BUCKET, bytes))
}

fn above_from(buckets: &Buckets) -> Result<Above, DbError> {
    match buckets.get(&ABOVE_BUCKET) {
        Some(bytes) if !bytes.is_empty() => decode(bytes),
        _ => Ok(Above::default()),
    }
}

/// Files in their order; consecutive files of a directory are grouped.
pub(crate) fn directories_of(files: &[FileRecord]) -> impl Iterator<Item = (&str, &[FileRecord])> {
    let together = files.chunk_by(|a, b| path::parent(&a.path) == path::parent(&b.path));
    together.map(|files| {
        let first = files.first().map_or("", |file| path::parent(&file.path));
        (first, files)
    })
}

impl Summary {
    /// Adds the summary of other files of the directory.
    pub(crate) fn add(&mut self, other: &Summary) {
        self.files += other.files;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.key_files.extend_from_slice(&other.key_files);
        self.has_new |= other.has_new;
    }

    pub(crate) fn count(&self) -> usize {
        usize::try_from(self.files).unwrap_or(usize::MAX)
    }
}

/// Bucket of a directory's files.
pub(crate) fn share(directory: &str) -> u32 {
    FIRST_FILE_BUCKET + Digest::of(directory.as_bytes()).share(SHARE_COUNT)
}

/// All buckets that hold or held files.
pub(crate) fn all_shares() -> impl Iterator<Item = u32> {
    (0..TABLE_BUCKET).filter(|bucket| *bucket != HEAD_BUCKET)
}

/// Files of one bucket.
pub(crate) fn files_in(bytes: &[u8]) -> Result<Vec<KeptFile>, DbError> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    decode(bytes)
}

/// Bytes of a bucket with these files.
pub(crate) fn bucket_of(files: &[(&FileRecord, u32)]) -> Result<Vec<u8>, DbError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    encode(&files)
}

/// Beginning of each bucket of facts: a length that no list has, then the version of the facts. Buckets of earlier
/// versions begin with the length of their list.
const FACTS_HEADER: [u8; 6] = [0xff, 0xff, 0xff, 0xff, 0xff, facts::VERSION];

/// Facts in these buckets.
pub(crate) fn book_from(buckets: &Buckets) -> Result<FactBook, DbError> {
    let mut book = FactBook::default();
    for bytes in buckets.values() {
        add_facts(bytes, &mut book)?;
    }
    Ok(book)
}

/// Adds the facts of one bucket. Facts of another version are left out, so that the next update of the map reads
/// their files again.
pub(crate) fn add_facts(bytes: &[u8], book: &mut FactBook) -> Result<(), DbError> {
    let Some(bytes) = bytes.strip_prefix(FACTS_HEADER.as_slice()) else {
        return Ok(());
    };
    for (digest, reading, facts) in decode::<Vec<(Digest, String, Facts)>>(bytes)? {
        book.insert(digest, reading, facts);
    }
    Ok(())
}

/// Buckets of changed facts.
pub(crate) fn changed_facts(book: &FactBook, learned: &Learned) -> Result<Buckets, DbError> {
    let changed = book.changed().map(|digest| digest.share(SHARE_COUNT));
    let changed: BTreeSet<u32> = changed.chain(learned.shares.keys().copied()).collect();
    let mut shares: BTreeMap<u32, Vec<(Digest, &str, &Facts)>> =
        changed.into_iter().map(|share| (share, Vec::new())).collect();
    for (digest, reading, facts) in book.rows() {
        if let Some(share) = shares.get_mut(&digest.share(SHARE_COUNT)) {
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
                    encode_facts(rows)?
                },
            ))
        })
        .collect()
}

/// Facts of a walk, serialised at once: those of a large repository would not fit into the memory of a
/// component otherwise.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// Number of rows of each bucket, and the rows.
    shares: BTreeMap<u32, (usize, Vec<u8>)>,
    seen: HashSet<(Digest, String)>,
}

impl Learned {
    /// Reads a file that a walk passes on. Facts that cannot be serialised are read by the next update of the
    /// map.
    pub(crate) fn learn(&mut self, file: &FileRecord, bytes: &[u8]) {
        let Some((digest, reading)) = facts::key(file) else {
            return;
        };
        if !self.seen.insert((digest, reading.to_owned())) {
            return;
        }
        if let Ok(row) = encode(&(digest, reading, Facts::read(&file.path, bytes))) {
            let (rows, written) = self.shares.entry(digest.share(SHARE_COUNT)).or_default();
            *rows += 1;
            written.extend(row);
        }
    }

    /// Buckets of the facts.
    pub(crate) fn buckets(&self) -> Result<Buckets, DbError> {
        let bucket = |(share, (rows, written)): (&u32, &(usize, Vec<u8>))| {
            let mut bytes = encode_facts(rows)?;
            bytes.extend(written);
            Ok((*share, bytes))
        };
        self.shares.iter().map(bucket).collect()
    }

    /// Adds the facts to a book.
    pub(crate) fn add_to(&self, book: &mut FactBook) -> Result<(), DbError> {
        self.buckets()?
            .values()
            .try_for_each(|bytes| add_facts(bytes, book))
    }
}

/// Bytes of a bucket with those of another added.
pub(crate) fn merged(known: &[u8], learned: Vec<u8>) -> Result<Vec<u8>, DbError> {
    if known.is_empty() {
        return Ok(learned);
    }
    let mut book = FactBook::default();
    add_facts(known, &mut book)?;
    add_facts(&learned, &mut book)?;
    encode_facts(&book.rows().collect::<Vec<_>>())
}

/// Git's times of the last commits, and the commit at which they were read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptAges {
    pub commit: String,
    pub ages: Ages,
}

/// Ages in these buckets.
pub(crate) fn ages_from(buckets: &Buckets) -> Result<Option<KeptAges>, DbError> {
    buckets.get(&HEAD_BUCKET).map(|bytes| decode(bytes)).transpose()
}

/// Bucket of ages.
pub(crate) fn ages_to(ages: &KeptAges) -> Result<Buckets, DbError> {
    Ok(Buckets::from([(HEAD_BUCKET, encode(ages)?)]))
}

fn directory_of(files: &[KeptFile]) -> &str {
    files.first().map_or("", |file| path::parent(&file.record.path))
}

/// Bytes of facts, with their version.
fn encode_facts(value: &impl Serialize) -> Result<Vec<u8>, DbError> {
    let mut bytes = FACTS_HEADER.to_vec();
    bytes.extend(encode(value)?);
    Ok(bytes)
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
    use super::*;

    #[test]
    fn facts_of_another_version_are_read_again() {
        let facts = Facts::read("a.py", b"import os\n");
        let rows = vec![(Digest::of(b"import os\n"), "py", &facts)];
        let current = encode_facts(&rows).unwrap();
        let mut book = FactBook::default();
        add_facts(&current, &mut book).unwrap();
        assert_eq!(book.rows().count(), 1);
        let mut other = current.clone();
        other[5] = other[5].wrapping_sub(1);
        let first_version = encode(&rows).unwrap();
        for old in [other, first_version, Vec::new()] {
            let mut book = FactBook::default();
            add_facts(&old, &mut book).unwrap();
            assert!(book.is_empty());
            assert_eq!(merged(&old, current.clone()).unwrap(), current);
        }
    }
}
