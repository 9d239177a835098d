//! Files of the workspaces that the operator registered.

use thiserror::Error;

use crate::process::{Command, Outcome, ProcessError};
use crate::{Host, ToolError};

/// Most entries of one listing, as the host clamps it.
pub const MAX_ENTRIES: u32 = 1_000;
/// Most bytes of one read, as the host clamps it.
pub const MAX_READ: u32 = 1 << 20;
/// Most bytes of one write.
pub const MAX_WRITE: usize = 2 << 20;

/// What may be done with git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GitAccess {
    /// Commands that only read.
    Read,
    /// Commits, branches and tags too. Never the network.
    Write,
}

/// A command the operator registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCommand {
    /// `default`, or another name.
    pub name: String,
    /// Program and arguments.
    pub argv: Vec<String>,
}

/// What the pack may do in a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkspaceInfo {
    /// Its name.
    pub name: String,
    /// Below these the pack may write: `.gsd/` is a directory, `.` everything, and a path without a
    /// slash at its end one file.
    pub write_prefixes: Vec<String>,
    /// Absent: no git.
    pub git: Option<GitAccess>,
    /// What it may run as tests, sorted by name.
    pub tests: Vec<TestCommand>,
}

impl WorkspaceInfo {
    /// Whether the pack may write there.
    #[must_use]
    pub fn may_write(&self, path: &str) -> bool {
        self.write_prefixes.iter().any(|prefix| covers(prefix, path))
    }

    /// The registered test command of this name.
    #[must_use]
    pub fn test(&self, name: &str) -> Option<&TestCommand> {
        self.tests.iter().find(|test| test.name == name)
    }
}

/// Whether a prefix grants a path: `.` all, a directory with a slash at its end what is below it, and
/// anything else itself.
#[must_use]
pub fn covers(prefix: &str, path: &str) -> bool {
    let prefix = prefix.strip_prefix("./").unwrap_or(prefix);
    match prefix {
        "" | "." => true,
        _ if prefix.ends_with('/') => path.len() > prefix.len() && path.starts_with(prefix),
        _ => path == prefix,
    }
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, a pipe, a socket.
    Other,
    /// Its name is not UTF-8, and no request can name it.
    Unnameable,
}

/// One directory entry or path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Relative to the workspace's root. It may hold line ends.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Bytes; 0 for what is no file.
    pub size: u64,
    /// Milliseconds since 1970 UTC.
    pub modified_ms: i64,
}

/// Why an access to a workspace failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkspaceError {
    /// No workspace of this name, or it was not granted.
    #[error("there is no workspace `{0}` for this pack")]
    Unknown(String),
    /// The path leaves the workspace, is not granted, or the tool only reads.
    #[error("access refused: {0}")]
    Denied(String),
    /// Nothing is there.
    #[error("`{0}` does not exist")]
    NotFound(String),
    /// The path is not of the kind the request wants.
    #[error("{0}")]
    WrongKind(String),
    /// A size cap was passed.
    #[error("too large: {0}")]
    TooLarge(String),
    /// No space is left, or the directory is read-only.
    #[error("cannot be written: {0}")]
    Unwritable(String),
    /// The host failed.
    #[error("the workspace cannot be used; the host's log has the reason")]
    Internal,
}

impl From<WorkspaceError> for ToolError {
    fn from(err: WorkspaceError) -> ToolError {
        let (code, remediation) = match &err {
            WorkspaceError::Unknown(_) => (
                "WORKSPACE_UNKNOWN",
                "Name a workspace that is registered under [workspaces.NAME] and granted to the pack.",
            ),
            WorkspaceError::Denied(_) => (
                "WORKSPACE_DENIED",
                "Use a relative path inside the workspace; what may be written there is up to the operator.",
            ),
            WorkspaceError::NotFound(_) => (
                "FILE_NOT_FOUND",
                "Check the path; it starts at the workspace's root.",
            ),
            WorkspaceError::WrongKind(_) => ("FILE_WRONG_KIND", "Name a file where a file is wanted."),
            WorkspaceError::TooLarge(_) => ("FILE_TOO_LARGE", "Read or write less at once."),
            WorkspaceError::Unwritable(_) => (
                "FILE_UNWRITABLE",
                "Free disk space, or let the host's user write there.",
            ),
            WorkspaceError::Internal => (
                "WORKSPACE_FAILED",
                "Look at the host's log under the operation's id.",
            ),
        };
        ToolError::new(code, err.to_string()).remediation(remediation)
    }
}

/// One workspace, as far as the pack may use it. [`Cx::workspace`](crate::Cx::workspace) opens it.
pub struct Workspace<'a> {
    host: &'a dyn Host,
    info: WorkspaceInfo,
}

impl<'a> Workspace<'a> {
    pub(crate) fn open(host: &'a dyn Host, name: &str) -> Result<Workspace<'a>, WorkspaceError> {
        Ok(Workspace {
            info: host.describe_workspace(name)?,
            host,
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// What the pack may do in it.
    #[must_use]
    pub fn info(&self) -> &WorkspaceInfo {
        &self.info
    }

    /// The entries directly below a directory, sorted by name, after the one named `after`: at most
    /// `limit`, and never more than [`MAX_ENTRIES`]. `.` is the root.
    pub fn list(
        &self,
        directory: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<FileEntry>, WorkspaceError> {
        self.host.list_files(self.name(), directory, after, limit)
    }

    /// What a path is. A symbolic link at its end is not followed.
    pub fn stat(&self, path: &str) -> Result<FileEntry, WorkspaceError> {
        self.host.stat_file(self.name(), path)
    }

    /// Like [`stat`](Workspace::stat), with nothing there being no error.
    pub fn find(&self, path: &str) -> Result<Option<FileEntry>, WorkspaceError> {
        match self.stat(path) {
            Ok(entry) => Ok(Some(entry)),
            Err(WorkspaceError::NotFound(_)) => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// A file's whole content. `TooLarge` if it has more than `limit` bytes.
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
                    "`{path}` has more than {limit} bytes"
                )));
            }
        }
    }

    /// At most `limit` bytes of a file from `offset`, and never more than [`MAX_READ`]; empty at its
    /// end.
    pub fn read_at(&self, path: &str, offset: u64, limit: u32) -> Result<Vec<u8>, WorkspaceError> {
        self.host.read_file(self.name(), path, offset, limit)
    }

    /// Replaces a file atomically and durably, making missing directories. In a `Write` tool it
    /// happens after the call's commit, and not at all if the call is an error.
    pub fn write(&self, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
        self.host.write_file(self.name(), path, content)
    }

    /// Appends to a file durably, making it when missing. In a `Write` tool it happens after the
    /// call's commit, and not at all if the call is an error.
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
