//! A small write-ahead log, cut at every byte and damaged at every byte, as the host opens and verifies it. A normal
//! run covers a share of the bytes, a long run covers all.
#![allow(clippy::disallowed_methods, reason = "the tests damage files")]

use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;
use tollgate_store::storage::{Database, Operation, Session};

use crate::harness::Place;
use crate::load::{texts, verified};
use crate::share::share;

const HASHES: &str = "SELECT hash FROM core_operations ORDER BY seq";
/// Rows in the database file, and rows of each commit in the log only.
const IN_FILE: usize = 2;
const COMMITS: [usize; 2] = [1, 2];
/// One of so many bytes is taken in a usual run.
const ONE_OF: usize = 16;

/// A directory in memory if the system has one, because these tests do not need a disk.
fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn operation(number: usize) -> Operation {
    let operation = json!({
        "op_id": format!("op_{number}"), "timestamp": "2026-01-01T00:00:00.000Z", "duration_ms": 0.5,
        "op_type": "mutation", "success": true, "pack": "p", "tool": "t", "effect": "write", "connection": "c",
        "host_id": "h", "args_hash": "a",
    });
    serde_json::from_value(operation).unwrap()
}

/// A database and its log after the kill of a host, and the hashes of the rows.
struct Left {
    file: Vec<u8>,
    log: Vec<u8>,
    history: Vec<String>,
}

impl Left {
    fn new() -> Left {
        let place = scratch();
        let path = place.path().join("tollgate.db");
        let mut made = 0;
        let mut write = |session: &Session, rows: usize| {
            session.begin_write().unwrap();
            for _ in 0..rows {
                session.ledger().record(&operation(made)).unwrap();
                made += 1;
            }
            session.commit().unwrap();
        };
        // The last connection that closes moves the log into the file.
        write(&Database::open(&path).unwrap().write_session().unwrap(), IN_FILE);
        let session = Database::open(&path).unwrap().write_session().unwrap();
        for rows in COMMITS {
            write(&session, rows);
        }
        Left {
            file: std::fs::read(&path).unwrap(),
            log: std::fs::read(place.path().join("tollgate.db-wal")).unwrap(),
            history: texts(&path, HASHES),
        }
    }

    /// Number of rows that the host finds with another log. Checks that these are the first rows of the history,
    /// unchanged.
    fn left_with(&self, log: &[u8], place: &TempDir, what: &str) -> usize {
        let path = place.path().join("tollgate.db");
        let beside = |name: &str| -> PathBuf { place.path().join(name) };
        let _ = std::fs::remove_file(beside("tollgate.db-shm"));
        std::fs::write(&path, &self.file).unwrap();
        std::fs::write(beside("tollgate.db-wal"), log).unwrap();
        let verified = verified(&path);
        assert_eq!(verified.broken, None, "{what}");
        let left = usize::try_from(verified.rows).unwrap();
        assert_eq!(
            texts(&path, HASHES),
            self.history[..left],
            "{what}: another history"
        );
        left
    }

    /// Number of remaining rows for each of some positions at which the log is damaged.
    fn at_each(&self, places: &[usize], damage: impl Fn(&[u8], usize) -> Vec<u8>) -> Vec<usize> {
        let scratch = scratch();
        places
            .iter()
            .map(|at| self.left_with(&damage(&self.log, *at), &scratch, &format!("at byte {at}")))
            .collect()
    }

    /// Number of remaining rows for the positions in the log, on two threads.
    fn everywhere(&self, damage: impl Fn(&[u8], usize) -> Vec<u8> + Sync) -> Vec<usize> {
        let places: Vec<usize> = share(0..self.log.len(), ONE_OF).collect();
        let (first, second) = places.split_at(places.len() / 2);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| self.at_each(first, &damage));
            let second = self.at_each(second, &damage);
            [first.join().unwrap(), second].concat()
        })
    }
}

#[test]
fn a_log_that_was_cut_at_any_byte_is_a_beginning_of_history() {
    let left = Left::new();
    let rows = left.everywhere(|log, at| log[..at].to_vec());
    assert!(rows.is_sorted(), "less log, more rows");
    // Nothing of a commit is there, or all of it.
    let mut seen = rows;
    seen.dedup();
    assert_eq!(seen, [IN_FILE, IN_FILE + COMMITS[0]]);
    let whole = left.left_with(&left.log, &scratch(), "whole");
    assert_eq!((whole, left.history.len()), (5, 5));
}

#[test]
fn a_log_with_a_bit_flipped_in_any_byte_is_a_beginning_of_history() {
    let left = Left::new();
    let rows = left.everywhere(|log, at| {
        let mut log = log.to_vec();
        log[at] ^= 1 << (at % 8);
        log
    });
    assert!(rows.contains(&IN_FILE) && rows.contains(&(IN_FILE + COMMITS[0])));
    assert!(rows.len() >= left.log.len() / ONE_OF);
}

#[test]
fn hosts_start_on_a_log_that_was_cut_anywhere() {
    let left = Left::new();
    let place = Place::new();
    let step = left.log.len() / 12;
    for at in (0..left.log.len()).step_by(step) {
        for rest in ["tollgate.db-shm", "tollgate.db-wal"] {
            let _ = std::fs::remove_file(place.data().join(rest));
        }
        std::fs::write(place.data().join("tollgate.db"), &left.file).unwrap();
        std::fs::write(place.data().join("tollgate.db-wal"), &left.log[..at]).unwrap();
        let (code, _) = place.call("task_list", &json!({}));
        assert_eq!(code, 0, "cut at {at}");
        assert!(place.run(&["ledger", "verify"]).status.success(), "cut at {at}");
    }
}
