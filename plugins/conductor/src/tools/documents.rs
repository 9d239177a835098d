//! Tool that writes the documents about a repository into it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, FileKind, Hints, Timestamp, Tool, ToolError, WorkspaceError, text_enum};

use super::find_job;
use super::logs::{self, TestsRun};
use super::repo::root_of;
use crate::access::{self, Access};
use crate::error::{Reason, Refusals};
use crate::export::deprecated;
use crate::model::JobId;
use crate::repo::knowledge::Knowledge;
use crate::store::log;

text_enum! {
    /// Documents about a repository.
    pub(crate) enum RepoDocument {
        Map = "REPO_MAP.md",
        Deprecated = "DEPRECATED.md",
        Devlog = "DEVLOG.md",
    }
}

/// Write REPO_MAP.md, DEPRECATED.md and DEVLOG.md into the job's repository, replacing earlier ones. Fails if the
/// workspace does not allow writing them. Git shows them as changes of the current step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-workspace" = super::workspace()))]
pub(crate) struct RepoDocumentsWrite {
    job_id: JobId,
    /// Documents to write, for example ["DEVLOG.md"]. Default: all that have content.
    #[serde(default)]
    documents: Vec<RepoDocument>,
}

/// Written documents.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Written {
    job_id: JobId,
    /// Paths below the workspace.
    written: Vec<String>,
    /// Documents left out for lack of a map.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<&'static str>,
    /// Time of the snapshot that the map shows; repo_map_update renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    map_of: Option<Timestamp>,
    /// True if a document could not be written after all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
    /// Reasons why documents could not be written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Tool for RepoDocumentsWrite {
    const NAME: &'static str = "repo_documents_write";
    const TITLE: &'static str = "Write the documents";
    const EFFECT: Effect = Effect::Write;
    const HINTS: Hints = Hints::REPLACING;
    type Output = Written;

    fn run(self, cx: &Cx<'_>) -> Result<Written, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        let root = root_of(&job)?;
        let access = access::open(cx, Some(root)).map_err(Reason::Repository)?;
        let wanted = match self.documents.is_empty() {
            true => RepoDocument::ALL.to_vec(),
            false => self.documents.clone(),
        };
        check(&access, &wanted)?;
        let map = match self
            .documents
            .iter()
            .any(|document| *document != RepoDocument::Devlog)
        {
            true => Some(Knowledge::load(&cx.db, &job.id)?),
            false => Knowledge::find(&cx.db, &job.id)?,
        };
        let map_of = map
            .as_ref()
            .map(|map| Timestamp::from_ms(map.known.snapshot.taken));
        let map = map.map(|knowledge| knowledge.map());
        let mut written = Written {
            job_id: job.id.clone(),
            written: Vec::new(),
            skipped: Vec::new(),
            map_of,
            stale: false,
            warnings: Vec::new(),
        };
        for document in wanted {
            let content = match (document, &map) {
                (RepoDocument::Devlog, _) => {
                    let tests = TestsRun::read(&cx.db, &job.id)?;
                    Some(logs::markdown(
                        "Devlog",
                        &job.title,
                        &log::all(&cx.db, &job.id)?,
                        &tests,
                    ))
                }
                (RepoDocument::Map, Some(map)) => Some(map.markdown(crate::export::WHOLE_MAP)),
                (RepoDocument::Deprecated, Some(map)) => Some(deprecated::markdown(map)),
                (_, None) => None,
            };
            let Some(content) = content else {
                written.skipped.push(document.as_str());
                continue;
            };
            let path = access.root.join(document.as_str());
            let result = access.workspace.write(&path, content.as_bytes());
            result.map_err(|err| Reason::Repository(err.to_string()))?;
            written.written.push(path);
        }
        Ok(written)
    }
}

/// Refuses all documents that the workspace does not allow writing, or whose path is taken by something else, at once.
fn check(access: &Access<'_>, wanted: &[RepoDocument]) -> Result<(), ToolError> {
    let mut refusals = Refusals::default();
    for document in wanted {
        let path = access.root.join(document.as_str());
        if !access.workspace.info().may_write(&path) {
            refusals.add(Reason::WriteDenied {
                workspace: access.root.workspace.clone(),
                path,
            });
            continue;
        }
        let found = access.workspace.stat(&path).map(|found| found.kind);
        if !matches!(found, Ok(FileKind::File) | Err(WorkspaceError::NotFound(_))) {
            refusals.add(Reason::NotAFile(path));
        }
    }
    refusals.finish()
}
