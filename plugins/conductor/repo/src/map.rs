//! Map of a repository: files with their roles, the import graph, entry points.

mod conventions;
mod export;
mod markdown;
mod query;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use export::Export;
pub(crate) use markdown::reason as markdown_reason;
pub use markdown::{MarkdownLimits, code, reason};
pub use query::{Found, Page, Query, QueryError};

use crate::describe::Descriptions;
use crate::entry::{self, EntryPoint};
use crate::facts::FactBook;
use crate::frameworks;
use crate::graph::Graph;
use crate::language::{Language, Role};
use crate::manifest::Manifest;
use crate::path;
use crate::resolve::{Index, Resolvers};
use crate::snapshot::{Limits, Problem, Snapshot};
use crate::stale::{self, Ages, Candidate, Evidence};

/// Facts that the caller adds to those of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Descriptions of files.
    pub descriptions: Descriptions,
    /// Times of the last commits, from Git.
    pub ages: Ages,
}

/// Map of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepoMap {
    /// Files by path, in the order of the graph.
    pub files: Vec<MapFile>,
    /// Import graph.
    pub graph: Graph,
    /// Entry points of programs.
    pub entry_points: Vec<EntryPoint>,
    /// Files that may be stale.
    pub stale: Vec<Candidate>,
    /// Conventions that the tree follows.
    pub conventions: Vec<String>,
    /// Paths that could not be read, or only in part.
    pub problems: Vec<Problem>,
}

/// A file of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapFile {
    /// Path of the file.
    pub path: String,
    /// Purpose of the file, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Role of the file.
    pub role: Role,
    /// Programming language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Package of the file, or its first directory.
    pub owner: String,
    /// Size in bytes.
    pub size: u64,
    /// Number of files that it imports.
    pub imports: usize,
    /// Number of files that import it.
    pub imported_by: usize,
}

impl RepoMap {
    /// Builds the map of a snapshot.
    pub fn build(snapshot: &Snapshot, book: &FactBook, notes: &Notes) -> RepoMap {
        let index = Index::new(snapshot, book);
        let resolvers = Resolvers::new(&index);
        let graph = Graph::new(&index, &resolvers);
        let entry_points = entry::find(&index, &resolvers);
        let run = frameworks::find(&index);
        let stale = stale::find(&Evidence {
            index: &index,
            graph: &graph,
            entries: &entry_points,
            run: &run,
            descriptions: &notes.descriptions,
            ages: &notes.ages,
            is_partial: snapshot.is_partial() || book.unread(snapshot, &Limits::default()).next().is_some(),
        });
        RepoMap {
            files: files(&index, &graph, &notes.descriptions),
            conventions: conventions::find(&index, &run),
            problems: snapshot
                .problems
                .iter()
                .chain(resolvers.problems())
                .cloned()
                .collect(),
            graph,
            entry_points,
            stale,
        }
    }

    /// Index of a file in the map.
    pub(crate) fn find(&self, path: &str) -> Option<usize> {
        self.files
            .binary_search_by(|file| file.path.as_str().cmp(path))
            .ok()
    }
}

fn files(index: &Index<'_>, graph: &Graph, descriptions: &Descriptions) -> Vec<MapFile> {
    let owners = owners(index);
    let importers = graph.importer_counts();
    let file = |at: usize| {
        let path = index.path(at);
        let facts = index.facts(at);
        let role = match index.role(at) {
            Role::Source if facts.is_some_and(|facts| facts.generated) => Role::Generated,
            role => role,
        };
        MapFile {
            path: path.to_owned(),
            description: descriptions.get(path).cloned(),
            role,
            language: index.language(at),
            owner: owner(&owners, path),
            size: index.record(at).map_or(0, |record| record.size),
            imports: graph.imports_of(at).len(),
            imported_by: importers.get(at).copied().unwrap_or_default(),
        }
    };
    (0..index.len()).map(file).collect()
}

/// Name of the package in each directory that has one.
fn owners<'a>(index: &Index<'a>) -> BTreeMap<&'a str, &'a str> {
    let mut owners = BTreeMap::new();
    for (file, manifest) in index.manifests() {
        let name = match manifest {
            Manifest::Cargo(cargo) => cargo.package.as_deref(),
            Manifest::Npm(npm) => npm.name.as_deref(),
            Manifest::Python(project) => project.name.as_deref(),
            Manifest::Go(module) => Some(module.module.as_str()),
            Manifest::Maven(maven) => maven.artifact.as_deref(),
            Manifest::TsConfig(_) | Manifest::Make(_) | Manifest::Ignored(_) | Manifest::Settings(_) => None,
        };
        if let Some(name) = name {
            owners.entry(path::parent(index.path(file))).or_insert(name);
        }
    }
    owners
}

fn owner(owners: &BTreeMap<&str, &str>, path: &str) -> String {
    let named = path::ancestors(path).find_map(|directory| owners.get(directory).copied());
    let folder = path.split_once('/').map_or(".", |(first, _)| first);
    named.unwrap_or(folder).to_owned()
}
