//! Git through the whole host, in prepared and hostile repositories.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use crate::harness::{Place, Session, guest, until};
use crate::workspace_access::result;

fn git(directory: &Path, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{arguments:?} {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// A place whose workspace `main` is a repository with one commit, with `more` in the workspace's configuration.
fn place(more: &str) -> Place {
    let place = Place::new();
    let config = format!(
        "[workspaces.main]\npath = \"main\"\nwrite = [\".\"]\n{more}\n\
         [packs.workspace-access]\nsource = {:?}\ngrants = {{ workspaces = [\"*\"], process = [\"*\"] }}\n",
        guest("workspace-access")
    );
    std::fs::write(place.config(), config).unwrap();
    let main = place.path().join("main");
    std::fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    std::fs::write(main.join("a"), "one\n").unwrap();
    git(&main, &["add", "-A"]);
    git(&main, &["commit", "-qm", "one"]);
    let evil = place.path().join("evil");
    std::fs::write(
        &evil,
        format!(
            "#!/bin/sh\ntouch {}\ncat\n",
            place.path().join("marker").display()
        ),
    )
    .unwrap();
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    place
}

async fn run(session: &Session, line: &str) -> String {
    let arguments: Vec<&str> = line.split(' ').collect();
    result(
        session,
        "workspace_access_run",
        json!({"program": "git", "arguments": arguments, "output_limit": 65536}),
    )
    .await
}

#[tokio::test]
async fn a_repository_of_plain_files_runs_nothing() {
    let place = place("");
    let main = place.path().join("main");
    std::fs::remove_dir_all(main.join(".git")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    let config = format!(
        "[core]\nbare = false\nworktree = {}\n[filter \"y\"]\nclean = {}\n",
        main.display(),
        place.path().join("evil").display()
    );
    let files = json!([
        {"path": "HEAD", "content": "ref: refs/heads/main\n"}, {"path": "objects/x", "content": ""}, {"path": "refs/x", "content": ""},
        {"path": "config", "content": config}, {"path": ".gitattributes", "content": "* filter=y\n"},
        {"path": ".GIT/config", "content": "x"}, {"path": "sub/git~1/config", "content": "x"}, {"path": ".g\u{200d}it/config", "content": "x"}
    ]);
    for arguments in [
        json!(["hash-object", "a"]),
        json!(["status"]),
        json!(["diff", "a", "config"]),
    ] {
        let said = result(
            &session,
            "workspace_access_run",
            json!({"program": "git", "arguments": arguments, "files": files}),
        )
        .await;
        assert!(said.contains("not a git repository"), "{said}");
        assert_eq!(said.matches("belongs to git").count(), 3, "{said}");
    }
    assert!(!place.path().join("marker").exists());
    session.close().await;
}

#[tokio::test]
async fn configuration_that_names_programs_is_refused_unless_the_operator_accepts_it() {
    let evil = |place: &Place| format!("\"{}\"", place.path().join("evil").display());
    let prepare = |place: &Place| {
        let main = place.path().join("main");
        git(&main, &["config", "filter.f.clean", &evil(place)]);
        std::fs::write(main.join(".gitattributes"), "* filter=f\n").unwrap();
        std::fs::write(main.join("a"), "two\n").unwrap();
    };
    let refused = place("");
    prepare(&refused);
    let session = refused.serve(&["--tier", "full"]).await;
    for line in ["status", "diff", "hash-object a", "log -p"] {
        let said = run(&session, line).await;
        assert!(
            said.contains("filter.f.clean") && said.contains("`git_config = [\"filter.f.clean\"]`"),
            "{said}"
        );
    }
    assert!(run(&session, "rev-parse HEAD").await.starts_with("Exited(0)"));
    let refusal = session
        .refused("mutation_record", json!({"workspace": "main"}))
        .await;
    assert_eq!(refusal["code"], "PROCESS_DENIED", "{refusal:#}");
    assert!(!refused.path().join("marker").exists());
    session.close().await;

    let accepted = place("git_config = [\"filter.f.*\"]");
    prepare(&accepted);
    let session = accepted.serve(&["--tier", "full"]).await;
    assert!(run(&session, "diff").await.contains("+two"));
    assert!(accepted.path().join("marker").exists(), "the operator wants it");
    session.close().await;
}

#[tokio::test]
async fn a_repository_inside_the_work_tree_is_not_entered() {
    let place = place("");
    let main = place.path().join("main");
    // A repository in the work tree that `ls-files` and others may look into, and that has a filter.
    let nested = main.join("nested");
    std::fs::create_dir(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    std::fs::write(nested.join("f"), "x\n").unwrap();
    git(&nested, &["add", "-A"]);
    git(&nested, &["commit", "-qm", "x"]);
    git(&main, &["add", "nested"]);
    git(
        &nested,
        &[
            "config",
            "filter.f.clean",
            place.path().join("evil").to_str().unwrap(),
        ],
    );
    std::fs::write(nested.join(".gitattributes"), "* filter=f\n").unwrap();
    std::fs::write(nested.join("f"), "y\n").unwrap();
    std::fs::write(
        main.join(".gitmodules"),
        "[submodule \"n\"]\npath = nested\nurl = x\nignore = none\n",
    )
    .unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    for line in [
        "status",
        "diff",
        "diff HEAD",
        "diff-files -p",
        "diff-index HEAD",
        "ls-files -m",
        "describe --always",
    ] {
        let said = run(&session, line).await;
        assert!(said.starts_with("Exited(0)"), "{line}: {said}");
    }
    assert!(!place.path().join("marker").exists());
    session.close().await;
}

#[tokio::test]
async fn another_repository_needs_the_operators_word() {
    let place = place("repository = \"private\"");
    let main = place.path().join("main");
    let private = place.path().join("private");
    std::fs::create_dir(&private).unwrap();
    git(&private, &["init", "-q"]);
    git(&private, &["commit", "-q", "--allow-empty", "-m", "SECRET"]);
    std::fs::remove_dir_all(main.join(".git")).unwrap();
    std::fs::write(
        main.join(".git"),
        format!("gitdir: {}\n", private.join(".git").display()),
    )
    .unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    assert!(run(&session, "log --format=%s").await.contains("SECRET"));
    session.close().await;

    let text = std::fs::read_to_string(place.config()).unwrap();
    std::fs::write(place.config(), text.replace("repository = \"private\"", "")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    for line in ["log --format=%s", "rev-parse HEAD", "status"] {
        let said = run(&session, line).await;
        assert!(
            said.contains("`repository = ") && said.contains("[workspaces.main]") && !said.contains("SECRET"),
            "{said}"
        );
    }
    session.close().await;
}

#[tokio::test]
async fn no_link_leads_git_out_of_the_workspace() {
    let place = place("");
    let main = place.path().join("main");
    std::fs::write(place.path().join("secret"), "SECRET\n").unwrap();
    symlink("../secret", main.join("link")).unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    for line in [
        "diff link a",
        "hash-object link",
        "blame --contents=link a",
        "diff --no-index link a",
    ] {
        let said = run(&session, line).await;
        assert!(
            !said.contains("SECRET") && !said.starts_with("Exited(0)"),
            "{line}: {said}"
        );
    }
    symlink("../../secret", main.join(".git/MERGE_MSG")).unwrap();
    let said = run(&session, "status").await;
    assert!(said.contains("`.git/MERGE_MSG` is a link"), "{said}");
    session.close().await;
}

#[tokio::test]
async fn no_commit_of_a_repository_moves_a_prefix_elsewhere() {
    let place = place("git = \"write\"");
    let config = std::fs::read_to_string(place.config()).unwrap();
    std::fs::write(
        place.config(),
        config.replace("write = [\".\"]", "write = [\"docs/\"]"),
    )
    .unwrap();
    let main = place.path().join("main");
    std::fs::create_dir_all(main.join("docs")).unwrap();
    std::fs::create_dir_all(main.join("src")).unwrap();
    std::fs::write(main.join("docs/x"), "docs\n").unwrap();
    std::fs::write(main.join("src/x"), "src\n").unwrap();
    git(&main, &["add", "-A"]);
    git(&main, &["commit", "-qm", "both"]);
    git(&main, &["switch", "-qc", "link"]);
    std::fs::remove_dir_all(main.join("docs")).unwrap();
    symlink("src", main.join("docs")).unwrap();
    git(&main, &["add", "-A"]);
    git(&main, &["commit", "-qm", "link"]);
    git(&main, &["switch", "-q", "main"]);
    let session = place.serve(&["--tier", "full"]).await;
    for line in [
        "restore --source=link -- docs",
        "restore --source=link -SW docs/",
        "switch link",
        "checkout link -- docs",
        "stash pop",
        "merge link",
        "apply link.patch",
        "reset --hard link",
    ] {
        let said = run(&session, line).await;
        assert!(!said.starts_with("Exited(0)"), "{line}: {said}");
        assert!(
            std::fs::symlink_metadata(main.join("docs")).unwrap().is_dir(),
            "{line}"
        );
    }
    let said = run(&session, "restore --source=main -- docs").await;
    assert!(said.starts_with("Exited(0)"), "{said}");
    assert_eq!(std::fs::read_to_string(main.join("src/x")).unwrap(), "src\n");
    session.close().await;
}

#[tokio::test]
async fn a_git_that_is_cut_short_leaves_no_lock() {
    let place = place("git = \"write\"\n");
    let main = place.path().join("main");
    let lock = main.join(".git/index.lock");
    // Takes Git longer than the test, and no space.
    std::fs::File::create(main.join("large"))
        .unwrap()
        .set_len(8 << 30)
        .unwrap();
    let session = place.serve(&["--tier", "full"]).await;
    let add = |file: &str| json!({"program": "git", "arguments": ["add", "--", file]});
    let handle = session.begin("workspace_access_run", add("large")).await;
    until(async || lock.exists()).await;
    handle.cancel(None).await.unwrap();
    until(async || place.ledger() == ["workspace_access_run run CANCELLED"]).await;
    assert!(!lock.exists(), "the next one could not begin");
    std::fs::write(main.join("small"), "s\n").unwrap();
    let added = result(&session, "workspace_access_run", add("small")).await;
    assert!(added.starts_with("Exited(0)"), "{added}");
}
