//! Envelopes and their counters. Admission is decided inside the transaction that counts it, so the counters are
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
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Envelope {
    /// Id, `env_…`.
    pub id: String,
    /// State, limits and counters.
    pub standing: Standing,
    /// Workspace that it is about.
    pub workspace: Option<String>,
    /// Label from the client.
    pub label: Option<String>,
    /// Note of the owner at the end.
    pub note: Option<String>,
    /// Time of opening, RFC 3339.
    pub opened_at: String,
    /// Time of closing, RFC 3339.
    pub closed_at: Option<String>,
    /// Reason of closing, if not by the owner.
    pub closed_by: Option<String>,
    /// Git head of its workspace at the opening.
    pub git_head: Option<String>,
    /// Git head of its workspace at the closing.
    pub closed_git_head: Option<String>,
    /// Fingerprint of the newest mutation.
    pub last_mutation_fingerprint: Option<String>,
    /// Fingerprint of the newest failure.
    pub last_failure_fingerprint: Option<String>,
    /// Host on which it was opened.
    pub host_id: String,
    /// Connection over which it was opened.
    pub connection: String,
    /// Identity of the opener, if the transport authenticated one.
    pub identity: Option<String>,
    /// Enclosing envelope, which its calls use as well.
    pub parent: Option<String>,
    /// Caller who closed it, as operations name callers.
    pub closed_actor: Option<String>,
    /// Time until which it stays open independently of its connection and its host, in milliseconds since 1970 UTC.
    pub detached_until_ms: Option<i64>,
    /// Number of its work tree's state at the opening, under which states are stored.
    pub index_version: Option<i64>,
    /// After a restart: true if a work tree was not in the state in which its last call left it.
    pub restart_moved: Option<bool>,
    /// Time at which its own time or that of an enclosing envelope was up, in milliseconds since the machine's boot.
    /// Set only by [`Envelopes::as_at`], and only until a row records the end.
    pub over_boot_ms: Option<i64>,
}

impl Envelope {
    /// True if a caller may see it: an identity only its own, a user of this machine all.
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
            // The column's CHECK allows no other text. In a damaged file the envelope counts as closed.
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

/// Counters of one envelope. Edits are included if there are any.
pub(super) fn counters_of(standing: &Standing) -> Value {
    let mut counters = json!({ "mutations": standing.mutations, "test_runs": standing.test_runs });
    if standing.edits > 0 {
        counters["edits"] = json!(standing.edits);
    }
    counters
}

/// Counters of an envelope and of enclosing ones, as stored in a row: `{"mutations": 3, "test_runs": 1, "around":
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

/// Filter for envelopes.
#[derive(Debug, Clone, Default)]
pub struct EnvelopeFilter {
    /// State.
    pub state: Option<State>,
    /// Workspace.
    pub workspace: Option<String>,
    /// Identity of the opener.
    pub identity: Option<Identity>,
    /// Time in milliseconds since the machine's boot: an envelope whose time is up counts as closed. 0 for states as
    /// stored.
    pub boot_ms: i64,
    /// Lists only envelopes older than this one, given as (opened_at, id).
    pub before: Option<(String, String)>,
}

/// Result of an admission.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// The call counts.
    Admitted(Admitted),
    /// The call does not count, because of the envelope or an enclosing one.
    Refused {
        /// Envelope that refuses, in its present state.
        envelope: Box<Envelope>,
        /// Reason.
        refusal: Refusal,
        /// Event of its end, if the refusal ended it.
        event: Option<Value>,
    },
    /// The envelope does not exist.
    Unknown,
}

/// State of an envelope after a call was counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted {
    /// State of the envelope.
    pub standing: Standing,
    /// Counters of it and of enclosing envelopes, for the call's row. Absent if the call costs nothing.
    pub counters: Option<String>,
    /// Milliseconds until the time of the first of these envelopes is up.
    pub remaining_ms: Option<i64>,
}

/// Among an open envelope and its enclosing ones, the one whose time was up first, and its refusal.
fn refusal_by_time(chain: &[(String, Standing)], boot_ms: i64) -> Option<(&str, Refusal)> {
    let over = Over::of(chain, boot_ms)?;
    let (id, standing) = chain.get(over.place)?;
    let refusal = standing.admit(Charge::Nothing, boot_ms).err()?;
    Some((id, refusal))
}

/// Most enclosing envelopes.
pub const MAX_DEPTH: usize = 8;

impl Envelopes<'_> {
    /// Stores a new envelope.
    pub fn open(self, envelope: &Envelope) -> StoreResult<()> {
        let limits = &envelope.standing.limits;
        let sql = "INSERT INTO core_envelopes (id, state, workspace, label, opened_at, max_mutations, max_test_runs,
                max_duration_sec, opened_boot_ms, git_head, host_id, connection, identity, parent,
                detached_until_ms, max_edits)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
        self.0.engine.change_one(
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
    }

    /// Envelope with an id.
    pub fn get(self, id: &str) -> StoreResult<Option<Envelope>> {
        self.0.engine.maybe(
            &format!("SELECT {COLUMNS} FROM core_envelopes WHERE id = ?1"),
            sql![id],
            envelope,
        )
    }

    /// Envelopes in their state at the filter's time, newest first.
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

    /// Envelopes that may match, newest first. An envelope that is stored as open may be over.
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

    /// Admits a call to an envelope and its enclosing ones, and counts it in all of them. Otherwise refuses the call
    /// and, for some refusals, closes the refusing envelope. Runs in a transaction of the caller.
    pub fn admit(self, id: &str, charge: Charge, boot_ms: i64, now: &str) -> StoreResult<Admission> {
        self.admit_seeing(id, charge, boot_ms, now, None)
    }

    /// Admits a call before which the work tree was scanned: an edit since the last scan is counted too.
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

    /// Smallest edit limit of an envelope and its enclosing ones.
    pub fn limit_of_edits(self, id: &str) -> StoreResult<Option<i64>> {
        self.smallest_around(id, |standing| standing.limits.max_edits)
    }

    /// Milliseconds until the time of an envelope or an enclosing one is up, if there is a limit.
    pub fn remaining_ms(self, id: &str, boot_ms: i64) -> StoreResult<Option<i64>> {
        self.smallest_around(id, |standing| standing.remaining_ms(boot_ms))
    }

    /// Smallest value of a column over an envelope and its enclosing ones.
    fn smallest_around(
        self,
        id: &str,
        number: impl Fn(&Standing) -> Option<i64>,
    ) -> StoreResult<Option<i64>> {
        let chain = self.chain(id)?;
        Ok(chain.iter().filter_map(|(_, standing)| number(standing)).min())
    }

    /// States of an envelope and its enclosing ones, from inner to outer.
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

    /// Among an envelope and its enclosing ones, the one that refuses a read, and its refusal. Changes nothing.
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

    /// Number of enclosing envelopes.
    pub fn depth_of(self, id: &str) -> StoreResult<usize> {
        let mut depth = 0;
        let mut at = self.get(id)?.and_then(|envelope| envelope.parent);
        while let Some(id) = at.take().filter(|_| depth <= MAX_DEPTH) {
            depth += 1;
            at = self.get(&id)?.and_then(|envelope| envelope.parent);
        }
        Ok(depth)
    }

    /// True if a caller may name an envelope. Unknown ids may be named.
    pub fn is_visible(self, id: &str, caller: Option<&Identity>) -> StoreResult<bool> {
        match caller {
            None => Ok(true),
            Some(_) => Ok(self.get(id)?.is_none_or(|envelope| envelope.is_visible(caller))),
        }
    }

    /// State of an envelope for admission.
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

    /// Hosts of open envelopes.
    pub fn hosts_of_open(self) -> StoreResult<Vec<String>> {
        self.0.engine.all(
            "SELECT DISTINCT host_id FROM core_envelopes WHERE state = 'OPEN'",
            &[],
            |row| row.get(0),
        )
    }

    /// Stores an operation's fingerprints as the newest of its envelope.
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
