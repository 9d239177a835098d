//! Embeds the built-in components, which `cargo xtask build` puts into `target/components`.
#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The built-in policies, which judge nothing until they are configured.
const POLICIES: &[&str] = &[
    "cel",
    "loop-breaker",
    "path-guard",
    "quiet-hours",
    "rate-limit",
    "read-only-roles",
    "require-actor",
    "secret-scan",
    "side-effect-approval",
];

/// The built-in packs, in the order in which they are loaded and listed.
const BUILTIN: &[&str] = &["task-store", "tasks", "gsd", "conductor", "convergence"];

#[allow(clippy::disallowed_methods, reason = "a build script works with files")]
fn main() {
    println!("cargo::rerun-if-env-changed=TOLLGATE_COMPONENTS");
    println!("cargo::rerun-if-changed=../wit");
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let components = std::env::var_os("TOLLGATE_COMPONENTS")
        .map_or_else(|| manifest_dir.join("../target/components"), PathBuf::from);
    let policies = components.join("policies");
    let (Some(packs), Some(policies)) = (
        embedded("COMPONENTS", BUILTIN, &components),
        embedded("POLICIES", POLICIES, &policies),
    ) else {
        return;
    };
    let out = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("builtin.rs");
    std::fs::write(out, packs + &policies).expect("the output directory can be written");
}

/// A constant with the bytes of components. Nothing if one is missing, which cargo is told.
#[allow(clippy::disallowed_methods, reason = "a build script works with files")]
fn embedded(constant: &str, names: &[&str], folder: &Path) -> Option<String> {
    let mut list = format!("const {constant}: &[(&str, &[u8])] = &[\n");
    for name in names {
        let file = folder.join(format!("{name}.wasm"));
        println!("cargo::rerun-if-changed={}", file.display());
        if !file.exists() {
            println!(
                "cargo::error=the built-in component {} is missing; run `cargo xtask build`",
                file.display()
            );
            return None;
        }
        let file = file.canonicalize().expect("it exists");
        let _ = writeln!(
            list,
            "    ({name:?}, include_bytes!({:?})),",
            file.display().to_string()
        );
    }
    list.push_str("];\n");
    Some(list)
}
