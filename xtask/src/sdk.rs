//! `cargo xtask sdk`: packages the SDK as for publication, and builds a component from the package alone.

use std::fs::File;
use std::path::Path;

use anyhow::{Context as _, ensure};
use flate2::read::GzDecoder;

use crate::components::WASM;
use crate::run::{cargo, root, run, say, target};

/// Packages, dependencies first.
const PACKAGES: [&str; 2] = ["tollgate-sql", "tollgate-sdk"];
/// Version of both packages, which is the workspace's.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Path of the SDK in the template of a pack.
const PLACE: &str = "path = \"../../../sdk\"";

/// Creates the packages, unpacks them, and builds the template of a pack with them, for components and natively.
#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
pub(crate) fn check() -> anyhow::Result<String> {
    let work = target().join("sdk-package");
    let mut package = cargo();
    // The current files are packaged, committed or not. The crate below verifies them.
    package.args(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    for name in PACKAGES {
        package.args(["--package", name]);
    }
    run(package.arg("--target-dir").arg(&work))?;
    let unpacked = work.join("unpacked");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked)?;
    }
    for name in PACKAGES {
        let file = work.join(format!("package/{name}-{VERSION}.crate"));
        let open = File::open(&file).with_context(|| format!("cannot read {}", file.display()))?;
        tar::Archive::new(GzDecoder::new(open)).unpack(&unpacked)?;
    }
    let author = unpacked.join("author");
    copy(&root().join("host/app/templates/pack"), &author)?;
    let manifest = author.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest)?;
    ensure!(
        text.contains(PLACE),
        "the template of a pack does not name the SDK as expected"
    );
    let text = text.replace(PLACE, &format!("version = \"{VERSION}\""));
    let patches = PACKAGES.map(|name| format!("{name} = {{ path = \"../{name}-{VERSION}\" }}\n"));
    std::fs::write(
        &manifest,
        format!("{text}\n[patch.crates-io]\n{}", patches.concat()),
    )?;
    std::fs::copy(root().join("Cargo.lock"), author.join("Cargo.lock"))?;
    // End-to-end tests build authors' crates there, with the same dependencies.
    let built = target().join("tmp/authors");
    for arguments in [&["test", "--quiet"][..], &["build", "--quiet", "--target", WASM]] {
        let mut cargo = cargo();
        cargo
            .current_dir(&author)
            .args(arguments)
            .env("CARGO_TARGET_DIR", &built);
        run(&mut cargo)?;
    }
    let component = built.join(WASM).join("debug/my_pack.wasm");
    ensure!(component.is_file(), "{} was not built", component.display());
    let came_to = format!(
        "{} {VERSION} packaged; a pack of them builds and passes its tests",
        PACKAGES.join(" and ")
    );
    say(&came_to);
    Ok(came_to)
}

#[allow(clippy::disallowed_methods, reason = "a build tool works with files")]
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                copy(&entry.path(), &place)?;
            }
        } else {
            std::fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}
