//! Envelopes and their counters. Admission is decided inside the transaction that counts it, so it is
//! exact however many calls and hosts race.

use serde_json::{Map, Value, json};
use tollgate_core::envelope::{Charge, Limits, Refusal, Standing, State};
use tollgate_core::identity::Identity;

use super::endings::Ending;
use super::engine::{Row, sql};
use super::error::{StoreResult, exactly_one};
use super::handles::Envelopes;
use super::ledger::Operation;
use super::over::Over;
use super::work_trees::{Cause, Sighting};

/// One envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// `env_…`
    pub id: String,
    /// Its state, limits and counters.
    pub standing: Standing,
    /// The workspace it is about.
    pub workspace: Option<String>,
    /// The client's own words for it.
    pub label: Option<String>,
    /// Note of the owner at the end.
    pub note: Option<String>,
    /// RFC 3339.
    pub opened_at: String,
    /// RFC 3339.
    pub closed_at: Option<String>,
    /// Reason of closing, if not by the owner.
    pub closed_by: Option<String>,
    /// The Git head of its workspace when it was opened.
    pub git_head: Option<String>,
    /// And when it was closed.
    pub closed_git_head: Option<String>,
    /// The newest mutation's fingerprint.
    pub last_mutation_fingerprint: Option<String>,
    /// The newest failure's fingerprint.
    pub last_failure_fingerprint: Option<String>,
    /// The host it was opened on.
    pub host_id: String,
    /// The connection it was opened over.
    pub connection: String,
    /// Identity of the opener, if the transport proved it.
    pub identity: Option<String>,
    /// The envelope around it, which its calls use as well.
    pub parent: Option<String>,
    /// Caller who closed it, as operations name callers.
    pub closed_actor: Option<String>,
    /// Until when it is open whatever becomes of its connection and its host, in milliseconds since 1970 UTC.
    pub detached_until_ms: Option<i64>,
    /// Number of the state of its work tree when it was opened, by which states are stored.
    pub index_version: Option<i64>,
    /// After a restart: true if a work tree was in another state than its last call left it in.
    pub restart_moved: Option<bool>,
    /// Time at which its own time or that of one around it was over, by the clock that counts from the machine's start.
    /// Only as [`Envelopes::as_at`] returns it, and only until a row tells of the end.
    pub over_boot_ms: Option<i64>,
}

impl Envelope {
    /// True if it exists for a caller: for an identity if it is its own, for a user of this machine anyway.
    pub fn is_visible(&self, caller: Option<&Identity>) -> bool {
        caller.is_none_or(|caller| self.identity.as_deref() == Some(caller.as_str()))
    }
}

const COLUMNS: &str =
    "id, state, max_mutations, max_test_runs, max_duration_sec, mutation_count, test_run_count,
    opened_boot_ms, workspace, label, note, opened_at, closed_at, closed_by, git_head, closed_git_head,
    last_mutation_fingerprint, last_failure_fingerprint, host_id, connection, identity, parent, closed_actor,
    detached_until_ms, max_edits, edit_count, index_version, restart_moved";

fn envelope(row: &Row<'_>) -> StoreResult<Envelope> {
    let state: String = row.get(1)?;
    Ok(Envelope {
        id: row.get(0)?,
        standing: Standing {
            // The column's CHECK leaves no other text; a damaged file counts as closed.
            state: State::parse(&state).unwrap_or(State::ClosedInterrupted),
            limits: Limits {
                max_mutations: row.get(2)?,
                max_test_runs: row.get(3)?,
                max_duration_sec: row.get(4)?,
                max_edits: row.get(24)?,
            },
            mutations: row.get(5)?,
            test_runs: row.get(6)?,
            edits: row.get(25)?,
            opened_boot_ms: row.get(7)?,
        },
        workspace: row.get(8)?,
        label: row.get(9)?,
        note: row.get(10)?,
        opened_at: row.get(11)?,
        closed_at: row.get(12)?,
        closed_by: row.get(13)?,
        git_head: row.get(14)?,
        closed_git_head: row.get(15)?,
        last_mutation_fingerprint: row.get(16)?,
        last_failure_fingerprint: row.get(17)?,
        host_id: row.get(18)?,
        connection: row.get(19)?,
        identity: row.get(20)?,
        parent: row.get(21)?,
        closed_actor: row.get(22)?,
        detached_until_ms: row.get(23)?,
        index_version: row.get(26)?,
        restart_moved: row.get(27)?,
        over_boot_ms: None,
    })
}

/// Counters of one envelope. Edits are named once there are any.
pub(super) fn counters_of(standing: &Standing) -> Value {
    let mut counters = json!({ "mutations": standing.mutations, "test_runs": standing.test_runs });
    if standing.edits > 0 {
        counters["edits"] = json!(standing.edits);
    }
    counters
}

/// Counters of an envelope and of those around it, as a row has them: `{"mutations": 3, "test_runs": 1, "around":
/// {"env_…": {…}}}`.
fn counters(around: &[(String, Standing)]) -> String {
    let of = counters_of;
    let mut all = around.iter();
    let mut counters = all.next().map_or(Value::Null, |(_, standing)| of(standing));
    let others: Map<String, Value> = all.map(|(id, standing)| (id.clone(), of(standing))).collect();
    if !others.is_empty() {
        counters["around"] = Value::Object(others);
    }
    counters.to_string()
}

/// Which envelopes to list.
#[derive(Debug, Clone, Default)]
pub struct EnvelopeFilter {
    /// Only these.
    pub state: Option<State>,
    /// Only of this workspace.
    pub workspace: Option<String>,
    /// Only those that this identity opened.
    pub identity: Option<Identity>,
    /// The time by the clock that counts from the machine's start: one whose time is over counts as closed. 0 for states
    /// as they are stored.
    pub boot_ms: i64,
    /// Only older than this one, as (opened_at, id).
    pub before: Option<(String, String)>,
}

/// Outcome of an admission.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// The call counts.
    Admitted(Admitted),
    /// The call does not count, because of the envelope or of one around it.
    Refused {
        /// The envelope that refuses, as it is now.
        envelope: Box<Envelope>,
        /// Reason.
        refusal: Refusal,
        /// The event of its end, if this ended it.
        event: Option<Value>,
    },
    /// There is no such envelope.
    Unknown,
}

/// Standing of an envelope with a call counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// The envelope's.
    pub standing: Standing,
    /// The counters of it and of those around it, for the call's row. Absent if the call costs nothing.
    pub counters: Option<String>,
    /// Milliseconds until the time of any of these envelopes is over.
    pub remaining_ms: Option<i64>,
}

/// The envelope whose time was over first, of an open one and those around it, and why it refuses.
fn refusal_by_time(chain: &[(String, Standing)], boot_ms: i64) -> Option<(&str, Refusal)> {
    let over = Over::of(chain, boot_ms)?;
    let (id, standing) = chain.get(over.place)?;
    let refusal = standing.admit(Charge::Nothing, boot_ms).err()?;
    Some((id, refusal))
}

/// Most envelopes around one.
pub const MAX_DEPTH: usize = 8;

impl Envelopes<'_> {
    /// Stores a new envelope.
    pub fn open(self, envelope: &Envelope) -> StoreResult<()> {
        let limits = &envelope.standing.limits;
        let sql = "INSERT INTO core_envelopes (id, state, workspace, label, opened_at, max_mutations, max_test_runs,
                max_duration_sec, opened_boot_ms, git_head, host_id, connection, identity, parent,
                detached_until_ms, max_edits)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
        self.0
            .engine
            .run(
                sql,
                sql![
                    envelope.id,
                    envelope.standing.state.as_str(),
                    envelope.workspace,
                    envelope.label,
                    envelope.opened_at,
                    limits.max_mutations,
                    limits.max_test_runs,
                    limits.max_duration_sec,
                    envelope.standing.opened_boot_ms,
                    envelope.git_head,
                    envelope.host_id,
                    envelope.connection,
                    envelope.identity,
                    envelope.parent,
                    envelope.detached_until_ms,
                    limits.max_edits,
                ],
            )
            .and_then(exactly_one)
    }

    /// One envelope.
    pub fn get(self, id: &str) -> StoreResult<Option<Envelope>> {
        self.0.engine.maybe(
            &format!("SELECT {COLUMNS} FROM core_envelopes WHERE id = ?1"),
            sql![id],
            envelope,
        )
    }

    /// Envelopes as they are at the filter's time, newest first.
    pub fn list(self, filter: &EnvelopeFilter, limit: u32) -> StoreResult<Vec<Envelope>> {
        let wanted = limit as usize;
        let mut found = Vec::new();
        let mut before = filter.before.clone();
        loop {
            let page = self.page(filter, before, limit)?;
            let is_last = page.len() < wanted;
            before = page.last().map(|last| (last.opened_at.clone(), last.id.clone()));
            for envelope in page {
                let envelope = self.as_at(envelope, filter.boot_ms)?;
                if filter.state.is_none_or(|state| state == envelope.standing.state) {
                    found.push(envelope);
                }
            }
            if is_last || found.len() >= wanted {
                found.truncate(wanted);
                return Ok(found);
            }
        }
    }

    /// Envelopes that may match, newest first. One that is stored as open may be over.
    fn page(
        self,
        filter: &EnvelopeFilter,
        before: Option<(String, String)>,
        limit: u32,
    ) -> StoreResult<Vec<Envelope>> {
        let (before_at, before_id) = before.unzip();
        let sql = format!("SELECT {COLUMNS} FROM core_envelopes
            WHERE (CAST(?1 AS TEXT) IS NULL OR state = ?1 OR state = 'OPEN') AND (CAST(?2 AS TEXT) IS NULL OR workspace = ?2)
              AND (CAST(?6 AS TEXT) IS NULL OR identity = ?6)
              AND (CAST(?3 AS TEXT) IS NULL OR opened_at < ?3 OR (opened_at = ?3 AND id < ?4))
            ORDER BY opened_at DESC, id DESC LIMIT ?5");
        self.0.engine.all(
            &sql,
            sql![
                filter.state.map(State::as_str),
                filter.workspace,
                before_at,
                before_id,
                limit,
                filter.identity.as_ref().map(Identity::as_str),
            ],
            envelope,
        )
    }

    /// Admits a call to an envelope and to those around it, and counts it in all; or refuses it and, where the refusal
    /// says so, closes the envelope that refuses. In a transaction of the caller.
    pub fn admit(self, id: &str, charge: Charge, boot_ms: i64, now: &str) -> StoreResult<Admission> {
        self.admit_seeing(id, charge, boot_ms, now, None)
    }

    /// The same for a call before which the work tree was looked at: an edit since the last look is counted too.
    pub fn admit_seeing(
        self,
        id: &str,
        charge: Charge,
        boot_ms: i64,
        now: &str,
        seen: Option<(&Sighting, &str)>,
    ) -> StoreResult<Admission> {
        let chain = self.chain(id)?;
        if let Some((id, refusal)) = refusal_by_time(&chain, boot_ms) {
            return self.refuse_admission(id, refusal, now, boot_ms);
        }
        let mut around = Vec::new();
        for (id, standing) in chain {
            let edits = seen.map_or(Ok(0), |(seen, _)| self.0.work_trees().edits_until(&id, seen))?;
            match standing.admit(charge, boot_ms).and_then(|next| next.see(edits)) {
                Ok(next) => around.push((id, next)),
                Err(refusal) => return self.refuse_admission(&id, refusal, now, boot_ms),
            }
        }
        let Some((_, standing)) = around.first() else {
            return Ok(Admission::Unknown);
        };
        let admitted = Admitted {
            standing: *standing,
            counters: (charge != Charge::Nothing).then(|| counters(&around)),
            remaining_ms: around
                .iter()
                .filter_map(|(_, standing)| standing.remaining_ms(boot_ms))
                .min(),
        };
        if charge != Charge::Nothing {
            let sql = "UPDATE core_envelopes SET mutation_count = ?2, test_run_count = ?3, edit_count = ?4 WHERE id = ?1";
            let mut count = self.0.engine.prepare(sql)?;
            for (id, next) in &around {
                count
                    .run(sql![id, next.mutations, next.test_runs, next.edits])
                    .and_then(exactly_one)?;
                if let Some((seen, op_id)) = seen {
                    self.0
                        .work_trees()
                        .note_sighting(id, seen, Cause::Observed, op_id, now)?;
                }
            }
        }
        Ok(Admission::Admitted(admitted))
    }

    /// The smallest limit of edits of an envelope and those around it.
    pub fn limit_of_edits(self, id: &str) -> StoreResult<Option<i64>> {
        self.smallest_around(id, |standing| standing.limits.max_edits)
    }

    /// Milliseconds until the time of an envelope or of one around it is over, if there is a limit.
    pub fn remaining_ms(self, id: &str, boot_ms: i64) -> StoreResult<Option<i64>> {
        self.smallest_around(id, |standing| standing.remaining_ms(boot_ms))
    }

    /// The smallest of a number that an envelope and those around it may have.
    fn smallest_around(
        self,
        id: &str,
        number: impl Fn(&Standing) -> Option<i64>,
    ) -> StoreResult<Option<i64>> {
        let chain = self.chain(id)?;
        Ok(chain.iter().filter_map(|(_, standing)| number(standing)).min())
    }

    /// Standings of an envelope and those around it, outwards.
    pub(super) fn chain(self, id: &str) -> StoreResult<Vec<(String, Standing)>> {
        let mut chain = Vec::new();
        let mut at = Some(id.to_owned());
        while let Some(id) = at.take().filter(|_| chain.len() <= MAX_DEPTH) {
            let Some((standing, parent)) = self.standing_and_parent(&id)? else {
                break;
            };
            chain.push((id, standing));
            at = parent;
        }
        Ok(chain)
    }

    fn refuse_admission(self, id: &str, refusal: Refusal, now: &str, boot_ms: i64) -> StoreResult<Admission> {
        let mut event = None;
        if refusal.closes() {
            let ending = Ending::by_host(State::ClosedFailed, refusal.code(), now, boot_ms);
            event = self.close(id, ending)?;
            exactly_one(usize::from(event.is_some()))?;
        }
        Ok(match self.get(id)? {
            Some(envelope) => Admission::Refused {
                envelope: Box::new(envelope),
                refusal,
                event,
            },
            None => Admission::Unknown,
        })
    }

    /// The envelope, of one and those around it, that does not let a call read, and why. Nothing is changed.
    pub fn refusal_to_read(self, id: &str, boot_ms: i64) -> StoreResult<Option<(Envelope, Refusal)>> {
        let chain = self.chain(id)?;
        let closed = || {
            let refusal = |standing: &Standing| standing.admit(Charge::Nothing, boot_ms).err();
            let mut refusing = chain
                .iter()
                .filter_map(|(id, standing)| Some((id.as_str(), refusal(standing)?)));
            refusing.next()
        };
        let Some((id, refusal)) = refusal_by_time(&chain, boot_ms).or_else(closed) else {
            return Ok(None);
        };
        Ok(self.get(id)?.map(|envelope| (envelope, refusal)))
    }

    /// Number of envelopes around one.
    pub fn depth_of(self, id: &str) -> StoreResult<usize> {
        let mut depth = 0;
        let mut at = self.get(id)?.and_then(|envelope| envelope.parent);
        while let Some(id) = at.take().filter(|_| depth <= MAX_DEPTH) {
            depth += 1;
            at = self.get(&id)?.and_then(|envelope| envelope.parent);
        }
        Ok(depth)
    }

    /// True if an envelope may be named by a caller. One that nobody opened may.
    pub fn is_visible(self, id: &str, caller: Option<&Identity>) -> StoreResult<bool> {
        match caller {
            None => Ok(true),
            Some(_) => Ok(self.get(id)?.is_none_or(|envelope| envelope.is_visible(caller))),
        }
    }

    /// Standing of an envelope, for admission.
    pub fn standing(self, id: &str) -> StoreResult<Option<Standing>> {
        Ok(self.standing_and_parent(id)?.map(|(standing, _)| standing))
    }

    fn standing_and_parent(self, id: &str) -> StoreResult<Option<(Standing, Option<String>)>> {
        let sql =
            "SELECT state, max_mutations, max_test_runs, max_duration_sec, mutation_count, test_run_count,
            opened_boot_ms, parent, max_edits, edit_count FROM core_envelopes WHERE id = ?1";
        self.0.engine.maybe(sql, sql![id], |row| {
            let state: String = row.get(0)?;
            let standing = Standing {
                state: State::parse(&state).unwrap_or(State::ClosedInterrupted),
                limits: Limits {
                    max_mutations: row.get(1)?,
                    max_test_runs: row.get(2)?,
                    max_duration_sec: row.get(3)?,
                    max_edits: row.get(8)?,
                },
                mutations: row.get(4)?,
                test_runs: row.get(5)?,
                edits: row.get(9)?,
                opened_boot_ms: row.get(6)?,
            };
            Ok((standing, row.get(7)?))
        })
    }

    /// The hosts that open envelopes name.
    pub fn hosts_of_open(self) -> StoreResult<Vec<String>> {
        self.0.engine.all(
            "SELECT DISTINCT host_id FROM core_envelopes WHERE state = 'OPEN'",
            &[],
            |row| row.get(0),
        )
    }

    /// Remembers an operation's fingerprints as the newest of its envelope.
    pub fn note_fingerprints(self, operation: &Operation) -> StoreResult<()> {
        let (mutation, failure) = (&operation.mutation_fingerprint, &operation.failure_fingerprint);
        let Some(id) = operation
            .envelope_id
            .as_ref()
            .filter(|_| mutation.is_some() || failure.is_some())
        else {
            return Ok(());
        };
        let sql =
            "UPDATE core_envelopes SET last_mutation_fingerprint = coalesce(?2, last_mutation_fingerprint),
            last_failure_fingerprint = coalesce(?3, last_failure_fingerprint) WHERE id = ?1";
        self.0.engine.run(sql, sql![id, mutation, failure]).map(drop)
    }
}
