//! What `.gitignore` files exclude, by Git's own rules.

use std::path::Path;

use bstr::BStr;
use gix_glob::pattern::Case;
use gix_ignore::{Search, search::Ignore};

/// The rules in force in one directory: those of the repository, then of each directory down to it.
#[derive(Default)]
pub(crate) struct Rules {
    search: Search,
}

impl Rules {
    /// Adds the file at `source`; its rules hold below its directory and beat those added before.
    pub(crate) fn enter(&mut self, source: &str, content: &[u8]) {
        let options = Ignore {
            support_precious: false,
        };
        // The only failure is a source outside of the root, and the root is empty.
        let _ = self
            .search
            .add_patterns_buffer(content, source, Some(Path::new("")), options);
    }

    /// Adds `.git/info/exclude`, whose rules hold everywhere.
    pub(crate) fn exclude(&mut self, content: &[u8]) {
        self.enter("exclude", content);
    }

    /// How many files are in force, to go back to.
    pub(crate) fn depth(&self) -> usize {
        self.search.patterns.len()
    }

    /// Forgets the files added since there were `depth`.
    pub(crate) fn leave(&mut self, depth: usize) {
        self.search.patterns.truncate(depth);
    }

    /// Whether a path is excluded, its directory not being.
    pub(crate) fn excludes(&self, path: &str, is_directory: bool) -> bool {
        let path: &BStr = path.as_bytes().into();
        self.search
            .pattern_matching_relative_path(path, Some(is_directory), Case::Sensitive)
            .is_some_and(|found| !found.pattern.is_negative())
    }
}
