//! Edits in places that Git does not look into by itself, and limits of edits where Git was broken.
#![allow(clippy::disallowed_methods, reason = "tests make files")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::SystemTime;

use serde_json::json;

use crate::envelopes::observed_edits::{FAILING, git, place, write};
use crate::harness::Place;

#[tokio::test]
async fn breaking_git_is_no_way_around_a_limit_of_edits() {
    let place = place("[envelope]\nauto = true\nmax_edits = 4\n");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("test_run", json!({})).await;
    let git_folder = place.path().join("work/.git");
    let aside = place.path().join("aside");
    fs::rename(&git_folder, &aside).unwrap();
    write(&place, "value", "1");
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "WORK_TREE_UNSEEN", "{refusal:#}");
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.contains("workspace default is not a Git repository; nothing was run"),
        "{message}"
    );
    let next = &refusal["next_call"];
    session.follow(next).await;
    fs::rename(&aside, &git_folder).unwrap();
    // A program in the repository's own configuration, which the host does not run.
    git(&place, &["config", "filter.x.clean", "cat"]);
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "WORK_TREE_UNSEEN", "{refusal:#}");
    git(&place, &["config", "--unset", "filter.x.clean"]);
    let ran = session.ok("test_run", json!({})).await;
    assert_eq!(
        (&ran["observed_edits"], &ran["failure_seen"]),
        (&json!(1), &json!(2))
    );
    session.close().await;
    let place = crate::envelopes::observed_edits::place("[[envelope.window]]\nper = \"1h\"\nmax_edits = 4\n");
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("envelope_open", json!({"workspace": "default"})).await;
    fs::rename(place.path().join("work/.git"), place.path().join("aside")).unwrap();
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "WORK_TREE_UNSEEN", "{refusal:#}");
    session.close().await;
}

#[tokio::test]
async fn edits_in_a_repository_of_its_own_and_in_flagged_files_count() {
    let place = place("[envelope]\nauto = true\n");
    for name in ["assumed", "skipped", "absent"] {
        write(&place, name, "before");
    }
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "second"]);
    fs::create_dir(place.path().join("work/sub")).unwrap();
    git(&place, &["init", "-q", "sub"]);
    write(&place, "sub/x.py", "1");
    git(&place, &["update-index", "--assume-unchanged", "assumed"]);
    git(&place, &["update-index", "--skip-worktree", "skipped", "absent"]);
    fs::remove_file(place.path().join("work/absent")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("test_run", json!({})).await;
    let edits = async || session.ok("test_run", json!({})).await["observed_edits"].clone();
    assert_eq!(edits().await, 0, "nothing was changed");
    for (count, (file, content)) in [
        ("sub/x.py", "2"),
        ("sub/deeper.py", "2"),
        ("assumed", "after"),
        ("skipped", "after"),
        ("absent", "after"),
        ("skipped", "before"),
    ]
    .iter()
    .enumerate()
    {
        write(&place, file, content);
        assert_eq!(edits().await, count + 1, "{file}");
    }
    // A commit in it changes none of its files.
    git(&place, &["-C", "sub", "add", "-A"]);
    git(&place, &["-C", "sub", "commit", "-qm", "first"]);
    assert_eq!(edits().await, 6);
    write(&place, "sub/x.py", "1");
    assert_eq!(edits().await, 7);
    git(&place, &["update-index", "--no-assume-unchanged", "assumed"]);
    assert_eq!(edits().await, 7, "a flag is no edit");
    session.close().await;
}

/// Means to hide an edit, and the edits that the next call must see.
type Step = (&'static str, fn(&Place), i64);

const IN_SUBMODULES: [Step; 12] = [
    ("edit", |place| write(place, "lib/s.py", "2"), 1),
    ("new file", |place| write(place, "lib/new.py", "2"), 1),
    (
        "commit inside",
        |place| {
            git(place, &["-C", "lib", "add", "s.py"]);
            git(place, &["-C", "lib", "commit", "-qm", "second"]);
        },
        0,
    ),
    (
        "commit outside",
        |place| git(place, &["commit", "-qam", "lib"]),
        0,
    ),
    (
        "flag",
        |place| {
            git(
                place,
                &["-C", "lib", "update-index", "--assume-unchanged", "s.py"],
            )
        },
        0,
    ),
    ("edit with the flag", |place| write(place, "lib/s.py", "3"), 1),
    (
        "exclude and settings",
        |place| {
            fs::create_dir_all(place.path().join("work/.git/modules/lib/info")).unwrap();
            write(place, ".git/modules/lib/info/exclude", "*.py\n");
            git(place, &["config", "submodule.lib.ignore", "all"]);
        },
        0,
    ),
    (
        "new file with the exclude",
        |place| write(place, "lib/more.py", "1"),
        1,
    ),
    ("edit of it", |place| write(place, "lib/more.py", "2"), 1),
    ("edit with settings", |place| write(place, "lib/s.py", "4"), 1),
    (
        "not active",
        |place| git(place, &["config", "submodule.lib.active", "false"]),
        // Its files are no longer told from those that Git does not track.
        1,
    ),
    (
        "edit of what is not active",
        |place| write(place, "lib/s.py", "5"),
        1,
    ),
];

const IN_THE_INDEX: [Step; 8] = [
    (
        "replaced commit",
        |place| {
            write(place, "value", "7");
            git(place, &["commit", "-qam", "seven"]);
            git(place, &["replace", "HEAD~1", "HEAD"]);
            git(place, &["reset", "-q", "--soft", "HEAD~1"]);
        },
        1,
    ),
    (
        "replaced no longer",
        |place| git(place, &["replace", "-d", "HEAD"]),
        0,
    ),
    (
        "out of the index",
        |place| {
            write(place, ".git/info/exclude", "value\n");
            git(place, &["rm", "-q", "--cached", "value"]);
        },
        0,
    ),
    ("edit of it", |place| write(place, "value", "8"), 1),
    (
        "commit of that",
        |place| git(place, &["commit", "-qm", "no value"]),
        0,
    ),
    ("edit after that", |place| write(place, "value", "9"), 1),
    (
        "sparse checkout",
        |place| git(place, &["sparse-checkout", "set", "--no-cone", "/*", "!/far/"]),
        0,
    ),
    (
        "file outside of it",
        |place| {
            fs::create_dir_all(place.path().join("work/far")).unwrap();
            write(place, "far/a.py", "2");
        },
        1,
    ),
];

const BY_RULES: [Step; 9] = [
    (
        "excluded file",
        |place| {
            write(place, ".git/info/exclude", "new.py\nvenv/\n");
            write(place, "new.py", "1");
        },
        1,
    ),
    ("edit of it", |place| write(place, "new.py", "2"), 1),
    (
        "folder that ignores itself",
        |place| {
            fs::create_dir_all(place.path().join("work/self/deep")).unwrap();
            write(place, "self/.gitignore", "*\n");
            write(place, "self/deep/a.py", "1");
        },
        1,
    ),
    ("edit in it", |place| write(place, "self/deep/a.py", "2"), 1),
    (
        "new rule",
        |place| write(place, ".gitignore", "!keep.log\n*.log\nbuild/\n*.mod\n"),
        1,
    ),
    ("file that it hides", |place| write(place, "a.mod", "1"), 1),
    ("edit of that", |place| write(place, "a.mod", "2"), 1),
    (
        "committed rules",
        |place| {
            fs::create_dir_all(place.path().join("work/build")).unwrap();
            write(place, "build/a.py", "1");
            write(place, "a.log", "1");
        },
        0,
    ),
    (
        "lost exception",
        |place| write(place, ".gitignore", "*.log\nbuild/\n"),
        1,
    ),
];

const BY_FILES: [Step; 8] = [
    (
        "settings",
        |place| {
            for setting in [
                "core.fileMode=false",
                "core.ignoreCase=true",
                "core.symlinks=false",
            ] {
                let (name, value) = setting.split_once('=').unwrap();
                git(place, &["config", name, value]);
            }
        },
        0,
    ),
    (
        "mode",
        |place| {
            let file = place.path().join("work/far/b.py");
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        },
        1,
    ),
    ("name in capitals", |place| write(place, "RUN.SH", "1"), 1),
    (
        "same size and time",
        |place| {
            let file = fs::File::open(place.path().join("work/far/b.py")).unwrap();
            let before: SystemTime = file.metadata().unwrap().modified().unwrap();
            write(place, "far/b.py", "9");
            file.set_modified(before).unwrap();
        },
        1,
    ),
    (
        "file behind a link",
        |place| write(place, "../outside/x.py", "22"),
        1,
    ),
    (
        "folder behind a link",
        |place| {
            fs::create_dir_all(place.path().join("outside/more/deep")).unwrap();
            symlink("../outside/more", place.path().join("work/more")).unwrap();
        },
        1,
    ),
    (
        "file in that",
        |place| write(place, "../outside/more/deep/a.py", "1"),
        1,
    ),
    (
        "link to what is seen anyway",
        |place| symlink("far", place.path().join("work/near")).unwrap(),
        1,
    ),
];

fn furnished() -> Place {
    let place = place("[envelope]\nauto = true\n");
    for folder in ["outside", "origin", "work/far"] {
        fs::create_dir(place.path().join(folder)).unwrap();
    }
    write(&place, "../outside/x.py", "1");
    write(&place, "../origin/s.py", "1");
    for arguments in [
        ["init", "-q"].as_slice(),
        &["add", "-A"],
        &["commit", "-qm", "first"],
    ] {
        git(&place, &[["-C", "../origin"].as_slice(), arguments].concat());
    }
    write(&place, ".gitignore", "!keep.log\n*.log\nbuild/\n");
    write(&place, "far/a.py", "1");
    write(&place, "far/b.py", "1");
    symlink("../outside/x.py", place.path().join("work/x.py")).unwrap();
    let add = ["submodule", "--quiet", "add", "../origin", "lib"];
    git(
        &place,
        &[["-c", "protocol.file.allow=always"].as_slice(), &add].concat(),
    );
    git(&place, &["add", "-A"]);
    git(&place, &["commit", "-qm", "furnished"]);
    place
}

async fn walk(steps: &[Step]) {
    let place = furnished();
    let session = place.serve(&["--tier", "full"]).await;
    session.ok("test_run", json!({})).await;
    let mut expected = 0;
    for (what, step, edits) in steps {
        step(&place);
        expected += edits;
        for when in ["after it", "and no more"] {
            let ran = session.ok("test_run", json!({})).await;
            assert_eq!(ran["observed_edits"], expected, "{what}, {when}: {ran:#}");
        }
    }
    session.close().await;
}

#[tokio::test]
async fn edits_in_submodules_show() {
    walk(&IN_SUBMODULES).await;
}

#[tokio::test]
async fn edits_that_the_index_hides_show() {
    walk(&IN_THE_INDEX).await;
}

#[tokio::test]
async fn rules_that_are_not_committed_hide_nothing() {
    walk(&BY_RULES).await;
}

#[tokio::test]
async fn settings_times_and_links_hide_nothing() {
    walk(&BY_FILES).await;
}

#[tokio::test]
async fn what_tests_leave_in_submodules_and_behind_links_is_no_edit() {
    let place = furnished();
    fs::create_dir(place.path().join("outside/data")).unwrap();
    symlink("../outside/data", place.path().join("work/data")).unwrap();
    let build = "date +%N > lib/built.o\ndate +%N > data/log\n";
    write(&place, "run.sh", &format!("{build}{FAILING}"));
    let session = place.serve(&["--tier", "full"]).await;
    for _ in 0..3 {
        let ran = session.ok("test_run", json!({})).await;
        assert_eq!(ran["observed_edits"], 0, "{ran:#}");
    }
    // A test that changes what the submodule tracks edits it.
    write(&place, "run.sh", &format!("date +%N > lib/s.py\n{FAILING}"));
    session.ok("test_run", json!({})).await;
    let ran = session.ok("test_run", json!({})).await;
    assert_eq!(ran["observed_edits"], 2, "{ran:#}");
    session.close().await;
}

#[tokio::test]
async fn no_edit_is_missed_in_a_large_folder_that_an_uncommitted_rule_hides() {
    let place = place("[envelope]\nauto = true\n");
    fs::create_dir(place.path().join("work/gen")).unwrap();
    for number in 0..20_010 {
        write(&place, &format!("gen/{number:05}.py"), "1");
    }
    write(&place, ".git/info/exclude", "gen/\n");
    let session = place.serve(&["--tier", "full"]).await;
    let edits = async || session.ok("test_run", json!({})).await["observed_edits"].clone();
    assert_eq!(edits().await, 0);
    write(&place, "gen/20009.py", "22");
    assert_eq!(edits().await, 1);
    fs::remove_file(place.path().join("work/gen/20008.py")).unwrap();
    assert_eq!(edits().await, 2);
    session.close().await;
}

#[tokio::test]
async fn a_folder_that_is_too_deep_to_look_into_is_not_seen_and_says_so() {
    let place = place("[envelope]\nauto = true\nmax_edits = 4\n");
    write(&place, ".git/info/exclude", "gen/\n");
    let deep = format!("gen/{}", vec!["d"; 70].join("/"));
    fs::create_dir_all(place.path().join("work").join(&deep)).unwrap();
    write(&place, &format!("{deep}/a.py"), "1");
    let session = place.serve(&["--tier", "full"]).await;
    let refusal = session.refused("test_run", json!({})).await;
    assert_eq!(refusal["code"], "WORK_TREE_UNSEEN", "{refusal:#}");
    let message = refusal["message"].as_str().unwrap();
    assert!(
        message.contains("folder gen of workspace default nests folders too deeply"),
        "{message}"
    );
    session.close().await;
}
