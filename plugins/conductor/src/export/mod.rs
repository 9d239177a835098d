//! A job as one document: to read, to keep, to import again.

pub(crate) mod deprecated;
pub(crate) mod files;
pub(crate) mod markdown;

use std::collections::BTreeMap;

use conductor_repo::map::{MarkdownLimits, RepoMap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Db, DbError, Timestamp, text_enum};

use crate::arguments::MAX_BLOCK_BYTES;
use crate::model::JobId;
use crate::policy::Policies;
use crate::repo::knowledge::Knowledge;
use crate::store::attempt::{self, Attempt};
use crate::store::batch::{self, Batch};
use crate::store::context::{self, Block};
use crate::store::description;
use crate::store::job::Job;
use crate::store::log::{self, LogEntry};
use crate::store::mistake::{self, Mistake};
use crate::store::snapshot::{self, SnapshotRecord};
use crate::store::step::{self, Step};
use crate::tools::execute::Telling;
use crate::workspaces::WorkspaceLine;

/// Name and version of the bundle format.
pub(crate) const FORMAT: &str = "tollgate-conductor-job";
pub(crate) const VERSION: u32 = 1;

text_enum! {
    /// Format of an export.
    pub(crate) enum Format {
        Json = "json",
        Md = "md",
        ZipManifest = "zip_manifest",
    }
}

/// A job with all its records.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bundle {
    /// Name of the format.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Time of the job's last change. The same job gives the same bytes, so that parts fetched by several calls
    /// fit together.
    pub exported_at: Timestamp,
    /// Job without its steps.
    pub job: Job,
    /// Policies in force at the export. An import uses the job's own.
    #[serde(default)]
    pub effective_policies: Policies,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Prompt of each step, in order, as it would be returned now. An import builds new ones.
    #[serde(default)]
    pub prompts: Vec<String>,
    /// All submissions, oldest first.
    pub attempts: Vec<Attempt>,
    /// Context blocks, including the repository map.
    pub context: Vec<Block>,
    /// Log entries of all types, oldest first.
    pub log: Vec<LogEntry>,
    /// Recorded mistakes, oldest first.
    pub mistakes: Vec<Mistake>,
    /// Deferred commits.
    pub batches: Vec<Batch>,
    /// Facts about the repository.
    #[serde(default)]
    pub repository: Repository,
}

/// Facts about a job's repository that are useful elsewhere.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repository {
    /// Snapshots, oldest first.
    pub snapshots: Vec<SnapshotRecord>,
    /// Descriptions of files.
    pub descriptions: BTreeMap<String, String>,
    /// Map as Markdown, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// Files that may be deleted, as Markdown, if there is a map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
}

impl Repository {
    fn read(db: &Db<'_>, job: &JobId) -> Result<Repository, DbError> {
        let map = Knowledge::find(db, job)?.map(|knowledge| knowledge.map());
        Ok(Repository {
            snapshots: snapshot::all(db, job)?,
            descriptions: description::all(db, job)?,
            map: map.as_ref().map(short),
            deprecated: map.as_ref().map(deprecated::markdown),
        })
    }
}

/// Limits of a map with all files of any repository of usual size.
pub(crate) const WHOLE_MAP: MarkdownLimits = MarkdownLimits {
    files: 5_000,
    lines: 200,
};

/// Map that fits into a context block, which the map becomes on import.
fn short(map: &RepoMap) -> String {
    let tries = [
        (WHOLE_MAP.files, WHOLE_MAP.lines),
        (200, 50),
        (20, 20),
        (3, 10),
        (0, 5),
    ];
    let mut texts = tries
        .into_iter()
        .map(|(files, lines)| map.markdown(MarkdownLimits { files, lines }));
    let text = texts.find(|text| text.len() <= MAX_BLOCK_BYTES);
    text.unwrap_or_else(|| format!("# Repository map\n\n{} files.\n", map.files.len()))
}

/// Reads a job with all its records.
pub(crate) fn bundle(db: &Db<'_>, job: Job, workspace: Option<&WorkspaceLine>) -> Result<Bundle, DbError> {
    let steps = step::all(db, &job.id)?;
    let policies = job.effective();
    let mut prompts = Vec::with_capacity(steps.len());
    for (place, step) in (1..).zip(&steps) {
        let telling = Telling::gather(db, &job, step, workspace.cloned())?;
        prompts.push(telling.prompt(&job, &policies, step, (place, steps.len())));
    }
    let mut blocks = Vec::new();
    context::each(db, &job.id, |block| blocks.push(block))?;
    Ok(Bundle {
        format: FORMAT.to_owned(),
        version: VERSION,
        exported_at: job.updated_at,
        effective_policies: policies,
        attempts: attempt::all(db, &job.id)?,
        log: log::all(db, &job.id)?,
        mistakes: mistake::all(db, &job.id)?,
        batches: batch::all(db, &job.id)?,
        repository: Repository::read(db, &job.id)?,
        context: blocks,
        prompts,
        steps,
        job,
    })
}
