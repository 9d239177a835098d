//! Recorded states of real repositories, the odd ones included.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use expect_test::expect;
use serde_json::json;
use tollgate_sdk::GitAccess;

use crate::place::{Place, edit, git, refusal, reply};

#[test]
fn edits_that_do_nothing_or_go_in_circles_are_flagged() {
    let place = Place::repository();
    let session = place.session();
    let (a, b) = (
        "def add(a, b):\n    return a * b\n",
        "def add(a, b):\n    return a + b\n",
    );
    let mut log = edit(&session);
    for content in [a, b, a, b, b] {
        place.write("calc.py", content);
        log += &edit(&session);
    }
    // Staging is no change, ignored files are none, untracked ones are.
    place.git(&["add", "-A"]);
    log += &edit(&session);
    place.write("ignored/x", "x");
    log += &edit(&session);
    place.write("new.py", "one\ntwo\n");
    log += &edit(&session);
    place.git(&["add", "new.py"]);
    log += &edit(&session);
    // A commit is a step forward, not a return to the start.
    place.commit("second");
    log += &edit(&session);
    expect![[r#"
        nothing differs from the last commit []
        1 file changed, +1 -1 [~ calc.py] calc.py: add
        1 file changed, +1 -1 [~ calc.py] calc.py: add
        1 file changed, +1 -1; oscillation: the work tree is back in its state of 2 records ago [~ calc.py] calc.py: add
        1 file changed, +1 -1; oscillation: the work tree is back in its state of 2 records ago [~ calc.py] calc.py: add
        1 file changed, +1 -1; no-op: same state as the previous record [~ calc.py] calc.py: add
        1 file changed, +1 -1; no-op: same state as the previous record [~ calc.py] calc.py: add
        1 file changed, +1 -1; no-op: same state as the previous record [~ calc.py] calc.py: add
        2 files changed, +3 -1 [~ calc.py, + new.py] calc.py: add
        2 files changed, +3 -1; no-op: same state as the previous record [~ calc.py, + new.py] calc.py: add
        nothing differs from the last commit []
    "#]]
    .assert_eq(&log);
}

#[test]
fn odd_work_trees_are_read() {
    let place = Place::repository();
    let session = place.session();
    let library = Place::repository();
    place.git(&[
        "submodule",
        "--quiet",
        "add",
        library.path().to_str().unwrap(),
        "library",
    ]);
    std::os::unix::fs::symlink("calc.py", place.path().join("link")).unwrap();
    place.commit("with a submodule and a link");
    let mut log = edit(&session);
    // Names that no line of text can hold, and one that is no text at all.
    place.write("line\nend \"quoted\" \\ back.txt", "x\n");
    std::fs::write(place.path().join(OsStr::from_bytes(b"caf\xe9.txt")), "y\n").unwrap();
    log += &edit(&session);
    std::fs::write(place.path().join(OsStr::from_bytes(b"caf\xe9.txt")), "z\n").unwrap();
    log += &edit(&session);
    log += &edit(&session);
    // A link to something endless, known to Git and not.
    std::fs::remove_file(place.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path().join("other link")).unwrap();
    log += &edit(&session);
    std::fs::remove_file(place.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/dev/null", place.path().join("link")).unwrap();
    log += &edit(&session);
    // A change in the submodule, which git does not enter, and another commit.
    std::fs::write(place.path().join("library/calc.py"), "changed\n").unwrap();
    log += &edit(&session);
    git(&place.path().join("library"), &["commit", "-qam", "more"]);
    log += &edit(&session);
    expect![[r#"
        nothing differs from the last commit []
        2 files changed, +1 -0 [+ bytes:caf\xe9.txt, + line\nend "quoted" \ back.txt]
        2 files changed, +1 -0 [+ bytes:caf\xe9.txt, + line\nend "quoted" \ back.txt]
        2 files changed, +1 -0; no-op: same state as the previous record [+ bytes:caf\xe9.txt, + line\nend "quoted" \ back.txt]
        4 files changed, +2 -1 [+ bytes:caf\xe9.txt, + line\nend "quoted" \ back.txt, ~ link, + other link]
        4 files changed, +2 -1 [+ bytes:caf\xe9.txt, + line\nend "quoted" \ back.txt, ~ link, + other link]
        4 files changed, +2 -1; no-op: same state as the previous record [+ bytes:caf\xe9.txt, + line\nend "quoted" \ back.txt, ~ link, + other link]
        5 files changed, +3 -2 [+ bytes:caf\xe9.txt, ~ library, + line\nend "quoted" \ back.txt, ~ link, + other link]
    "#]].assert_eq(&log);
}

#[test]
fn a_repository_is_read_before_its_first_commit_and_in_a_merge() {
    let place = Place::new();
    place.git(&["init", "-q", "-b", "main"]);
    let session = place.session();
    let mut log = edit(&session);
    place.write("one.txt", "1\n");
    log += &edit(&session);
    place.git(&["add", "-A"]);
    log += &edit(&session);
    place.write("one.txt", "1\n2\n");
    log += &edit(&session);
    place.commit("first");
    place.git(&["switch", "-q", "-c", "side"]);
    place.write("one.txt", "side\n");
    place.commit("side");
    place.git(&["switch", "-q", "main"]);
    place.write("one.txt", "main\n");
    place.commit("main");
    let merge = std::process::Command::new("git")
        .current_dir(place.path())
        .args([
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.org",
            "merge",
            "-q",
            "side",
        ])
        .output()
        .unwrap();
    assert!(!merge.status.success());
    log += &edit(&session);
    place.write("one.txt", "both\n");
    log += &edit(&session);
    place.git(&["add", "-A"]);
    log += &edit(&session);
    expect![[r#"
        nothing differs from the last commit []
        1 file changed, +1 -0 [+ one.txt]
        1 file changed, +1 -0; no-op: same state as the previous record [+ one.txt]
        1 file changed, +2 -0 [+ one.txt]
        1 file changed, +4 -0 [~ one.txt] one.txt: main
        1 file changed, +1 -1 [~ one.txt]
        1 file changed, +1 -1; no-op: same state as the previous record [~ one.txt]
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_workspace_below_the_top_has_its_own_changes_only() {
    let place = Place::repository();
    place.write("sub/a.py", "a\n");
    place.commit("sub");
    let session = tollgate_sdk::native::Session::new(&convergence::PACK).workspace(
        tollgate_sdk::native::Workspace::new("default", &place.path().join("sub"))
            .git(GitAccess::Read)
            .repository(&place.path()),
    );
    place.write("calc.py", "elsewhere\n");
    place.write("sub/a.py", "def f():\n    pass\n");
    place.write("sub/b.py", "b\n");
    expect![[r#"
        2 files changed, +3 -1 [~ a.py, + b.py]
    "#]]
    .assert_eq(&edit(&session));
}

#[test]
fn a_huge_binary_and_many_files_are_bounded() {
    let place = Place::repository();
    let session = place.session();
    let huge = std::fs::File::create(place.path().join("huge.bin")).unwrap();
    huge.set_len(300 << 20).unwrap();
    let mut log = edit(&session);
    std::fs::remove_file(place.path().join("huge.bin")).unwrap();
    for number in 0..100_000 {
        // Empty files in few folders cost little to make.
        let folder = place.path().join(format!("many/{}", number / 1000));
        if number % 1000 == 0 {
            std::fs::create_dir_all(&folder).unwrap();
        }
        std::fs::File::create(folder.join(format!("file-{number:06}"))).unwrap();
    }
    let err = refusal(&session, "mutation_record", json!({}));
    log += &format!("{err}\n");
    expect![[r#"
        1 file changed, +0 -0 [+ huge.bin]
        TOO_MANY_CHANGES: workspace default has more changes than can be read
    "#]]
    .assert_eq(&log);
    assert!(session.events().len() == 1);
}

#[test]
fn files_that_cannot_be_hashed_are_told_as_such() {
    let place = Place::repository();
    let session = place.session();
    place.write("dir/file", "x");
    // A folder that is a repository of its own is untracked as a whole.
    git(&place.path(), &["init", "-q", "nested"]);
    place.write("nested/file", "x");
    git(&place.path().join("nested"), &["add", "-A"]);
    git(&place.path().join("nested"), &["commit", "-qm", "nested"]);
    expect![[r#"
        2 files changed, +1 -0 [+ dir/file, + nested/]
    "#]]
    .assert_eq(&edit(&session));
}

#[test]
fn what_is_no_repository_or_not_allowed_is_refused() {
    let place = Place::new();
    let session = place.session();
    let mut log = format!("{}\n", refusal(&session, "mutation_record", json!({})));
    let session = place.session_with(|workspace| workspace);
    log += &format!("{}\n", refusal(&session, "mutation_record", json!({})));
    log += &format!(
        "{}\n",
        refusal(&session, "mutation_record", json!({"workspace": "other"}))
    );
    place.git(&["init", "-q", "--bare", "bare.git"]);
    let bare = tollgate_sdk::native::Session::new(&convergence::PACK).workspace(
        tollgate_sdk::native::Workspace::new("default", &place.path().join("bare.git")).git(GitAccess::Read),
    );
    log += &format!("{}\n", refusal(&bare, "mutation_record", json!({})));
    expect![[r#"
        NOT_A_REPOSITORY: workspace default is not a work tree of a Git repository
        GIT_NOT_ALLOWED: git is not allowed in workspace default
        WORKSPACE_UNKNOWN: workspace `other` does not exist or is not granted to this pack
        NOT_A_REPOSITORY: workspace default is not a work tree of a Git repository
    "#]]
    .assert_eq(&log);
    let status = reply(&session, "convergence_status", json!({}));
    assert_eq!(status["message"], "no test run yet");
}
