//! Hosts that work with a database on a server. Each keeps a row of its own fresh, by the clock of the server alone.
//!
//! A host is gone if nobody heard of it for its lease, or for less if the server noticed the end of its connection: with
//! that it loses a lock. Whoever finds a host gone buries it: its row goes, and from then on each write transaction of it
//! fails, until it joins again.

use sha2::{Digest as _, Sha256};
use tollgate_core::hash::{hex, unhex};
use tollgate_core::text;

use super::engine::postgres::{Postgres, lock_key, mark_of_hosts};
use super::engine::{Engine, Once, sql};
use super::error::{StoreError, StoreResult};
use super::handles::Roster;

/// Most bytes of what another host says of itself that are shown.
const MAX_SHOWN: usize = 200;
/// Time without news after which a host whose connection ended is gone, in milliseconds.
const SILENCE_MS: i64 = 6_000;

/// A host, as it says of itself.
#[derive(Debug, Clone)]
pub struct NewMember {
    /// Its id.
    pub id: String,
    /// Its data directory, by a hash.
    pub place: String,
    /// Time without news after which it counts as gone, in milliseconds.
    pub lease_ms: i64,
    /// Version of the program.
    pub version: String,
    /// Name of its machine.
    pub machine: String,
    /// Address at which clients reach it, if they do over HTTP.
    pub url: Option<String>,
}

/// A host of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: String,
    /// Its data directory, by a hash.
    pub place: String,
    /// Version of the program.
    pub version: String,
    /// Name of its machine.
    pub machine: String,
    /// Address at which clients reach it, if they do over HTTP.
    pub url: Option<String>,
    /// Names of its workspaces.
    pub workspaces: Vec<String>,
    /// Time since it joined, in milliseconds.
    pub up_ms: i64,
    /// Time since it was heard of, in milliseconds.
    pub silent_ms: i64,
    /// Time without news after which it counts as gone, in milliseconds.
    pub lease_ms: i64,
    /// False if it is gone and nobody has buried it yet.
    pub is_alive: bool,
}

impl Roster<'_> {
    /// Enters a host, or hears of it again.
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

    /// Says that a host is alive. None if it was buried, else the time of the server.
    pub fn beat(self, host: &str) -> StoreResult<Option<i64>> {
        let sql = "UPDATE core_hosts SET seen_at = clock_timestamp() WHERE id = ?1
            RETURNING CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)";
        self.0.engine.maybe(sql, sql![host], |row| row.get(0))
    }

    /// Notes the workspaces that a host has.
    pub fn note_workspaces(self, host: &str, names: &[String]) -> StoreResult<()> {
        let names = serde_json::to_string(names).map_err(StoreError::of_json)?;
        let sql = "UPDATE core_hosts SET workspaces = ?2 WHERE id = ?1";
        self.0.engine.run(Once(sql), sql![host, names]).map(drop)
    }

    /// Removes a host that ends in order.
    pub fn leave(self, host: &str) -> StoreResult<()> {
        let sql = "DELETE FROM core_hosts WHERE id = ?1";
        self.0.engine.run(Once(sql), sql![host]).map(drop)
    }

    /// Takes the lock that the server frees with this session. False if an older session of the host has it still.
    pub fn hold(self, host: &str) -> StoreResult<bool> {
        let sql = format!("SELECT pg_try_advisory_lock({}, {})", self.class()?, key_of(host));
        self.0.engine.one(Once(&sql), &[], |row| row.get(0))
    }

    /// The host with an id, if it has a row.
    pub fn find(self, host: &str) -> StoreResult<Option<Member>> {
        let sql = format!("{} WHERE id = ?1", self.members()?);
        self.0.engine.maybe(&sql, sql![host], member)
    }

    /// Ids of all hosts. None in a file, where locks of files say who is there.
    pub fn ids(self) -> StoreResult<Vec<String>> {
        match &self.0.engine {
            Engine::Sqlite(_) => Ok(Vec::new()),
            Engine::Postgres(_) => self
                .0
                .engine
                .all("SELECT id FROM core_hosts", &[], |row| row.get(0)),
        }
    }

    /// All hosts, the oldest first.
    pub fn all(self) -> StoreResult<Vec<Member>> {
        let sql = format!("{} ORDER BY started_at, id", self.members()?);
        self.0.engine.all(&sql, &[], member)
    }

    /// The same, and none where no host has made the table yet.
    pub(crate) fn all_if_any(self) -> StoreResult<Vec<Member>> {
        let sql = "SELECT to_regclass('core_hosts') IS NOT NULL";
        match self.0.engine.one(Once(sql), &[], |row| row.get(0))? {
            true => self.all(),
            false => Ok(Vec::new()),
        }
    }

    /// Removes a host if it is gone, and tells if it has no row then. From then on its write transactions fail; those that
    /// are open now end before. Wants a write transaction.
    pub fn bury(self, host: &str, is_known_to_be_gone: bool) -> StoreResult<bool> {
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

    /// Ends the sessions of hosts that said nothing for longer than their leases, and returns how many. One that hangs may
    /// have locks that all others wait for.
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

    /// Time of the server, in milliseconds since 1970.
    pub fn server_ms(self) -> StoreResult<i64> {
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)";
        self.0.engine.one(sql, &[], |row| row.get(0))
    }

    /// A secret that all hosts share, made at its first use.
    pub fn secret(self, name: &str) -> StoreResult<[u8; 32]> {
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(|_| StoreError::no_row())?;
        let sql = "INSERT INTO core_secrets (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
        self.0.engine.run(Once(sql), sql![name, hex(&fresh)])?;
        let sql = "SELECT value FROM core_secrets WHERE name = ?1";
        let found: String = self.0.engine.one(Once(sql), sql![name], |row| row.get(0))?;
        unhex(&found).ok_or_else(StoreError::no_row)
    }

    /// Announces the public key with which the hosts of a data directory sign, unless that was done before.
    pub fn announce_key(self, public_key: &str, place: &str, now: &str) -> StoreResult<()> {
        let sql = "INSERT INTO core_keys (public_key, place, announced_at) VALUES (?1, ?2, ?3)
            ON CONFLICT (public_key) DO NOTHING";
        self.0
            .engine
            .run(Once(sql), sql![public_key, place, now])
            .map(drop)
    }

    /// Public keys that hosts announced, with the places of those hosts and the times. None in a file.
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

    /// Condition on a row that its host is alive.
    fn alive(self) -> StoreResult<String> {
        // The server shows the numbers of locks without their signs.
        let class = self.class()?.cast_unsigned();
        Ok(format!(
            "{silence} <= lease_ms AND ({silence} <= {SILENCE_MS} OR EXISTS (
                SELECT 1 FROM pg_locks AS l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                    AND l.classid = {class} AND CAST(l.objid AS bigint) = CAST(core_hosts.lock_key AS bigint) & 4294967295
                    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())))",
            silence = since("seen_at")
        ))
    }

    /// First number of the locks of hosts.
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

/// Milliseconds since a time in a row.
fn since(column: &str) -> String {
    format!("CAST(extract(epoch FROM clock_timestamp() - {column}) * 1000 AS bigint)")
}

/// Second number of a host's lock.
fn key_of(host: &str) -> i32 {
    let hash = Sha256::digest(host);
    i32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

/// A text of another host in one line, without what terminals heed.
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
        // Other hosts wrote these, and agents and terminals show them.
        machine: shown(&row.get::<String>(3)?),
        url: row.get::<Option<String>>(4)?.map(|url| shown(&url)),
        workspaces: serde_json::from_str(&workspaces).unwrap_or_default(),
        up_ms: row.get(6)?,
        silent_ms: row.get(7)?,
        is_alive: row.get(8)?,
        lease_ms: row.get(9)?,
    })
}
