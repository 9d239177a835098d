//! Files that may be out of use, each with reasons.
//!
//! A reason is a hint, not a proof. The weights say how much each counts alone; files below [`MIN_LISTED_SCORE`] are not
//! shown.

mod copies;
mod mentions;
mod names;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use crate::describe::Descriptions;
use crate::entry::{self, EntryPoint};
use crate::frameworks::Run;
use crate::graph::Graph;
use crate::language::{Language, Role};
use crate::path;
use crate::resolve::Index;
use mentions::Mentions;

/// Minimum score of a listed file.
pub const MIN_LISTED_SCORE: u32 = 30;

/// Days without a commit after which a file counts as untouched.
pub const UNTOUCHED_DAYS: i64 = 365;

/// Times of the last commits, given by the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ages {
    /// Last commit of each file, in milliseconds since 1970 UTC.
    pub committed: BTreeMap<String, i64>,
    /// Current time.
    pub now: i64,
}

/// A file that may be stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Path of the file.
    pub path: String,
    /// Strength of the reasons together, at most 100.
    pub score: u32,
    /// Reasons, strongest first.
    pub reasons: Vec<Reason>,
}

/// Reason for a file being stale.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// Name of a backup.
    Backup {
        /// Part of the name that marks it.
        part: String,
    },
    /// No file imports it and no program starts in it.
    NeverImported {
        /// A file that at least mentions its name.
        #[serde(skip_serializing_if = "Option::is_none")]
        mentioned_in: Option<String>,
    },
    /// Marked as deprecated in the file or its description.
    Deprecated {
        /// Words of the mark.
        says: String,
    },
    /// Name of a disused file.
    Named {
        /// Part of the name that marks it.
        part: String,
    },
    /// Another file has the same content.
    Duplicate {
        /// File to keep.
        of: String,
    },
    /// Only files that no program reaches import it.
    Unreachable,
    /// No change in Git for a long time.
    Untouched {
        /// Number of days.
        days: i64,
    },
}

impl Reason {
    /// Score of this reason alone.
    pub const fn weight(&self) -> u32 {
        match self {
            Reason::Backup { .. } => 60,
            Reason::NeverImported { mentioned_in: None } | Reason::Deprecated { .. } => 40,
            Reason::Named { .. } | Reason::Duplicate { .. } => 35,
            Reason::Unreachable => 30,
            Reason::Untouched { .. } | Reason::NeverImported { .. } => 15,
        }
    }
}

/// Text of the reason, with names as Markdown code.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::map::markdown_reason(self))
    }
}

/// Facts from which candidates are found.
pub(crate) struct Evidence<'a> {
    pub(crate) index: &'a Index<'a>,
    pub(crate) graph: &'a Graph,
    pub(crate) entries: &'a [EntryPoint],
    /// Files that frameworks run.
    pub(crate) run: &'a Run,
    pub(crate) descriptions: &'a Descriptions,
    pub(crate) ages: &'a Ages,
    /// True if files are missing from the snapshot or were not read, so that importers may be among them.
    pub(crate) is_partial: bool,
}

/// Candidates, highest score first, then by path.
pub(crate) fn find(evidence: &Evidence<'_>) -> Vec<Candidate> {
    let index = evidence.index;
    let importers = evidence.graph.importer_counts();
    let search = Search {
        used: used(evidence, &importers),
        reached: Vec::new(),
        roots: BTreeSet::new(),
        mentions: Mentions::of(index),
        headers: headers(index, &importers),
        originals: BTreeMap::new(),
        unknown: BTreeSet::new(),
        importers,
        evidence,
    };
    let search = search.with_roots();
    let mut candidates: Vec<Candidate> = (0..index.len())
        .filter_map(|file| search.candidate(file))
        .collect();
    candidates.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
    candidates
}

/// For each file, whether something in the tree demands it: an import, a reference, a manifest or a framework.
fn used(evidence: &Evidence<'_>, importers: &[usize]) -> Vec<bool> {
    let index = evidence.index;
    let mut used: Vec<bool> = importers.iter().map(|count| *count > 0).collect();
    // A program that only declares itself is not in demand.
    let entries = evidence
        .entries
        .iter()
        .filter(|entry| entry.file.as_ref() != Some(&entry.from));
    let entries = entries.filter_map(|entry| index.find(entry.file.as_ref()?));
    let referred = (0..index.len()).flat_map(|file| evidence.graph.references_of(file).iter().copied());
    for file in entries.chain(referred).chain(evidence.run.keys().copied()) {
        used.get_mut(file).into_iter().for_each(|used| *used = true);
    }
    used
}

struct Search<'a> {
    evidence: &'a Evidence<'a>,
    /// Files that something demands.
    used: Vec<bool>,
    /// Files where programs, tests and tools start.
    roots: BTreeSet<usize>,
    reached: Vec<bool>,
    /// Number of files that import each file.
    importers: Vec<usize>,
    /// Stems of the C headers that are included.
    headers: BTreeSet<&'a str>,
    /// For each copy, the file to keep.
    originals: BTreeMap<usize, usize>,
    mentions: Mentions<'a>,
    /// Directories of packages of JavaScript without a known start.
    unknown: BTreeSet<&'a str>,
}

impl Search<'_> {
    /// Search with the files where programs start, and what follows from them.
    fn with_roots(mut self) -> Self {
        let (index, graph) = (self.evidence.index, self.evidence.graph);
        let starts = self
            .evidence
            .entries
            .iter()
            .filter_map(|entry| index.find(entry.file.as_ref()?));
        let started = (0..index.len()).filter(|file| {
            entry::is_found_by_tools(index.path(*file)) || entry::is_started_by_people(index, *file)
        });
        // Settings and pages start what they name; no program starts them.
        let others = (0..index.len()).filter(|file| index.language(*file).is_none());
        self.roots = starts
            .chain(started)
            .chain(self.evidence.run.keys().copied())
            .collect();
        self.reached = graph.reached(self.roots.iter().copied().chain(others));
        self.unknown = unknown_packages(index, &self.reached);
        self.originals = copies::originals(index, &self.importers, &self.roots);
        self
    }

    fn candidate(&self, file: usize) -> Option<Candidate> {
        let path = self.evidence.index.path(file);
        let is_test = self.evidence.index.role(file) == Role::Test;
        let mut reasons: Vec<Reason> = Vec::new();
        reasons.extend(self.named(file, path).filter(|_| !is_test));
        reasons.extend(self.unused(file, path));
        reasons.extend(self.deprecated(file, path));
        reasons.extend(self.originals.get(&file).map(|original| Reason::Duplicate {
            of: self.evidence.index.path(*original).to_owned(),
        }));
        reasons.extend(self.untouched(path));
        if reasons.is_empty() {
            return None;
        }
        reasons.sort_by_key(|reason| (std::cmp::Reverse(reason.weight()), reason.clone()));
        let score = reasons.iter().map(Reason::weight).sum::<u32>().min(100);
        (score >= MIN_LISTED_SCORE).then(|| Candidate {
            path: path.to_owned(),
            score,
            reasons,
        })
    }

    /// Reason in the name. The name of a file that is in use describes its code: `temp_sensor.py`.
    fn named(&self, file: usize, path: &str) -> Option<Reason> {
        let reason = names::judge(path)?;
        let is_used = self.used.get(file) == Some(&true) && self.reached.get(file) == Some(&true);
        let is_code = self.evidence.index.language(file).is_some();
        (!is_code || !is_used || matches!(reason, Reason::Backup { .. })).then_some(reason)
    }

    fn unused(&self, file: usize, path: &str) -> Option<Reason> {
        let index = self.evidence.index;
        let language = index.language(file)?;
        let is_judged =
            path::stem(path) != "__init__" && path::extension(path) != "mdx" && !self.is_generated(file);
        if self.evidence.is_partial || self.roots.contains(&file) || !is_judged {
            return None;
        }
        if language == Language::JavaScript && self.is_unknown(path) {
            return None;
        }
        let same = stubbed(index, file, path)?;
        // A C source is used through the header of the same name.
        let has_header = language == Language::C && self.headers.contains(path::stem(path));
        if self.used.get(same) == Some(&false) && !has_header {
            let mentioned = self.mentions.of_path(file, path);
            let mentioned_in = mentioned.map(|by| index.path(by).to_owned());
            return Some(Reason::NeverImported { mentioned_in });
        }
        // Only the build knows which C files it compiles, and so which files they reach.
        let is_known = language != Language::C && self.reached.get(same) == Some(&false);
        is_known.then_some(Reason::Unreachable)
    }

    fn is_generated(&self, file: usize) -> bool {
        let facts = self.evidence.index.facts(file);
        self.evidence.index.role(file) == Role::Generated || facts.is_some_and(|facts| facts.generated)
    }

    fn is_unknown(&self, path: &str) -> bool {
        let mut above = path::ancestors(path);
        let package = above.find(|directory| {
            directory.is_empty()
                || self
                    .evidence
                    .index
                    .find(&path::below(directory, "package.json"))
                    .is_some()
        });
        package.is_some_and(|package| self.unknown.contains(package))
    }

    fn deprecated(&self, file: usize, path: &str) -> Option<Reason> {
        let described = self.evidence.descriptions.get(path).filter(|text| {
            let lower = text.to_lowercase();
            ["deprecated", "obsolete", "no longer used", "unused"]
                .iter()
                .any(|word| lower.contains(word))
        });
        let own = self
            .evidence
            .index
            .facts(file)
            .and_then(|facts| facts.deprecated.as_ref());
        let says = described.or(own)?.clone();
        Some(Reason::Deprecated { says })
    }

    fn untouched(&self, path: &str) -> Option<Reason> {
        let committed = self.evidence.ages.committed.get(path)?;
        let days = self.evidence.ages.now.saturating_sub(*committed) / 86_400_000;
        (days >= UNTOUCHED_DAYS).then_some(Reason::Untouched { days })
    }
}

/// File whose use is that of a file: a stub of Python is used with its module. `None` for a stub without one, which
/// describes a compiled or foreign module.
fn stubbed(index: &Index<'_>, file: usize, path: &str) -> Option<usize> {
    match path.strip_suffix(".pyi") {
        Some(stem) => index.first([".py", ".pyx"].map(|ending| format!("{stem}{ending}"))),
        None => Some(file),
    }
}

/// Packages of JavaScript in which no program, test or framework starts: nothing is known about their use.
fn unknown_packages<'a>(index: &Index<'a>, reached: &[bool]) -> BTreeSet<&'a str> {
    let mut known: HashMap<&str, bool, FixedState> = HashMap::default();
    let mut packages: HashMap<&str, &str, FixedState> = HashMap::default();
    for file in 0..index.len() {
        let path = index.path(file);
        let counts = index.language(file) == Some(Language::JavaScript) && index.role(file) == Role::Source;
        if !counts || entry::is_found_by_tools(path) {
            continue;
        }
        let package = *packages.entry(path::parent(path)).or_insert_with(|| {
            let has = |directory: &&str| {
                directory.is_empty() || index.find(&path::below(directory, "package.json")).is_some()
            };
            path::ancestors(path).find(has).unwrap_or_default()
        });
        *known.entry(package).or_default() |= reached.get(file) == Some(&true);
    }
    known
        .into_iter()
        .filter(|(_, is_known)| !is_known)
        .map(|(package, _)| package)
        .collect()
}

fn headers<'a>(index: &Index<'a>, importers: &[usize]) -> BTreeSet<&'a str> {
    let is_used = |file: &usize| importers.get(*file).is_some_and(|count| *count > 0);
    let paths = (0..index.len()).filter(is_used).map(|file| index.path(file));
    let is_header = |path: &&str| path::extension(path).starts_with(['h', 'H']);
    paths.filter(is_header).map(path::stem).collect()
}
