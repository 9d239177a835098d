//! Tests of the cache.

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
    let cache = Cache::open(DataDir::open(place.path()).unwrap()).unwrap();
    let engine = Engine::new(&tollgate_sandbox::engine_config()).unwrap();
    let component = b"\0asm\x0d\0\x01\0";
    let hash = tollgate_core::hash::sha256_hex(component);
    assert!(cache.get(&engine, &hash).is_none());

    let code = engine.precompile_component(component).unwrap();
    let settings = tollgate_engine::settings(&engine);
    cache.put(&hash, &settings, &code).unwrap();
    assert!(cache.has(&hash, &settings));
    assert!(cache.get(&engine, &hash).is_some());

    let path = entry(place.path());
    let good = std::fs::read(&path).unwrap();
    for at in [0, good.len() / 2, good.len() - TAG_BYTES - 1, good.len() - 1] {
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
    let cache = Cache::open(DataDir::open(place.path()).unwrap()).unwrap();
    let engine = Engine::new(&tollgate_sandbox::engine_config()).unwrap();
    let component = b"\0asm\x0d\0\x01\0";
    let [hash, other] =
        [&component[..], b"\0asm\x0d\0\x01\0\0\x03\x02hi"].map(tollgate_core::hash::sha256_hex);
    let settings = tollgate_engine::settings(&engine);
    cache
        .put(&hash, &settings, &engine.precompile_component(component).unwrap())
        .unwrap();
    let renamed = place.path().join("cache").join(entry_name(&other, &settings));
    std::fs::rename(entry(place.path()), renamed).unwrap();
    assert!(cache.get(&engine, &other).is_none());
}

#[test]
fn what_was_compiled_ahead_is_used_whole_for_these_settings_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::open(DataDir::open(place.path()).unwrap()).unwrap();
    let engine = Engine::new(&tollgate_sandbox::engine_config()).unwrap();
    let baseline = Engine::new(&tollgate_engine::baseline().unwrap()).unwrap();
    let code = baseline.precompile_component(b"\0asm\x0d\0\x01\0").unwrap();
    let mut packed = Vec::new();
    let mut compressor = zstd::stream::Encoder::new(&mut packed, 3).unwrap();
    compressor.include_checksum(true).unwrap();
    compressor.write_all(&code).unwrap();
    compressor.finish().unwrap();
    let settings = baseline_settings().unwrap();
    let ahead = |length: usize, packed: &[u8]| Ahead::of(settings, length as u64, packed.to_vec().leak());
    let unpacked = |hash: &str, ahead: &Ahead| cache.unpacked(&engine, hash, ahead).is_some();
    for at in [packed.len() / 3, packed.len() / 2, packed.len() - 1] {
        let mut damaged = packed.clone();
        damaged[at] ^= 1;
        assert!(!unpacked("damaged", &ahead(code.len(), &damaged)), "byte {at}");
    }
    assert!(!unpacked("cut", &ahead(code.len(), &packed[..packed.len() / 2])));
    for length in [code.len() - 1, code.len() + 1] {
        assert!(!unpacked("length", &ahead(length, &packed)));
    }
    let other = Ahead::of("another", code.len() as u64, packed.clone().leak());
    assert!(!unpacked("settings", &other));
    let entries = || std::fs::read_dir(place.path().join("cache")).unwrap().count();
    assert_eq!(entries(), 0, "nothing of it is kept");
    assert!(unpacked("whole", &ahead(code.len(), &packed)));
    assert!(cache.has("whole", settings));
}

#[test]
fn what_a_killed_process_began_to_write_goes_after_a_while() {
    let place = tempfile::tempdir().unwrap();
    let open = || Cache::open(DataDir::open(place.path()).unwrap()).unwrap();
    open();
    let names = ["a-b.cwasm", "a-b.cwasm.1", "a-b.cwasm.2", "a.turn"];
    for name in names {
        let file = std::fs::File::create_new(place.path().join("cache").join(name)).unwrap();
        if name != "a-b.cwasm.2" {
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }
    }
    open();
    let is_there = names.map(|name| place.path().join("cache").join(name).exists());
    assert_eq!(is_there, [true, false, true, true]);
}

#[test]
fn a_component_is_compiled_by_one_at_a_time_and_by_another_once_that_one_is_dead() {
    let place = tempfile::tempdir().unwrap();
    let caches = [(); 2].map(|()| Cache::open(DataDir::open(place.path()).unwrap()).unwrap());
    let turn = caches[0].try_turn("one").unwrap();
    assert!(caches[1].try_turn("one").is_none());
    assert!(caches[1].try_turn("other").is_some());
    // As when its process dies: the file stays.
    drop(turn);
    let turn = caches[1].try_turn("one").unwrap();
    assert!(caches[0].try_turn("one").is_none());
    caches[1].end_turn("one", turn);
    assert!(caches[0].try_turn("one").is_some());
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test damages files")]
fn what_a_component_said_is_remembered_unless_it_was_touched() {
    let place = tempfile::tempdir().unwrap();
    let cache = Cache::open(DataDir::open(place.path()).unwrap()).unwrap();
    let engine = Engine::new(&tollgate_sandbox::engine_config()).unwrap();
    assert_eq!(cache.manifest(&engine, "one"), None);
    cache.keep_manifest(&engine, "one", "said");
    assert_eq!(cache.manifest(&engine, "one").as_deref(), Some("said"));
    assert_eq!(cache.manifest(&engine, "other"), None);
    let entry = std::fs::read_dir(place.path().join(MANIFESTS)).unwrap().next();
    let entry = entry.unwrap().unwrap().path();
    let mut bytes = std::fs::read(&entry).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&entry, bytes).unwrap();
    assert_eq!(cache.manifest(&engine, "one"), None);
}
