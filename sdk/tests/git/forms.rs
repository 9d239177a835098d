//! Forms of repositories that the host and git could read differently: they are refused.

use std::os::unix::fs::symlink;
use std::path::Path;

use tollgate_sdk::native::Session;

use crate::place::{BoxedChange, Change, PACK, Place, run};

/// Output of git in a workspace after a change.
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
        ("larger than 65536 bytes", |file| {
            // Git would read all of it, and the last line leads away.
            let line = format!("{}\n", "#".repeat(99));
            let outside = file.ancestors().nth(5).unwrap().join("outside/objects");
            std::fs::write(file, line.repeat(700) + &outside.display().to_string()).unwrap();
        }),
        ("is a pipe or device", |file| pipe(file)),
        ("cannot be read", |file| std::fs::create_dir(file).unwrap()),
        ("is a link", |file| symlink("../pack", file).unwrap()),
        ("is a link", |file| symlink("nowhere", file).unwrap()),
        ("borrows objects from", |file| {
            std::fs::write(file, "../../../../outside/objects").unwrap()
        }),
        ("borrows objects from", |file| {
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
