//! `cargo xtask ci`: what must hold before a change lands.

use crate::components::{self, WASM};
use crate::run::{cargo, run, say};
use crate::{conformance, deny, fuzz, languages, reproduce, test, torture};

/// How often hosts are killed.
const ROUNDS: &str = "200";

/// Runs every check, the quick ones first, and says at its end what each came to.
pub(crate) fn all() -> anyhow::Result<()> {
    let mut summary = Vec::new();
    step("format");
    run(cargo().args(["fmt", "--all", "--check"]))?;
    step("dependencies");
    summary.push(("dependencies", deny::check()?));
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
    summary.push(("tests", test::all(None)?));
    summary.push(("fuzzing", fuzz::replayed()?));
    step("conformance");
    summary.push(("conformance", conformance::all()?));
    step("other languages");
    summary.push(("languages", languages::test()?));
    step("reproducible components");
    summary.push(("reproduction", reproduce::check()?));
    step("torture, of itself");
    summary.push(("sabotage", torture::all(&["--prove".to_owned()])?));
    step("torture");
    summary.push((
        "torture",
        torture::all(&["--rounds".to_owned(), ROUNDS.to_owned()])?,
    ));
    step("summary");
    for (name, came_to) in summary {
        say(&format!("{name}: {came_to}"));
    }
    Ok(())
}

fn step(name: &str) {
    say(&format!("== {name}"));
}
