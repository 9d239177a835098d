//! Ignore files above a job's repository, for a `repo_root` below the top of Git's.
//!
//! Those inside the workspace are read as files. Those above the workspace are not the pack's to open: Git tells their
//! committed content, if the workspace allows Git.

use conductor_repo::tree::Above;
use tollgate_sdk::Command;

use crate::access::Access;

/// Name of ignore files.
const IGNORE_FILE: &str = ".gitignore";
/// Path of the rules of a whole repository, below its top.
const EXCLUDE_FILE: &str = ".git/info/exclude";
/// Maximum bytes of an ignore file.
const MAX_IGNORE_FILE_BYTES: u32 = 256 << 10;

/// Ignore files of the directories above a repository, up to the top of Git's.
pub(super) fn ignore_files(access: &Access<'_>) -> Above {
    let directories: Vec<&str> = access
        .root
        .directory
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    // The nearest directory with a repository is the top.
    let has_git = |depth: &usize| exists(access, &path(&directories, *depth, ".git"));
    let top = (0..=directories.len()).rev().find(has_git);
    let (prefix, mut files) = match top {
        Some(_) => (String::new(), Vec::new()),
        None => outside(access),
    };
    let top = top.unwrap_or(0);
    let below = directories.get(top..).unwrap_or_default();
    if prefix.is_empty() && below.is_empty() {
        return Above::default();
    }
    if prefix.is_empty()
        && let Some(content) = read(access, &path(&directories, top, EXCLUDE_FILE))
    {
        files.push(("exclude".to_owned(), content));
    }
    for depth in top..directories.len() {
        if let Some(content) = read(access, &path(&directories, depth, IGNORE_FILE)) {
            let source = path(below, depth.saturating_sub(top), IGNORE_FILE);
            files.push((format!("{prefix}{source}"), content));
        }
    }
    Above {
        prefix: below
            .iter()
            .fold(prefix, |prefix, part| format!("{prefix}{part}/")),
        files,
    }
}

/// Place of the workspace below the top of its repository, with a slash at its end, and the committed ignore files above
/// the workspace. Nothing, if Git may not run or knows no repository.
fn outside(access: &Access<'_>) -> (String, Vec<(String, Vec<u8>)>) {
    let prefix = git(access, &["rev-parse", "--show-prefix"]).unwrap_or_default();
    let prefix = String::from_utf8(prefix.trim_ascii_end().to_vec()).unwrap_or_default();
    let parts: Vec<&str> = prefix.split('/').filter(|part| !part.is_empty()).collect();
    let mut files = Vec::new();
    for depth in 0..parts.len() {
        let source = path(&parts, depth, IGNORE_FILE);
        if let Some(content) = git(access, &["cat-file", "-p", &format!("HEAD:{source}")]) {
            files.push((source, content));
        }
    }
    (prefix, files)
}

/// Output of a Git command that may run and succeeds.
fn git(access: &Access<'_>, arguments: &[&str]) -> Option<Vec<u8>> {
    access.workspace.info().git?;
    let command = Command::new("git")
        .args(["--no-optional-locks", "--no-replace-objects"])
        .args(arguments.iter().copied())
        .output_limit(MAX_IGNORE_FILE_BYTES);
    let outcome = access.workspace.run(&command).ok()?;
    (outcome.succeeded() && !outcome.stdout.is_cut()).then_some(outcome.stdout.bytes)
}

/// Path of a name in the directory at a depth.
fn path(directories: &[&str], depth: usize, name: &str) -> String {
    let above = directories.get(..depth).unwrap_or_default();
    above.iter().copied().chain([name]).collect::<Vec<_>>().join("/")
}

fn exists(access: &Access<'_>, path: &str) -> bool {
    access.workspace.stat(path).is_ok()
}

fn read(access: &Access<'_>, path: &str) -> Option<Vec<u8>> {
    access.workspace.read_at(path, 0, MAX_IGNORE_FILE_BYTES).ok()
}
