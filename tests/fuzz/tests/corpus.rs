//! Runs all targets on the stored corpus.
#![allow(clippy::disallowed_methods, reason = "the test reads its corpus")]

use std::path::{Path, PathBuf};

use fuzz::{TARGETS, Target};

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] })
        .collect()
}

fn corpus(target: &Target) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let inputs = files(&corpus.join(target.name));
    assert!(!inputs.is_empty(), "{} has no corpus", target.name);
    inputs
}

fn recordings(target: &Target) -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = target.recordings.map(|folder| workspace.join(folder));
    folder.map_or_else(Vec::new, |folder| files(&folder))
}

#[test]
fn nothing_that_was_found_before_breaks_anything() {
    for target in TARGETS {
        for path in [corpus(target), recordings(target)].concat() {
            let bytes = std::fs::read(&path).unwrap();
            let ran = std::panic::catch_unwind(|| (target.run)(&bytes));
            assert!(ran.is_ok(), "{} breaks {}", path.display(), target.name);
        }
    }
}

#[test]
fn what_is_cut_or_flipped_breaks_nothing_either() {
    for target in TARGETS {
        for path in corpus(target) {
            let bytes = std::fs::read(&path).unwrap();
            let step = (bytes.len() / 8).max(1);
            for at in (0..bytes.len()).step_by(step) {
                (target.run)(&bytes[..at]);
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                (target.run)(&flipped);
            }
        }
    }
}
