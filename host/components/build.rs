//! Embeds the built-in components, which `cargo xtask build` puts into `target/components`, with what it made of
//! them ahead: their compiled code, and what the packs say of themselves. Both can be missing; a host then
//! compiles and asks as it does with components of others.
#![allow(clippy::print_stdout, reason = "this is how a build script speaks to cargo")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// A built-in component.
struct Component {
    name: &'static str,
    /// True if the component describes itself when it is built, as packs do.
    is_described: bool,
    /// Time limit of a `write` call in seconds, if it is not the default.
    write_sec: Option<u64>,
    /// Time limit of a `run` call in seconds, if it is not the default.
    run_sec: Option<u64>,
}

impl Component {
    const fn pack(name: &'static str) -> Component {
        Component {
            name,
            is_described: true,
            write_sec: None,
            run_sec: None,
        }
    }

    const fn policy(name: &'static str) -> Component {
        Component {
            is_described: false,
            ..Component::pack(name)
        }
    }
}

/// The built-in policies, which judge nothing until they are configured.
const POLICIES: &[Component] = &[
    Component::policy("cel"),
    Component::policy("loop-breaker"),
    Component::policy("path-guard"),
    Component::policy("quiet-hours"),
    Component::policy("rate-limit"),
    Component::policy("read-only-roles"),
    Component::policy("require-actor"),
    Component::policy("secret-scan"),
    Component::policy("side-effect-approval"),
];

/// Time limit of a call that may run the user's whole test suite, in seconds.
const TEST_SUITE_SEC: u64 = 600;

/// The built-in packs, in the order in which they are loaded and listed.
const BUILTIN: &[Component] = &[
    Component::pack("task-store"),
    Component::pack("tasks"),
    Component::pack("gsd"),
    Component {
        // The index of a large repository is stored in one transaction.
        write_sec: Some(10),
        run_sec: Some(TEST_SUITE_SEC),
        ..Component::pack("conductor")
    },
    Component {
        run_sec: Some(TEST_SUITE_SEC),
        ..Component::pack("convergence")
    },
];

#[allow(clippy::disallowed_methods, reason = "a build script works with files")]
fn main() {
    println!("cargo::rerun-if-env-changed=TOLLGATE_COMPONENTS");
    println!("cargo::rerun-if-changed=../../wit");
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let components = std::env::var_os("TOLLGATE_COMPONENTS")
        .map_or_else(|| manifest_dir.join("../../target/components"), PathBuf::from);
    let ahead = components.join("ahead");
    let (Some(packs), Some(policies)) = (
        embedded("COMPONENTS", BUILTIN, &components, &ahead),
        embedded(
            "POLICIES",
            POLICIES,
            &components.join("policies"),
            &ahead.join("policies"),
        ),
    ) else {
        return;
    };
    let out = Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("builtin.rs");
    std::fs::write(out, packs + &policies).expect("the output directory can be written");
}

/// A constant with components. Nothing if one is missing, which cargo is told.
fn embedded(constant: &str, components: &[Component], folder: &Path, ahead: &Path) -> Option<String> {
    let mut list = format!("const {constant}: &[Embedded] = &[\n");
    for component in components {
        let Component {
            name,
            is_described,
            write_sec,
            run_sec,
        } = component;
        let file = folder.join(format!("{name}.wasm"));
        println!("cargo::rerun-if-changed={}", file.display());
        let Some(bytes) = read(&file) else {
            println!(
                "cargo::error=the built-in component {} is missing; run `cargo xtask build`",
                file.display()
            );
            return None;
        };
        let hash = Sha256::digest(&bytes)
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let code = code(&ahead.join(format!("{name}.cwasm")), &hash);
        if code.is_none() {
            println!(
                "cargo::warning=the built-in component {name} is not compiled ahead, so hosts compile it at their first start; run `cargo xtask build`"
            );
        }
        let code = code.unwrap_or_else(|| "None".to_owned());
        // Policies have none, and a script that waits for a missing file runs again each time.
        let manifest = is_described
            .then(|| manifest(&ahead.join(format!("{name}.json")), &hash))
            .flatten()
            .unwrap_or_else(|| "None".to_owned());
        let _ = writeln!(
            list,
            "    Embedded {{ name: {name:?}, bytes: include_bytes!({:?}), sha256: {hash:?}, code: {code}, manifest: {manifest}, write_sec: {write_sec:?}, run_sec: {run_sec:?} }},",
            whole(&file)
        );
    }
    list.push_str("];\n");
    Some(list)
}

/// The code that was compiled ahead of a component with a hash, as an expression.
fn code(file: &Path, hash: &str) -> Option<String> {
    println!("cargo::rerun-if-changed={}", file.display());
    let bytes = read(file)?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?;
    let [of, settings, length]: [&str; 3] = line.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let length: u64 = length.parse().ok()?;
    (of == hash).then(|| {
        format!(
            "Some(Ahead {{ settings: {settings:?}, length: {length}, start: {}, file: include_bytes!({:?}) }})",
            end + 1,
            whole(file)
        )
    })
}

/// The manifest of the pack with a hash, as an expression.
fn manifest(file: &Path, hash: &str) -> Option<String> {
    println!("cargo::rerun-if-changed={}", file.display());
    let bytes = read(file)?;
    bytes
        .starts_with(hash.as_bytes())
        .then(|| format!("Some(include_str!({:?}))", whole(file)))
}

#[allow(clippy::disallowed_methods, reason = "a build script works with files")]
fn read(file: &Path) -> Option<Vec<u8>> {
    std::fs::read(file).ok()
}

fn whole(file: &Path) -> String {
    let file = file.canonicalize().expect("it exists");
    file.display().to_string()
}
