//! Access to workspaces through the component's imports.

use super::bindings::tollgate::host::{component, workspace as wit};
use crate::workspace::Upcoming;
use crate::{FileEntry, FileKind, GitAccess, Listing, TestCommand, WorkspaceError, WorkspaceInfo};

pub(super) fn names() -> Vec<String> {
    wit::names()
}

pub(super) fn describe(workspace: &str) -> Result<WorkspaceInfo, WorkspaceError> {
    wit::describe(workspace).map(info).map_err(error)
}

pub(super) fn list(
    workspace: &str,
    directory: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Vec<FileEntry>, WorkspaceError> {
    wit::list(workspace, directory, after, limit)
        .map(|entries| entries.into_iter().map(entry).collect())
        .map_err(error)
}

pub(super) fn list_unless(
    workspace: &str,
    directory: &str,
    known: Option<u64>,
    limit: u32,
) -> Result<Option<Listing>, WorkspaceError> {
    let listed = wit::list_unless(workspace, directory, known, limit).map_err(error)?;
    Ok(listed.map(|said| Listing {
        entries: said.entries.into_iter().map(entry).collect(),
        fingerprint: said.fingerprint,
    }))
}

pub(super) fn stat(workspace: &str, path: &str) -> Result<FileEntry, WorkspaceError> {
    wit::stat(workspace, path).map(entry).map_err(error)
}

pub(super) fn read(workspace: &str, path: &str, offset: u64, limit: u32) -> Result<Vec<u8>, WorkspaceError> {
    wit::read(workspace, path, offset, limit).map_err(error)
}

pub(super) fn read_ahead(workspace: &str, next: &[Upcoming<'_>]) {
    let wire = |upcoming: &Upcoming<'_>| match *upcoming {
        Upcoming::List(path, limit) => wit::Upcoming::List((path.to_owned(), limit)),
        Upcoming::ListUnless(path, known, limit) => {
            wit::Upcoming::ListUnless((path.to_owned(), known, limit))
        }
        Upcoming::Read(path, limit) => wit::Upcoming::Read((path.to_owned(), limit)),
    };
    let next: Vec<wit::Upcoming> = next.iter().map(wire).collect();
    wit::read_ahead(workspace, &next);
}

pub(super) fn write(workspace: &str, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
    wit::write(workspace, path, content).map_err(error)
}

pub(super) fn append(workspace: &str, path: &str, content: &[u8]) -> Result<(), WorkspaceError> {
    wit::append(workspace, path, content).map_err(error)
}

fn info(said: wit::Description) -> WorkspaceInfo {
    WorkspaceInfo {
        name: said.name,
        write_prefixes: said.write_prefixes,
        git: said.git.map(|access| match access {
            component::GitAccess::Read => GitAccess::Read,
            component::GitAccess::Write => GitAccess::Write,
        }),
        tests: said
            .tests
            .into_iter()
            .map(|test| TestCommand {
                name: test.name,
                argv: test.argv,
            })
            .collect(),
    }
}

fn entry(said: wit::Entry) -> FileEntry {
    FileEntry {
        path: said.path,
        kind: match said.kind {
            wit::Kind::File => FileKind::File,
            wit::Kind::Directory => FileKind::Directory,
            wit::Kind::Symlink => FileKind::Symlink,
            wit::Kind::Other => FileKind::Other,
            wit::Kind::Unnameable => FileKind::Unnameable,
        },
        size: said.size,
        modified_ms: said.modified,
    }
}

fn error(said: wit::Error) -> WorkspaceError {
    match said {
        wit::Error::UnknownWorkspace(name) => WorkspaceError::Unknown(name),
        wit::Error::Denied(why) => WorkspaceError::Denied(why),
        wit::Error::NotFound(path) => WorkspaceError::NotFound(path),
        wit::Error::WrongKind(why) => WorkspaceError::WrongKind(why),
        wit::Error::TooLarge(why) => WorkspaceError::TooLarge(why),
        wit::Error::Unwritable(why) => WorkspaceError::Unwritable(why),
        wit::Error::Internal => WorkspaceError::Internal,
    }
}
