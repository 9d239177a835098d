//! Remedies for system and SQLite errors, whose messages name none.

use std::error::Error;
use std::io;

use tollgate_store::storage::{StoreError, StoreFailure};

/// Remedy for an error, if a user can do something about its cause.
pub fn remedy(err: &(dyn Error + 'static)) -> Option<&'static str> {
    let causes = || std::iter::successors(Some(err), |err| (*err).source());
    let is_taken = |cause: &(dyn Error + 'static)| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::AddrInUse)
    };
    if causes().any(is_taken) {
        return Some(
            "another program listens there, perhaps a server of this configuration; choose another port, or \
             --http 127.0.0.1:0 for a free one",
        );
    }
    match StoreError::find(err)? {
        StoreFailure::Damaged => Some(
            "the database is damaged; stop all hosts and restore a backup with `tollgate restore BACKUP --force`, \
             which keeps the damaged data directory under another name. Without a backup, move tollgate.db and \
             tollgate.db-wal away: the next start creates a new database",
        ),
        // A server's message names the missing privilege.
        StoreFailure::NotWritable if causes().any(|cause| cause.to_string().contains("SQLSTATE")) => Some(
            "the database role in the URL lacks rights on the host's tables: use the role that owns them, or create \
             one with `tollgate storage init`",
        ),
        StoreFailure::NotWritable => Some(
            "tollgate writes to its data directory even when it only reads the ledger; if this directory is read-only, \
             work with a copy: `tollgate --data-dir DIR restore BACKUP`, or copy the directory",
        ),
        StoreFailure::Moved => Some(
            "stop every host of this data directory, move tollgate.db and tollgate.db-wal back, and start again",
        ),
        StoreFailure::Full => {
            Some("the disk is full; `tollgate doctor` shows how much the data directory takes")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use tollgate_store::storage::Database;

    use super::*;

    #[test]
    fn what_sqlite_says_of_a_damaged_file_comes_with_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tollgate.db");
        #[allow(clippy::disallowed_methods, reason = "the test makes a file")]
        std::fs::write(&path, "not a database at all".repeat(100)).unwrap();
        let failed = Database::open(&path);
        let err = failed.context("cannot use the database").unwrap_err();
        assert!(remedy(err.as_ref()).unwrap().contains("tollgate restore"));
        assert_eq!(remedy(anyhow::anyhow!("other").as_ref()), None);
    }
}
