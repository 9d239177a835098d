//! Compiled components on disk, so that only the first start compiles.
//!
//! Loading an entry runs its code, so an entry must be one this user's host wrote: the directory
//! and file are the owner's alone, links are not followed, and a MAC under a local key covers the
//! component's hash, the engine's and the code. An entry that fails any of it is compiled anew.

use std::hash::{Hash as _, Hasher};
use std::io::{Read, Write};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::data_dir::{DataDir, DataDirError, open_private};

const DIR: &str = "cache";
const KEY: &str = "cache.key";
const TAG: usize = 32;
/// Largest entry that is read back.
const MAX_ENTRY: u64 = 512 << 20;

/// The cache of one data directory.
pub(super) struct Cache {
    /// The directory and the key, if they are there.
    place: Option<(Dir, [u8; 32])>,
    /// Nothing is kept.
    is_frozen: bool,
}

impl Cache {
    /// Opens the cache, making it when missing.
    pub(super) fn open(data: &DataDir) -> Result<Cache, DataDirError> {
        Ok(Cache {
            place: Some((data.private_dir(DIR)?, data.secret(KEY)?)),
            is_frozen: false,
        })
    }

    /// The cache as it is, if there is one: entries are read and none is kept.
    pub(super) fn frozen(data: &DataDir) -> Result<Cache, DataDirError> {
        let key = data
            .has(KEY)
            .then(|| data.find_secret(KEY))
            .transpose()?
            .flatten();
        let place = key.filter(|_| data.has(DIR));
        let place = place.map(|key| Ok((data.private_dir(DIR)?, key)));
        Ok(Cache {
            place: place.transpose()?,
            is_frozen: true,
        })
    }

    /// The compiled form of the component with a SHA-256, if a valid entry is there.
    pub(super) fn get(&self, engine: &Engine, hash: &str) -> Option<Component> {
        let (dir, key) = self.place.as_ref()?;
        let name = entry_name(engine, hash);
        let file = match open_private(dir, &name) {
            Ok(Some(file)) => file,
            Ok(None) => {
                tracing::warn!(
                    entry = name,
                    "a cache entry that others could have changed is ignored"
                );
                return None;
            }
            Err(_) => return None,
        };
        let length = file.metadata().ok()?.len().min(MAX_ENTRY);
        let mut entry = Vec::with_capacity(usize::try_from(length).ok()?.saturating_add(1));
        file.take(MAX_ENTRY).read_to_end(&mut entry).ok()?;
        let (tag, code) = entry.split_at_checked(TAG)?;
        if mac(key, &name, code).verify_slice(tag).is_err() {
            tracing::warn!(entry = name, "a damaged cache entry is ignored");
            return None;
        }
        load(engine, code)
            .inspect_err(|err| tracing::warn!(entry = name, %err, "a cache entry does not load"))
            .ok()
    }

    /// Keeps code that the compiler just made, and loads it. A full disk only costs the next start.
    pub(super) fn put(&self, engine: &Engine, hash: &str, code: &[u8]) -> wasmtime::Result<Component> {
        let name = entry_name(engine, hash);
        if let Some((dir, key)) = self.place.as_ref().filter(|_| !self.is_frozen)
            && let Err(err) = write(dir, key, &name, code)
        {
            tracing::warn!(entry = name, %err, "a compiled component could not be cached");
        }
        load(engine, code)
    }
}

fn write(dir: &Dir, key: &[u8; 32], name: &str, code: &[u8]) -> std::io::Result<()> {
    let temporary = format!("{name}.{}", std::process::id());
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = dir.open_with(&temporary, &options)?;
    let tag = mac(key, name, code).finalize().into_bytes();
    file.write_all(&tag)?;
    file.write_all(code)?;
    dir.rename(&temporary, dir, name)
}

fn mac(key: &[u8; 32], name: &str, code: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(name.as_bytes());
    mac.update(code);
    mac
}

#[allow(unsafe_code, reason = "compiled code has no other way in")]
fn load(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the code comes from this host's own compiler, either just now or under a MAC whose
    // key only this user can read; wasmtime checks that it was made for this engine.
    unsafe { Component::deserialize(engine, code) }
}

fn entry_name(engine: &Engine, hash: &str) -> String {
    let mut hasher = EngineHasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let engine = crate::hash::hex(&hasher.0.finalize());
    format!("{hash}-{}.cwasm", &engine[..16])
}

/// SHA-256 behind the trait that the engine's compatibility hash is given by.
struct EngineHasher(Sha256);

impl Hasher for EngineHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn entry(place: &std::path::Path) -> std::path::PathBuf {
        std::fs::read_dir(place.join("cache"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path()
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test damages files")]
    fn only_an_untouched_entry_of_the_same_component_is_used() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::open(&DataDir::open(place.path()).unwrap()).unwrap();
        let engine = Engine::new(&crate::sandbox::engine_config()).unwrap();
        let component = b"\0asm\x0d\0\x01\0";
        let hash = crate::hash::sha256_hex(component);
        assert!(cache.get(&engine, &hash).is_none());

        let code = engine.precompile_component(component).unwrap();
        cache.put(&engine, &hash, &code).unwrap();
        assert!(cache.get(&engine, &hash).is_some());

        let path = entry(place.path());
        let good = std::fs::read(&path).unwrap();
        for at in [0, TAG, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad).unwrap();
            assert!(cache.get(&engine, &hash).is_none(), "byte {at}");
        }
        std::fs::write(&path, &good[..good.len() / 2]).unwrap();
        assert!(cache.get(&engine, &hash).is_none(), "cut");

        std::fs::write(&path, &good).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(cache.get(&engine, &hash).is_none(), "readable by others");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test moves files")]
    fn an_entry_does_not_pass_for_another_component() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::open(&DataDir::open(place.path()).unwrap()).unwrap();
        let engine = Engine::new(&crate::sandbox::engine_config()).unwrap();
        let component = b"\0asm\x0d\0\x01\0";
        let [hash, other] = [&component[..], b"\0asm\x0d\0\x01\0\0\x03\x02hi"].map(crate::hash::sha256_hex);
        cache
            .put(&engine, &hash, &engine.precompile_component(component).unwrap())
            .unwrap();
        let renamed = place.path().join("cache").join(entry_name(&engine, &other));
        std::fs::rename(entry(place.path()), renamed).unwrap();
        assert!(cache.get(&engine, &other).is_none());
    }
}
