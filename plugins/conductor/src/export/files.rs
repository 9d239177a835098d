//! The files that an archive of a job would hold.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{Bundle, markdown};
use crate::model::LogType;
use crate::tools::logs;

/// A file of the archive.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct File {
    /// Its path in the archive.
    pub path: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// Hex SHA-256 of its content.
    pub sha256: String,
    /// Its content.
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
            content,
        }
    }
}

/// Every file, the readable document first.
pub(crate) fn files(bundle: &Bundle) -> Vec<File> {
    let mut files = vec![
        File::new("README.md", markdown::document(bundle)),
        File::new("job.json", pretty(bundle)),
        File::new("policies.json", pretty(&bundle.effective_policies)),
    ];
    for (step, prompt) in bundle.steps.iter().zip(&bundle.prompts) {
        files.push(File::new(format!("prompts/{}.md", step.step_id), prompt.clone()));
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
        logs::markdown("Devlog", &bundle.job.title, &bundle.log),
    ));
    files.push(File::new(
        "DECISIONS.md",
        logs::markdown("Decisions", &bundle.job.title, &decisions),
    ));
    files.push(File::new("MISTAKES.md", markdown::mistakes(bundle)));
    if let Some(map) = &bundle.repository.map {
        files.push(File::new("REPO_MAP.md", map.clone()));
    }
    files
}

/// Indented JSON.
fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
