//! The commit that a work tree is at, read from Git's own files within microseconds and without running git.

use std::io::Read;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt};

/// Longest file that names a commit, in bytes.
const MAX_REF: u64 = 4 << 10;
/// Longest list of packed references, in bytes.
const MAX_PACKED: u64 = 32 << 20;
/// Longest file of ignore rules that is read, in bytes.
const MAX_RULES: u64 = 64 << 10;
/// File with ignore rules of a repository that are in no commit.
const EXCLUDES: &str = "info/exclude";
const NONBLOCK: i32 = i32::from_ne_bytes(rustix::fs::OFlags::NONBLOCK.bits().to_ne_bytes());
/// Most symbolic references that are followed.
const MAX_STEPS: usize = 5;

/// Git directory of a work tree that does not have its own `.git` directory: a linked work tree, or a directory
/// inside a repository.
#[derive(Debug)]
pub struct Repository {
    /// Git directory of this work tree.
    git: Dir,
    /// Git directory shared by all work trees of the repository.
    common: Dir,
}

impl Repository {
    /// Finds the repository that a registered directory belongs to. A file `.git` may point only into the directory
    /// that the operator named.
    pub fn discover(workspace: &Path, named: Option<&Path>) -> Option<Repository> {
        let workspace = workspace.canonicalize().ok()?;
        let found = workspace
            .ancestors()
            .map(|place| place.join(".git"))
            .find(|git| git.exists())?;
        let git = match found.symlink_metadata().ok()?.is_dir() {
            true => found.canonicalize().ok()?,
            false if found.is_dir() => inside(&found, named)?,
            false => inside(&linked(&found, "gitdir: ")?, named)?,
        };
        let common = match linked(&git.join("commondir"), "") {
            Some(common) => inside(&common, named)?,
            None => git.clone(),
        };
        let open = |path: &Path| Dir::open_ambient_dir(path, ambient_authority()).ok();
        Some(Repository {
            git: open(&git)?,
            common: open(&common)?,
        })
    }

    /// Commit that the work tree is at.
    pub fn head(&self) -> Option<String> {
        head(&self.git, &self.common)
    }

    /// Metadata of this work tree's index.
    pub fn index(&self) -> Option<Metadata> {
        self.git.metadata("index").ok()
    }

    /// True if the repository has uncommitted ignore rules.
    pub fn has_excludes(&self) -> bool {
        has_excludes(&self.common)
    }
}

/// True if the `.git` directory of a work tree has uncommitted ignore rules.
pub fn has_excludes_below(tree: &Dir) -> bool {
    tree.open_dir(".git").is_ok_and(|git| has_excludes(&git))
}

fn has_excludes(common: &Dir) -> bool {
    let is_rule = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    match text(common, EXCLUDES, MAX_RULES) {
        Some(text) => text.lines().any(is_rule),
        None => common.symlink_metadata(EXCLUDES).is_ok(),
    }
}

/// Metadata of the index of a work tree with a `.git` directory of its own.
pub fn index_below(tree: &Dir) -> Option<Metadata> {
    tree.open_dir(".git").ok()?.metadata("index").ok()
}

/// Commit of a work tree with a `.git` directory of its own.
pub fn head_below(tree: &Dir) -> Option<String> {
    let git = tree.open_dir(".git").ok()?;
    head(&git, &git)
}

/// Real path of a directory, if it is inside the one that the operator named.
fn inside(directory: &Path, named: Option<&Path>) -> Option<PathBuf> {
    let real = directory.canonicalize().ok()?;
    real.starts_with(named?.canonicalize().ok()?).then_some(real)
}

/// Path that a file contains, relative to the file.
fn linked(file: &Path, prefix: &str) -> Option<PathBuf> {
    // A pipe without a writer would otherwise wait for one.
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    #[allow(
        clippy::disallowed_methods,
        reason = "below a directory that the operator registered"
    )]
    let opened = std::fs::File::open(file).ok()?;
    let text = bounded(opened, MAX_REF)?;
    let path = text.strip_prefix(prefix)?.trim_end();
    Some(file.parent()?.join(path))
}

fn head(git: &Dir, common: &Dir) -> Option<String> {
    let mut value = text(git, "HEAD", MAX_REF)?;
    for _ in 0..MAX_STEPS {
        let Some(name) = value.strip_prefix("ref: ").map(|name| name.trim_end().to_owned()) else {
            return commit(value.trim_end());
        };
        value = match text(git, &name, MAX_REF).or_else(|| text(common, &name, MAX_REF)) {
            Some(value) => value,
            None => packed(common, &name)?,
        };
    }
    None
}

/// Commit of a reference in the list of packed references, which have no file of their own.
fn packed(common: &Dir, name: &str) -> Option<String> {
    text(common, "packed-refs", MAX_PACKED)?.lines().find_map(|line| {
        let (commit, packed) = line.split_once(' ')?;
        (packed == name).then(|| commit.to_owned())
    })
}

fn commit(text: &str) -> Option<String> {
    let is_commit = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| text.to_owned())
}

fn text(dir: &Dir, name: &str, limit: u64) -> Option<String> {
    let mut options = OpenOptions::new();
    // A pipe without a writer would otherwise wait for one.
    options.read(true).custom_flags(NONBLOCK);
    let file = dir.open_with(name, &options).ok()?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    bounded(file, limit).filter(|_| is_file)
}

/// Text of a file. `None` if it is longer than expected.
fn bounded(file: impl Read, limit: u64) -> Option<String> {
    let mut text = String::new();
    let read = file.take(limit + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= limit).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(directory: &Path, arguments: &[&str]) -> String {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "init.defaultBranch=main",
            ])
            .args(arguments)
            .current_dir(directory)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn read(directory: &Path) -> Option<String> {
        let dir = Dir::open_ambient_dir(directory, ambient_authority()).unwrap();
        let named = directory.parent();
        head_below(&dir).or_else(|| Repository::discover(directory, named)?.head())
    }

    #[test]
    fn rules_are_told_from_the_comments_that_every_repository_has() {
        let place = tempfile::tempdir().unwrap();
        let repository = place.path();
        git(repository, &["init", "-q"]);
        let dir = Dir::open_ambient_dir(repository, ambient_authority()).unwrap();
        let found = || {
            let named = Repository::discover(repository, Some(repository)).unwrap();
            assert_eq!(has_excludes_below(&dir), named.has_excludes());
            named.has_excludes()
        };
        dir.create_dir_all(".git/info").unwrap();
        dir.write(".git/info/exclude", "# git ls-files --others\n\n")
            .unwrap();
        assert!(!found());
        dir.write(".git/info/exclude", "# comment\n*.py\n").unwrap();
        assert!(found());
        dir.write(".git/info/exclude", [b'#', 0xff]).unwrap();
        assert!(found(), "nobody knows");
        dir.remove_file(".git/info/exclude").unwrap();
        assert!(!found());
    }

    #[test]
    fn the_commit_is_the_one_that_git_names() {
        let place = tempfile::tempdir().unwrap();
        let repository = place.path().join("repository");
        std::fs::create_dir_all(repository.join("sub")).unwrap();
        assert_eq!(read(&repository), None);
        git(&repository, &["init", "-q"]);
        assert_eq!(read(&repository), None, "nothing is committed yet");
        git(&repository, &["commit", "-q", "--allow-empty", "-m", "one"]);
        let first = git(&repository, &["rev-parse", "HEAD"]);
        assert_eq!(read(&repository).as_ref(), Some(&first));
        assert_eq!(
            read(&repository.join("sub")).as_ref(),
            Some(&first),
            "a directory inside"
        );

        git(&repository, &["worktree", "add", "-q", "-b", "side", "../linked"]);
        git(
            &place.path().join("linked"),
            &["commit", "-q", "--allow-empty", "-m", "two"],
        );
        let second = git(&place.path().join("linked"), &["rev-parse", "HEAD"]);
        assert_eq!(
            read(&place.path().join("linked")).as_ref(),
            Some(&second),
            "a linked work tree"
        );
        assert_eq!(read(&repository).as_ref(), Some(&first));
        let unnamed = Repository::discover(&place.path().join("linked"), None);
        assert!(unnamed.is_none(), "nobody said where its repository may be");

        git(&repository, &["pack-refs", "--all"]);
        assert_eq!(read(&repository).as_ref(), Some(&first), "packed");
        git(&repository, &["checkout", "-q", &second]);
        assert_eq!(read(&repository), Some(second), "detached");
    }
}
