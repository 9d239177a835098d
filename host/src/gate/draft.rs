//! The row of a call, from reaching the gate to its end.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use tollgate_sdk::ToolError;

use super::{Reply, Settled};
use crate::artifacts::{Artifact, ArtifactKind, CallArtifacts};
use crate::envelope::Charge;
use crate::hash;
use crate::storage::Operation;

/// The row of a call whose end is not known yet.
#[derive(Clone)]
pub(super) struct Draft {
    pub(super) started: Instant,
    pub(super) charge: Charge,
    pub(super) operation: Operation,
    pub(super) recording: Recording,
}

/// What is kept of a call beside its row.
#[derive(Clone, Default)]
pub(super) struct Recording {
    pub(super) artifacts: CallArtifacts,
    /// Its arguments, if they are kept.
    pub(super) arguments: Option<(Artifact, Arc<str>)>,
}

/// A result as it is kept: what the component wrote, or the error.
pub(super) fn content(result: &Result<Reply, ToolError>) -> Cow<'_, str> {
    match result {
        Ok(reply) => Cow::Borrowed(&reply.json),
        Err(err) => Cow::Owned(serde_json::json!({ "error": err }).to_string()),
    }
}

impl Draft {
    /// The row, now that the end is known.
    pub(super) fn settle(&self, settled: &Settled) -> Operation {
        let mut operation = self.operation.clone();
        operation.duration_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        operation.success = Some(settled.result.is_ok());
        operation.limit_triggered = settled
            .limit
            .filter(|limit| limit.is_limit())
            .map(|limit| limit.code().to_owned());
        if let Some(mutation) = &settled.mutation {
            operation.mutation_fingerprint = Some(mutation.fingerprint.clone());
            operation.changed_paths = serde_json::to_string(&mutation.changed).ok();
        }
        let recording = &self.recording;
        operation.artifacts = recording.artifacts.kept();
        operation
            .artifacts
            .extend(recording.arguments.iter().map(|(artifact, _)| artifact.clone()));
        if recording.artifacts.wants(ArtifactKind::Result) {
            let result = recording
                .artifacts
                .announce(ArtifactKind::Result, &content(&settled.result));
            operation.artifacts.extend(result);
        }
        let ids = operation.artifacts.iter().map(|artifact| artifact.id.as_str());
        operation.artifact_ids = match ids.collect::<Vec<&str>>() {
            none if none.is_empty() => None,
            some => serde_json::to_string(&some).ok(),
        };
        match &settled.result {
            Ok(reply) => operation.result_hash = Some(hash::sha256_hex(reply.json.as_bytes())),
            Err(err) => {
                operation.error_code = Some(err.code.clone());
                operation.failure_class = Some(failure_class(&err.code).to_owned());
            }
        }
        operation
    }
}

/// What kind of failure a code is.
fn failure_class(code: &str) -> &'static str {
    match code {
        "DEADLINE_EXCEEDED" => "timeout",
        "CANCELLED" => "cancelled",
        "GUEST_TRAPPED" | "MEMORY_LIMIT" | "TABLE_LIMIT" | "STACK_OVERFLOW" | "BAD_REPLY" => "trap",
        "HOST_FAILED" | "HOST_STOPPING" | "STORAGE_FAILED" | "STORAGE_FULL" | "STORAGE_BUSY" => "host",
        "INVALID_ARGUMENTS"
        | "MALFORMED_ARGUMENTS"
        | "ARGUMENTS_TOO_LARGE"
        | "ARGUMENTS_TOO_DEEP"
        | "ENVELOPE_REQUIRED"
        | "ENVELOPE_CONFLICT"
        | "ENVELOPE_CLOSED"
        | "UNKNOWN_ENVELOPE"
        | "MUTATION_BUDGET_EXHAUSTED"
        | "TEST_BUDGET_EXHAUSTED"
        | "DURATION_EXCEEDED" => "refused",
        _ => "tool_error",
    }
}
