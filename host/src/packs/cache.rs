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

const TAG: usize = 32;
/// Largest entry that is read back.
const MAX_ENTRY: u64 = 512 << 20;

/// The cache of one data directory.
pub(super) struct Cache {
    dir: Dir,
    key: [u8; 32],
}

impl Cache {
    /// Opens the cache, making it when missing.
    pub(super) fn open(data: &DataDir) -> Result<Cache, DataDirError> {
        Ok(Cache {
            dir: data.private_dir("cache")?,
            key: data.secret("cache.key")?,
        })
    }

    /// The compiled form of a component, if a valid entry is there.
    pub(super) fn get(&self, engine: &Engine, component: &[u8]) -> Option<Component> {
        let name = entry_name(engine, component);
        let file = match open_private(&self.dir, &name) {
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
        let mut entry = Vec::new();
        file.take(MAX_ENTRY).read_to_end(&mut entry).ok()?;
        let (tag, code) = entry.split_at_checked(TAG)?;
        if self.mac(&name, code).verify_slice(tag).is_err() {
            tracing::warn!(entry = name, "a damaged cache entry is ignored");
            return None;
        }
        load(engine, code)
            .inspect_err(|err| tracing::warn!(entry = name, %err, "a cache entry does not load"))
            .ok()
    }

    /// Keeps code that the compiler just made, and loads it. A full disk only costs the next start.
    pub(super) fn put(&self, engine: &Engine, component: &[u8], code: &[u8]) -> wasmtime::Result<Component> {
        let name = entry_name(engine, component);
        if let Err(err) = self.write(&name, code) {
            tracing::warn!(entry = name, %err, "a compiled component could not be cached");
        }
        load(engine, code)
    }

    fn write(&self, name: &str, code: &[u8]) -> std::io::Result<()> {
        let temporary = format!("{name}.{}", std::process::id());
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = self.dir.open_with(&temporary, &options)?;
        let tag = self.mac(name, code).finalize().into_bytes();
        file.write_all(&tag)?;
        file.write_all(code)?;
        self.dir.rename(&temporary, &self.dir, name)
    }

    fn mac(&self, name: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("HMAC takes a key of any length");
        mac.update(name.as_bytes());
        mac.update(code);
        mac
    }
}

#[allow(unsafe_code, reason = "compiled code has no other way in")]
fn load(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the code comes from this host's own compiler, either just now or under a MAC whose
    // key only this user can read; wasmtime checks that it was made for this engine.
    unsafe { Component::deserialize(engine, code) }
}

fn entry_name(engine: &Engine, component: &[u8]) -> String {
    let mut hasher = EngineHasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let engine = crate::hash::hex(&hasher.0.finalize());
    format!("{}-{}.cwasm", crate::hash::sha256_hex(component), &engine[..16])
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
        assert!(cache.get(&engine, component).is_none());

        let code = engine.precompile_component(component).unwrap();
        cache.put(&engine, component, &code).unwrap();
        assert!(cache.get(&engine, component).is_some());

        let path = entry(place.path());
        let good = std::fs::read(&path).unwrap();
        for at in [0, TAG, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, bad).unwrap();
            assert!(cache.get(&engine, component).is_none(), "byte {at}");
        }
        std::fs::write(&path, &good[..good.len() / 2]).unwrap();
        assert!(cache.get(&engine, component).is_none(), "cut");

        std::fs::write(&path, &good).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(cache.get(&engine, component).is_none(), "readable by others");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test moves files")]
    fn an_entry_does_not_pass_for_another_component() {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::open(&DataDir::open(place.path()).unwrap()).unwrap();
        let engine = Engine::new(&crate::sandbox::engine_config()).unwrap();
        let component = b"\0asm\x0d\0\x01\0";
        let other = b"\0asm\x0d\0\x01\0\0\x03\x02hi";
        cache
            .put(
                &engine,
                component,
                &engine.precompile_component(component).unwrap(),
            )
            .unwrap();
        let renamed = place.path().join("cache").join(entry_name(&engine, other));
        std::fs::rename(entry(place.path()), renamed).unwrap();
        assert!(cache.get(&engine, other).is_none());
    }
}
