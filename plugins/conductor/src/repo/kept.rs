//! Snapshots, facts and ages as the bytes of buckets.
//!
//! What a record falls into follows from its path or content alone, so that a change touches few
//! buckets however many files there are.

use std::collections::BTreeMap;

use conductor_repo::facts::{FactBook, Facts};
use conductor_repo::snapshot::{Digest, FileRecord, Problem, Snapshot};
use conductor_repo::stale::Ages;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tollgate_sdk::DbError;

use crate::store::part::Buckets;

/// Buckets that files fall into.
const SHARES: u32 = 64;
/// The bucket of what is no list.
const HEAD: u32 = SHARES;

/// A snapshot as it is kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Known {
    pub snapshot: Snapshot,
    /// For each file the number of the snapshot that saw it first.
    pub since: Vec<u32>,
    /// The state of Git's index and private excludes that `tracked` comes from.
    pub stamps: Option<Stamps>,
    /// What Git tracks although `.gitignore` excludes it.
    pub tracked: Vec<String>,
}

/// What is kept of a snapshot beside its files.
#[derive(Serialize, Deserialize)]
struct Head {
    taken: i64,
    problems: Vec<Problem>,
    stamps: Option<Stamps>,
    tracked: Vec<String>,
}

/// Size and time of `.git/index` and of `.git/info/exclude`.
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
        let mut files: Vec<KeptFile> = Vec::new();
        for (_, bytes) in buckets.range(..HEAD) {
            files.extend(decode::<Vec<KeptFile>>(bytes)?);
        }
        files.sort_unstable_by(|a, b| a.record.path.cmp(&b.record.path));
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
        }))
    }

    /// The buckets that hold it.
    pub(crate) fn to_buckets(&self) -> Result<Buckets, DbError> {
        let mut shares: BTreeMap<u32, Vec<(&FileRecord, u32)>> = BTreeMap::new();
        for (record, since) in self.snapshot.files.iter().zip(&self.since) {
            shares
                .entry(share(&record.path))
                .or_default()
                .push((record, *since));
        }
        let mut buckets = Buckets::new();
        for (bucket, files) in &shares {
            buckets.insert(*bucket, encode(files)?);
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

/// The buckets that hold facts.
pub(crate) fn book_to(book: &FactBook) -> Result<Buckets, DbError> {
    let mut shares: BTreeMap<u32, Vec<(Digest, &str, &Facts)>> = BTreeMap::new();
    for (digest, reading, facts) in book.rows() {
        let share = shares.entry(digest.share(SHARES)).or_default();
        share.push((digest, reading, facts));
    }
    shares
        .iter()
        .map(|(bucket, rows)| Ok((*bucket, encode(rows)?)))
        .collect()
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

fn share(path: &str) -> u32 {
    Digest::of(path.as_bytes()).share(SHARES)
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
        let buckets = known.to_buckets().unwrap();
        let back = Known::from_buckets(&buckets).unwrap().unwrap();
        assert_eq!((&back.snapshot, &back.since), (&known.snapshot, &known.since));
        known.snapshot.files[500].modified = 2;
        let after = known.to_buckets().unwrap();
        let changed = after
            .iter()
            .filter(|(bucket, bytes)| buckets.get(bucket) != Some(bytes));
        assert_eq!(changed.count(), 1);
        assert_eq!(Known::from_buckets(&Buckets::new()).unwrap(), None);
        assert!(Known::from_buckets(&Buckets::from([(HEAD, vec![9])])).is_err());
    }
}
