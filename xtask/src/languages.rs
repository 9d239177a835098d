//! Components in other languages than Rust: built from source with pinned packages, and tested in the host.

mod c;
mod figures;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::components::Profile;
use crate::package::sdks::{self, Sdks};
use crate::run::{cargo, npm_packages, root, run, say, target};
use crate::{components, python};

/// Flags of `cargo xtask languages`.
#[derive(Debug, clap::Args)]
pub(crate) struct Languages {
    /// Measure the policy `require-actor` in each language with an optimised host, instead of the tests
    #[arg(long)]
    figures: bool,
    /// Measure with this host instead of one that is built
    #[arg(long, value_name = "FILE", requires = "figures")]
    tollgate: Option<PathBuf>,
}

impl Languages {
    pub(crate) fn all(&self) -> anyhow::Result<()> {
        if self.figures {
            return figures::measure(self.tollgate.as_deref());
        }
        test().map(drop)
    }
}

/// A component: its world, its source, and its name.
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

/// Packages that build components from Python.
const COMPONENTIZE_PY: &[&str] = &["componentize-py==0.25.1"];

/// Files of JavaScript components.
const FILES: [&str; 5] = [
    "package.json",
    "package-lock.json",
    "build.mjs",
    "greeter.js",
    "require-actor.js",
];

/// Builds all components, prints their sizes, and runs the tests that use them. Returns a summary.
pub(crate) fn test() -> anyhow::Result<String> {
    components::build_packs(Profile::Dev)?;
    components::build_guests()?;
    let out = root().join("target/components/languages");
    std::fs::create_dir_all(&out)?;
    let builder = javascript()?;
    for component in &JAVASCRIPT {
        make_javascript(&builder, component, &out)?;
    }
    let builder = python()?;
    for component in &PYTHON {
        make_python(&builder, component, &out)?;
    }
    let tollgate = components::build_host(Profile::Dev)?;
    let has_c = c::is_available()?;
    if has_c {
        for component in &c::COMPONENTS {
            c::make(&tollgate, component, &out)?;
        }
    }
    new_ones(&tollgate, has_c)?;
    let mut weights = Vec::new();
    let made = JAVASCRIPT.iter().chain(&PYTHON);
    for component in made.chain(c::COMPONENTS.iter().filter(|_| has_c)) {
        let bytes = std::fs::metadata(wasm(&out, component))?.len();
        let weight = bytes as f64 / f64::from(1 << 20);
        say(&format!("{:<26} {weight:>6.1} MiB", component.name));
        weights.push(format!("{} of {weight:.1} MiB", component.name));
    }
    let mut tests = cargo();
    tests.args([
        "test",
        "--workspace",
        "--exclude",
        "guests",
        "--test",
        "languages",
    ]);
    if !has_c {
        tests.args(["--", "--skip", "_in_c"]);
    }
    run(&mut tests)?;
    Ok(format!("{} answered in the host", weights.join(", ")))
}

/// Creates packs and policies with `tollgate new` and the SDK packages, runs their tests, and checks their components.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn new_ones(tollgate: &Path, has_c: bool) -> anyhow::Result<()> {
    let work = target().join("languages");
    if work.exists() {
        std::fs::remove_dir_all(&work)?;
    }
    let sdks = sdks::of_checkout(&work.join("packages"), &work)?;
    check_bindings(&python()?, &work)?;
    if has_c {
        c::check_bindings(&work)?;
    }
    for (kind, settings) in [("pack", "{}"), ("policy", r#"{"reason": "release day"}"#)] {
        for language in ["c", "python", "javascript"] {
            if language == "c" && !has_c {
                continue;
            }
            let name = format!("{language}-{kind}");
            say(&format!("creating {name} with tollgate new"));
            let folder = work.join(&name);
            let mut new = Command::new(tollgate);
            run(new
                .args(["new", kind, &name, "--language", language, "--path"])
                .arg(&folder))?;
            if kind == "pack" {
                add_tests_of_sdk(language, &folder)?;
            }
            match language {
                "c" => run(Command::new("make").current_dir(&folder))?,
                "python" => build_python(&folder, &sdks)?,
                _ => build_javascript(&folder, &sdks)?,
            }
            let component = folder.join(format!("{}.wasm", name.replace('-', "_")));
            ensure!(component.is_file(), "{} was not built", component.display());
            let mut check = Command::new(tollgate);
            check
                .arg("--data-dir")
                .arg(work.join("data"))
                .args(["packs", "check"]);
            run(check.arg(&component).args(["--settings", settings]))?;
            if kind == "policy" {
                let mut cases = Command::new(tollgate);
                cases
                    .arg("--data-dir")
                    .arg(work.join("data"))
                    .args(["policies", "test"]);
                run(cases.arg(&component).arg("--case").arg(folder.join("cases.toml")))?;
            }
        }
    }
    Ok(())
}

/// Adds tests of the SDK's mock host to a folder's tests.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn add_tests_of_sdk(language: &str, folder: &Path) -> anyhow::Result<()> {
    let file = match language {
        "python" => "test_sdk.py",
        "javascript" => "sdk.test.js",
        _ => return Ok(()),
    };
    let tests = root().join("tests/languages").join(language).join(file);
    std::fs::copy(tests, folder.join(file))?;
    let table = root().join("sdk/tests/descriptions.json");
    std::fs::copy(table, folder.join("descriptions.json"))?;
    Ok(())
}

/// Fails if the bindings in the Python SDK do not match the interfaces.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn check_bindings(maker: &Path, work: &Path) -> anyhow::Result<()> {
    let made = work.join("bindings");
    let mut bindings = Command::new(maker);
    bindings.arg("--wit-path").arg(root().join("wit"));
    run(bindings
        .args(["--world", "tool-pack", "--world", "policy", "bindings"])
        .arg(&made))?;
    let ahead = root().join("sdk/python/tollgate_sdk/bindings_ahead");
    for module in ["wit_world", "componentize_py_types.py"] {
        let mut diff = Command::new("diff");
        diff.args(["--recursive", "--exclude", "__pycache__"]);
        run(diff.arg(made.join(module)).arg(ahead.join(module))).context(
            "the bindings in sdk/python/tollgate_sdk/bindings_ahead are old; copy the new ones over them",
        )?;
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn build_python(folder: &Path, sdks: &Sdks) -> anyhow::Result<()> {
    let requirements = folder.join("requirements.txt");
    let text = std::fs::read_to_string(&requirements)?;
    let text = text.replace("./vendor/tollgate-sdk", &sdks.wheel.display().to_string());
    std::fs::write(&requirements, text)?;
    std::fs::remove_dir_all(folder.join("vendor"))?;
    let python = folder.join(".venv/bin/python");
    run(Command::new("python3")
        .args(["-m", "venv", ".venv"])
        .current_dir(folder))?;
    let steps: [&[&str]; 3] = [
        &["-m", "pip", "install", "--quiet", "-r", "requirements.txt"],
        &["-m", "pytest", "-q"],
        &["-m", "tollgate_sdk", "build", "app", "-o"],
    ];
    for step in steps {
        let mut command = Command::new(&python);
        command.args(step).current_dir(folder);
        if step.last() == Some(&"-o") {
            command.arg(output_of(folder));
        }
        run(&mut command)?;
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn build_javascript(folder: &Path, sdks: &Sdks) -> anyhow::Result<()> {
    let manifest = folder.join("package.json");
    let text = std::fs::read_to_string(&manifest)?;
    let text = text.replace("vendor/tollgate-sdk", &sdks.npm.display().to_string());
    std::fs::write(&manifest, text)?;
    std::fs::remove_dir_all(folder.join("vendor"))?;
    let steps: [&[&str]; 3] = [
        &["install", "--no-audit", "--no-fund", "--loglevel=error"],
        &["test"],
        &["run", "build"],
    ];
    for step in steps {
        run(Command::new("npm").args(step).current_dir(folder))?;
    }
    Ok(())
}

/// Name of the component of a folder.
fn output_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{}.wasm", name.replace('-', "_"))
}

fn wasm(out: &Path, component: &Component) -> PathBuf {
    out.join(format!("{}.wasm", component.name))
}

/// Installs the builder for JavaScript components.
fn javascript() -> anyhow::Result<PathBuf> {
    npm_packages("tests/languages/javascript", &FILES)
}

fn make_javascript(builder: &Path, component: &Component, out: &Path) -> anyhow::Result<()> {
    say(&format!("making {}", component.name));
    run(Command::new("node")
        .arg("build.mjs")
        .arg(root().join("wit"))
        .args([component.world, component.source])
        .arg(wasm(out, component))
        .current_dir(builder))
}

/// Installs the builder for Python components.
fn python() -> anyhow::Result<PathBuf> {
    Ok(python::with("componentize-py", COMPONENTIZE_PY)?.with_file_name("componentize-py"))
}

fn make_python(builder: &Path, component: &Component, out: &Path) -> anyhow::Result<()> {
    say(&format!("making {}", component.name));
    run(Command::new(builder)
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
        .arg(root().join("tests/languages/python").join(component.source))
        .arg("--output")
        .arg(wasm(out, component)))
}
