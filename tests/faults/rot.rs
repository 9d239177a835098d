//! Bit flips in files: detected, reported, rebuilt, and never trusted.
#![allow(clippy::disallowed_methods, reason = "the tests damage files")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tollgate::config::Config;
use tollgate_store::storage::Database;

use crate::harness::Place;
use crate::load::{Load, texts};
use crate::share::share;

/// Distance of damaged bytes in the database.
const STEP: usize = 1_021;
/// One of so many of them is damaged in a usual run.
const ONE_OF: usize = 8;

/// Each row of the ledger, with all columns.
fn rows(path: &Path) -> Vec<String> {
    let columns = texts(path, "SELECT name FROM pragma_table_info('core_operations')");
    let quoted: Vec<String> = columns.iter().map(|name| format!("quote({name})")).collect();
    let sql = format!(
        "SELECT {} FROM core_operations ORDER BY seq",
        quoted.join(" || ' ' || ")
    );
    texts(path, &sql)
}

/// True if the ledger verifies.
fn is_whole(path: &Path) -> bool {
    let Ok(database) = Database::open(path) else {
        return false;
    };
    let Ok(session) = database.read_session() else {
        return false;
    };
    session
        .ledger()
        .verify(None, &[])
        .is_ok_and(|verified| verified.broken.is_none())
}

#[tokio::test]
async fn a_ledger_that_verifies_has_the_rows_that_were_written() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let mut load = Load::default();
    load.create_many(&session, 12).await;
    session.close().await;
    let path = place.data().join("tollgate.db");
    texts(&path, "PRAGMA wal_checkpoint(TRUNCATE)");
    let (mut file, written) = (std::fs::read(&path).unwrap(), rows(&path));
    let scratch = tempfile::tempdir().unwrap();
    let copy = scratch.path().join("tollgate.db");
    let (mut found, mut harmless) = (0, 0);
    for at in share((0..file.len()).step_by(STEP), ONE_OF) {
        let bit = 1 << (at % 8);
        file[at] ^= bit;
        for rest in ["tollgate.db-wal", "tollgate.db-shm"] {
            let _ = std::fs::remove_file(scratch.path().join(rest));
        }
        std::fs::write(&copy, &file).unwrap();
        if is_whole(&copy) {
            assert_eq!(
                rows(&copy),
                written,
                "bit {bit:#x} of byte {at} changed a row unseen"
            );
            harmless += 1;
        } else {
            found += 1;
        }
        file[at] ^= bit;
    }
    assert!(found > 0 && harmless > 0, "{found} found, {harmless} harmless");
}

#[tokio::test]
async fn a_damaged_database_is_refused_or_served_and_never_brings_the_host_down() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    Load::default().create_many(&session, 3).await;
    session.close().await;
    let path = place.data().join("tollgate.db");
    texts(&path, "PRAGMA wal_checkpoint(TRUNCATE)");
    let good = std::fs::read(&path).unwrap();
    let damages: [fn(&mut Vec<u8>); 5] = [
        |file| file[0] ^= 1,
        |file| file.truncate(file.len() / 2),
        |file| file[100..4096].fill(0xff),
        |file| file[4096..8192].fill(0),
        |file| file.clear(),
    ];
    for (number, damage) in damages.iter().enumerate() {
        let mut file = good.clone();
        damage(&mut file);
        for rest in ["tollgate.db-wal", "tollgate.db-shm"] {
            let _ = std::fs::remove_file(place.data().join(rest));
        }
        std::fs::write(&path, file).unwrap();
        let output = place.run(&["call", "task_list", "{}"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            matches!(output.status.code(), Some(0..=2)),
            "damage {number}: {said}"
        );
        assert!(!said.contains("panicked"), "damage {number}: {said}");
    }
}

#[test]
fn compiled_code_that_was_damaged_is_compiled_again() {
    let place = Place::new();
    let call = ["--json", "call", "task_list", "{}"];
    let entries = || {
        let entries = std::fs::read_dir(place.data().join("cache")).unwrap();
        let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries
    };
    let good: Vec<Vec<u8>> = entries()
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    for (path, content) in entries().iter().zip(&good) {
        let mut content = content.clone();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        // Other tests have the same file, so this becomes another one, of the owner alone like all of them.
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, content).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let output = place.run(&call);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("ignoring a damaged cache entry"), "{said}");
    let output = place.run(&call);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("damaged"), "it was made anew: {said}");
}

#[test]
fn a_configuration_is_read_as_it_stands_or_refused_with_its_line() {
    let text = "[server]\ntier = \"full\"\n[envelope]\nmax_mutations = 7\nbudgets.approvals = 3\n\
        [ledger]\nretention_days = 9\n[packs.task-store]\nenabled = true\nlimits = { read_ms = 100 }\n";
    let path = Path::new("tollgate.toml");
    Config::parse(text, path).unwrap();
    let (mut read, mut refused) = (0, 0);
    let mut check = |bytes: &[u8]| {
        // What is no text is refused where the file is read.
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        match Config::parse(text, path) {
            Ok(_) => read += 1,
            Err(err) => {
                let said = err.to_string();
                assert!(said.contains("tollgate.toml"), "{said}");
                refused += 1;
            }
        }
    };
    let mut bytes = text.as_bytes().to_vec();
    for at in 0..bytes.len() {
        check(&bytes[..at]);
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            check(&bytes);
            bytes[at] ^= 1 << bit;
        }
    }
    assert!(read > 0 && refused > read, "{read} read, {refused} refused");
    let place = Place::with("[server]\ntier = \"full\"\n\u{fffd}");
    std::fs::write(place.config(), b"[server]\ntier = \"\xff\"\n").unwrap();
    let output = place.run(&["call", "task_list", "{}"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("tollgate.toml"), "{said}");
}
