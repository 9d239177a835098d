//! Repositories that git may run in: the one that belongs to a workspace, as the operator registered it.
//!
//! The content of a work tree is not trusted: its `.git` may point to another repository, its configuration may
//! name programs, and links below `.git` may point anywhere. All of these are checked before git runs, and git
//! gets the location of its repository instead of searching for it.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::{FileType, Mode, OFlags, RawDir};

use crate::{Ending, Outcome, Output};

use super::git::{self, GitCommand, Scope};

/// Maximum size of a configuration, in bytes.
const MAX_CONFIG: u64 = 1 << 20;
/// Maximum size of a file that contains a path, in bytes.
const MAX_LINK: u64 = 64 << 10;
/// Maximum length of a chain of borrowed object stores.
const MAX_ALTERNATES: usize = 5;
/// Directories below `.git` that no permitted command reads.
const NOT_READ: &[&[u8]] = &[b"hooks", b"modules", b"lfs", b"annex"];
/// Maximum depth of directories of objects and of references.
const MAX_DEPTH: usize = 40;

const NONBLOCK: i32 = i32::from_ne_bytes(OFlags::NONBLOCK.bits().to_ne_bytes());

/// Operator's settings for a workspace's repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitTerms {
    /// Directory outside the workspace whose repository git may use and show.
    pub repository: Option<PathBuf>,
    /// Accepted settings of the repository's own configuration, for example `filter.lfs.*`.
    pub accepted: Vec<String>,
}

/// A repository that a command may run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Variables that give git the location.
    pub environment: Vec<(String, String)>,
    /// Path of the workspace below the top of the work tree: empty, or with a trailing slash.
    pub prefix: String,
}

/// Reason why git does not run in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// No repository exists.
    Missing,
    /// The repository exists and must not be used.
    Refused(String),
}

/// Finds the repository of a workspace, and checks everything that a command depends on.
pub fn find(
    workspace: &str,
    tree: &Dir,
    terms: &GitTerms,
    command: &GitCommand,
) -> Result<Repository, Unusable> {
    let search = Search {
        workspace,
        terms,
        command,
    };
    let found = match tree.symlink_metadata(".git") {
        Ok(metadata) if metadata.is_dir() => search.own(tree)?,
        Ok(_) => search.elsewhere(tree, true)?,
        Err(_) => search.elsewhere(tree, false)?,
    };
    for path in &command.paths {
        search.stays_inside(tree, path)?;
    }
    Ok(found)
}

/// Output of git where there is no repository. Git is not started there, because some commands would run.
#[must_use]
pub fn no_repository(workspace: &str) -> Outcome {
    let said = format!("fatal: not a git repository: workspace {workspace}\n").into_bytes();
    Outcome {
        ending: Ending::Exited(128),
        stderr: Output {
            total: said.len() as u64,
            bytes: said,
        },
        duration: Duration::ZERO,
        stdout: Output::default(),
        artifact_id: None,
    }
}

struct Search<'a> {
    workspace: &'a str,
    terms: &'a GitTerms,
    command: &'a GitCommand,
}

impl Search<'_> {
    /// Repository in the workspace's own `.git`.
    fn own(&self, tree: &Dir) -> Result<Repository, Unusable> {
        let git = tree.open_dir_nofollow(".git").map_err(|_| Unusable::Missing)?;
        if git.symlink_metadata("commondir").is_ok() {
            return Err(self.refuse("`.git/commondir` leads to another repository"));
        }
        self.look_into(&git)?;
        self.look_at_objects(&git)?;
        self.look_at_config(&git, &git, false)?;
        is_repository(&git, &git)?;
        Ok(Repository {
            environment: environment(".git", "."),
            prefix: String::new(),
        })
    }

    /// Repository outside the workspace: of a linked work tree, a submodule, or a work tree that contains the
    /// workspace.
    fn elsewhere(&self, tree: &Dir, is_linked: bool) -> Result<Repository, Unusable> {
        let root = real_path(tree).ok_or(Unusable::Missing)?;
        let top = match is_linked {
            true => Some(root.as_path()),
            false => root
                .ancestors()
                .skip(1)
                .find(|place| place.join(".git").symlink_metadata().is_ok()),
        };
        let top = top.ok_or(Unusable::Missing)?;
        let git = destination(&top.join(".git")).ok_or(Unusable::Missing)?;
        let common = match read_line(&git.join("commondir")) {
            Some(path) => git.join(path).canonicalize().map_err(|_| Unusable::Missing)?,
            None => git.clone(),
        };
        let named = self.named();
        let is_named = |path: &Path| named.as_ref().is_some_and(|named| path.starts_with(named));
        if !is_named(&git) || !is_named(&common) || !(is_linked || is_named(top)) {
            let place = common.parent().unwrap_or(&common);
            let place = if is_linked { place } else { top };
            return Err(Unusable::Refused(format!(
                "the Git repository of workspace {0} is outside the workspace: git would use {1} and show all of it. To \
                 allow that, set `repository = {2:?}` in [workspaces.{0}], or register the top of the work tree as \
                 workspace",
                self.workspace,
                common.display(),
                place.display().to_string(),
            )));
        }
        let open =
            |path: &Path| Dir::open_ambient_dir(path, ambient_authority()).map_err(|_| Unusable::Missing);
        let (git_dir, common_dir) = (open(&git)?, open(&common)?);
        self.look_into(&common_dir)?;
        if git != common {
            self.look_into(&git_dir)?;
        }
        self.look_at_objects(&common_dir)?;
        self.look_at_config(&git_dir, &common_dir, true)?;
        is_repository(&git_dir, &common_dir)?;
        let prefix = root
            .strip_prefix(top)
            .unwrap_or(Path::new(""))
            .to_string_lossy()
            .into_owned();
        Ok(Repository {
            environment: environment(&utf8(&git)?, &utf8(top)?),
            prefix: if prefix.is_empty() { prefix } else { prefix + "/" },
        })
    }

    fn named(&self) -> Option<PathBuf> {
        self.terms.repository.as_ref()?.canonicalize().ok()
    }

    fn refuse(&self, why: &str) -> Unusable {
        Unusable::Refused(format!("git does not run in workspace {}: {why}", self.workspace))
    }

    /// Refuses links below a git directory, because git would read and write through them, and pipes and devices, because
    /// git would wait for them.
    fn look_into(&self, git: &Dir) -> Result<(), Unusable> {
        let mut path = b".git".to_vec();
        match foreign_below(git, &mut path, 0) {
            Ok(None) => Ok(()),
            Ok(Some(foreign)) => {
                let (what, many) = match foreign {
                    Foreign::Link => ("a link", "links"),
                    Foreign::Device => ("a pipe or device", "pipes and devices"),
                };
                Err(self.refuse(&format!(
                    "`{}` is {what}; {many} below `.git` are not allowed. Replace it by a file or directory",
                    String::from_utf8_lossy(&path).escape_debug()
                )))
            }
            Err(err) => Err(self.refuse(&format!("`.git` cannot be checked: {err}"))),
        }
    }

    /// Refuses borrowed objects, unless the operator permitted the place.
    fn look_at_objects(&self, common: &Dir) -> Result<(), Unusable> {
        let Some(objects) = common.open_dir("objects").ok().and_then(|dir| real_path(&dir)) else {
            return Ok(());
        };
        let named = self.named();
        let mut stores = vec![(objects, 0)];
        while let Some((store, depth)) = stores.pop() {
            let lines = borrowed(&store)
                .map_err(|err| self.refuse(&format!("objects/info/alternates cannot be read: {err}")))?;
            for line in lines {
                let place = store.join(&line);
                let real = place.canonicalize().unwrap_or(place);
                if depth == MAX_ALTERNATES || !named.as_ref().is_some_and(|named| real.starts_with(named)) {
                    return Err(self.refuse(&format!(
                        "the repository borrows objects from {} (objects/info/alternates). To allow that, set \
                         `repository` in [workspaces.{}] to a directory that holds them, or copy them with `git repack \
                         -a`",
                        real.display(),
                        self.workspace
                    )));
                }
                stores.push((real, depth + 1));
            }
        }
        Ok(())
    }

    /// Refuses settings that name programs and files.
    fn look_at_config(&self, git: &Dir, common: &Dir, named: bool) -> Result<(), Unusable> {
        let scope = Scope {
            subcommand: self.command.name,
            accepted: &self.terms.accepted,
            named,
        };
        let mut refused = Vec::new();
        for (dir, name) in [(common, "config"), (git, "config.worktree")] {
            let content = match bounded(dir, name, MAX_CONFIG) {
                Ok(content) => content,
                Err(err) if err.kind() == std::io::ErrorKind::NotFound => continue,
                Err(err) => return Err(self.refuse(&format!("`.git/{name}` cannot be read: {err}"))),
            };
            let keys = git::check_config(&content, scope);
            refused.extend(keys.map_err(|err| self.refuse(&format!("`.git/{name}`: {err}")))?);
        }
        refused.truncate(20);
        if refused.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = refused.iter().map(|key| format!("{key:?}")).collect();
        let includes = refused.iter().any(|key| key.starts_with("include"));
        let workspace = self.workspace;
        Err(self.refuse(&format!(
            "the repository's own configuration has settings that may name programs or files: {}; move those that you \
             need to your own configuration (git config --global){}",
            refused.join(", "),
            match includes {
                true => String::new(),
                false => format!(", or accept them with `git_config = [{}]` in [workspaces.{workspace}]", list.join(", ")),
            }
        )))
    }

    /// Refuses paths that leave the workspace through links.
    fn stays_inside(&self, tree: &Dir, path: &[u8]) -> Result<(), Unusable> {
        let place = Path::new(OsStr::from_bytes(path));
        if path.is_empty() {
            return Ok(());
        }
        // Only this command follows a link at the end of a path.
        let found = match self.command.name {
            "hash-object" => tree.metadata(place).map(drop),
            _ => tree.symlink_metadata(place).map(drop),
        };
        match found {
            Err(err)
                if err.kind() == std::io::ErrorKind::PermissionDenied && err.raw_os_error().is_none() =>
            {
                Err(self.refuse(&format!(
                    "`{}` is outside the workspace; pass files inside it",
                    place.display().to_string().escape_debug()
                )))
            }
            _ => Ok(()),
        }
    }
}

fn environment(git: &str, top: &str) -> Vec<(String, String)> {
    let pairs = [
        ("GIT_DIR", git),
        ("GIT_WORK_TREE", top),
        ("GIT_CEILING_DIRECTORIES", "/"),
    ];
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

fn utf8(path: &Path) -> Result<String, Unusable> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Unusable::Refused(format!("the path {} is not UTF-8", path.display())))
}

/// Checks whether git accepts a file as `HEAD`: otherwise there is no repository, and git compares plain files.
fn is_head(git: &Dir) -> bool {
    let Ok(content) = bounded(git, "HEAD", MAX_LINK) else {
        return false;
    };
    let text = String::from_utf8_lossy(&content);
    let line = text.trim_end();
    match line.strip_prefix("ref:") {
        Some(name) => name.trim_start().starts_with("refs/"),
        None => matches!(line.len(), 40 | 64) && line.bytes().all(|letter| letter.is_ascii_hexdigit()),
    }
}

/// Checks for the entries that make a directory a repository for git.
fn is_repository(git: &Dir, common: &Dir) -> Result<(), Unusable> {
    let is_dir = |name: &str| common.metadata(name).is_ok_and(|metadata| metadata.is_dir());
    match git
        .symlink_metadata("HEAD")
        .is_ok_and(|metadata| metadata.is_file())
        && is_head(git)
        && is_dir("objects")
        && is_dir("refs")
    {
        true => Ok(()),
        false => Err(Unusable::Missing),
    }
}

/// Current path of an opened directory.
fn real_path(dir: &Dir) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).ok()
}

/// Directory that a `.git` file points to.
fn destination(git: &Path) -> Option<PathBuf> {
    let real = git.canonicalize().ok()?;
    if real.is_dir() {
        return Some(real);
    }
    let line = read_line(&real)?;
    let path = line.strip_prefix("gitdir: ")?;
    real.parent()?.join(path).canonicalize().ok()
}

/// Text of a short file, without the line ending.
fn read_line(file: &Path) -> Option<String> {
    let dir = Dir::open_ambient_dir(file.parent()?, ambient_authority()).ok()?;
    let text = String::from_utf8(bounded(&dir, file.file_name()?, MAX_LINK).ok()?).ok()?;
    Some(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Other object stores that one borrows from, as paths.
fn borrowed(objects: &Path) -> std::io::Result<Vec<PathBuf>> {
    let read = Dir::open_ambient_dir(objects, ambient_authority())
        .and_then(|dir| bounded(&dir, "info/alternates", MAX_LINK));
    let content = match read {
        Ok(content) => content,
        // Only a missing file means no other store. An unreadable one may name any.
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(err) => return Err(err),
    };
    Ok(content
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
        .map(|line| PathBuf::from(OsStr::from_bytes(line)))
        .collect())
}

fn bounded(dir: &Dir, name: impl AsRef<Path>, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    // Opening a pipe without a writer would block.
    options.read(true).custom_flags(NONBLOCK);
    let file = dir.open_with(name, &options)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    match content.len() as u64 <= limit {
        true => Ok(content),
        false => Err(std::io::Error::other(format!("larger than {limit} bytes"))),
    }
}

/// Entry that may not be below a git directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    Link,
    /// A device, or a pipe, which blocks on opening until another process opens its other end.
    Device,
}

impl Foreign {
    /// Sockets are not foreign entries: git's own file monitor has one, and opening a socket fails at once.
    fn of(kind: FileType) -> Option<Foreign> {
        match kind {
            FileType::Symlink => Some(Foreign::Link),
            FileType::Fifo | FileType::CharacterDevice | FileType::BlockDevice => Some(Foreign::Device),
            _ => None,
        }
    }
}

/// Checks for a foreign entry below a directory; `path` is then its location.
fn foreign_below(dir: &Dir, path: &mut Vec<u8>, depth: usize) -> std::io::Result<Option<Foreign>> {
    if depth == MAX_DEPTH {
        return Err(std::io::Error::other(format!(
            "directories are nested more than {MAX_DEPTH} deep"
        )));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, c".", flags, Mode::empty())?;
    let mut buffer = Vec::with_capacity(8 << 10);
    let mut entries = RawDir::new(&opened, buffer.spare_capacity_mut());
    let length = path.len();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") || (depth == 0 && NOT_READ.contains(&name)) {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not report the type here.
            FileType::Unknown => {
                rustix::fs::statat(dir, entry.file_name(), rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode))
            }
            kind => kind,
        };
        path.push(b'/');
        path.extend_from_slice(name);
        let found = match kind {
            // Single objects are not checked: pointing to another's object requires its hash, and the check
            // takes longer than git.
            FileType::Directory if path[..length].ends_with(b"/objects") && name.len() == 2 => None,
            FileType::Directory => match dir.open_dir_nofollow(OsStr::from_bytes(name)) {
                Ok(below) => foreign_below(&below, path, depth + 1)?,
                // The entry disappeared, or is not readable: then git cannot read it either.
                Err(_) => None,
            },
            kind => Foreign::of(kind),
        };
        if found.is_some() {
            return Ok(found);
        }
        path.truncate(length);
    }
    Ok(None)
}
