//! Git's knowledge about files, which a walk does not see.

use conductor_repo::snapshot::Taken;
use conductor_repo::stale::Ages;

use super::kept::KeptAges;
use crate::error::GitFault;
use crate::git::Git;

/// Maximum commits read. A file that none of them touched is older than the oldest.
const MAX_COUNT_OPTION: &str = "--max-count=2000";

impl Git<'_> {
    /// Files below the job's repository that are tracked although `.gitignore` excludes them, among the entries
    /// of a walk.
    pub(crate) fn tracked_but_ignored(&self, taken: &Taken) -> Result<Vec<String>, GitFault> {
        let all = ["ls-files", "-z", "--cached", "--full-name"];
        // Git would read every file for this, while all names come out of its index alone.
        let only_ignored = || self.run(&[all.as_slice(), &["--ignored", "--exclude-standard"]].concat());
        let listed = match self.run(&all) {
            Err(GitFault::TooMuch { .. }) => only_ignored()?,
            listed => listed?,
        };
        let names = listed.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        // A file with another name cannot be opened.
        let names = names.filter_map(|name| self.inside_utf8(name));
        let mut paths = taken.excluded_of(names);
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Time of the last commit of each tracked file, unless already known for this HEAD.
    pub(crate) fn ages(&self, known: Option<&KeptAges>, now: i64) -> Result<Option<KeptAges>, GitFault> {
        let Some(commit) = self.head()? else {
            return Ok(None);
        };
        if known.is_some_and(|known| known.commit == commit) {
            return Ok(None);
        }
        let history = self.beginning(&[
            "log",
            "-z",
            "--no-renames",
            MAX_COUNT_OPTION,
            "--format=format:%x01%ct",
            "--name-only",
        ])?;
        let mut ages = self.read_history(&history, now);
        let tracked = self.beginning(&["ls-files", "-z", "--cached", "--full-name"])?;
        let oldest = ages.committed.values().min().copied();
        let tracked = tracked.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        for path in tracked.filter_map(|path| self.inside_utf8(path)) {
            if let Some(oldest) = oldest {
                ages.committed.entry(path.to_owned()).or_insert(oldest);
            }
        }
        Ok(Some(KeptAges { commit, ages }))
    }

    /// Parses `git log -z --format=format:%x01%ct --name-only`, newest commit first.
    fn read_history(&self, history: &[u8], now: i64) -> Ages {
        let mut ages = Ages {
            now,
            ..Ages::default()
        };
        let mut at = now;
        for record in history.split(|byte| *byte == 0) {
            let path = match record.strip_prefix(b"\x01") {
                None => record,
                Some(commit) => {
                    let end = commit.iter().position(|byte| *byte == b'\n');
                    let (seconds, first) = commit.split_at(end.unwrap_or(commit.len()));
                    let seconds = std::str::from_utf8(seconds)
                        .ok()
                        .and_then(|text| text.parse::<i64>().ok());
                    at = seconds.map_or(at, |seconds| seconds.saturating_mul(1_000));
                    first.strip_prefix(b"\n").unwrap_or_default()
                }
            };
            if let Some(path) = self.inside_utf8(path).filter(|path| !path.is_empty()) {
                ages.committed.entry(path.to_owned()).or_insert(at);
            }
        }
        ages
    }
}
