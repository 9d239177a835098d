//! Tests of contents in every storage: stored content is readable, changed content is refused, named content stays.

use std::io::{ErrorKind, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_core::clock::SystemClock;
use tollgate_core::hash::sha256_hex;
use tollgate_core::share::Share;

use super::fixture::{Place, age, artifact, mark, record, settings};
use super::{ArtifactKind, ArtifactSettings, ArtifactStore, ArtifactsError, CallArtifacts, ContentStore};
use crate::data_dir::DataDir;
use crate::exclusive;
use crate::storage::fixture::{change, on_postgres};
use crate::storage::{Database, PIECE_BYTES};

/// Bytes of all values, the first ones NUL, that repeat nowhere in a piece.
fn content(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at.wrapping_mul(at) >> 7).to_le_bytes()[0])
        .collect()
}

fn read(store: &ArtifactStore, hash: &str, offset: usize, limit: usize) -> Option<Vec<u8>> {
    store.read(hash, offset as u64, limit).unwrap()
}

#[test]
fn content_of_any_size_comes_back_in_slices() {
    let (_place, store) = Place::with(settings());
    let lengths = [
        0,
        1,
        PIECE_BYTES - 1,
        PIECE_BYTES,
        PIECE_BYTES + 1,
        20 * PIECE_BYTES + 7,
    ];
    for (number, length) in lengths.into_iter().enumerate() {
        let content = content(length);
        store.put(&content, &format!("art_{number}")).unwrap();
        let hash = sha256_hex(&content);
        // The first look checks all of it, and the others need what they show.
        for (offset, limit) in [
            (0, length),
            (0, usize::MAX),
            (0, 10),
            (PIECE_BYTES - 5, 10),
            (PIECE_BYTES, PIECE_BYTES),
            (3 * PIECE_BYTES + 3, 17 * PIECE_BYTES),
            (length.saturating_sub(1), 10),
            (length, 10),
            (length + 3 * PIECE_BYTES, 10),
            (5, 0),
        ] {
            let start = offset.min(length);
            let expected = &content[start..start.saturating_add(limit).min(length)];
            let found = read(&store, &hash, offset, limit);
            assert!(
                found.as_deref() == Some(expected),
                "{limit} bytes from {offset} of {length}"
            );
        }
    }
    assert_eq!(read(&store, &"0".repeat(64), 0, 10), None);
}

#[test]
fn a_stream_leaves_its_private_file_only_as_content() {
    let (_place, store) = Place::with(settings());
    let call = CallArtifacts::new(Some(Arc::clone(&store)), Share::default());
    let output = content(3 * PIECE_BYTES + 5);
    let mut log = call.create(ArtifactKind::Log).unwrap().unwrap();
    for part in output.chunks(70_000) {
        log.write_all(part).unwrap();
    }
    log.keep().unwrap();
    let hash = sha256_hex(&output);
    assert_eq!(store.contents.names(), std::slice::from_ref(&hash));
    assert!(read(&store, &hash, 0, usize::MAX) == Some(output));
    let empty = call.create(ArtifactKind::Log).unwrap().unwrap();
    empty.keep().unwrap();
    assert_eq!(read(&store, &sha256_hex(b""), 0, 10), Some(Vec::new()));
    // A small one counts as a block of the disk, and so does the lock of files.
    let blocks = if on_postgres() { 1 } else { 2 };
    let is_counted = 3 * PIECE_BYTES as u64 + 5 + blocks * 4096;
    assert_eq!(store.contents.size().unwrap(), is_counted);
}

#[test]
fn content_whose_row_may_still_come_stays_for_an_hour() {
    let (place, store) = Place::with(settings());
    let hash = sha256_hex(b"its row comes with the commit");
    store.put(b"its row comes with the commit", "art_1").unwrap();
    let sweep = || {
        store.contents.sweep_rows().unwrap();
        store.contents.sweep_files(&place.session()).unwrap();
        store.contents.names().len()
    };
    assert_eq!(sweep(), 1);
    age(&place, &store);
    record(&place.session(), 1, artifact(1, b"its row comes with the commit"));
    assert_eq!(sweep(), 1, "the row names it");
    mark(&place.session(), 1);
    assert_eq!(sweep(), 0);
    assert_eq!(read(&store, &hash, 0, 10), None);
}

#[test]
fn a_database_that_is_a_file_takes_no_content() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let database = Database::open(&data.database()).unwrap();
    for enabled in [false, true] {
        let settings = ArtifactSettings {
            enabled,
            store: Some(ContentStore::Database),
            ..settings()
        };
        let refused = ArtifactStore::open(&data, settings, Arc::new(SystemClock), &database);
        let Err(err @ ArtifactsError::NoServer) = refused.map(drop) else {
            panic!("it was taken");
        };
        assert!(
            err.to_string()
                .starts_with("artifacts.store is \"database\", but the database is a file")
        );
    }
    assert!(!data.has("artifacts"));
}

#[test]
fn one_host_collects_at_a_time() {
    let (place, _store) = Place::with(settings());
    let elsewhere = tempfile::tempdir().unwrap();
    // Hosts of a file share its data directory.
    let other = match on_postgres() {
        true => DataDir::open(elsewhere.path()).unwrap(),
        false => place.data(),
    };
    let lock = |data: &DataDir| exclusive::try_lock(data, &place.database, "collect.lock").unwrap();
    let first = lock(&place.data());
    assert!(first.is_some() && lock(&other).is_none());
    drop(first);
    assert!(lock(&other).is_some());
}

mod of_postgres {
    use super::*;

    #[test]
    fn content_of_a_server_goes_into_files_of_a_data_directory() {
        if !on_postgres() {
            return;
        }
        let (place, store) = Place::with(settings());
        let long = content(2 * PIECE_BYTES + 9);
        for (number, content) in [b"short".as_slice(), &long, b""].into_iter().enumerate() {
            store.put(content, &format!("art_{number}")).unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        let data = DataDir::open(elsewhere.path()).unwrap();
        let written = crate::artifacts::into_files(&data, &place.database, Arc::new(SystemClock)).unwrap();
        assert_eq!(written, 3);
        let file = Database::open(&data.database()).unwrap();
        let store = ArtifactStore::open(&data, settings(), Arc::new(SystemClock), &file).unwrap();
        let store = Arc::new(store.unwrap());
        for content in [b"short".as_slice(), &long, b""] {
            assert!(read(&store, &sha256_hex(content), 0, usize::MAX).as_deref() == Some(content));
        }
    }

    /// Changes of content by somebody who may write in the database, and if any of it can be read after them.
    const CHANGES: [(&str, bool); 8] = [
        ("UPDATE core_contents SET bytes = set_byte(bytes, 9, 1 + get_byte(bytes, 9) % 200) WHERE piece = 1", true),
        ("DELETE FROM core_contents WHERE piece % 2 = 1", true),
        ("DELETE FROM core_contents WHERE piece >= 2", true),
        ("DELETE FROM core_contents WHERE piece = 0", true),
        ("UPDATE core_contents SET piece = piece + 1000", true),
        (
            "UPDATE core_contents AS c SET bytes = CASE piece WHEN 1 THEN substr(bytes, 1, 1000)
                ELSE (SELECT substr(b.bytes, 1001) FROM core_contents AS b WHERE b.piece = 1) || bytes END WHERE piece IN (1, 2)",
            true,
        ),
        (
            "UPDATE core_contents SET bytes = decode(repeat('00', 50000000), 'hex') WHERE piece = 1",
            true,
        ),
        ("DELETE FROM core_contents", false),
    ];

    #[test]
    fn content_that_was_changed_is_refused_and_put_right_by_the_next_put() {
        if !on_postgres() {
            return;
        }
        let (place, store) = Place::with(settings());
        let content = content(4 * PIECE_BYTES + 7);
        let hash = sha256_hex(&content);
        for (sql, is_left) in CHANGES {
            // One store saw the content before, and one did not.
            let fresh = place.store(settings());
            store.put(&content, "art_1").unwrap();
            assert!(
                read(&store, &hash, 0, usize::MAX).as_ref() == Some(&content),
                "before {sql}"
            );
            change(&place.session(), sql).unwrap();
            let found = fresh.read(&hash, PIECE_BYTES as u64, 2 * PIECE_BYTES);
            match is_left {
                true => assert_eq!(
                    found.map(drop).map_err(|err| err.kind()),
                    Err(ErrorKind::InvalidData),
                    "{sql}"
                ),
                false => assert_eq!(found.unwrap(), None, "{sql}"),
            }
            // What it shows is what it saw, if that is left.
            match store.read(&hash, PIECE_BYTES as u64, 2 * PIECE_BYTES) {
                Ok(Some(slice)) => assert!(slice == content[PIECE_BYTES..3 * PIECE_BYTES], "{sql}"),
                Ok(None) => assert!(!is_left, "{sql}"),
                Err(err) => assert_eq!(err.kind(), ErrorKind::InvalidData, "{sql}"),
            }
        }
        for sql in [
            "INSERT INTO core_contents SELECT hash, 5, bytes FROM core_contents WHERE piece = 0",
            "INSERT INTO core_contents SELECT hash, 4, bytes FROM core_contents WHERE piece = 0
                ON CONFLICT (hash, piece) DO UPDATE SET bytes = excluded.bytes",
        ] {
            store.put(&content, "art_1").unwrap();
            change(&place.session(), sql).unwrap();
            let found = place.store(settings()).read(&hash, 0, 10);
            assert_eq!(
                found.map(drop).unwrap_err().kind(),
                ErrorKind::InvalidData,
                "{sql}"
            );
            store.put(&content, "art_1").unwrap();
            assert!(read(&place.store(settings()), &hash, 0, usize::MAX).as_ref() == Some(&content));
        }
    }

    #[test]
    fn any_host_reads_what_another_one_stored() {
        if !on_postgres() {
            return;
        }
        let (place, store) = Place::with(settings());
        let (dir, other) = place.elsewhere(settings());
        let (_off, off) = place.elsewhere(ArtifactSettings::default());
        let content = content(PIECE_BYTES + 1);
        store.put(&content, "art_1").unwrap();
        for store in [&other, &off] {
            assert!(read(store, &sha256_hex(&content), 0, usize::MAX).as_ref() == Some(&content));
        }
        let names = |data: &DataDir| data.usage("artifacts").unwrap().0;
        assert_eq!(names(&DataDir::open(dir.path()).unwrap()), 0);
        assert_eq!(store.contents.size().unwrap(), other.contents.size().unwrap());
    }

    #[test]
    fn content_waits_for_no_call_that_writes() {
        if !on_postgres() {
            return;
        }
        let (place, store) = Place::with(settings());
        let writer = place.session();
        writer.begin_write().unwrap();
        store.put(b"beside the turn", "art_1").unwrap();
        store.contents.remove(&sha256_hex(b"beside the turn")).unwrap();
        writer.rollback().unwrap();
        assert_eq!(store.contents.names().len(), 1, "its row may come");
    }

    #[test]
    fn files_are_read_and_removed_after_the_database_became_the_place() {
        if !on_postgres() {
            return;
        }
        let (place, store) = Place::with(ArtifactSettings {
            store: Some(ContentStore::Files),
            ..settings()
        });
        store.put(b"in a file", "art_1").unwrap();
        record(&place.session(), 1, artifact(1, b"in a file"));
        assert_eq!(place.data().usage("artifacts").unwrap().0, 2, "with the lock");
        let store = place.store(settings());
        store.put(b"in a row", "art_2").unwrap();
        record(&place.session(), 2, artifact(2, b"in a row"));
        assert_eq!(
            read(&store, &sha256_hex(b"in a file"), 3, 9),
            Some(b"a file".to_vec())
        );
        assert_eq!(store.contents.size().unwrap(), 3 * 4096, "with the lock");
        let (_dir, other) = place.elsewhere(settings());
        assert_eq!(read(&other, &sha256_hex(b"in a file"), 0, 9), None);
        for number in [1, 2] {
            mark(&place.session(), number);
        }
        age(&place, &store);
        // Another host collects: this one removes its own files all the same.
        store.sweep_files(&place.session()).unwrap();
        assert_eq!(store.contents.names(), [sha256_hex(b"in a row")]);
        other.contents.sweep_rows().unwrap();
        assert_eq!(store.contents.names(), Vec::<String>::new());
    }

    /// Two hosts name the same content again and again, in both orders of row and content, while two others collect it.
    #[test]
    fn what_a_row_names_stays_while_others_put_and_collect_the_same() {
        const ROUNDS: usize = 25;
        if !on_postgres() {
            return;
        }
        let (place, store) = Place::with(settings());
        let content = content(2 * PIECE_BYTES);
        let hash = sha256_hex(&content);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let hosts: Vec<_> = [0, 1]
                .into_iter()
                .map(|host| {
                    let (place, content, hash) = (&place, &content, &hash);
                    scope.spawn(move || {
                        let (_dir, store) = place.elsewhere(settings());
                        let session = place.session();
                        for round in 0..ROUNDS {
                            let number = host + 2 * round;
                            let is_first = round % 2 == 0;
                            if is_first {
                                store.put(content, &format!("art_{number}")).unwrap();
                            }
                            record(&session, number, artifact(number, content));
                            if !is_first {
                                store.put(content, &format!("art_{number}")).unwrap();
                            }
                            for offset in [0, PIECE_BYTES as u64] {
                                let found = store.read(hash, offset, 10).unwrap();
                                assert!(found.is_some(), "the content of {number} is gone");
                            }
                            mark(&session, number);
                        }
                    })
                })
                .collect();
            for _ in 0..2 {
                scope.spawn(|| {
                    let (_dir, store) = place.elsewhere(settings());
                    while !is_over.load(Ordering::Relaxed) {
                        store.contents.remove(&hash).unwrap();
                        store.contents.sweep_rows().unwrap();
                    }
                });
            }
            let ended: Vec<_> = hosts
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect();
            is_over.store(true, Ordering::Relaxed);
            for ended in ended {
                ended.unwrap();
            }
        });
        store.contents.sweep_rows().unwrap();
        assert_eq!(store.contents.names(), Vec::<String>::new());
    }
}
