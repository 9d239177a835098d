//! Who is alive: each host process holds a lock on a file of its own, and the lock, not a timer, says
//! so. The system frees it however the process ends.

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use rustix::fs::{FlockOperation, flock};

use crate::data_dir::{DataDir, DataDirError};
use crate::storage::{Database, MigrationError};

/// This process among the hosts of a data directory. Dropping it says that the process is over.
pub struct Host {
    id: String,
    dir: Dir,
    _lock: File,
}

impl Host {
    /// Joins, under an id of its own.
    pub fn join(data: &DataDir, id: String) -> Result<Host, DataDirError> {
        let dir = data.private_dir("hosts")?;
        let failed = |source: std::io::Error| DataDirError::Io {
            what: format!("hosts/{id}"),
            path: data.path().display().to_string(),
            source,
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let lock = dir.open_with(&id, &options).map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|err| failed(err.into()))?;
        Ok(Host { id, dir, _lock: lock })
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Ends what hosts that are gone left behind: their open envelopes are interrupted, their `run`
    /// calls become operations of unknown outcome, and what those had set aside comes back.
    pub fn bury_the_dead(&self, database: &Database, now: &str) -> Result<(), MigrationError> {
        let session = database.write_session()?;
        let mut hosts = session.hosts_of_open_envelopes()?;
        hosts.extend(session.hosts_of_intents()?);
        hosts.extend(session.hosts_of_reservations(None)?);
        hosts.retain(|host| *host != self.id && !self.is_alive(host));
        if hosts.is_empty() {
            return Ok(());
        }
        session.begin_write()?;
        for host in &hosts {
            session.interrupt_envelopes(host, None, now, "HOST_GONE")?;
            session.give_up_intents(host)?;
            session.give_back_of_host(host)?;
        }
        session.commit()?;
        Ok(())
    }

    /// The other hosts of a data directory that are alive.
    pub fn others_alive(&self) -> std::io::Result<Vec<String>> {
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

    /// Whether somebody holds the host's lock. Its file goes with it, so none means nobody.
    pub fn is_alive(&self, host: &str) -> bool {
        let mut options = OpenOptions::new();
        options.write(true);
        let Ok(file) = self.dir.open_with(host, &options) else {
            return false;
        };
        let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if is_free {
            // Nobody will ask for a dead host again; a file that stays costs nothing.
            let _ = self.dir.remove_file(host);
        }
        !is_free
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.dir.remove_file(&self.id);
    }
}
