//! Reads the work tree of a workspace with Git, within bounds.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_sdk::{Command, Ending, FileKind, Outcome, ToolError, Workspace, WorkspaceError};

use crate::error;
use crate::git::{self, Change, Diff, FileStat, RepoPath, parse_diff, parse_numstat, parse_status};
use crate::mutation::Mutation;

/// Time limit of one Git command.
const GIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Size limit of one output. A work tree that needs more is refused, or its symbols are left out.
const MAX_OUTPUT: u32 = 1 << 20;
/// Most files that one command hashes.
const HASHED_AT_ONCE: usize = 2_000;
/// Most untracked files whose lines are counted, and their largest size.
const COUNTED_FILES: usize = 10_000;
const COUNTED_BYTES: u64 = 256 << 10;
/// Most unreadable files before the call fails.
const MAX_UNREADABLE: usize = 20;

/// Placeholders for the content of unreadable files, nested repositories and links unknown to Git.
const UNREADABLE: &str = "unreadable";
const FOLDER: &str = "folder";

/// A work tree as it is now.
#[derive(Debug)]
pub(crate) struct WorkTree {
    /// Hash of the base commit, absent before the first.
    pub head: Option<String>,
    /// Difference from the base commit.
    pub mutation: Mutation,
    /// True if symbols were left out because the difference is too large to read.
    pub symbols_left_out: bool,
    /// Number of untracked files whose lines are not counted, because they are too large or too many.
    pub uncounted: u64,
}

/// Reads the work tree of a workspace.
pub(crate) fn read(workspace: &Workspace<'_>) -> Result<WorkTree, ToolError> {
    let git = Git::open(workspace)?;
    let head = git.revision("HEAD")?;
    let tree = match &head {
        Some(_) => git.revision("HEAD^{tree}")?.unwrap_or_default(),
        None => String::new(),
    };
    let base = if head.is_some() {
        tree.as_str()
    } else {
        git.empty_tree
    };
    let mut changes = git.status()?;
    let stats = git.list("diff", &["--numstat", "-z", "--no-renames", base, "--", "."])?;
    let stats = parse_numstat(&stats).entries;
    let diff = git.diff(base)?;
    git.add_contents(&mut changes, base)?;
    let mut stats: Vec<FileStat> = stats.into_iter().filter_map(|stat| git.below(stat)).collect();
    let (new_lines, uncounted) = git.new_lines(&changes);
    stats.extend(new_lines);
    let symbols: Vec<git::Symbol> = diff
        .iter()
        .flat_map(|diff| diff.symbols.iter().cloned())
        .filter_map(|mut symbol| {
            symbol.path = symbol.path.below(git.prefix.as_bytes())?;
            Some(symbol)
        })
        .collect();
    Ok(WorkTree {
        mutation: Mutation::new(&changes, &stats, &symbols).on(&tree),
        head,
        symbols_left_out: diff.is_none(),
        uncounted,
    })
}

/// Folder of a workspace, if Git is allowed and knows it.
pub(crate) fn root(workspace: &Workspace<'_>) -> Option<String> {
    workspace.info().git?;
    Git::open(workspace).ok().map(|git| git.top)
}

struct Git<'a> {
    workspace: &'a Workspace<'a>,
    /// Top folder of the repository.
    top: String,
    /// Folder of the workspace in the repository: empty, or with a trailing slash.
    prefix: String,
    empty_tree: &'static str,
}

impl<'a> Git<'a> {
    fn open(workspace: &'a Workspace<'a>) -> Result<Git<'a>, ToolError> {
        if workspace.info().git.is_none() {
            return Err(error::git_not_allowed(workspace.name()));
        }
        let mut git = Git {
            workspace,
            top: String::new(),
            prefix: String::new(),
            empty_tree: "",
        };
        let about = [
            "--is-inside-work-tree",
            "--show-object-format",
            "--show-prefix",
            "--show-toplevel",
        ];
        let outcome = git.run("rev-parse", &about, Vec::new())?;
        let said = String::from_utf8_lossy(&outcome.stdout.bytes);
        let mut lines = said.splitn(4, '\n');
        let is_work_tree = outcome.succeeded() && lines.next() == Some("true");
        let (Some(format), Some(prefix), Some(top), true) =
            (lines.next(), lines.next(), lines.next(), is_work_tree)
        else {
            return Err(error::not_a_repository(workspace.name(), &outcome));
        };
        git.empty_tree = match format {
            "sha256" => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
            _ => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        };
        (git.prefix, git.top) = (prefix.to_owned(), top.trim_end_matches('\n').to_owned());
        Ok(git)
    }

    /// Hash of a revision, `None` if it does not exist.
    fn revision(&self, name: &str) -> Result<Option<String>, ToolError> {
        let outcome = self.run("rev-parse", &["--verify", "--quiet", name], Vec::new())?;
        let hash = String::from_utf8_lossy(&outcome.stdout.bytes).trim().to_owned();
        Ok((outcome.succeeded() && !hash.is_empty()).then_some(hash))
    }

    fn status(&self) -> Result<Vec<Change>, ToolError> {
        let arguments = [
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--",
            ".",
        ];
        let listing = parse_status(&self.list("status", &arguments)?);
        if !listing.complete {
            return Err(error::too_many_changes(self.workspace.name()));
        }
        let below = listing.entries.into_iter().filter_map(|mut change| {
            change.path = change.path.below(self.prefix.as_bytes())?;
            Some(change)
        });
        Ok(below.collect())
    }

    /// The difference as text, unless it is too large to read.
    fn diff(&self, base: &str) -> Result<Option<Diff>, ToolError> {
        let outcome = self.run(
            "diff",
            &[&PATCH_OPTIONS[..], &[base, "--", "."]].concat(),
            Vec::new(),
        )?;
        self.check(&outcome)?;
        if outcome.stdout.is_cut() {
            return Ok(None);
        }
        Ok(Some(parse_diff(&outcome.stdout.bytes)).filter(|diff| diff.complete))
    }

    /// Hashes what Git has not hashed yet.
    fn add_contents(&self, changes: &mut [Change], base: &str) -> Result<(), ToolError> {
        let special = self.special(changes, base)?;
        let mut plain = Vec::new();
        for change in changes.iter_mut().filter(|change| change.needs_content()) {
            change.content = match special.get(&change.path) {
                Some(content) => Some(content.clone()),
                None => self.by_kind(change),
            };
            if change.content.is_none() {
                plain.push(change);
            }
        }
        let paths: Vec<String> = plain.iter().map(|change| change.path.quoted()).collect();
        let mut hashes = Vec::with_capacity(paths.len());
        for paths in paths.chunks(HASHED_AT_ONCE) {
            self.hash(paths, &mut hashes)?;
        }
        for (change, hash) in plain.into_iter().zip(hashes) {
            change.content = Some(hash);
        }
        Ok(())
    }

    /// Contents of links and submodules, which are not files to hash.
    fn special(&self, changes: &[Change], base: &str) -> Result<BTreeMap<RepoPath, String>, ToolError> {
        let paths: Vec<&str> = changes
            .iter()
            .filter(|change| change.needs_content() && (change.is_submodule() || change.is_link()))
            .filter(|change| change.path.is_utf8())
            .map(|change| change.path.as_str())
            .collect();
        let mut contents = BTreeMap::new();
        for paths in paths.chunks(100) {
            let command = [&PATCH_OPTIONS[..], &["--full-index", base, "--"], paths].concat();
            let output = self.list("diff", &command)?;
            for (path, content) in parse_diff(&output).contents() {
                contents.extend(path.below(self.prefix.as_bytes()).map(|path| (path, content)));
            }
        }
        Ok(contents)
    }

    /// Placeholder for the content of a path that is not a regular file.
    fn by_kind(&self, change: &Change) -> Option<String> {
        if change.path.as_str().ends_with('/') {
            return Some(FOLDER.to_owned());
        }
        if !change.path.is_utf8() {
            return None;
        }
        match self.workspace.stat(change.path.as_str()) {
            Ok(entry) if entry.kind == FileKind::File => None,
            // Git would hash the target of a link, wherever the target is.
            Ok(entry) => Some(format!("{:?} {}", entry.kind, entry.size)),
            Err(WorkspaceError::NotFound(_)) => Some(UNREADABLE.to_owned()),
            Err(_) => None,
        }
    }

    /// Hashes files. An unreadable file gets a placeholder.
    fn hash(&self, paths: &[String], hashes: &mut Vec<String>) -> Result<(), ToolError> {
        let mut unreadable = 0;
        let mut rest = paths;
        while !rest.is_empty() {
            let input = rest.iter().flat_map(|path| [path.as_bytes(), b"\n"].concat());
            let outcome = self.run("hash-object", &["--stdin-paths"], input.collect())?;
            let said = String::from_utf8_lossy(&outcome.stdout.bytes);
            let found = said.lines().take(rest.len()).map(str::to_owned);
            let before = hashes.len();
            hashes.extend(found);
            let read = hashes.len().saturating_sub(before);
            rest = rest.get(read..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            if matches!(outcome.ending, Ending::TimedOut) || unreadable == MAX_UNREADABLE {
                return Err(error::unreadable(self.workspace.name(), rest.first()));
            }
            unreadable += 1;
            hashes.push(UNREADABLE.to_owned());
            rest = rest.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// Counts the lines of untracked files. Returns the number of files that are left out as well.
    fn new_lines(&self, changes: &[Change]) -> (Vec<FileStat>, u64) {
        let untracked = changes
            .iter()
            .filter(|change| change.status == git::Status::Untracked);
        let total = untracked.clone().count();
        let counted: Vec<FileStat> = untracked
            .filter(|change| change.path.is_utf8())
            .take(COUNTED_FILES)
            .filter_map(|change| {
                let entry = self.workspace.stat(change.path.as_str()).ok()?;
                if entry.kind != FileKind::File || entry.size > COUNTED_BYTES {
                    return None;
                }
                let limit = usize::try_from(COUNTED_BYTES).unwrap_or(usize::MAX);
                let content = self.workspace.read(change.path.as_str(), limit).ok()?;
                Some(FileStat::of_new_file(change.path.clone(), &content))
            })
            .collect();
        let left_out = u64::try_from(total.saturating_sub(counted.len())).unwrap_or(u64::MAX);
        (counted, left_out)
    }

    fn below(&self, mut stat: FileStat) -> Option<FileStat> {
        stat.path = stat.path.below(self.prefix.as_bytes())?;
        Some(stat)
    }

    /// Complete output of a command that must succeed.
    fn list(&self, subcommand: &str, arguments: &[&str]) -> Result<Vec<u8>, ToolError> {
        let outcome = self.run(subcommand, arguments, Vec::new())?;
        self.check(&outcome)?;
        if outcome.stdout.is_cut() {
            return Err(error::too_many_changes(self.workspace.name()));
        }
        Ok(outcome.stdout.bytes)
    }

    fn check(&self, outcome: &Outcome) -> Result<(), ToolError> {
        match outcome.ending {
            Ending::Exited(0) => Ok(()),
            Ending::TimedOut => Err(error::git_too_slow(self.workspace.name())),
            _ => Err(error::git_failed(self.workspace.name(), outcome)),
        }
    }

    fn run(&self, subcommand: &str, arguments: &[&str], stdin: Vec<u8>) -> Result<Outcome, ToolError> {
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
            .stdin(stdin)
            .timeout(GIT_TIMEOUT)
            .output_limit(MAX_OUTPUT);
        Ok(self.workspace.run(&command)?)
    }
}

/// Options that make a textual diff independent of the user's configuration.
const PATCH_OPTIONS: [&str; 5] = [
    "--no-renames",
    "--no-color",
    "--unified=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];
