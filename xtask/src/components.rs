//! Building the components, and the host that embeds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

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

/// The built-in policies: package, name of its component, and what the policy is called.
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
#[derive(Debug, Clone, Copy)]
pub(crate) enum Profile {
    /// Debug code over optimised dependencies.
    Dev,
    /// Optimised, and quick to build.
    Release,
    /// Optimised across crates, as it is shipped and measured.
    Dist,
}

impl Profile {
    /// Folder of its programs.
    pub(crate) fn folder(self) -> PathBuf {
        target().join(match self {
            Profile::Dev => "debug",
            Profile::Release => "release",
            Profile::Dist => "dist",
        })
    }

    /// Cargo's profile of components that go with it.
    fn component(self) -> &'static str {
        match self {
            Profile::Dev | Profile::Release => "component",
            Profile::Dist => DIST,
        }
    }
}

/// Builds the built-in components, then `tollgate`, and returns where it is.
pub(crate) fn build_host(profile: Profile) -> anyhow::Result<PathBuf> {
    build_host_and(profile, &[])
}

/// The same with programs that go with it. One build, because what is optimised across crates differs with the
/// programs that are linked.
pub(crate) fn build_host_and(profile: Profile, programs: &[&str]) -> anyhow::Result<PathBuf> {
    build_packs(profile)?;
    run(program_build(profile, "tollgate").args(programs.iter().flat_map(|program| ["--bin", program])))?;
    let tollgate = profile.folder().join("tollgate");
    say(&format!("built {}", tollgate.display()));
    Ok(tollgate)
}

/// A build of a program, with the features that the whole workspace wants: whatever is built and tested,
/// dependencies are built once.
pub(crate) fn program_build(profile: Profile, program: &str) -> Command {
    let mut build = cargo();
    build.args(["build", "--workspace", "--exclude", "guests", "--bin", program]);
    match profile {
        // What only tests depend on counts as soon as one of them is built. This one is small.
        Profile::Dev => build.args(["--test", "tree"]),
        Profile::Release => build.arg("--release"),
        Profile::Dist => build.args(["--profile", "dist"]),
    };
    build
}

/// Builds the built-in components into `target/components`, where the host's build looks, and compiles them ahead.
pub(crate) fn build_packs(profile: Profile) -> anyhow::Result<()> {
    ensure_target()?;
    let home = cargo_home()?;
    let component = profile.component();
    // One build of all, and the compiler that they need beside it: the last steps of each build take one core.
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
    run(compiler.arg(root().join("target/components")))
}

/// Builds the tool that compiles components ahead. It shares the engine with the host, which is built once.
pub(crate) fn precompile(profile: Profile) -> anyhow::Result<Command> {
    run(&mut program_build(profile, "precompile"))?;
    Ok(Command::new(profile.folder().join("precompile")))
}

/// Builds the components that only tests use, into `target/components/guests`.
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
    // The build script made these.
    for text in std::fs::read_dir(root().join("tests/guests/text"))? {
        let text = text?.path();
        let name = format!("{}.wasm", text.file_stem().unwrap_or_default().to_string_lossy());
        install(&Path::new(env!("OUT_DIR")).join(&name), &format!("guests/{name}"))?;
    }
    Ok(())
}

/// A build of components, with nothing of this machine in them.
pub(crate) fn component_build(home: &Path, profile: &str) -> Command {
    let mut build = cargo();
    build.args(["build", "--quiet", "--target", WASM, "--profile", profile]);
    // Messages of panics name the sources of dependencies, which are below Cargo's home.
    let remap = format!("--remap-path-prefix={}=/cargo", home.display());
    // The host runs vector instructions, and readers of large texts are several times faster with them.
    let flags = [&remap, "-Ctarget-feature=+simd128"].join("\x1f");
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

/// Copies a built component unless the same bytes are there: a new file would rebuild the host.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn install(from: &Path, name: &str) -> anyhow::Result<()> {
    let to = root().join("target/components").join(name);
    let bytes = std::fs::read(from).with_context(|| format!("{} cannot be read", from.display()))?;
    if std::fs::read(&to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&to, bytes).with_context(|| format!("{} cannot be written", to.display()))
}

/// Adds the target that components need, if rustup has not got it.
fn ensure_target() -> anyhow::Result<()> {
    let installed = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .current_dir(root())
        .output();
    let Ok(installed) = installed else {
        // Without rustup the target may still be there; the build says so if it is not.
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
