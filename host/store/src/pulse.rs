//! Heartbeat of a host whose database is on a server: a thread that keeps the host's row fresh and cleans up after
//! dead hosts.
//!
//! Hosts of the same data directory run on one machine, so the locks on their files show at once which are dead. For
//! other hosts the database shows it: see [`Roster`](crate::storage::Roster).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use sha2::{Digest as _, Sha256};
use tollgate_core::clock::Clock as _;
use tollgate_core::hash::hex;
use tollgate_sdk::Timestamp;

use crate::data_dir::{DataDir, DataDirError};
use crate::key::LedgerKey;
use crate::liveness::{Elsewhere, FOLDER, JoinError, clean_up, is_locked};
use crate::storage::{Database, Member, NewMember, OpenError, Session, StoreFailure, StoreResult};

/// Secret that identifies a data directory to a database.
const DIRECTORY_KEY: &str = "directory.key";
/// Interval of heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
/// Characters of a data directory's hash.
const PLACE_CHARS: usize = 16;

/// Settings of a heartbeat.
#[derive(Debug, Clone)]
pub struct NewPulse {
    /// Version of the program.
    pub version: String,
    /// Address for clients, if the host serves HTTP.
    pub url: Option<String>,
    /// Time without a heartbeat after which the host counts as dead.
    pub lease: Duration,
}

/// Row of a host in the database, kept fresh until this is dropped.
pub(crate) struct Pulse {
    shared: Arc<Shared>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    member: NewMember,
    lease: Duration,
    database: Database,
    /// Host files of this data directory.
    files: Dir,
    /// Session for queries about live hosts.
    looks: Mutex<Option<Session>>,
    /// Time of the last heartbeat that the database accepted.
    heard: Mutex<Instant>,
    /// Start of the current uninterrupted series of accepted heartbeats.
    in_touch: Mutex<Option<Instant>>,
    /// All hosts as of that time.
    members: Mutex<Vec<Member>>,
    /// Names of this host's workspaces, until they are stored in the database.
    workspaces: Mutex<Option<Vec<String>>>,
}

/// Hash that identifies a data directory to a database.
pub fn place_of(data: &DataDir) -> Result<String, DataDirError> {
    Ok(place_by(&data.secret(DIRECTORY_KEY)?))
}

/// Hash of an existing data directory. `None` if none of its hosts used a server.
pub(crate) fn known_place(data: &DataDir) -> Result<Option<String>, DataDirError> {
    let secret = data.find_secret(DIRECTORY_KEY)?;
    Ok(secret.map(|secret| place_by(&secret)))
}

fn place_by(secret: &[u8; 32]) -> String {
    let hash = Sha256::digest([b"tollgate directory\n", secret.as_slice()].concat());
    let mut place = hex(&hash);
    place.truncate(PLACE_CHARS);
    place
}

impl Pulse {
    /// Adds a host, and keeps its row fresh from now on.
    pub(crate) fn start(
        data: &DataDir,
        host: &str,
        database: &Database,
        new: NewPulse,
    ) -> Result<Pulse, JoinError> {
        let member = NewMember {
            id: host.to_owned(),
            place: place_of(data)?,
            lease_ms: i64::try_from(new.lease.as_millis()).unwrap_or(i64::MAX),
            version: new.version,
            machine: machine(),
            url: new.url,
        };
        let key = LedgerKey::open(data)?.public().to_string();
        let session = database.write_session()?;
        let now_ms = tollgate_core::clock::SystemClock.now_ms();
        let now = Timestamp::from_ms(now_ms).to_string();
        session.roster().announce_key(&key, &member.place, &now)?;
        session.roster().join(&member)?;
        let members = session.roster().all()?;
        database.serve(host, &member.place, new.lease);
        let shared = Arc::new(Shared {
            member,
            lease: new.lease,
            database: database.clone(),
            files: data.private_dir(FOLDER)?,
            looks: Mutex::default(),
            heard: Mutex::new(Instant::now()),
            in_touch: Mutex::new(Some(Instant::now())),
            members: Mutex::new(members),
            workspaces: Mutex::default(),
        });
        let (stop, stopped) = crossbeam_channel::bounded(0);
        let beating = Beating {
            shared: Arc::clone(&shared),
            session: Some(session),
            holds: false,
            is_warned: false,
        };
        let thread = std::thread::Builder::new()
            .name("pulse".to_owned())
            .spawn(move || beating.work(&stopped))
            .map_err(JoinError::Thread)?;
        Ok(Pulse {
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Publishes the names of this host's workspaces.
    pub(crate) fn note_workspaces(&self, names: Vec<String>) {
        *locked(&self.shared.workspaces) = Some(names);
    }

    /// Live hosts of other data directories that have a workspace with this name, as of the last heartbeat.
    pub(crate) fn hosts_with_workspace(&self, name: &str) -> Vec<Elsewhere> {
        let all = locked(&self.shared.members).clone();
        let others = all.into_iter().filter(|member| {
            member.is_alive
                && member.place != self.shared.member.place
                && member.workspaces.iter().any(|found| found == name)
        });
        others
            .map(|member| Elsewhere {
                machine: member.machine,
                url: member.url,
            })
            .collect()
    }

    /// True if a host is alive. A host whose state cannot be queried counts as alive.
    pub(crate) fn is_alive(&self, host: &str) -> bool {
        self.shared.is_alive(host)
    }

    /// Ids of the other live hosts.
    pub(crate) fn others_alive(&self) -> StoreResult<Vec<String>> {
        let all = self.shared.look(|session| session.roster().all())?;
        let others = all
            .into_iter()
            .filter(|member| member.is_alive && member.id != self.shared.member.id);
        Ok(others.map(|member| member.id).collect())
    }

    /// Removes the row of a dead host. Returns false if it is alive after all.
    pub(crate) fn remove_dead(&self, session: &Session, host: &str) -> StoreResult<bool> {
        self.shared.remove_dead(session, host)
    }

    /// True unless this host was alone at the last heartbeat.
    pub(crate) fn is_among_others(&self) -> bool {
        locked(&self.shared.members)
            .iter()
            .any(|member| member.id != self.shared.member.id)
    }

    /// True if the database has accepted no heartbeat for so long that others may have declared this host dead.
    pub(crate) fn is_cut_off(&self) -> bool {
        locked(&self.shared.heard).elapsed() > self.shared.lease
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Runs a query, and retries once on a new connection.
    fn look<T>(&self, look: impl Fn(&Session) -> StoreResult<T>) -> StoreResult<T> {
        let mut kept = locked(&self.looks);
        if let Some(session) = kept.as_ref() {
            match look(session) {
                Err(err) if err.failure() == StoreFailure::Lost => {}
                looked => return looked,
            }
        }
        let session = self.database.read_session().map_err(OpenError::into_cause)?;
        let looked = look(&session);
        *kept = Some(session);
        looked
    }

    fn is_alive(&self, host: &str) -> bool {
        match self.look(|session| session.roster().find(host)) {
            Ok(Some(found)) if found.place == self.member.place => is_locked(&self.files, host),
            Ok(Some(found)) => found.is_alive || !self.may_judge(),
            Ok(None) => false,
            Err(err) => {
                tracing::warn!(%err, host, "cannot determine from the database whether a host is running");
                true
            }
        }
    }

    /// True if this host has had time to hear from all live hosts. After an outage of the server no heartbeats have
    /// arrived and all locks are gone.
    fn may_judge(&self) -> bool {
        let in_touch = *locked(&self.in_touch);
        in_touch.is_some_and(|since| since.elapsed() >= self.lease)
    }

    fn remove_dead(&self, session: &Session, host: &str) -> StoreResult<bool> {
        let found = session.roster().find(host)?;
        let is_known_to_be_gone =
            found.is_some_and(|found| found.place == self.member.place && !is_locked(&self.files, host));
        session.roster().remove_dead(host, is_known_to_be_gone)
    }
}

/// Thread side of the heartbeat.
struct Beating {
    shared: Arc<Shared>,
    session: Option<Session>,
    /// True while the session holds the lock that ends with it.
    holds: bool,
    is_warned: bool,
}

impl Beating {
    fn work(mut self, stopped: &Receiver<()>) {
        loop {
            match self.beat() {
                Ok(()) => self.is_warned = false,
                Err(err) => {
                    if !self.is_warned {
                        tracing::warn!(%err, "the heartbeat of this host did not reach the database; trying again");
                    }
                    self.is_warned = true;
                    self.session = None;
                    self.holds = false;
                    *locked(&self.shared.in_touch) = None;
                }
            }
            if stopped.recv_timeout(HEARTBEAT_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
        if let Some(session) = &self.session
            && let Err(err) = session.roster().leave(&self.shared.member.id)
        {
            tracing::warn!(%err, "cannot record in the database that this host is ending; other hosts will detect it");
        }
    }

    fn beat(&mut self) -> StoreResult<()> {
        let shared = Arc::clone(&self.shared);
        let id = &shared.member.id;
        let session = match self.session.take() {
            Some(session) => session,
            None => shared.database.write_session().map_err(OpenError::into_cause)?,
        };
        let session = self.session.insert(session);
        session.wait_at_most(HEARTBEAT_INTERVAL);
        match session.roster().beat(id)? {
            Some(server_ms) => shared.database.heard_time(server_ms),
            None => {
                tracing::warn!(
                    "other hosts assumed that this host had ended and interrupted its open envelopes; rejoining"
                );
                session.roster().join(&shared.member)?;
                session.roster().beat(id)?;
            }
        }
        *locked(&shared.heard) = Instant::now();
        locked(&shared.in_touch).get_or_insert_with(Instant::now);
        if !self.holds {
            self.holds = session.roster().hold(id)?;
        }
        if let Some(names) = locked(&shared.workspaces).take()
            && let Err(err) = session.roster().note_workspaces(id, &names)
        {
            *locked(&shared.workspaces) = Some(names);
            return Err(err);
        }
        match self.clean_up_after_dead_hosts() {
            // Another session holds the write lock, perhaps one that hangs. Hosts that wait for it send no heartbeat
            // and look dead as well.
            Err(err) if err.failure() == StoreFailure::Busy => Ok(()),
            done => done,
        }
    }

    fn clean_up_after_dead_hosts(&self) -> StoreResult<()> {
        let Some(session) = &self.session else {
            return Ok(());
        };
        let shared = &self.shared;
        let members = session.roster().all()?;
        *locked(&shared.members) = members.clone();
        if let Some(longest) = members.iter().map(|member| member.lease_ms).max() {
            shared.database.note_lease(longest);
        }
        self.end_sessions(session, &members);
        let gone: Vec<String> = members
            .into_iter()
            .filter(|member| match member.place == shared.member.place {
                true => member.id != shared.member.id && !is_locked(&shared.files, &member.id),
                false => !member.is_alive && shared.may_judge(),
            })
            .map(|member| member.id)
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        tracing::info!(
            hosts = gone.join(", "),
            "hosts have ended; closing their open envelopes and tasks"
        );
        clean_up(
            session,
            &*shared.database.clock()?,
            |host| !gone.iter().any(|gone| gone == host),
            |host| shared.remove_dead(session, host),
        )
    }
}

impl Beating {
    /// Ends the sessions of hosts that hang, to release their locks. A host that recovers is alive and reconnects.
    fn end_sessions(&self, session: &Session, members: &[Member]) {
        let is_silent = |member: &Member| member.silent_ms > member.lease_ms;
        if !members.iter().any(is_silent) || !self.shared.may_judge() {
            return;
        }
        match session.roster().end_sessions_of_silent() {
            Ok(0) => {}
            Ok(ended) => tracing::warn!(
                ended,
                "a host no longer responds; its connections to the database were ended"
            ),
            Err(err) => tracing::warn!(%err, "cannot end the connections of a host that no longer responds"),
        }
    }
}

/// Name of this machine, for people.
fn machine() -> String {
    let name = nix::unistd::gethostname();
    name.map_or_else(
        |_| "unknown".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
