//! Files of the work tree that a git command writes, limited to the operator's prefixes.
//!
//! Git could turn a prefix into another place: a link or a submodule in a commit can replace a directory. So
//! git is asked for the names and kinds of the files it would write, and the prefixes themselves are checked
//! without following links, before a command and after it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::GitCommand;
use crate::workspace::covers;
use crate::{Ending, Outcome, ProcessError};

/// Files that git writes in the work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeWrites {
    /// No file.
    Nothing,
    /// Files below these paths, from the index or a revision.
    Below(Vec<String>),
    /// Files that differ between HEAD and a revision.
    To(String),
    /// Any file.
    Anything,
}

/// Limits of git's writes in one workspace.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// Directory of the workspace.
    pub tree: &'a Dir,
    /// Path of the workspace below the top of the work tree: empty, or with a trailing slash.
    pub top: &'a str,
    /// Prefixes below which the operator permits writes by packs.
    pub prefixes: &'a [String],
}

/// Runs git with arguments from this module, to read information.
pub type Ask<'a> = &'a mut dyn FnMut(&[String]) -> Result<Outcome, ProcessError>;

/// Kinds of entries that point elsewhere: links and submodules.
const LINK_KINDS: &[&[u8]] = &[b"120000", b"160000"];
/// Kind of a directory entry.
const DIRECTORY_KIND: &[u8] = b"040000";

impl GitCommand {
    /// Refuses a command that would write outside of the prefixes, or replace a prefix by a link.
    pub fn keep_within(&self, bounds: Bounds<'_>, ask: Ask<'_>) -> Result<(), ProcessError> {
        if let (TreeWrites::Below(paths), "rm") = (&self.writes, self.name) {
            self.removes(paths, bounds, ask)?;
        }
        if self.is_free(bounds) {
            return Ok(());
        }
        self.prefixes_stand(bounds)?;
        match &self.writes {
            TreeWrites::Nothing => Ok(()),
            TreeWrites::Below(paths) => self.restores(paths, bounds, ask),
            TreeWrites::To(target) => {
                let commit = self.resolved(target, "commit", ask)?;
                let words = "diff-tree -r --raw -z --abbrev=4 --no-commit-id --no-renames --no-relative \
                             --ignore-submodules=none HEAD";
                let printed = self.told(ask, words, &[&commit], &[])?;
                if printed.stdout.is_cut() {
                    return Err(self.outside("more files than can be checked", bounds));
                }
                let mut fields = printed.stdout.bytes.split(|byte| *byte == 0);
                while let (Some(kinds), Some(name)) = (fields.next(), fields.next()) {
                    self.look_at(after(kinds), name, bounds)?;
                }
                Ok(())
            }
            TreeWrites::Anything => Err(self.outside("any file", bounds)),
        }
    }

    /// Checks the prefixes again, after the command.
    pub fn kept_within(&self, bounds: Bounds<'_>) -> Result<(), ProcessError> {
        match self.is_free(bounds) {
            true => Ok(()),
            false => self.prefixes_stand(bounds),
        }
    }

    /// Checks whether there is nothing to check.
    fn is_free(&self, bounds: Bounds<'_>) -> bool {
        let all = bounds.prefixes.iter().any(|prefix| covers(prefix, "any/path"));
        self.writes == TreeWrites::Nothing || (all && bounds.top.is_empty())
    }

    /// Refuses to remove files behind a link: `git rm` follows links in the middle of a path.
    fn removes(&self, paths: &[String], bounds: Bounds<'_>, ask: Ask<'_>) -> Result<(), ProcessError> {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let listed = self.told(ask, "ls-files -z --full-name", &[], &paths)?;
        if listed.stdout.is_cut() {
            return Err(self.outside("more files than can be checked: pass fewer paths; it", bounds));
        }
        let names = listed.stdout.bytes.split(|byte| *byte == 0);
        let mut directories: Vec<&[u8]> = names
            .filter_map(|name| name.strip_prefix(bounds.top.as_bytes()))
            .filter_map(|name| Some(&name[..name.iter().rposition(|byte| *byte == b'/')?]))
            .collect();
        directories.dedup();
        for directory in directories {
            if let Some(at) = link_in(bounds.tree, directory) {
                return Err(ProcessError::Denied(format!(
                    "`git {}` would remove files behind the link `{}`; `git rm --cached` removes paths from the index only",
                    self.name,
                    at.escape_debug()
                )));
            }
        }
        Ok(())
    }

    /// Checks the files at paths, in the index and in the source revision.
    fn restores(&self, paths: &[String], bounds: Bounds<'_>, ask: Ask<'_>) -> Result<(), ProcessError> {
        let paths: Vec<String> = paths.iter().map(|path| plain(path)).collect();
        if let Some(path) = paths.iter().find(|path| !is_below(path, bounds.prefixes)) {
            return Err(self.outside(path, bounds));
        }
        // Any entry below a prefix stays below it. A path that is a prefix itself may be of any kind.
        let strictly = |path: &&String| {
            let mut prefixes = bounds.prefixes.iter();
            let is_directory = |prefix: &str| prefix.ends_with('/') || covers(prefix, "any/path");
            !path.is_empty() && prefixes.any(|prefix| is_directory(prefix) && covers(prefix, path))
        };
        for path in paths.iter().filter(|path| !strictly(path)) {
            let path = if path.is_empty() { "." } else { path };
            if let Some(source) = &self.source {
                let tree = self.resolved(source, "tree", ask)?;
                let listed = self.told(ask, "ls-tree -z --full-name", &[&tree], &[path])?;
                self.look_at_list(&listed.stdout.bytes, bounds)?;
            }
            let listed = self.told(ask, "ls-files -s -z --full-name", &[], &[path])?;
            let printed = &listed.stdout.bytes;
            // An entry of exactly this path comes before those below it, so the first entries suffice.
            let end = match listed.stdout.is_cut() {
                true => printed.iter().position(|byte| *byte == 0).unwrap_or(0),
                false => printed.len(),
            };
            self.look_at_list(&printed[..end], bounds)?;
        }
        Ok(())
    }

    /// Checks lines with a kind, more fields, a tab, and a name.
    fn look_at_list(&self, printed: &[u8], bounds: Bounds<'_>) -> Result<(), ProcessError> {
        let lines = printed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        for line in lines {
            let tab = line.iter().position(|byte| *byte == b'\t').unwrap_or(line.len());
            let (kind, name) = line.split_at(tab);
            let kind = kind.split(|byte| *byte == b' ').next().unwrap_or_default();
            self.look_at(kind, name.get(1..).unwrap_or_default(), bounds)?;
        }
        Ok(())
    }

    /// Checks one file that git would write: its kind, and its name from the top of the work tree.
    fn look_at(&self, kind: &[u8], name: &[u8], bounds: Bounds<'_>) -> Result<(), ProcessError> {
        let shown = String::from_utf8_lossy(name);
        let inside = std::str::from_utf8(name)
            .ok()
            .and_then(|name| name.strip_prefix(bounds.top));
        if kind == DIRECTORY_KIND && inside.is_some_and(|inside| is_below(inside, bounds.prefixes)) {
            return Ok(());
        }
        let Some(inside) =
            inside.filter(|inside| bounds.prefixes.iter().any(|prefix| covers(prefix, inside)))
        else {
            return Err(self.outside(&shown, bounds));
        };
        let is_prefix = bounds.prefixes.iter().any(|prefix| plain(prefix) == inside);
        if is_prefix && LINK_KINDS.contains(&kind) {
            return Err(ProcessError::Denied(format!(
                "`git {}` would create a link or a submodule at {}, a path in the workspace's `write`, so files would be \
                 written elsewhere; use a revision in which this path is a file or a directory",
                self.name,
                shown.escape_debug()
            )));
        }
        Ok(())
    }

    /// Resolves a name to a hash as git does: a branch of exactly that name takes precedence.
    fn resolved(&self, name: &str, kind: &str, ask: Ask<'_>) -> Result<String, ProcessError> {
        // Git expands these to a branch name first, and then searches for that.
        if name == "@" || name.contains("@{") {
            return Err(ProcessError::Denied(format!(
                "`{}` may stand for a branch or tag with another name; where `write` allows only some files, pass the branch \
                 or the commit itself",
                name.escape_debug()
            )));
        }
        let branch = format!("refs/heads/{name}");
        let exact = ask(&self.question("show-ref --verify --hash", &[&branch], None))?;
        let object = match exact.ending {
            Ending::Exited(0) => exact.stdout.text().trim().to_owned(),
            Ending::Exited(1 | 128) => name.to_owned(),
            _ => return Err(self.untold(&exact)),
        };
        let peeled = format!("{object}^{{{kind}}}");
        let words = "rev-parse --verify --quiet --end-of-options";
        let found = ask(&self.question(words, &[&peeled], None))?;
        match found.succeeded() {
            true => Ok(found.stdout.text().trim().to_owned()),
            false => Err(ProcessError::Denied(format!(
                "`git {}` uses `{}`, but there is no {kind} of that name; pass a branch, a tag or a commit",
                self.name,
                name.escape_debug()
            ))),
        }
    }

    /// Output of git for a query.
    fn told(
        &self,
        ask: Ask<'_>,
        words: &str,
        revisions: &[&str],
        paths: &[&str],
    ) -> Result<Outcome, ProcessError> {
        let outcome = ask(&self.question(words, revisions, Some(paths)))?;
        match outcome.succeeded() {
            true => Ok(outcome),
            false => Err(self.untold(&outcome)),
        }
    }

    /// Arguments of git for a query. Options that affect the meaning of names are those of the command.
    fn question(&self, words: &str, revisions: &[&str], paths: Option<&[&str]>) -> Vec<String> {
        let before = self.arguments.iter().take_while(|word| *word != self.name);
        let before = before.filter(|word| *word == "--no-replace-objects").cloned();
        let fixed = ["--no-pager", "--literal-pathspecs"].into_iter();
        before
            .chain(fixed.map(str::to_owned))
            .chain(words.split_whitespace().map(str::to_owned))
            .chain(revisions.iter().map(|&word| word.to_owned()))
            .chain(paths.map(|_| "--".to_owned()))
            .chain(paths.into_iter().flatten().map(|&word| word.to_owned()))
            .collect()
    }

    /// Refuses a prefix that is a link, or is reached through one.
    fn prefixes_stand(&self, bounds: Bounds<'_>) -> Result<(), ProcessError> {
        for prefix in bounds.prefixes {
            let stands = stands(bounds.tree, prefix);
            stands.map_err(|at| {
                ProcessError::Denied(format!(
                    "`git {}` may not write below `{prefix}` of the workspace's `write`: `{}` is a link or not a directory, so \
                     files would be written elsewhere; replace it by a directory",
                    self.name,
                    at.escape_debug()
                ))
            })?;
        }
        Ok(())
    }

    fn untold(&self, outcome: &Outcome) -> ProcessError {
        ProcessError::Denied(format!(
            "`git {}` cannot be checked: the files that it would change cannot be determined: {}",
            self.name,
            outcome.stderr.text().trim()
        ))
    }

    fn outside(&self, path: &str, bounds: Bounds<'_>) -> ProcessError {
        ProcessError::Denied(self.denial(path, bounds))
    }

    fn denial(&self, path: &str, bounds: Bounds<'_>) -> String {
        let prefixes = bounds.prefixes;
        let all = prefixes.iter().any(|prefix| covers(prefix, "any/path"));
        let may = match prefixes {
            [] => "nothing".to_owned(),
            _ if all => format!("only files below {}", bounds.top),
            prefixes => prefixes.join(", "),
        };
        let more = match all {
            true => "to change all of the work tree, register its top as workspace",
            false => "`write = [\".\"]` allows everything",
        };
        format!(
            "`git {}` would write {} in the work tree, but the workspace's `write` allows {may}; {more}",
            self.name,
            path.escape_debug()
        )
    }
}

/// Kind after a change, of `:before after hash hash letter`.
fn after(kinds: &[u8]) -> &[u8] {
    kinds.split(|byte| *byte == b' ').nth(1).unwrap_or_default()
}

/// A path without `.` and double slashes; empty for the workspace itself.
fn plain(path: &str) -> String {
    let names: Vec<&str> = path
        .split('/')
        .filter(|name| !matches!(*name, "" | "."))
        .collect();
    names.join("/")
}

/// Checks whether all entries at a path, or below it, are below a prefix.
fn is_below(path: &str, prefixes: &[String]) -> bool {
    let inside = format!("{path}/any");
    let all = prefixes.iter().any(|prefix| covers(prefix, "any/path"));
    let mut prefixes = prefixes.iter();
    all || !path.is_empty() && prefixes.any(|prefix| covers(prefix, path) || covers(prefix, &inside))
}

/// First link on the way to a directory, including the directory.
fn link_in(tree: &Dir, directory: &[u8]) -> Option<String> {
    let mut dir = tree.try_clone().ok()?;
    for (place, byte) in directory.iter().chain(b"/").enumerate() {
        if *byte != b'/' {
            continue;
        }
        let begin = directory[..place]
            .iter()
            .rposition(|byte| *byte == b'/')
            .map_or(0, |slash| slash + 1);
        let name = Path::new(OsStr::from_bytes(&directory[begin..place]));
        if dir.symlink_metadata(name).ok()?.is_symlink() {
            return Some(String::from_utf8_lossy(&directory[..place]).into_owned());
        }
        // A path that is not a directory contains nothing to remove.
        dir = dir.open_dir_nofollow(name).ok()?;
    }
    None
}

/// Checks that a prefix is a real directory, as far as it exists. The error is the offending path.
fn stands(tree: &Dir, prefix: &str) -> Result<(), String> {
    let plain = plain(prefix);
    let names: Vec<&str> = plain.split('/').filter(|name| !name.is_empty()).collect();
    let mut dir = tree.try_clone().map_err(|_| plain.clone())?;
    for (place, name) in names.iter().enumerate() {
        let at = || names[..=place].join("/");
        let Ok(found) = dir.symlink_metadata(Path::new(name)) else {
            // Missing parts are created as directories and files.
            return Ok(());
        };
        let is_file = place + 1 == names.len() && !prefix.ends_with('/');
        match (found.is_dir(), is_file && found.is_file()) {
            (true, _) => dir = dir.open_dir_nofollow(Path::new(name)).map_err(|_| at())?,
            (false, true) => {}
            (false, false) => return Err(at()),
        }
    }
    Ok(())
}
