//! Components in C: bindings by `wit-bindgen`, Debian's clang and wasi-libc, and the linker of Rust's toolchain.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::Component;
use crate::run::{root, run, say};
use crate::tools::Tool;

pub(super) const COMPONENTS: [Component; 2] = [
    Component {
        world: "tool-pack",
        source: "words.c",
        name: "words-c",
    },
    Component {
        world: "policy",
        source: "require-actor.c",
        name: "require-actor-c",
    },
];
/// Target of the compiler.
const TARGET: &str = "--target=wasm32-wasi";
/// Variable by which a CI without a compiler for C says that it may leave these components out.
const WITHOUT: &str = "TOLLGATE_WITHOUT_C";
/// Maker of the bindings.
const WIT_BINDGEN: Tool = Tool {
    package: "wit-bindgen-cli",
    version: "0.63.0",
    features: Some("c"),
    program: "wit-bindgen",
};

/// Variable `PATH` with all programs that `build.sh` runs. None if components in C are left out, which the environment must allow.
pub(super) fn builder() -> anyhow::Result<Option<OsString>> {
    let missing = missing();
    if !missing.is_empty() && std::env::var_os(WITHOUT).is_some() {
        say(&format!(
            "components in C are left out: {} is missing, and {WITHOUT} is set",
            missing.join(", ")
        ));
        return Ok(None);
    }
    ensure!(
        missing.is_empty(),
        "components in C cannot be made without {0}; install that (Debian: apt install {1}). A CI that cannot have it sets {WITHOUT}",
        missing.join(", "),
        missing.join(" ")
    );
    let tool = WIT_BINDGEN.installed()?;
    let mut path = tool
        .parent()
        .context("a program is in a folder")?
        .as_os_str()
        .to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    Ok(Some(path))
}

pub(super) fn make(path: &OsStr, component: &Component, out: &Path) -> anyhow::Result<()> {
    say(&format!("making {}", component.name));
    run(Command::new("sh")
        .arg("build.sh")
        .arg(root().join("wit"))
        .args([component.world, component.source])
        .arg(super::wasm(out, component))
        .current_dir(root().join("tests/languages/c"))
        .env("PATH", path))
}

/// Debian's packages that are missing.
fn missing() -> Vec<&'static str> {
    let runs = |program: &str| {
        let mut command = Command::new(program);
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // The compiler knows where its libraries are, whatever its version is.
    let has = |question: &str| {
        let said = Command::new("clang").args([TARGET, question]).output();
        said.is_ok_and(|said| {
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            Path::new(said.trim()).is_absolute() && Path::new(said.trim()).exists()
        })
    };
    let all = [
        (runs("clang"), "clang"),
        (runs("wasm-ld"), "lld"),
        (has("-print-file-name=libc.a"), "wasi-libc"),
        (has("-print-libgcc-file-name"), "libclang-rt-dev-wasm32"),
    ];
    let missing = all.into_iter().filter(|(is_there, _)| !is_there);
    missing.map(|(_, package)| package).collect()
}
