//! Reproducible archives: the same files always give the same bytes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, Crc};
use sha2::{Digest as _, Sha256};

/// A file in an archive.
pub(crate) struct Entry {
    /// Path in the archive.
    pub(crate) name: String,
    /// Content.
    pub(crate) bytes: Vec<u8>,
    /// Permissions.
    pub(crate) mode: u32,
}

impl Entry {
    /// A file that is only read.
    pub(crate) fn text(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry {
            name: name.into(),
            bytes: bytes.into(),
            mode: 0o644,
        }
    }

    /// An executable file.
    pub(crate) fn program(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Entry {
        Entry {
            mode: 0o755,
            ..Entry::text(name, bytes)
        }
    }
}

/// A gzipped tar archive, sorted by name, with files that have no owner and no time.
pub(crate) fn tar_gz(mut entries: Vec<Entry>) -> anyhow::Result<Vec<u8>> {
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for entry in &entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(entry.bytes.len() as u64);
        header.set_mode(entry.mode);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, &entry.name, entry.bytes.as_slice())?;
    }
    Ok(archive.into_inner()?.finish()?)
}

/// 1 January 1980 at midnight, the first date that ZIP can represent.
const ZIP_DATE: u16 = 0x21;
/// ZIP version that is needed to read deflated files: 2.0.
const ZIP_VERSION: u16 = 20;
/// Marks the permissions as those of Unix.
const ZIP_UNIX: u16 = 3 << 8;
const ZIP_DEFLATED: u16 = 8;
/// Mode bits of a regular file on Unix.
const REGULAR: u32 = 0o100_000;

/// A ZIP archive in the order of its entries. In a wheel, the last entry is the list of the others.
pub(crate) fn zip(entries: &[Entry]) -> anyhow::Result<Vec<u8>> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let packed = deflated(&entry.bytes)?;
        let header = zip_header(entry, packed.len())?;
        let offset = u32::try_from(archive.len()).context("the archive is larger than 4 GiB")?;
        archive.extend(b"PK\x03\x04");
        archive.extend(&header);
        archive.extend(entry.name.as_bytes());
        archive.extend(packed);
        directory.extend(b"PK\x01\x02");
        directory.extend((ZIP_UNIX | ZIP_VERSION).to_le_bytes());
        directory.extend(&header);
        // No comment, the first disk, no internal attributes.
        directory.extend([0; 6]);
        directory.extend(((REGULAR | entry.mode) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(entry.name.as_bytes());
    }
    let (count, start) = (u16::try_from(entries.len())?, u32::try_from(archive.len())?);
    archive.extend(&directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend(count.to_le_bytes());
    archive.extend(count.to_le_bytes());
    archive.extend(u32::try_from(directory.len())?.to_le_bytes());
    archive.extend(start.to_le_bytes());
    archive.extend([0; 2]);
    Ok(archive)
}

/// Part of an entry's header that is the same in the archive and in its directory.
fn zip_header(entry: &Entry, packed: usize) -> anyhow::Result<Vec<u8>> {
    let mut crc = Crc::new();
    crc.update(&entry.bytes);
    let mut header = Vec::new();
    for short in [ZIP_VERSION, 0, ZIP_DEFLATED, 0, ZIP_DATE] {
        header.extend(short.to_le_bytes());
    }
    for long in [
        crc.sum(),
        u32::try_from(packed)?,
        u32::try_from(entry.bytes.len())?,
    ] {
        header.extend(long.to_le_bytes());
    }
    header.extend(u16::try_from(entry.name.len())?.to_le_bytes());
    // No extra field.
    header.extend(0_u16.to_le_bytes());
    Ok(header)
}

fn deflated(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(bytes)?;
    Ok(deflate.finish()?)
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digits = Sha256::digest(bytes);
    digits.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// List of checksums in the format of `sha256sum --check`.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn checksums(files: &[PathBuf]) -> anyhow::Result<String> {
    let mut lines = Vec::new();
    for file in files {
        let name = file.file_name().map(Path::new).context("a package has a name")?;
        lines.push((name, sha256(&std::fs::read(file)?)));
    }
    lines.sort();
    let lines = lines
        .iter()
        .map(|(name, sum)| format!("{sum}  {}\n", name.display()));
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn entries() -> Vec<Entry> {
        vec![
            Entry::program("b/program", vec![7; 100_000]),
            Entry::text("a/text", "short"),
        ]
    }

    #[test]
    fn a_tar_archive_is_sorted_and_holds_no_time_and_no_owner() {
        let archive = tar_gz(entries()).unwrap();
        let mut other_order = entries();
        other_order.reverse();
        assert_eq!(archive, tar_gz(other_order).unwrap());
        let mut names = Vec::new();
        for entry in tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()))
            .entries()
            .unwrap()
        {
            let mut entry = entry.unwrap();
            let header = entry.header().clone();
            assert_eq!(
                (
                    header.mtime().unwrap(),
                    header.uid().unwrap(),
                    header.gid().unwrap()
                ),
                (0, 0, 0)
            );
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            names.push((
                entry.path().unwrap().display().to_string(),
                header.mode().unwrap(),
                content.len(),
            ));
        }
        assert_eq!(
            names,
            [
                ("a/text".to_owned(), 0o644, 5),
                ("b/program".to_owned(), 0o755, 100_000)
            ]
        );
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "another program reads the archive from a file"
    )]
    fn python_reads_the_zip_archive_with_permissions_and_checksums() {
        let file = std::env::temp_dir().join(format!("xtask-archive-{}.zip", std::process::id()));
        std::fs::write(&file, zip(&entries()).unwrap()).unwrap();
        let script = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
            print([(i.filename, oct(i.external_attr >> 16), i.file_size, i.date_time) for i in z.infolist()])";
        let read = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(&file)
            .output()
            .unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&read.stdout).trim(),
            "[('b/program', '0o100755', 100000, (1980, 1, 1, 0, 0, 0)), ('a/text', '0o100644', 5, (1980, 1, 1, 0, 0, 0))]",
            "{}",
            String::from_utf8_lossy(&read.stderr)
        );
    }
}
