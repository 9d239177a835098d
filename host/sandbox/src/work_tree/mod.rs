//! State of a workspace's work tree, read with Git for the host itself: the files and their contents.
//!
//! A scan costs one `git status`, and one `git hash-object` if files differ that no earlier scan hashed. The sum over
//! the files of a commit is cached, so that only the differences from it are added.

mod change;
mod contents;
mod hidden;
mod in_run;
mod index;
mod lines;
mod links;
mod nested;
mod status;

use std::collections::{BTreeMap, HashSet};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tollgate_core::clock::Clock;
use tollgate_core::deadline::{Cancel, Deadline};
use tollgate_sdk::permit::{self, Permitted};
use tollgate_sdk::{Command, Ending, ProcessError};
use tollgate_store::storage::Sighting;

use crate::git;
use crate::looked::{File, Memory, Sum};
use crate::process::{Job, Launcher, Sink, Stream};
use crate::workspaces::Workspace;
pub use change::{Change, MAX_PATHS};
use contents::{Special, mode_of};
pub use in_run::ChangedInRun;
use status::Difference;

/// Time limit of one scan.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without scans after one that timed out, so that not every call waits for the next.
const RESCAN_INTERVAL: Duration = Duration::from_secs(30);
/// Largest output of one command.
const MAX_OUTPUT: usize = 64 << 20;
/// Most differing files.
const MAX_DIFFERENCES: usize = 50_000;
/// Most differing files whose names and hashes are stored with the state.
const MAX_KEPT: usize = 5_000;
/// Most restarts of a scan because a commit was made during it.
const MAX_ATTEMPTS: usize = 3;
/// Bytes of contents that are kept for each workspace.
const MAX_CONTENTS: usize = 32 << 20;
/// Commits whose sums are kept.
const MAX_COMMITS: usize = 32;

/// Settings that override those by which a repository could make Git take a file for another, or a link for a file.
const EXACT_SETTINGS: [&str; 6] = [
    "-c",
    "core.ignoreCase=false",
    "-c",
    "core.symlinks=true",
    "-c",
    "core.commitGraph=false",
];

const LINK_MODE: &str = "120000";
const SUBMODULE_MODE: &str = "160000";

impl Memory {
    /// Forgets contents that none of these files has, once there are too many.
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

/// A file that differs from the last commit, in a stored state: mode and hash on both sides.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    #[serde(rename = "n")]
    now: Option<(String, String)>,
    #[serde(rename = "h")]
    head: Option<(String, String)>,
}

/// Differing files by path, and the number of those left out.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Differs {
    /// First files in the order of their paths.
    files: BTreeMap<String, Entry>,
    /// Number of files that are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    more: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Differs {
    /// Last known path if files are left out, and their number.
    fn cut(&self) -> (Option<&String>, u64) {
        let last = self.files.last_key_value().map(|(path, _)| path);
        (last.filter(|_| self.more > 0), self.more)
    }
}

/// Scans a workspace's work tree. The error says why that is impossible.
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
        .filter(|since| *since < RESCAN_INTERVAL)
    {
        return Err(format!(
            "Git took longer than {} s in workspace {name}, {} s ago",
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
            let differences = look.differences(head.as_deref(), memory)?;
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
        Err(format!("the repository of workspace {name} keeps changing"))
    }
}

/// Determines the change from one scan to a later one. The error says why that is impossible.
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
        // A file that is no longer tracked is listed twice: as removed, and as untracked.
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

/// Data of earlier scans of a workspace.
fn remembered(workspace: &Workspace) -> MutexGuard<'_, Memory> {
    workspace.looked.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Look<'a> {
    workspace: &'a Workspace,
    launcher: &'a Launcher,
    deadline: Deadline,
}

impl<'a> Look<'a> {
    fn memory(&self) -> MutexGuard<'a, Memory> {
        remembered(self.workspace)
    }

    /// Sum over the files of the workspace in a commit. Zero before the first commit.
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

    /// Differences from the commit below the workspace, with all hashes.
    fn differences(&self, head: Option<&str>, memory: &mut Memory) -> Result<Vec<Difference>, String> {
        let arguments = [
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--ignored=matching",
            "--no-renames",
            "--",
            ".",
        ];
        let (output, prefix) = self.list_below("status", &arguments, Vec::new())?;
        let below = |path: &[u8]| path.strip_prefix(prefix.as_bytes()).map(<[u8]>::to_owned);
        let mut differences = status::parse(&output);
        differences.retain_mut(|found| match below(&found.path) {
            Some(path) => {
                found.path = path;
                true
            }
            None => false,
        });
        let ignored: Vec<Vec<u8>> = status::ignored(&output).filter_map(below).collect();
        self.read_index(&prefix, memory)?;
        self.add_unlisted(&mut differences, memory);
        let special = Special {
            hidden: self.add_hidden(&prefix, &ignored, head, &mut differences, memory)?,
            submodules: self.submodules(&prefix, memory)?,
        };
        if differences.len() > MAX_DIFFERENCES {
            return Err(format!(
                "more than {MAX_DIFFERENCES} files of workspace {} differ from the last commit",
                self.workspace.info.name
            ));
        }
        self.add_hashes(&mut differences, &special, memory)?;
        // A flagged file may be unchanged.
        differences.retain(|found| found.before != found.now);
        Ok(differences)
    }

    fn list(&self, subcommand: &str, arguments: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, String> {
        Ok(self.list_below(subcommand, arguments, stdin)?.0)
    }

    /// Output of a command that must succeed, and the workspace's path below the top of the repository.
    fn list_below(
        &self,
        subcommand: &str,
        arguments: &[&str],
        stdin: Vec<u8>,
    ) -> Result<(Vec<u8>, String), String> {
        let ran = self.git(subcommand, arguments, stdin)?;
        self.succeeded(subcommand, ran)
    }

    /// Output of a command with options that packs may not use.
    fn list_with(&self, subcommand: &str, arguments: &[&str], added: &[&str]) -> Result<Vec<u8>, String> {
        let ran = self.run(subcommand, arguments, added, Vec::new())?;
        Ok(self.succeeded(subcommand, ran)?.0)
    }

    fn succeeded(&self, subcommand: &str, ran: Ran) -> Result<(Vec<u8>, String), String> {
        let (output, ending, prefix) = ran;
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

    fn git(&self, subcommand: &str, arguments: &[&str], stdin: Vec<u8>) -> Result<Ran, String> {
        self.run(subcommand, arguments, &[], stdin)
    }

    /// Runs a command. Options that packs may not use are added after the permission check.
    fn run(
        &self,
        subcommand: &str,
        arguments: &[&str],
        added: &[&str],
        stdin: Vec<u8>,
    ) -> Result<Ran, String> {
        // This subcommand takes no patterns and refuses the option.
        let literal = (subcommand != "check-ignore").then_some("--literal-pathspecs");
        let before = [
            "--no-optional-locks",
            "--no-replace-objects",
            "-c",
            "core.quotePath=off",
        ];
        let command = Command::new("git")
            .args(before.into_iter().chain(literal))
            .args([subcommand])
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
            argv: self.plain(prepared.argv.clone(), subcommand, added),
            variables: prepared.variables.clone(),
            alone: prepared.alone,
            memory: Some(git::MEMORY_BYTES),
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

    /// Arguments without the repository's settings that hide changes, and with further options.
    fn plain(&self, mut argv: Vec<String>, subcommand: &str, added: &[&str]) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let at = argv
            .iter()
            .position(|word| word == subcommand)
            .unwrap_or_default();
        argv.splice(at + 1..at + 1, words(added));
        // File systems without modes report every file as executable.
        let has_modes = self
            .workspace
            .git_index()
            .is_none_or(|index| mode_of(&index) != "100755");
        if has_modes {
            argv.splice(at..at, words(&["-c", "core.fileMode=true"]));
        }
        argv.splice(at..at, words(&EXACT_SETTINGS));
        argv
    }

    fn refused(&self, err: &ProcessError) -> String {
        format!(
            "cannot query Git for workspace {}: {err}",
            self.workspace.info.name
        )
    }
}

/// Output of a command, its end, and the workspace's path below the top of the repository.
type Ran = (Vec<u8>, Ending, String);

/// Complete standard output of a command, up to a limit.
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
