//! Liveness of hosts. Each host process locks a file of its own, and the lock, not a timer, shows that the host is
//! alive. The system releases the lock however the process ends.
//!
//! Hosts of a database on a server may have different data directories. Such hosts also keep a row in the database
//! fresh: see `pulse`.
//!
//! In the file a host records where its packs write files. Files are written after the commit, so a host that is
//! killed may leave some unwritten. The record tells the next host which files to write.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tollgate_core::clock::Clock;
use tollgate_core::file::NO_WAIT;
use tollgate_sdk::Timestamp;

use crate::data_dir::{DataDir, DataDirError};
use crate::pulse::{NewPulse, Pulse, known_place};
use crate::storage::{Database, OpenError, Server, Session, StoreError, StoreResult};

/// Folder of the host files, in the data directory.
pub(crate) const FOLDER: &str = "hosts";
/// Most bytes that are read of another host's file.
const MAX_NOTES: u64 = 1 << 20;

/// A workspace to which a pack writes files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Projection {
    /// Name of the pack.
    pub pack: String,
    /// Name of the workspace.
    pub workspace: String,
}

/// This process among the hosts of a data directory. Dropping it marks the process as ended.
pub struct Host {
    id: String,
    dir: Dir,
    lock: File,
    noted: Mutex<BTreeSet<Projection>>,
    /// Connections that components watch.
    watched: Mutex<BTreeSet<String>>,
    unfinished: AtomicBool,
    /// Heartbeat in the database, if that is on a server.
    pulse: Option<Pulse>,
}

impl Host {
    /// Joins the hosts of a data directory, with a new id.
    pub fn join(data: &DataDir, id: String) -> Result<Host, DataDirError> {
        let dir = data.private_dir(FOLDER)?;
        let failed = |source: io::Error| DataDirError::Io {
            what: format!("hosts/{id}"),
            path: data.path().display().to_string(),
            source,
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let lock = dir.open_with(&id, &options).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|err| failed(err.into()))?;
        Ok(Host {
            id,
            dir,
            lock,
            noted: Mutex::default(),
            watched: Mutex::default(),
            unfinished: AtomicBool::new(false),
            pulse: None,
        })
    }

    /// Joins the hosts of a data directory, and of its database if that is on a server.
    pub fn join_at(
        data: &DataDir,
        id: String,
        database: &Database,
        new: NewPulse,
    ) -> Result<Host, JoinError> {
        let mut host = Host::join(data, id)?;
        if database.is_on_server() {
            host.pulse = Some(Pulse::start(data, &host.id, database, new)?);
        }
        Ok(host)
    }

    /// Publishes this host's workspaces to the other hosts of a server's database.
    pub fn note_workspaces(&self, names: Vec<String>) {
        if let Some(pulse) = &self.pulse {
            pulse.note_workspaces(names);
        }
    }

    /// Live hosts on other machines that have a workspace with this name.
    pub fn hosts_with_workspace(&self, name: &str) -> Vec<Elsewhere> {
        match &self.pulse {
            Some(pulse) => pulse.hosts_with_workspace(name),
            None => Vec::new(),
        }
    }

    /// True if other hosts use the same database on a server, as far as this host knows.
    pub fn is_among_others(&self) -> bool {
        self.pulse.as_ref().is_some_and(Pulse::is_among_others)
    }

    /// True if this host has been cut off from a server's database for so long that others may have declared it dead.
    pub fn is_cut_off(&self) -> bool {
        self.pulse.as_ref().is_some_and(Pulse::is_cut_off)
    }

    /// Id of this host.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Cleans up after dead hosts: interrupts their open envelopes, records their `run` calls as operations with
    /// unknown outcome, ends their tasks with what the ledger knows, and releases their reservations.
    pub fn clean_up_after_dead_hosts(&self, database: &Database, clock: &dyn Clock) -> Result<(), JoinError> {
        let session = database.write_session()?;
        let is_alive = |host: &str| host == self.id || self.is_alive(host);
        let cleaned = match &self.pulse {
            Some(pulse) => clean_up(&session, clock, is_alive, |host| {
                pulse.remove_dead(&session, host)
            }),
            None => clean_up(&session, clock, is_alive, |_| Ok(true)),
        };
        Ok(cleaned?)
    }

    /// Records that a component watches a connection of this host, so that the connection's end must be written down.
    pub fn watch(&self, connection: &str) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched.contains(connection) {
            watched.insert(connection.to_owned());
        }
    }

    /// Forgets a connection. Returns whether a component watched it.
    pub fn unwatch(&self, connection: &str) -> bool {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.remove(connection)
    }

    /// Other live hosts of the data directory, or of a server's database.
    pub fn others_alive(&self) -> io::Result<Vec<String>> {
        if let Some(pulse) = &self.pulse {
            return pulse.others_alive().map_err(io::Error::other);
        }
        let mut alive = Vec::new();
        for entry in self.dir.entries()? {
            let id = entry?.file_name().to_string_lossy().into_owned();
            if id != self.id && self.is_alive(&id) {
                alive.push(id);
            }
        }
        alive.sort();
        Ok(alive)
    }

    /// True if a host is alive.
    pub fn is_alive(&self, host: &str) -> bool {
        match &self.pulse {
            Some(pulse) => pulse.is_alive(host),
            None => is_locked(&self.dir, host),
        }
    }

    /// Records that files will be written after a commit. Once for each place, because the record stays until this
    /// process ends.
    pub fn note(&self, projection: Projection) -> io::Result<()> {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if !noted.contains(&projection) {
            let line = serde_json::to_string(&projection)? + "\n";
            (&self.lock).write_all(line.as_bytes())?;
            self.lock.sync_data()?;
            noted.insert(projection);
        }
        Ok(())
    }

    /// Leaves the records to the next host, because files are still unwritten.
    pub fn keep_notes(&self) {
        self.unfinished.store(true, Ordering::Relaxed);
    }

    /// Projections that dead hosts may have left unwritten and that this host can write. This host is responsible for
    /// them from then on.
    pub fn take_over(&self, can_write: impl Fn(&Projection) -> bool) -> io::Result<BTreeSet<Projection>> {
        let mut taken = BTreeSet::new();
        for entry in self.dir.entries()? {
            let name = entry?.file_name();
            if let Some(host) = name.to_str().filter(|host| *host != self.id) {
                taken.extend(self.take_over_from(host, &can_write)?);
            }
        }
        Ok(taken)
    }

    fn take_over_from(
        &self,
        host: &str,
        can_write: impl Fn(&Projection) -> bool,
    ) -> io::Result<BTreeSet<Projection>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        // Without records there is nothing to take over, and the host may be about to lock its file.
        let file = self.dir.open_with(host, &options).ok();
        let Some(mut file) = file.filter(|file| file.metadata().is_ok_and(|file| file.len() > 0)) else {
            return Ok(BTreeSet::new());
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(BTreeSet::new());
        }
        let mut text = String::new();
        (&mut file).take(MAX_NOTES).read_to_string(&mut text)?;
        let notes = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let (taken, left): (BTreeSet<Projection>, BTreeSet<Projection>) = notes.partition(can_write);
        for projection in &taken {
            self.note(projection.clone())?;
        }
        if left.is_empty() {
            self.dir.remove_file(host)?;
        } else if !taken.is_empty() {
            let lines: Result<Vec<String>, _> = left.iter().map(serde_json::to_string).collect();
            self.dir.write(host, lines?.join("\n") + "\n")?;
        }
        Ok(taken)
    }
}

/// Reason for which a host cannot join the others, or for which the live hosts are unknown.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The heartbeat thread cannot be started.
    #[error("cannot start the heartbeat thread")]
    Thread(#[source] io::Error),
}

/// A host on another machine that has a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    /// Name of its machine.
    pub machine: String,
    /// Address for clients, if it serves HTTP.
    pub url: Option<String>,
}

/// Cleans up after dead hosts. `take_out` checks within the transaction that a host is certainly dead.
pub(crate) fn clean_up(
    session: &Session,
    clock: &dyn Clock,
    is_alive: impl Fn(&str) -> bool,
    take_out: impl Fn(&str) -> StoreResult<bool>,
) -> StoreResult<()> {
    let now_ms = clock.now_ms();
    let now = Timestamp::from_ms(now_ms).to_string();
    let boot_ms = clock.boot_ms();
    session.begin_write()?;
    session.envelopes().end_detached(boot_ms, &now)?;
    session.commit()?;
    let mut hosts = session.envelopes().hosts_of_open()?;
    hosts.extend(session.intents().hosts()?);
    hosts.extend(session.budgets().hosts_of_reservations(None)?);
    hosts.extend(session.connections().hosts()?);
    hosts.extend(session.tasks().hosts()?);
    hosts.extend(session.roster().ids()?);
    hosts.sort();
    hosts.dedup();
    hosts.retain(|host| !is_alive(host));
    if hosts.is_empty() {
        return Ok(());
    }
    session.begin_write()?;
    for host in &hosts {
        if !take_out(host)? {
            continue;
        }
        session
            .envelopes()
            .interrupt_all(host, None, (&now, boot_ms), "HOST_GONE")?;
        session.intents().give_up_all(host)?;
        session.tasks().give_up_all(host, "HOST_GONE", now_ms)?;
        session.budgets().give_back_of_host(host)?;
        session.connections().forget(host, None)?;
    }
    session.commit()
}

/// True if the host's lock is held. A missing file means that it is not.
pub(crate) fn is_locked(dir: &Dir, host: &str) -> bool {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(NO_WAIT);
    let Ok(file) = dir.open_with(host, &options) else {
        return false;
    };
    let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if is_free && file.metadata().is_ok_and(|file| file.len() == 0) {
        // Nothing asks for a dead host again, so a remaining file does no harm.
        let _ = dir.remove_file(host);
    }
    !is_free
}

/// Hosts that run on a data directory now, for a caller that is not one of them.
pub fn hosts_alive(data: &DataDir) -> Result<Vec<String>, DataDirError> {
    if !data.has(FOLDER) {
        return Ok(Vec::new());
    }
    let dir = data.private_dir(FOLDER)?;
    let failed = |source: io::Error| DataDirError::Io {
        what: FOLDER.to_owned(),
        path: data.path().display().to_string(),
        source,
    };
    let mut alive = Vec::new();
    for entry in dir.entries().map_err(failed)? {
        let id = entry.map_err(failed)?.file_name();
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(NO_WAIT);
        // It ended in the meantime.
        let Ok(file) = dir.open_with(&id, &options) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            alive.push(id.to_string_lossy().into_owned());
        }
    }
    alive.sort();
    Ok(alive)
}

/// Hosts that use a database now, in words: those of the data directory, and on a server those of other directories.
/// The host `but` does not count.
pub fn hosts_at_work(
    data: &DataDir,
    server: Option<&Server>,
    but: Option<&str>,
) -> Result<Vec<String>, JoinError> {
    let alive = hosts_alive(data)?;
    let mut told: Vec<String> = alive
        .iter()
        .filter(|id| but != Some(id.as_str()))
        .map(|id| format!("host {id}"))
        .collect();
    if let Some(server) = server {
        let own = known_place(data)?;
        let session = Database::on(server.clone()).read_session()?;
        let members = session.roster().all_if_any()?.into_iter();
        let others = members.filter(|member| member.is_alive && own.as_ref() != Some(&member.place));
        told.extend(others.map(|member| format!("host {} on {}", member.id, member.machine)));
    }
    Ok(told)
}

impl Drop for Host {
    fn drop(&mut self) {
        if !self.unfinished.load(Ordering::Relaxed) {
            let _ = self.dir.remove_file(&self.id);
        }
    }
}
