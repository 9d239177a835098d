//! A job as one document: to read, to keep, to import again.

pub(crate) mod files;
pub(crate) mod markdown;

use std::collections::BTreeMap;

use conductor_repo::map::{MarkdownLimits, RepoMap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Db, DbError, Timestamp, text_enum};

use crate::arguments::BLOCK;
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

/// What a bundle calls itself, and in which version.
pub(crate) const FORMAT: &str = "tollgate-conductor-job";
pub(crate) const VERSION: u32 = 1;

text_enum! {
    /// How a job is exported.
    pub(crate) enum Format {
        Json = "json",
        Md = "md",
        ZipManifest = "zip_manifest",
    }
}

/// A job with everything that is recorded about it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bundle {
    /// What this is.
    pub format: String,
    /// In which version.
    pub version: u32,
    /// When the job last changed. The same job makes the same bytes, so that parts that several calls fetch
    /// fit together.
    pub exported_at: Timestamp,
    /// The job.
    pub job: Job,
    /// The policies that were in force. An import goes by the job's own.
    #[serde(default)]
    pub effective_policies: Policies,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// The prompt of each step, in order, as it would be given out now. An import makes them anew.
    #[serde(default)]
    pub prompts: Vec<String>,
    /// Every submission, oldest first.
    pub attempts: Vec<Attempt>,
    /// The context blocks, the repository map among them.
    pub context: Vec<Block>,
    /// Devlog, decisions and the rest, oldest first.
    pub log: Vec<LogEntry>,
    /// Recorded mistakes, oldest first.
    pub mistakes: Vec<Mistake>,
    /// Commits that were put off.
    pub batches: Vec<Batch>,
    /// What is known of the repository.
    #[serde(default)]
    pub repository: Repository,
}

/// What is known of a job's repository, as far as it makes sense elsewhere.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repository {
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotRecord>,
    /// What is said of files.
    pub descriptions: BTreeMap<String, String>,
    /// The map as Markdown, if one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
}

impl Repository {
    fn read(db: &Db<'_>, job: &JobId) -> Result<Repository, DbError> {
        let knowledge = Knowledge::find(db, job)?;
        Ok(Repository {
            snapshots: snapshot::all(db, job)?,
            descriptions: description::all(db, job)?,
            map: knowledge.map(|knowledge| short(&knowledge.map())),
        })
    }
}

/// The map in at most the size of a context block, which it becomes where it is imported.
fn short(map: &RepoMap) -> String {
    let (files, lines) = (MarkdownLimits::default().files, MarkdownLimits::default().lines);
    let tries = [(files, lines), (20, 20), (3, 10), (0, 5)];
    let mut texts = tries
        .into_iter()
        .map(|(files, lines)| map.markdown(MarkdownLimits { files, lines }));
    let text = texts.find(|text| text.len() <= BLOCK);
    text.unwrap_or_else(|| format!("# Repository map\n\n{} files.\n", map.files.len()))
}

/// Reads a job with everything that is recorded about it.
pub(crate) fn bundle(db: &Db<'_>, job: Job) -> Result<Bundle, DbError> {
    let steps = step::all(db, &job.id)?;
    let policies = job.effective();
    let mut prompts = Vec::with_capacity(steps.len());
    for (place, step) in (1..).zip(&steps) {
        let telling = Telling::gather(db, &job, step)?;
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
