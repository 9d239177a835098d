//! The map as JSON: everything, each file with what it imports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MapFile, RepoMap};
use crate::entry::EntryPoint;
use crate::graph::{Counts, Missing};
use crate::language::Language;
use crate::snapshot::Problem;
use crate::stale::Candidate;

/// The version of this shape.
const VERSION: u32 = 1;

/// The whole map, to be written as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The version of this shape.
    pub version: u32,
    /// By path.
    pub files: Vec<MapFile>,
    /// The paths each file imports, of files that import any.
    pub imports: BTreeMap<String, Vec<String>>,
    /// What is imported from outside, and how often.
    pub external: BTreeMap<String, usize>,
    /// Imports without a file.
    pub missing: Vec<Missing>,
    /// How imports came out.
    pub counts: BTreeMap<Language, Counts>,
    /// Where programs start.
    pub entry_points: Vec<EntryPoint>,
    /// Files that may be stale.
    pub stale: Vec<Candidate>,
    /// Habits that the tree keeps.
    pub conventions: Vec<String>,
    /// What could not be seen.
    pub problems: Vec<Problem>,
}

impl RepoMap {
    /// The whole map, to be written as JSON.
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
