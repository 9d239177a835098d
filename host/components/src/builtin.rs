//! Components that are built into this binary.

use std::io::Read;
use std::time::Duration;

use tollgate_sandbox::Limits;

use crate::world::World;

/// Multiple of every supported system's page size.
const PAGE_BYTES: usize = 64 << 10;

/// A component in this binary.
pub struct Embedded {
    name: &'static str,
    bytes: &'static [u8],
    sha256: &'static str,
    code: Option<Ahead>,
    /// A line with the hash, then the component's description of itself.
    manifest: Option<&'static str>,
    /// Time limit of a `write` call in seconds, if it is not the default.
    write_sec: Option<u64>,
    /// Time limit of a `run` call in seconds, if it is not the default.
    run_sec: Option<u64>,
}

/// Code that was compiled when this binary was built.
pub struct Ahead {
    /// Compilation target and settings of the code, as [`tollgate_engine::settings`] names them.
    pub settings: &'static str,
    /// Its size in bytes.
    pub length: u64,
    /// Its offset in the file.
    start: usize,
    file: &'static [u8],
}

impl Ahead {
    /// Reads the code. Fails at the end if the code is damaged.
    pub fn code(&self) -> std::io::Result<impl Read + use<>> {
        let packed = self.file.get(self.start..).unwrap_or_default();
        zstd::stream::Decoder::with_buffer(packed)
    }

    #[cfg(test)]
    pub fn of(settings: &'static str, length: u64, file: &'static [u8]) -> Ahead {
        Ahead {
            settings,
            length,
            start: 0,
            file,
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The names of the built-in packs.
pub fn names() -> impl Iterator<Item = &'static str> {
    COMPONENTS.iter().map(|component| component.name)
}

/// Bytes of a built-in pack.
pub fn component(name: &str) -> Option<&'static [u8]> {
    bytes(COMPONENTS, name)
}

/// The names of the built-in policies.
pub fn policies() -> impl Iterator<Item = &'static str> {
    POLICIES.iter().map(|component| component.name)
}

/// Bytes of a built-in policy.
pub fn policy(name: &str) -> Option<&'static [u8]> {
    bytes(POLICIES, name)
}

fn bytes(of: &'static [Embedded], name: &str) -> Option<&'static [u8]> {
    let mut all = of.iter();
    all.find(|known| known.name == name).map(|known| known.bytes)
}

/// SHA-256 of a component's bytes, in hex. Components of this binary were hashed at build time.
pub fn sha256(bytes: &[u8]) -> String {
    let known = all().find(|known| std::ptr::eq(known.bytes, bytes));
    known.map_or_else(
        || tollgate_core::hash::sha256_hex(bytes),
        |known| known.sha256.to_owned(),
    )
}

/// Name of the component with a SHA-256, if it is built in.
pub fn name(sha256: &str) -> Option<&'static str> {
    all().find(|known| known.sha256 == sha256).map(|known| known.name)
}

/// World of the component with a SHA-256, if it is built in.
pub fn world(sha256: &str) -> Option<World> {
    let has = |of: &[Embedded]| of.iter().any(|known| known.sha256 == sha256);
    let pack = has(COMPONENTS).then_some(World::ToolPack);
    pack.or_else(|| has(POLICIES).then_some(World::Policy))
}

/// Code of the component with a SHA-256, if it was compiled ahead.
pub fn ahead(sha256: &str) -> Option<&'static Ahead> {
    all().find(|known| known.sha256 == sha256)?.code.as_ref()
}

/// Releases the memory that was used to read a component's code. The code is read once, and would otherwise stay in
/// memory as long as the process.
#[allow(unsafe_code, reason = "the system is told by an address")]
pub fn let_go(sha256: &str) {
    let Some(ahead) = ahead(sha256) else { return };
    let all = ahead.file.as_ptr_range();
    let start = all.start.addr().next_multiple_of(PAGE_BYTES);
    let end = all.end.addr() / PAGE_BYTES * PAGE_BYTES;
    if start < end {
        let first = all.start.with_addr(start).cast_mut().cast();
        // SAFETY: these are whole pages of constants that the program's file backs and nothing can write to. A later
        // read loads them from the file again.
        unsafe { nix::libc::madvise(first, end - start, nix::libc::MADV_DONTNEED) };
    }
}

/// Manifest of the pack with a SHA-256, as JSON.
pub fn manifest(sha256: &str) -> Option<&'static str> {
    let (_, manifest) = all()
        .find(|known| known.sha256 == sha256)?
        .manifest?
        .split_once('\n')?;
    Some(manifest)
}

fn all() -> impl Iterator<Item = &'static Embedded> {
    COMPONENTS.iter().chain(POLICIES)
}

/// Default limits of a pack's calls. The build script declares higher ones for built-in packs whose work takes long.
pub fn limits(name: &str) -> Limits {
    let default = Limits::default();
    let Some(own) = COMPONENTS.iter().find(|known| known.name == name) else {
        return default;
    };
    Limits {
        write: own.write_sec.map_or(default.write, Duration::from_secs),
        run: own.run_sec.map_or(default.run, Duration::from_secs),
        ..default
    }
}
