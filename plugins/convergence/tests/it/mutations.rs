//! The fingerprint of a change.

use std::fmt::Write as _;

use convergence::git::{Change, Status, Symbol, parse_diff, parse_numstat, parse_status};
use convergence::mutation::Mutation;
use expect_test::expect;

use crate::harness;

/// The recorded work tree, with a content for what Git does not hash.
fn mutation() -> Mutation {
    let mut changes = parse_status(&harness::git("status")).entries;
    let diff = parse_diff(&harness::git("diff"));
    for change in &mut changes {
        if change.needs_content() {
            let commit = diff.submodules.iter().find(|(path, _)| *path == change.path);
            change.content = Some(commit.map_or_else(|| "hash".to_owned(), |(_, commit)| commit.clone()));
        }
    }
    let stats = parse_numstat(&harness::git("numstat")).entries;
    Mutation::new(&changes, &stats, &diff.symbols)
}

#[test]
fn a_mutation_is_told() {
    let mutation = mutation();
    let mut log = mutation.short_diff.join("\n");
    let _ = writeln!(log, "\n{:?}", mutation.diff_stats);
    let _ = writeln!(
        log,
        "files {}\nmutation {}",
        mutation.files_changed_hash, mutation.fingerprint
    );
    expect![[r#"
        + added.txt
        ~ bytes:caf\xe9.txt
        ~ calc.py
        - gone.txt
        ~ größe.txt
        + kept.txt
        ~ library
        ~ line\nend.txt
        ~ link
        + new name.go
        + new/file.txt
        - old name.go
        ~ picture.png
        ~ run.sh
        ~ src/ratio.rs
        ~ staged.txt
        DiffStats { files_changed: 16, insertions: 24, deletions: 26 }
        files 9ed4baf523803ff36e399ac2872536c146de62ef9e2f5640f9fded1bd80a2fc8
        mutation aa0f52d2a0198ba97a5e6af30367af447bbb97488ec578da222670f0981f87ab
    "#]]
    .assert_eq(&log);
}

fn change(path: &str, mode: u32, content: &str) -> Change {
    Change {
        path: path.into(),
        status: Status::Modified,
        mode: Some(mode),
        content: Some(content.to_owned()),
    }
}

#[test]
fn a_mutation_is_its_paths_modes_and_contents() {
    let print = |changes: &[Change]| Mutation::new(changes, &[], &[]).fingerprint;
    let [a, b] = [change("a", 0o100_644, "1"), change("b", 0o100_644, "2")];
    let base = print(&[a.clone(), b.clone()]);
    assert_eq!(
        base,
        print(&[b.clone(), a.clone()]),
        "the order of Git does not matter"
    );
    assert_ne!(base, print(&[a.clone(), change("b", 0o100_644, "3")]), "content");
    assert_ne!(base, print(&[a.clone(), change("b", 0o100_755, "2")]), "mode");
    assert_ne!(base, print(&[a.clone(), change("c", 0o100_644, "2")]), "path");
    assert_ne!(base, print(std::slice::from_ref(&a)), "one path less");
    let gone = Change {
        status: Status::Deleted,
        ..b.clone()
    };
    assert_ne!(base, print(&[a.clone(), gone.clone()]), "deleted");
    assert_eq!(
        base,
        print(&[gone, a.clone(), b.clone()]),
        "taken out of the index, but there"
    );
    let symbol = Symbol {
        path: "a".into(),
        name: "f".to_owned(),
    };
    assert_ne!(
        base,
        Mutation::new(&[a, b], &[], &[symbol]).fingerprint,
        "symbols"
    );
}

#[test]
fn staging_is_no_change() {
    let print = |status, mode| {
        let content = Some("1".to_owned());
        Mutation::new(
            &[Change {
                path: "a".into(),
                status,
                mode,
                content,
            }],
            &[],
            &[],
        )
        .fingerprint
    };
    assert_eq!(
        print(Status::Untracked, None),
        print(Status::Added, Some(0o100_644))
    );
    assert_ne!(
        print(Status::Untracked, Some(0o100_755)),
        print(Status::Added, Some(0o100_644))
    );
}

#[test]
fn no_more_paths_are_told_than_anybody_reads() {
    let many = |count: usize| -> Mutation {
        let changes: Vec<Change> = (0..count)
            .map(|n| change(&format!("{n:05}"), 0o100_644, "x"))
            .collect();
        Mutation::new(&changes, &[], &[])
    };
    let mutation = many(2_000);
    assert_eq!((mutation.changed_paths.len(), mutation.more_paths), (500, 1_500));
    assert_eq!(mutation.diff_stats.files_changed, 2_000);
    assert_ne!(mutation.fingerprint, many(2_001).fingerprint);
}
