//! Filters for rows of the ledger.

use tollgate_core::identity::Identity;

use super::super::value::Value as SqlValue;
use super::{StoredOperation, claim, claimed_actor};

/// Filter for operations. Absent fields do not restrict the result.
#[derive(Debug, Clone, Default)]
pub struct OperationFilter {
    /// Envelope.
    pub envelope_id: Option<String>,
    /// Pack.
    pub pack: Option<String>,
    /// Tool.
    pub tool: Option<String>,
    /// Actor: an identity, or a claimed name.
    pub actor: Option<String>,
    /// Success of the call.
    pub success: Option<bool>,
    /// True for operations whose tests all passed, false for those whose tests did not.
    pub tests_passed: Option<bool>,
    /// Failure fingerprint, or the beginning of one.
    pub failure_fingerprint: Option<String>,
    /// Earliest time, inclusive.
    pub since: Option<String>,
    /// Latest time, exclusive.
    pub until: Option<String>,
    /// Effect.
    pub effect: Option<String>,
    /// Connection.
    pub connection: Option<String>,
    /// Hash of the arguments.
    pub args_hash: Option<String>,
    /// Policy that judged the call.
    pub policy: Option<String>,
    /// Id of the operation.
    pub op_id: Option<String>,
    /// Code of a refusal or failure.
    pub error_code: Option<String>,
    /// Only rows before this place, newest first.
    pub before: Option<i64>,
    /// Only rows after this place, oldest first unless `newest_first` is set.
    pub after: Option<i64>,
    /// Newest first in any case.
    pub newest_first: bool,
}

/// Kind of rows to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::storage) enum Rows {
    All,
    /// Operations with batch members.
    WithMembers,
}

impl OperationFilter {
    /// True if the oldest come first.
    pub(in crate::storage) fn is_oldest_first(&self) -> bool {
        self.after.is_some() && !self.newest_first
    }

    /// Returns true if the operation matches, regardless of its position.
    pub fn fits(&self, operation: &StoredOperation) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let is_by = |actor: &String| {
            let names = recorded_as(actor);
            operation
                .actor
                .as_ref()
                .is_some_and(|actor| names.contains(actor))
        };
        is(&self.envelope_id, operation.envelope_id.as_deref())
            && is(&self.pack, Some(&operation.pack))
            && is(&self.tool, Some(&operation.tool))
            && is(&self.effect, Some(&operation.effect))
            && is(&self.args_hash, Some(&operation.args_hash))
            && is(&self.op_id, Some(&operation.op_id))
            && is(&self.error_code, operation.error_code.as_deref())
            && is(&self.connection, Some(&operation.connection))
            && self.failure_fingerprint.as_ref().is_none_or(|wanted| {
                let found = operation.failure_fingerprint.as_ref();
                found.is_some_and(|found| found.starts_with(wanted))
            })
            && self.tests_passed.is_none_or(|wanted| {
                let outcome = operation.outcome.as_ref();
                outcome.is_some_and(|outcome| outcome.is_failure() != wanted)
            })
            && self.actor.as_ref().is_none_or(is_by)
            && self
                .policy
                .as_ref()
                .is_none_or(|policy| operation.verdicts.iter().any(|said| said.policy == *policy))
            && self
                .success
                .is_none_or(|success| operation.success == Some(success))
            && self
                .since
                .as_ref()
                .is_none_or(|since| operation.timestamp >= *since)
            && self
                .until
                .as_ref()
                .is_none_or(|until| operation.timestamp < *until)
    }

    /// Statement with only the conditions that restrict, so that each kind of query can use its index.
    pub(in crate::storage) fn statement(&self, rows: Rows, limit: u32) -> (String, Vec<SqlValue>) {
        let text = |text: &Option<String>| text.clone().map(SqlValue::Text);
        let conditions = [
            ("envelope_id =", text(&self.envelope_id)),
            ("pack =", text(&self.pack)),
            ("tool =", text(&self.tool)),
            ("failure_fingerprint >=", text(&self.failure_fingerprint)),
            // Every hex digit is followed by a letter that is not one.
            (
                "failure_fingerprint <",
                self.failure_fingerprint
                    .as_ref()
                    .map(|prefix| SqlValue::Text(format!("{prefix}g"))),
            ),
            ("effect =", text(&self.effect)),
            ("connection =", text(&self.connection)),
            ("op_id =", text(&self.op_id)),
            ("error_code =", text(&self.error_code)),
            ("args_hash =", text(&self.args_hash)),
            ("timestamp >=", text(&self.since)),
            ("timestamp <", text(&self.until)),
            ("seq <", self.before.map(SqlValue::Integer)),
            ("seq >", self.after.map(SqlValue::Integer)),
        ];
        let mut clauses = Vec::new();
        let mut params = Vec::new();
        for (condition, value) in conditions {
            if let Some(value) = value {
                params.push(value);
                clauses.push(format!("{condition} ?{}", params.len()));
            }
        }
        if let Some(actor) = &self.actor {
            let places: Vec<String> = recorded_as(actor)
                .into_iter()
                .map(|name| {
                    params.push(SqlValue::Text(name));
                    format!("?{}", params.len())
                })
                .collect();
            clauses.push(format!("actor IN ({})", places.join(", ")));
        }
        if let Some(policy) = &self.policy {
            params.push(SqlValue::Text(policy.clone()));
            clauses.push(format!(
                "EXISTS (SELECT 1 FROM json_each(verdicts) AS said WHERE said.value ->> 'policy' = ?{})",
                params.len()
            ));
        }
        // Written out, because the index of failures is defined for exactly this condition.
        clauses.extend(
            self.success
                .map(|success| format!("success = {}", i64::from(success))),
        );
        if let Some(passed) = self.tests_passed {
            let is = if passed { "=" } else { "<>" };
            clauses.push(format!("outcome ->> 'result' {is} 'passed'"));
        }
        if rows == Rows::WithMembers {
            clauses.push("members IS NOT NULL".to_owned());
        }
        if clauses.is_empty() {
            clauses.push("1 = 1".to_owned());
        }
        params.push(SqlValue::Integer(i64::from(limit)));
        let order = if self.is_oldest_first() { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT seq, op_id, envelope_id, timestamp, duration_ms, op_type, success, pack, tool, effect, error_code,
                 failure_class, limit_triggered, actor, client, mutation_fingerprint, failure_fingerprint, changed_paths,
                 short_diff, failing_tests, artifact_ids, hash, connection, args_hash, result_hash, members, verdicts,
                 outcome, events, diff_stats, repo_before_hash,
                 coalesce(repo_after_hash, (SELECT state FROM core_states_after WHERE op_id = core_operations.op_id)),
                 workspace
             FROM core_operations WHERE {} ORDER BY seq {order} LIMIT ?{}",
            clauses.join(" AND "),
            params.len()
        );
        (sql, params)
    }
}

/// Forms under which rows record an actor. A name that cannot be an identity is found as claimed, and also without
/// the prefix, as in old rows.
fn recorded_as(actor: &str) -> Vec<String> {
    let is_claim = claim(actor).is_some();
    let Some(claimed) = claimed_actor(claim(actor).unwrap_or(actor)) else {
        return vec![actor.to_owned()];
    };
    let name = claim(&claimed).unwrap_or_default().to_owned();
    match (Identity::could_be(&name) || claim(&name).is_some(), is_claim) {
        // An authenticated identity differs from a claim of the same name.
        (true, true) => vec![claimed],
        (true, false) => vec![actor.to_owned()],
        (false, _) => vec![name, claimed],
    }
}
