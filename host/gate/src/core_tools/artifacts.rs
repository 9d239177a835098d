//! `artifact_get`

use std::io::ErrorKind;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollgate_components::tools::Tier;
use tollgate_core::effect::Effect;
use tollgate_sdk::{NextCall, ToolError};
use tollgate_store::artifacts::ArtifactKind;
use tollgate_store::storage::StoredArtifact;

use super::{CoreCx, CoreError, Tool, storage};
use crate::failure::unreachable;

/// Most bytes of one slice. As base64 it still fits into a reply.
const MAX_SLICE_BYTES: u32 = 24 << 10;

/// Read a slice of stored content, such as a test's log, by the id that an operation names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-resources" = addresses()))]
pub(super) struct Get {
    /// Artifact id, from `artifact_ids` of an operation in ledger_query.
    #[schemars(extend("x-values" = values()))]
    artifact_id: String,
    /// First byte of the slice. Default 0.
    #[serde(default)]
    offset: u64,
    /// Maximum number of bytes, 1 to 24576. Default 16384.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 24576))]
    limit: u32,
}

fn default_limit() -> u32 {
    16 << 10
}

fn addresses() -> Value {
    json!([{
        "path": "artifacts/{artifact_id}{?offset,limit}",
        "name": "artifact",
        "title": "Stored content",
        "description": "A slice of stored content, such as a test's log. The reply contains the address of the next \
            slice.",
        "content": "content",
    }])
}

fn values() -> Value {
    json!({"tool": "ledger_query", "arguments": {"limit": 200}, "items": "operations", "value": "artifact_ids"})
}

/// Encoding of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Encoding {
    Text,
    Base64,
}

/// A slice of an artifact.
#[derive(Serialize, JsonSchema)]
pub(super) struct Slice {
    /// Id of the artifact, as requested.
    artifact_id: String,
    /// Kind of content.
    kind: ArtifactKind,
    /// Operation that the artifact belongs to.
    op_id: String,
    /// Stored size in bytes.
    size: i64,
    /// Original size in bytes, if only part of it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_size: Option<i64>,
    /// SHA-256 of the stored content.
    sha256: String,
    /// Time of expiry.
    expires_at: String,
    /// First byte of the slice.
    offset: u64,
    /// First byte of the next slice, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Encoding of the content.
    encoding: Encoding,
    /// Bytes of the slice.
    content: String,
}

impl Tool for Get {
    const NAME: &'static str = "artifact_get";
    const TITLE: &'static str = "Read stored content";
    const EFFECT: Effect = Effect::Read;
    const TIER: Tier = Tier::Standard;
    type Output = Slice;

    fn run(self, cx: &CoreCx<'_>) -> Result<Slice, CoreError> {
        let id = tollgate_core::text::clean(tollgate_core::text::cut(&self.artifact_id, 64));
        let (Some(store), Some(found)) = (cx.artifacts, found(cx, &id)?) else {
            return Err(not_found(&id).into());
        };
        let artifact = &found.artifact;
        if found.collected || artifact.expires_at <= cx.now {
            return Err(expired(&found).into());
        }
        let limit = self.limit.clamp(1, MAX_SLICE_BYTES) as usize;
        let slice = store
            // Past the end there is nothing.
            .read(
                &artifact.hash,
                self.offset.min(artifact.size.cast_unsigned()),
                limit,
            )
            .map_err(|err| {
                tracing::error!(%err, id, "an artifact cannot be read");
                if err.kind() == ErrorKind::InvalidData {
                    return CoreError::Tool(changed(&found));
                }
                if err.kind() == ErrorKind::NotConnected {
                    return CoreError::Host(unreachable().error);
                }
                let error = ToolError::new("STORAGE_FAILED", "the artifact cannot be read");
                CoreError::Statement(error.remediation("Search the host's log for the operation's id."))
            })?
            .ok_or_else(|| expired(&found))?;
        Ok(self.slice(found, slice))
    }

    fn text(output: &Slice) -> Option<String> {
        (output.encoding == Encoding::Text).then(|| output.content.clone())
    }
}

/// Artifact that the caller may read: an identity may read only artifacts of its own operations.
fn found(cx: &CoreCx<'_>, id: &str) -> Result<Option<StoredArtifact>, CoreError> {
    let Some(found) = cx.session.artifacts().get(id).map_err(storage)? else {
        return Ok(None);
    };
    let actor = cx.session.operations().actor_of(&found.op_id).map_err(storage)?;
    let is_own = cx.identity.is_none_or(|me| actor.as_deref() == Some(me.as_str()));
    Ok(is_own.then_some(found))
}

impl Get {
    fn slice(self, found: StoredArtifact, bytes: Vec<u8>) -> Slice {
        let artifact = found.artifact;
        let (encoding, content, length) = write(&bytes);
        let end = self.offset.saturating_add(length as u64);
        let is_more = i64::try_from(end).is_ok_and(|end| end < artifact.size);
        Slice {
            artifact_id: artifact.id,
            kind: artifact.kind,
            op_id: found.op_id,
            size: artifact.size,
            total_size: (artifact.total_size > artifact.size).then_some(artifact.total_size),
            sha256: artifact.hash,
            expires_at: artifact.expires_at,
            offset: self.offset,
            next_offset: is_more.then_some(end),
            encoding,
            content,
        }
    }
}

/// Encodes bytes as text up to the last whole character, or as base64 if they are not text. Also returns the number
/// of encoded bytes.
fn write(bytes: &[u8]) -> (Encoding, String, usize) {
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(err) if err.error_len().is_none() && err.valid_up_to() > 0 => bytes
            .get(..err.valid_up_to())
            .and_then(|whole| std::str::from_utf8(whole).ok()),
        Err(_) => None,
    };
    match whole {
        Some(text) => (Encoding::Text, text.to_owned(), text.len()),
        None => (Encoding::Base64, BASE64_STANDARD.encode(bytes), bytes.len()),
    }
}

fn not_found(id: &str) -> ToolError {
    ToolError::new("ARTIFACT_NOT_FOUND", format!("there is no artifact {id}"))
        .remediation(
            "Take an id from artifact_ids of an operation; artifacts are kept only with [artifacts] enabled = true.",
        )
        .next_call(NextCall::new("ledger_query", serde_json::json!({})))
}

fn changed(found: &StoredArtifact) -> ToolError {
    let artifact = &found.artifact;
    ToolError::new(
        "ARTIFACT_CHANGED",
        format!(
            "the content of artifact {} was changed: its hash differs from the one in the ledger",
            artifact.id
        ),
    )
    .remediation(
        "Do not rely on the content. Tell the operator that stored content was changed, in the data directory or in the database.",
    )
    .context("artifact_id", artifact.id.as_str())
    .context("sha256", artifact.hash.as_str())
}

fn expired(found: &StoredArtifact) -> ToolError {
    let artifact = &found.artifact;
    ToolError::new(
        "ARTIFACT_EXPIRED",
        format!("the content of artifact {} is no longer stored", artifact.id),
    )
    .remediation(
        "Repeat the call that produced it; the operator can raise [artifacts] ttl_hours and max_mib.",
    )
    .context("artifact_id", artifact.id.as_str())
    .context("expires_at", artifact.expires_at.as_str())
    .context("sha256", artifact.hash.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_with_a_whole_character_and_bytes_are_base64() {
        assert_eq!(write("né".as_bytes()), (Encoding::Text, "né".to_owned(), 3));
        assert_eq!(write(&"né".as_bytes()[..2]), (Encoding::Text, "n".to_owned(), 1));
        assert_eq!(write(&[0xff, 0]), (Encoding::Base64, "/wA=".to_owned(), 2));
        assert_eq!(write(&"é".as_bytes()[..1]).0, Encoding::Base64);
        assert_eq!(write(&[]), (Encoding::Text, String::new(), 0));
    }
}
