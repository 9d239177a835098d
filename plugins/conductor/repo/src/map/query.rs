//! Queries on the map.

use std::collections::BTreeSet;

use bstr::ByteSlice as _;
use gix_glob::wildmatch::Mode;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{MapFile, RepoMap};
use crate::path;

/// Maximum and default number of files in one page.
const MAX_PAGE: usize = 200;

/// Filters for files, combined with AND.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// Path, directory or glob with `*`, `**` and `?`.
    pub path: Option<String>,
    /// Keywords that must all occur in path or description, ignoring case.
    pub text: Option<String>,
    /// Only files that import this one.
    pub importers_of: Option<String>,
    /// Only files that this one imports.
    pub imports_of: Option<String>,
    /// Levels of imports to follow for the two above; default 1.
    pub depth: Option<usize>,
    /// Only files after this path.
    pub after: Option<String>,
    /// Maximum number of files.
    pub limit: Option<usize>,
}

/// A page of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Page<'a> {
    /// Files by path.
    pub files: Vec<Found<'a>>,
    /// Total number of matching files.
    pub total: usize,
    /// Value of `after` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<&'a str>,
}

/// A file in a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found<'a> {
    /// Entry of the map.
    #[serde(flatten)]
    pub file: &'a MapFile,
    /// Levels of imports between it and the file in the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<usize>,
}

/// A query that the map cannot answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum QueryError {
    /// A file in the query is not in the map.
    #[error("{} is not in the map", path::show(path))]
    UnknownFile {
        /// The path as given.
        path: String,
        /// Files of the same name.
        meant: Vec<String>,
    },
}

impl RepoMap {
    /// Runs a query.
    pub fn query(&self, query: &Query) -> Result<Page<'_>, QueryError> {
        let depth = query.depth.unwrap_or(1).max(1);
        let mut near: Option<Vec<(usize, usize)>> = None;
        for (asked, inward) in [(&query.importers_of, true), (&query.imports_of, false)] {
            if let Some(asked) = asked {
                let found = self.around(self.known(asked)?, depth, inward);
                near = Some(match near {
                    None => found,
                    Some(near) => near
                        .into_iter()
                        .filter(|(file, _)| found.iter().any(|(at, _)| at == file))
                        .collect(),
                });
            }
        }
        let candidates = near.unwrap_or_else(|| (0..self.files.len()).map(|file| (file, 0)).collect());
        let has_distance = query.importers_of.is_some() || query.imports_of.is_some();
        let found = candidates.into_iter().filter_map(|(at, distance)| {
            let file = self.files.get(at).filter(|file| fits(query, file))?;
            let distance = has_distance.then_some(distance);
            Some(Found { file, distance })
        });
        Ok(page(query, found.collect()))
    }

    fn known(&self, asked: &str) -> Result<usize, QueryError> {
        self.find(asked).ok_or_else(|| {
            let same = self
                .files
                .iter()
                .filter(|file| path::name(&file.path) == path::name(asked));
            QueryError::UnknownFile {
                path: asked.to_owned(),
                meant: same.map(|file| file.path.clone()).take(5).collect(),
            }
        })
    }

    /// Files within some levels of imports of one, each with its distance, by index.
    fn around(&self, start: usize, depth: usize, inward: bool) -> Vec<(usize, usize)> {
        let mut seen = BTreeSet::from([start]);
        let mut found = Vec::new();
        let mut open = vec![start];
        for distance in 1..=depth.min(self.files.len()) {
            let mut next = Vec::new();
            for file in open {
                let near = if inward {
                    self.graph.importers_of(file)
                } else {
                    self.graph.imports_of(file).into_owned()
                };
                next.extend(near.into_iter().filter(|near| seen.insert(*near)));
            }
            found.extend(next.iter().map(|file| (*file, distance)));
            open = next;
        }
        found.sort_unstable();
        found
    }
}

fn fits(query: &Query, file: &MapFile) -> bool {
    let in_path = query.path.as_ref().is_none_or(|wanted| {
        let wanted = wanted.trim_matches('/');
        let below = path::relative(&file.path, wanted).is_some() || file.path == wanted;
        below
            || gix_glob::wildmatch(
                wanted.into(),
                file.path.as_bytes().as_bstr(),
                Mode::NO_MATCH_SLASH_LITERAL,
            )
    });
    let in_text = query.text.as_ref().is_none_or(|text| {
        let description = file.description.as_deref().unwrap_or_default();
        let whole = format!("{} {description}", file.path).to_lowercase();
        text.to_lowercase()
            .split_whitespace()
            .all(|word| whole.contains(word))
    });
    in_path && in_text
}

fn page<'a>(query: &Query, found: Vec<Found<'a>>) -> Page<'a> {
    let total = found.len();
    let limit = query.limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
    let is_behind = |found: &Found<'_>| query.after.as_ref().is_none_or(|after| found.file.path > *after);
    let mut files: Vec<Found<'a>> = found.into_iter().filter(is_behind).collect();
    let more = files.len() > limit;
    files.truncate(limit);
    let after = files.last().filter(|_| more).map(|last| last.file.path.as_str());
    Page { files, total, after }
}
