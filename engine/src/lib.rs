//! The settings of the engine that components run in. Compiled code only loads into an engine like the one it was
//! made for, so the host, its compiling child and the tool that compiles ahead share them.

use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher};

use sha2::{Digest, Sha256};
use wasmtime::{Config, Engine};

/// The system that this crate was built for.
const TARGET: &str = env!("TOLLGATE_TARGET");
/// Counts the changes of how compiled code is kept: what was kept differently is not found.
const LAYOUT: &[u8] = b"code, then its tag";
/// Instructions beyond the oldest x86-64 that every such processor since 2009 has (x86-64-v2). The vector
/// instructions of components take several times as many instructions without them.
const X86_64: [&str; 5] = ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"];

/// The configuration of every engine, for code that is compiled for the processor at hand.
pub fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .concurrency_support(false)
        .epoch_interruption(true)
        .max_wasm_stack(512 << 10)
        .memory_init_cow(true);
    config
}

/// The same for code that runs on every processor of this system that is not ancient.
pub fn baseline() -> wasmtime::Result<Config> {
    let mut config = config();
    config.target(TARGET)?;
    if cfg!(target_arch = "x86_64") {
        X86_64.into_iter().for_each(|flag| enable(&mut config, flag));
    }
    Ok(config)
}

#[allow(unsafe_code, reason = "the compiler's own flags have no other way in")]
fn enable(config: &mut Config, flag: &str) {
    // SAFETY: the flags say which instructions there are and change no meaning. When code is loaded, wasmtime looks
    // whether the processor has them all, and refuses it otherwise.
    unsafe {
        config.cranelift_flag_enable(flag);
    }
}

/// Hash of all that compiled code depends on beside the component, in hex.
pub fn settings(engine: &Engine) -> String {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.0.update(LAYOUT);
    hex(&hasher.0.finalize())
}

/// Bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// SHA-256 behind the trait that the engine's compatibility hash is given by.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
