//! Files below a directory, against those who prepare it badly.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use expect_test::expect;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;
use tollgate_sdk::WorkspaceError;
use tollgate_sdk::tree::{FileWrite, Tree};

struct Place {
    dir: TempDir,
    tree: Tree,
}

/// A tree with a secret beside it.
fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("tree")).unwrap();
    std::fs::create_dir(dir.path().join("outside")).unwrap();
    std::fs::write(dir.path().join("outside/secret"), "secret").unwrap();
    let tree = Dir::open_ambient_dir(dir.path().join("tree"), ambient_authority()).unwrap();
    Place {
        tree: Tree::new(tree, 0o022),
        dir,
    }
}

impl Place {
    fn path(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join("tree").join(path)
    }

    fn write(&self, path: &str, content: &[u8], append: bool) -> Result<(), WorkspaceError> {
        self.tree.apply(&FileWrite::new(path, content, append)?)
    }

    fn outside(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path().join("outside")).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    }
}

fn told(result: Result<impl std::fmt::Debug, WorkspaceError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(err) => err.to_string(),
    }
}

#[test]
fn no_path_leads_out() {
    let place = place();
    std::fs::write(place.path("file"), "content").unwrap();
    std::fs::create_dir(place.path("real")).unwrap();
    symlink("../outside", place.path("up")).unwrap();
    symlink(place.dir.path().join("outside"), place.path("absolute")).unwrap();
    symlink("file", place.path("inside")).unwrap();
    symlink("real", place.path("other")).unwrap();
    symlink("loop", place.path("loop")).unwrap();
    let paths = [
        "../outside/secret",
        "real/../../outside/secret",
        "/etc/passwd",
        "a\0b",
        "up/secret",
        "absolute/secret",
        "loop",
        "inside",
        "other/x",
        "file/x",
        "real",
        "",
        ".",
        "./file",
        "real//x",
        ".git/hooks/pre-commit",
        "real/.GIT/config",
        "line\nend",
    ];
    let mut log = String::new();
    for path in paths {
        let _ = writeln!(log, "{path:?}");
        let _ = writeln!(
            log,
            "  stat   {}",
            told(place.tree.stat(path).map(|entry| entry.kind))
        );
        let read = place.tree.read(path, 0, 100);
        let _ = writeln!(log, "  read   {}", told(read.map(|bytes| bytes.len())));
        let _ = writeln!(log, "  write  {}", told(place.write(path, b"new", false)));
        let _ = writeln!(log, "  append {}", told(place.write(path, b"+", true)));
    }
    expect![[r#"
        "../outside/secret"
          stat   access refused: `../outside/secret` contains `..`
          read   access refused: `../outside/secret` contains `..`
          write  access refused: `../outside/secret` contains `..`
          append access refused: `../outside/secret` contains `..`
        "real/../../outside/secret"
          stat   access refused: `real/../../outside/secret` contains `..`
          read   access refused: `real/../../outside/secret` contains `..`
          write  access refused: `real/../../outside/secret` contains `..`
          append access refused: `real/../../outside/secret` contains `..`
        "/etc/passwd"
          stat   access refused: `/etc/passwd` is absolute; paths start at the workspace's root
          read   access refused: `/etc/passwd` is absolute; paths start at the workspace's root
          write  access refused: `/etc/passwd` is absolute; paths start at the workspace's root
          append access refused: `/etc/passwd` is absolute; paths start at the workspace's root
        "a\0b"
          stat   access refused: `a\0b` contains a NUL
          read   access refused: `a\0b` contains a NUL
          write  access refused: `a\0b` contains a NUL
          append access refused: `a\0b` contains a NUL
        "up/secret"
          stat   access refused: `up/secret` leaves the workspace
          read   access refused: `up/secret` leaves the workspace
          write  access refused: `up/secret` goes through a link or a path that is not a directory; writes do not follow links
          append access refused: `up/secret` goes through a link or a path that is not a directory; writes do not follow links
        "absolute/secret"
          stat   access refused: `absolute/secret` leaves the workspace
          read   access refused: `absolute/secret` leaves the workspace
          write  access refused: `absolute/secret` goes through a link or a path that is not a directory; writes do not follow links
          append access refused: `absolute/secret` goes through a link or a path that is not a directory; writes do not follow links
        "loop"
          stat   Symlink
          read   `loop` cannot be read: Too many levels of symbolic links (os error 40)
          write  `loop` exists and is not a regular file
          append `loop` exists and is not a regular file
        "inside"
          stat   Symlink
          read   7
          write  `inside` exists and is not a regular file
          append `inside` exists and is not a regular file
        "other/x"
          stat   `other/x` does not exist
          read   `other/x` does not exist
          write  access refused: `other/x` goes through a link or a path that is not a directory; writes do not follow links
          append access refused: `other/x` goes through a link or a path that is not a directory; writes do not follow links
        "file/x"
          stat   `file/x` is, or goes through, a path that is not a directory
          read   `file/x` is, or goes through, a path that is not a directory
          write  access refused: `file/x` goes through a link or a path that is not a directory; writes do not follow links
          append access refused: `file/x` goes through a link or a path that is not a directory; writes do not follow links
        "real"
          stat   Directory
          read   `real` is not a file
          write  `real` exists and is not a regular file
          append `real` exists and is not a regular file
        ""
          stat   Directory
          read   `.` is not a file
          write  `` is a directory
          append `` is a directory
        "."
          stat   Directory
          read   `.` is not a file
          write  `.` is a directory
          append `.` is a directory
        "./file"
          stat   File
          read   7
          write  ()
          append ()
        "real//x"
          stat   `real/x` does not exist
          read   `real/x` does not exist
          write  ()
          append ()
        ".git/hooks/pre-commit"
          stat   `.git/hooks/pre-commit` does not exist
          read   `.git/hooks/pre-commit` does not exist
          write  access refused: `.git/hooks/pre-commit` belongs to git
          append access refused: `.git/hooks/pre-commit` belongs to git
        "real/.GIT/config"
          stat   `real/.GIT/config` does not exist
          read   `real/.GIT/config` does not exist
          write  access refused: `real/.GIT/config` belongs to git
          append access refused: `real/.GIT/config` belongs to git
        "line\nend"
          stat   `line\nend` does not exist
          read   `line\nend` does not exist
          write  access refused: `line\nend` contains '\n', which is not allowed in a file name
          append access refused: `line\nend` contains '\n', which is not allowed in a file name
    "#]].assert_eq(&log);
    assert_eq!(place.outside(), ["secret"]);
}

#[test]
fn a_link_put_in_place_of_a_directory_at_any_moment_leads_nowhere() {
    let place = place();
    symlink("../outside", place.path("link")).unwrap();
    std::fs::create_dir(place.path("dir")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (dir, link) = (place.path("dir"), place.path("link"));
            while !done.load(Ordering::Relaxed) {
                // Now a directory, now a link out.
                renameat_with(CWD, &dir, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for round in 0..500 {
            let _ = place.write("dir/file", b"x", round % 2 == 0);
            if let Ok(bytes) = place.tree.read("dir/secret", 0, 100) {
                assert!(bytes.is_empty(), "the secret was read");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(place.outside(), ["secret"]);
}

#[test]
fn a_write_replaces_and_keeps_the_rights_and_leaves_nothing_else() {
    let place = place();
    place.write("a/b/new", b"one", false).unwrap();
    assert_eq!(
        std::fs::metadata(place.path("a/b/new")).unwrap().mode() & 0o777,
        0o644
    );
    assert_eq!(
        std::fs::metadata(place.path("a/b")).unwrap().mode() & 0o777,
        0o755
    );
    std::fs::set_permissions(place.path("a/b/new"), std::fs::Permissions::from_mode(0o640)).unwrap();
    place.write("a/b/new", b"two", false).unwrap();
    place.write("a/b/new", b" and three", true).unwrap();
    assert_eq!(std::fs::read(place.path("a/b/new")).unwrap(), b"two and three");
    assert_eq!(
        std::fs::metadata(place.path("a/b/new")).unwrap().mode() & 0o777,
        0o640
    );
    std::fs::create_dir(place.path("a/b/taken")).unwrap();
    assert!(matches!(
        place.write("a/b/taken", b"x", false),
        Err(WorkspaceError::WrongKind(_))
    ));
    let names: Vec<String> = place
        .tree
        .list("a/b", None, 100)
        .unwrap()
        .into_iter()
        .map(|entry| entry.path)
        .collect();
    assert_eq!(names, ["a/b/new", "a/b/taken"]);
}

#[test]
fn what_is_appended_to_is_nobody_elses() {
    let place = place();
    std::fs::hard_link(place.dir.path().join("outside/secret"), place.path("hard")).unwrap();
    assert!(matches!(
        place.write("hard", b"x", true),
        Err(WorkspaceError::WrongKind(_))
    ));
    assert_eq!(std::fs::read(place.path("hard")).unwrap(), b"secret");
}

#[test]
fn listings_come_in_pages_and_tell_odd_names() {
    let place = place();
    for name in ["b", "a", "c\nd", "e"] {
        std::fs::write(place.path(name), name).unwrap();
    }
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"z\xff"));
    std::fs::write(place.dir.path().join("tree").join(odd), "").unwrap();
    let mut log = String::new();
    let mut after = None;
    loop {
        let page = place.tree.list(".", after.as_deref(), 2).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.path.clone());
        for entry in &page {
            let _ = write!(log, "{:?} {:?} {}; ", entry.path, entry.kind, entry.size);
        }
        log.push('\n');
    }
    expect![[r#"
        "a" File 1; "b" File 1; 
        "c\nd" File 3; "e" File 1; 
        "z�" Unnameable 0; 
    "#]]
    .assert_eq(&log);
    assert!(place.tree.read("z\u{fffd}", 0, 1).is_err());
}

#[test]
fn a_directory_is_listed_unless_it_is_as_it_was() {
    let place = place();
    std::fs::create_dir_all(place.path("d/sub")).unwrap();
    for name in ["d/a", "d/b", "d/c\nd", "d/sub/x"] {
        std::fs::write(place.path(name), name).unwrap();
    }
    symlink("a", place.path("d/link")).unwrap();
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"d/z\xff"));
    std::fs::write(place.dir.path().join("tree").join(odd), "").unwrap();
    let listed = |known| place.tree.list_unless("d", known, 100).unwrap();
    let first = listed(None).unwrap();
    assert_eq!(first.entries, place.tree.list("d", None, 100).unwrap());
    assert!(listed(Some(first.fingerprint)).is_none());
    assert_eq!(listed(Some(first.fingerprint ^ 1)).unwrap(), first);
    let beginning = place.tree.list_unless("d", None, 2).unwrap().unwrap();
    assert_eq!(beginning.entries, first.entries[..2]);
    assert_eq!(
        beginning.fingerprint, first.fingerprint,
        "it stands for all entries"
    );
    // What is below a subdirectory, when its own entries stay.
    std::fs::write(place.path("d/sub/x"), "longer than before").unwrap();
    assert!(listed(Some(first.fingerprint)).is_none());

    let at = std::fs::metadata(place.path("d/a")).unwrap().modified().unwrap();
    let with_time = |path: &str, text: &str| {
        std::fs::write(place.path(path), text).unwrap();
        let file = std::fs::File::options()
            .write(true)
            .open(place.path(path))
            .unwrap();
        file.set_modified(at).unwrap();
    };
    let changes: [(&str, &dyn Fn()); 8] = [
        ("came", &|| std::fs::write(place.path("d/new"), "").unwrap()),
        ("grew", &|| std::fs::write(place.path("d/new"), "more").unwrap()),
        ("moved", &|| {
            std::fs::rename(place.path("d/new"), place.path("d/newer")).unwrap();
        }),
        ("went", &|| std::fs::remove_file(place.path("d/newer")).unwrap()),
        ("is no file any more", &|| {
            std::fs::remove_file(place.path("d/b")).unwrap();
            std::fs::create_dir(place.path("d/b")).unwrap();
        }),
        ("points elsewhere", &|| {
            std::fs::remove_file(place.path("d/link")).unwrap();
            symlink("b", place.path("d/link")).unwrap();
        }),
        ("was replaced by one of the same size and time", &|| {
            with_time("other", "D/A");
            std::fs::rename(place.path("other"), place.path("d/a")).unwrap();
        }),
        ("was changed and got its time back", &|| {
            let changed = || std::fs::metadata(place.path("d/a")).unwrap().ctime_nsec();
            let before = changed();
            // The system's clock for files goes in steps of a few milliseconds.
            while changed() == before {
                with_time("d/a", "d/a");
            }
        }),
    ];
    let mut known = first.fingerprint;
    for (what, change) in changes {
        change();
        let next = listed(Some(known));
        let next = next.unwrap_or_else(|| panic!("nobody noticed that something {what}"));
        assert_eq!(next.entries, place.tree.list("d", None, 100).unwrap(), "{what}");
        known = next.fingerprint;
    }
    for (path, refused) in [
        ("../outside", "Denied"),
        ("d/a", "WrongKind"),
        ("missing", "NotFound"),
    ] {
        let err = place.tree.list_unless(path, Some(1), 9).unwrap_err();
        assert!(format!("{err:?}").starts_with(refused), "{err:?}");
    }
}

#[test]
fn a_pipe_does_not_make_a_reader_wait() {
    let place = place();
    let made = std::process::Command::new("mkfifo")
        .arg(place.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    assert!(matches!(
        place.tree.read("pipe", 0, 1),
        Err(WorkspaceError::WrongKind(_))
    ));
    assert!(place.write("pipe", b"x", true).is_err());
}

#[test]
fn reading_is_by_pieces() {
    let place = place();
    std::fs::write(place.path("file"), "0123456789").unwrap();
    let read = |offset, limit| String::from_utf8(place.tree.read("file", offset, limit).unwrap()).unwrap();
    assert_eq!(
        (read(0, 4), read(8, 4), read(10, 4)),
        ("0123".into(), "89".into(), String::new())
    );
    assert!(matches!(
        place.tree.read("file", u64::MAX, 1),
        Err(WorkspaceError::TooLarge(_))
    ));
}
