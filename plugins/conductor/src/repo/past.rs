//! Previous snapshot of a job, of which only requested parts are read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use conductor_repo::path;
use conductor_repo::snapshot::{self, Directory, FileRecord};
use tollgate_sdk::{Cx, Db, DbError};

use super::kept::{self, Head, KeptFile, Known, Table};
use crate::model::JobId;
use crate::store::part::{self, Buckets, Kind};

/// Stored data of a snapshot, without its files.
#[derive(Debug)]
pub(crate) struct Kept {
    pub head: Head,
    files: Files,
}

#[derive(Debug)]
enum Files {
    /// Snapshot with files by directory, and its directory table.
    ByDirectory(Table),
    /// Snapshot without a directory table, with all its files.
    Whole(Known),
}

impl Kept {
    /// Loads the data of a job.
    pub(crate) fn load(db: &Db<'_>, job: &JobId) -> Result<Option<Kept>, DbError> {
        let two = part::some(db, job, Kind::Files, &[kept::HEAD_BUCKET, kept::TABLE_BUCKET])?;
        match two.contains_key(&kept::TABLE_BUCKET) {
            true => Kept::of_buckets(&two),
            false if two.is_empty() => Ok(None),
            false => Kept::of_buckets(&part::load(db, job, Kind::Files)?),
        }
    }

    /// Data in buckets: all of them, or only those besides files if files are by directory.
    fn of_buckets(buckets: &Buckets) -> Result<Option<Kept>, DbError> {
        let Some(head) = Head::of_buckets(buckets)? else {
            return Ok(None);
        };
        let files = match Table::of_buckets(buckets)? {
            Some(table) => Files::ByDirectory(table),
            None => Files::Whole(Known::from_buckets(buckets)?.unwrap_or_default()),
        };
        Ok(Some(Kept { head, files }))
    }
}

/// Previous snapshot.
pub(crate) struct Past<'a> {
    cx: &'a Cx<'a>,
    job: JobId,
    pub head: Head,
    /// Directory table.
    pub table: Option<Table>,
    /// Requested buckets, or all.
    shares: RefCell<BTreeMap<u32, Rc<[KeptFile]>>>,
    /// Error of the last failed read.
    failure: RefCell<Option<DbError>>,
}

impl<'a> Past<'a> {
    pub(crate) fn new(cx: &'a Cx<'a>, job: JobId, kept: Kept) -> Past<'a> {
        let mut shares: BTreeMap<u32, Vec<KeptFile>> = BTreeMap::new();
        let table = match kept.files {
            Files::ByDirectory(table) => Some(table),
            Files::Whole(known) => {
                for (record, since) in known.snapshot.files.into_iter().zip(known.since) {
                    let share = kept::share(path::parent(&record.path));
                    shares.entry(share).or_default().push(KeptFile { record, since });
                }
                None
            }
        };
        let shares = shares.into_iter().map(|(share, files)| (share, files.into()));
        Past {
            cx,
            job,
            head: kept.head,
            table,
            shares: RefCell::new(shares.collect()),
            failure: RefCell::default(),
        }
    }

    /// Files of a bucket, by path; empty if reading fails, which [`failed`](Past::failed) reports.
    pub(crate) fn share(&self, share: u32) -> Rc<[KeptFile]> {
        if let Err(err) = self.load(std::iter::once(share)) {
            *self.failure.borrow_mut() = Some(err);
        }
        let shares = self.shares.borrow();
        shares.get(&share).cloned().unwrap_or_default()
    }

    /// Reads several buckets at once.
    pub(crate) fn load(&self, wanted: impl Iterator<Item = u32>) -> Result<(), DbError> {
        let mut shares = self.shares.borrow_mut();
        let missing: Vec<u32> = wanted.filter(|share| !shares.contains_key(share)).collect();
        if missing.is_empty() || self.table.is_none() {
            return Ok(());
        }
        self.cx.transaction(|db| {
            let mut buckets = part::some(&db, &self.job, Kind::Files, &missing)?;
            for share in missing {
                let bytes = buckets.remove(&share).unwrap_or_default();
                shares.insert(share, kept::files_in(&bytes)?.into());
            }
            Ok(())
        })
    }

    /// Returns the error of a failed read, if there was one.
    pub(crate) fn failed(&self) -> Result<(), DbError> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
impl<'a> Past<'a> {
    /// Previous snapshot whose buckets are all read already.
    pub(crate) fn of_buckets(cx: &'a Cx<'a>, buckets: &Buckets) -> Past<'a> {
        let kept = Kept::of_buckets(buckets).unwrap().unwrap();
        let is_by_directory = matches!(kept.files, Files::ByDirectory(_));
        let past = Past::new(cx, tollgate_sdk::Id::from_text("job".to_owned()), kept);
        if is_by_directory {
            let files = |share| buckets.get(&share).map_or(&[][..], Vec::as_slice);
            let read = |share| (share, kept::files_in(files(share)).unwrap().into());
            past.shares.borrow_mut().extend(kept::all_shares().map(read));
        }
        past
    }
}

impl snapshot::Past for Past<'_> {
    fn taken(&self) -> i64 {
        self.head.taken
    }

    fn directories(&self) -> &[Directory] {
        self.table.as_ref().map_or(&[], |table| &table.directories)
    }

    fn files(&self, directory: &str) -> Vec<FileRecord> {
        let files = self.share(kept::share(directory));
        let here = files
            .iter()
            .filter(|file| path::parent(&file.record.path) == directory);
        here.map(|file| file.record.clone()).collect()
    }
}
