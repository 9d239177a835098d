//! Hosts that work with a database on a server. Each host keeps its own row fresh, by the server's clock alone.
//!
//! A host counts as dead when its lease has passed without a heartbeat. If the server noticed the end of its
//! connection, which releases the host's lock, a shorter time applies. The host that finds a dead host buries it: its
//! row is removed, and from then on each of its write transactions fails until it joins again.

use sha2::{Digest as _, Sha256};
use tollgate_core::hash::{hex, unhex};
use tollgate_core::text;

use super::engine::postgres::{Postgres, lock_key, mark_of_hosts};
use super::engine::{Engine, Once, sql};
use super::error::{StoreError, StoreResult};
use super::handles::Roster;

/// Most bytes that are shown of another host's text.
const MAX_SHOWN: usize = 200;
/// Time without a heartbeat after which a host whose connection ended counts as dead, in milliseconds.
const SILENCE_MS: i64 = 6_000;

/// A host's own description.
#[derive(Debug, Clone)]
pub struct NewMember {
    /// Id of the host.
    pub id: String,
    /// Hash of its data directory.
    pub place: String,
    /// Time without a heartbeat after which it counts as dead, in milliseconds.
    pub lease_ms: i64,
    /// Version of the program.
    pub version: String,
    /// Name of its machine.
    pub machine: String,
    /// Address for clients, if it serves HTTP.
    pub url: Option<String>,
}

/// A host that uses the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Id of the host.
    pub id: String,
    /// Hash of its data directory.
    pub place: String,
    /// Version of the program.
    pub version: String,
    /// Name of its machine.
    pub machine: String,
    /// Address for clients, if it serves HTTP.
    pub url: Option<String>,
    /// Names of its workspaces.
    pub workspaces: Vec<String>,
    /// Time since it joined, in milliseconds.
    pub up_ms: i64,
    /// Time since its last heartbeat, in milliseconds.
    pub silent_ms: i64,
    /// Time without a heartbeat after which it counts as dead, in milliseconds.
    pub lease_ms: i64,
    /// False if it is dead and was not removed yet.
    pub is_alive: bool,
}

impl Roster<'_> {
    /// Adds a host, or records its heartbeat.
    pub fn join(self, member: &NewMember) -> StoreResult<()> {
        let sql = "INSERT INTO core_hosts (id, place, lock_key, lease_ms, version, machine, url, workspaces)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, '[]')
            ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()";
        let lock_key = i64::from(key_of(&member.id));
        let params = sql![
            member.id,
            member.place,
            lock_key,
            member.lease_ms,
            member.version,
            member.machine,
            member.url
        ];
        self.0.engine.run(Once(sql), params).map(drop)
    }

    /// Records a heartbeat. Returns the server's time, or `None` if the host was removed.
    pub fn beat(self, host: &str) -> StoreResult<Option<i64>> {
        let sql = "UPDATE core_hosts SET seen_at = clock_timestamp() WHERE id = ?1
            RETURNING CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)";
        self.0.engine.maybe(sql, sql![host], |row| row.get(0))
    }

    /// Stores the workspaces of a host.
    pub fn note_workspaces(self, host: &str, names: &[String]) -> StoreResult<()> {
        let names = serde_json::to_string(names).map_err(StoreError::of_json)?;
        let sql = "UPDATE core_hosts SET workspaces = ?2 WHERE id = ?1";
        self.0.engine.run(Once(sql), sql![host, names]).map(drop)
    }

    /// Removes a host that stops in an orderly way.
    pub fn leave(self, host: &str) -> StoreResult<()> {
        let sql = "DELETE FROM core_hosts WHERE id = ?1";
        self.0.engine.run(Once(sql), sql![host]).map(drop)
    }

    /// Takes the lock that the server releases with this session. Returns false if an older session of the host still
    /// holds it.
    pub fn hold(self, host: &str) -> StoreResult<bool> {
        let sql = format!("SELECT pg_try_advisory_lock({}, {})", self.class()?, key_of(host));
        self.0.engine.one(Once(&sql), &[], |row| row.get(0))
    }

    /// Host with an id, if it has a row.
    pub fn find(self, host: &str) -> StoreResult<Option<Member>> {
        let sql = format!("{} WHERE id = ?1", self.members()?);
        self.0.engine.maybe(&sql, sql![host], member)
    }

    /// Ids of all hosts. Empty for a file, where file locks show which hosts are alive.
    pub fn ids(self) -> StoreResult<Vec<String>> {
        match &self.0.engine {
            Engine::Sqlite(_) => Ok(Vec::new()),
            Engine::Postgres(_) => self
                .0
                .engine
                .all("SELECT id FROM core_hosts", &[], |row| row.get(0)),
        }
    }

    /// All hosts, oldest first.
    pub fn all(self) -> StoreResult<Vec<Member>> {
        let sql = format!("{} ORDER BY started_at, id", self.members()?);
        self.0.engine.all(&sql, &[], member)
    }

    /// All hosts. Empty if no host has created the table yet.
    pub(crate) fn all_if_any(self) -> StoreResult<Vec<Member>> {
        let sql = "SELECT to_regclass('core_hosts') IS NOT NULL";
        match self.0.engine.one(Once(sql), &[], |row| row.get(0))? {
            true => self.all(),
            false => Ok(Vec::new()),
        }
    }

    /// Removes a dead host. Returns whether it has no row afterwards. From then on its write transactions fail, and
    /// those that are open now end first. Requires a write transaction.
    pub fn remove_dead(self, host: &str, is_known_to_be_gone: bool) -> StoreResult<bool> {
        let sql = format!(
            "DELETE FROM core_hosts WHERE id = ?1 AND (?2 OR NOT ({}))",
            self.alive()?
        );
        self.0.engine.run(Once(&sql), sql![host, is_known_to_be_gone])?;
        let is_there = self
            .0
            .engine
            .exists("SELECT 1 FROM core_hosts WHERE id = ?1", sql![host])?;
        Ok(!is_there)
    }

    /// Ends the sessions of hosts without a heartbeat for longer than their leases, and returns their number. A host
    /// that hangs may hold locks that all others wait for.
    pub fn end_sessions_of_silent(self) -> StoreResult<i64> {
        let mark = mark_of_hosts(self.server()?.schema());
        let sql = format!(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(a.pid)) FROM pg_stat_activity AS a
                JOIN core_hosts ON right(a.application_name, length(?1 || id)) = ?1 || id
            WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND {} > lease_ms",
            since("seen_at")
        );
        self.0.engine.one(Once(&sql), sql![mark], |row| row.get(0))
    }

    /// Current time of the server, in milliseconds since 1970.
    pub fn server_ms(self) -> StoreResult<i64> {
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)";
        self.0.engine.one(sql, &[], |row| row.get(0))
    }

    /// Secret that all hosts share, created on first use.
    pub fn secret(self, name: &str) -> StoreResult<[u8; 32]> {
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(|_| StoreError::no_row())?;
        let sql = "INSERT INTO core_secrets (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
        self.0.engine.run(Once(sql), sql![name, hex(&fresh)])?;
        let sql = "SELECT value FROM core_secrets WHERE name = ?1";
        let found: String = self.0.engine.one(Once(sql), sql![name], |row| row.get(0))?;
        unhex(&found).ok_or_else(StoreError::no_row)
    }

    /// Announces the public key with which the hosts of a data directory sign, unless it was announced before.
    pub fn announce_key(self, public_key: &str, place: &str, now: &str) -> StoreResult<()> {
        let sql = "INSERT INTO core_keys (public_key, place, announced_at) VALUES (?1, ?2, ?3)
            ON CONFLICT (public_key) DO NOTHING";
        self.0
            .engine
            .run(Once(sql), sql![public_key, place, now])
            .map(drop)
    }

    /// Announced public keys, with the data directories of their hosts and the times. Empty for a file.
    pub fn keys(self) -> StoreResult<Vec<[String; 3]>> {
        if matches!(self.0.engine, Engine::Sqlite(_)) {
            return Ok(Vec::new());
        }
        let sql = "SELECT public_key, place, announced_at FROM core_keys ORDER BY announced_at, public_key";
        self.0
            .engine
            .all(Once(sql), &[], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))
    }

    fn members(self) -> StoreResult<String> {
        let alive = self.alive()?;
        Ok(format!(
            "SELECT id, place, version, machine, url, workspaces, {}, {}, {alive}, lease_ms FROM core_hosts",
            since("started_at"),
            since("seen_at")
        ))
    }

    /// SQL condition that a row's host is alive.
    fn alive(self) -> StoreResult<String> {
        // The server shows lock numbers as unsigned.
        let class = self.class()?.cast_unsigned();
        Ok(format!(
            "{silence} <= lease_ms AND ({silence} <= {SILENCE_MS} OR EXISTS (
                SELECT 1 FROM pg_locks AS l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                    AND l.classid = {class} AND CAST(l.objid AS bigint) = CAST(core_hosts.lock_key AS bigint) & 4294967295
                    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())))",
            silence = since("seen_at")
        ))
    }

    /// First number of the hosts' locks.
    fn class(self) -> StoreResult<i32> {
        let [.., a, b, c, d] = lock_key(self.server()?.schema(), "host").to_be_bytes();
        Ok(i32::from_be_bytes([a, b, c, d]))
    }

    fn server(&self) -> StoreResult<&Postgres> {
        match &self.0.engine {
            Engine::Postgres(postgres) => Ok(postgres),
            Engine::Sqlite(_) => Err(StoreError::of_servers_alone()),
        }
    }
}

/// SQL for the milliseconds since a time in a row.
fn since(column: &str) -> String {
    format!("CAST(extract(epoch FROM clock_timestamp() - {column}) * 1000 AS bigint)")
}

/// Second number of a host's lock.
fn key_of(host: &str) -> i32 {
    let hash = Sha256::digest(host);
    i32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

/// Another host's text on one line, without terminal control characters.
fn shown(text: &str) -> String {
    text::clean(text::cut(text, MAX_SHOWN))
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn member(row: &super::engine::Row<'_>) -> StoreResult<Member> {
    let workspaces: String = row.get(5)?;
    Ok(Member {
        id: row.get(0)?,
        place: row.get(1)?,
        version: row.get(2)?,
        // Written by other hosts, and shown to agents and on terminals.
        machine: shown(&row.get::<String>(3)?),
        url: row.get::<Option<String>>(4)?.map(|url| shown(&url)),
        workspaces: serde_json::from_str(&workspaces).unwrap_or_default(),
        up_ms: row.get(6)?,
        silent_ms: row.get(7)?,
        is_alive: row.get(8)?,
        lease_ms: row.get(9)?,
    })
}
