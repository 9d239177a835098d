//! All SQL of the pack.

pub(crate) mod mutations;

use tollgate_kit::from_row;
use tollgate_sdk::{Db, DbError, Timestamp, params};

use crate::cycle::Sightings;

/// Days for which a run counts.
const COUNTED_DAYS: i64 = 30;
/// Days until runs and states are removed, whatever workspace they are of. A call about another workspace may do so on
/// another host while a call decides, whose clock is another one: what is removed counts for nobody.
const KEPT_DAYS: i64 = COUNTED_DAYS + 1;
/// Most stored runs and states of one envelope and workspace.
const MAX_ROWS: i64 = 1_000;
/// Most outdated rows that one call removes.
const SWEEP_ROWS: u32 = 200;

/// Scope of comparison: one workspace within one envelope.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// Id of the envelope, empty outside of one.
    pub envelope: String,
    pub workspace: String,
    /// Runs before this time do not count.
    pub oldest: Timestamp,
}

/// Time before which runs do not count.
pub(crate) fn oldest(now: Timestamp) -> Timestamp {
    days_before(now, COUNTED_DAYS)
}

fn days_before(now: Timestamp, days: i64) -> Timestamp {
    now.plus_ms(-days * 24 * 60 * 60 * 1000)
}

/// A test run to store.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub command: &'a str,
    /// Words of a registered command.
    pub words: Option<&'a str>,
    /// True if the caller's time limit or the envelope's ended the run.
    pub is_cut_off: bool,
    pub outcome: &'a str,
    pub failure_fingerprint: Option<&'a str>,
    pub detail_fingerprint: Option<&'a str>,
    pub place_fingerprint: Option<&'a str>,
    /// Mutations or edits before it.
    pub changes: u64,
    pub by_edits: bool,
    /// Edits of the workspace over all envelopes, if the host saw its work tree.
    pub workspace_edits: Option<u64>,
    pub verdict: Verdict,
    pub source: Source,
}

/// Witness of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The host ran the tests.
    Host,
    /// The caller reports them.
    Claim,
}

/// Places of the newest runs of a command that passed in a workspace, in whichever envelope. 0 if there is none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Passed {
    /// Run by the host. Ends what was seen before it.
    pub seen: i64,
    /// Run by the host or reported. Ends what was reported before it.
    pub told: i64,
}

from_row! {
    Passed { seen, told }
}

/// Verdict on a test run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Verdict {
    pub non_progress: bool,
    pub flaky: bool,
    pub regression: bool,
}

/// A failure with its number of sightings.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub fingerprint: String,
    pub seen: u64,
    pub first_changes: u64,
    pub last_changes: u64,
    pub by_edits: bool,
    pub last_id: i64,
    pub last_at: Timestamp,
}

from_row! {
    Seen { fingerprint, seen, first_changes, last_changes, by_edits, last_id, last_at }
}

from_row! {
    Sightings { detail, seen, first, last, place }
}

/// Sightings of a failure, for each of its details and places. With `since`, only those after these runs whose changes are edits.
pub(crate) fn sightings(
    db: &Db<'_>,
    scope: &Scope,
    fingerprint: &str,
    since: Option<Passed>,
) -> Result<Vec<Sightings>, DbError> {
    db.query_as(
        "SELECT detail_fingerprint, count(*), min(mutations), max(id), place_fingerprint FROM convergence_runs
         WHERE envelope_id = ?1 AND workspace = ?2 AND failure_fingerprint = ?3 AND at >= ?6
           AND (?4 IS NULL OR (id > CASE is_claim WHEN 1 THEN ?5 ELSE ?4 END AND by_edits = 1))
         GROUP BY detail_fingerprint, place_fingerprint ORDER BY max(id)",
        params![
            scope.envelope,
            scope.workspace,
            fingerprint,
            since.map(|since| since.seen),
            since.map(|since| since.told),
            scope.oldest
        ],
    )
}

/// Sightings of a failure in other envelopes of the workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Earlier {
    pub envelopes: u64,
    pub first_at: Option<Timestamp>,
    /// Edits of the workspace by the first sighting with the same detail since the command last passed.
    pub first_edits: Option<u64>,
}

from_row! {
    Earlier { envelopes, first_at, first_edits }
}

/// Counts the other envelopes in which a failure of the workspace was seen.
pub(crate) fn earlier(
    db: &Db<'_>,
    scope: &Scope,
    command: &str,
    (fingerprint, detail, place): (&str, &str, Option<&str>),
) -> Result<Earlier, DbError> {
    let passed = last_passed(db, scope, command)?;
    let found = db.query_one(
        "SELECT count(DISTINCT envelope_id), min(at),
             min(CASE WHEN id > CASE is_claim WHEN 1 THEN ?7 ELSE ?4 END
                 AND command = ?5 AND detail_fingerprint = ?6
                 AND (?8 IS NULL OR place_fingerprint IS NULL OR place_fingerprint = ?8) THEN workspace_edits END)
         FROM convergence_runs
         WHERE workspace = ?1 AND failure_fingerprint = ?2 AND envelope_id <> ?3 AND envelope_id <> ''
           AND at >= ?9",
        params![
            scope.workspace,
            fingerprint,
            scope.envelope,
            passed.seen,
            command,
            detail,
            passed.told,
            place,
            scope.oldest
        ],
    )?;
    Ok(found.unwrap_or_default())
}

/// Newest runs of a command that passed in a workspace, in whichever envelope.
pub(crate) fn last_passed(db: &Db<'_>, scope: &Scope, command: &str) -> Result<Passed, DbError> {
    let passed = db.query_one(
        "SELECT coalesce(max(CASE is_claim WHEN 0 THEN id END), 0), coalesce(max(id), 0) FROM convergence_runs
         WHERE workspace = ?1 AND command = ?2 AND outcome = 'passed' AND at >= ?3",
        params![scope.workspace, command, scope.oldest],
    )?;
    Ok(passed.unwrap_or_default())
}

/// A run of a test command before another.
#[derive(Debug, Clone)]
pub(crate) struct Previous {
    pub passed: bool,
    pub failed: bool,
    pub changes: u64,
    /// True if the changes are edits of the work tree.
    pub by_edits: bool,
    /// Edits of the workspace over all envelopes.
    pub workspace_edits: Option<u64>,
}

from_row! {
    Previous { passed, failed, changes, by_edits, workspace_edits }
}

/// The newest run of a test command by the same witness that no limit cut off: in the workspace over all envelopes and
/// outside of them, or with `envelope` in that one. A command of other words is another command.
pub(crate) fn previous(
    db: &Db<'_>,
    scope: &Scope,
    (command, words, source): (&str, Option<&str>, Source),
    envelope: Option<&str>,
) -> Result<Option<Previous>, DbError> {
    db.query_one(
        "SELECT outcome = 'passed', failure_fingerprint IS NOT NULL, mutations, by_edits, workspace_edits
         FROM convergence_runs
         WHERE workspace = ?1 AND command = ?2 AND is_claim = ?3 AND (?4 IS NULL OR envelope_id = ?4)
           AND is_cut_off = 0 AND (?5 IS NULL OR words IS NULL OR words = ?5) AND at >= ?6
         ORDER BY id DESC LIMIT 1",
        params![
            scope.workspace,
            command,
            source == Source::Claim,
            envelope,
            words,
            scope.oldest
        ],
    )
}

/// The failures of a scope, latest first.
pub(crate) fn failures(db: &Db<'_>, scope: &Scope, limit: u32) -> Result<Vec<Seen>, DbError> {
    db.query_as(
        "SELECT failure_fingerprint, count(*), min(mutations), max(mutations), max(by_edits), max(id), max(at)
         FROM convergence_runs WHERE envelope_id = ?1 AND workspace = ?2 AND failure_fingerprint IS NOT NULL
         GROUP BY failure_fingerprint ORDER BY max(id) DESC LIMIT ?3",
        params![scope.envelope, scope.workspace, limit],
    )
}

from_row! {
    Verdict { non_progress, flaky, regression }
}

/// Condition on a run that tells how a scope is: of the host, failed, or where the host ran nothing.
const IS_CONCLUSIVE: &str = "(is_claim = 0 OR failure_fingerprint IS NOT NULL OR NOT EXISTS (
    SELECT 1 FROM convergence_runs seen
    WHERE seen.envelope_id = ?1 AND seen.workspace = ?2 AND seen.is_claim = 0))";

/// Verdict on the newest run that tells how a scope is.
pub(crate) fn last_verdict(db: &Db<'_>, scope: &Scope) -> Result<Verdict, DbError> {
    let found = db.query_one(
        &format!(
            "SELECT non_progress, flaky, regression FROM convergence_runs
             WHERE envelope_id = ?1 AND workspace = ?2 AND {IS_CONCLUSIVE} ORDER BY id DESC LIMIT 1"
        ),
        params![scope.envelope, scope.workspace],
    )?;
    Ok(found.unwrap_or_default())
}

/// Stores a test run.
pub(crate) fn add_run(db: &Db<'_>, scope: &Scope, run: &Run<'_>, now: Timestamp) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO convergence_runs (envelope_id, workspace, command, outcome, failure_fingerprint, mutations, at,
             detail_fingerprint, non_progress, flaky, regression, by_edits, workspace_edits, is_claim, words, is_cut_off, place_fingerprint)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        params![
            scope.envelope,
            scope.workspace,
            run.command,
            run.outcome,
            run.failure_fingerprint,
            i64::try_from(run.changes).unwrap_or(i64::MAX),
            now,
            run.detail_fingerprint,
            run.verdict.non_progress,
            run.verdict.flaky,
            run.verdict.regression,
            run.by_edits,
            run.workspace_edits
                .map(|edits| i64::try_from(edits).unwrap_or(i64::MAX)),
            run.source == Source::Claim,
            run.words,
            run.is_cut_off,
            run.place_fingerprint
        ],
    )?;
    forget(db, "convergence_runs", scope, now)
}

/// Counts of a scope's test runs.
#[derive(Debug, Clone)]
pub(crate) struct RunCounts {
    pub all: u64,
    pub failed: u64,
    /// The newest run that tells how the scope is.
    pub last_id: Option<i64>,
    /// True if that run found no tests.
    pub is_empty: bool,
}

from_row! {
    RunCounts { all, failed, last_id, is_empty }
}

/// Counts the test runs of a scope.
pub(crate) fn run_counts(db: &Db<'_>, scope: &Scope) -> Result<RunCounts, DbError> {
    let counts = db.query_one(
        &format!(
            "SELECT count(*), count(failure_fingerprint), max(CASE WHEN {IS_CONCLUSIVE} THEN id END),
                 coalesce((SELECT outcome = 'no_tests' FROM convergence_runs
                     WHERE envelope_id = ?1 AND workspace = ?2 AND {IS_CONCLUSIVE} ORDER BY id DESC LIMIT 1), 0)
             FROM convergence_runs WHERE envelope_id = ?1 AND workspace = ?2"
        ),
        params![scope.envelope, scope.workspace],
    )?;
    Ok(counts.unwrap_or(RunCounts {
        all: 0,
        failed: 0,
        last_id: None,
        is_empty: false,
    }))
}

/// Last known folder of a workspace.
pub(crate) fn root(db: &Db<'_>, workspace: &str) -> Result<Option<String>, DbError> {
    let row = db.query_row(
        "SELECT root FROM convergence_roots WHERE workspace = ?1",
        params![workspace],
    )?;
    row.map(|row| row.get(0)).transpose()
}

/// Stores the folder of a workspace.
pub(crate) fn set_root(db: &Db<'_>, workspace: &str, root: &str) -> Result<(), DbError> {
    db.execute(
        "INSERT INTO convergence_roots (workspace, root) VALUES (?1, ?2)
         ON CONFLICT (workspace) DO UPDATE SET root = excluded.root",
        params![workspace, root],
    )
    .map(drop)
}

/// Removes outdated and surplus rows, a few at a time.
fn forget(db: &Db<'_>, table: &str, scope: &Scope, now: Timestamp) -> Result<(), DbError> {
    db.execute(
        &format!(
            "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE at < ?1 ORDER BY at LIMIT ?2)"
        ),
        params![days_before(now, KEPT_DAYS), SWEEP_ROWS],
    )?;
    db.execute(
        &format!(
            "DELETE FROM {table} WHERE id IN (SELECT id FROM {table} WHERE envelope_id = ?1 AND workspace = ?2
                 ORDER BY id DESC LIMIT ?3 OFFSET ?4)"
        ),
        params![scope.envelope, scope.workspace, SWEEP_ROWS, MAX_ROWS],
    )
    .map(drop)
}
