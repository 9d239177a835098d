//! Builds of the components, and of the host that embeds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::docs::generated;
use crate::run::{cargo, root, run, say, target};

/// Target of components.
pub(crate) const WASM: &str = "wasm32-wasip2";

/// Cargo's profile of components that are shipped.
pub(crate) const DIST: &str = "component-dist";

/// The built-in packs: package, and name of its component.
const PACKS: &[(&str, &str)] = &[
    ("task-store", "task_store"),
    ("tasks", "tasks"),
    ("gsd", "gsd"),
    ("conductor", "conductor"),
    ("convergence", "convergence"),
];

/// The built-in policies: package, name of its component, and name of the policy.
const POLICIES: &[(&str, &str, &str)] = &[
    ("cel-policy", "cel_policy", "cel"),
    ("loop-breaker", "loop_breaker", "loop-breaker"),
    ("path-guard", "path_guard", "path-guard"),
    ("quiet-hours", "quiet_hours", "quiet-hours"),
    ("rate-limit", "rate_limit", "rate-limit"),
    ("read-only-roles", "read_only_roles", "read-only-roles"),
    ("require-actor", "require_actor", "require-actor"),
    ("secret-scan", "secret_scan", "secret-scan"),
    (
        "side-effect-approval",
        "side_effect_approval",
        "side-effect-approval",
    ),
];

/// The built-in packs and policies as arguments of cargo.
pub(crate) fn packages() -> impl Iterator<Item = &'static str> {
    let packs = PACKS.iter().map(|(package, _)| *package);
    let policies = POLICIES.iter().map(|(package, ..)| *package);
    packs.chain(policies).flat_map(|package| ["--package", package])
}

/// The names of the built-in packs.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PACKS.iter().map(|(package, _)| *package)
}

/// Profile of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Debug code over optimised dependencies.
    Dev,
    /// Optimised, with a fast build.
    Release,
    /// Optimised across crates, as it is shipped and measured.
    Dist,
}

impl Profile {
    /// Folder of the built programs.
    pub(crate) fn folder(self) -> PathBuf {
        target().join(match self {
            Profile::Dev => "debug",
            Profile::Release => "release",
            Profile::Dist => "dist",
        })
    }

    /// Cargo's profile of the components in this build.
    pub(crate) fn component(self) -> &'static str {
        match self {
            Profile::Dev | Profile::Release => "component",
            Profile::Dist => DIST,
        }
    }
}

/// Builds the built-in components and then `tollgate`. Returns its path.
pub(crate) fn build_host(profile: Profile) -> anyhow::Result<PathBuf> {
    build_host_and(profile, &[])
}

/// Builds the host together with other programs. A single build is needed, because optimisation across crates depends
/// on the linked programs.
pub(crate) fn build_host_and(profile: Profile, programs: &[&str]) -> anyhow::Result<PathBuf> {
    build_packs(profile)?;
    run(program_build(profile, "tollgate").args(programs.iter().flat_map(|program| ["--bin", program])))?;
    let tollgate = profile.folder().join("tollgate");
    say(&format!("built {}", tollgate.display()));
    Ok(tollgate)
}

/// Command that builds a program with the features of the whole workspace, so that dependencies are built only once for
/// all builds and tests.
pub(crate) fn program_build(profile: Profile, program: &str) -> Command {
    let mut build = cargo();
    build.args(["build", "--workspace", "--exclude", "guests", "--bin", program]);
    match profile {
        // Dependencies of tests count as soon as one test is built. This one is small.
        Profile::Dev => build.args(["--test", "tree"]),
        Profile::Release => build.arg("--release"),
        Profile::Dist => build.args(["--profile", "dist"]),
    };
    build
}

/// Builds the built-in components into `target/components`, where the host's build expects them, and precompiles them.
pub(crate) fn build_packs(profile: Profile) -> anyhow::Result<()> {
    ensure_target()?;
    let home = cargo_home()?;
    let component = profile.component();
    // One build for all components, in parallel with the compiler for them: the last steps of each build use only one
    // core.
    let mut compiler = std::thread::scope(|scope| {
        let compiler = scope.spawn(|| precompile(profile));
        run(component_build(&home, component).args(packages()))?;
        let compiler = compiler.join();
        compiler.unwrap_or_else(|_| bail!("the thread that builds the compiler panicked"))
    })?;
    let built = component_folder(component);
    for (package, file) in PACKS {
        install(&built.join(format!("{file}.wasm")), &format!("{package}.wasm"))?;
    }
    for (_, file, policy) in POLICIES {
        install(
            &built.join(format!("{file}.wasm")),
            &format!("policies/{policy}.wasm"),
        )?;
    }
    compiler.arg(root().join("target/components"));
    if profile == Profile::Dist {
        compiler.arg("--small");
    }
    run(&mut compiler)
}

/// Builds the tool that precompiles components. It shares the engine with the host, which is built once.
pub(crate) fn precompile(profile: Profile) -> anyhow::Result<Command> {
    run(&mut program_build(profile, "precompile"))?;
    Ok(Command::new(profile.folder().join("precompile")))
}

/// Builds the components for tests into `target/components/guests`.
pub(crate) fn build_guests() -> anyhow::Result<()> {
    ensure_target()?;
    let component = Profile::Dev.component();
    run(component_build(&cargo_home()?, component).args(["--package", "guests", "--examples"]))?;
    let built = component_folder(component).join("examples");
    for source in std::fs::read_dir(root().join("tests/guests/src"))? {
        let name = source?.file_name();
        let name = name.to_string_lossy();
        if let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "lib") {
            install(
                &built.join(format!("{stem}.wasm")),
                &format!("guests/{stem}.wasm"),
            )?;
        }
    }
    // Components written in WebAssembly text.
    let made = target().join("tmp/generated");
    run(generated()?.arg("components").arg(&made))?;
    for component in std::fs::read_dir(made)? {
        let component = component?;
        let name = component.file_name();
        install(&component.path(), &format!("guests/{}", name.to_string_lossy()))?;
    }
    Ok(())
}

/// Command that builds components without traces of this machine.
pub(crate) fn component_build(home: &Path, profile: &str) -> Command {
    let mut build = cargo();
    build.args(["build", "--quiet", "--target", WASM, "--profile", profile]);
    // Panic messages contain the paths of dependencies' sources, which are below Cargo's home.
    let remap = format!("--remap-path-prefix={}=/cargo", home.display());
    // The host supports vector instructions, which make parsing of large texts several times faster.
    // Each growth of a memory costs two system calls, one when it grows and one when the next instance gets its place in
    // the pool. Most calls fit into a heap that is there from the start; pages that no call touches take no memory.
    let heap = "-Clink-arg=--initial-heap=1048576";
    let flags = [&remap, "-Ctarget-feature=+simd128", heap].join("\x1f");
    build.env("CARGO_ENCODED_RUSTFLAGS", flags);
    build
}

/// Folder of Cargo's downloads.
pub(crate) fn cargo_home() -> anyhow::Result<PathBuf> {
    match std::env::var_os("CARGO_HOME") {
        Some(home) => Ok(home.into()),
        None => Ok(std::env::home_dir()
            .context("Cargo's home is not known; set CARGO_HOME")?
            .join(".cargo")),
    }
}

fn component_folder(profile: &str) -> PathBuf {
    target().join(WASM).join(profile)
}

/// Copies a built component, unless it is unchanged, because a new file would rebuild the host.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn install(from: &Path, name: &str) -> anyhow::Result<()> {
    let to = root().join("target/components").join(name);
    let bytes = std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if std::fs::read(&to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&to, bytes).with_context(|| format!("cannot write {}", to.display()))
}

/// Adds the target for components, if rustup does not have it.
fn ensure_target() -> anyhow::Result<()> {
    let installed = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .current_dir(root())
        .output();
    let Ok(installed) = installed else {
        // Without rustup the target may still be installed. If not, the build fails with a message.
        return Ok(());
    };
    if String::from_utf8_lossy(&installed.stdout)
        .lines()
        .any(|line| line == WASM)
    {
        return Ok(());
    }
    say(&format!("adding the target {WASM}"));
    let added = Command::new("rustup")
        .args(["target", "add", WASM])
        .current_dir(root())
        .status()?;
    if !added.success() {
        bail!("`rustup target add {WASM}` failed; components cannot be built without it");
    }
    Ok(())
}
