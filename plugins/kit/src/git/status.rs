//! `git status --porcelain=v2 -z`, with and without `--branch`.

use super::{Entries, Listing, RepoPath, fields, hash, mode, text};

/// Commit that the work tree is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Name of the branch. `None` if HEAD is detached, or if Git was not asked.
    pub branch: Option<String>,
    /// Hash of the commit. `None` before the first commit, or if Git was not asked.
    pub commit: Option<String>,
}

/// A path that differs from the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusEntry {
    /// The path.
    pub path: RepoPath,
    /// Kind of difference.
    pub kind: Kind,
    /// Status letter of the index: `M`, `A`, `D` and so on, or `.` if the index has no difference.
    pub staged: char,
    /// Status letter of the work tree, or `.`.
    pub unstaged: char,
    /// Mode of the file in the work tree. 0 means that there is no file, or that Git does not report it.
    pub mode: u32,
    /// Hash of the content in the index, if Git computed one.
    pub content: Option<String>,
}

/// Kind of difference of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Tracked, and not renamed, copied or unmerged.
    Ordinary {
        /// Mode in the commit. 0 means that there is no file.
        head_mode: u32,
    },
    /// Renamed from another path, which no longer exists.
    Renamed(RepoPath),
    /// Copied from another path, which is unchanged.
    Copied(RepoPath),
    /// Unresolved merge conflict.
    Unmerged,
    /// Not tracked by Git.
    Untracked,
}

/// Parses the paths that differ from `HEAD`, and `HEAD` itself. Ignored paths are left out.
#[must_use]
pub fn parse_status(output: &[u8]) -> (Head, Listing<StatusEntry>) {
    let mut head = Head::default();
    let listing = Entries::new(output).read(|entry, rest, all| {
        let entry = match entry.split_at_checked(2)? {
            (b"1 ", entry) => ordinary(entry)?,
            (b"2 ", entry) => renamed(entry, rest.next()?)?,
            (b"u ", entry) => unmerged(entry)?,
            (b"? ", path) => untracked(path),
            (b"# ", header) => {
                head.read(header);
                return Some(());
            }
            (b"! ", _) => return Some(()),
            _ => return None,
        };
        all.push(entry);
        Some(())
    });
    (head, listing)
}

impl Head {
    fn read(&mut self, header: &[u8]) {
        if let Some(branch) = header.strip_prefix(b"branch.head ") {
            self.branch = (branch != b"(detached)").then(|| text(branch));
        } else if let Some(commit) = header.strip_prefix(b"branch.oid ") {
            self.commit = (commit != b"(initial)").then(|| text(commit));
        }
    }
}

/// `<XY> <sub> <mH> <mI> <mW> <hH> <hI> <path>`.
fn ordinary(entry: &[u8]) -> Option<StatusEntry> {
    let ([xy, _, head, _, work_tree, _, index], path) = fields::<7>(entry)?;
    let head_mode = mode(head)?;
    StatusEntry::of(path, Kind::Ordinary { head_mode }, xy, work_tree, hash(index))
}

/// `<XY> <sub> <mH> <mI> <mW> <hH> <hI> <X><score> <path>`, then the path it had.
fn renamed(entry: &[u8], from: &[u8]) -> Option<StatusEntry> {
    let ([xy, _, _, _, work_tree, _, index, score], path) = fields::<8>(entry)?;
    let from = RepoPath::from_bytes(from);
    let kind = match score.starts_with('R') {
        true => Kind::Renamed(from),
        false => Kind::Copied(from),
    };
    StatusEntry::of(path, kind, xy, work_tree, hash(index))
}

/// `<XY> <sub> <m1> <m2> <m3> <mW> <h1> <h2> <h3> <path>`.
fn unmerged(entry: &[u8]) -> Option<StatusEntry> {
    let ([xy, _, _, _, _, work_tree, _, _, _], path) = fields::<9>(entry)?;
    StatusEntry::of(path, Kind::Unmerged, xy, work_tree, None)
}

fn untracked(path: &[u8]) -> StatusEntry {
    StatusEntry {
        path: RepoPath::from_bytes(path),
        kind: Kind::Untracked,
        staged: '.',
        unstaged: '?',
        mode: 0,
        content: None,
    }
}

impl StatusEntry {
    fn of(
        path: &[u8],
        kind: Kind,
        xy: &str,
        work_tree: &str,
        content: Option<String>,
    ) -> Option<StatusEntry> {
        let mut letters = xy.chars();
        Some(StatusEntry {
            path: RepoPath::from_bytes(path),
            kind,
            staged: letters.next()?,
            unstaged: letters.next()?,
            mode: mode(work_tree)?,
            content,
        })
    }
}
