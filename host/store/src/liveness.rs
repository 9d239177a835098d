//! Liveness of hosts: each host process holds a lock on a file of its own, and the lock, not a timer, says
//! so. The system frees it however the process ends.
//!
//! Hosts of a database on a server may have data directories of their own. They keep rows in the database fresh, too: see
//! `pulse`.
//!
//! In the file a host notes where its packs write files. Files follow the commit, so a host that ends without a
//! chance to tidy up may have left some unwritten; the note says where, to whoever starts next.

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

/// Folder of the files, in the data directory.
pub(crate) const FOLDER: &str = "hosts";
/// Most bytes of another host's file that are looked at.
const MAX_NOTES: u64 = 1 << 20;

/// A workspace that a pack writes files to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Projection {
    /// The pack's name.
    pub pack: String,
    /// The workspace's name.
    pub workspace: String,
}

/// This process among the hosts of a data directory. Dropping it says that the process is over.
pub struct Host {
    id: String,
    dir: Dir,
    lock: File,
    noted: Mutex<BTreeSet<Projection>>,
    /// Connections that components asked about.
    watched: Mutex<BTreeSet<String>>,
    unfinished: AtomicBool,
    /// Its row in the database, if that is on a server.
    pulse: Option<Pulse>,
}

impl Host {
    /// Joins, under an id of its own.
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

    /// Joins the hosts of a database as well, if that is on a server.
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

    /// Says which workspaces this host has, to the other hosts of a server's database.
    pub fn note_workspaces(&self, names: Vec<String>) {
        if let Some(pulse) = &self.pulse {
            pulse.note_workspaces(names);
        }
    }

    /// Addresses of living hosts on other machines that have a workspace of this name.
    pub fn hosts_with_workspace(&self, name: &str) -> Vec<Elsewhere> {
        match &self.pulse {
            Some(pulse) => pulse.hosts_with_workspace(name),
            None => Vec::new(),
        }
    }

    /// True if other hosts work with the same database on a server, as far as this one knows.
    pub fn is_among_others(&self) -> bool {
        self.pulse.as_ref().is_some_and(Pulse::is_among_others)
    }

    /// True if a host of a server's database did not hear from the database for so long that others may have buried it.
    pub fn is_cut_off(&self) -> bool {
        self.pulse.as_ref().is_some_and(Pulse::is_cut_off)
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Ends what hosts that are gone left behind: their open envelopes are interrupted, their `run`
    /// calls become operations of unknown outcome, their tasks end with what the ledger knows, and what those had set
    /// aside comes back.
    pub fn bury_the_dead(&self, database: &Database, clock: &dyn Clock) -> Result<(), JoinError> {
        let session = database.write_session()?;
        let is_alive = |host: &str| host == self.id || self.is_alive(host);
        let buried = match &self.pulse {
            Some(pulse) => bury(&session, clock, is_alive, |host| pulse.bury(&session, host)),
            None => bury(&session, clock, is_alive, |_| Ok(true)),
        };
        Ok(buried?)
    }

    /// Notes that a component asked about a connection of this host, so that its end has to be written down.
    pub fn watch(&self, connection: &str) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched.contains(connection) {
            watched.insert(connection.to_owned());
        }
    }

    /// Forgets a connection. Returns whether a component asked about it.
    pub fn unwatch(&self, connection: &str) -> bool {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.remove(connection)
    }

    /// The other hosts of a data directory that are alive, or of a server's database.
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

    /// True if a host is at work.
    pub fn is_alive(&self, host: &str) -> bool {
        match &self.pulse {
            Some(pulse) => pulse.is_alive(host),
            None => is_locked(&self.dir, host),
        }
    }

    /// Notes that files are about to follow a commit. Once for each place, because the note stays until
    /// this process ends.
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

    /// Leaves the notes to the next host, because files are still unwritten.
    pub fn keep_notes(&self) {
        self.unfinished.store(true, Ordering::Relaxed);
    }

    /// Projections that gone hosts may have left unwritten, as far as this host can write them. They
    /// are this host's business from then on.
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
        // Without a note there is nothing to take, and the host may be about to lock its file.
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

/// Reason why a host cannot join the others, or why nobody knows who they are.
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
    /// The thread that keeps the host's row fresh cannot be started.
    #[error("the thread that says that the host is alive cannot be started")]
    Thread(#[source] io::Error),
}

/// A host on another machine that has a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    /// Name of its machine.
    pub machine: String,
    /// Address at which clients reach it, if they do over HTTP.
    pub url: Option<String>,
}

/// Ends what hosts left behind that are not alive. `take_out` says in the transaction if one is gone for sure.
pub(crate) fn bury(
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

/// True if somebody holds the host's lock. Its file goes with it, so none means nobody.
pub(crate) fn is_locked(dir: &Dir, host: &str) -> bool {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(NO_WAIT);
    let Ok(file) = dir.open_with(host, &options) else {
        return false;
    };
    let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    if is_free && file.metadata().is_ok_and(|file| file.len() == 0) {
        // Nobody will ask for a dead host again; a file that stays costs nothing.
        let _ = dir.remove_file(host);
    }
    !is_free
}

/// The hosts that work on a data directory now, for whoever is none of them.
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
        // One that is gone by now is nobody's.
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

/// Hosts that work with a database now, in words: those of the data directory, and on a server those of others. `but` is
/// a host that does not count.
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
