//! Prefixes that may be written: git changes nothing outside of them, and nothing takes their place.

use std::os::unix::fs::symlink;

use tollgate_sdk::GitAccess;
use tollgate_sdk::native::{Session, Workspace};

use crate::place::{PACK, Place, run, said};

#[test]
fn files_that_git_writes_are_below_the_prefixes() {
    let place = Place::new();
    place.commit("docs/b.md", "three\n");
    let session = Session::new(&PACK).workspace(place.workspace().write("docs/"));
    let refused = [
        "restore a.txt",
        "restore .",
        "restore docs/../a.txt",
        "reset --hard",
        "reset --hard HEAD~1",
        "rm a.txt",
        "rm -r .",
        "mv docs/b.md a.txt",
        "stash",
        "switch --orphan x",
        "restore :(top)a.txt",
        "restore *.txt",
        "switch -c x HEAD~2 --discard-changes",
    ];
    std::fs::write(place.at("main/a.txt"), "changed\n").unwrap();
    for line in refused {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert!(said.starts_with("no: "), "{line}: {said}");
    }
    assert_eq!(
        std::fs::read_to_string(place.at("main/a.txt")).unwrap(),
        "changed\n"
    );
    std::fs::write(place.at("main/docs/b.md"), "changed\n").unwrap();
    assert_eq!(run(&session, &["restore", "docs"], ""), "0 ");
    assert_eq!(
        std::fs::read_to_string(place.at("main/docs/b.md")).unwrap(),
        "three\n"
    );
    assert_eq!(run(&session, &["switch", "side"], ""), "0 ", "only docs/ differs");
    assert!(!place.at("main/docs/b.md").exists());
    place.git(&["restore", "."]);
    place.commit("a.txt", "elsewhere\n");
    let said = run(&session, &["switch", "main"], "");
    assert!(
        said.contains("would write a.txt") && said.contains("docs/"),
        "{said}"
    );
    assert_eq!(
        std::fs::read_to_string(place.at("main/a.txt")).unwrap(),
        "elsewhere\n"
    );
}

/// A workspace with `docs/` and, on branches, other things in its place.
fn with_leading_branches() -> Place {
    let place = Place::new();
    std::fs::create_dir_all(place.at("main/src")).unwrap();
    place.commit("src/lib.rs", "lib\n");
    place.commit("notes.md", "notes\n");
    for (branch, target) in [
        ("link", "src"),
        ("outside", "../outside"),
        ("absolute", "/tmp"),
        ("nowhere", "x"),
    ] {
        place.git(&["switch", "-qc", branch, "main"]);
        std::fs::remove_dir_all(place.at("main/docs")).unwrap();
        std::fs::remove_file(place.at("main/notes.md")).unwrap();
        symlink(target, place.at("main/docs")).unwrap();
        symlink(target, place.at("main/notes.md")).unwrap();
        place.commit("more", branch);
    }
    place.git(&["switch", "-qc", "file", "main"]);
    std::fs::remove_dir_all(place.at("main/docs")).unwrap();
    place.commit("docs", "a file\n");
    place.git(&["switch", "-qc", "module", "main"]);
    place.git(&["rm", "-rq", "docs"]);
    let head = std::fs::read_to_string(place.at("main/.git/refs/heads/file")).unwrap();
    let entry = format!("160000,{},docs", head.trim());
    place.git(&["update-index", "--add", "--cacheinfo", &entry]);
    place.git(&["commit", "-qm", "module"]);
    place.git(&["switch", "-q", "main"]);
    place
}

#[test]
fn no_command_puts_a_link_a_submodule_or_a_file_in_a_prefixs_place() {
    let place = with_leading_branches();
    let session = Session::new(&PACK).workspace(place.workspace().write("docs/").write("notes.md"));
    for branch in ["link", "outside", "absolute", "nowhere", "file", "module"] {
        for line in [
            "restore --source=BRANCH -- docs",
            "restore --source BRANCH docs/",
            "restore -sBRANCH -SW -- ./docs",
            "restore --source=main --source=BRANCH -- docs//",
            "restore --overlay --source=BRANCH -- docs/b.md docs",
            "restore --source=BRANCH^{tree} -- docs",
            "--no-replace-objects restore --source=BRANCH -- docs",
            "restore --source=BRANCH:./ -- docs",
            "switch BRANCH",
            "switch --detach BRANCH",
            "switch -c new BRANCH",
            "checkout BRANCH -- docs",
            "checkout BRANCH",
            "reset --hard BRANCH",
            "reset --keep BRANCH",
            "merge BRANCH",
            "stash pop",
            "apply x.patch",
            "read-tree -u BRANCH",
            "checkout-index -f docs",
        ] {
            let line = line.replace("BRANCH", branch);
            let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
            assert!(!said.starts_with("0 "), "{line}: {said}");
            let docs = std::fs::symlink_metadata(place.at("main/docs")).unwrap();
            assert!(docs.is_dir(), "{line}: {said}");
        }
    }
    for line in ["restore --source=link -- notes.md", "restore -SW -slink notes.md"] {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert!(
            said.contains("a link or a submodule at notes.md"),
            "{line}: {said}"
        );
    }
    // What is in the index is a source too.
    assert_eq!(
        run(&session, &["restore", "--staged", "--source=link", "."], ""),
        "0 "
    );
    for line in [
        "restore docs",
        "restore -- docs notes.md",
        "restore notes.md",
        "rm -rf docs",
    ] {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert!(said.starts_with("no: "), "{line}: {said}");
    }
    let said = said(
        &session,
        "hand_write",
        &serde_json::json!({"path": "docs/lib.rs", "content": "x"}),
    );
    assert_eq!(said, "ok");
    assert_eq!(
        std::fs::read_to_string(place.at("main/src/lib.rs")).unwrap(),
        "lib\n"
    );
}

#[test]
fn what_is_a_directory_at_a_prefix_is_restored_as_before() {
    let place = with_leading_branches();
    place.commit("docs/b.md", "three\n");
    let session = Session::new(&PACK).workspace(place.workspace().write("docs/").write("notes.md"));
    let read = || std::fs::read_to_string(place.at("main/docs/b.md")).unwrap();
    for (line, content) in [
        ("restore --source=HEAD~1 -- docs", "two\n"),
        ("restore docs", "three\n"),
        ("restore --source=HEAD~1 -SW docs/ notes.md", "two\n"),
        ("restore -SW docs", "three\n"),
        ("restore --source=HEAD~1 docs/b.md", "two\n"),
    ] {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert_eq!((said.as_str(), read().as_str()), ("0 ", content), "{line}");
    }
    assert_eq!(run(&session, &["rm", "-rfq", "docs"], ""), "0 ");
    assert!(!place.at("main/docs/b.md").exists());
}

#[test]
fn a_prefix_that_is_a_link_already_is_not_written_through_nor_replaced() {
    let place = with_leading_branches();
    std::fs::remove_dir_all(place.at("main/docs")).unwrap();
    symlink("src", place.at("main/docs")).unwrap();
    let session = Session::new(&PACK).workspace(place.workspace().write("docs/"));
    for line in [
        "restore docs",
        "restore docs/b.md",
        "rm -f docs/b.md",
        "switch side",
    ] {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert!(
            said.starts_with("no: ")
                && (said.contains("`docs` is a link") || said.contains("the link `docs`")),
            "{line}: {said}"
        );
    }
    assert!(place.at("main/docs").is_symlink());
    let said = said(
        &session,
        "hand_write",
        &serde_json::json!({"path": "docs/lib.rs", "content": "x"}),
    );
    assert!(said.starts_with("no: "), "{said}");
    assert_eq!(
        std::fs::read_to_string(place.at("main/src/lib.rs")).unwrap(),
        "lib\n"
    );
}

#[test]
fn a_name_that_several_things_have_is_the_one_that_git_takes() {
    let place = Place::new();
    place.git(&["switch", "-qc", "evil"]);
    place.commit("a.txt", "evil\n");
    place.git(&["switch", "-qc", "good", "main"]);
    place.commit("docs/b.md", "good\n");
    place.git(&["switch", "-q", "main"]);
    // Checked as the tag, such names would be let through, and git takes the branch.
    for name in ["both", "@both", "refs/heads/both", "heads/both", "tags/both"] {
        place.git(&["update-ref", &format!("refs/heads/{name}"), "evil"]);
        place.git(&["update-ref", &format!("refs/tags/{name}"), "good"]);
    }
    place.git(&["update-ref", "refs/heads/tagged", "good"]);
    place.git(&["update-ref", "refs/tags/tagged", "evil"]);
    place.git(&["switch", "-q", "both"]);
    place.git(&["switch", "-q", "main"]);
    let session = Session::new(&PACK).workspace(place.workspace().write("docs/"));
    for name in [
        "both",
        "@both",
        "refs/heads/both",
        "heads/both",
        "@{-1}",
        "tags/both",
    ] {
        for line in [
            "switch",
            "switch --detach",
            "switch -c new",
            "checkout",
            "switch -C main",
        ] {
            let mut words: Vec<&str> = line.split(' ').collect();
            words.push(name);
            let said = run(&session, &words, "");
            assert!(!said.starts_with("0 "), "{words:?}: {said}");
            let content = std::fs::read_to_string(place.at("main/a.txt")).unwrap();
            assert_eq!(content, "one\n", "{words:?}: {said}");
        }
    }
    let said = run(&session, &["switch", "tagged"], "");
    assert!(said.starts_with("0 "), "{said}");
    let docs = || std::fs::read_to_string(place.at("main/docs/b.md")).unwrap();
    assert_eq!(docs(), "good\n");
    for line in [
        "switch --detach main",
        "switch --detach good~0",
        "switch -c more main~0",
    ] {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert_eq!(said, "0 ", "{line}");
    }
    assert_eq!(docs(), "two\n");
}

#[test]
fn a_workspace_inside_the_work_tree_is_not_left_by_what_git_writes() {
    let place = Place::new();
    place.commit("docs/b.md", "three\n");
    place.git(&["switch", "-qc", "only-docs"]);
    place.commit("docs/b.md", "four\n");
    place.git(&["switch", "-q", "main"]);
    let inside = Workspace::new("main", &place.at("main/docs"))
        .git(GitAccess::Write)
        .write(".");
    let session = Session::new(&PACK).workspace(inside.repository(&place.at("main")));
    std::fs::write(place.at("main/a.txt"), "changed\n").unwrap();
    for line in ["reset --hard", "switch --orphan x"] {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert!(said.contains("only files below docs/"), "{line}: {said}");
    }
    place.git(&["restore", "a.txt"]);
    place.git(&["switch", "-qc", "both", "only-docs"]);
    place.commit("a.txt", "both\n");
    place.git(&["switch", "-q", "main"]);
    let said = run(&session, &["switch", "both"], "");
    assert!(said.contains("would write a.txt"), "{said}");
    assert_eq!(run(&session, &["switch", "only-docs"], ""), "0 ");
    assert_eq!(run(&session, &["restore", "--source=main", "."], ""), "0 ");
    assert_eq!(
        std::fs::read_to_string(place.at("main/docs/b.md")).unwrap(),
        "three\n"
    );
}

#[test]
fn nothing_behind_a_link_is_removed() {
    for prefix in [".", "docs/"] {
        for (target, victim) in [("../src", "main/src/x"), ("../../outside", "outside/x")] {
            for deep in ["docs/sub", "docs/sub/deep"] {
                let place = Place::new();
                for directory in ["main/src/deep", "outside/deep", "main/docs/sub/deep"] {
                    std::fs::create_dir_all(place.at(directory)).unwrap();
                    std::fs::write(place.at(directory).join("x"), "x\n").unwrap();
                    std::fs::write(place.at(directory).join("../x"), "x\n").unwrap();
                }
                place.git(&["add", "-A"]);
                place.git(&["commit", "-qm", "both"]);
                std::fs::remove_dir_all(place.at("main/docs/sub")).unwrap();
                symlink(target, place.at("main/docs/sub")).unwrap();
                let session = Session::new(&PACK).workspace(place.workspace().write(prefix));
                let file = format!("{deep}/x");
                for line in [
                    ["rm", "-f", &file],
                    ["rm", "-rf", deep],
                    ["rm", "-rf", "docs"],
                    ["rm", "-rf", "."],
                ] {
                    let said = run(&session, &line, "");
                    assert!(said.starts_with("no: "), "{prefix} {line:?}: {said}");
                    assert!(
                        place.at(victim).exists() && place.at("main/src/deep/x").exists(),
                        "{line:?}"
                    );
                    assert!(place.at("outside/deep/x").exists(), "{line:?}");
                }
                assert!(run(&session, &["rm", "-rq", "--cached", "docs/sub"], "").starts_with("0 "));
                assert!(place.at(victim).exists());
            }
        }
    }
}
