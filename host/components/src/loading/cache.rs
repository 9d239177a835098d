//! On-disk cache of compiled components, so that only the first start compiles, and of the manifests of packs that
//! are not built in.
//!
//! Loading compiled code runs it, so an entry must have been written by a host of the same user. The directory and
//! the file belong to the owner alone, links are not followed, and a MAC under a local key covers the component's
//! hash, the engine's hash and the content. An entry that fails any of these checks is rebuilt. Code is mapped from
//! its file, so that processes share its memory.

use std::io::{Read, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;
use std::time::Duration;

use cap_std::fs::{Dir, MetadataExt as _, OpenOptions, OpenOptionsExt};
use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use sha2::Sha256;
use tollgate_core::file::NO_WAIT;
use tollgate_store::data_dir::{DataDir, DataDirError, open_private};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::builtin::{self, Ahead};

const DIR: &str = "cache";
const MANIFESTS: &str = "manifests";
const KEY_FILE: &str = "cache.key";
const TAG_BYTES: usize = 32;
/// Largest entry that is read back.
const MAX_ENTRY: u64 = 512 << 20;
/// Age after which an unfinished entry is abandoned.
const UNFINISHED_AGE_LIMIT: Duration = Duration::from_secs(3_600);
/// Bytes that are read or written at once.
const BUFFER_BYTES: usize = 128 << 10;

/// Cache in one directory.
pub(super) struct Cache {
    /// Directories and key, if they exist.
    dirs: Option<CacheDirs>,
    /// True if nothing is stored.
    is_frozen: bool,
}

struct CacheDirs {
    code: Dir,
    /// Data directory, for creating the cache directories on first use.
    home: DataDir,
    key: [u8; 32],
}

/// The origin of a component's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The cache had it.
    Cached,
    /// This binary had it.
    Unpacked,
    /// The compiler made it.
    Compiled,
}

/// Lock on the compilation of a component, released when it is dropped or its process dies.
pub(super) struct Turn {
    /// `None` if no file can be created.
    held: Option<std::fs::File>,
}

impl Cache {
    /// Opens the cache and creates its directory if it is missing.
    pub(super) fn open(home: DataDir) -> Result<Cache, DataDirError> {
        let dirs = CacheDirs {
            code: home.private_dir(DIR)?,
            key: home.secret(KEY_FILE)?,
            home,
        };
        sweep(&dirs.code);
        Ok(Cache {
            dirs: Some(dirs),
            is_frozen: false,
        })
    }

    /// A disabled cache.
    pub(super) fn none() -> Cache {
        Cache {
            dirs: None,
            is_frozen: true,
        }
    }

    /// Opens an existing cache read-only: entries are read and none is written.
    pub(super) fn frozen(home: DataDir) -> Result<Cache, DataDirError> {
        let key = home
            .has(KEY_FILE)
            .then(|| home.find_secret(KEY_FILE))
            .transpose()?
            .flatten();
        let dirs = match key.filter(|_| home.has(DIR)) {
            Some(key) => Some(CacheDirs {
                code: home.private_dir(DIR)?,
                key,
                home,
            }),
            None => None,
        };
        Ok(Cache {
            dirs,
            is_frozen: true,
        })
    }

    /// Directory of the entries, if entries can be stored.
    pub(super) fn keeps_in(&self) -> Option<&std::path::Path> {
        let dirs = self.dirs.as_ref().filter(|_| !self.is_frozen)?;
        Some(dirs.home.path())
    }

    /// Compiled form of the component with a SHA-256, if there is a valid entry or it was compiled ahead.
    pub(super) fn get(&self, engine: &Engine, hash: &str) -> Option<(Component, How)> {
        let ahead = builtin::ahead(hash);
        let entry = ahead
            .and_then(|ahead| self.entry(engine, &entry_name(hash, ahead.settings)))
            .or_else(|| self.compiled(engine, hash));
        entry
            .map(|component| (component, How::Cached))
            .or_else(|| Some((self.unpacked(engine, hash, ahead?)?, How::Unpacked)))
    }

    /// Entry that the compiler made for this engine, if it exists.
    pub(super) fn compiled(&self, engine: &Engine, hash: &str) -> Option<Component> {
        self.entry(engine, &entry_name(hash, &tollgate_engine::settings(engine)))
    }

    /// True if there is a valid entry. Loads nothing.
    pub(super) fn has(&self, hash: &str, settings: &str) -> bool {
        self.verified(&entry_name(hash, settings)).is_some()
    }

    /// Stores code that the compiler just produced. A full disk only costs the next start time.
    pub(super) fn put(&self, hash: &str, settings: &str, code: &[u8]) -> std::io::Result<()> {
        let name = entry_name(hash, settings);
        match self.dirs.as_ref().filter(|_| !self.is_frozen) {
            Some(dirs) => write(&dirs.code, &dirs.key, &name, &mut &code[..], u64::MAX).map(drop),
            None => Err(std::io::ErrorKind::ReadOnlyFilesystem.into()),
        }
    }

    /// Manifest that the component with a SHA-256 gave to this version of the program.
    pub(super) fn manifest(&self, engine: &Engine, hash: &str) -> Option<String> {
        let dirs = self.dirs.as_ref().filter(|dirs| dirs.home.has(MANIFESTS))?;
        let dir = dirs.home.private_dir(MANIFESTS).ok()?;
        let name = manifest_name(engine, hash);
        let (mut file, length) = verified(&dir, &dirs.key, &name)?;
        let mut said = vec![0; usize::try_from(length).ok()?];
        std::io::Seek::rewind(&mut file).ok()?;
        file.read_exact(&mut said).ok()?;
        String::from_utf8(said).ok()
    }

    /// Stores a component's description of itself. Without it the next start asks again.
    pub(super) fn keep_manifest(&self, engine: &Engine, hash: &str, said: &str) {
        let Some(dirs) = self.dirs.as_ref().filter(|_| !self.is_frozen) else {
            return;
        };
        let kept = dirs.home.private_dir(MANIFESTS).map_err(std::io::Error::other);
        let name = manifest_name(engine, hash);
        let kept = kept.and_then(|dir| write(&dir, &dirs.key, &name, &mut said.as_bytes(), u64::MAX));
        if let Err(err) = kept {
            tracing::debug!(%err, "cannot cache a component's description of itself");
        }
    }

    /// Lock on the compilation of a component, unless another process holds it. If no file can be created there are
    /// no locks.
    pub(super) fn try_turn(&self, hash: &str) -> Option<Turn> {
        let Some(dirs) = self.dirs.as_ref().filter(|_| !self.is_frozen) else {
            return Some(Turn { held: None });
        };
        let name = format!("{hash}.turn");
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600).custom_flags(NO_WAIT);
        let Ok(file) = dirs.code.open_with(&name, &options) else {
            return Some(Turn { held: None });
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        // The holder may have removed the file, and another process may have created a new one.
        let is_same = |there: cap_std::fs::Metadata| {
            let own = file.metadata();
            own.is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
        };
        dirs.code
            .symlink_metadata(&name)
            .is_ok_and(is_same)
            .then(|| Turn {
                held: Some(file.into_std()),
            })
    }

    /// Releases the lock and removes its file.
    pub(super) fn end_turn(&self, hash: &str, turn: Turn) {
        if let (Some(dirs), Some(_)) = (&self.dirs, &turn.held) {
            let _ = dirs.code.remove_file(format!("{hash}.turn"));
        }
    }

    fn entry(&self, engine: &Engine, name: &str) -> Option<Component> {
        let (file, _) = self.verified(name)?;
        load(engine, file)
            .inspect_err(|err| tracing::warn!(entry = name, %err, "cannot load a cache entry"))
            .ok()
    }

    fn verified(&self, name: &str) -> Option<(std::fs::File, u64)> {
        let dirs = self.dirs.as_ref()?;
        verified(&dirs.code, &dirs.key, name)
    }

    /// Code from this binary, which is stored as an entry.
    fn unpacked(&self, engine: &Engine, hash: &str, ahead: &Ahead) -> Option<Component> {
        if baseline_settings() != Some(ahead.settings) {
            tracing::warn!("ignoring precompiled code that was built with different settings");
            return None;
        }
        let unpacked = self.unpack(engine, hash, ahead);
        builtin::let_go(hash);
        unpacked
            .inspect_err(|err| {
                tracing::warn!(
                    component = hash,
                    "cannot use precompiled code, so compiling here: {err:#}"
                );
            })
            .ok()
    }

    fn unpack(&self, engine: &Engine, hash: &str, ahead: &Ahead) -> anyhow::Result<Component> {
        let failed = |err: wasmtime::Error| anyhow::anyhow!("{err:#}");
        if let Some(dirs) = self.dirs.as_ref().filter(|_| !self.is_frozen) {
            let name = entry_name(hash, ahead.settings);
            match write(&dirs.code, &dirs.key, &name, &mut ahead.code()?, ahead.length) {
                Ok(file) => {
                    return load(engine, file).map_err(|err| {
                        // The entry is invalid and would fail again.
                        let _ = dirs.code.remove_file(&name);
                        failed(err)
                    });
                }
                Err(err) if err.kind() == std::io::ErrorKind::InvalidData => return Err(err.into()),
                Err(err) => tracing::warn!(entry = name, %err, "cannot cache a compiled component"),
            }
        }
        let mut code = Vec::new();
        ahead.code()?.take(ahead.length + 1).read_to_end(&mut code)?;
        anyhow::ensure!(code.len() as u64 == ahead.length, "it is incomplete");
        load_copied(engine, &code).map_err(failed)
    }
}

/// Removes unfinished entries of killed processes.
fn sweep(dir: &Dir) {
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_draft = name.to_str().is_some_and(|name| name.contains(".cwasm."));
        let is_old = || {
            let modified = entry.metadata().ok()?.modified().ok()?.into_std();
            Some(modified.elapsed().ok()? > UNFINISHED_AGE_LIMIT)
        };
        if is_draft && is_old() == Some(true) {
            let _ = dir.remove_file(&name);
        }
    }
}

/// File of an entry and the length of its content, if a host of this user wrote it.
fn verified(dir: &Dir, key: &[u8; 32], name: &str) -> Option<(std::fs::File, u64)> {
    let file = match open_private(dir, name) {
        Ok(Some(file)) => file,
        Ok(None) => {
            tracing::warn!(
                entry = name,
                "ignoring a cache entry that other users could have changed"
            );
            return None;
        }
        Err(_) => return None,
    };
    let mut file = file.into_std();
    let content = file.metadata().ok()?.size().checked_sub(TAG_BYTES as u64);
    let is_right = content
        .filter(|content| *content <= MAX_ENTRY)
        .and_then(|content| {
            let mut mac = begin(key, name);
            let mut content = (&mut file).take(content);
            let read = copied(&mut content, &mut mac, &mut std::io::sink()).ok()?;
            let mut tag = [0; TAG_BYTES];
            file.read_exact(&mut tag).ok()?;
            mac.verify_slice(&tag).ok()?;
            Some(read)
        });
    if is_right.is_none() {
        tracing::warn!(entry = name, "ignoring a damaged cache entry");
    }
    Some((file, is_right?))
}

/// Writes an entry atomically and returns its file. Content of another length than announced is invalid.
fn write(
    dir: &Dir,
    key: &[u8; 32],
    name: &str,
    content: &mut impl Read,
    length: u64,
) -> std::io::Result<std::fs::File> {
    let temporary = format!("{name}.{}", std::process::id());
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600);
    let mut file = dir.open_with(&temporary, &options)?.into_std();
    let written = (|| {
        let mut mac = begin(key, name);
        // One more byte shows that the content is too long.
        let mut content = content.take(length.saturating_add(1));
        let written = copied(&mut content, &mut mac, &mut file)?;
        if length != u64::MAX && written != length {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        file.write_all(&mac.finalize().into_bytes())?;
        dir.rename(&temporary, dir, name)
    })();
    match written {
        Ok(()) => Ok(file),
        Err(err) => {
            let _ = dir.remove_file(&temporary);
            Err(err)
        }
    }
}

/// Copies in pieces, so that large code is never in memory as a whole. Unreadable content is invalid.
fn copied(from: &mut impl Read, mac: &mut Hmac<Sha256>, to: &mut impl Write) -> std::io::Result<u64> {
    let mut piece = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    loop {
        let read = from
            .read(&mut piece)
            .map_err(|err| std::io::Error::new(std::io::ErrorKind::InvalidData, err))?;
        let Some(piece) = piece.get(..read).filter(|piece| !piece.is_empty()) else {
            return Ok(bytes);
        };
        mac.update(piece);
        to.write_all(piece)?;
        bytes += read as u64;
    }
}

fn begin(key: &[u8; 32], name: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(name.as_bytes());
    mac
}

/// Maps code from the verified file, even if its name now belongs to another file.
#[allow(unsafe_code, reason = "compiled code has no other way in")]
fn load(engine: &Engine, mut file: std::fs::File) -> wasmtime::Result<Component> {
    let opened = format!("/dev/fd/{}", file.as_raw_fd());
    if std::path::Path::new(&opened).exists() {
        // SAFETY: the code comes from this host's own compiler, under a MAC whose key only this user can read, in a
        // file that only this user can write and that this program only replaces as a whole; wasmtime checks that it
        // was made for this engine.
        return unsafe { Component::deserialize_file(engine, opened) };
    }
    let mut code = Vec::new();
    std::io::Seek::rewind(&mut file)?;
    file.read_to_end(&mut code)?;
    load_copied(engine, &code)
}

/// Loads code from memory.
#[allow(unsafe_code, reason = "compiled code has no other way in")]
pub(super) fn load_copied(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the code comes from this host's own compiler, just now, when this program was built, or under a MAC whose
    // key only this user can read; wasmtime checks that it was made for this engine.
    unsafe { Component::deserialize(engine, code) }
}

fn entry_name(hash: &str, settings: &str) -> String {
    let settings = settings.get(..16).unwrap_or(settings);
    format!("{hash}-{settings}.cwasm")
}

fn manifest_name(engine: &Engine, hash: &str) -> String {
    let settings = tollgate_engine::settings(engine);
    format!("{hash}-{}-{}.json", &settings[..16], env!("CARGO_PKG_VERSION"))
}

/// Settings of code that is compiled ahead by this program.
fn baseline_settings() -> Option<&'static str> {
    static SETTINGS: OnceLock<Option<String>> = OnceLock::new();
    SETTINGS
        .get_or_init(|| {
            let engine = tollgate_engine::baseline().and_then(|config| Engine::new(&config));
            engine.ok().map(|engine| tollgate_engine::settings(&engine))
        })
        .as_deref()
}

#[cfg(test)]
mod tests;
