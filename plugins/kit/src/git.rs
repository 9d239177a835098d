//! Parsers for Git's output, in the formats that end entries with NUL.
//!
//! Run Git with `--no-optional-locks -c core.quotePath=off`, so that the user's configuration does not change the
//! output. Renames are parsed too, whether or not Git was asked to detect them.

mod lists;
mod path;
mod status;

pub use lists::{FileStat, NameStatus, parse_name_status, parse_numstat, parse_paths};
pub use path::RepoPath;
pub use status::{Head, Kind, StatusEntry, parse_status};

/// Maximum number of entries read from one output.
pub const MAX_ENTRIES: usize = 100_000;

/// Entries of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// Entries, in Git's order.
    pub entries: Vec<T>,
    /// True if nothing was cut off, malformed, or beyond [`MAX_ENTRIES`].
    pub complete: bool,
}

/// Text of bytes from Git that are not a path, in the form of a [`RepoPath`].
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    RepoPath::from_bytes(bytes).into()
}

/// The lines of an output as text.
pub fn lines(output: &[u8]) -> impl Iterator<Item = String> {
    let lines = output.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).map(text)
}

/// Iterator over entries that end with NUL.
struct Entries<'a> {
    rest: &'a [u8],
    count: usize,
    complete: bool,
}

impl<'a> Entries<'a> {
    /// The entries of an output.
    const fn new(output: &'a [u8]) -> Entries<'a> {
        Entries {
            rest: output,
            count: 0,
            complete: true,
        }
    }

    /// Next entry. An entry without the NUL at its end was cut off.
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.count = self.count.saturating_add(1);
        let end = self.rest.iter().position(|byte| *byte == 0);
        let Some((entry, rest)) = end
            .filter(|_| self.count <= MAX_ENTRIES)
            .and_then(|end| self.rest.split_at_checked(end))
        else {
            (self.complete, self.rest) = (false, &[]);
            return None;
        };
        self.rest = rest.get(1..).unwrap_or_default();
        Some(entry)
    }

    /// Parses every entry with `read`, which may consume further entries. Unparsable entries are left out.
    fn read<T>(
        mut self,
        mut read: impl FnMut(&'a [u8], &mut Entries<'a>, &mut Vec<T>) -> Option<()>,
    ) -> Listing<T> {
        let mut entries = Vec::new();
        while let Some(entry) = self.next() {
            if read(entry, &mut self, &mut entries).is_none() {
                self.complete = false;
            }
        }
        Listing {
            entries,
            complete: self.complete,
        }
    }
}

/// Splits the blank-separated fields before a path from the path.
fn fields<const N: usize>(entry: &[u8]) -> Option<([&str; N], &[u8])> {
    let mut parts = entry.splitn(N.checked_add(1)?, |byte| *byte == b' ');
    let mut fields = [""; N];
    for field in &mut fields {
        *field = std::str::from_utf8(parts.next()?).ok()?;
    }
    let path = parts.next().filter(|path| !path.is_empty())?;
    Some((fields, path))
}

/// Parses a mode, which Git writes in octal.
fn mode(octal: &str) -> Option<u32> {
    u32::from_str_radix(octal, 8).ok()
}

/// Parses a hash. Git writes zeros for a hash that it did not compute.
#[must_use]
pub fn hash(hash: &str) -> Option<String> {
    hash.bytes().any(|byte| byte != b'0').then(|| hash.to_owned())
}
