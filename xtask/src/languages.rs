//! Components in other languages than Rust: made of their sources with pinned packages, and tried in the host.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{cargo, npm_packages, root, run, say};
use crate::{components, python};

/// A component: its world, its source, and what it is called.
struct Component {
    world: &'static str,
    source: &'static str,
    name: &'static str,
}

const JAVASCRIPT: [Component; 2] = [
    Component {
        world: "tool-pack",
        source: "greeter.js",
        name: "greeter-javascript",
    },
    Component {
        world: "policy",
        source: "require-actor.js",
        name: "require-actor-javascript",
    },
];
const PYTHON: [Component; 2] = [
    Component {
        world: "tool-pack",
        source: "greeter",
        name: "greeter-python",
    },
    Component {
        world: "policy",
        source: "require_actor",
        name: "require-actor-python",
    },
];

/// Packages that make components of Python.
const COMPONENTIZE_PY: &[&str] = &["componentize-py==0.25.1"];

/// Files of JavaScript components.
const FILES: [&str; 5] = [
    "package.json",
    "package-lock.json",
    "build.mjs",
    "greeter.js",
    "require-actor.js",
];

/// Makes all of them, says what each weighs, and runs the tests that use them. Returns what it came to.
pub(crate) fn test() -> anyhow::Result<String> {
    components::build_packs(components::Profile::Dev)?;
    components::build_guests()?;
    let out = root().join("target/components/languages");
    std::fs::create_dir_all(&out)?;
    of_javascript(&out)?;
    of_python(&out)?;
    let mut weights = Vec::new();
    for component in JAVASCRIPT.iter().chain(&PYTHON) {
        let bytes = std::fs::metadata(wasm(&out, component))?.len();
        let weight = bytes as f64 / f64::from(1 << 20);
        say(&format!("{:<26} {weight:>6.1} MiB", component.name));
        weights.push(format!("{} of {weight:.1} MiB", component.name));
    }
    run(cargo().args([
        "test",
        "--workspace",
        "--exclude",
        "guests",
        "--test",
        "languages",
    ]))?;
    Ok(format!("{} answered in the host", weights.join(", ")))
}

fn wasm(out: &Path, component: &Component) -> PathBuf {
    out.join(format!("{}.wasm", component.name))
}

fn of_javascript(out: &Path) -> anyhow::Result<()> {
    let folder = npm_packages("tests/languages/javascript", &FILES)?;
    for component in &JAVASCRIPT {
        say(&format!("making {}", component.name));
        run(Command::new("node")
            .arg("build.mjs")
            .arg(root().join("wit"))
            .args([component.world, component.source])
            .arg(wasm(out, component))
            .current_dir(&folder))?;
    }
    Ok(())
}

fn of_python(out: &Path) -> anyhow::Result<()> {
    let sources = root().join("tests/languages/python");
    let maker = python::with("componentize-py", COMPONENTIZE_PY)?.with_file_name("componentize-py");
    for component in &PYTHON {
        say(&format!("making {}", component.name));
        run(Command::new(&maker)
            .arg("--wit-path")
            .arg(root().join("wit"))
            .args([
                "--world",
                component.world,
                "--quiet",
                "componentize",
                "app",
                "--python-path",
            ])
            .arg(sources.join(component.source))
            .arg("--output")
            .arg(wasm(out, component)))?;
    }
    Ok(())
}
