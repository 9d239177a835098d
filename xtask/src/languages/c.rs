//! Components in C: the template of `tollgate new`, Debian's clang and wasi-libc, and the linker of Rust's toolchain.

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
/// Variable by which a CI without a compiler for C says that it may leave these components out.
const WITHOUT: &str = "TOLLGATE_WITHOUT_C";
/// Maker of the bindings.
const WIT_BINDGEN: Tool = Tool {
    package: "wit-bindgen-cli",
    version: "0.63.0",
    features: Some("c"),
    program: "wit-bindgen",
};

/// True if there is all that a component in C is made with. It may be missing if the environment allows that.
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
        "components in C cannot be made without {0}; install that (Debian: apt install {1}). A CI that cannot have it sets {WITHOUT}",
        missing.join(", "),
        missing.join(" ")
    );
    Ok(true)
}

/// Makes a component in a folder that `tollgate new` makes.
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
    // The template as it is has the tools of the tests under this name.
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

/// Fails if the bindings in `sdk/c` are not those of the interfaces.
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
        (runs("make"), "make"),
        (runs("wasm-ld"), "lld"),
        (has("-print-file-name=libc.a"), "wasi-libc"),
        (has("-print-libgcc-file-name"), "libclang-rt-dev-wasm32"),
    ];
    let missing = all.into_iter().filter(|(is_there, _)| !is_there);
    missing.map(|(_, package)| package).collect()
}
