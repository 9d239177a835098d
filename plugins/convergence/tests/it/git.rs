//! Output of Git, and the fingerprint of it.

use std::fmt::Write as _;

use convergence::git::{
    Change, FileStat, Listing, RepoPath, Symbol, parse_diff, parse_numstat, parse_paths, parse_status,
};
use expect_test::expect;

use crate::harness;

fn log<T>(listing: &Listing<T>, line: impl Fn(&T) -> String) -> String {
    assert!(listing.complete);
    listing.entries.iter().map(|entry| line(entry) + "\n").collect()
}

fn changes(listing: &Listing<Change>) -> String {
    log(listing, |change| {
        let mode = change
            .mode
            .map_or_else(|| "-".to_owned(), |mode| format!("{mode:06o}"));
        let content = change.content.as_deref().map_or("-", |content| &content[..7]);
        format!("{:?} {mode} {content} {}", change.status, change.path.one_line())
    })
}

/// Lines of two logs between their common start and their common end.
fn difference(before: &str, after: &str) -> String {
    let (mut before, mut after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    while !before.is_empty() && before.last() == after.last() {
        before.pop();
        after.pop();
    }
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let removed = before[same..].iter().map(|line| format!("- {line}\n"));
    let added = after[same..].iter().map(|line| format!("+ {line}\n"));
    removed.chain(added).collect()
}

#[test]
fn the_state_of_a_work_tree_is_read() {
    expect![[r#"
        Added 100644 d5f7fc3 added.txt
        Modified 100644 - bytes:caf\xe9.txt
        Modified 100644 - calc.py
        Deleted - - gone.txt
        Modified 100644 - größe.txt
        Deleted - - kept.txt
        Modified 160000 - library
        Modified 100644 - line\nend.txt
        Modified 120000 - link
        Added 100644 b6c35e4 new name.go
        Deleted - - old name.go
        Modified 100644 - picture.png
        Modified 100755 - run.sh
        Modified 100644 - src/ratio.rs
        Modified 100644 294186e staged.txt
        Untracked - - kept.txt
        Untracked - - new/file.txt
    "#]]
    .assert_eq(&changes(&parse_status(&harness::git("status"))));
}

#[test]
fn a_rename_is_a_path_that_went_and_one_that_came() {
    let apart = changes(&parse_status(&harness::git("status")));
    let renamed = changes(&parse_status(&harness::git("status-renames")));
    expect![[r#"
        - Added 100644 b6c35e4 new name.go
        - Deleted - - old name.go
        + Deleted - - old name.go
        + Added 100644 b6c35e4 new name.go
    "#]]
    .assert_eq(&difference(&apart, &renamed));
}

#[test]
fn a_merge_leaves_conflicts() {
    expect![[r#"
        Conflicted 100644 - calc.py
    "#]]
    .assert_eq(&changes(&parse_status(&harness::git("status-merge"))));
}

#[test]
fn untracked_paths_are_read() {
    expect![[r#"
        kept.txt
        new/file.txt
    "#]]
    .assert_eq(&log(&parse_paths(&harness::git("others")), RepoPath::one_line));
}

#[test]
fn lines_are_counted() {
    let counts = |name: &str| {
        log(&parse_numstat(&harness::git(name)), |stat: &FileStat| {
            let from = stat
                .from
                .as_ref()
                .map(|from| format!(" from {from}"))
                .unwrap_or_default();
            format!("{:?} {}{from}", stat.lines, stat.path.one_line())
        })
    };
    let apart = counts("numstat");
    expect![[r#"
        Some((1, 0)) added.txt
        Some((1, 1)) bytes:caf\xe9.txt
        Some((0, 1)) calc.py
        Some((0, 1)) gone.txt
        Some((1, 1)) größe.txt
        Some((0, 1)) kept.txt
        Some((1, 1)) library
        Some((1, 1)) line\nend.txt
        Some((1, 1)) link
        Some((15, 0)) new name.go
        Some((0, 15)) old name.go
        None picture.png
        Some((0, 0)) run.sh
        Some((2, 2)) src/ratio.rs
        Some((1, 1)) staged.txt
    "#]]
    .assert_eq(&apart);
    expect![[r#"
        - Some((15, 0)) new name.go
        - Some((0, 15)) old name.go
        + Some((0, 0)) new name.go from old name.go
    "#]]
    .assert_eq(&difference(&apart, &counts("numstat-renames")));
    let new = |content: &[u8]| FileStat::of_new_file("x".into(), content).lines;
    assert_eq!(new(b""), Some((0, 0)));
    assert_eq!(new(b"a\nb"), Some((2, 0)));
    assert_eq!(new(b"a\nb\n"), Some((2, 0)));
    assert_eq!(new(b"a\0b"), None);
}

fn symbols(name: &str) -> String {
    let diff = parse_diff(&harness::git(name));
    let mut log = String::new();
    for Symbol { path, name } in &diff.symbols {
        let _ = writeln!(log, "{} {name}", path.one_line());
    }
    for (path, commit) in &diff.submodules {
        let _ = writeln!(log, "submodule {path} {}", &commit[..7]);
    }
    assert!(diff.complete);
    log
}

#[test]
fn hunks_name_what_changed() {
    let plain = symbols("diff");
    expect![[r#"
        calc.py double
        src/ratio.rs divide
        src/ratio.rs mean
        submodule library 029addf
    "#]]
    .assert_eq(&plain);
    assert_eq!(symbols("diff-quoted"), plain);
    expect![[r#"
        calc.py add
    "#]]
    .assert_eq(&symbols("diff-merge"));
}

#[test]
fn a_removed_line_is_no_header() {
    let diff = b"diff --git a/x.sql b/x.sql\n--- a/x.sql\n+++ b/x.sql\n@@ -2 +1,0 @@ CREATE TABLE t (\n--- a/evil\n@@ -9 +8 @@ fn late\n-a\n+b\n";
    let names: Vec<String> = parse_diff(diff)
        .symbols
        .into_iter()
        .map(|symbol| format!("{} {}", symbol.path, symbol.name))
        .collect();
    assert_eq!(names, ["x.sql late", "x.sql t"]);
}

#[test]
fn what_was_cut_off_is_told() {
    let whole = harness::git("status");
    assert!(!parse_status(&whole[..whole.len() - 3]).complete);
    assert_eq!(
        parse_status(&whole[..whole.len() - 3]).entries.len() + 1,
        parse_status(&whole).entries.len()
    );
    assert!(!parse_numstat(b"1\t2\t\0old\0").complete);
    assert!(!parse_status(b"9 nonsense\0").complete);
    assert!(parse_status(b"").complete);
    assert!(!parse_diff(b"+++ b/x\n@@ -0,0 +1,3 @@\n+a\n").complete);
}

#[test]
fn paths_that_are_no_text_are_marked_and_stay_different() {
    let path = |bytes: &[u8]| RepoPath::from_bytes(bytes);
    assert_eq!(path(b"caf\xe9.txt").as_str(), r"bytes:caf\xe9.txt");
    assert!(!path(b"caf\xe9.txt").is_utf8());
    assert_ne!(path(b"caf\xe9.txt"), path(br"bytes:caf\xe9.txt"));
    assert_ne!(path(b"\xe9"), path(b"\xe8"));
    assert_ne!(path(b"\\xe9\xff"), path(b"\xe9\xff"));
    assert_eq!(path(b"a\nb").one_line(), r"a\nb");
    assert_eq!(path(b"a\nb").as_str(), "a\nb");
}
