//! Files that may be out of use, each with reasons.
//!
//! A reason is a hint, not a proof. The weights say how much each counts alone; files below [`LISTED`] are not
//! shown.

mod names;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use foldhash::fast::FixedState;
use serde::{Deserialize, Serialize};

use crate::describe::Descriptions;
use crate::entry::{self, EntryPoint};
use crate::graph::Graph;
use crate::language::{Language, Role};
use crate::path;
use crate::resolve::Index;
use crate::snapshot::Digest;

/// Minimum score of a listed file.
pub const LISTED: u32 = 30;

/// Days without a commit after which a file counts as untouched.
pub const UNTOUCHED_DAYS: i64 = 365;

/// Minimum size of a duplicate; smaller files are alike by chance.
const DUPLICATE_BYTES: u64 = 64;

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
    pub(crate) descriptions: &'a Descriptions,
    pub(crate) ages: &'a Ages,
    /// True if files are missing from the snapshot or were not read, so that importers may be among them.
    pub(crate) is_partial: bool,
}

/// Candidates, highest score first, then by path.
pub(crate) fn find(evidence: &Evidence<'_>) -> Vec<Candidate> {
    let index = evidence.index;
    let importers = evidence.graph.importer_counts();
    let starts = evidence
        .entries
        .iter()
        .filter_map(|entry| index.find(entry.file.as_ref()?));
    let tools = (0..index.len()).filter(|file| entry::is_found_by_tools(index.path(*file)));
    let roots: BTreeSet<usize> = starts.chain(tools).collect();
    let search = Search {
        evidence,
        reached: evidence.graph.reached(roots.iter().copied()),
        roots,
        originals: originals(index, &importers),
        mentions: mentions(index),
        headers: headers(index, &importers),
        importers,
    };
    let mut candidates: Vec<Candidate> = (0..index.len())
        .filter_map(|file| search.candidate(file))
        .collect();
    candidates.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.path.cmp(&b.path)));
    candidates
}

struct Search<'a> {
    evidence: &'a Evidence<'a>,
    roots: BTreeSet<usize>,
    reached: Vec<bool>,
    /// Number of files that import each file.
    importers: Vec<usize>,
    /// Stems of the C headers that are included.
    headers: BTreeSet<&'a str>,
    /// For each copy, the file to keep.
    originals: BTreeMap<usize, usize>,
    /// First file that mentions a name.
    mentions: HashMap<&'a str, usize, FixedState>,
}

impl Search<'_> {
    fn candidate(&self, file: usize) -> Option<Candidate> {
        let path = self.evidence.index.path(file);
        let is_test = self.evidence.index.role(file) == Role::Test;
        let mut reasons: Vec<Reason> = Vec::new();
        reasons.extend(names::judge(path).filter(|_| !is_test));
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
        (score >= LISTED).then(|| Candidate {
            path: path.to_owned(),
            score,
            reasons,
        })
    }

    fn unused(&self, file: usize, path: &str) -> Option<Reason> {
        let language = self.evidence.index.language(file)?;
        let is_module = path::stem(path) != "__init__";
        if self.evidence.is_partial || self.roots.contains(&file) || !is_module {
            return None;
        }
        let importers = self.importers.get(file)?;
        // A C source is used through the header of the same name.
        let has_header = language == Language::C && self.headers.contains(path::stem(path));
        if *importers == 0 && !has_header {
            let mentioned = self.mentions.get(path::name(path)).filter(|by| **by != file);
            let mentioned_in = mentioned.map(|by| self.evidence.index.path(*by).to_owned());
            return Some(Reason::NeverImported { mentioned_in });
        }
        // Only the build knows which C files it compiles, and so which files they reach.
        let is_known = language != Language::C && self.reached.get(file) == Some(&false);
        is_known.then_some(Reason::Unreachable)
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

/// For each file with the same content as another, the one to keep: the most imported, not named like a copy,
/// with the shortest path.
fn originals(index: &Index<'_>, importers: &[usize]) -> BTreeMap<usize, usize> {
    let mut groups: HashMap<Digest, Vec<usize>, FixedState> = HashMap::default();
    for file in 0..index.len() {
        let Some(record) = index.record(file) else {
            continue;
        };
        let counts = matches!(
            index.role(file),
            Role::Source | Role::Script | Role::Docs | Role::Config
        );
        let start = path::name(&record.path).get(.."LICEN".len());
        let is_license = start.is_some_and(|start| start.eq_ignore_ascii_case("LICEN"));
        if let Some(digest) = record.digest()
            && counts
            && !is_license
            && record.size >= DUPLICATE_BYTES
        {
            groups.entry(digest).or_default().push(file);
        }
    }
    let mut originals = BTreeMap::new();
    for group in groups.values().filter(|group| group.len() > 1) {
        let order = |file: &&usize| {
            let path = index.path(**file);
            let used = importers.get(**file).copied().unwrap_or_default();
            (
                names::judge(path).is_some(),
                std::cmp::Reverse(used),
                path.len(),
                path,
            )
        };
        if let Some(kept) = group.iter().min_by_key(order) {
            originals.extend(
                group
                    .iter()
                    .filter(|file| *file != kept)
                    .map(|file| (*file, *kept)),
            );
        }
    }
    originals
}

fn mentions<'a>(index: &Index<'a>) -> HashMap<&'a str, usize, FixedState> {
    let mut mentions = HashMap::default();
    for file in 0..index.len() {
        for word in index.facts(file).into_iter().flat_map(|facts| &facts.mentions) {
            mentions.entry(path::name(word)).or_insert(file);
        }
    }
    mentions
}

fn headers<'a>(index: &Index<'a>, importers: &[usize]) -> BTreeSet<&'a str> {
    let is_used = |file: &usize| importers.get(*file).is_some_and(|count| *count > 0);
    let paths = (0..index.len()).filter(is_used).map(|file| index.path(file));
    let is_header = |path: &&str| path::extension(path).starts_with(['h', 'H']);
    paths.filter(is_header).map(path::stem).collect()
}
