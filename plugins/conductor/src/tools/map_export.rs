//! The map of a job's repository as a document.

use conductor_repo::map::MarkdownLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tool, ToolError, text_enum};

use super::archive::Part;
use super::find_job;
use crate::error::Reason;
use crate::model::JobId;
use crate::repo::knowledge::Knowledge;

text_enum! {
    /// How a map is exported.
    pub(crate) enum MapFormat {
        Md = "md",
        Json = "json",
    }
}

/// Export the map: `md` to read, as the REPO_MAP.md of the repository, or `json` with every file and what
/// it imports. A large one comes in parts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoMapExport {
    /// The job.
    job_id: JobId,
    /// How; md if left out.
    format: Option<MapFormat>,
    /// Which part, from 1.
    #[schemars(range(min = 1))]
    part: Option<u32>,
}

/// A map as a document, or a part of one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MapExported {
    /// The job.
    job_id: JobId,
    /// How it is exported.
    format: MapFormat,
    /// Which part this is, from 1.
    part: u32,
    /// How many parts there are; joined in order they are the whole.
    parts: u32,
    /// Files that came or changed since the map was updated: nobody knows what they import.
    unread: usize,
    /// The document, or a part of it.
    content: String,
}

impl Tool for RepoMapExport {
    const NAME: &'static str = "repo_map_export";
    const TITLE: &'static str = "Export the map";
    const EFFECT: Effect = Effect::Read;
    type Output = MapExported;

    fn run(self, cx: &Cx<'_>) -> Result<MapExported, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        let knowledge = Knowledge::load(&cx.db, &job.id)?;
        let map = knowledge.map();
        let format = self.format.unwrap_or(MapFormat::Md);
        let part = self.part.unwrap_or(1);
        let found = match format {
            MapFormat::Md => Part::of(&map.markdown(MarkdownLimits::default()), part),
            MapFormat::Json => Part::of_json(&map.export(), part)?,
        };
        let (parts, content) = found.end();
        if part == 0 || part > parts {
            return Err(Reason::argument("part", format!("is {part}, not within 1 to {parts}")).into());
        }
        Ok(MapExported {
            unread: knowledge.unread(),
            job_id: job.id,
            format,
            part,
            parts,
            content,
        })
    }

    fn text(output: &MapExported) -> Option<String> {
        (output.format == MapFormat::Md).then(|| output.content.clone())
    }
}
