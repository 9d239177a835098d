//! Files that Git was told not to look at (`update-index --assume-unchanged` and `--skip-worktree`).

use super::status::{Difference, File};
use super::{Look, Memory, Stamp};

/// A file as the index has it, with a flag that hides it from `git status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flagged {
    path: Vec<u8>,
    file: File,
    /// True if the file may be absent, as files outside of a sparse checkout are.
    is_skipped: bool,
}

/// Flagged files, and the index that they were read from.
#[derive(Debug, Default)]
pub(super) struct Known {
    index: Option<Stamp>,
    files: Vec<Flagged>,
}

impl Look<'_> {
    /// Adds the flagged files, which `git status` leaves out or shows as the index has them. Hashes follow.
    pub(super) fn add_flagged(
        &self,
        prefix: &str,
        differences: &mut Vec<Difference>,
        memory: &mut Memory,
    ) -> Result<(), String> {
        self.read_flags(prefix, memory)?;
        for flagged in &memory.flagged.files {
            let unknown = Some(File {
                mode: String::new(),
                hash: None,
            });
            let listed = differences
                .iter_mut()
                .find(|found| found.path == flagged.path && !found.is_untracked);
            let is_there = self.metadata(&flagged.path).is_ok();
            match listed {
                Some(found) if is_there => found.now = unknown,
                Some(_) => {}
                None if !is_there && flagged.is_skipped => {}
                None => differences.push(Difference {
                    path: flagged.path.clone(),
                    before: Some(flagged.file.clone()),
                    now: unknown.filter(|_| is_there),
                    is_untracked: false,
                }),
            }
        }
        Ok(())
    }

    /// Reads the flags anew if the index was written since.
    fn read_flags(&self, prefix: &str, memory: &mut Memory) -> Result<(), String> {
        let index = self.workspace.git_index().map(|metadata| Stamp::of(&metadata));
        if index.is_some() && memory.flagged.index == index {
            return Ok(());
        }
        let output = self.list("ls-files", &["-v", "-s", "-z", "--full-name"], Vec::new())?;
        memory.flagged = Known {
            files: parse(&output, prefix.as_bytes()),
            index,
        };
        Ok(())
    }
}

/// The flagged entries of `git ls-files -v -s -z`: `tag mode hash stage`, a tab, and the path.
fn parse(output: &[u8], prefix: &[u8]) -> Vec<Flagged> {
    let entries = output.split(|byte| *byte == 0);
    let flagged = entries.filter(|entry| matches!(entry.first(), Some(b'S' | b'a'..=b'z')));
    let read = |entry: &[u8]| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let mut words = std::str::from_utf8(entry.get(..tab)?).ok()?.split(' ');
        let (tag, mode, hash) = (words.next()?, words.next()?, words.next()?);
        Some(Flagged {
            path: entry.get(tab + 1..)?.strip_prefix(prefix)?.to_owned(),
            file: File {
                mode: mode.to_owned(),
                hash: Some(hash.to_owned()),
            },
            is_skipped: tag.eq_ignore_ascii_case("s"),
        })
    };
    flagged.filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flagged_files_are_read() {
        let output = b"H 100644 aa 0\tsrc/plain\0h 100644 bb 0\tsrc/assumed\0S 100755 cc 0\tsrc/skipped\0\
            s 100644 dd 0\tsrc/both\0M 100644 ee 1\tsrc/conflict\0S 100644 ff 0\telsewhere\0S bad\0\0";
        let found: Vec<String> = parse(output, b"src/")
            .iter()
            .map(|found| {
                let path = String::from_utf8_lossy(&found.path);
                format!("{path} {} {}", found.file.mode, found.is_skipped)
            })
            .collect();
        assert_eq!(
            found,
            ["assumed 100644 false", "skipped 100755 true", "both 100644 true"]
        );
    }
}
