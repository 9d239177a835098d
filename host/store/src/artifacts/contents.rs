//! Storage of contents: files of the data directory, or the database of a server.
//!
//! A setting selects where new content goes. Content is read and removed wherever it is, so the setting can change.

use std::io;
use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;
use tollgate_core::clock::Clock;

use super::files::{DIR, Draft, Files, UNFINISHED};
use super::rows::{Rows, Source};
use super::{Artifact, ArtifactSettings};
use crate::data_dir::{DataDir, DataDirError};
use crate::storage::{Database, Session};

/// Age from which a file without a row is an orphan. The row of a younger file may be about to be committed.
const ORPHAN_MS: i64 = 3_600_000;
/// Age from which an unfinished file is abandoned: longer than any call may take.
const UNFINISHED_MS: i64 = 25 * 3_600_000;

/// Storage for new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentStore {
    /// Files of the data directory, which only its hosts can read.
    Files,
    /// The database of a server, which all of its hosts can read.
    Database,
}

/// Reason for which artifacts cannot be stored as configured.
#[derive(Debug, Error)]
pub enum ArtifactsError {
    /// The directory for the files cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database is a file.
    #[error(
        "artifacts.store is \"database\", but the database is a file in the data directory; name a PostgreSQL server with \
         storage.url, --database or TOLLGATE_DATABASE, or remove artifacts.store"
    )]
    NoServer,
}

/// Storage of contents.
pub(super) struct Contents {
    /// Absent if nothing is stored and there are no files.
    files: Option<Files>,
    /// Present if the database is on a server.
    rows: Option<Rows>,
    new: ContentStore,
}

/// Writes content from a server's database into files of a data directory, when the database becomes a file there.
/// Returns the number of contents. Content that was changed in the database is skipped with a warning.
pub fn into_files(data: &DataDir, database: &Database, clock: Arc<dyn Clock>) -> anyhow::Result<usize> {
    let (rows, files) = (Rows::new(database.clone()), Files::open(data, clock)?);
    let hashes = rows.hashes()?;
    for hash in &hashes {
        match rows.read(hash, 0, usize::MAX) {
            Ok(Some(content)) => files.put(&content, hash)?,
            // Removed by a collector in the meantime.
            Ok(None) => {}
            Err(err) if err.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(hash, "skipping the content of an artifact: {err}");
            }
            Err(err) => return Err(err.into()),
        }
    }
    Ok(hashes.len())
}

impl Contents {
    /// Opens the storage. Empty if nothing is stored and never was.
    pub(super) fn open(
        data: &DataDir,
        settings: &ArtifactSettings,
        clock: Arc<dyn Clock>,
        database: &Database,
    ) -> Result<Option<Contents>, ArtifactsError> {
        let is_on_server = database.is_on_server();
        let new = match (settings.store, is_on_server) {
            (Some(ContentStore::Database), false) => return Err(ArtifactsError::NoServer),
            (Some(store), _) => store,
            (None, true) => ContentStore::Database,
            (None, false) => ContentStore::Files,
        };
        let files = match settings.enabled || data.has(DIR) {
            true => Some(Files::open(data, clock)?),
            false => None,
        };
        let rows = is_on_server.then(|| Rows::new(database.clone()));
        let is_any = files.is_some() || rows.is_some();
        Ok(is_any.then_some(Contents { files, rows, new }))
    }

    /// Creates a private file for content of unknown size.
    pub(super) fn draft(&self) -> io::Result<Draft> {
        self.files()?.create()
    }

    /// Removes the file, unless it became the content of an artifact.
    pub(super) fn discard(&self, draft: &Draft) {
        if let Some(files) = &self.files {
            files.discard(&draft.name);
        }
    }

    /// Turns a file into the content of an artifact whose row will follow.
    pub(super) fn keep(&self, draft: &Draft, artifact: &Artifact) -> io::Result<()> {
        match self.rows_for_new() {
            Some(rows) => rows.put(Source::File(&draft.file), &artifact.hash, &artifact.id),
            None => self.files()?.place(&draft.name, &artifact.hash),
        }
    }

    /// Stores content of an artifact whose row exists or will follow.
    pub(super) fn put(&self, content: &[u8], hash: &str, artifact: &str) -> io::Result<()> {
        match self.rows_for_new() {
            Some(rows) => rows.put(Source::Memory(content), hash, artifact),
            None => self.files()?.put(content, hash),
        }
    }

    /// Slice of content, up to `limit` bytes. `None` if the content was removed. Content that does not match its hash
    /// is an error of the kind [`InvalidData`](io::ErrorKind::InvalidData).
    pub(super) fn read(&self, hash: &str, offset: u64, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let of_rows = self.rows.as_ref().map(|rows| rows.read(hash, offset, limit));
        if let Some(found) = of_rows.transpose()?.flatten() {
            return Ok(Some(found));
        }
        let of_files = self.files.as_ref().map(|files| files.read(hash, offset, limit));
        Ok(of_files.transpose()?.flatten())
    }

    /// Removes content that no artifact names any more.
    pub(super) fn remove(&self, hash: &str) -> io::Result<()> {
        if let Some(rows) = &self.rows {
            rows.remove(hash)?;
        }
        if let Some(files) = &self.files {
            files.remove(hash, |_| true)?;
        }
        Ok(())
    }

    /// Removes contents in the database that no artifact names.
    pub(super) fn sweep_rows(&self) -> io::Result<()> {
        self.rows.as_ref().map_or(Ok(()), Rows::sweep)
    }

    /// Removes files that no artifact names, and abandoned unfinished files.
    pub(super) fn sweep_files(&self, session: &Session) -> anyhow::Result<()> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        for name in files.names()? {
            let patience = if name.starts_with(UNFINISHED) {
                UNFINISHED_MS
            } else if session.artifacts().is_live(&name)? {
                continue;
            } else {
                ORPHAN_MS
            };
            files.remove(&name, |age_ms| age_ms > patience)?;
        }
        Ok(())
    }

    /// True if hosts with other settings may store content in the same place.
    pub(super) fn are_shared(&self) -> bool {
        self.rows.is_some()
    }

    /// Bytes of all contents.
    pub(super) fn size(&self) -> io::Result<u64> {
        let of_rows = self.rows.as_ref().map_or(Ok(0), Rows::size)?;
        let of_files = self.files.as_ref().map_or(Ok(0), Files::size)?;
        Ok(of_rows.saturating_add(of_files))
    }

    fn rows_for_new(&self) -> Option<&Rows> {
        self.rows.as_ref().filter(|_| self.new == ContentStore::Database)
    }

    fn files(&self) -> io::Result<&Files> {
        let off = || io::Error::other("artifacts are disabled: artifacts.enabled is not set");
        self.files.as_ref().ok_or_else(off)
    }

    /// Names of all files, finished or not, and hashes of contents in the database.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        let files = self.files.as_ref().map(|files| files.names().unwrap());
        let rows = self.rows.as_ref().map(|rows| rows.hashes().unwrap());
        files.into_iter().chain(rows).flatten().collect()
    }

    /// Makes all files look an hour older.
    #[cfg(test)]
    pub(super) fn age_files(&self) {
        if let Some(files) = &self.files {
            files.age(ORPHAN_MS);
        }
    }
}
