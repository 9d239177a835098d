//! The map of a job's repository: making and asking it.

use conductor_repo::facts::FactBook;
use conductor_repo::graph::Counts;
use conductor_repo::language::Language;
use conductor_repo::map::{Found, MapFile, Page, Query, QueryError, RepoMap};
use conductor_repo::path::show;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Hints, NextCall, Tool, ToolError};

use super::repo::{problems, root_of};
use super::{find_job, job_call};
use crate::error::{Reason, Refusals};
use crate::model::{JobId, SnapshotId};
use crate::repo::kept::{self, Known};
use crate::repo::knowledge::{Knowledge, LIMITS};
use crate::repo::survey::{self, Before, Look};
use crate::store::description;
use crate::store::part::{self, Kind};

/// Entries of a list in one reply.
const SHOWN: usize = 50;

/// Make or update the map of the job's repository: takes a snapshot, reads the imports of files that no
/// snapshot read (Rust, Python, JavaScript and TypeScript, Go, Java, C and C++) and finds entry points.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoMapUpdate {
    /// The job.
    job_id: JobId,
}

/// A map in short.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MapSummary {
    /// The job.
    job_id: JobId,
    /// The snapshot it is of.
    snapshot_id: SnapshotId,
    /// How many files it has.
    files: usize,
    /// How many were read for it.
    read: u64,
    /// How the imports of each language came out.
    languages: Vec<LanguageLine>,
    /// Where programs start, at most 50.
    entry_points: Vec<EntryLine>,
    /// How many entry points there are.
    entry_points_total: usize,
    /// Habits that the tree keeps.
    conventions: Vec<String>,
    /// Imports whose file is not there, at most 50, as path:line: import.
    missing_imports: Vec<String>,
    /// How many files may be stale; repo_find_stale_candidates lists them.
    stale_candidates: usize,
    /// How many files have no description.
    without_description: usize,
    /// Descriptions that were dropped because their file is gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped_descriptions: Vec<String>,
    /// What could not be seen, at most 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    /// What else should be known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The call that shows it.
    next_call: NextCall,
}

/// The imports of one language.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LanguageLine {
    /// The language.
    language: &'static str,
    /// How many files are written in it.
    files: usize,
    /// Imports that mean files of the repository.
    resolved: usize,
    /// Imports that mean something outside.
    external: usize,
    /// Imports whose file should be there and is not.
    missing: usize,
    /// Imports nobody can tell the meaning of.
    unknown: usize,
}

impl LanguageLine {
    fn new(language: Language, counts: &Counts) -> LanguageLine {
        LanguageLine {
            language: language.name(),
            files: counts.files,
            resolved: counts.resolved,
            external: counts.external,
            missing: counts.missing,
            unknown: counts.unknown,
        }
    }
}

/// Where a program, or the use of a library, starts.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EntryLine {
    /// What it is, such as binary, library, command or test.
    kind: String,
    /// What it is called.
    name: String,
    /// The file it starts in, if it is one of the repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// The file that says so.
    from: String,
}

impl Tool for RepoMapUpdate {
    const NAME: &'static str = "repo_map_update";
    const TITLE: &'static str = "Update the map";
    const EFFECT: Effect = Effect::Run;
    const HINTS: Hints = Hints::IDEMPOTENT;
    type Output = MapSummary;

    fn run(self, cx: &Cx<'_>) -> Result<MapSummary, ToolError> {
        let (job, before, facts) = cx.transaction(|db| {
            let job = find_job(&db, &self.job_id)?;
            let before = Before::load(&db, &job.id)?;
            let facts = part::load(&db, &job.id, Kind::Facts)?;
            Ok::<_, ToolError>((job, before, facts))
        })?;
        let root = root_of(&job)?;
        let look = survey::look(cx, root, before, &LIMITS)?;
        let mut book = kept::book_from(&facts)?;
        look.learned.add_to(&mut book)?;
        let access = survey::open(cx, Some(root))?;
        let known = look.known()?;
        let completed = book.complete(&access, &known.snapshot, &LIMITS);
        let completed = completed.map_err(|err| Reason::Repository(err.to_string()))?;
        book.retain(&known.snapshot);
        self.store(cx, look, known, book, completed)
    }
}

impl RepoMapUpdate {
    fn store(
        self,
        cx: &Cx<'_>,
        mut look: Look<'_>,
        known: Known,
        book: FactBook,
        completed: usize,
    ) -> Result<MapSummary, ToolError> {
        let changed = kept::changed_facts(&book, &look.learned)?;
        let (read, warnings) = (look.effort.read, std::mem::take(&mut look.warnings));
        let (snapshot_id, knowledge, dropped) = cx.transaction(|db| {
            let record = look.store(cx, &db, &self.job_id, None)?;
            part::put_all(&db, &self.job_id, Kind::Facts, &changed)?;
            let mut descriptions = description::all(&db, &self.job_id)?;
            let gone = known.undescribed(&descriptions).orphans;
            for path in &gone {
                description::remove(&db, &self.job_id, path)?;
                descriptions.remove(path);
            }
            let knowledge = Knowledge {
                ages: kept::ages_from(&part::load(&db, &self.job_id, Kind::Ages)?)?,
                known,
                descriptions,
                book,
            };
            Ok::<_, ToolError>((record.snapshot_id, knowledge, gone))
        })?;
        let map = knowledge.map();
        let lacking = knowledge.undescribed();
        Ok(MapSummary {
            snapshot_id,
            files: map.files.len(),
            read: read + completed as u64,
            languages: languages(&map),
            entry_points: map.entry_points.iter().take(SHOWN).map(entry_line).collect(),
            entry_points_total: map.entry_points.len(),
            missing_imports: missing(&map),
            stale_candidates: map.stale.len(),
            without_description: lacking.new.len() + lacking.old.len(),
            dropped_descriptions: dropped,
            problems: problems(&map.problems),
            warnings,
            next_call: job_call("repo_map_export", &self.job_id),
            conventions: map.conventions,
            job_id: self.job_id,
        })
    }
}

fn languages(map: &RepoMap) -> Vec<LanguageLine> {
    let counts = map.graph.counts.iter();
    counts
        .map(|(language, counts)| LanguageLine::new(*language, counts))
        .collect()
}

fn missing(map: &RepoMap) -> Vec<String> {
    let missing = map.graph.missing.iter().take(SHOWN);
    missing
        .map(|missing| format!("{}:{}: {}", show(&missing.path), missing.line, missing.import))
        .collect()
}

fn entry_line(entry: &conductor_repo::entry::EntryPoint) -> EntryLine {
    EntryLine {
        kind: word(&entry.kind),
        name: entry.name.clone(),
        file: entry.file.clone(),
        from: entry.from.clone(),
    }
}

/// A kind as the word it is written as.
pub(super) fn word(kind: &impl Serialize) -> String {
    let written = serde_json::to_value(kind).unwrap_or_default();
    written.as_str().unwrap_or_default().to_owned()
}

/// Ask the map: files by path, pattern or words, what a file imports, who imports it, up to some imports
/// away. All that is said must hold.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoMapQuery {
    /// The job.
    job_id: JobId,
    /// A path, a directory, or a pattern with `*`, `**` and `?`.
    path: Option<String>,
    /// Words that path and description hold together, in any case.
    text: Option<String>,
    /// Only files that import this one.
    importers_of: Option<String>,
    /// Only files that this one imports.
    imports_of: Option<String>,
    /// How many imports away, 1 to 100, for the two above; 1 if left out.
    #[schemars(range(min = 1, max = 100))]
    depth: Option<u32>,
    /// Only files behind this path.
    after: Option<String>,
    /// At most so many, 1 to 200; 50 if left out.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
}

/// Files of the map.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MapPage {
    /// The files, by path.
    files: Vec<FileLine>,
    /// How many there are in all.
    total: usize,
    /// What to give as `after` for more, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    /// Files that came or changed since the map was updated: nobody knows what they import.
    unread: usize,
}

/// One file of the map.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FileLine {
    /// The file.
    path: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The part it plays: source, test, manifest, generated, docs, config, script or asset.
    role: String,
    /// What it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    /// The package it belongs to, or its first directory.
    owner: String,
    /// Bytes.
    size: u64,
    /// How many files it imports.
    imports: usize,
    /// How many files import it.
    imported_by: usize,
    /// How many imports away from the file that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<usize>,
}

impl FileLine {
    fn new(found: &Found<'_>) -> FileLine {
        let MapFile {
            path,
            description,
            role,
            language,
            owner,
            size,
            imports,
            imported_by,
        } = found.file.clone();
        FileLine {
            path,
            description,
            role: word(&role),
            language: language.map(Language::name),
            owner,
            size,
            imports,
            imported_by,
            distance: found.distance,
        }
    }
}

impl Tool for RepoMapQuery {
    const NAME: &'static str = "repo_map_query";
    const TITLE: &'static str = "Ask the map";
    const EFFECT: Effect = Effect::Read;
    type Output = MapPage;

    fn run(self, cx: &Cx<'_>) -> Result<MapPage, ToolError> {
        let mut refusals = Refusals::default();
        let limit = refusals.limit(self.limit, 50);
        if let Some(depth) = self.depth.filter(|depth| !(1..=100).contains(depth)) {
            refusals.add(Reason::argument(
                "depth",
                format!("is {depth}, not within 1 to 100"),
            ));
        }
        refusals.finish()?;
        let job = find_job(&cx.db, &self.job_id)?;
        let knowledge = Knowledge::load(&cx.db, &job.id)?;
        let map = knowledge.map();
        let query = Query {
            path: self.path,
            text: self.text,
            importers_of: self.importers_of,
            imports_of: self.imports_of,
            depth: self.depth.map(|depth| depth as usize),
            after: self.after,
            limit: Some(limit as usize),
        };
        let Page { files, total, after } = map.query(&query).map_err(unknown)?;
        Ok(MapPage {
            files: files.iter().map(FileLine::new).collect(),
            total,
            after: after.map(str::to_owned),
            unread: knowledge.unread(),
        })
    }
}

fn unknown(err: QueryError) -> ToolError {
    let QueryError::UnknownFile { path, meant } = err;
    let meant = match meant.as_slice() {
        [] => String::new(),
        meant => format!("; of that name are {}", meant.join(", ")),
    };
    Reason::NotInMap(format!(
        "{} is not in the map{meant}",
        crate::arguments::clip(&show(&path))
    ))
    .into()
}
