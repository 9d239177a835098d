//! `.gitignore` rules, with Git's own semantics.

use std::borrow::Cow;
use std::path::Path;

use bstr::BStr;
use gix_glob::pattern::Case;
use gix_ignore::{Search, search::Ignore};

use crate::tree::Above;

/// Rules in force in one directory: those of the repository, then of each directory down to it.
#[derive(Default)]
pub(crate) struct Rules {
    search: Search,
    /// Root of the tree relative to the top of its repository, with a slash at its end, or empty.
    prefix: String,
}

impl Rules {
    /// Rules of the directories above a tree.
    pub(crate) fn above(above: &Above) -> Rules {
        let mut rules = Rules {
            prefix: above.prefix.clone(),
            ..Rules::default()
        };
        for (source, content) in &above.files {
            rules.add(source, content);
        }
        rules
    }

    /// Adds the file at `source`. Its rules apply below its directory and override those added before.
    pub(crate) fn enter(&mut self, source: &str, content: &[u8]) {
        let source = self.below_top(source).into_owned();
        self.add(&source, content);
    }

    fn below_top<'p>(&self, path: &'p str) -> Cow<'p, str> {
        match self.prefix.as_str() {
            "" => Cow::Borrowed(path),
            prefix => Cow::Owned(format!("{prefix}{path}")),
        }
    }

    fn add(&mut self, source: &str, content: &[u8]) {
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
        let path = self.below_top(path);
        let path: &BStr = path.as_bytes().into();
        self.search
            .pattern_matching_relative_path(path, Some(is_directory), Case::Sensitive)
            .is_some_and(|found| !found.pattern.is_negative())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_above_a_tree_hold_where_they_were_written_for() {
        let file = |path: &str, content: &str| (path.to_owned(), content.as_bytes().to_vec());
        let mut rules = Rules::above(&Above {
            prefix: "packages/a/".to_owned(),
            files: vec![
                file("exclude", "*.tmp\n"),
                file(".gitignore", "*.log\n/packages/a/out/\n/lib/\n"),
                file("packages/.gitignore", "!keep.log\n/a/src/made.ts\n"),
            ],
        });
        let excluded = |rules: &Rules, path: &str| rules.excludes(path, !path.contains('.'));
        for path in ["x.tmp", "src/x.log", "out", "src/made.ts"] {
            assert!(excluded(&rules, path), "{path}");
        }
        for path in ["keep.log", "src/out", "lib", "made.ts", "a/src/made.ts"] {
            assert!(!excluded(&rules, path), "{path}");
        }
        let depth = rules.depth();
        rules.enter("src/.gitignore", b"!x.log\n/inner.ts\n");
        assert!(!excluded(&rules, "src/x.log") && excluded(&rules, "src/inner.ts"));
        assert!(!excluded(&rules, "inner.ts"));
        rules.leave(depth);
        assert!(excluded(&rules, "src/x.log"));
    }
}
