//! The ledger's rows and the hash chain that links them.
//!
//! Each row's hash covers its content, its place and the hash of the row before it. A row that was changed, removed,
//! inserted or replaced breaks the chain at a place that `verify.rs` reports.

mod storable;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tollgate_core::effect::Effect;
use tollgate_core::hash::hex;
use tollgate_core::identity::Identity;

use super::approvals::PolicyRow;
use super::engine::postgres::{Postgres, ROW_SETTING, is_id};
use super::engine::{AsSql as _, Column, Engine, Row, Sql, Text, sql};
use super::error::{StoreError, StoreResult, exactly_one};
use super::handles::Ledger;
use super::session::Written;
use super::states_after;
use super::states_found;
use super::work_trees::{Cause, Sighting};
use crate::artifact::Artifact;

/// Operation type of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpType {
    /// The call read.
    #[default]
    Query,
    /// The call may have changed something: one mutation.
    Mutation,
    /// The call ran tests: one test run.
    TestRun,
    /// The call was about envelopes or the ledger itself, and is free.
    Control,
}

impl OpType {
    /// Type from its recorded form.
    pub(super) fn parse(text: &str) -> Option<OpType> {
        let all = [OpType::Query, OpType::Mutation, OpType::TestRun, OpType::Control];
        all.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Recorded form.
    pub const fn as_str(self) -> &'static str {
        match self {
            OpType::Query => "query",
            OpType::Mutation => "mutation",
            OpType::TestRun => "test_run",
            OpType::Control => "control",
        }
    }
}

/// One call as the ledger records it: only hashes and names, no content.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Operation {
    /// Id, created when the call reached the gate.
    pub op_id: String,
    /// Envelope of the call.
    pub envelope_id: Option<String>,
    /// Time at which the call reached the gate, as RFC 3339 text.
    pub timestamp: String,
    /// Time from the call's arrival at the gate to its end, in milliseconds.
    pub duration_ms: f64,
    /// Operation type.
    pub op_type: OpType,
    /// True if the call succeeded. Absent if the outcome is unknown.
    pub success: Option<bool>,
    /// Pack of the tool.
    pub pack: String,
    /// Tool name, never an alias.
    pub tool: String,
    /// Effect of the tool.
    pub effect: Effect,
    /// Code of the refusal or failure.
    pub error_code: Option<String>,
    /// Class of the failure: [`FailureClass`](tollgate_core::failure_class::FailureClass).
    pub failure_class: Option<String>,
    /// Limit that refused it.
    pub limit_triggered: Option<String>,
    /// Caller: authenticated by the transport, or otherwise claimed in the call's `actor` argument.
    pub actor: Option<String>,
    /// Name and version that the client claims.
    pub client: Option<String>,
    /// Connection of the call.
    pub connection: String,
    /// Request id from the client.
    pub request_id: Option<String>,
    /// Identity, if the transport authenticated one. Not part of the row, which names no envelope of another
    /// identity.
    #[serde(skip)]
    pub identity: Option<Identity>,
    /// Host process that ran it.
    pub host_id: String,
    /// SHA-256 of the canonical arguments.
    pub args_hash: String,
    /// SHA-256 of the reply.
    pub result_hash: Option<String>,
    /// State of the work tree before the call.
    pub repo_before_hash: Option<String>,
    /// State of the work tree after the call.
    pub repo_after_hash: Option<String>,
    /// JSON array of the changed paths or entities.
    pub changed_paths: Option<String>,
    /// JSON object {files_changed, insertions, deletions}.
    pub diff_stats: Option<String>,
    /// Lines such as `+ a.py`.
    pub short_diff: Option<String>,
    /// SHA-256 of the mutation.
    pub mutation_fingerprint: Option<String>,
    /// SHA-256 of the failure.
    pub failure_fingerprint: Option<String>,
    /// JSON array of failing test names.
    pub failing_tests: Option<String>,
    /// JSON array of the events that its component appended.
    pub events: Option<String>,
    /// JSON array of the verdicts of policies.
    pub verdicts: Option<String>,
    /// JSON array of ids of stored artifacts.
    pub artifact_ids: Option<String>,
    /// JSON array of the batch members: [`MemberCall`](super::MemberCall).
    #[serde(default)]
    pub members: Option<String>,
    /// JSON object of the test outcome: [`StoredTestOutcome`](super::StoredTestOutcome). Absent if the call ran no tests.
    #[serde(default)]
    pub outcome: Option<String>,
    /// JSON object of the counters of its envelope, including the call, and of those of enclosing envelopes.
    #[serde(default)]
    pub counters: Option<String>,
    /// Registered workspace that the call was about.
    #[serde(default)]
    pub workspace: Option<String>,
    /// Work tree as the call left it, for the states of its envelope. Not part of the row.
    #[serde(skip)]
    pub left_behind: Option<(Sighting, Cause)>,
    /// Artifacts, stored with the row but not part of it.
    #[serde(skip)]
    pub artifacts: Vec<Artifact>,
    /// Rows of policies, written with the row whatever the call's outcome. Not part of it.
    #[serde(skip)]
    pub policy_rows: Vec<PolicyRow>,
    /// True if the call gives back the permits that it took. Not part of the row, and false whenever that is in doubt,
    /// for example in the intent of a host that has died.
    #[serde(skip)]
    pub gives_permits_back: bool,
}

impl Operation {
    /// Adds events of the host after those of the component.
    pub fn add_events(&mut self, more: &[serde_json::Value]) {
        if more.is_empty() {
            return;
        }
        let mut events: Vec<serde_json::Value> = self
            .events
            .as_deref()
            .and_then(|events| serde_json::from_str(events).ok())
            .unwrap_or_default();
        events.extend_from_slice(more);
        self.events = Some(serde_json::Value::from(events).to_string());
    }

    /// Row for tests.
    #[doc(hidden)]
    pub fn for_tests(number: usize, envelope: Option<&str>, timestamp: &str) -> Operation {
        Operation {
            op_id: format!("op_{number}"),
            envelope_id: envelope.map(str::to_owned),
            timestamp: timestamp.to_owned(),
            duration_ms: 0.5,
            op_type: OpType::Mutation,
            success: Some(true),
            pack: "p".to_owned(),
            tool: "t".to_owned(),
            effect: Effect::Write,
            error_code: None,
            failure_class: None,
            limit_triggered: None,
            actor: None,
            client: None,
            connection: "c".to_owned(),
            request_id: None,
            identity: None,
            host_id: "h".to_owned(),
            args_hash: "a".to_owned(),
            result_hash: None,
            repo_before_hash: None,
            repo_after_hash: None,
            changed_paths: None,
            diff_stats: None,
            short_diff: None,
            mutation_fingerprint: None,
            failure_fingerprint: None,
            failing_tests: None,
            events: None,
            verdicts: None,
            artifact_ids: None,
            artifacts: Vec::new(),
            policy_rows: Vec::new(),
            gives_permits_back: false,
            members: None,
            outcome: None,
            counters: None,
            workspace: None,
            left_behind: None,
        }
    }
}

/// Columns that a row's hash covers, in hash order.
pub(super) const HASHED_COLUMNS: usize = 30;
/// Index of the first later column: after the place, the hashed columns and both hashes.
const LATER_AT: usize = HASHED_COLUMNS + 3;
/// Columns of a row.
const ROW_COLUMNS: usize = LATER_AT + LATER_COLUMNS.len();
/// Columns of a row with its place and its hashes, for [`link`].
pub(super) const CHAIN_COLUMNS: &str = "seq, op_id, envelope_id, timestamp, duration_ms, op_type, success, pack,
    tool, effect, error_code, failure_class, limit_triggered, actor, client, connection, request_id, host_id, args_hash,
    result_hash, repo_before_hash, repo_after_hash, changed_paths, diff_stats, short_diff, mutation_fingerprint,
    failure_fingerprint, failing_tests, events, verdicts, artifact_ids, prev_hash, hash, members,
    outcome, counters, workspace";
/// The hash before the first row.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

const INSERT: &str = "INSERT INTO core_operations (seq, op_id, envelope_id, timestamp, duration_ms, op_type, success, pack,
    tool, effect, error_code, failure_class, limit_triggered, actor, client, connection, request_id, host_id, args_hash,
    result_hash, repo_before_hash, repo_after_hash, changed_paths, diff_stats, short_diff, mutation_fingerprint,
    failure_fingerprint, failing_tests, events, verdicts, artifact_ids, prev_hash, hash, members,
    outcome, counters, workspace)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37)";

/// INSERT for a server, which assigns the row its place and its hashes. Fails unless exactly that row was added with
/// the expected hash, whatever triggers do.
static INSERT_CHECKED: LazyLock<String> = LazyLock::new(|| {
    let place: String = (1..=8)
        .rev()
        .map(|at| format!(" || substr(int8send(seq), {at}, 1)"))
        .collect();
    format!(
        "WITH added AS ({INSERT} RETURNING op_id, seq, prev_hash, hash)
        SELECT max(seq), set_config('{ROW_SETTING}', max(op_id), true), 1 / CASE WHEN count(*) = 1 AND bool_and(length(prev_hash) = 64 AND hash = encode(sha256(
            '\\x034000000000000000'::bytea || convert_to(prev_hash, 'UTF8') || '\\x010800000000000000'::bytea{place}
            || decode(?33, 'hex')), 'hex')) THEN 1 ELSE 0 END
        FROM added"
    )
});

impl Operation {
    /// Values of the row at a place. The hashes are added later.
    fn values(&self, seq: i64) -> [Sql<'_>; ROW_COLUMNS] {
        [
            Sql::Int(seq),
            self.op_id.as_sql(),
            self.envelope_id.as_sql(),
            self.timestamp.as_sql(),
            Sql::Real(self.duration_ms),
            Sql::Text(self.op_type.as_str()),
            self.success.as_sql(),
            self.pack.as_sql(),
            self.tool.as_sql(),
            Sql::Text(self.effect.as_str()),
            self.error_code.as_sql(),
            self.failure_class.as_sql(),
            self.limit_triggered.as_sql(),
            self.actor.as_sql(),
            self.client.as_sql(),
            self.connection.as_sql(),
            self.request_id.as_sql(),
            self.host_id.as_sql(),
            self.args_hash.as_sql(),
            self.result_hash.as_sql(),
            self.repo_before_hash.as_sql(),
            self.repo_after_hash.as_sql(),
            self.changed_paths.as_sql(),
            self.diff_stats.as_sql(),
            self.short_diff.as_sql(),
            self.mutation_fingerprint.as_sql(),
            self.failure_fingerprint.as_sql(),
            self.failing_tests.as_sql(),
            self.events.as_sql(),
            self.verdicts.as_sql(),
            self.artifact_ids.as_sql(),
            Sql::Null,
            Sql::Null,
            self.members.as_sql(),
            self.outcome.as_sql(),
            self.counters.as_sql(),
            self.workspace.as_sql(),
        ]
    }
}

/// End of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Place of the last row. 0 before the first.
    pub seq: i64,
    /// Hash of the last row.
    pub hash: String,
}

impl Head {
    /// Head of an empty chain.
    pub(super) fn before_all() -> Head {
        Head {
            seq: 0,
            hash: GENESIS.to_owned(),
        }
    }
}

impl Ledger<'_> {
    /// Appends a row to the ledger. Fails unless exactly that row is stored.
    pub fn record(self, operation: &Operation) -> StoreResult<()> {
        let storable = operation.storable();
        let disowned;
        let mut operation = &*storable;
        if self.names_another_ones_envelope(operation)? {
            disowned = Operation {
                envelope_id: None,
                ..operation.clone()
            };
            operation = &disowned;
        }
        // Only the first row of a transaction takes states that are not in the chain yet.
        let known_head = self.0.known_head.take();
        let (states, finds) = match known_head.is_some() || self.0.has_row() {
            true => (Vec::new(), Vec::new()),
            false if !self.0.work_trees().may_be_unchained()? => (Vec::new(), Vec::new()),
            false => (
                self.0.work_trees().unchained_states()?,
                self.0.work_trees().unchained_finds()?,
            ),
        };
        let telling;
        if !states.is_empty() || !finds.is_empty() {
            let mut one = operation.clone();
            one.add_events(&states_after::events(&states));
            one.add_events(&states_found::events(&finds));
            telling = one;
            operation = &telling;
        }
        let is_telling = !states.is_empty() || !finds.is_empty();
        let seq = match &self.0.engine {
            Engine::Sqlite(_) => {
                let head = self.append(operation, known_head)?;
                let seq = head.seq;
                self.0.known_head.set(Some(head));
                Some(seq)
            }
            Engine::Postgres(postgres) => self.append_on_server(postgres, operation, is_telling)?,
        };
        if let Some(seq) = seq {
            self.0.work_trees().chain_states(&states, seq)?;
            self.0.work_trees().chain_finds(&finds, seq)?;
        }
        for artifact in &operation.artifacts {
            self.0.artifacts().insert(&operation.op_id, artifact)?;
        }
        for row in &operation.policy_rows {
            self.0.approvals().write_policy_row(row)?;
        }
        self.0.written.replace(Some(Written::Row {
            op_id: operation.op_id.clone(),
            duration_ms: operation.duration_ms,
        }));
        Ok(())
    }

    /// Appends a row. There are no other writers while the transaction is open, so its own last row is the end of the
    /// chain.
    fn append(self, operation: &Operation, known_head: Option<Head>) -> StoreResult<Head> {
        let head = known_head.map_or_else(|| self.head(), Ok)?;
        let seq = head.seq + 1;
        let mut values = operation.values(seq);
        let mut hasher = RowHasher::new();
        hasher.start(seq, &head.hash);
        hasher.add_content(&values);
        let hash = hasher.finish();
        values[HASHED_COLUMNS + 1] = head.hash.as_sql();
        values[HASHED_COLUMNS + 2] = hash.as_sql();
        exactly_one(self.0.engine.run(INSERT, &values)?)?;
        if self.hash_of(seq)?.as_ref() != Some(&hash) {
            return Err(StoreError::changed(0));
        }
        Ok(Head { seq, hash })
    }

    /// Makes the server append a row. From then on the rows of other hosts wait until the transaction ends, so the
    /// row is sent with the commit, unless its place is needed earlier.
    fn append_on_server(
        self,
        postgres: &Postgres,
        operation: &Operation,
        wants_place: bool,
    ) -> StoreResult<Option<i64>> {
        let mut values = operation.values(0);
        let mut hasher = RowHasher::new();
        hasher.add_content(&values);
        let content = hasher.content();
        values[HASHED_COLUMNS + 1] = Sql::Text("");
        values[HASHED_COLUMNS + 2] = content.as_sql();
        if wants_place || !postgres.is_open() || !is_id(&operation.op_id) {
            let place = self.0.engine.one(&*INSERT_CHECKED, &values, |row| row.get(0))?;
            return Ok(Some(place));
        }
        postgres.add_last(Text::from(&*INSERT_CHECKED), &operation.op_id, &values)?;
        Ok(None)
    }

    /// True if a row names an envelope that its caller could not have opened.
    fn names_another_ones_envelope(self, operation: &Operation) -> StoreResult<bool> {
        match (&operation.envelope_id, &operation.identity) {
            (Some(envelope), Some(caller)) => {
                let envelope = self.0.envelopes().get(envelope)?;
                Ok(envelope.is_none_or(|envelope| !envelope.is_visible(Some(caller))))
            }
            _ => Ok(false),
        }
    }

    /// Hash that a row should have, for tests that rewrite history.
    #[cfg(test)]
    pub(super) fn hash_of_row(self, seq: i64) -> StoreResult<String> {
        let mut hasher = RowHasher::new();
        self.0.engine.one(
            &format!("SELECT {CHAIN_COLUMNS} FROM core_operations WHERE seq = ?1"),
            sql![seq],
            |row| link(row, &mut hasher).map(|_| hasher.finish()),
        )
    }

    /// Hash of a row, if it exists.
    pub fn hash_of(self, seq: i64) -> StoreResult<Option<String>> {
        self.0.engine.maybe(
            "SELECT hash FROM core_operations WHERE seq = ?1",
            sql![seq],
            |row| row.get(0),
        )
    }

    /// True if the evidence of a transaction exists, so that it was committed. The caller holds the write lock, so
    /// the transaction has ended.
    pub fn holds(self, written: &Written) -> StoreResult<bool> {
        match written {
            Written::Row { op_id, duration_ms } => {
                let sql = "SELECT 1 FROM core_operations WHERE op_id = ?1 AND duration_ms = ?2";
                self.0.engine.exists(sql, sql![op_id, duration_ms])
            }
            // If others declared this host dead in the meantime, they wrote the row in its place.
            Written::Intent(op_id) => {
                let sql = "SELECT 1 FROM core_intents WHERE op_id = ?1";
                Ok(self.0.engine.exists(sql, sql![op_id])? || self.has(op_id)?)
            }
        }
    }

    /// True if a call has a row.
    pub fn has(self, op_id: &str) -> StoreResult<bool> {
        let sql = "SELECT 1 FROM core_operations WHERE op_id = ?1";
        self.0.engine.exists(sql, sql![op_id])
    }

    /// End of the chain. An anchor holds it if the last rows were pruned.
    pub fn head(self) -> StoreResult<Head> {
        let mut head = Head::before_all();
        let sql =
            "SELECT seq, hash FROM (SELECT seq, hash FROM core_operations ORDER BY seq DESC LIMIT 1) AS last
            UNION ALL SELECT last_seq, hash
                FROM (SELECT last_seq, hash FROM core_anchors ORDER BY first_seq DESC LIMIT 1) AS anchored";
        self.0.engine.each(sql, &[], |row| {
            let seq = row.get(0)?;
            if seq > head.seq {
                head = Head {
                    seq,
                    hash: row.get(1)?,
                };
            }
            Ok(())
        })?;
        Ok(head)
    }
}

/// A row as a link of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) seq: i64,
    pub(super) prev_hash: String,
    pub(super) hash: String,
    /// True if the hash matches the row's content.
    pub(super) is_intact: bool,
}

/// Reads a row that was selected with [`CHAIN_COLUMNS`].
pub(super) fn link(row: &Row<'_>, hasher: &mut RowHasher) -> StoreResult<Link> {
    let seq: i64 = row.get(0)?;
    // A hash that is not text matches no other.
    let text = |column: usize| row.column(column).map(|value| value.text().unwrap_or_default());
    let (prev_hash, hash) = (text(HASHED_COLUMNS + 1)?, text(HASHED_COLUMNS + 2)?);
    hasher.start(seq, prev_hash);
    for column in 1..=HASHED_COLUMNS {
        hasher.add(row.column(column)?);
    }
    hasher.add_later([
        row.column(LATER_AT)?,
        row.column(LATER_AT + 1)?,
        row.column(LATER_AT + 2)?,
        row.column(LATER_AT + 3)?,
    ]);
    Ok(Link {
        seq,
        is_intact: hasher.finish() == hash,
        prev_hash: prev_hash.to_owned(),
        hash: hash.to_owned(),
    })
}

/// Names of the later columns. The first one is hashed without its name.
const LATER_COLUMNS: [Option<&str>; 4] = [None, Some("outcome"), Some("counters"), Some("workspace")];

/// Hashes a row: each value with its kind and length in front, so that no two rows have the same bytes.
pub(super) struct RowHasher(Vec<u8>);

impl RowHasher {
    pub(super) fn new() -> RowHasher {
        RowHasher(Vec::with_capacity(1024))
    }

    /// Begins a row.
    pub(super) fn start(&mut self, seq: i64, prev_hash: &str) {
        self.0.clear();
        self.add(Column::Text(prev_hash.as_bytes()));
        self.add(Column::Int(seq));
    }

    /// Adds all of a row's values after its place.
    fn add_content(&mut self, values: &[Sql<'_>; ROW_COLUMNS]) {
        for value in &values[1..=HASHED_COLUMNS] {
            self.add((*value).into());
        }
        self.add_later(values[LATER_AT..].iter().map(|value| (*value).into()));
    }

    /// Hex digits of the added values.
    fn content(&self) -> String {
        hex(&self.0)
    }

    pub(super) fn add(&mut self, value: Column<'_>) {
        let (kind, bytes): (u8, &[u8]) = match value {
            Column::Null => (0, &[]),
            Column::Int(number) => return self.add_bytes(1, &number.to_le_bytes()),
            Column::Real(number) => return self.add_bytes(2, &number.to_bits().to_le_bytes()),
            Column::Text(bytes) => (3, bytes),
            Column::Blob(bytes) => (4, bytes),
        };
        self.add_bytes(kind, bytes);
    }

    /// Adds the later columns. A row without them keeps the hash from before they existed, so each column is hashed
    /// only if it is present, and with its name, so that none can take another's place.
    fn add_later<'v>(&mut self, values: impl IntoIterator<Item = Column<'v>>) {
        for (value, name) in values.into_iter().zip(LATER_COLUMNS) {
            if value == Column::Null {
                continue;
            }
            if let Some(name) = name {
                self.add(Column::Text(name.as_bytes()));
            }
            self.add(value);
        }
    }

    fn add_bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.0.push(kind);
        self.0.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn finish(&self) -> String {
        hex(&Sha256::digest(&self.0))
    }
}
