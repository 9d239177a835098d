//! Tools that export and import jobs.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tollgate_sdk::{Cx, Effect, Tool, ToolError};

use super::find_job;
use crate::error::Reason;
use crate::export::files::{File, files, pieces};
use crate::export::{Format, bundle, markdown};
use crate::import::{self, Imported, read};
use crate::model::JobId;

/// Maximum bytes of content in one reply. JSON escapes lengthen the content, and a reply holds 1 MiB.
const PART_BYTES: usize = 300 << 10;

/// Export a job with all its records: `md` to read, `json` for job_import, `zip_manifest` as the files of an
/// archive. Large exports are split into parts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses()))]
pub(crate) struct JobExportBundle {
    #[schemars(extend("x-values" = jobs()))]
    job_id: JobId,
    /// Export format: md, json or zip_manifest. Default md.
    #[schemars(extend("x-accepts" = super::any_text()))]
    format: Option<Format>,
    /// Part to return, from 1 to `parts`. Default 1.
    #[schemars(range(min = 1))]
    part: Option<u32>,
}

fn addresses() -> Value {
    json!([
        {
            "path": "jobs/{job_id}.md{?part}",
            "name": "job",
            "title": "Job",
            "description": "A job with everything recorded about it, as Markdown.",
            "mime_type": "text/markdown",
            "arguments": {"format": "md"},
            "listed": true,
        },
        {
            "path": "jobs/{job_id}.json{?part}",
            "name": "job_json",
            "title": "Job, to import again",
            "description": "A job with everything recorded about it, as job_import takes it.",
            "mime_type": "application/json",
            "arguments": {"format": "json"},
            "content": "content",
        },
    ])
}

/// Tool that lists jobs, for clients that complete an argument.
fn jobs() -> Value {
    json!({"tool": "job_list", "arguments": {"limit": 200}, "items": "jobs", "value": "job_id"})
}

/// An exported job, or a part of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Exported {
    job_id: JobId,
    /// Format of the export.
    format: Format,
    /// Number of this part, from 1.
    part: u32,
    /// Number of parts; joined in order they form the whole.
    parts: u32,
    /// Content of the document, or of this part.
    #[serde(skip_serializing_if = "String::is_empty")]
    content: String,
    /// Files of the archive, or those of this part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<File>,
}

impl Tool for JobExportBundle {
    const NAME: &'static str = "job_export_bundle";
    const TITLE: &'static str = "Export a job";
    const EFFECT: Effect = Effect::Read;
    type Output = Exported;

    fn run(self, cx: &Cx<'_>) -> Result<Exported, ToolError> {
        let job = find_job(&cx.db, &self.job_id)?;
        let format = self.format.unwrap_or(Format::Md);
        let wanted = self.part.unwrap_or(1);
        let workspace = crate::access::workspace_line(cx, &cx.db, job.repo_root.as_deref())?;
        let bundle = bundle(&cx.db, job, workspace.as_ref())?;
        let text = match format {
            Format::Md => Some(Part::of(&markdown::document(&bundle), wanted)),
            Format::Json => Some(Part::of_json(&bundle, wanted)?),
            Format::ZipManifest => None,
        };
        let (parts, content, files) = match text {
            Some(Part { number, content, .. }) => (number, content, Vec::new()),
            None => file_part(files(&bundle), wanted),
        };
        if wanted == 0 || wanted > parts {
            return Err(Reason::argument("part", format!("is {wanted}, not within 1 to {parts}")).into());
        }
        Ok(Exported {
            job_id: self.job_id,
            format,
            part: wanted,
            parts,
            content,
            files,
        })
    }

    fn text(output: &Exported) -> Option<String> {
        (output.format == Format::Md).then(|| output.content.clone())
    }
}

fn count(parts: usize) -> u32 {
    u32::try_from(parts).unwrap_or(u32::MAX)
}

/// A part of a text that is too long for one reply. The part is cut out while the text is written, so that the
/// whole text need not fit into memory.
pub(super) struct Part {
    wanted: u32,
    content: String,
    /// Number of the part that is being written, and its bytes so far.
    number: u32,
    length: usize,
}

impl Part {
    fn new(wanted: u32) -> Part {
        Part {
            wanted,
            content: String::new(),
            number: 1,
            length: 0,
        }
    }

    /// Cuts a part out of a text.
    pub(super) fn of(text: &str, wanted: u32) -> Part {
        let mut part = Part::new(wanted);
        part.push(text);
        part
    }

    /// Cuts a part out of a value's JSON.
    pub(super) fn of_json(value: &impl Serialize, wanted: u32) -> Result<Part, ToolError> {
        let mut part = Part::new(wanted);
        serde_json::to_writer(&mut part, value).map_err(|_| super::internal())?;
        Ok(part)
    }

    /// Number of parts, and the requested one.
    pub(super) fn end(self) -> (u32, String) {
        (self.number, self.content)
    }

    /// Appends text. Parts are as long as possible and end between characters.
    fn push(&mut self, mut text: &str) {
        loop {
            let room = PART_BYTES - self.length;
            let (piece, rest) = text.split_at(text.floor_char_boundary(room));
            self.length += piece.len();
            if self.number == self.wanted {
                self.content.push_str(piece);
            }
            if rest.is_empty() {
                return;
            }
            self.number = self.number.saturating_add(1);
            self.length = 0;
            text = rest;
        }
    }
}

impl io::Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(std::str::from_utf8(bytes).map_err(io::Error::other)?);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// As many files as fit into one reply. A larger file is split into pieces, each a part of its own.
fn file_part(files: Vec<File>, wanted: u32) -> (u32, String, Vec<File>) {
    let mut parts: Vec<Vec<File>> = Vec::new();
    let mut size = usize::MAX;
    for file in files.into_iter().flat_map(|file| pieces(file, PART_BYTES)) {
        size = size.saturating_add(file.content.len());
        match parts.last_mut() {
            Some(part) if size <= PART_BYTES => part.push(file),
            _ => {
                size = file.content.len();
                parts.push(vec![file]);
            }
        }
    }
    let total = count(parts.len());
    let part = (wanted as usize)
        .checked_sub(1)
        .and_then(|place| parts.into_iter().nth(place));
    (total, String::new(), part.unwrap_or_default())
}

/// Import a job that job_export_bundle exported as json. The job keeps its status, and its id unless that is
/// taken, so that work continues where it was. Fails if the bundle contains data that no tool could have
/// produced.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobImport {
    /// Exported bundle as an object, with all parts joined. Pass either `bundle` or `path`.
    bundle: Option<Map<String, Value>>,
    /// File with the joined parts, as workspace and path, for example `app/job.json`. Use it for a bundle that
    /// is too large for a call.
    path: Option<String>,
}

impl Tool for JobImport {
    const NAME: &'static str = "job_import";
    const TITLE: &'static str = "Import a job";
    const EFFECT: Effect = Effect::Write;
    type Output = Imported;

    fn run(self, cx: &Cx<'_>) -> Result<Imported, ToolError> {
        let bundle = match (self.bundle, self.path) {
            (Some(bundle), None) => read::object(bundle)?,
            (None, Some(path)) => read::file(cx, &path)?,
            (None, None) => return Err(Reason::argument("bundle", "is missing; pass it or `path`").into()),
            (Some(_), Some(_)) => {
                return Err(Reason::argument("path", "cannot be combined with `bundle`").into());
            }
        };
        import::import(cx, bundle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_long_whole_and_cut_between_characters() {
        let text = format!("b{}", "aö€😀\n".repeat(PART_BYTES / 5));
        for text in [
            text,
            "a".repeat(PART_BYTES - 2),
            "a".repeat(PART_BYTES - 1),
            String::new(),
        ] {
            let json = serde_json::to_string(&text).unwrap();
            let parts = Part::of_json(&text, 0).unwrap().end();
            assert_eq!(parts.1, "", "none is wanted");
            let pieces: Vec<String> = (1..=parts.0)
                .map(|wanted| {
                    let piece = Part::of_json(&text, wanted).unwrap().end();
                    assert_eq!(piece, Part::of(&json, wanted).end());
                    piece.1
                })
                .collect();
            assert_eq!(pieces.len(), json.len().div_ceil(PART_BYTES));
            assert!(pieces.iter().all(|piece| piece.len() <= PART_BYTES));
            assert!(pieces.concat() == json);
        }
        assert_eq!(Part::of("", 1).end(), (1, String::new()));
    }
}
