//! Change of a work tree from one state to another: paths, line counts, and a unified diff.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;

use serde_json::json;
use tollgate_store::storage::Sighting;

use super::lines::Lines;
use super::{Differs, Entry, Look, SUBMODULE_MODE};

/// Largest file whose lines are compared.
pub(super) const MAX_FILE: u64 = 1 << 20;
/// Size limit of a diff. Files that are left out are named.
const MAX_PATCH: usize = 8 << 20;
/// Most paths in a row of the ledger, and most bytes of the short form.
pub const MAX_PATHS: usize = 500;
const MAX_SHORT: usize = 4 << 10;
/// Git's name for the empty tree.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// A change of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Changed paths with `+`, `~` or `-`.
    pub paths: Vec<(char, String)>,
    /// Lines that were added.
    pub insertions: u64,
    /// Lines that were removed.
    pub deletions: u64,
    /// Files whose lines are not counted: too large, not text, or with content that is no longer available.
    pub uncounted: u64,
    /// Files that were not compared, because too many differ from the last commit.
    pub uncompared: u64,
    /// Unified diff of all files whose lines are counted.
    pub patch: String,
    /// True if the diff lacks files.
    pub patch_is_cut: bool,
}

impl Change {
    /// Changed paths as a JSON array. `unlisted_paths` in the statistics says how many more there are.
    pub fn changed_paths(&self) -> String {
        self.changed_paths_and(&[])
    }

    /// Changed paths, followed by other names, without duplicates.
    pub fn changed_paths_and(&self, names: &[String]) -> String {
        let paths = self.paths.iter().take(MAX_PATHS);
        let mut all: Vec<&str> = paths.map(|(_, path)| path.as_str()).collect();
        let known: HashSet<&str> = all.iter().copied().collect();
        all.extend(
            names
                .iter()
                .map(String::as_str)
                .filter(|name| !known.contains(name)),
        );
        json!(all).to_string()
    }

    /// Statistics as a JSON object. `cut` says that the line counts are incomplete, `uncounted_files` and
    /// `uncompared_files` say why, and `unlisted_paths` is the number of paths past the limit.
    pub fn stats(&self) -> String {
        let mut stats = json!({
            "files_changed": self.paths.len(),
            "insertions": self.insertions,
            "deletions": self.deletions,
        });
        if self.uncounted > 0 {
            stats["cut"] = json!(true);
            stats["uncounted_files"] = json!(self.uncounted);
        }
        if self.uncompared > 0 {
            stats["cut"] = json!(true);
            stats["uncompared_files"] = json!(self.uncompared);
        }
        if self.paths.len() > MAX_PATHS {
            stats["unlisted_paths"] = json!(self.paths.len() - MAX_PATHS);
        }
        stats.to_string()
    }

    /// One line for each path: `+ a.py`, `~ b.rs`, `- c.go`, and the number of further paths.
    pub fn short(&self) -> String {
        let mut short = String::new();
        for (told, (mark, path)) in self.paths.iter().enumerate() {
            let line = format!("{mark} {}\n", tollgate_core::text::visible(path));
            if short.len() + line.len() > MAX_SHORT {
                let _ = write!(short, "and {} more", self.paths.len() - told);
                break;
            }
            short.push_str(&line);
        }
        if self.uncompared > 0 {
            let _ = write!(
                short,
                "\nfiles that were not compared, because too many differ from the last commit: {}",
                self.uncompared
            );
        }
        short.trim().to_owned()
    }
}

/// A file on one side of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Side {
    mode: String,
    hash: String,
    /// True if the file is in the work tree and in no commit.
    is_dirty: bool,
}

/// Change between two scans. The error says why it cannot be determined.
pub(super) fn between(look: &Look<'_>, before: &Sighting, now: &Sighting) -> Result<Change, String> {
    let (old, new) = (differs(before)?, differs(now)?);
    let (old_limit, old_more) = old.cut();
    let (new_limit, new_more) = new.cut();
    // Past the first path that one side left out, the differences are unknown.
    let limit = old_limit.into_iter().chain(new_limit).min();
    let (old, new) = (&old.files, &new.files);
    let is_known = |path: &&String| limit.is_none_or(|limit| *path <= limit);
    let commits = commits(look, before.git_head.as_deref(), now.git_head.as_deref())?;
    let paths = old.keys().chain(new.keys()).chain(commits.keys());
    let paths: BTreeSet<&String> = paths.filter(is_known).collect();
    let mut sides = Vec::new();
    for path in paths {
        let (head_old, head_new) = match (commits.get(path), old.get(path), new.get(path)) {
            (Some((old, new)), _, _) => (old.clone(), new.clone()),
            (None, Some(entry), _) | (None, None, Some(entry)) => (entry.head(), entry.head()),
            (None, None, None) => (None, None),
        };
        let old = old.get(path).map_or(head_old, Entry::now);
        let new = new.get(path).map_or(head_new, Entry::now);
        let is_same = match (&old, &new) {
            (Some(old), Some(new)) => (&old.mode, &old.hash) == (&new.mode, &new.hash),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            sides.push((path.clone(), old, new));
        }
    }
    let mut change = compare(look, sides)?;
    if let Some(limit) = limit {
        let beyond =
            |files: &BTreeMap<String, Entry>| files.keys().filter(|path| *path > limit).count() as u64;
        change.uncompared = (old_more + beyond(old)).max(new_more + beyond(new));
        change.patch_is_cut = true;
    }
    Ok(change)
}

fn differs(seen: &Sighting) -> Result<Differs, String> {
    let kept = seen.differs.as_deref();
    let kept = kept.and_then(|kept| serde_json::from_str(kept).ok());
    kept.ok_or_else(|| "cannot determine the files that differ from the last commit".to_owned())
}

impl Entry {
    fn head(&self) -> Option<Side> {
        side(&self.head, false)
    }

    fn now(&self) -> Option<Side> {
        side(&self.now, true)
    }
}

fn side(file: &Option<(String, String)>, is_dirty: bool) -> Option<Side> {
    let (mode, hash) = file.clone()?;
    Some(Side { mode, hash, is_dirty })
}

/// Both sides of each file, by path.
type Sides = BTreeMap<String, (Option<Side>, Option<Side>)>;

/// Files that differ between two commits, as each commit has them.
fn commits(look: &Look<'_>, old: Option<&str>, new: Option<&str>) -> Result<Sides, String> {
    if old == new {
        return Ok(BTreeMap::new());
    }
    let (old, new) = (old.unwrap_or(EMPTY_TREE), new.unwrap_or(EMPTY_TREE));
    let arguments = ["-r", "-z", "--raw", "--no-renames", "--full-index", old, new];
    let (output, prefix) = look.list_below("diff-tree", &arguments, Vec::new())?;
    let mut entries = output.split(|byte| *byte == 0);
    let mut found = BTreeMap::new();
    while let (Some(entry), Some(path)) = (entries.next(), entries.next()) {
        let entry = String::from_utf8_lossy(entry);
        let mut words = entry.trim_start_matches(':').split(' ');
        let (Some(mode_old), Some(mode_new), Some(hash_old), Some(hash_new)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let side = |mode: &str, hash: &str| {
            (mode != "000000").then(|| Side {
                mode: mode.to_owned(),
                hash: hash.to_owned(),
                is_dirty: false,
            })
        };
        if let Some(path) = path.strip_prefix(prefix.as_bytes()) {
            let path = String::from_utf8_lossy(path).into_owned();
            found.insert(path, (side(mode_old, hash_old), side(mode_new, hash_new)));
        }
    }
    Ok(found)
}

type Changed = (String, Option<Side>, Option<Side>);

fn compare(look: &Look<'_>, sides: Vec<Changed>) -> Result<Change, String> {
    let contents = contents(look, &sides)?;
    let mut change = Change::default();
    for (path, old, new) in sides {
        let mark = match (&old, &new) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        let of = |side: &Option<Side>| match side {
            None => Some(Vec::new()),
            Some(side) => contents.get(&side.hash).cloned(),
        };
        let (before, after) = (of(&old), of(&new));
        change.tell(&path, (&old, &new), before.as_deref().zip(after.as_deref()));
        change.paths.push((mark, path));
    }
    Ok(change)
}

impl Change {
    fn tell(
        &mut self,
        path: &str,
        (old, new): (&Option<Side>, &Option<Side>),
        contents: Option<(&[u8], &[u8])>,
    ) {
        let Some(lines) = contents.and_then(|(old, new)| Lines::of(old, new)) else {
            self.uncounted += 1;
            self.patch_is_cut = true;
            return;
        };
        let (added, removed) = lines.counts();
        self.insertions = self.insertions.saturating_add(added);
        self.deletions = self.deletions.saturating_add(removed);
        let start = self.patch.len();
        let path = path.replace(['\n', '\r'], "\u{fffd}");
        let _ = writeln!(self.patch, "diff --git a/{path} b/{path}");
        let _ = match (old, new) {
            (None, Some(new)) => writeln!(self.patch, "new file mode {}", new.mode),
            (Some(old), None) => writeln!(self.patch, "deleted file mode {}", old.mode),
            (Some(old), Some(new)) if old.mode != new.mode => {
                writeln!(self.patch, "old mode {}\nnew mode {}", old.mode, new.mode)
            }
            _ => Ok(()),
        };
        if added + removed > 0 {
            let name = |side: &Option<Side>, prefix: &str| match side {
                Some(_) => format!("{prefix}/{path}"),
                None => "/dev/null".to_owned(),
            };
            let _ = writeln!(self.patch, "--- {}\n+++ {}", name(old, "a"), name(new, "b"));
            lines.hunks(&mut self.patch);
        }
        if self.patch.len() > MAX_PATCH {
            self.patch.truncate(start);
            self.patch_is_cut = true;
        }
    }
}

/// Contents by hash, as far as available: those of work tree files from scans, all others from the repository.
fn contents(look: &Look<'_>, sides: &[Changed]) -> Result<HashMap<String, Vec<u8>>, String> {
    let mut contents = HashMap::new();
    let mut wanted = BTreeSet::new();
    let memory = look.memory();
    for side in sides.iter().flat_map(|(_, old, new)| [old, new]).flatten() {
        if side.mode == SUBMODULE_MODE {
            continue;
        }
        match memory.contents.get(&side.hash).filter(|_| side.is_dirty) {
            Some(content) => drop(contents.insert(side.hash.clone(), content.to_vec())),
            None => drop(wanted.insert(side.hash.as_str())),
        }
    }
    drop(memory);
    let is_hash = |hash: &&str| hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let wanted: Vec<&str> = wanted.into_iter().filter(is_hash).collect();
    if !wanted.is_empty() {
        let input = wanted
            .iter()
            .flat_map(|hash| [hash, "\n"].concat().into_bytes())
            .collect();
        let output = look.list("cat-file", &["--batch"], input)?;
        blobs(&output, &mut contents);
    }
    Ok(contents)
}

/// Parses `HASH blob SIZE`, a line feed, the content and a line feed, for each object. A missing object has no
/// content.
fn blobs(output: &[u8], contents: &mut HashMap<String, Vec<u8>>) {
    let mut rest = output;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let heading = String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned();
        rest = rest.get(end + 1..).unwrap_or_default();
        let mut words = heading.split(' ');
        let (Some(hash), Some("blob"), Some(size)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(size) = size.parse::<usize>() else { return };
        let Some(content) = rest.get(..size) else { return };
        if size as u64 <= MAX_FILE {
            contents.insert(hash.to_owned(), content.to_owned());
        }
        rest = rest.get(size + 1..).unwrap_or_default();
    }
}
