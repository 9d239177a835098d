//! Programs that a repository names: none starts.

use std::os::unix::fs::symlink;

use tollgate_sdk::native::Session;
use tollgate_sdk::permit::{self, Permitted};
use tollgate_sdk::{Command, GitAccess, WorkspaceInfo};

use crate::commands::COMMANDS;
use crate::place::{PACK, Place, run};

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
fn only_commands_that_convert_files_run_filters() {
    let place = Place::new();
    std::fs::write(place.at("main/.gitattributes"), "* filter=f\n").unwrap();
    place.configure(&format!("[filter \"f\"]\nclean = {}\n", place.evil()));
    let session = Session::new(&PACK).workspace(place.workspace().git_config("filter.f.*"));
    let info = WorkspaceInfo {
        git: Some(GitAccess::Read),
        ..WorkspaceInfo::default()
    };
    let mut ran = Vec::new();
    for line in COMMANDS {
        let words: Vec<&str> = line.split(' ').collect();
        let command = Command::new("git").args(words.iter().copied());
        let Ok(Permitted::Git(git)) = permit::command(&info, &[], &command) else {
            continue;
        };
        // The same size, so that git has to compare the content.
        std::fs::write(place.at("main/a.txt"), "two\n").unwrap();
        let said = run(&session, &words, "HEAD\n");
        if place.is_marked() {
            std::fs::remove_file(place.at("marker")).unwrap();
            assert!(!git.runs_no_filter(), "{line}: {said}");
            ran.push(git.name);
        }
    }
    ran.sort_unstable();
    ran.dedup();
    assert_eq!(
        ran,
        [
            "blame",
            "diff",
            "diff-files",
            "diff-index",
            "hash-object",
            "ls-files",
            "status"
        ]
    );
}
