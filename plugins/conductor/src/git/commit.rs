//! Facts about the commit that a submission names.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_kit::git::text;

use super::Git;
use crate::error::GitFault;
use crate::gate::known::{Commit, CommitFacts};
use crate::store::job::Baseline;

impl Git<'_> {
    /// Facts about a submitted commit, compared with the state when the step began.
    pub(crate) fn commit_facts(
        &self,
        name: &str,
        since: Option<&Baseline>,
        head: Option<&str>,
    ) -> Result<CommitFacts, GitFault> {
        let Some(hash) = self.commit(name)? else {
            return Ok(CommitFacts::default());
        };
        let base = match since {
            Some(baseline) => baseline.commit.as_deref(),
            None => head,
        };
        let is_old = match (since, base) {
            (Some(_), Some(base)) => self.is_ancestor(&hash, base)?,
            _ => false,
        };
        let standing = match () {
            () if !self.is_ancestor(&hash, "HEAD")? => Commit::Elsewhere,
            () if is_old => Commit::Old,
            () => Commit::New,
        };
        let listed = self.touched(&hash, base)?;
        let is_undone = standing == Commit::New && self.is_undone(&listed, base)?;
        let printed = self.beginning_of_text(&["log", "--max-count=1", "--format=%B", &hash]);
        let printed = printed.unwrap_or_default();
        Ok(CommitFacts {
            is_empty: listed.is_empty(),
            is_undone,
            files: listed,
            message: text(printed.trim_ascii()),
            standing,
            hash,
        })
    }

    /// Checks whether HEAD has all of these paths as a commit before it.
    fn is_undone(&self, paths: &[String], base: Option<&str>) -> Result<bool, GitFault> {
        let paths: BTreeSet<&String> = paths.iter().collect();
        let before = match base {
            Some(base) => self.blobs(base, paths.clone())?,
            None => BTreeMap::new(),
        };
        Ok(!paths.is_empty() && self.blobs("HEAD", paths)? == before)
    }
}
