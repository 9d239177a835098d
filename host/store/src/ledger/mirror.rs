//! Mirror of the ledger in files that a person can read: `ledger/YYYY-MM-DD.ndjson` in the data directory, one line
//! for each row, by the day of the call.
//!
//! The files are derived from the ledger and prove nothing. Rows are appended in order after they are committed, by
//! one process at a time. The files themselves record how far they go. Lines that a crash cut off are written again.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use rustix::fs::{FlockOperation, flock};
use serde::Deserialize;
use tollgate_core::file::NO_WAIT;

use crate::data_dir::{DataDir, DataDirError};
use crate::storage::{ExportedRow, Session};

const DIR: &str = "ledger";
const LOCK: &str = "lock";
const FILE_SUFFIX: &str = ".ndjson";
/// Suffix of unfinished files.
const UNFINISHED_SUFFIX: &str = ".new";
/// Rows that are read at once.
const PAGE_ROWS: u32 = 1_000;
/// Bytes at a file's end that are read first to find its last row.
const TAIL_BYTES: u64 = 64 << 10;

/// Mirror of a data directory's ledger.
pub struct Mirror {
    dir: Dir,
    /// Lengths of the files when this process last checked, and the last rows in them.
    seen: Mutex<Option<Seen>>,
}

#[derive(Clone, PartialEq)]
struct Seen {
    lengths: BTreeMap<String, u64>,
    last: i64,
}

/// Result of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Rebuilt {
    /// Rows written.
    pub rows: u64,
    /// Files that contain them.
    pub files: u64,
}

impl Mirror {
    /// Opens the directory of the files.
    pub fn open(data: &DataDir) -> Result<Mirror, DataDirError> {
        Ok(Mirror {
            dir: data.private_dir(DIR)?,
            seen: Mutex::new(None),
        })
    }

    /// Appends the missing rows. Returns their number.
    pub fn catch_up(&self, session: &Session) -> anyhow::Result<u64> {
        let _lock = self.lock()?;
        let mut last = self.position().context("cannot read the mirror's files")?;
        let mut writer = Writer::new(&self.dir, "");
        let mut added = 0;
        loop {
            let rows = session.ledger().export(last, PAGE_ROWS)?;
            let Some(end) = rows.last() else {
                break;
            };
            last = end.seq;
            added += rows.len() as u64;
            writer.write(&rows)?;
        }
        if added > 0 {
            writer.finish()?;
            let lengths = self.lengths()?;
            *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Seen { lengths, last });
        }
        Ok(added)
    }

    /// Rewrites all files from the ledger.
    pub fn rebuild(&self, session: &Session) -> anyhow::Result<Rebuilt> {
        let _lock = self.lock()?;
        let mut writer = Writer::new(&self.dir, UNFINISHED_SUFFIX);
        for (name, _) in self.files(UNFINISHED_SUFFIX)? {
            self.dir.remove_file(&name)?;
        }
        let (mut last, mut rebuilt) = (0, Rebuilt { rows: 0, files: 0 });
        loop {
            let rows = session.ledger().export(last, PAGE_ROWS)?;
            let Some(end) = rows.last() else {
                break;
            };
            last = end.seq;
            rebuilt.rows += rows.len() as u64;
            writer.write(&rows)?;
        }
        writer.finish()?;
        let old = self.lengths()?;
        let new = self.files(UNFINISHED_SUFFIX)?;
        for name in new.keys() {
            self.dir
                .rename(name, &self.dir, name.trim_end_matches(UNFINISHED_SUFFIX))?;
            rebuilt.files += 1;
        }
        for name in old
            .keys()
            .filter(|name| !new.contains_key(&format!("{name}{UNFINISHED_SUFFIX}")))
        {
            self.dir.remove_file(name)?;
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(rebuilt)
    }

    /// Removes the files of days before a time, but never the newest file.
    pub fn forget_before(&self, time: &str) -> anyhow::Result<()> {
        let _lock = self.lock()?;
        let lengths = self.lengths()?;
        let newest = lengths.keys().next_back().cloned();
        for name in lengths.keys() {
            if name.as_str() < day(time) && Some(name) != newest.as_ref() {
                self.dir.remove_file(name)?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600).custom_flags(NO_WAIT);
        let file = self.dir.open_with(LOCK, &options)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// Last row in the files. Removes partial lines that a crash left.
    fn position(&self) -> io::Result<i64> {
        let lengths = self.lengths()?;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(seen) = seen
            && seen.lengths == lengths
        {
            return Ok(seen.last);
        }
        let mut last = 0;
        for (name, length) in lengths {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(true)
                .follow(FollowSymlinks::No)
                .custom_flags(NO_WAIT);
            let mut file = self.dir.open_with(&name, &options)?;
            let (end, seq) = last_row(&mut file, length)?;
            if end < length {
                tracing::warn!(
                    file = name,
                    "the mirror's file ends in the middle of a row; repairing it"
                );
                file.set_len(end)?;
            }
            last = last.max(seq);
        }
        Ok(last)
    }

    fn lengths(&self) -> io::Result<BTreeMap<String, u64>> {
        self.files(FILE_SUFFIX)
    }

    fn files(&self, ending: &str) -> io::Result<BTreeMap<String, u64>> {
        let mut files = BTreeMap::new();
        for entry in self.dir.entries()? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && name.ends_with(ending)
            {
                files.insert(name, entry.metadata()?.len());
            }
        }
        Ok(files)
    }
}

/// Appends rows to the files of their days.
struct Writer<'a> {
    dir: &'a Dir,
    ending: &'static str,
    open: Option<(String, File)>,
}

impl<'a> Writer<'a> {
    fn new(dir: &'a Dir, ending: &'static str) -> Writer<'a> {
        Writer {
            dir,
            ending,
            open: None,
        }
    }

    fn write(&mut self, rows: &[ExportedRow]) -> io::Result<()> {
        for same_day in rows.chunk_by(|one, next| day(&one.timestamp) == day(&next.timestamp)) {
            let lines: String = same_day
                .iter()
                .flat_map(|row| [row.json.as_str(), "\n"])
                .collect();
            if let Some(first) = same_day.first() {
                self.file(day(&first.timestamp))?.write_all(lines.as_bytes())?;
            }
        }
        Ok(())
    }

    /// File of a day. The previous file is on disk by then, so that only the newest can lose its end.
    fn file(&mut self, day: &str) -> io::Result<&mut File> {
        let name = format!("{day}{FILE_SUFFIX}{}", self.ending);
        let open = match self.open.take() {
            Some(open) if open.0 == name => open,
            other => {
                if let Some((_, before)) = other {
                    before.sync_data()?;
                }
                let mut options = OpenOptions::new();
                options
                    .append(true)
                    .create(true)
                    .mode(0o600)
                    .follow(FollowSymlinks::No)
                    .custom_flags(NO_WAIT);
                let file = self.dir.open_with(&name, &options)?;
                (name, file)
            }
        };
        Ok(&mut self.open.insert(open).1)
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((_, file)) => file.sync_data(),
            None => Ok(()),
        }
    }
}

/// Day of a timestamp, as used in file names.
fn day(timestamp: &str) -> &str {
    let is_day = |text: &&str| {
        text.char_indices().all(|(at, c)| match at {
            4 | 7 => c == '-',
            _ => c.is_ascii_digit(),
        })
    };
    timestamp.get(..10).filter(is_day).unwrap_or("0000-00-00")
}

#[derive(Deserialize)]
struct Line {
    seq: i64,
}

/// End of the last complete row in a file, and the row's number. Both are 0 if there is none.
fn last_row(file: &mut File, length: u64) -> io::Result<(u64, i64)> {
    let mut window = TAIL_BYTES;
    loop {
        let start = length.saturating_sub(window);
        file.seek(SeekFrom::Start(start))?;
        let mut tail = Vec::new();
        (&mut *file).take(length - start).read_to_end(&mut tail)?;
        let mut end = tail.len();
        while let Some(newline) = tail
            .get(..end)
            .and_then(|tail| tail.iter().rposition(|byte| *byte == b'\n'))
        {
            let before = tail.get(..newline).unwrap_or_default();
            let line = match before.iter().rposition(|byte| *byte == b'\n') {
                Some(at) => before.get(at + 1..).unwrap_or_default(),
                None if start == 0 => before,
                // The line begins before the part that was read.
                None => break,
            };
            if let Ok(row) = serde_json::from_slice::<Line>(line) {
                return Ok((start + newline as u64 + 1, row.seq));
            }
            end = newline;
        }
        if start == 0 {
            return Ok((0, 0));
        }
        window = window.saturating_mul(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with(content: &[u8]) -> (tempfile::TempDir, File) {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), cap_std::ambient_authority()).unwrap();
        dir.write("f", content).unwrap();
        let file = dir.open("f").unwrap();
        (place, file)
    }

    #[test]
    fn the_last_whole_row_is_found_behind_whatever_a_crash_left() {
        let long = format!("{{\"seq\":4,\"x\":\"{}\"}}\n", "y".repeat(200_000));
        for (content, row) in [
            ("", (0, 0)),
            ("{\"seq\":1}\n", (10, 1)),
            ("{\"seq\":1}\n{\"seq\":2}\n", (20, 2)),
            ("{\"seq\":1}\n{\"se", (10, 1)),
            ("{\"seq\":1}\n\0\0\0\n", (10, 1)),
            ("{\"seq\":1}\n\0\0\0", (10, 1)),
            ("{\"seq\"", (0, 0)),
            (long.as_str(), (long.len() as u64, 4)),
            (&long[..long.len() - 1], (0, 0)),
        ] {
            let (_place, mut file) = file_with(content.as_bytes());
            let found = last_row(&mut file, content.len() as u64).unwrap();
            assert_eq!(found, row, "{:.40}", content);
        }
    }

    #[test]
    fn days_before_the_retention_go_but_not_the_newest() {
        let place = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&DataDir::open(place.path()).unwrap()).unwrap();
        let left = || -> Vec<String> { mirror.lengths().unwrap().into_keys().collect() };
        for day in ["2026-01-01", "2026-02-01", "2026-02-02"] {
            mirror.dir.write(format!("{day}{FILE_SUFFIX}"), "").unwrap();
        }
        mirror.forget_before("2026-02-01T12:00:00.000Z").unwrap();
        assert_eq!(left(), ["2026-02-01.ndjson", "2026-02-02.ndjson"]);
        mirror.forget_before("2026-03-01T12:00:00.000Z").unwrap();
        assert_eq!(left(), ["2026-02-02.ndjson"]);
    }

    #[test]
    fn only_days_name_files() {
        assert_eq!(day("2026-03-01T00:00:00.000Z"), "2026-03-01");
        assert_eq!(day("../../etc/passwd"), "0000-00-00");
        assert_eq!(day("x"), "0000-00-00");
    }
}
