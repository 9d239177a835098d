//! Queries of the ledger's rows.

mod filter;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_core::effect::Effect;
use tollgate_core::text;

use super::engine::{Row, borrowed, sql};
use super::error::{StoreError, StoreResult};
use super::handles::{Ledger, Operations};
use super::ledger::{OpType, Operation};
use super::outcome::StoredTestOutcome;

pub use self::filter::OperationFilter;
pub(super) use self::filter::Rows;

/// Prefix of an unauthenticated caller's name.
const CLAIMED: &str = "claimed:";

/// Recorded form of a name that a call claims. It cannot look like an authenticated identity. `None` without a name.
pub fn claimed_actor(name: &str) -> Option<String> {
    let name = text::clean(text::cut(name, 200));
    let name = name.trim();
    (!name.is_empty()).then(|| format!("{CLAIMED}{name}"))
}

/// Name that a call claimed, if its caller was not authenticated.
pub fn claim(actor: &str) -> Option<&str> {
    actor.strip_prefix(CLAIMED)
}

/// A row of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct StoredOperation {
    /// Sequence number in the ledger.
    pub seq: i64,
    /// Id of the operation, for other calls.
    pub op_id: String,
    /// Envelope that the operation belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope_id: Option<String>,
    /// Time at which the call reached the gate.
    pub timestamp: String,
    /// Duration in milliseconds.
    pub duration_ms: f64,
    /// query, mutation, test_run or control.
    pub op_type: String,
    /// True if the call succeeded. Absent if the outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success: Option<bool>,
    /// Pack of the tool.
    pub pack: String,
    /// Name of the tool.
    pub tool: String,
    /// read, write or run.
    pub effect: String,
    /// Code of the refusal or failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Class of failure, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_class: Option<String>,
    /// Limit that refused the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_triggered: Option<String>,
    /// Caller: an identity, or `claimed:NAME`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Name of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Fingerprint of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation_fingerprint: Option<String>,
    /// Fingerprint of the failure, equal for repeated failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_fingerprint: Option<String>,
    /// Paths or entities that were changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_paths: Option<Vec<String>>,
    /// Changes in short, such as `+ a.py`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_diff: Option<String>,
    /// Tests that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_tests: Option<Vec<String>>,
    /// Outcome of the tests that the call ran, which is separate from `success`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<StoredTestOutcome>,
    /// Notes in the events of the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Registered workspace that the call was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Numbers of changed files, insertions and deletions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_stats: Option<Value>,
    /// Ids of the stored content, for artifact_get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_ids: Option<Vec<String>>,
    /// Verdicts of policies. Absent if no policy judged the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<SaidByPolicy>,
    /// State of the work tree before the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_before_hash: Option<String>,
    /// State of the work tree after the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_after_hash: Option<String>,
    /// The row's hash.
    pub hash: String,
    /// The connection it came over.
    #[serde(skip)]
    pub connection: String,
    /// The hash of its arguments.
    #[serde(skip)]
    pub args_hash: String,
    /// The hash of its result.
    #[serde(skip)]
    pub result_hash: Option<String>,
    /// The calls inside it, as JSON.
    #[serde(skip)]
    pub members: Option<String>,
}

/// Verdict of one policy on one call. Reasons are not kept, because they may repeat what the call contained.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SaidByPolicy {
    /// Name of the policy in the configuration.
    pub policy: String,
    /// `request` or `response`.
    pub phase: String,
    /// `enforce`, or `audit`, in which verdicts have no effect.
    pub mode: String,
    /// pass, amend, deny, ask or failed.
    pub verdict: String,
    /// Code that the policy gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Reason why the policy did not judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Answer of the client's user to the policy's question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// True if the policy failed to judge the call and, because it fails open, the call ran anyway.
    #[serde(skip_serializing_if = "is_false")]
    pub excused: bool,
    /// Duration of the verdict in microseconds. Absent in rows of older versions.
    #[serde(skip_serializing)]
    #[schemars(skip)]
    pub us: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl SaidByPolicy {
    /// Short form, such as `cel: deny CLOSED` or `cel: pass (audit)`.
    pub fn in_short(&self) -> String {
        let detail = self
            .code
            .as_ref()
            .or(self.cause.as_ref())
            .or(self.answer.as_ref());
        let detail = detail.map(|detail| format!(" {detail}")).unwrap_or_default();
        let mode = if self.mode == "audit" { " (audit)" } else { "" };
        format!("{}: {}{detail}{mode}", self.policy, self.verdict)
    }
}

impl Ledger<'_> {
    /// Appends a row by which a check finds out whether anything prevents the host from writing rows.
    pub(super) fn record_probe(self) -> StoreResult<()> {
        let probe = StoredOperation {
            op_id: "op_probe".to_owned(),
            op_type: "control".to_owned(),
            pack: "core".to_owned(),
            tool: "probe".to_owned(),
            effect: "read".to_owned(),
            ..StoredOperation::default()
        };
        let probe = probe.operation().ok_or_else(StoreError::no_session)?;
        self.record(&probe)
    }
}

impl StoredOperation {
    /// Operation for another ledger, without references into this one. `None` if the row contains values that this
    /// version does not know.
    pub fn operation(&self) -> Option<Operation> {
        let array = |list: &Option<Vec<String>>| {
            let list = list.as_ref()?;
            serde_json::to_string(list).ok()
        };
        Some(Operation {
            op_id: self.op_id.clone(),
            envelope_id: self.envelope_id.clone(),
            timestamp: self.timestamp.clone(),
            duration_ms: self.duration_ms,
            op_type: OpType::parse(&self.op_type)?,
            success: self.success,
            pack: self.pack.clone(),
            tool: self.tool.clone(),
            effect: Effect::parse(&self.effect)?,
            error_code: self.error_code.clone(),
            failure_class: self.failure_class.clone(),
            limit_triggered: self.limit_triggered.clone(),
            actor: self.actor.clone(),
            client: self.client.clone(),
            connection: self.connection.clone(),
            identity: None,
            request_id: None,
            host_id: String::new(),
            args_hash: self.args_hash.clone(),
            result_hash: self.result_hash.clone(),
            repo_before_hash: self.repo_before_hash.clone(),
            repo_after_hash: self.repo_after_hash.clone(),
            changed_paths: array(&self.changed_paths),
            diff_stats: self.diff_stats.as_ref().map(Value::to_string),
            short_diff: self.short_diff.clone(),
            mutation_fingerprint: self.mutation_fingerprint.clone(),
            failure_fingerprint: self.failure_fingerprint.clone(),
            failing_tests: array(&self.failing_tests),
            events: None,
            verdicts: None,
            artifact_ids: None,
            artifacts: Vec::new(),
            policy_rows: Vec::new(),
            gives_permits_back: false,
            left_behind: None,
            members: self.members.clone(),
            outcome: self
                .outcome
                .as_ref()
                .and_then(|outcome| serde_json::to_string(outcome).ok()),
            counters: None,
            workspace: self.workspace.clone(),
        })
    }
}

impl Operations<'_> {
    /// Packs whose calls by other hosts may have changed something between two places in the ledger.
    pub fn changed_by_others(self, host: &str, after: i64, until: i64) -> StoreResult<Vec<String>> {
        let sql = "SELECT DISTINCT pack FROM core_operations
            WHERE seq > ?2 AND seq <= ?3 AND host_id <> ?1 AND effect <> 'read' AND success = 1";
        self.0.engine.all(sql, sql![host, after, until], |row| row.get(0))
    }

    /// Place in the ledger shortly before everything recorded since a time. Searched from the end, because most
    /// queries are about recent times.
    pub fn place_before(self, time: &str) -> StoreResult<i64> {
        let head = self.0.ledger().head()?.seq;
        let sql = "SELECT timestamp FROM core_operations WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1";
        let mut at = self.0.engine.prepare(sql)?;
        for back in [16, 64, 256, 1_024, 4_096] {
            let place = head.saturating_sub(back);
            let found: Option<String> = at.maybe(sql![place], |row| row.get(0))?;
            if found.is_none_or(|found| found.as_str() < time) {
                return Ok(place);
            }
        }
        Ok(0)
    }

    /// Operations that match a filter.
    pub fn list(self, filter: &OperationFilter, limit: u32) -> StoreResult<Vec<StoredOperation>> {
        let (sql, params) = filter.statement(Rows::All, limit);
        self.0.engine.all(&sql, &borrowed(&params), stored)
    }

    /// First place in the ledger that was not pruned.
    pub fn oldest(self) -> StoreResult<Option<i64>> {
        self.0
            .engine
            .one("SELECT min(seq) FROM core_operations", &[], |row| row.get(0))
    }

    /// Caller of an operation.
    pub fn actor_of(self, op_id: &str) -> StoreResult<Option<String>> {
        self.0
            .engine
            .maybe(
                "SELECT actor FROM core_operations WHERE op_id = ?1",
                sql![op_id],
                |row| row.get(0),
            )
            .map(Option::flatten)
    }
}

pub(super) fn stored(row: &Row<'_>) -> StoreResult<StoredOperation> {
    let texts = |column: usize| -> StoreResult<Option<Vec<String>>> {
        let json: Option<String> = row.get(column)?;
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
    };
    Ok(StoredOperation {
        seq: row.get(0)?,
        op_id: row.get(1)?,
        envelope_id: row.get(2)?,
        timestamp: row.get(3)?,
        duration_ms: row.get(4)?,
        op_type: row.get(5)?,
        success: row.get(6)?,
        pack: row.get(7)?,
        tool: row.get(8)?,
        effect: row.get(9)?,
        error_code: row.get(10)?,
        failure_class: row.get(11)?,
        limit_triggered: row.get(12)?,
        actor: row.get(13)?,
        client: row.get(14)?,
        mutation_fingerprint: row.get(15)?,
        failure_fingerprint: row.get(16)?,
        changed_paths: texts(17)?,
        short_diff: row.get(18)?,
        failing_tests: texts(19)?,
        artifact_ids: texts(20)?,
        hash: row.get(21)?,
        connection: row.get(22)?,
        args_hash: row.get(23)?,
        result_hash: row.get(24)?,
        members: row.get(25)?,
        verdicts: row
            .get::<Option<String>>(26)?
            .and_then(|json| serde_json::from_str(&json).ok())
            .unwrap_or_default(),
        outcome: row
            .get::<Option<String>>(27)?
            .and_then(|json| serde_json::from_str(&json).ok()),
        notes: notes(row.get::<Option<String>>(28)?),
        diff_stats: row
            .get::<Option<String>>(29)?
            .and_then(|json| serde_json::from_str(&json).ok()),
        repo_before_hash: row.get(30)?,
        repo_after_hash: row.get(31)?,
        workspace: row.get(32)?,
    })
}

/// Notes in a row's events.
fn notes(events: Option<String>) -> Vec<String> {
    let events: Vec<Value> = events
        .and_then(|events| serde_json::from_str(&events).ok())
        .unwrap_or_default();
    let notes = events.iter().filter_map(|event| event.get("note")?.as_str());
    notes.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, NOW, YOUNG, operation, verify};
    use super::{OperationFilter, claimed_actor};

    #[test]
    fn a_claim_is_never_among_the_rows_of_an_identity_and_is_found_by_its_name() {
        let (_place, session) = fixture::ledger("");
        let issuer = "https://idp.example#ada";
        session.begin_write().unwrap();
        let actors = [
            Some("token:ada".to_owned()),
            claimed_actor("token:ada"),
            // As versions had it that did not mark claims.
            Some("ada".to_owned()),
            claimed_actor("ada"),
            claimed_actor("claimed:ada"),
            Some(issuer.to_owned()),
            claimed_actor(issuer),
            claimed_actor(" \n"),
            claimed_actor("\u{200b}token:ada"),
        ];
        for (number, actor) in actors.into_iter().enumerate() {
            let mut row = operation(number, None, NOW);
            row.actor = actor;
            session.ledger().record(&row).unwrap();
        }
        session.commit().unwrap();
        let found = |actor: &str| -> Vec<i64> {
            let filter = OperationFilter {
                actor: Some(actor.to_owned()),
                after: Some(0),
                ..OperationFilter::default()
            };
            let found = session.operations().list(&filter, 99).unwrap();
            found.iter().map(|operation| operation.seq).collect()
        };
        assert_eq!(found("token:ada"), [1]);
        assert_eq!(found("claimed:token:ada"), [2, 9]);
        assert_eq!(found("ada"), [3, 4]);
        assert_eq!(found("claimed:ada"), [3, 4]);
        assert_eq!(found("claimed:claimed:ada"), [5]);
        assert_eq!(found(issuer), [6]);
        assert_eq!(found(&format!("claimed:{issuer}")), [7]);
        assert_eq!(found(""), [] as [i64; 0]);
        assert_eq!(verify(&session, None), None);
    }

    #[test]
    fn a_place_is_before_all_that_came_since_and_not_long_before() {
        for (old, young) in [(0, 0), (0, 10), (10, 0), (60, 1), (60, 40), (10, 300)] {
            let rows = "o".repeat(old) + &"y".repeat(young);
            let (_place, session) = fixture::ledger(&rows);
            let place = session.operations().place_before(YOUNG).unwrap();
            let old = i64::try_from(old).unwrap();
            assert!(place <= old, "{rows}: {place}");
            let since = i64::try_from(rows.len()).unwrap() - place;
            let young = i64::try_from(young).unwrap();
            assert!(since <= 16.max(young * 4 + 4), "{rows}: {place}");
        }
    }
}
