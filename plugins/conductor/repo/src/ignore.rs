//! `.gitignore` rules, with Git's own semantics.

use std::path::Path;

use bstr::BStr;
use gix_glob::pattern::Case;
use gix_ignore::{Search, search::Ignore};

/// Rules in force in one directory: those of the repository, then of each directory down to it.
#[derive(Default)]
pub(crate) struct Rules {
    search: Search,
}

impl Rules {
    /// Adds the file at `source`. Its rules apply below its directory and override those added before.
    pub(crate) fn enter(&mut self, source: &str, content: &[u8]) {
        let options = Ignore {
            support_precious: false,
        };
        // The only failure is a source outside of the root, and the root is empty.
        let _ = self
            .search
            .add_patterns_buffer(content, source, Some(Path::new("")), options);
    }

    /// Adds `.git/info/exclude`, whose rules apply everywhere.
    pub(crate) fn exclude(&mut self, content: &[u8]) {
        self.enter("exclude", content);
    }

    /// Number of files in force, to go back to.
    pub(crate) fn depth(&self) -> usize {
        self.search.patterns.len()
    }

    /// Drops the files added since there were `depth`.
    pub(crate) fn leave(&mut self, depth: usize) {
        self.search.patterns.truncate(depth);
    }

    /// Checks whether a path is excluded, given that its directory is not.
    pub(crate) fn excludes(&self, path: &str, is_directory: bool) -> bool {
        let path: &BStr = path.as_bytes().into();
        self.search
            .pattern_matching_relative_path(path, Some(is_directory), Case::Sensitive)
            .is_some_and(|found| !found.pattern.is_negative())
    }
}
