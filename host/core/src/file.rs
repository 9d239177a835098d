//! Safe reading of files that may have been replaced by a pipe, a device or an endless file.

use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Flag for opening files: opening a pipe without a writer does not block. Regular files are read as without it.
pub const NO_WAIT: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// Reads a text of at most `max` bytes from a file that the operator names. A pipe or a longer file is an error that
/// says so. A folder is an error of the kind [`IsADirectory`](io::ErrorKind::IsADirectory).
#[allow(clippy::disallowed_methods, reason = "the operator names the file")]
pub fn read(path: &Path, max: u64) -> io::Result<(String, Metadata)> {
    let file = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // The null device counts as an empty file, and an endless device as too long.
    if !metadata.is_file() && !metadata.file_type().is_char_device() {
        return Err(io::Error::other("it is a pipe or a device, not a file"));
    }
    let mut text = String::new();
    // A file may grow while it is read.
    file.take(max.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > max {
        let what = format!("it has more than {} KiB", max >> 10);
        return Err(io::Error::other(what));
    }
    Ok((text, metadata))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests make files")]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_the_size_is_refused_at_once() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("short"), "text").unwrap();
        assert_eq!(read(&path("short"), 4).unwrap().0, "text");
        let refused = |name: &str| read(&path(name), 3).unwrap_err().to_string();
        assert_eq!(refused("short"), "it has more than 0 KiB");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(refused("pipe"), "it is a pipe or a device, not a file");
        std::os::unix::fs::symlink("/dev/zero", path("endless")).unwrap();
        assert_eq!(refused("endless"), "it has more than 0 KiB");
        assert_eq!(read(Path::new("/dev/null"), 3).unwrap().0, "");
        let folder = read(place.path(), 3).unwrap_err();
        assert_eq!(folder.kind(), io::ErrorKind::IsADirectory);
        assert_eq!(
            read(&path("gone"), 3).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }
}
