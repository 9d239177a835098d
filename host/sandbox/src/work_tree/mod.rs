//! State of a workspace's work tree, read with Git for the host itself: which files there are and what is in them.
//!
//! A look costs one `git status`, and one `git hash-object` if files differ that no look hashed before. The sum over the
//! files of a commit is kept, so that only what differs from it is added.

mod change;
mod flagged;
mod lines;
mod nested;
mod status;
mod sum;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cap_std::fs::{Metadata, MetadataExt as _};
use serde::{Deserialize, Serialize};
use tollgate_core::clock::Clock;
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_sdk::permit::{self, Permitted};
use tollgate_sdk::{Command, Ending, ProcessError};
use tollgate_store::storage::Sighting;

use crate::process::{Job, Launcher, Sink, Stream};
use crate::view::git;
use crate::workspaces::Workspace;
use change::MAX_FILE;
pub use change::{Change, MAX_PATHS};
use nested::{Folders, Hashes};
use status::{Difference, File};
use sum::Sum;

/// Time limit of one look.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a look after one that took too long, so that each call does not wait for the next.
const PAUSE: Duration = Duration::from_secs(30);
/// Largest output of one command.
const MAX_OUTPUT: usize = 64 << 20;
/// Most files that differ.
const MAX_DIFFERENCES: usize = 50_000;
/// Most files that differ whose names and hashes are kept with the state.
const MAX_KEPT: usize = 5_000;
/// Most files that one command hashes.
const HASHED_AT_ONCE: usize = 1_000;
/// Most files that cannot be read before a look fails.
const MAX_UNREADABLE: usize = 20;
/// Age from which on a file's times say whether it was changed since.
const SETTLED: Duration = Duration::from_secs(2);
/// Times that a look begins anew because a commit was made during it.
const MAX_ATTEMPTS: usize = 3;
/// Bytes of contents that are kept of each workspace.
const MAX_CONTENTS: usize = 32 << 20;
/// Commits whose sums are kept.
const MAX_COMMITS: usize = 32;

const LINK: &str = "120000";
const SUBMODULE: &str = "160000";

/// Data of earlier looks at a workspace, for reuse by later ones.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Sums of commits.
    commits: HashMap<String, Sum>,
    /// Hashes of files that differed when they were last looked at.
    hashes: Hashes,
    /// Contents of files that differ or lately did, by hash, so that the next change of them can be told.
    contents: HashMap<String, Arc<[u8]>>,
    /// Files that Git was told not to look at.
    flagged: flagged::Known,
    /// The latest look that took too long, such as one in which Git waits for a pipe that is named like a file of its own.
    timed_out: Option<Instant>,
}

impl Memory {
    /// Forgets contents that no file of these has, once there are too many.
    fn make_room(&mut self, differences: &[Difference]) {
        let size: usize = self.contents.values().map(|content| content.len()).sum();
        if size <= MAX_CONTENTS {
            return;
        }
        let hashes = differences
            .iter()
            .filter_map(|found| found.now.as_ref()?.hash.as_ref());
        let current: HashSet<&String> = hashes.collect();
        self.contents.retain(|hash, _| current.contains(hash));
    }
}

/// A file that differs from the last commit, as a stored state has it: mode and hash of each.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    #[serde(rename = "n")]
    now: Option<(String, String)>,
    #[serde(rename = "h")]
    head: Option<(String, String)>,
}

/// Files that differ, by path, and how many are left out.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Differs {
    /// The first of them in the order of their paths.
    files: BTreeMap<String, Entry>,
    /// Number of others.
    #[serde(default, skip_serializing_if = "is_zero")]
    more: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Differs {
    /// The last path that is known, if others are left out, and how many are.
    fn cut(&self) -> (Option<&String>, u64) {
        let last = self.files.last_key_value().map(|(path, _)| path);
        (last.filter(|_| self.more > 0), self.more)
    }
}

/// Metadata of a file that changes with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        Stamp {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// True if a later change would show in the times: the clock of the file system has moved on.
    fn is_settled(&self, now: SystemTime) -> bool {
        let newest = self.modified.0.max(self.changed.0);
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let limit = now.saturating_sub(SETTLED).as_secs();
        u64::try_from(newest).is_ok_and(|newest| newest < limit)
    }
}

/// Looks at a workspace's work tree. The error says why nothing is to be seen.
pub fn look(workspace: &Workspace, launcher: &Launcher, clock: &dyn Clock) -> Result<Sighting, String> {
    let name = &workspace.info.name;
    if workspace.info.git.is_none() {
        return Err(format!("workspace {name} has no Git access (git = \"read\")"));
    }
    let look = Look {
        workspace,
        launcher,
        deadline: Deadline::after(LOOK_TIMEOUT, Cancel::default()),
    };
    let mut memory = look.memory();
    if let Some(since) = memory
        .timed_out
        .map(|at| at.elapsed())
        .filter(|since| *since < PAUSE)
    {
        return Err(format!(
            "Git took longer than {} s in workspace {name} {} s ago",
            LOOK_TIMEOUT.as_secs(),
            since.as_secs()
        ));
    }
    let seen = look.sight(&mut memory, clock);
    let is_late = seen.is_err() && look.deadline.is_over();
    memory.timed_out = is_late.then(Instant::now);
    seen
}

impl Look<'_> {
    fn sight(&self, memory: &mut Memory, clock: &dyn Clock) -> Result<Sighting, String> {
        let (look, workspace, name) = (self, self.workspace, &self.workspace.info.name);
        let looked_boot_ms = clock.boot_ms();
        for _ in 0..MAX_ATTEMPTS {
            let head = workspace.git_head();
            let base = look.sum_of(head.as_deref(), memory)?;
            let differences = look.differences(memory)?;
            if workspace.git_head() == head {
                return Ok(Sighting {
                    workspace: name.clone(),
                    state: state(name, base, &differences, |_| true),
                    tracked: state(name, base, &differences, |found| !found.is_untracked),
                    differs: kept(&differences),
                    git_head: head,
                    looked_boot_ms,
                });
            }
        }
        Err(format!("the repository of workspace {name} changes all the time"))
    }
}

/// Tells what changed from one look to a later one. The error says why that cannot be told.
pub fn change(
    workspace: &Workspace,
    launcher: &Launcher,
    before: &Sighting,
    now: &Sighting,
) -> Result<Change, String> {
    let look = Look {
        workspace,
        launcher,
        deadline: Deadline::after(LOOK_TIMEOUT, Cancel::default()),
    };
    change::between(&look, before, now)
}

fn state(workspace: &str, base: Sum, differences: &[Difference], counts: fn(&Difference) -> bool) -> String {
    let mut sum = base;
    for Difference {
        path, before, now, ..
    } in differences.iter().filter(|&found| counts(found))
    {
        if let Some(File {
            mode,
            hash: Some(hash),
        }) = before
        {
            sum.take(path, mode, hash);
        }
        if let Some(File {
            mode,
            hash: Some(hash),
        }) = now
        {
            sum.add(path, mode, hash);
        }
    }
    sum.finish(workspace)
}

/// Differences as a JSON object of paths to modes and hashes. `None` if there are too many.
fn kept(differences: &[Difference]) -> Option<String> {
    let side = |file: &Option<File>| {
        let file = file.as_ref()?;
        Some((file.mode.clone(), file.hash.clone()?))
    };
    let mut all = BTreeMap::new();
    for found in differences {
        let path = String::from_utf8_lossy(&found.path).into_owned();
        // A file that is no longer tracked is listed twice: as removed, and as it is.
        let entry = all.entry(path).or_insert(Entry {
            now: None,
            head: None,
        });
        entry.now = side(&found.now).or(entry.now.take());
        entry.head = side(&found.before).or(entry.head.take());
    }
    let more = all.len().saturating_sub(MAX_KEPT) as u64;
    if more > 0 {
        let limit = all.keys().nth(MAX_KEPT).cloned().unwrap_or_default();
        drop(all.split_off(&limit));
    }
    serde_json::to_string(&Differs { files: all, more }).ok()
}

struct Look<'a> {
    workspace: &'a Workspace,
    launcher: &'a Launcher,
    deadline: Deadline,
}

impl<'a> Look<'a> {
    fn memory(&self) -> MutexGuard<'a, Memory> {
        self.workspace
            .looked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sum over the files of the workspace in a commit. Before the first commit there are none.
    fn sum_of(&self, commit: Option<&str>, memory: &mut Memory) -> Result<Sum, String> {
        let Some(commit) = commit else {
            return Ok(Sum::default());
        };
        if let Some(sum) = memory.commits.get(commit) {
            return Ok(*sum);
        }
        let output = self.list("ls-tree", &["-r", "-z", commit], Vec::new())?;
        let mut sum = Sum::default();
        for (mode, hash, path) in status::parse_tree(&output) {
            sum.add(path, mode, hash);
        }
        if memory.commits.len() >= MAX_COMMITS {
            memory.commits.clear();
        }
        memory.commits.insert(commit.to_owned(), sum);
        Ok(sum)
    }

    /// Differences from the commit, below the workspace, with hashes of everything.
    fn differences(&self, memory: &mut Memory) -> Result<Vec<Difference>, String> {
        let arguments = [
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--",
            ".",
        ];
        let (output, prefix) = self.list_below("status", &arguments, Vec::new())?;
        let mut differences = status::parse(&output);
        differences.retain_mut(|found| match found.path.strip_prefix(prefix.as_bytes()) {
            Some(path) => {
                found.path = path.to_owned();
                true
            }
            None => false,
        });
        self.add_flagged(&prefix, &mut differences, memory)?;
        if differences.len() > MAX_DIFFERENCES {
            return Err(format!(
                "more than {MAX_DIFFERENCES} files of workspace {} differ from the last commit",
                self.workspace.info.name
            ));
        }
        self.add_hashes(&mut differences, memory)?;
        // A flagged file may be as it was.
        differences.retain(|found| found.before != found.now);
        Ok(differences)
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "compared with the times that the file system wrote, which no test fixes"
    )]
    fn add_hashes(&self, differences: &mut [Difference], memory: &mut Memory) -> Result<(), String> {
        let now = SystemTime::now();
        let (mut known, mut unknown) = (HashMap::new(), Vec::new());
        let mut below = HashMap::new();
        let mut folders = Folders {
            before: &memory.hashes,
            known: &mut below,
            deadline: &self.deadline,
            now,
            files: 0,
        };
        for found in differences.iter_mut() {
            let Difference {
                path,
                now: Some(file),
                ..
            } = found
            else {
                continue;
            };
            if file.hash.is_some() {
                continue;
            }
            // A file that went in the meantime has no hash and counts as removed.
            let Ok(metadata) = self.metadata(path) else {
                continue;
            };
            if file.mode.is_empty() {
                file.mode = mode_of(&metadata).to_owned();
            }
            let stamp = Stamp::of(&metadata);
            if let Some((before, hash)) = memory.hashes.get(path.as_slice())
                && *before == stamp
            {
                file.hash = Some(hash.clone());
                known.insert(path.clone(), (stamp, hash.clone()));
            } else if let Some(hash) = self.by_kind(path, file, &metadata, &mut folders)? {
                file.hash = Some(hash);
            } else {
                unknown.push((path.clone(), stamp, file));
            }
        }
        let mut hashes = Vec::with_capacity(unknown.len());
        let paths: Vec<Vec<u8>> = unknown.iter().map(|(path, ..)| quoted(path)).collect();
        for paths in paths.chunks(HASHED_AT_ONCE) {
            self.hash(paths, &mut hashes)?;
        }
        for ((path, stamp, file), hash) in unknown.into_iter().zip(hashes) {
            if stamp.size <= MAX_FILE && !memory.contents.contains_key(&hash) {
                let content = self.workspace.tree.dir().read(OsStr::from_bytes(&path));
                memory
                    .contents
                    .extend(content.ok().map(|content| (hash.clone(), Arc::from(content))));
            }
            if stamp.is_settled(now) {
                known.insert(path, (stamp, hash.clone()));
            }
            file.hash = Some(hash);
        }
        known.extend(below);
        memory.hashes = known;
        memory.make_room(differences);
        Ok(())
    }

    fn metadata(&self, path: &[u8]) -> std::io::Result<Metadata> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        self.workspace
            .tree
            .dir()
            .symlink_metadata(OsStr::from_bytes(path))
    }

    /// Content of what is not a regular file: target of a link, files of a submodule or of a nested repository.
    fn by_kind(
        &self,
        path: &[u8],
        file: &File,
        metadata: &Metadata,
        folders: &mut Folders<'_>,
    ) -> Result<Option<String>, String> {
        let dir = self.workspace.tree.dir();
        let place = path.strip_suffix(b"/").unwrap_or(path);
        let name = OsStr::from_bytes(place);
        if metadata.is_dir() {
            let Ok(below) = dir.open_dir(name) else {
                return Ok(Some("folder".to_owned()));
            };
            let hash = folders.hash(&below, place).map_err(|why| {
                let place =
                    tollgate_core::text::clean(tollgate_core::text::cut(&name.to_string_lossy(), 200));
                format!(
                    "folder {place} of workspace {}, a repository of its own, {why}",
                    self.workspace.info.name
                )
            })?;
            return Ok(Some(hash));
        }
        if file.mode == LINK || metadata.is_symlink() {
            let Ok(target) = dir.read_link_contents(name) else {
                return Ok(Some("link".to_owned()));
            };
            let output = self.list(
                "hash-object",
                &["--stdin"],
                target.as_os_str().as_bytes().to_vec(),
            )?;
            return Ok(Some(String::from_utf8_lossy(&output).trim().to_owned()));
        }
        Ok((!metadata.is_file()).then(|| "special".to_owned()))
    }

    /// Hashes files. One that cannot be read gets a placeholder.
    fn hash(&self, paths: &[Vec<u8>], hashes: &mut Vec<String>) -> Result<(), String> {
        let mut rest = paths;
        let mut unreadable = 0;
        while !rest.is_empty() {
            let input = rest
                .iter()
                .flat_map(|path| [path.as_slice(), b"\n"].concat())
                .collect();
            let (output, ending, _) = self.git("hash-object", &["--stdin-paths"], input)?;
            let said = String::from_utf8_lossy(&output);
            let read = said
                .lines()
                .take(rest.len())
                .map(|line| hashes.push(line.to_owned()))
                .count();
            rest = rest.get(read..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            if matches!(ending, Ending::TimedOut) || unreadable == MAX_UNREADABLE {
                return Err(format!(
                    "changed files of workspace {} cannot be read",
                    self.workspace.info.name
                ));
            }
            unreadable += 1;
            hashes.push("unreadable".to_owned());
            rest = rest.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    fn list(&self, subcommand: &str, arguments: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, String> {
        Ok(self.list_below(subcommand, arguments, stdin)?.0)
    }

    /// Output of a command that must succeed, and the workspace's place below the top of the repository.
    fn list_below(
        &self,
        subcommand: &str,
        arguments: &[&str],
        stdin: Vec<u8>,
    ) -> Result<(Vec<u8>, String), String> {
        let (output, ending, prefix) = self.git(subcommand, arguments, stdin)?;
        match ending {
            Ending::Exited(0) => Ok((output, prefix)),
            Ending::TimedOut => Err(format!(
                "git {subcommand} took longer than {} s in workspace {}",
                LOOK_TIMEOUT.as_secs(),
                self.workspace.info.name
            )),
            _ => Err(format!(
                "git {subcommand} failed in workspace {}",
                self.workspace.info.name
            )),
        }
    }

    fn git(
        &self,
        subcommand: &str,
        arguments: &[&str],
        stdin: Vec<u8>,
    ) -> Result<(Vec<u8>, Ending, String), String> {
        let before = [
            "--no-optional-locks",
            "--literal-pathspecs",
            "-c",
            "core.quotePath=off",
            subcommand,
        ];
        let command = Command::new("git")
            .args(before)
            .args(arguments.iter().copied())
            .stdin(stdin);
        let permitted = permit::command(&self.workspace.info, &[], &command);
        let Ok(Permitted::Git(git)) = permitted else {
            return Err(format!(
                "git {subcommand} is not permitted in workspace {}",
                self.workspace.info.name
            ));
        };
        let prepared = git::prepare(self.workspace, &git, self.launcher, &self.deadline)
            .map_err(|err| self.refused(&err))?
            .map_err(|_| format!("workspace {} is not a Git repository", self.workspace.info.name))?;
        let prefix = prepared.top.clone();
        let mut output = Collected::default();
        let job = Job {
            dir: self.workspace.tree.dir(),
            argv: prepared.argv.clone(),
            variables: prepared.variables.clone(),
            alone: prepared.alone,
            stdin: command.stdin,
            timeout: self.deadline.remaining(),
            output_limit: 0,
        };
        let outcome = self
            .launcher
            .run(job, &self.deadline, &mut output)
            .map_err(|err| self.refused(&err))?;
        if output.is_cut {
            return Err(format!(
                "too much of workspace {} differs from the last commit",
                self.workspace.info.name
            ));
        }
        Ok((output.bytes, outcome.ending, prefix))
    }

    fn refused(&self, err: &ProcessError) -> String {
        format!(
            "Git cannot be asked about workspace {}: {err}",
            self.workspace.info.name
        )
    }
}

/// Mode of a file that Git does not know.
fn mode_of(metadata: &Metadata) -> &'static str {
    match metadata {
        metadata if metadata.is_symlink() => LINK,
        metadata if metadata.is_dir() => SUBMODULE,
        metadata if metadata.mode() & 0o100 != 0 => "100755",
        _ => "100644",
    }
}

/// A path as Git reads it from a list of lines.
fn quoted(path: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..=0x1f | 0x7f);
    if path.iter().all(is_plain) {
        return path.to_owned();
    }
    let mut quoted = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            byte if is_plain(byte) => quoted.push(*byte),
            byte => quoted.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Whole standard output of a command, up to a limit.
#[derive(Default)]
struct Collected {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Sink for Collected {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Err => {}
            Stream::Out if self.bytes.len() + bytes.len() > MAX_OUTPUT => self.is_cut = true,
            Stream::Out => self.bytes.extend_from_slice(bytes),
        }
    }

    fn tick(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_git_would_misread_them() {
        assert_eq!(quoted(b"a b/c.py"), b"a b/c.py");
        assert_eq!(quoted("ä".as_bytes()), "ä".as_bytes());
        assert_eq!(quoted(b"a\"b\\c\nd"), b"\"a\\\"b\\\\c\\012d\"");
    }
}
