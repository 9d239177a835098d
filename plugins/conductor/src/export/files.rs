//! Files of a job's archive.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Bundle, markdown};
use crate::model::LogType;
use crate::tools::logs::{self, TestsRun};

/// A file of the archive.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct File {
    /// Path in the archive.
    pub path: String,
    /// Size in bytes.
    pub bytes: usize,
    /// SHA-256 of the content in hexadecimal.
    pub sha256: String,
    /// Number of this piece, from 1, for a file that is too long for one reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub piece: Option<u32>,
    /// Content of the file, or of this piece; joined in order the pieces form the whole.
    pub content: String,
}

impl File {
    fn new(path: impl Into<String>, content: String) -> File {
        let digest = Sha256::digest(content.as_bytes());
        let sha256 = digest.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        File {
            path: path.into(),
            bytes: content.len(),
            sha256,
            piece: None,
            content,
        }
    }
}

/// Cuts a file that is longer than `most` bytes into pieces.
pub(crate) fn pieces(file: File, most: usize) -> Vec<File> {
    if file.content.len() <= most {
        return vec![file];
    }
    let mut pieces = Vec::new();
    let mut rest = file.content.as_str();
    while !rest.is_empty() {
        let (content, after) = rest.split_at(rest.floor_char_boundary(most));
        pieces.push(File {
            path: file.path.clone(),
            bytes: file.bytes,
            sha256: file.sha256.clone(),
            piece: u32::try_from(pieces.len() + 1).ok(),
            content: content.to_owned(),
        });
        rest = after;
    }
    pieces
}

/// First line of a prompt of a bundle.
pub(super) const PROMPT_NOTE: &str =
    "> Rendered from the state of the job at the export. Earlier prompts may have contained less.";

/// All files, the readable document first.
pub(crate) fn files(bundle: &Bundle) -> Vec<File> {
    let mut files = vec![
        File::new("README.md", markdown::document(bundle)),
        File::new("job.json", pretty(bundle)),
        File::new("policies.json", pretty(&bundle.effective_policies)),
    ];
    for (step, prompt) in bundle.steps.iter().zip(&bundle.prompts) {
        files.push(File::new(
            format!("prompts/{}.md", step.step_id),
            format!("{PROMPT_NOTE}\n\n{prompt}"),
        ));
    }
    for attempt in &bundle.attempts {
        let path = format!("attempts/{}-{}.json", attempt.step_id, attempt.attempt_id);
        files.push(File::new(path, pretty(attempt)));
    }
    for block in &bundle.context {
        let path = format!(
            "context/{}-{}.md",
            block.block_type.as_str().to_lowercase(),
            block.context_id
        );
        files.push(File::new(path, block.content.clone()));
    }
    let decisions: Vec<_> = bundle
        .log
        .iter()
        .filter(|entry| entry.log_type == LogType::Decision)
        .cloned()
        .collect();
    files.push(File::new(
        "DEVLOG.md",
        logs::markdown(
            "Devlog",
            &bundle.job.title,
            &bundle.log,
            &TestsRun::of(&bundle.attempts),
        ),
    ));
    files.push(File::new(
        "DECISIONS.md",
        logs::markdown("Decisions", &bundle.job.title, &decisions, &TestsRun::default()),
    ));
    files.push(File::new("MISTAKES.md", markdown::mistakes(bundle)));
    if let Some(map) = &bundle.repository.map {
        files.push(File::new("REPO_MAP.md", map.clone()));
    }
    if let Some(deprecated) = &bundle.repository.deprecated {
        files.push(File::new("DEPRECATED.md", deprecated.clone()));
    }
    files
}

/// Indented JSON.
fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
