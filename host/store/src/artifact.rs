//! An artifact as its row and its content describe it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// The output of a process.
    Log,
    /// A diff.
    Diff,
    /// A call's arguments, as canonical JSON.
    Arguments,
    /// A call's result or error, as JSON.
    Result,
}

impl ArtifactKind {
    /// Stored form.
    pub const fn as_str(self) -> &'static str {
        match self {
            ArtifactKind::Log => "log",
            ArtifactKind::Diff => "diff",
            ArtifactKind::Arguments => "arguments",
            ArtifactKind::Result => "result",
        }
    }

    /// Kind from its stored form.
    pub fn parse(text: &str) -> Option<ArtifactKind> {
        [
            ArtifactKind::Log,
            ArtifactKind::Diff,
            ArtifactKind::Arguments,
            ArtifactKind::Result,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
    }
}

/// One artifact of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// `art_…`
    pub id: String,
    /// SHA-256 of the stored bytes, in hex.
    pub hash: String,
    /// Kind.
    pub kind: ArtifactKind,
    /// Holder of the share to which the artifact counts.
    pub holder: String,
    /// Bytes stored.
    pub size: i64,
    /// Original size in bytes.
    pub total_size: i64,
    /// Time of creation, RFC 3339.
    pub created_at: String,
    /// Time of expiry, RFC 3339.
    pub expires_at: String,
}
