//! The real git in repositories that somebody prepared: no program of theirs runs, nothing outside of the
//! workspace is shown, and nothing is written that the operator did not offer.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::native::{Session, Workspace};
use tollgate_sdk::{Command, Cx, Effect, Ending, GitAccess, Pack, Tool, ToolError, Want, tools};

/// Run git.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Git {
    arguments: Vec<String>,
    #[serde(default)]
    stdin: String,
}

#[derive(Serialize, JsonSchema)]
struct Said {
    text: String,
}

impl Tool for Git {
    const NAME: &'static str = "hand_git";
    const TITLE: &'static str = "Git";
    const EFFECT: Effect = Effect::Run;
    type Output = Said;

    fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
        let command = Command::new("git").args(self.arguments).stdin(self.stdin);
        let text = match cx.workspace("main")?.run(&command) {
            Ok(outcome) => format!(
                "{} {}{}",
                match outcome.ending {
                    Ending::Exited(code) => code.to_string(),
                    other => format!("{other:?}"),
                },
                outcome.stdout.text(),
                outcome.stderr.text()
            ),
            Err(err) => format!("no: {err}"),
        };
        Ok(Said { text })
    }
}

/// Write a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    content: String,
}

impl Tool for Write {
    const NAME: &'static str = "hand_write";
    const TITLE: &'static str = "Write";
    const EFFECT: Effect = Effect::Run;
    type Output = Said;

    fn run(self, cx: &Cx<'_>) -> Result<Said, ToolError> {
        let written = cx.workspace("main")?.write(&self.path, self.content.as_bytes());
        Ok(Said {
            text: written.map_or_else(|err| format!("no: {err}"), |()| "ok".to_owned()),
        })
    }
}

const PACK: Pack = Pack {
    name: "hand",
    version: "0.1.0",
    summary: "Runs git.",
    wants: &[
        Want::WorkspaceRead("*"),
        Want::WorkspaceWrite("."),
        Want::Git(GitAccess::Write),
    ],
    tools: tools![Git, Write],
    ..Pack::EMPTY
};

/// A repository with two commits, in a place with a secret and a program that leaves a mark.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir_all(place.at("main/docs")).unwrap();
        std::fs::create_dir(place.at("outside")).unwrap();
        std::fs::write(place.at("outside/secret"), "SECRET\n").unwrap();
        let script = format!("#!/bin/sh\ntouch {}\ncat\n", place.at("marker").display());
        std::fs::write(place.at("evil"), script).unwrap();
        std::fs::set_permissions(place.at("evil"), std::fs::Permissions::from_mode(0o755)).unwrap();
        place.git(&["init", "-q", "-b", "main"]);
        place.commit("a.txt", "one\n");
        place.git(&["branch", "side"]);
        place.commit("docs/b.md", "two\n");
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Runs git as the operator, before anything is prepared.
    fn git(&self, arguments: &[&str]) {
        git_in(&self.at("main"), arguments);
    }

    fn commit(&self, path: &str, content: &str) {
        std::fs::write(self.at("main").join(path), content).unwrap();
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "x"]);
    }

    fn evil(&self) -> String {
        self.at("evil").display().to_string()
    }

    fn configure(&self, text: &str) {
        let path = self.at("main/.git/config");
        let before = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, before + text).unwrap();
    }

    fn workspace(&self) -> Workspace {
        Workspace::new("main", &self.at("main")).git(GitAccess::Write)
    }

    fn is_marked(&self) -> bool {
        self.at("marker").exists()
    }
}

fn git_in(directory: &Path, arguments: &[&str]) {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{arguments:?} {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn run(session: &Session, arguments: &[&str], stdin: &str) -> String {
    said(
        session,
        "hand_git",
        &serde_json::json!({"arguments": arguments, "stdin": stdin}),
    )
}

fn said(session: &Session, tool: &str, arguments: &serde_json::Value) -> String {
    let reply = session.call(tool, &arguments.to_string()).unwrap();
    let body: serde_json::Value = serde_json::from_str(&reply.structured).unwrap();
    body["text"].as_str().unwrap().to_owned()
}

/// One line for each way to call a subcommand. What writes comes last.
const COMMANDS: &[&str] = &[
    "status",
    "status -sb --ignored",
    "status -v",
    "status --help",
    "diff",
    "diff HEAD",
    "diff --cached --stat",
    "diff --word-diff HEAD~1",
    "diff --ext-diff",
    "diff --textconv",
    "diff-files -p",
    "diff-index -p HEAD",
    "diff-tree -p HEAD~1 HEAD",
    "log -p",
    "log --stat --graph",
    "log --cc -m -p",
    "log -p --diff-merges=separate",
    "log --show-signature",
    "log --format=%G?",
    "log --remerge-diff",
    "log --format=%H%n%B",
    "log --format=%(describe)",
    "show HEAD",
    "show HEAD:a.txt",
    "blame a.txt",
    "blame HEAD -- a.txt",
    "cat-file -p HEAD",
    "cat-file --batch",
    "cat-file --filters HEAD:a.txt",
    "check-ignore -v a.txt",
    "describe --always",
    "describe --dirty --always",
    "for-each-ref",
    "for-each-ref --format=%(signature)",
    "hash-object a.txt",
    "hash-object --no-filters a.txt",
    "ls-files -m -o --eol",
    "ls-files -s",
    "ls-tree -r HEAD",
    "merge-base main side",
    "name-rev HEAD",
    "rev-list --objects HEAD",
    "rev-parse --show-toplevel",
    "shortlog -ns HEAD",
    "show-ref",
    "version --build-options",
    "config --list --name-only",
    "branch -vv",
    "branch new",
    "tag -l",
    "tag -v v0",
    "tag -am text v1",
    "tag -s -m text v2",
    "add -A",
    "add -p",
    "commit -qam x --allow-empty",
    "commit -S -m x --allow-empty",
    "commit --trailer a:b -m x --allow-empty",
    "commit --amend --no-edit",
    "commit --allow-empty",
    "commit -v -m x --allow-empty",
    "switch -c other",
    "switch side",
    "switch main",
    "restore --staged .",
    "restore .",
    "reset",
    "reset --hard",
    "rm --cached a.txt",
    "rm -f docs/b.md",
    "stash",
];

fn run_all(place: &Place, session: &Session) -> Vec<String> {
    COMMANDS
        .iter()
        .map(|line| {
            // Content that git has to look at again.
            std::fs::write(place.at("main/a.txt"), format!("{line}\n")).unwrap();
            let arguments: Vec<&str> = line.split(' ').collect();
            let said = run(session, &arguments, "HEAD\n");
            assert!(!place.is_marked(), "{line}: {said}");
            format!("{line}: {said}")
        })
        .collect()
}

/// A change of a file of a repository.
type Change = fn(&Path);
/// The same, with something that it holds.
type BoxedChange = Box<dyn Fn(&Path)>;

#[test]
fn no_setting_of_a_repository_starts_a_program() {
    let refused = [
        "filter \"f\"|clean",
        "filter \"f\"|smudge",
        "filter \"f\"|process",
        "merge \"f\"|driver",
        "trailer \"a\"|cmd",
        "trailer \"a\"|command",
        "man \"f\"|cmd",
        "browser \"f\"|cmd",
        "gpg|program",
        "gpg \"openpgp\"|program",
        "gpg \"ssh\"|program",
        "gpg \"ssh\"|defaultKeyCommand",
        "core|gitProxy",
        "core|alternateRefsCommand",
        "hook \"f\"|command",
        "remote \"f\"|uploadpack",
        "remote \"f\"|vcs",
        "core|attributesFile",
        "core|excludesFile",
        "mailmap|file",
        "core|worktree",
        "diff|orderFile",
        "include|path",
        "includeIf \"gitdir:/\"|path",
    ];
    for key in refused {
        let place = Place::new();
        std::fs::write(place.at("main/.gitattributes"), "* filter=f diff=f merge=f\n").unwrap();
        let (section, name) = key.split_once('|').unwrap();
        place.configure(&format!("[{section}]\n{name} = {}\n", place.evil()));
        let session = Session::new(&PACK).workspace(place.workspace().write("."));
        for said in run_all(&place, &session) {
            let harmless = ["rev-parse", "config", "version"]
                .iter()
                .any(|name| said.starts_with(name));
            assert!(
                said.contains(": no: ") || (harmless && !key.starts_with("include")),
                "{key}: {said}"
            );
        }
    }
}

#[test]
fn what_is_switched_off_starts_no_program() {
    let place = Place::new();
    let evil = place.evil();
    place.commit(".gitattributes", "* diff=f\n");
    for name in [
        "core|fsmonitor",
        "core|pager",
        "core|editor",
        "core|sshCommand",
        "core|askPass",
        "pager|log",
        "pager|status",
        "sequence|editor",
        "diff|external",
        "diff \"f\"|textconv",
        "diff \"f\"|command",
        "credential|helper",
        "interactive|diffFilter",
        "alias|status",
        "difftool \"f\"|cmd",
        "uploadpack|packObjectsHook",
    ] {
        let (section, name) = name.split_once('|').unwrap();
        place.configure(&format!("[{section}]\n{name} = {evil}\n"));
    }
    place.configure("[core]\nhooksPath = .githooks\n[commit]\ngpgSign\nverbose\n[tag]\ngpgSign\nforceSignAnnotated\n[log]\nshowSignature\n");
    place.configure("[status]\nsubmoduleSummary\n[submodule]\nrecurse\n[gc]\nauto = 1\n[checkout]\nworkers = 4\nthresholdForParallelism = 0\n");
    for hooks in ["main/.githooks", "main/.git/hooks"] {
        std::fs::create_dir_all(place.at(hooks)).unwrap();
        for hook in [
            "pre-commit",
            "prepare-commit-msg",
            "commit-msg",
            "post-commit",
            "post-checkout",
            "post-index-change",
            "reference-transaction",
            "fsmonitor-watchman",
            "post-rewrite",
            "pre-auto-gc",
        ] {
            symlink(place.at("evil"), place.at(hooks).join(hook)).unwrap();
        }
    }
    place.configure("[user]\nname = Ada\nemail = ada@example.org\n");
    let session = Session::new(&PACK).workspace(place.workspace().write("."));
    let said = run_all(&place, &session);
    for worked in [
        "status: 0",
        "log -p: 0",
        "commit -qam x --allow-empty: 0",
        "tag -am text v1: 0",
        "switch -c other: 0",
        "reset --hard: 0",
    ] {
        assert!(
            said.iter().any(|said| said.starts_with(worked)),
            "{worked} {said:#?}"
        );
    }
}

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

/// What git says in a workspace that somebody changed.
fn after(change: impl FnOnce(&Path), line: &str) -> String {
    let place = Place::new();
    std::fs::create_dir_all(place.at("outside/objects/info")).unwrap();
    change(&place.at("main/.git"));
    let session = Session::new(&PACK).workspace(place.workspace().write("docs/"));
    let started = std::time::Instant::now();
    let said = run(&session, &line.split(' ').collect::<Vec<_>>(), "");
    assert!(
        started.elapsed() < std::time::Duration::from_secs(20),
        "{line}: {said}"
    );
    said
}

fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn alternates_that_are_no_plain_short_file_are_refused() {
    let changes: [(&str, Change); 7] = [
        ("more than 65536 bytes", |file| {
            // Git would read all of it, and the last line leads away.
            let line = format!("{}\n", "#".repeat(99));
            let outside = file.ancestors().nth(5).unwrap().join("outside/objects");
            std::fs::write(file, line.repeat(700) + &outside.display().to_string()).unwrap();
        }),
        ("cannot be read", |file| pipe(file)),
        ("cannot be read", |file| std::fs::create_dir(file).unwrap()),
        ("is a link", |file| symlink("../pack", file).unwrap()),
        ("is a link", |file| symlink("nowhere", file).unwrap()),
        ("come from", |file| {
            std::fs::write(file, "../../../../outside/objects").unwrap()
        }),
        ("come from", |file| {
            std::fs::write(file, "#\n\n\"../x\"\n").unwrap()
        }),
    ];
    for (why, change) in changes {
        for line in ["log", "status", "show HEAD:a.txt", "add a.txt"] {
            let said = after(|git| change(&git.join("objects/info/alternates")), line);
            assert!(
                said.starts_with("no: ") && said.contains(why),
                "{why}: {line}: {said}"
            );
        }
    }
}

#[test]
fn a_head_that_git_does_not_take_makes_no_repository() {
    let plain = [
        "",
        "\n",
        "garbage",
        "ref:",
        "ref: x",
        "ref: /etc/passwd",
        "ref: ../refs/heads/main",
        "refs/heads/main",
        "0123456789abcdef",
        "zz23456789012345678901234567890123456789",
        "\0",
        "\u{feff}ref: refs/heads/main",
    ];
    let long = format!("ref: refs/heads/{}", "x".repeat(70_000));
    let mut changes: Vec<BoxedChange> = vec![
        Box::new(pipe),
        Box::new(|head| std::fs::create_dir(head).unwrap()),
        Box::new(|_| ()),
        Box::new(|head| symlink("refs/heads/main", head).unwrap()),
        Box::new(|head| symlink("/etc/passwd", head).unwrap()),
    ];
    for text in plain.into_iter().map(str::to_owned).chain([long]) {
        changes.push(Box::new(move |head| std::fs::write(head, &text).unwrap()));
    }
    for (place, change) in changes.iter().enumerate() {
        for line in ["diff a.txt docs/b.md", "log", "hash-object a.txt"] {
            let said = after(
                |git| {
                    std::fs::remove_file(git.join("HEAD")).unwrap();
                    change(&git.join("HEAD"));
                },
                line,
            );
            let refused = said.starts_with("no: ") || said.contains("not a git repository");
            assert!(refused, "{place} {line}: {said}");
        }
    }
}

#[test]
fn formats_of_repositories_that_nobody_knows_are_refused() {
    for config in [
        "[core]\nrepositoryformatversion = 2\n",
        "[core]\nrepositoryformatversion = 99999999999999999999\n",
        "[core]\nrepositoryformatversion = -1\n",
        "[core]\nrepositoryformatversion = 1k\n",
        "[core]\nrepositoryformatversion = 0x1\n",
        "[core]\nrepositoryformatversion = yes\n",
        "[core]\nrepositoryformatversion\n",
        "[core]\nrepositoryformatversion =\n",
        "[core]\nrepositoryformatversion = 1\nrepositoryformatversion = 2\n",
        "[core]\nrepositoryformatversion = 1\n[extensions]\nunheardof = true\n",
        "[extensions]\nunheardof = true\n",
        "[core]\nrepositoryformatversion = 1\n[extensions \"sub\"]\nnoop = 1\n",
        "[core]\nrepositoryformatversion = 0\n[extensions]\nobjectformat = sha256\n",
        "[core]\nrepositoryformatversion = 1\n[extensions]\nrefstorage = elsewhere\n",
    ] {
        for line in ["log", "diff a.txt docs/b.md", "status", "add a.txt"] {
            let append = |git: &Path| {
                let before = std::fs::read_to_string(git.join("config")).unwrap();
                std::fs::write(git.join("config"), before + config).unwrap();
            };
            let said = after(append, line);
            assert!(
                said.starts_with("no: ") && said.contains("`.git`") | said.contains("settings"),
                "{config}{line}: {said}"
            );
        }
    }
    for config in [
        "[core]\nrepositoryformatversion = 1\n[extensions]\nnoop = true\n",
        "[core]\nrepositoryformatversion = 1\n",
    ] {
        let append = |git: &Path| {
            let before = std::fs::read_to_string(git.join("config")).unwrap();
            std::fs::write(git.join("config"), before + config).unwrap();
        };
        let said = after(append, "log --format=%s");
        assert_eq!(said, "0 x\nx\n", "{config}");
    }
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
