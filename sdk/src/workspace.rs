//! Files of the workspaces that the operator registered.

use thiserror::Error;

#[cfg(target_family = "wasm")]
use crate::Host;
use crate::ToolError;
use crate::host::HostRef;
use crate::process::{Command, Outcome, ProcessError};

/// Maximum entries of one listing; the host clamps larger values.
///
/// ```
/// # use tollgate_sdk::{FileEntry, Workspace, WorkspaceError, workspace::MAX_ENTRIES};
/// fn whole(workspace: &Workspace<'_>, directory: &str) -> Result<Vec<FileEntry>, WorkspaceError> {
///     let mut all: Vec<FileEntry> = Vec::new();
///     loop {
///         let after = all.last().and_then(|entry| entry.path.rsplit('/').next()).map(str::to_owned);
///         let next = workspace.list(directory, after.as_deref(), MAX_ENTRIES)?;
///         if next.is_empty() {
///             return Ok(all);
///         }
///         all.extend(next);
///     }
/// }
/// # let _ = whole;
/// ```
pub const MAX_ENTRIES: u32 = 1_000;
/// Maximum bytes of one read; the host clamps larger values.
///
/// ```
/// # use tollgate_sdk::{Workspace, WorkspaceError, workspace::MAX_READ};
/// fn start(workspace: &Workspace<'_>, path: &str) -> Result<Vec<u8>, WorkspaceError> {
///     workspace.read_at(path, 0, MAX_READ)
/// }
/// # let _ = start;
/// ```
pub const MAX_READ: u32 = 1 << 20;
/// Maximum bytes of one write.
///
/// ```
/// # use tollgate_sdk::MAX_WRITE;
/// let report = "x".repeat(100);
/// assert!(report.len() <= MAX_WRITE);
/// ```
pub const MAX_WRITE: usize = 2 << 20;

/// Access to git.
///
/// ```
/// # use tollgate_sdk::GitAccess;
/// assert!(GitAccess::Write > GitAccess::Read, "who may write may read");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitAccess {
    /// Commands that only read.
    Read,
    /// Commits, branches and tags as well. Never the network.
    Write,
}

/// A command that the operator registered.
///
/// ```
/// # use tollgate_sdk::{Command, TestCommand};
/// let test = TestCommand { name: "default".to_owned(), argv: vec!["cargo".to_owned(), "test".to_owned()] };
/// assert_eq!(Command::test(&test).program, "cargo");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCommand {
    /// Name of the command. `default` is the default.
    pub name: String,
    /// Program and arguments.
    pub argv: Vec<String>,
}

/// Permissions of the pack in a workspace.
///
/// ```
/// # use tollgate_sdk::WorkspaceInfo;
/// let info = WorkspaceInfo { write_prefixes: vec!["notes/".to_owned()], ..WorkspaceInfo::default() };
/// assert!(info.may_write("notes/today.md") && !info.may_write("src/lib.rs"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceInfo {
    /// Name of the workspace.
    pub name: String,
    /// Prefixes below which the pack may write. `.gsd/` is a directory, `.` is everything, and a path without a
    /// trailing slash is one file.
    pub write_prefixes: Vec<String>,
    /// Access to git; `None` if there is none.
    pub git: Option<GitAccess>,
    /// Registered test commands, sorted by name.
    pub tests: Vec<TestCommand>,
}

impl WorkspaceInfo {
    /// Checks whether the pack may write to a path.
    #[must_use]
    pub fn may_write(&self, path: &str) -> bool {
        self.write_prefixes.iter().any(|prefix| covers(prefix, path))
    }

    /// Finds a registered test command by name.
    #[must_use]
    pub fn test(&self, name: &str) -> Option<&TestCommand> {
        self.tests.iter().find(|test| test.name == name)
    }
}

/// Checks whether a prefix covers a path. `.` covers everything, a directory with a trailing slash covers its contents,
/// and any other prefix covers only itself.
///
/// ```
/// # use tollgate_sdk::workspace::covers;
/// assert!(covers(".", "src/lib.rs") && covers("notes/", "notes/a.md") && covers("TODO.md", "TODO.md"));
/// assert!(!covers("notes/", "notes") && !covers("notes/", "notesbook/a.md"));
/// ```
#[must_use]
pub fn covers(prefix: &str, path: &str) -> bool {
    let prefix = prefix.strip_prefix("./").unwrap_or(prefix);
    match prefix {
        "" | "." => true,
        _ if prefix.ends_with('/') => path.len() > prefix.len() && path.starts_with(prefix),
        _ => path == prefix,
    }
}

/// Kind of a path.
///
/// ```
/// # use tollgate_sdk::{FileEntry, FileKind};
/// fn files(entries: &[FileEntry]) -> impl Iterator<Item = &FileEntry> {
///     entries.iter().filter(|entry| entry.kind == FileKind::File)
/// }
/// # assert_eq!(files(&[]).count(), 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Regular file.
    File,
    /// Directory.
    Directory,
    /// Symbolic link.
    Symlink,
    /// Device, pipe or socket.
    Other,
    /// Entry whose name is not UTF-8, which no request can name.
    Unnameable,
}

/// A directory entry or path.
///
/// ```
/// # use tollgate_sdk::{FileEntry, FileKind};
/// let entry = FileEntry { path: "notes/a.md".to_owned(), kind: FileKind::File, size: 12, modified_ms: 0 };
/// assert!(entry.path.ends_with(".md"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Path relative to the workspace's root. The path may contain line breaks.
    pub path: String,
    /// Kind of the entry.
    pub kind: FileKind,
    /// Size in bytes, or 0 for anything other than a file.
    pub size: u64,
    /// Modification time in milliseconds since 1970 UTC. Later of the times of the content and of the entry itself, so
    /// that a program cannot set the time back.
    pub modified_ms: i64,
}

/// First entries of a directory, from [`Workspace::list_unless`].
///
/// ```
/// # use tollgate_sdk::{Listing, Workspace, WorkspaceError, workspace::MAX_ENTRIES};
/// /// Lists a directory again, if it changed.
/// fn refresh(workspace: &Workspace<'_>, notes: &mut Listing) -> Result<bool, WorkspaceError> {
///     let changed = workspace.list_unless("notes", Some(notes.fingerprint), MAX_ENTRIES)?;
///     Ok(changed.map(|listing| *notes = listing).is_some())
/// }
/// # let _ = refresh;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Entries sorted by name.
    pub entries: Vec<FileEntry>,
    /// Hash of the names, kinds, sizes, inodes and times of all entries, including those not in `entries`. The
    /// hash does not cover the content of files or subdirectories, and only the host can compare it.
    pub fingerprint: u64,
}

/// An upcoming request, for [`Workspace::read_ahead`].
///
/// ```
/// # use tollgate_sdk::{FileEntry, Workspace, WorkspaceError, workspace::{MAX_READ, Upcoming}};
/// fn size_of_all(workspace: &Workspace<'_>, files: &[FileEntry]) -> Result<usize, WorkspaceError> {
///     let next: Vec<Upcoming<'_>> = files.iter().map(|file| Upcoming::Read(&file.path, MAX_READ)).collect();
///     workspace.read_ahead(&next);
///     files.iter().map(|file| Ok(workspace.read_at(&file.path, 0, MAX_READ)?.len())).sum()
/// }
/// # let _ = size_of_all;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upcoming<'a> {
    /// [`list`](Workspace::list) of a directory from its beginning, with this limit.
    List(&'a str, u32),
    /// [`list_unless`](Workspace::list_unless) of a directory, with the known fingerprint and this limit.
    ListUnless(&'a str, Option<u64>, u32),
    /// [`read_at`](Workspace::read_at) of a file from its beginning, with this limit.
    Read(&'a str, u32),
}

/// Reason why an access to a workspace failed.
///
/// ```
/// # use tollgate_sdk::{ToolError, WorkspaceError};
/// let refusal = ToolError::from(WorkspaceError::NotFound("notes/a.md".to_owned()));
/// assert_eq!(refusal.code, "FILE_NOT_FOUND");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkspaceError {
    /// The workspace does not exist or is not granted.
    #[error("workspace `{0}` does not exist or is not granted to this pack")]
    Unknown(String),
    /// The path leaves the workspace, is not granted, or the tool only reads.
    #[error("access refused: {0}")]
    Denied(String),
    /// The path does not exist.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// The path is of the wrong kind for the request.
    #[error("{0}")]
    WrongKind(String),
    /// A size limit was exceeded.
    #[error("too large: {0}")]
    TooLarge(String),
    /// No space is left, or the directory is read-only.
    #[error("cannot be written: {0}")]
    Unwritable(String),
    /// The host failed.
    #[error("the workspace cannot be used; the host's log has the reason")]
    Internal,
}

/// Remediation for a workspace that a pack does not have.
pub(crate) const UNKNOWN_REMEDIATION: &str = "Use a workspace that is granted to the pack; workspace_list lists all. Or ask the \
                                  operator to register one with path = \"/srv/app\" in [workspaces.NAME], and to grant \
                                  it with grants.workspaces = [\"NAME\"] in [packs.PACK].";

impl From<WorkspaceError> for ToolError {
    fn from(err: WorkspaceError) -> ToolError {
        let (code, remediation) = match &err {
            WorkspaceError::Unknown(_) => ("WORKSPACE_UNKNOWN", UNKNOWN_REMEDIATION),
            WorkspaceError::Denied(_) => (
                "WORKSPACE_DENIED",
                "Use a relative path inside the workspace. To write elsewhere, ask the operator to allow the \
                 directory, for example with write = [\"docs/\"] in [workspaces.NAME]. The pack also needs the \
                 workspace in grants.workspaces.",
            ),
            WorkspaceError::NotFound(_) => (
                "FILE_NOT_FOUND",
                "Check the path; it starts at the workspace's root.",
            ),
            WorkspaceError::WrongKind(_) => (
                "FILE_WRONG_KIND",
                "Pass a file where a file is required, or a directory where a directory is.",
            ),
            WorkspaceError::TooLarge(_) => ("FILE_TOO_LARGE", "Read or write less at once."),
            WorkspaceError::Unwritable(_) => (
                "FILE_UNWRITABLE",
                "Free disk space, or give the host's user write permission.",
            ),
            WorkspaceError::Internal => (
                "WORKSPACE_FAILED",
                "Read the host's log; search for the operation id.",
            ),
        };
        ToolError::new(code, err.to_string()).remediation(remediation)
    }
}

/// Access to one workspace from a call. Opened by [`Cx::workspace`](crate::Cx::workspace).
///
/// ```
/// use tollgate_sdk::{Cx, ToolError};
///
/// fn headline(cx: &Cx<'_>) -> Result<String, ToolError> {
///     let readme = cx.workspace("main")?.read("README.md", 64 << 10)?;
///     Ok(String::from_utf8_lossy(&readme).lines().next().unwrap_or_default().to_owned())
/// }
/// # use tollgate_sdk::{CallInfo, Pack, Want, native::{Session, Workspace}};
/// # const PACK: Pack = Pack { wants: &[Want::WorkspaceRead("*")], ..Pack::EMPTY };
/// # let folder = tempfile::tempdir().unwrap();
/// # std::fs::write(folder.path().join("README.md"), "# Hello\n").unwrap();
/// # let session = Session::new(&PACK).workspace(Workspace::new("main", folder.path()));
/// # let call = CallInfo::default();
/// # let cx = Cx::new(session.backend(), &call);
/// assert_eq!(headline(&cx)?, "# Hello");
/// # Ok::<(), ToolError>(())
/// ```
pub struct Workspace<'a> {
    host: HostRef<'a>,
    info: WorkspaceInfo,
}

impl<'a> Workspace<'a> {
    pub(crate) fn open(host: HostRef<'a>, name: &str) -> Result<Workspace<'a>, WorkspaceError> {
        Ok(Workspace {
            info: host.describe_workspace(name)?,
            host,
        })
    }

    /// Name of the workspace.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// Permissions of the pack in the workspace.
    #[must_use]
    pub fn info(&self) -> &WorkspaceInfo {
        &self.info
    }

    /// Entries directly below a directory, sorted by name, after the one named `after`: at most `limit`, and
    /// never more than [`MAX_ENTRIES`]. `.` is the root.
    pub fn list(
        &self,
        directory: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        self.host.list_files(self.name(), directory, after, limit)
    }

    /// Like [`list`](Workspace::list) from the beginning, unless the directory's fingerprint is `known`. In that case
    /// returns `None`, and the pack does no work, whatever the number of entries. Changes during the listing are found
    /// by the next listing.
    pub fn list_unless(
        &self,
        directory: &str,
        known: Option<u64>,
        limit: u32,
    ) -> Result<Option<Listing>, WorkspaceError> {
        self.host.list_files_unless(self.name(), directory, known, limit)
    }

    /// Entry at a path. A symbolic link at its end is not followed.
    pub fn stat(&self, path: &str) -> Result<FileEntry, WorkspaceError> {
        self.host.stat_file(self.name(), path)
    }

    /// Like [`stat`](Workspace::stat), but returns `None` for a missing path.
    pub fn find(&self, path: &str) -> Result<Option<FileEntry>, WorkspaceError> {
        match self.stat(path) {
            Ok(entry) => Ok(Some(entry)),
            Err(WorkspaceError::NotFound(_)) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Whole content of a file. `TooLarge` if it has more than `limit` bytes.
    pub fn read(&self, path: &str, limit: usize) -> Result<Vec<u8>, WorkspaceError> {
        let mut content = Vec::new();
        loop {
            let piece = self.read_at(path, content.len() as u64, MAX_READ)?;
            if piece.is_empty() {
                return Ok(content);
            }
            content.extend(piece);
            if content.len() > limit {
                return Err(WorkspaceError::TooLarge(format!(
                    "`{path}` is larger than {limit} bytes"
                )));
            }
        }
    }

    /// At most `limit` bytes of a file from `offset`, and never more than [`MAX_READ`]. Empty at the end of the file.
    pub fn read_at(&self, path: &str, offset: u64, limit: u32) -> Result<Vec<u8>, WorkspaceError> {
        self.host.read_file(self.name(), path, offset, limit)
    }

    /// Announces upcoming requests, in order, so that the host can prefetch while the pack works. The only effect is
    /// speed. A result may be as old as its announcement. Writing and running programs discards all announcements.
    pub fn read_ahead(&self, next: &[Upcoming<'_>]) {
        self.host.read_ahead(self.name(), next);
    }

    /// Replaces a file atomically and durably, and creates missing directories. In a `Write` tool the write happens
    /// after the call's commit. If the call fails, nothing is written.
    pub fn write(&self, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
        self.host.write_file(self.name(), path, content)
    }

    /// Appends to a file durably, and creates the file if it is missing. In a `Write` tool the write happens after the
    /// call's commit. If the call fails, nothing is written.
    pub fn append(&self, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
        self.host.append_file(self.name(), path, content)
    }

    /// Runs a program with the workspace as its directory, in a `Run` tool outside any transaction.
    pub fn run(&self, command: &Command) -> Result<Outcome, ProcessError> {
        self.host.run_process(self.name(), command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_what_is_below_it() {
        let cases = [
            (".", "a", true),
            ("", "a/b", true),
            ("./", "a", true),
            (".gsd/", ".gsd/a", true),
            ("./.gsd/", ".gsd/a/b", true),
            (".gsd/", ".gsd", false),
            (".gsd/", ".gsd/", false),
            (".gsd/", ".gsdx/a", false),
            ("notes.md", "notes.md", true),
            ("notes.md", "notes.md/a", false),
            ("notes.md", "notes.mdx", false),
        ];
        for (prefix, path, covered) in cases {
            assert_eq!(covers(prefix, path), covered, "{prefix:?} {path:?}");
        }
    }
}
