//! Settings of a session, and the requirements on a server.

use sha2::{Digest as _, Sha256};

use super::error::Failure;
use super::server::{KEEPALIVE_INTERVAL, KEEPALIVE_RETRIES, Server, ServerError};
use super::wire::Wire;
use crate::storage::error::StoreFailure;
use crate::storage::session::Access;

/// Oldest supported major version.
pub(super) const LEAST_VERSION: i64 = 15;
/// Connections that a host needs besides those of its lanes: writer, readers, runners, heartbeat, content of
/// artifacts, and maintenance.
const CONNECTIONS_WITHOUT_LANES: i64 = 42;
/// Time that a session waits for locks of responsive hosts, in milliseconds: longer than any write transaction may
/// take.
pub(super) const LOCK_TIMEOUT_MS: u128 = 12_000;
/// Time after which the server ends a transaction of an unresponsive host, in milliseconds.
pub(super) const IDLE_TIMEOUT_MS: u128 = 60_000;
/// Time after which the server ends an idle write transaction without a host, in milliseconds. Less than others wait
/// for locks.
pub(super) const IDLE_TIMEOUT_OF_NOBODY_MS: u128 = 8_000;
/// Time for which the lock test waits, in milliseconds. The lock is held all the time.
const TRIAL_MS: u32 = 20;
/// Query for a number that changes with each commit of another session: a hash of the transactions that are visible.
pub(super) const DATA_VERSION: &str = "SELECT hashtextextended(pg_current_snapshot()::text, 0)";

/// Query for the properties of a server. Negative limits mean unlimited, and of the limits of role and database the
/// lower one counts.
pub(super) const PROPERTIES_QUERY: &str = "SELECT current_setting('server_version_num')::int / 10000, pg_is_in_recovery(),
        current_setting('fsync'), current_setting('full_page_writes'), pg_encoding_to_char(encoding),
        current_setting('session_replication_role'),
        least(
            current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
            nullif(datconnlimit, -1) - (SELECT count(*) FROM pg_stat_activity AS a WHERE a.datname = d.datname),
            (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user)
                - (SELECT count(*) FROM pg_stat_activity AS a WHERE a.usename = current_user))
    FROM pg_database AS d WHERE datname = current_database()";

/// Opens a session.
pub(super) fn session(server: &Server, access: Access) -> Result<Wire, ServerError> {
    let wire = Wire::open(server)?;
    let unreachable = |failure: Failure| ServerError::Unreachable {
        place: server.to_string(),
        reason: failure.to_string(),
    };
    let said = wire.ask(&settings(server, access)).map_err(unreachable)?;
    let text = |at: usize| said.get(at).and_then(Option::as_deref).unwrap_or_default();
    // Each session may be on another of the URL's servers, and the role's settings may have changed since the first.
    primary_with_triggers(text(0), text(1))?;
    // Only servers on Linux can check during a statement whether the client still exists.
    if let Err(failure) = wire.script("SET client_connection_check_interval = '500ms'", None) {
        tracing::debug!("the server does not check for lost clients: {failure}");
    }
    Ok(wire)
}

fn settings(server: &Server, access: Access) -> String {
    let read_only = match access {
        Access::Read => "on",
        Access::Write | Access::Memory => "off",
    };
    // Temporary tables come last, so that none hides one of the host's tables.
    format!(
        "SELECT pg_is_in_recovery(), current_setting('session_replication_role');
         SET search_path = {}, pg_temp;
         SET TimeZone = 'UTC';
         SET jit = off;
         SET standard_conforming_strings = on;
         SET transform_null_equals = off;
         SET row_security = on;
         SET default_transaction_read_only = {read_only};
         SET default_transaction_deferrable = off;
         SET lock_timeout = {};
         SET statement_timeout = 0;
         SET idle_in_transaction_session_timeout = {IDLE_TIMEOUT_MS};
         SET tcp_user_timeout = 10000;
         SET tcp_keepalives_idle = 10;
         SET tcp_keepalives_interval = {};
         SET tcp_keepalives_count = {KEEPALIVE_RETRIES};
         SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
        quoted(&server.schema),
        server.lock_timeout_ms(),
        KEEPALIVE_INTERVAL.as_secs(),
    )
}

/// Refuses a session that cannot write, or in which the ledger's triggers do not run.
fn primary_with_triggers(is_standby: &str, replication_role: &str) -> Result<(), ServerError> {
    if is_standby == "t" {
        return Err(ServerError::ReadOnly);
    }
    match replication_role {
        "origin" => Ok(()),
        other => Err(ServerError::TriggersOff(other.to_owned())),
    }
}

/// Quoted name.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Key of one of the host's advisory locks. PostgreSQL separates those of different databases.
pub(in crate::storage) fn lock_key(schema: &str, of: &str) -> i64 {
    let hash = Sha256::digest(format!("tollgate turn 1\n{schema}\n{of}\n"));
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    i64::from_be_bytes(first)
}

/// Checks the properties of a server, over an open write session.
pub(super) fn check(server: &Server, wire: &Wire) -> Result<(), ServerError> {
    let failed = |failure: Failure| ServerError::Unreachable {
        place: server.to_string(),
        reason: failure.to_string(),
    };
    judge(&wire.ask(PROPERTIES_QUERY).map_err(failed)?, needed(server))?;
    match locks_wait(server, wire).map_err(failed)? {
        true => Ok(()),
        false => Err(ServerError::NoLocks),
    }
}

/// Number of connections that a host of this database needs.
pub(super) fn needed(server: &Server) -> i64 {
    let lanes = i64::try_from(server.lanes.get()).unwrap_or(i64::MAX);
    CONNECTIONS_WITHOUT_LANES.saturating_add(lanes)
}

/// Checks the properties that a server reports.
fn judge(said: &[Option<String>], needed: i64) -> Result<(), ServerError> {
    judgements(said, needed)
        .into_iter()
        .map(|judged| judged.refusal)
        .find_map(|refusal| refusal.map(Err))
        .unwrap_or(Ok(()))
}

/// Result of one check of a server's properties.
pub(super) struct PropertyCheck {
    pub(super) about: &'static str,
    pub(super) said: String,
    pub(super) refusal: Option<ServerError>,
}

/// Checks all properties that a server reports in the answer to [`PROPERTIES_QUERY`].
pub(super) fn judgements(said: &[Option<String>], needed: i64) -> Vec<PropertyCheck> {
    let text = |at: usize| said.get(at).and_then(Option::as_deref).unwrap_or_default();
    let number = |at: usize| text(at).parse::<i64>().unwrap_or_default();
    let judged = |about: &'static str, said: String, refusal: Option<ServerError>| PropertyCheck {
        about,
        said,
        refusal,
    };
    let found = number(0);
    let is_standby = text(1) != "f";
    let durable = |setting: &'static str, at: usize| {
        let is_on = text(at) == "on";
        let refusal = (!is_on).then_some(ServerError::NotDurable(setting));
        judged(setting, text(at).to_owned(), refusal)
    };
    // This session counts towards the needed connections.
    let free = number(6).saturating_add(1);
    vec![
        judged(
            "version",
            format!("PostgreSQL {found}"),
            (found < LEAST_VERSION).then_some(ServerError::TooOld { found }),
        ),
        judged(
            "primary",
            "the server accepts writes".to_owned(),
            is_standby.then_some(ServerError::ReadOnly),
        ),
        durable("fsync", 2),
        durable("full_page_writes", 3),
        judged(
            "encoding",
            text(4).to_owned(),
            (text(4) != "UTF8").then(|| ServerError::Encoding(text(4).to_owned())),
        ),
        judged(
            "replication role",
            text(5).to_owned(),
            (text(5) != "origin").then(|| ServerError::TriggersOff(text(5).to_owned())),
        ),
        judged(
            "connections",
            format!("{free} are left, but a host needs {needed}"),
            (free < needed).then_some(ServerError::TooFewConnections { free, needed }),
        ),
    ]
}

/// Tests with two connections whether the second one waits for an advisory lock and gets it afterwards.
pub(super) fn locks_wait(server: &Server, first: &Wire) -> Result<bool, Failure> {
    let failed = |_| {
        Failure::seen(
            StoreFailure::Other,
            "there is no second connection to try locks with",
        )
    };
    let second = session(server, Access::Write).map_err(failed)?;
    let key = lock_key(&server.schema, "trial");
    let take = format!("SELECT pg_advisory_xact_lock({key})");
    first.script(&format!("BEGIN; {take}"), None)?;
    let waits = second.script(
        &format!("BEGIN; SET LOCAL lock_timeout = {TRIAL_MS}; {take}"),
        None,
    );
    second.script("ROLLBACK", None)?;
    first.script("COMMIT", None)?;
    let has_waited = matches!(&waits, Err(failure) if failure.kind() == StoreFailure::Busy);
    let gets = second.script(&format!("BEGIN; {take}; COMMIT"), None);
    Ok(has_waited && gets.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_judged_by_what_it_says() {
        let good = ["15", "f", "on", "on", "UTF8", "origin", "41"];
        let judged = |at: usize, text: &str| {
            let mut said = good.map(|text| Some(text.to_owned()));
            said[at] = Some(text.to_owned());
            judge(&said, 42).map_err(|err| err.to_string())
        };
        assert_eq!(judged(0, "18"), Ok(()));
        for (at, text, says) in [
            (
                0,
                "14",
                "the server is PostgreSQL 14, but at least 15 is needed; upgrade",
            ),
            (1, "t", "the server is read-only"),
            (2, "off", "fsync is off on the server"),
            (3, "off", "full_page_writes is off"),
            (4, "SQL_ASCII", "the encoding of the database is SQL_ASCII"),
            (5, "replica", "session_replication_role is replica"),
            (6, "40", "the server has 41 connections left, but a host needs 42"),
        ] {
            let refused = judged(at, text).unwrap_err();
            assert!(refused.starts_with(says), "{refused}");
        }
        assert!(judge(&[], 42).is_err());
    }

    #[test]
    fn keys_of_locks_differ_by_schema_and_purpose() {
        let keys = [
            lock_key("a", "write"),
            lock_key("b", "write"),
            lock_key("a", "trial"),
        ];
        assert!(keys[0] != keys[1] && keys[0] != keys[2]);
        assert_eq!(lock_key("a", "write"), keys[0]);
    }
}
