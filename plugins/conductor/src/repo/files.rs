//! A job's repository as a tree.

use conductor_repo::tree::{Above, Entry, Kind, Listing, Tree, TreeError, TreeResult, Upcoming};
use tollgate_sdk::{FileEntry, FileKind, WorkspaceError, workspace};

use super::above;
use crate::access::Access;

impl Tree for Access<'_> {
    fn list(&self, directory: &str, after: Option<&str>, limit: u32) -> TreeResult<Vec<Entry>> {
        let found = self.workspace.list(&self.directory(directory), after, limit);
        let found = found.map_err(|err| refusal(directory, err))?;
        Ok(found.into_iter().map(|entry| self.entry(entry)).collect())
    }

    fn list_unless(&self, directory: &str, known: Option<u64>, limit: u32) -> TreeResult<Option<Listing>> {
        let found = self
            .workspace
            .list_unless(&self.directory(directory), known, limit);
        let found = found.map_err(|err| refusal(directory, err))?;
        Ok(found.map(|listing| Listing {
            entries: listing
                .entries
                .into_iter()
                .map(|entry| self.entry(entry))
                .collect(),
            fingerprint: Some(listing.fingerprint),
        }))
    }

    fn stat(&self, path: &str) -> TreeResult<Entry> {
        let found = self.workspace.stat(&self.root.join(path));
        found
            .map(|entry| self.entry(entry))
            .map_err(|err| refusal(path, err))
    }

    fn read(&self, path: &str, offset: u64, limit: u32) -> TreeResult<Vec<u8>> {
        let found = self.workspace.read_at(&self.root.join(path), offset, limit);
        found.map_err(|err| refusal(path, err))
    }

    fn above(&self) -> TreeResult<Above> {
        Ok(above::ignore_files(self))
    }

    fn expect(&self, next: &[Upcoming<'_>]) {
        let paths: Vec<String> = next
            .iter()
            .map(|upcoming| match upcoming {
                Upcoming::List(directory, ..) => self.directory(directory),
                Upcoming::Read(path, _) => self.root.join(path),
            })
            .collect();
        let next: Vec<workspace::Upcoming<'_>> = next
            .iter()
            .zip(&paths)
            .map(|(upcoming, path)| match upcoming {
                Upcoming::List(_, known, limit) => workspace::Upcoming::ListUnless(path, *known, *limit),
                Upcoming::Read(_, limit) => workspace::Upcoming::Read(path, *limit),
            })
            .collect();
        self.workspace.read_ahead(&next);
    }
}

impl Access<'_> {
    /// Converts a directory of the repository to one of the workspace.
    fn directory(&self, directory: &str) -> String {
        match self.root.join(directory) {
            path if path.is_empty() => ".".to_owned(),
            path => path,
        }
    }

    /// Converts an entry of the workspace to one of the repository.
    fn entry(&self, entry: FileEntry) -> Entry {
        let inside = match self.root.directory.as_str() {
            "" => None,
            directory => entry.path.strip_prefix(directory),
        };
        Entry {
            path: match inside {
                Some(path) => path.trim_start_matches('/').to_owned(),
                None => entry.path,
            },
            kind: match entry.kind {
                FileKind::File => Kind::File,
                FileKind::Directory => Kind::Directory,
                FileKind::Symlink => Kind::Symlink,
                FileKind::Other => Kind::Other,
                FileKind::Unnameable => Kind::Unnamed,
            },
            size: entry.size,
            modified: entry.modified_ms,
        }
    }
}

fn refusal(path: &str, err: WorkspaceError) -> TreeError {
    match err {
        WorkspaceError::Unknown(name) => TreeError::UnknownWorkspace(name),
        WorkspaceError::Denied(_) => TreeError::Denied(path.to_owned()),
        WorkspaceError::NotFound(_) => TreeError::NotFound(path.to_owned()),
        WorkspaceError::WrongKind(why) => TreeError::Unreadable(why),
        WorkspaceError::TooLarge(_) => TreeError::TooLarge(path.to_owned()),
        WorkspaceError::Unwritable(_) | WorkspaceError::Internal => TreeError::Internal,
    }
}
