//! Tool that exports the map of a job's repository.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tollgate_sdk::{Cx, Effect, Tool, ToolError, text_enum};

use super::archive::Part;
use super::find_job;
use crate::error::Reason;
use crate::model::JobId;
use crate::repo::knowledge::Knowledge;

text_enum! {
    /// Format of an exported map.
    pub(crate) enum MapFormat {
        Md = "md",
        Json = "json",
    }
}

/// Export the map: `md` to read, for example as REPO_MAP.md, or `json` with every file and its imports. Large
/// exports are split into parts. Fails if there is no map; call repo_map_update first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepoMapExport {
    job_id: JobId,
    /// Export format: md or json. Default md.
    format: Option<MapFormat>,
    /// Part to return, from 1 to `parts`. Default 1.
    #[schemars(range(min = 1))]
    part: Option<u32>,
}

/// An exported map, or a part of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MapExported {
    job_id: JobId,
    /// Format of the export.
    format: MapFormat,
    /// Number of this part, from 1.
    part: u32,
    /// Number of parts; joined in order they form the whole.
    parts: u32,
    /// Number of files added or changed since the last update of the map; their imports are not known.
    unread: usize,
    /// Content of the document, or of this part.
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
            MapFormat::Md => Part::of(&map.markdown(crate::export::WHOLE_MAP), part),
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
