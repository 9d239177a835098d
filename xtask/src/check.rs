//! `cargo xtask ci`: what must hold before a change lands.

use std::time::Instant;

use crate::components::{self, WASM};
use crate::console_test::ConsoleTest;
use crate::run::{cargo, run, say};
use crate::test::Length;
use crate::{
    cluster::Cluster, conformance, deny, engines, fuzz, languages, package, postgres, registries, reproduce,
    sdk, test, torture,
};

/// Rounds of torture for each change. Every run draws a fresh seed, so many runs cover what one long run does.
const ROUNDS: u32 = 10;
/// Rounds of torture before a release or before an issue is closed.
const ROUNDS_IN_FULL: u32 = 200;

/// Runs every check, the quick ones first, and prints at its end the outcome of each. `full` adds the long proofs, which hold for
/// weeks once they hold: components in other languages, registries, PostgreSQL, hosts behind a load balancer, reproduction, a long
/// ledger on the console, a torture that notices, and a long one.
pub(crate) fn all(full: bool) -> anyhow::Result<()> {
    let started = Instant::now();
    let step = |name: &str| {
        say(&format!(
            "== {name} (after {} min)",
            started.elapsed().as_secs() / 60
        ));
    };
    let mut summary = Vec::new();
    step("format");
    run(cargo().args(["fmt", "--all", "--check"]))?;
    step("dependencies");
    summary.push(("dependencies", deny::check()?));
    step("components");
    components::build_packs(components::Profile::Dev)?;
    components::build_guests()?;
    step("clippy, native");
    let warnings = ["--", "--deny", "warnings"];
    run(cargo()
        .args(["clippy", "--workspace", "--exclude", "guests", "--all-targets"])
        .args(["--features", "tollgate-sql/test-postgres"])
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
    let length = if full { Length::Long } else { Length::Usual };
    summary.push(("tests", test::all(None, length)?));
    summary.push(("fuzzing", fuzz::replayed()?));
    step("conformance");
    summary.push(("conformance", conformance::all()?));
    step("console in a browser");
    summary.push(("console", ConsoleTest::in_ci(full)?));
    step("SDK");
    summary.push(("SDK", sdk::check()?));
    if !full {
        step("PostgreSQL");
        summary.push(("PostgreSQL", postgres::in_short()?));
    }
    if full {
        step("other languages");
        summary.push(("languages", languages::test()?));
        step("rego and cedar");
        summary.push(("engines", engines::test()?));
        step("registries");
        summary.push(("registries", registries::in_ci()?));
        step("PostgreSQL");
        summary.push(("PostgreSQL", postgres::in_ci()?));
        step("hosts behind a load balancer");
        summary.push(("cluster", Cluster::in_ci()?));
        step("reproducible components");
        summary.push(("reproduction", reproduce::check()?));
        step("packages");
        summary.push(("packages", package::tried()?));
        step("torture, of itself");
        summary.push(("sabotage", torture::all(&["--prove".to_owned()])?));
    }
    step("torture");
    let rounds = if full { ROUNDS_IN_FULL } else { ROUNDS };
    summary.push((
        "torture",
        torture::all(&["--rounds".to_owned(), rounds.to_string()])?,
    ));
    step("summary");
    for (name, came_to) in summary {
        say(&format!("{name}: {came_to}"));
    }
    Ok(())
}
