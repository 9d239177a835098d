//! Readers of Git's output, in the forms that end entries with NUL.
//!
//! Run Git with `--no-optional-locks -c core.quotePath=off`, so that no configuration of the user changes the
//! output. Renames are read as well, whether Git was asked for them or not.

mod lists;
mod path;
mod status;

pub use lists::{FileStat, NameStatus, parse_name_status, parse_numstat, parse_paths};
pub use path::RepoPath;
pub use status::{Head, Kind, StatusEntry, parse_status};

/// The most entries of one output that are read.
pub const MAX_ENTRIES: usize = 100_000;

/// The entries of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<T> {
    /// The entries, in the order of Git.
    pub entries: Vec<T>,
    /// Nothing was cut off, malformed, or beyond [`MAX_ENTRIES`].
    pub complete: bool,
}

/// Bytes of Git that are not a path as text, in the form of a [`RepoPath`].
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    RepoPath::from_bytes(bytes).into()
}

/// The lines of an output as text.
pub fn lines(output: &[u8]) -> impl Iterator<Item = String> {
    let lines = output.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.is_empty()).map(text)
}

/// Entries that end with NUL, one after the other.
#[derive(Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
    count: usize,
    complete: bool,
}

impl<'a> Entries<'a> {
    /// The entries of an output.
    #[must_use]
    pub const fn new(output: &'a [u8]) -> Entries<'a> {
        Entries {
            rest: output,
            count: 0,
            complete: true,
        }
    }

    /// The next entry. Without the NUL at its end it was cut off.
    #[allow(
        clippy::should_implement_trait,
        reason = "readers take entries from within `read`"
    )]
    pub fn next(&mut self) -> Option<&'a [u8]> {
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

    /// Reads every entry with `read`, which may take more entries. What it cannot read is left out.
    pub fn read<T>(
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

/// Splits the fields before a path, which are separated by blanks, from the path.
#[must_use]
pub fn fields<const N: usize>(entry: &[u8]) -> Option<([&str; N], &[u8])> {
    let mut parts = entry.splitn(N.checked_add(1)?, |byte| *byte == b' ');
    let mut fields = [""; N];
    for field in &mut fields {
        *field = std::str::from_utf8(parts.next()?).ok()?;
    }
    let path = parts.next().filter(|path| !path.is_empty())?;
    Some((fields, path))
}

/// A mode, which Git writes in octal.
#[must_use]
pub fn mode(octal: &str) -> Option<u32> {
    u32::from_str_radix(octal, 8).ok()
}

/// A hash. Git writes zeros for one that it did not compute.
#[must_use]
pub fn hash(hash: &str) -> Option<String> {
    hash.bytes().any(|byte| byte != b'0').then(|| hash.to_owned())
}
