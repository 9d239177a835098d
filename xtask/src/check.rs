//! `cargo xtask ci`: what must hold before a change lands.

use crate::components::{self, WASM};
use crate::run::{cargo, run, say};
use crate::{conformance, reproduce, test, torture};

/// How often hosts are killed.
const ROUNDS: &str = "200";

/// Runs every check, the quick ones first.
pub(crate) fn all() -> anyhow::Result<()> {
    step("format");
    run(cargo().args(["fmt", "--all", "--check"]))?;
    step("components");
    components::build_packs()?;
    components::build_guests()?;
    step("clippy, native");
    let warnings = ["--", "--deny", "warnings"];
    run(cargo()
        .args(["clippy", "--workspace", "--exclude", "guests", "--all-targets"])
        .args(warnings))?;
    step("clippy, components");
    run(cargo()
        .args(["clippy", "--target", WASM, "--lib"])
        .args(components::packages())
        .args(warnings))?;
    run(cargo()
        .args(["clippy", "--target", WASM, "--package", "guests", "--examples"])
        .args(warnings))?;
    step("documentation");
    run(cargo()
        .args([
            "doc",
            "--workspace",
            "--exclude",
            "guests",
            "--no-deps",
            "--document-private-items",
        ])
        .env("RUSTDOCFLAGS", "--deny warnings"))?;
    step("tests");
    test::all(None)?;
    step("conformance");
    conformance::all()?;
    step("reproducible components");
    reproduce::check()?;
    step("torture, of itself");
    torture::all(&["--prove".to_owned()])?;
    step("torture");
    torture::all(&["--rounds".to_owned(), ROUNDS.to_owned()])
}

fn step(name: &str) {
    say(&format!("== {name}"));
}
