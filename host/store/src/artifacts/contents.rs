//! Places of contents: files of the data directory, and the database of a server.
//!
//! A setting says where new content goes. Content is read and removed wherever it is, so that the setting can change.

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

/// Age of a file without a row, so that it is not one whose row is about to be committed.
const ORPHAN_MS: i64 = 3_600_000;
/// The same for a file that is still being written: longer than any call may take.
const UNFINISHED_MS: i64 = 25 * 3_600_000;

/// Place of new content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentStore {
    /// Files of the data directory, which its hosts alone read.
    Files,
    /// The database of a server, which all of its hosts read.
    Database,
}

/// Reason why artifacts cannot be kept as the settings say.
#[derive(Debug, Error)]
pub enum ArtifactsError {
    /// The directory of files cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database is a file.
    #[error(
        "artifacts.store is \"database\", but the database is a file in the data directory; name a PostgreSQL server with \
         storage.url, --database or TOLLGATE_DATABASE, or remove artifacts.store"
    )]
    NoServer,
}

/// The places of contents.
pub(super) struct Contents {
    /// Absent while nothing is kept and no file was.
    files: Option<Files>,
    /// Present if the database is on a server.
    rows: Option<Rows>,
    new: ContentStore,
}

/// Writes the content that a server's database has into files of a data directory, for a database that becomes a file there.
/// Returns how many contents there were. Content that was changed in the database is left out, with a warning.
pub fn into_files(data: &DataDir, database: &Database, clock: Arc<dyn Clock>) -> anyhow::Result<usize> {
    let (rows, files) = (Rows::new(database.clone()), Files::open(data, clock)?);
    let hashes = rows.hashes()?;
    for hash in &hashes {
        match rows.read(hash, 0, usize::MAX) {
            Ok(Some(content)) => files.put(&content, hash)?,
            // A collector took it away meanwhile.
            Ok(None) => {}
            Err(err) if err.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(hash, "content of an artifact is left out: {err}");
            }
            Err(err) => return Err(err.into()),
        }
    }
    Ok(hashes.len())
}

impl Contents {
    /// Opens the places. There are none if nothing is kept and nothing was.
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

    /// A private file for content of unknown size.
    pub(super) fn draft(&self) -> io::Result<Draft> {
        self.files()?.create()
    }

    /// Removes the file again, if nothing was made of it.
    pub(super) fn discard(&self, draft: &Draft) {
        if let Some(files) = &self.files {
            files.discard(&draft.name);
        }
    }

    /// Makes a file the content of an artifact whose row comes.
    pub(super) fn keep(&self, draft: &Draft, artifact: &Artifact) -> io::Result<()> {
        match self.rows_for_new() {
            Some(rows) => rows.put(Source::File(&draft.file), &artifact.hash, &artifact.id),
            None => self.files()?.place(&draft.name, &artifact.hash),
        }
    }

    /// Stores content of an artifact whose row came, or comes.
    pub(super) fn put(&self, content: &[u8], hash: &str, artifact: &str) -> io::Result<()> {
        match self.rows_for_new() {
            Some(rows) => rows.put(Source::Memory(content), hash, artifact),
            None => self.files()?.put(content, hash),
        }
    }

    /// A slice of content, at most so many bytes. `None` if the content is gone. Content that is not what its hash says
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

    /// Removes contents of the database that no artifact names.
    pub(super) fn sweep_rows(&self) -> io::Result<()> {
        self.rows.as_ref().map_or(Ok(()), Rows::sweep)
    }

    /// Removes files that no artifact names, and those that nobody writes any more.
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

    /// True if hosts with other settings may keep content in the same place.
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
        let off = || io::Error::other("artifacts are not kept: artifacts.enabled is not set");
        self.files.as_ref().ok_or_else(off)
    }

    /// Names of all files, whole or not, and hashes of contents in the database.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        let files = self.files.as_ref().map(|files| files.names().unwrap());
        let rows = self.rows.as_ref().map(|rows| rows.hashes().unwrap());
        files.into_iter().chain(rows).flatten().collect()
    }

    /// Has all files been written an hour before.
    #[cfg(test)]
    pub(super) fn age_files(&self) {
        if let Some(files) = &self.files {
            files.age(ORPHAN_MS);
        }
    }
}
