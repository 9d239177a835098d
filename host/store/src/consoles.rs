//! Consoles of a data directory: their addresses, and the one-time tokens for its owner's login.
//!
//! Anyone who can write to the data directory is its owner, so a file in it is sufficient proof. Only the hash of a
//! token is stored.

use std::io;
use std::path::PathBuf;

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use tollgate_core::hash::{hex, sha256_hex};

use crate::data_dir::{DataDir, DataDirError};
use crate::liveness;

/// Folder in the data directory.
const FOLDER: &str = "console";
/// Prefix of a token's file name, before its hash.
const TOKEN_PREFIX: &str = "login-";
/// Prefix of the file name with a host's console address, before the host's id.
const ADDRESS_PREFIX: &str = "at-";
/// Prefix of a session's file name, before the hash of its cookie.
const SESSION_PREFIX: &str = "session-";
/// File that opens a login in a browser.
const PAGE_FILE: &str = "open.html";
/// Time for which a token is valid.
const VALID_MS: i64 = 10 * 60_000;

/// Console state in a data directory.
pub struct Consoles {
    dir: Dir,
}

impl Consoles {
    /// Opens the folder, and creates it if it is missing.
    pub fn open(data: &DataDir) -> Result<Consoles, DataDirError> {
        Ok(Consoles {
            dir: data.private_dir(FOLDER)?,
        })
    }

    /// Creates a one-time login token that is valid for ten minutes. Its hash is stored, and expired tokens are
    /// removed.
    pub fn offer_login(&self, now_ms: i64) -> io::Result<String> {
        for entry in self.dir.entries()? {
            let name = entry?.file_name();
            let name = name.to_str();
            if let Some(name) =
                name.filter(|name| name.starts_with(TOKEN_PREFIX) || name.starts_with(SESSION_PREFIX))
                && self.ends_at(name).is_none_or(|ends_at| ends_at <= now_ms)
            {
                let _ = self.dir.remove_file(name);
            }
        }
        let mut fresh = [0; 32];
        getrandom::fill(&mut fresh).map_err(io::Error::other)?;
        let token = hex(&fresh);
        let ends_at = now_ms.saturating_add(VALID_MS).to_string();
        self.write(
            &format!("{TOKEN_PREFIX}{}", sha256_hex(token.as_bytes())),
            &ends_at,
        )?;
        Ok(token)
    }

    /// Uses a token up. Returns false if it is unknown, used or expired.
    pub fn take_login(&self, token: &str, now_ms: i64) -> bool {
        let name = format!("{TOKEN_PREFIX}{}", sha256_hex(token.as_bytes()));
        let ends_at = self.ends_at(&name);
        // Of concurrent uses, only one removes the file.
        let is_first = self.dir.remove_file(&name).is_ok();
        is_first && ends_at.is_some_and(|ends_at| now_ms < ends_at && ends_at - now_ms <= VALID_MS)
    }

    /// Stores a session of the owner, by the hash of its cookie, for later servers.
    pub fn keep_session(&self, hash: &str, ends_at_ms: i64) -> io::Result<()> {
        self.write(&format!("{SESSION_PREFIX}{hash}"), &ends_at_ms.to_string())
    }

    /// Time at which a stored session ends.
    pub fn session_ends_at(&self, hash: &str) -> Option<i64> {
        self.ends_at(&format!("{SESSION_PREFIX}{hash}"))
    }

    /// Removes a session.
    pub fn forget_session(&self, hash: &str) {
        let _ = self.dir.remove_file(format!("{SESSION_PREFIX}{hash}"));
    }

    fn ends_at(&self, name: &str) -> Option<i64> {
        self.dir.read_to_string(name).ok()?.parse().ok()
    }

    /// Records the address at which a host serves its console.
    pub fn announce(&self, host_id: &str, url: &str) -> io::Result<()> {
        self.write(&format!("{ADDRESS_PREFIX}{host_id}"), url)
    }

    /// Removes the address of a host.
    pub fn withdraw(&self, host_id: &str) {
        let _ = self.dir.remove_file(format!("{ADDRESS_PREFIX}{host_id}"));
    }

    /// Addresses of consoles whose hosts are alive. Removes those of dead hosts.
    pub fn served(&self, data: &DataDir) -> Result<Vec<String>, DataDirError> {
        let alive = liveness::hosts_alive(data)?;
        let mut served = Vec::new();
        for entry in self.dir.entries().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(host) = name.to_str().and_then(|name| name.strip_prefix(ADDRESS_PREFIX)) else {
                continue;
            };
            if !alive.iter().any(|alive| alive == host) {
                self.withdraw(host);
            } else if let Ok(url) = self.dir.read_to_string(&name) {
                served.push(url);
            }
        }
        served.sort();
        Ok(served)
    }

    /// Writes the page that opens a login in a browser, and returns its path.
    pub fn write_page(&self, data: &DataDir, page: &str) -> io::Result<PathBuf> {
        self.write(PAGE_FILE, page)?;
        Ok(data.path().join(FOLDER).join(PAGE_FILE))
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = self.dir.open_with(name, &options)?;
        io::Write::write_all(&mut file, text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_logs_in_once_and_in_time_and_its_file_does_not_tell_it() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(&place.path().join("data")).unwrap();
        let consoles = Consoles::open(&data).unwrap();
        let token = consoles.offer_login(1_000).unwrap();
        assert_eq!(token.len(), 64);
        let names: Vec<String> = consoles
            .dir
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        assert!(names.iter().all(|name| !name.contains(&token)), "{names:?}");
        assert!(!consoles.take_login("", 1_000));
        assert!(!consoles.take_login("../at-hst_1", 1_000));
        assert!(consoles.take_login(&token, 2_000));
        assert!(!consoles.take_login(&token, 2_000), "used up");
        let late = consoles.offer_login(1_000).unwrap();
        assert!(!consoles.take_login(&late, 1_000 + VALID_MS));
        let set_back = consoles.offer_login(10 * VALID_MS).unwrap();
        assert!(!consoles.take_login(&set_back, 0), "the clock was set back");
        let forgotten = consoles.offer_login(1_000).unwrap();
        consoles.offer_login(1_000 + VALID_MS).unwrap();
        assert!(!consoles.take_login(&forgotten, 1_500));
    }

    #[test]
    fn consoles_of_gone_hosts_are_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let data = DataDir::open(&place.path().join("data")).unwrap();
        let consoles = Consoles::open(&data).unwrap();
        let host = liveness::Host::join(&data, "hst_1".to_owned()).unwrap();
        consoles.announce("hst_1", "http://127.0.0.1:1/console/").unwrap();
        consoles.announce("hst_2", "http://127.0.0.1:2/console/").unwrap();
        assert_eq!(consoles.served(&data).unwrap(), ["http://127.0.0.1:1/console/"]);
        drop(host);
        assert!(consoles.served(&data).unwrap().is_empty());
    }
}
