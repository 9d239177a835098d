//! `cargo xtask reproduce`: checks that builds of a component are identical to the last bit, wherever they are made.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::components;
use crate::run::{root, run, say, target};

/// Package to build. It represents all packages, because they are built in the same way.
const PACKAGE: &str = "task-store";

/// Builds a component twice from scratch, with different folders and a different Cargo home, and compares the results.
/// Returns a summary.
pub(crate) fn check() -> anyhow::Result<String> {
    let folder = target().join("reproduce");
    let (one, another) = (folder.join("one"), folder.join("quite/another/place"));
    let home = components::cargo_home()?;
    let first = build(&one, &home)?;
    let other_home = folder.join("home");
    move_in(&home, &other_home)?;
    let second = build(&another, &other_home)?;
    ensure!(
        first == second,
        "{PACKAGE} has {} bytes when built in {} and {} others when built in {}",
        first.len(),
        one.display(),
        second.len(),
        another.display()
    );
    ahead(&folder, &first)?;
    let same = format!("{PACKAGE} is the same {} bytes, built twice", first.len());
    say(&same);
    Ok(same)
}

/// Builds the sources tracked by Git in a folder, and returns the component.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn build(folder: &Path, home: &Path) -> anyhow::Result<Vec<u8>> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    run(Command::new("git")
        .args(["checkout-index", "--all", "--force"])
        .arg(format!("--prefix={}/", folder.display()))
        .current_dir(root()))
    .context("the sources come from Git's index")?;
    run(components::component_build(home, components::DIST)
        .args(["--offline", "--package", PACKAGE])
        .current_dir(folder)
        .env("CARGO_HOME", home)
        .env("CARGO_TARGET_DIR", folder.join("target")))?;
    let name = format!("{}.wasm", PACKAGE.replace('-', "_"));
    let built = folder
        .join("target")
        .join(components::WASM)
        .join(components::DIST)
        .join(name);
    std::fs::read(&built).with_context(|| format!("cannot read {}", built.display()))
}

/// Precompiles a component twice, and compares the results.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn ahead(folder: &Path, component: &[u8]) -> anyhow::Result<()> {
    let made = ["ahead/one", "ahead/quite/another"].map(|place| {
        let place = folder.join(place);
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        std::fs::create_dir_all(&place)?;
        std::fs::write(place.join(format!("{PACKAGE}.wasm")), component)?;
        run(components::precompile(components::Profile::Dev)?.arg(&place))?;
        let read = |ending: &str| std::fs::read(place.join(format!("ahead/{PACKAGE}.{ending}")));
        anyhow::Ok((read("cwasm")?, read("json")?))
    });
    let [one, another] = made;
    ensure!(
        one? == another?,
        "precompiling {PACKAGE} yields different code each time"
    );
    Ok(())
}

/// Creates a Cargo home under another name, with the same registry.
fn move_in(from: &Path, home: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(home)?;
    for name in ["registry", "config.toml"] {
        let (there, link) = (from.join(name), home.join(name));
        if there.exists() && !link.exists() {
            std::os::unix::fs::symlink(there, link)?;
        }
    }
    Ok(())
}
