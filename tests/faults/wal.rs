//! A truncated or damaged write-ahead log: what remains is a prefix of the history or a clear refusal, never another
//! history.
#![allow(clippy::disallowed_methods, reason = "the tests damage files")]

use std::path::Path;

use tollgate_store::storage::Database;

use crate::harness::Place;
use crate::load::{Load, texts};
use crate::share::share;

/// Bytes of the log's header, of a frame's header, and of a page.
const HEADER: usize = 32;
const FRAME: usize = 24 + 4096;
/// Distance of additional positions at which the log is truncated and damaged, besides the ends of frames.
const STEP: usize = 16_411;

/// A database after the kill of a host: the file, its log, and each row's hash.
struct Killed {
    file: Vec<u8>,
    log: Vec<u8>,
    history: Vec<String>,
}

const HASHES: &str = "SELECT hash FROM core_operations ORDER BY seq";

async fn killed() -> Killed {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let mut load = Load::default();
    load.create_many(&session, 12).await;
    session.kill();
    let file = std::fs::read(place.data().join("tollgate.db")).unwrap();
    let log = std::fs::read(place.data().join("tollgate.db-wal")).unwrap();
    let session = place.serve(&[]).await;
    session.close().await;
    load.check(&place.data());
    let history = texts(&place.data().join("tollgate.db"), HASHES);
    Killed { file, log, history }
}

impl Killed {
    /// Number of remaining rows with another log. Checks that these are the first rows of the history, and intact.
    fn left_with(&self, log: &[u8], what: &str) -> usize {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tollgate.db");
        std::fs::write(&path, &self.file).unwrap();
        std::fs::write(place.path().join("tollgate.db-wal"), log).unwrap();
        if !has_tables(&path) {
            return 0;
        }
        let left = texts(&path, HASHES);
        assert_eq!(left, self.history[..left.len()], "{what}: another history");
        crate::load::consistent(&path);
        left.len()
    }
}

/// True if the tables of the host and the pack exist. Otherwise, the host creates its tables again.
fn has_tables(path: &Path) -> bool {
    let tables = "SELECT name FROM sqlite_master WHERE name IN ('core_operations', 'task_store_events')";
    let found = texts(path, tables).len() == 2;
    if !found {
        Database::open(path).unwrap();
    }
    found
}

/// One of so many positions is taken in a usual run.
const ONE_OF: usize = 4;

/// Positions beside the ends of frames, and positions in between.
fn places(log: &[u8]) -> Vec<usize> {
    let frames = (log.len() - HEADER) / FRAME;
    let ends = (0..=frames).flat_map(|frame| {
        let end = HEADER + frame * FRAME;
        [end - 1, end, end + 1]
    });
    let mut places: Vec<usize> = ends.chain((0..log.len()).step_by(STEP)).collect();
    places.retain(|place| *place < log.len());
    places.sort_unstable();
    places.dedup();
    share(places.into_iter(), ONE_OF).collect()
}

#[tokio::test]
async fn a_log_that_was_cut_is_a_beginning_of_history() {
    let killed = killed().await;
    assert_eq!(killed.left_with(&killed.log, "whole"), killed.history.len());
    let mut before = 0;
    for length in places(&killed.log) {
        let left = killed.left_with(&killed.log[..length], &format!("cut at {length}"));
        assert!(left >= before, "cut at {length}: {left} rows, {before} with less");
        before = left;
    }
    assert!(before > 0 && killed.left_with(&[], "empty") < killed.history.len());
}

#[tokio::test]
async fn a_log_with_a_flipped_bit_is_a_beginning_of_history() {
    let killed = killed().await;
    let mut damaged = killed.log.clone();
    for (number, at) in places(&killed.log).into_iter().enumerate() {
        let bit = 1 << (number % 8);
        damaged[at] ^= bit;
        killed.left_with(&damaged, &format!("bit {bit:#x} of byte {at}"));
        damaged[at] ^= bit;
    }
}
