//! Recorded content of a call: its arguments and its result, if they were recorded and still exist.

use std::io::ErrorKind;

use serde::Serialize;
use serde_json::Value;
use tollgate_core::client_name;
use tollgate_core::effect::Effect;
use tollgate_core::failure_class::FailureClass;
use tollgate_core::hash::sha256_hex;
use tollgate_gate::REFUSED_BEFORE_POLICIES;
use tollgate_sandbox::bindings::policy::exports::tollgate::host::judge as wit;
use tollgate_sandbox::bindings::tollgate::host::component;
use tollgate_sdk::Timestamp;
use tollgate_store::artifacts::{ArtifactKind, ArtifactStore};
use tollgate_store::storage::{Session, StoreResult, StoredOperation, claim};

/// Reason why a recorded call cannot be evaluated again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// The operator did not record content, or not yet.
    NotRecorded,
    /// A policy denied the result, so it was not stored.
    Denied,
    /// The content was stored and has expired.
    Expired,
    /// The content is longer than the maximum size of an artifact.
    Cut,
    /// The content does not match the hash in the ledger.
    Altered,
    /// The gate refused the call before any policy was evaluated.
    RefusedBefore,
}

impl Missing {
    /// Reason as a sentence about one call.
    pub const fn phrase(self) -> &'static str {
        match self {
            Missing::NotRecorded => "the arguments were not recorded",
            Missing::Denied => "a policy denied the call, so its arguments were not stored",
            Missing::Expired => "the recorded arguments have expired",
            Missing::Cut => "the arguments were too long to be recorded completely",
            Missing::Altered => "the recorded arguments do not match the hash in the ledger",
            Missing::RefusedBefore => "the call was refused before policies were asked",
        }
    }
}

/// Sources of recorded content.
pub(super) struct Records<'a> {
    pub(super) session: &'a Session,
    pub(super) store: Option<&'a ArtifactStore>,
}

impl Records<'_> {
    /// A recorded call as policies saw it.
    pub(super) fn request(
        &self,
        row: &StoredOperation,
        effect: Effect,
    ) -> StoreResult<Result<wit::Request, Missing>> {
        if was_refused_before(row) {
            return Ok(Err(Missing::RefusedBefore));
        }
        let was_judged = !row.verdicts.is_empty();
        let kept = self.content(row, ArtifactKind::Arguments)?;
        let arguments = match kept {
            Err(Missing::NotRecorded) if was_judged && class_of(row) == Some(FailureClass::Refused) => {
                Err(Missing::Denied)
            }
            Ok(bytes) if sha256_hex(&bytes) != row.args_hash => Err(Missing::Altered),
            Ok(bytes) => String::from_utf8(bytes).map_err(|_| Missing::Altered),
            Err(missing) => Err(missing),
        };
        Ok(arguments.map(|arguments| request(row, effect, arguments)))
    }

    /// A recorded result as policies saw it. `None` if it was not stored, or is not the tool's own.
    pub(super) fn outcome(&self, row: &StoredOperation) -> StoreResult<Option<wit::Outcome>> {
        let is_own = class_of(row).is_none_or(FailureClass::is_of_tool);
        let (Some(success), true) = (row.success, is_own) else {
            return Ok(None);
        };
        let kept = self.content(row, ArtifactKind::Result)?;
        let body = kept.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(body.map(|body| wit::Outcome {
            success,
            error_code: row.error_code.clone(),
            body,
            text: None,
            // Durations are small and never negative.
            duration_ms: std::time::Duration::try_from_secs_f64(row.duration_ms / 1_000.0)
                .map_or(0, |took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        }))
    }

    fn content(&self, row: &StoredOperation, kind: ArtifactKind) -> StoreResult<Result<Vec<u8>, Missing>> {
        for id in row.artifact_ids.iter().flatten() {
            let Some(stored) = self
                .session
                .artifacts()
                .get(id)?
                .filter(|stored| stored.artifact.kind == kind)
            else {
                continue;
            };
            let artifact = stored.artifact;
            if artifact.size < artifact.total_size {
                return Ok(Err(Missing::Cut));
            }
            let size = usize::try_from(artifact.size).unwrap_or_default();
            let read = self.store.map(|store| store.read(&artifact.hash, 0, size));
            return Ok(match read {
                Some(Ok(Some(bytes))) => Ok(bytes),
                Some(Err(err)) if err.kind() == ErrorKind::InvalidData => Err(Missing::Altered),
                _ => Err(Missing::Expired),
            });
        }
        Ok(Err(Missing::NotRecorded))
    }
}

fn class_of(row: &StoredOperation) -> Option<FailureClass> {
    FailureClass::parse(row.failure_class.as_deref()?)
}

/// True if the gate refused a call before any policy was evaluated. If that is in doubt, the call is judged. Earlier
/// versions recorded some of these refusals with the class of a tool's own error, and such calls are judged as well.
fn was_refused_before(row: &StoredOperation) -> bool {
    let code = row.error_code.as_deref().unwrap_or_default();
    row.verdicts.is_empty()
        && class_of(row) == Some(FailureClass::Refused)
        && REFUSED_BEFORE_POLICIES.contains(&code)
}

fn request(row: &StoredOperation, effect: Effect, arguments: String) -> wit::Request {
    let claims = |name: &str| {
        let arguments: Value = serde_json::from_str(&arguments).unwrap_or_default();
        let claimed = arguments.get("actor").and_then(Value::as_str);
        claimed
            .is_some_and(|claimed| tollgate_core::text::clean(tollgate_core::text::cut(claimed, 200)) == name)
    };
    wit::Request {
        op_id: row.op_id.clone(),
        pack: row.pack.clone(),
        tool: row.tool.clone(),
        effect: match effect {
            Effect::Read => component::Effect::Read,
            Effect::Write => component::Effect::Write,
            Effect::Run => component::Effect::Run,
        },
        args_hash: row.args_hash.clone(),
        envelope_id: row.envelope_id.clone(),
        // Rows from before claims were marked contain the claimed name unmarked.
        identity: row
            .actor
            .clone()
            .filter(|actor| claim(actor).is_none() && !claims(actor)),
        client: row
            .client
            .as_deref()
            .map(|client| client_name::name_in(client).to_owned()),
        connection: row.connection.clone(),
        at: Timestamp::parse(&row.timestamp).map_or(0, Timestamp::as_ms),
        notes: Vec::new(),
        settings: String::new(),
        arguments,
    }
}

#[cfg(test)]
mod tests {
    use tollgate_store::storage::SaidByPolicy;

    use super::*;

    fn row(class: &str, code: &str) -> StoredOperation {
        StoredOperation {
            failure_class: Some(class.to_owned()),
            error_code: Some(code.to_owned()),
            ..StoredOperation::default()
        }
    }

    #[test]
    fn a_row_tells_whether_a_call_was_refused_before_policies() {
        for (class, code, is_refused) in [
            ("refused", "SCOPE_MISSING", true),
            ("refused", "TASKS_REQUIRED", true),
            // Refusals of limits and of closed envelopes follow the policies.
            ("refused", "ANY_OTHER", false),
            ("refused", "MUTATION_BUDGET_EXHAUSTED", false),
            ("refused", "ENVELOPE_CLOSED", false),
            ("refused", "CANCELLED", false),
            ("tool_error", "ANY_OTHER", false),
            ("host", "STORAGE_FAILED", false),
            // A component may return any code.
            ("tool_error", "SCOPE_MISSING", false),
        ] {
            assert_eq!(
                was_refused_before(&row(class, code)),
                is_refused,
                "{class} {code}"
            );
        }
        // A policy may deny with any code.
        let mut denied = row("refused", "SCOPE_MISSING");
        denied.verdicts = vec![SaidByPolicy::default()];
        assert!(!was_refused_before(&denied));
        assert!(!was_refused_before(&StoredOperation::default()));
    }
}
