//! Tools that update and query the map of a job's repository.

pub(super) mod replies;

use conductor_repo::facts::FactBook;
use conductor_repo::map::{Page, Query, QueryError, RepoMap};
use conductor_repo::path::show;
use schemars::JsonSchema;
use serde::Deserialize;
use tollgate_sdk::{Cx, Effect, Hints, Tool, ToolError};

use self::replies::{EntryLine, FileLine, LanguageLine, MapPage, MapSummary};
use super::repo::{problems, root_of};
use super::{find_job, job_call};
use crate::error::{Reason, Refusals};
use crate::model::JobId;
use crate::repo::kept::{self, Known};
use crate::repo::knowledge::{Knowledge, MAP_LIMITS};
use crate::repo::survey::{self, Before, Look};
use crate::store::description;
use crate::store::part::{self, Kind};

/// Maximum number of list entries in one reply.
const MAX_SHOWN_ENTRIES: usize = 50;

/// Create or update the map of the job's repository: take a snapshot, read the imports of files that no snapshot has
/// read (Rust, Python, JavaScript and TypeScript, Go, Java, C and C++), find entry points. Then call repo_map_query or
/// repo_map_export.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct RepoMapUpdate {
    job_id: JobId,
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
        let look = survey::look(cx, root, before, &MAP_LIMITS)?;
        let mut book = kept::book_from(&facts)?;
        look.learned.add_to(&mut book)?;
        let access = survey::open(cx, Some(root))?;
        let known = look.known()?;
        let completed = book.complete(&access, &known.snapshot, &MAP_LIMITS);
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
            entry_points: map
                .entry_points
                .iter()
                .take(MAX_SHOWN_ENTRIES)
                .map(EntryLine::new)
                .collect(),
            entry_points_total: map.entry_points.len(),
            missing_imports: missing(&map),
            stale_candidates: map.stale.len(),
            without_description: lacking.new.len() + lacking.old.len(),
            dropped_descriptions: dropped,
            problems: problems(&map.problems),
            warnings,
            next_call: Some(job_call("repo_map_export", &self.job_id)),
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
    let missing = map.graph.missing.iter().take(MAX_SHOWN_ENTRIES);
    missing
        .map(|missing| format!("{}:{}: {}", show(&missing.path), missing.line, missing.import))
        .collect()
}

/// Query the repository map. Filter files by path, glob or keywords, or follow imports from or to a file up to
/// `depth` levels. All filters are combined with AND. Fails if there is no map; call repo_map_update first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoMapQuery {
    job_id: JobId,
    /// Path, directory or glob with `*`, `**` and `?`, for example src/**/*.py.
    path: Option<String>,
    /// Keywords that must all occur in path or description, ignoring case.
    text: Option<String>,
    /// Only files that import this path, directly or through up to `depth` levels.
    importers_of: Option<String>,
    /// Only files that this path imports, directly or through up to `depth` levels.
    imports_of: Option<String>,
    /// Levels of imports to follow, 1 to 100. Default 1.
    #[schemars(range(min = 1, max = 100))]
    depth: Option<u32>,
    /// Maximum number of files, 1 to 200. Default 50.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u32>,
    /// next_cursor of the previous page. Default: the first page.
    cursor: Option<String>,
    /// Old name of cursor: only files after this path.
    #[schemars(extend("deprecated" = true))]
    after: Option<String>,
}

impl Tool for RepoMapQuery {
    const NAME: &'static str = "repo_map_query";
    const TITLE: &'static str = "Query the map";
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
        if self.cursor.is_some() && self.after.is_some() {
            refusals.add(Reason::argument("after", "cannot be combined with cursor"));
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
            after: self.cursor.or(self.after),
            limit: Some(limit as usize),
        };
        let Page { files, total, after } = map.query(&query).map_err(unknown)?;
        Ok(MapPage {
            files: files.iter().map(FileLine::new).collect(),
            total,
            next_cursor: after.map(str::to_owned),
            unread: knowledge.unread(),
        })
    }
}

fn unknown(err: QueryError) -> ToolError {
    let QueryError::UnknownFile { path, meant } = err;
    let meant = match meant.as_slice() {
        [] => String::new(),
        meant => format!("; files of that name: {}", meant.join(", ")),
    };
    Reason::NotInMap(format!(
        "{} is not in the map{meant}",
        crate::arguments::clip(&show(&path))
    ))
    .into()
}
