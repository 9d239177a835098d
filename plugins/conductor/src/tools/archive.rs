//! Exporting a job, and importing one.

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

/// Bytes of content in one reply. JSON escapes make more of it, and a reply holds 1 MiB.
const PART: usize = 300 << 10;

/// Export a job with everything recorded about it: `md` to read, `json` to import again with job_import,
/// `zip_manifest` as the files of an archive. A large one comes in parts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses()))]
pub(crate) struct JobExportBundle {
    /// The job.
    #[schemars(extend("x-values" = jobs()))]
    job_id: JobId,
    /// How; md if left out.
    format: Option<Format>,
    /// Which part, from 1.
    #[schemars(range(min = 1))]
    part: Option<u32>,
}

fn addresses() -> Value {
    json!([
        {
            "path": "jobs/{job_id}.md{?part}",
            "name": "job",
            "title": "Job",
            "description": "A job with everything recorded about it, to read.",
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

/// What lists jobs, for clients that complete an argument.
fn jobs() -> Value {
    json!({"tool": "job_list", "arguments": {"limit": 200}, "items": "jobs", "value": "job_id"})
}

/// A job as a document, or a part of one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Exported {
    /// The job.
    job_id: JobId,
    /// How it is exported.
    format: Format,
    /// Which part this is, from 1.
    part: u32,
    /// How many parts there are; joined in order they are the whole.
    parts: u32,
    /// The document, or a part of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    content: String,
    /// The files of the archive, or some of them.
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
        let bundle = bundle(&cx.db, job)?;
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

/// A piece of a text that is too long for a reply, taken while the text is written: a whole one need not fit
/// into memory.
pub(super) struct Part {
    wanted: u32,
    content: String,
    /// The number of the piece that is being written, and its bytes so far.
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

    /// A piece of a text.
    pub(super) fn of(text: &str, wanted: u32) -> Part {
        let mut part = Part::new(wanted);
        part.push(text);
        part
    }

    /// A piece of a value as JSON.
    pub(super) fn of_json(value: &impl Serialize, wanted: u32) -> Result<Part, ToolError> {
        let mut part = Part::new(wanted);
        serde_json::to_writer(&mut part, value).map_err(|_| super::internal())?;
        Ok(part)
    }

    /// How many pieces there are, and the one that is wanted.
    pub(super) fn end(self) -> (u32, String) {
        (self.number, self.content)
    }

    /// Pieces are as long as they can be, and end between characters.
    fn push(&mut self, mut text: &str) {
        loop {
            let room = PART - self.length;
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

/// As many files as fit into one reply. A larger one comes in pieces, each a part of its own.
fn file_part(files: Vec<File>, wanted: u32) -> (u32, String, Vec<File>) {
    let mut parts: Vec<Vec<File>> = Vec::new();
    let mut size = usize::MAX;
    for file in files.into_iter().flat_map(|file| pieces(file, PART)) {
        size = size.saturating_add(file.content.len());
        match parts.last_mut() {
            Some(part) if size <= PART => part.push(file),
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

/// Import a job that job_export_bundle wrote with format json. It keeps its id unless that is taken, and
/// its status, so that work goes on where it was.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobImport {
    /// The bundle: all parts joined, as an object. Or name the file that holds it.
    bundle: Option<Map<String, Value>>,
    /// In place of `bundle`, a file with all parts joined: a workspace and the path in it, such as
    /// `app/job.json`. A bundle that is too large for a call comes this way.
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
            (None, None) => return Err(Reason::argument("bundle", "is missing; give it or `path`").into()),
            (Some(_), Some(_)) => return Err(Reason::argument("path", "stands in place of `bundle`").into()),
        };
        import::import(cx, bundle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_long_whole_and_cut_between_characters() {
        let text = format!("b{}", "aö€😀\n".repeat(PART / 5));
        for text in [text, "a".repeat(PART - 2), "a".repeat(PART - 1), String::new()] {
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
            assert_eq!(pieces.len(), json.len().div_ceil(PART));
            assert!(pieces.iter().all(|piece| piece.len() <= PART));
            assert!(pieces.concat() == json);
        }
        assert_eq!(Part::of("", 1).end(), (1, String::new()));
    }
}
