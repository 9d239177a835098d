//! Components in C, built with Debian's clang and wasi-libc and with the linker of Rust's toolchain, from the template
//! of `tollgate new`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::Component;
use crate::run::{root, run, say};
use crate::tools::Tool;

pub(super) const COMPONENTS: [Component; 2] = [
    Component {
        world: "tool-pack",
        // The template itself.
        source: "",
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
/// Variable with which a CI without a C compiler may skip these components.
const WITHOUT: &str = "TOLLGATE_WITHOUT_C";
/// Generator of the bindings.
const WIT_BINDGEN: Tool = Tool {
    package: "wit-bindgen-cli",
    version: "0.63.0",
    features: Some("c"),
    program: "wit-bindgen",
};

/// Returns whether everything for building C components is installed. If not, this is an error unless the environment
/// permits skipping.
pub(super) fn is_available() -> anyhow::Result<bool> {
    let missing = missing();
    if !missing.is_empty() && std::env::var_os(WITHOUT).is_some() {
        say(&format!(
            "components in C are left out: {} is missing, and {WITHOUT} is set",
            missing.join(", ")
        ));
        return Ok(false);
    }
    ensure!(
        missing.is_empty(),
        "components in C cannot be built without {0}; install that (Debian: apt install {1}). A CI that cannot \
         have it sets {WITHOUT}",
        missing.join(", "),
        missing.join(" ")
    );
    Ok(true)
}

/// Builds a component in a folder that `tollgate new` creates.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(super) fn make(tollgate: &Path, component: &Component, out: &Path) -> anyhow::Result<()> {
    say(&format!("making {}", component.name));
    let kind = match component.world {
        "policy" => "policy",
        _ => "pack",
    };
    let folder = out.join(format!("{}-folder", component.name));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    // The unmodified template has the tools that the tests expect under this name.
    let name = if component.source.is_empty() {
        "words"
    } else {
        component.name
    };
    run(Command::new(tollgate)
        .args(["new", kind, name, "--language", "c", "--path"])
        .arg(&folder))?;
    if !component.source.is_empty() {
        let source = root().join("tests/languages/c").join(component.source);
        std::fs::copy(source, folder.join("app.c"))?;
    }
    run(Command::new("make").current_dir(&folder))?;
    let made = folder.join(format!("{}.wasm", name.replace('-', "_")));
    std::fs::copy(made, super::wasm(out, component))?;
    Ok(())
}

/// Fails if the bindings in `sdk/c` do not match the interfaces.
pub(super) fn check_bindings(work: &Path) -> anyhow::Result<()> {
    let tool = WIT_BINDGEN.installed()?;
    let made = work.join("bindings-c");
    for world in ["tool-pack", "policy"] {
        let mut bindings = Command::new(&tool);
        bindings.args(["c", "--world", world, "--out-dir"]).arg(&made);
        run(bindings.arg(root().join("wit")))?;
    }
    let ahead = root().join("sdk/c");
    for world in ["tool_pack", "policy"] {
        for file in [
            format!("{world}.h"),
            format!("{world}.c"),
            format!("{world}_component_type.o"),
        ] {
            let mut compare = Command::new("cmp");
            compare.arg(made.join(&file)).arg(ahead.join(&file));
            run(&mut compare).context("the bindings in sdk/c are old; copy the new ones over them")?;
        }
    }
    Ok(())
}

/// Missing Debian packages.
fn missing() -> Vec<&'static str> {
    let runs = |program: &str| {
        let mut command = Command::new(program);
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    // The compiler knows the location of its libraries, whatever its version is.
    let has = |question: &str| {
        let said = Command::new("clang").args([TARGET, question]).output();
        said.is_ok_and(|said| {
            let said = String::from_utf8_lossy(&said.stdout).into_owned();
            Path::new(said.trim()).is_absolute() && Path::new(said.trim()).exists()
        })
    };
    let all = [
        (runs("clang"), "clang"),
        (runs("make"), "make"),
        (runs("wasm-ld"), "lld"),
        (has("-print-file-name=libc.a"), "wasi-libc"),
        (has("-print-libgcc-file-name"), "libclang-rt-dev-wasm32"),
    ];
    let missing = all.into_iter().filter(|(is_there, _)| !is_there);
    missing.map(|(_, package)| package).collect()
}
