//! `workspace`: files below the directories that the operator registered.

use tollgate_core::deadline::Deadline;
use tollgate_core::effect::Effect;
use tollgate_sdk::tree::FileWrite;
use tollgate_sdk::{FileEntry, FileKind, GitAccess, WorkspaceError, WorkspaceInfo};
use wasmtime::Trap;
use wasmtime::component::{HasData, Linker};

use crate::bindings::tollgate::host::component;
use crate::bindings::tollgate::host::workspace::{
    self, Description, Entry, Error, Kind, Listing as WireListing, TestCommand, Upcoming as WireUpcoming,
};
use crate::side_effects::SideEffects;
use crate::view::prefetch::{PrefetchRequest, Prefetcher};
use crate::workspaces::{Access, DeferredWrite};

/// Most bytes that one call may have written after its commit.
const MAX_HELD_BACK: usize = 16 << 20;
/// Most files that one call may have written after its commit.
const MAX_FILES: usize = 1_000;

pub(crate) struct View<'a> {
    pub(crate) access: &'a Access,
    pub(crate) effect: Effect,
    pub(crate) side_effects: &'a mut SideEffects,
    pub(crate) deferred_writes: &'a mut Vec<DeferredWrite>,
    pub(crate) prefetcher: &'a mut Prefetcher,
    pub(crate) deadline: &'a Deadline,
}

impl View<'_> {
    /// Validates a write at once, and either executes it or defers it until the call's commit.
    fn change(&mut self, name: &str, path: &str, content: &[u8], append: bool) -> Result<(), WorkspaceError> {
        let reach = self.access.workspace(name)?;
        let change = FileWrite::new(path, content, append)?;
        if self.effect == Effect::Read {
            return Err(WorkspaceError::Denied("this tool is read-only".to_owned()));
        }
        if !reach.info.may_write(&change.path) {
            let offered = &reach.workspace.info;
            let asked = self.access.asks_to_write();
            return Err(WorkspaceError::Denied(not_allowed(&change.path, offered, asked)));
        }
        if self.effect == Effect::Run {
            self.side_effects.begin();
            self.prefetcher.forget();
            return reach.workspace.tree.apply(&change);
        }
        let held: usize = self
            .deferred_writes
            .iter()
            .map(|held| held.change.content.len())
            .sum();
        if held + content.len() > MAX_HELD_BACK || self.deferred_writes.len() == MAX_FILES {
            return Err(WorkspaceError::TooLarge(format!(
                "one call can write at most {MAX_FILES} files and {MAX_HELD_BACK} bytes"
            )));
        }
        self.side_effects.begin();
        self.deferred_writes.push(DeferredWrite {
            workspace: reach.workspace.clone(),
            change,
        });
        Ok(())
    }
}

/// Refusal with the configuration line that would allow the write, if there is one.
fn not_allowed(path: &str, offered: &WorkspaceInfo, asked: &[String]) -> String {
    let asks = |prefix: &&String| {
        let only = WorkspaceInfo {
            write_prefixes: vec![(*prefix).clone()],
            ..WorkspaceInfo::default()
        };
        only.may_write(path)
    };
    let shown = path.escape_debug();
    let Some(prefix) = asked.iter().find(asks) else {
        return format!("`{shown}` is not below a path that the pack's manifest asks to write");
    };
    // A request for everything needs only the folder of this file.
    let least = match (prefix.trim_start_matches("./"), path.split_once('/')) {
        ("" | ".", Some((folder, _))) => format!("{folder}/"),
        ("" | ".", None) => path.to_owned(),
        (prefix, _) => prefix.to_owned(),
    };
    // A prefix that means a file replaces the folder instead of being added.
    let kept = offered.write_prefixes.iter();
    let kept = kept.filter(|prefix| format!("{prefix}/") != least);
    let all = kept.chain([&least]);
    let all: Vec<String> = all.map(|prefix| format!("{prefix:?}")).collect();
    format!(
        "`{shown}` may not be written; to allow it, set `write = [{}]` in [workspaces.{}]",
        all.join(", "),
        offered.name
    )
}

impl workspace::Host for View<'_> {
    fn names(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.access.names())
    }

    fn describe(&mut self, name: String) -> Result<Description, WorkspaceError> {
        let info = &self.access.workspace(&name)?.info;
        Ok(Description {
            name: info.name.clone(),
            write_prefixes: info.write_prefixes.clone(),
            git: info.git.map(|access| match access {
                GitAccess::Read => component::GitAccess::Read,
                GitAccess::Write => component::GitAccess::Write,
            }),
            tests: info
                .tests
                .iter()
                .map(|test| TestCommand {
                    name: test.name.clone(),
                    argv: test.argv.clone(),
                })
                .collect(),
        })
    }

    fn list(
        &mut self,
        name: String,
        directory: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Vec<Entry>, WorkspaceError> {
        let reach = self.access.workspace(&name)?;
        let entries = match after {
            None => self
                .prefetcher
                .list(&reach.workspace, directory, limit, self.deadline)?,
            after => {
                let go_on = || !self.deadline.is_over();
                let tree = &reach.workspace.tree;
                tree.list_while(&directory, after.as_deref(), limit, &go_on)?
            }
        };
        Ok(entries.into_iter().map(entry).collect())
    }

    fn list_unless(
        &mut self,
        name: String,
        directory: String,
        known: Option<u64>,
        limit: u32,
    ) -> Result<Option<WireListing>, WorkspaceError> {
        let reach = self.access.workspace(&name)?;
        let listed = self
            .prefetcher
            .list_unless(&reach.workspace, directory, known, limit, self.deadline)?;
        Ok(listed.map(|listing| WireListing {
            entries: listing.entries.into_iter().map(entry).collect(),
            fingerprint: listing.fingerprint,
        }))
    }

    fn stat(&mut self, name: String, path: String) -> Result<Entry, WorkspaceError> {
        let reach = self.access.workspace(&name)?;
        reach.workspace.tree.stat(&path).map(entry)
    }

    fn read(
        &mut self,
        name: String,
        path: String,
        offset: u64,
        limit: u32,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let reach = self.access.workspace(&name)?;
        match offset {
            0 => self.prefetcher.read(&reach.workspace, path, limit, self.deadline),
            _ => reach.workspace.tree.read(&path, offset, limit),
        }
    }

    fn read_ahead(&mut self, name: String, next: Vec<WireUpcoming>) -> wasmtime::Result<()> {
        // Unreachable workspaces are refused when the request is made.
        if let Ok(reach) = self.access.workspace(&name) {
            let next = next.into_iter().map(|upcoming| match upcoming {
                WireUpcoming::List((directory, limit)) => PrefetchRequest::List(directory, limit),
                WireUpcoming::ListUnless((directory, known, limit)) => {
                    PrefetchRequest::ListUnless(directory, known, limit)
                }
                WireUpcoming::Read((path, limit)) => PrefetchRequest::Read(path, limit),
            });
            self.prefetcher.expect(&reach.workspace, next);
        }
        Ok(())
    }

    fn write(&mut self, name: String, path: String, content: Vec<u8>) -> Result<(), WorkspaceError> {
        self.change(&name, &path, &content, false)
    }

    fn append(&mut self, name: String, path: String, content: Vec<u8>) -> Result<(), WorkspaceError> {
        self.change(&name, &path, &content, true)
    }

    fn convert_error(&mut self, err: WorkspaceError) -> wasmtime::Result<Error> {
        // An aborted read adds nothing for a guest whose time is up.
        if self.deadline.is_over() {
            return Err(Trap::Interrupt.into());
        }
        Ok(match err {
            WorkspaceError::Unknown(name) => Error::UnknownWorkspace(name),
            WorkspaceError::Denied(why) => Error::Denied(why),
            WorkspaceError::NotFound(path) => Error::NotFound(path),
            WorkspaceError::WrongKind(why) => Error::WrongKind(why),
            WorkspaceError::TooLarge(why) => Error::TooLarge(why),
            WorkspaceError::Unwritable(why) => Error::Unwritable(why),
            WorkspaceError::Internal => Error::Internal,
        })
    }
}

fn entry(entry: FileEntry) -> Entry {
    Entry {
        path: entry.path,
        kind: match entry.kind {
            FileKind::File => Kind::File,
            FileKind::Directory => Kind::Directory,
            FileKind::Symlink => Kind::Symlink,
            FileKind::Other => Kind::Other,
            FileKind::Unnameable => Kind::Unnameable,
        },
        size: entry.size,
        modified: entry.modified_ms,
    }
}

struct HasView;

impl HasData for HasView {
    type Data<'a> = View<'a>;
}

pub(crate) fn add_to_linker<T: 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> wasmtime::Result<()> {
    workspace::add_to_linker::<_, HasView>(linker, view)
}
