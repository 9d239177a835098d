//! Map as JSON: everything, each file with its imports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MapFile, RepoMap};
use crate::entry::EntryPoint;
use crate::graph::{Counts, Missing};
use crate::language::Language;
use crate::snapshot::Problem;
use crate::stale::Candidate;

/// Version of this format.
const VERSION: u32 = 1;

/// Whole map, for serialisation as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Version of this format.
    pub version: u32,
    /// Files by path.
    pub files: Vec<MapFile>,
    /// Imported paths of each file that imports any.
    pub imports: BTreeMap<String, Vec<String>>,
    /// Imports from outside the tree, with their number of uses.
    pub external: BTreeMap<String, usize>,
    /// Imports whose file does not exist.
    pub missing: Vec<Missing>,
    /// Import counts by language.
    pub counts: BTreeMap<Language, Counts>,
    /// Entry points of programs.
    pub entry_points: Vec<EntryPoint>,
    /// Files that may be stale.
    pub stale: Vec<Candidate>,
    /// Conventions that the tree follows.
    pub conventions: Vec<String>,
    /// Paths that could not be read.
    pub problems: Vec<Problem>,
}

impl RepoMap {
    /// Returns the whole map for serialisation as JSON.
    pub fn export(&self) -> Export {
        let name = |file: usize| self.files.get(file).map(|file| file.path.clone());
        let imports = self.files.iter().enumerate().map(|(at, file)| {
            let found = self
                .graph
                .imports_of(at)
                .iter()
                .filter_map(|file| name(*file))
                .collect::<Vec<_>>();
            (file.path.clone(), found)
        });
        Export {
            version: VERSION,
            files: self.files.clone(),
            imports: imports.filter(|(_, found)| !found.is_empty()).collect(),
            external: self.graph.external.clone(),
            missing: self.graph.missing.clone(),
            counts: self.graph.counts.clone(),
            entry_points: self.entry_points.clone(),
            stale: self.stale.clone(),
            conventions: self.conventions.clone(),
            problems: self.problems.clone(),
        }
    }
}
