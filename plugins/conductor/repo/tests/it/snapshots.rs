//! Snapshots: files found, files read again, and reported changes.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use conductor_repo::snapshot::{Content, Limits, Snapshot, Taken, Trouble, add, diff, take};
use conductor_repo::tree::{Kind, TreeError};
use expect_test::expect;

use crate::disk::Disk;
use crate::harness::{Memory, Whole};

fn paths(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.files.iter().map(|file| file.path.as_str()).collect()
}

const IGNORES: &str = "
== .git/info/exclude
private/
== .gitignore
*.log
!keep.log
/build
docs/**/*.tmp
# comment
\\#odd
trailing\\ space 
== a.log
== keep.log
== build/x
== sub/build/x
== docs/a/b.tmp
== #odd
== private/key
== sub/.gitignore
!a.log
only/*
!only/this
== sub/a.log
== sub/b.log
== sub/only/this
== sub/only/that
";

#[test]
fn ignore_files_hold_as_they_do_for_git() {
    let disk = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(arguments)
            .current_dir(disk.path())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    for (path, (content, _)) in &Memory::new(IGNORES).files {
        let path = disk.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test's own directory")]
        std::fs::write(path, content).unwrap();
    }
    let listed = git(&["ls-files", "--others", "--cached", "--exclude-standard"]);
    let tree = Disk {
        root: disk.path().to_owned(),
    };
    let found = take(&tree, &Limits::default(), None, 0, &mut |_, _| {})
        .unwrap()
        .snapshot;
    let mut listed: Vec<&str> = listed.lines().collect();
    listed.sort_unstable();
    assert_eq!(paths(&found), listed);
    assert_eq!(
        paths(&Memory::new(IGNORES).take(&Limits::default(), None).0.snapshot),
        listed
    );
}

#[test]
fn only_what_changed_is_read_again_and_the_result_is_the_same() {
    let mut tree = Memory::new("== a\none\n== b/c\ntwo\n== d\nthree\n");
    let (first, _) = tree.take(&Limits::default(), None);
    assert_eq!(first.effort.read, 3);
    tree.put("b/c", b"other");
    let (second, _) = tree.take(&Limits::default(), Some(&first.snapshot));
    assert_eq!((second.effort.read, second.effort.bytes), (1, 5));
    let (fresh, _) = tree.take(&Limits::default(), None);
    assert_eq!(second.snapshot, fresh.snapshot);
}

#[test]
fn a_directory_that_is_the_same_is_not_listed_again() {
    let mut tree = Memory::new(
        "== .gitignore\n*.log\n== a/b/x\n1\n== a/b/x.log\n2\n== a/y\n3\n== c/d/.gitignore\n*.tmp\n== c/d/e/z\n4\n== c/f\n5\n== other/.git/HEAD\n6\n",
    );
    tree.others.insert("a/link".to_owned(), Kind::Symlink);
    tree.others.insert("odd/x\\xff".to_owned(), Kind::Unnamed);
    let limits = Limits::default();
    let listed = |tree: &Memory, before: &Whole| {
        tree.listed.borrow_mut().clear();
        let (taken, _) = tree.take(&limits, Some(before));
        let (fresh, _) = Memory {
            listed: RefCell::default(),
            reads: Cell::default(),
            files: tree.files.clone(),
            others: tree.others.clone(),
            broken: tree.broken.clone(),
        }
        .take(&limits, None);
        let excluded = |taken: &Taken| taken.excluded().collect::<Vec<_>>();
        assert_eq!(excluded(&taken), excluded(&fresh));
        assert_eq!(
            (taken.effort.listed, taken.effort.ignored),
            (fresh.effort.listed, fresh.effort.ignored)
        );
        let whole = Whole::new(taken, Some(before));
        assert_eq!(whole, Whole::new(fresh, None), "as if it was the first");
        (tree.listed.take().join(" "), whole)
    };
    let first = Whole::new(tree.take(&limits, None).0, None);
    // One with an ignore file, with a repository of its own, or with a name that is none is looked into again.
    let always = " c/d odd other";
    let (again, second) = listed(&tree, &first);
    assert_eq!(again, always);
    tree.put("a/b/x", b"one");
    let (again, third) = listed(&tree, &second);
    assert_eq!(again, " a/b c/d odd other");
    tree.files.remove("a/y");
    tree.put("c/d/e/new", b"new");
    let (again, fourth) = listed(&tree, &third);
    assert_eq!(again, " a c/d c/d/e odd other");
    tree.put("c/d/.gitignore", b"*.log");
    let (again, fifth) = listed(&tree, &fourth);
    assert_eq!(again, " c/d c/d/e odd other", "other rules below");
    tree.put(".git/info/exclude", b"x");
    let (again, sixth) = listed(&tree, &fifth);
    assert_eq!(again, " a a/b c c/d c/d/e odd other", "other rules everywhere");
    tree.broken
        .insert("a/b".to_owned(), TreeError::Denied("a/b".to_owned()));
    let (again, seventh) = listed(&tree, &sixth);
    assert_eq!(again, " c/d odd other", "a/b fails");
    tree.broken.clear();
    let (again, _) = listed(&tree, &seventh);
    assert_eq!(again, " a/b c/d odd other", "it is tried again");
}

#[test]
fn a_directory_that_may_have_changed_unnoticed_is_listed_again() {
    let mut tree = Memory::new("== a/x\n1\n== b/y\n2\n== c/z\n3\n== d/w\n4\n");
    // Too new for its time to tell, or not read.
    tree.files.get_mut("a/x").unwrap().1 = 999_500;
    tree.broken
        .insert("b/y".to_owned(), TreeError::TooLarge("b/y".to_owned()));
    let limits = Limits::default();
    let first = Whole::new(tree.take(&limits, None).0, None);
    tree.listed.take();
    let (taken, _) = tree.take(&limits, Some(&first));
    assert_eq!(tree.listed.take(), ["", "a", "b"]);
    // Git tracks one that is excluded.
    tree.put(".git/info/exclude", b"*.log");
    tree.put("c/k.log", b"5");
    let second = Whole::new(taken, Some(&first));
    let (taken, _) = tree.take(&limits, Some(&second));
    let tracked = ["c/k.log".to_owned()];
    let taken = add(&tree, &limits, Some(&second), taken, &tracked, &mut |_, _| {}).unwrap();
    let third = Whole::new(taken, Some(&second));
    assert!(third.snapshot.file("c/k.log").is_some());
    tree.listed.take();
    let (taken, _) = tree.take(&limits, Some(&third));
    assert_eq!(tree.listed.take(), ["", "a", "b", "c"]);
    assert!(Whole::new(taken, Some(&third)).snapshot.file("c/k.log").is_none());
}

#[test]
fn what_there_is_no_room_for_is_the_same_as_in_a_first_snapshot() {
    let mut tree = Memory::new("== a/b/x\n1\n== a/c\n2\n== d/y\n3\n== d/z\n4\n");
    let whole = Whole::new(tree.take(&Limits::default(), None).0, None);
    for entries in 1..5 {
        let limits = Limits {
            entries,
            ..Limits::default()
        };
        let (taken, _) = tree.take(&limits, Some(&whole));
        let cut = Whole::new(taken, Some(&whole));
        let fresh = Whole::new(tree.take(&limits, None).0, None);
        assert_eq!(cut, fresh, "{entries}");
        assert_eq!(cut.snapshot.is_partial(), entries < 4);
        tree.listed.take();
        tree.take(&Limits::default(), Some(&cut));
        let listed = tree.listed.take().len();
        assert_eq!(
            listed == 4,
            entries < 4,
            "nothing is known where files are missing"
        );
    }
    let shallow = Limits {
        depth: 1,
        ..Limits::default()
    };
    let cut = Whole::new(tree.take(&shallow, Some(&whole)).0, Some(&whole));
    assert_eq!(cut, Whole::new(tree.take(&shallow, None).0, None));
    tree.put("a/b/x", b"changed");
    let deep = Whole::new(tree.take(&Limits::default(), Some(&cut)).0, Some(&cut));
    assert_eq!(deep, Whole::new(tree.take(&Limits::default(), None).0, None));
}

#[test]
fn a_change_just_after_a_snapshot_is_seen() {
    let tree = Memory::new("== a\none\n");
    let (taken, _) = tree.take(&Limits::default(), None);
    // The file's time is not clearly before the snapshot's.
    let hasty = Snapshot {
        taken: 1_500,
        ..taken.snapshot
    };
    assert_eq!(tree.take(&Limits::default(), Some(&hasty)).0.effort.read, 1);
}

#[test]
fn differences_name_what_came_went_changed_and_moved() {
    let mut tree = Memory::new("== a.rs\nfn a() {}\n== b.rs\nfn b() {}\n== c.rs\nfn c() {}\n== empty\n");
    let (before, _) = tree.take(&Limits::default(), None);
    let moved = tree.files.remove("a.rs").unwrap();
    tree.files.insert("x/a.rs".to_owned(), moved);
    tree.files.remove("b.rs");
    tree.files.remove("empty");
    tree.put("c.rs", b"changed");
    tree.put("new.rs", b"");
    let (after, _) = tree.take(&Limits::default(), None);
    let found = serde_json::to_string(&diff(&before.snapshot, &after.snapshot)).unwrap();
    expect![[r#"{"added":["new.rs"],"removed":["b.rs","empty"],"modified":["c.rs"],"renamed":[{"from":"a.rs","to":"x/a.rs"}],"unchanged":0}"#]]
        .assert_eq(&found);
    assert!(diff(&after.snapshot, &after.snapshot).is_empty());
}

#[test]
fn what_cannot_be_seen_is_said_and_the_rest_is_found() {
    let mut tree = Memory::new(
        "== a\n1\n== deep/er/x\n2\n== nested/.git/HEAD\n3\n== nested/y\n4\n== shut/z\n5\n== torn\n6\n",
    );
    tree.others.insert("link".to_owned(), Kind::Symlink);
    tree.others.insert("odd\\xff".to_owned(), Kind::Unnamed);
    tree.broken
        .insert("shut".to_owned(), TreeError::Denied("shut".to_owned()));
    tree.broken
        .insert("torn".to_owned(), TreeError::TooLarge("torn".to_owned()));
    let limits = Limits {
        depth: 1,
        ..Limits::default()
    };
    let (taken, _) = tree.take(&limits, None);
    let mut text = String::new();
    for file in &taken.snapshot.files {
        let _ = writeln!(
            text,
            "{} {}",
            file.path,
            serde_json::to_value(file.content).unwrap()
        );
    }
    for problem in &taken.snapshot.problems {
        let _ = writeln!(text, "{}: {:?}", problem.path, problem.what);
    }
    expect![[r#"
        a {"text":{"digest":"be573118fb47cf582ef3a1a12238c2e5"}}
        link "symlink"
        odd\xff "other"
        torn "unread"
        deep/er: TooDeep
        nested: OtherRepository
        odd\xff: NameNotUtf8
        shut: Unreadable("`shut` is outside of the readable files")
        torn: Unreadable("`torn` is too large")
    "#]]
    .assert_eq(&text);
    assert!(taken.snapshot.is_partial());
    tree.broken
        .insert(String::new(), TreeError::UnknownWorkspace("w".to_owned()));
    assert!(take(&tree, &limits, None, 0, &mut |_, _| {}).is_err());
}

#[test]
fn limits_bound_what_is_read() {
    let mut tree = Memory::default();
    tree.put("binary", b"a\0b");
    tree.put("huge", &vec![b'x'; 3 << 20]);
    tree.put("long", &vec![b'y'; 1 << 20]);
    let limits = Limits {
        entries: 3,
        hashed_bytes: 2 << 20,
        observed_bytes: 1 << 10,
        ..Limits::default()
    };
    let mut seen = 0;
    let taken = take(&tree, &limits, None, 0, &mut |_, _| seen += 1).unwrap();
    assert_eq!(seen, 0);
    assert!(taken.effort.bytes < 2 << 20);
    let kinds: Vec<Content> = taken.snapshot.files.iter().map(|file| file.content).collect();
    assert!(matches!(
        kinds[..],
        [Content::Binary { .. }, Content::Huge { .. }, Content::Text { .. }]
    ));
    tree.put("zz", b"");
    let taken = take(&tree, &limits, None, 0, &mut |_, _| {}).unwrap();
    assert_eq!(taken.snapshot.problems[0].what, Trouble::TooMany);
}

#[test]
fn names_on_disk_may_hold_anything() {
    let disk = tempfile::tempdir().unwrap();
    for name in [&b"line\nbreak.py"[..], b"bad\xff.py", "größe.py".as_bytes()] {
        #[expect(clippy::disallowed_methods, reason = "the test's own directory")]
        std::fs::write(disk.path().join(std::ffi::OsStr::from_bytes(name)), "x").unwrap();
    }
    let tree = Disk {
        root: disk.path().to_owned(),
    };
    let found = take(&tree, &Limits::default(), None, 0, &mut |_, _| {})
        .unwrap()
        .snapshot;
    assert_eq!(paths(&found), ["bad\\xff.py", "größe.py", "line\nbreak.py"]);
    assert_eq!(found.problems[0].what, Trouble::NameNotUtf8);
    let stored = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&stored).unwrap(), found);
}

#[test]
fn of_what_is_tracked_only_what_is_excluded_counts() {
    let tree = Memory::new(
        "== .gitignore\nout/\n*.log\n/a/b\n== a/b/c\n1\n== a/bc\n2\n== a.log\n3\n== out/deep/x\n4\n== z/out/y\n5\n",
    );
    let (taken, _) = tree.take(&Limits::default(), None);
    let excluded: Vec<String> = taken.excluded().collect();
    assert_eq!(excluded, ["a.log", "out", "a/b", "z/out"]);
    let tracked = [
        "a.log",
        "a/b/c",
        "a/bc",
        "gone",
        "out",
        "out/deep/x",
        "outside",
        "z/out/y",
    ];
    assert_eq!(
        taken.excluded_of(tracked.into_iter()),
        ["a.log", "a/b/c", "out", "out/deep/x", "z/out/y"]
    );
    let backwards: Vec<String> = taken.excluded_of(tracked.into_iter().rev());
    assert_eq!(backwards.len(), 5, "in any order");
}

#[test]
fn files_that_are_tracked_although_excluded_are_added_once() {
    let tree = Memory::new("== .gitignore\nout/\n*.log\n== a\n1\n== a.log\n2\n== out/b\n3\n");
    let taken = |limits: &Limits| {
        let (taken, _) = tree.take(limits, None);
        let tracked = ["a", "a.log", "gone", "out", "out/b", "out/b"].map(str::to_owned);
        add(&tree, limits, None, taken, &tracked, &mut |_, _| {}).unwrap()
    };
    let whole = taken(&Limits::default());
    assert_eq!(paths(&whole.snapshot), [".gitignore", "a", "a.log", "out/b"]);
    let full = taken(&Limits {
        entries: 3,
        ..Limits::default()
    });
    assert_eq!((full.snapshot.files.len(), full.snapshot.is_partial()), (3, true));
}
