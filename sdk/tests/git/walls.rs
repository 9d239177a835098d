//! The repository and the work tree: nothing outside of them is read.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tollgate_sdk::GitAccess;
use tollgate_sdk::native::{Session, Workspace};

use crate::commands::COMMANDS;
use crate::place::{PACK, Place, git_in, run, said};

#[test]
fn a_repository_inside_the_work_tree_is_not_entered() {
    let place = Place::new();
    let nested = place.at("main/nested");
    std::fs::create_dir(&nested).unwrap();
    git_in(&nested, &["init", "-q"]);
    std::fs::write(nested.join("f"), "x\n").unwrap();
    git_in(&nested, &["add", "-A"]);
    git_in(&nested, &["commit", "-qm", "x"]);
    place.git(&["add", "nested"]);
    place.git(&["commit", "-qm", "nested"]);
    std::fs::write(nested.join(".gitattributes"), "* filter=f\n").unwrap();
    git_in(&nested, &["config", "filter.f.clean", &place.evil()]);
    std::fs::write(
        place.at("main/.gitmodules"),
        "[submodule \"n\"]\npath = nested\nurl = x\nignore = none\n",
    )
    .unwrap();
    let session = Session::new(&PACK).workspace(place.workspace());
    for line in COMMANDS.iter().filter(|line| {
        ["status", "diff", "log", "show", "ls-"]
            .iter()
            .any(|name| line.starts_with(name))
    }) {
        std::fs::write(nested.join("f"), line).unwrap();
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert!(!place.is_marked(), "{line}: {said}");
    }
    for line in [
        "diff --ignore-submodules=none",
        "diff --submodule=diff",
        "status --ignore-submodules=none",
    ] {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
        assert!(said.starts_with("no: "), "{line}: {said}");
    }
}

#[test]
fn files_that_look_like_a_repository_are_none() {
    let place = Place::new();
    std::fs::remove_dir_all(place.at("main/.git")).unwrap();
    let session = Session::new(&PACK).workspace(place.workspace().write("."));
    let config = format!(
        "[core]\nbare = false\nworktree = {0}\n[filter \"y\"]\nclean = {1}\n",
        place.at("main").display(),
        place.evil()
    );
    for (path, content) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("objects/x", ""),
        ("refs/x", ""),
        ("config", config.as_str()),
        (".gitattributes", "* filter=y\n"),
    ] {
        assert_eq!(
            said(
                &session,
                "hand_write",
                &serde_json::json!({"path": path, "content": content})
            ),
            "ok"
        );
    }
    for line in COMMANDS {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "HEAD\n");
        assert!(!place.is_marked(), "{line}: {said}");
        assert!(
            said.starts_with("128 fatal: not a git repository") || said.starts_with("no: "),
            "{line}: {said}"
        );
    }
    for path in [
        ".git",
        ".GIT/config",
        "sub/.git/config",
        ".git./config",
        "git~1/config",
        ".g\u{200c}it/config",
        "a\\.git/x",
    ] {
        let said = said(
            &session,
            "hand_write",
            &serde_json::json!({"path": path, "content": "x"}),
        );
        assert!(said.contains("belongs to git"), "{path}: {said}");
    }
}

#[test]
fn nothing_outside_of_the_workspace_is_shown() {
    let place = Place::new();
    let session = Session::new(&PACK).workspace(place.workspace().write("."));
    std::fs::create_dir(place.at("main/d")).unwrap();
    place.commit("d/secret", "tracked\n");
    std::fs::remove_dir_all(place.at("main/d")).unwrap();
    symlink("../outside", place.at("main/d")).unwrap();
    symlink("../outside/secret", place.at("main/link")).unwrap();
    let hash = "d5f9d87e6ac54e4a21ca09d3b4b2e2bd4e4a6ed1";
    let secret = std::process::Command::new("git")
        .arg("hash-object")
        .arg(place.at("outside/secret"))
        .output()
        .unwrap();
    let secret = String::from_utf8(secret.stdout).unwrap().trim().to_owned();
    assert_ne!(secret, hash);
    let absolute = place.at("outside/secret").display().to_string();
    for (line, stdin) in [
        ("blame d/secret", ""),
        ("blame -- d/secret", ""),
        ("diff d/secret link", ""),
        ("diff -- d/secret a.txt", ""),
        ("diff --no-index d/secret a.txt", ""),
        ("diff HEAD", ""),
        ("status --ignored -uall", ""),
        ("hash-object d/secret", ""),
        ("hash-object link", ""),
        ("hash-object --stdin-paths", "d/secret\n"),
        ("hash-object --stdin-paths", "link\n"),
        ("hash-object --stdin-paths", absolute.as_str()),
        ("commit --allow-empty -F link", ""),
        ("commit --allow-empty --file=d/secret", ""),
        ("commit --allow-empty -t link", ""),
        ("tag -F link v1", ""),
        ("show HEAD:d/secret", ""),
        ("log -p --all", ""),
        ("add --pathspec-from-file=link", ""),
        ("add -A", ""),
        ("show :link", ""),
        ("blame --contents=link a.txt", ""),
        ("blame --ignore-revs-file=link a.txt", ""),
        ("ls-files -X link -o -i", ""),
        ("cat-file -p HEAD:link", ""),
    ] {
        let said = run(&session, &line.split(' ').collect::<Vec<_>>(), stdin);
        assert!(
            !said.contains("SECRET") && !said.contains(&secret),
            "{line}: {said}"
        );
    }
}

#[test]
fn links_below_git_are_not_followed() {
    for name in [
        "COMMIT_EDITMSG",
        "MERGE_MSG",
        "SQUASH_MSG",
        "rebase-merge/head-name",
        "info/exclude",
        "index",
        "logs/HEAD",
        "objects/ab",
        "packed-refs",
        "refs/heads/x",
        "config.worktree",
        "worktrees/x/gitdir",
    ] {
        let place = Place::new();
        let link = place.at("main/.git").join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&link);
        symlink(place.at("outside/secret"), &link).unwrap();
        let session = Session::new(&PACK).workspace(place.workspace().write("."));
        for line in ["status", "commit -qam new", "log -p", "rev-parse HEAD"] {
            let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
            assert!(
                said.starts_with("no: ") && said.contains(".git/") && said.contains("is a link"),
                "{name} {line}: {said}"
            );
        }
        assert_eq!(
            std::fs::read_to_string(place.at("outside/secret")).unwrap(),
            "SECRET\n",
            "{name}"
        );
    }
}

/// Opening a pipe waits for somebody at its other end.
#[test]
fn pipes_below_git_stall_nothing() {
    for name in [
        "index",
        "packed-refs",
        "info/exclude",
        "info/attributes",
        "shallow",
        "MERGE_HEAD",
        "logs/HEAD",
        "refs/heads/x",
        "COMMIT_EDITMSG",
    ] {
        let place = Place::new();
        let pipe = place.at("main/.git").join(name);
        std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&pipe);
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
        let session = Session::new(&PACK).workspace(place.workspace().write("."));
        for line in ["status", "commit -qam new"] {
            let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
            assert!(
                said.starts_with("no: ") && said.contains(".git/") && said.contains("is a pipe or device"),
                "{name} {line}: {said}"
            );
        }
    }
}

#[test]
fn another_repository_is_used_only_where_the_operator_named_it() {
    let place = Place::new();
    let private = place.at("private");
    std::fs::create_dir(&private).unwrap();
    git_in(&private, &["init", "-q"]);
    std::fs::write(private.join("secret"), "SECRET\n").unwrap();
    git_in(&private, &["add", "-A"]);
    git_in(&private, &["commit", "-qm", "SECRET"]);
    let git = private.join(".git").display().to_string();

    // A file, a link, a directory above, and objects that are borrowed.
    let file = Place::new();
    std::fs::remove_dir_all(file.at("main/.git")).unwrap();
    std::fs::write(file.at("main/.git"), format!("gitdir: {git}\n")).unwrap();
    let link = Place::new();
    std::fs::remove_dir_all(link.at("main/.git")).unwrap();
    symlink(&git, link.at("main/.git")).unwrap();
    let borrows = Place::new();
    std::fs::write(
        borrows.at("main/.git/objects/info/alternates"),
        format!("{git}/objects\n"),
    )
    .unwrap();
    let common = Place::new();
    std::fs::write(common.at("main/.git/commondir"), format!("{git}\n")).unwrap();
    let at = |path: PathBuf| Workspace::new("main", &path).git(GitAccess::Read);
    std::fs::create_dir(private.join("sub")).unwrap();
    for workspace in [
        at(file.at("main")),
        at(link.at("main")),
        at(borrows.at("main")),
        at(common.at("main")),
        at(private.join("sub")),
    ] {
        let session = Session::new(&PACK).workspace(workspace);
        for line in ["log -p", "show HEAD:secret", "status", "rev-parse HEAD"] {
            let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
            assert!(
                said.starts_with("no: ") && !said.contains("SECRET"),
                "{line}: {said}"
            );
        }
    }
    for workspace in [at(file.at("main")), at(private.join("sub"))] {
        let session = Session::new(&PACK).workspace(workspace.repository(&private));
        let said = run(&session, &["log", "--format=%s"], "");
        assert_eq!(said, "0 SECRET\n");
    }
}
