//! The components that are part of this binary.

use std::io::Read;
use std::time::Duration;

use tollgate_sandbox::Limits;

use crate::world::World;

/// A multiple of the page size of every system there is.
const PAGE: usize = 64 << 10;

/// A component of this binary.
pub struct Embedded {
    name: &'static str,
    bytes: &'static [u8],
    sha256: &'static str,
    code: Option<Ahead>,
    /// A line with the hash, then what it says of itself.
    manifest: Option<&'static str>,
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
    /// Reads the code. It ends with an error if it is damaged.
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

/// The bytes of a built-in pack.
pub fn component(name: &str) -> Option<&'static [u8]> {
    bytes(COMPONENTS, name)
}

/// The names of the built-in policies.
pub fn policies() -> impl Iterator<Item = &'static str> {
    POLICIES.iter().map(|component| component.name)
}

/// The bytes of a built-in policy.
pub fn policy(name: &str) -> Option<&'static [u8]> {
    bytes(POLICIES, name)
}

fn bytes(of: &'static [Embedded], name: &str) -> Option<&'static [u8]> {
    let mut all = of.iter();
    all.find(|known| known.name == name).map(|known| known.bytes)
}

/// The SHA-256 of a component's bytes, in hex. Those of this binary were hashed when it was built.
pub fn sha256(bytes: &[u8]) -> String {
    let known = all().find(|known| std::ptr::eq(known.bytes, bytes));
    known.map_or_else(
        || tollgate_core::hash::sha256_hex(bytes),
        |known| known.sha256.to_owned(),
    )
}

/// The name of the component with a SHA-256, if it is part of this binary.
pub fn name(sha256: &str) -> Option<&'static str> {
    all().find(|known| known.sha256 == sha256).map(|known| known.name)
}

/// The component with a SHA-256, if it is part of this binary.
pub fn world(sha256: &str) -> Option<World> {
    let has = |of: &[Embedded]| of.iter().any(|known| known.sha256 == sha256);
    let pack = has(COMPONENTS).then_some(World::ToolPack);
    pack.or_else(|| has(POLICIES).then_some(World::Policy))
}

/// The code of the component with a SHA-256, if it was compiled ahead.
pub fn ahead(sha256: &str) -> Option<&'static Ahead> {
    all().find(|known| known.sha256 == sha256)?.code.as_ref()
}

/// Lets go of the memory that reading a component's code took. It is read once, and would stay as long as the process.
#[allow(unsafe_code, reason = "the system is told by an address")]
pub fn let_go(sha256: &str) {
    let Some(ahead) = ahead(sha256) else { return };
    let all = ahead.file.as_ptr_range();
    let start = all.start.addr().next_multiple_of(PAGE);
    let end = all.end.addr() / PAGE * PAGE;
    if start < end {
        let first = all.start.with_addr(start).cast_mut().cast();
        // SAFETY: these are whole pages of constants, which the program's file holds and nobody can write to. Whoever
        // reads them again gets them from the file.
        unsafe { nix::libc::madvise(first, end - start, nix::libc::MADV_DONTNEED) };
    }
}

/// The manifest of the pack with a SHA-256, as JSON.
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

/// Default limits of a pack's calls: more than usual where a built-in
/// pack's work is long.
pub fn limits(name: &str) -> Limits {
    let run = match name {
        // Somebody's whole test suite.
        "conductor" | "convergence" => Duration::from_secs(600),
        _ => Limits::default().run,
    };
    let write = match name {
        // What is known of a large repository is stored in one transaction.
        "conductor" => Duration::from_secs(10),
        _ => Limits::default().write,
    };
    Limits {
        run,
        write,
        ..Limits::default()
    }
}
