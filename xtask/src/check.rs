//! `cargo xtask ci`: the checks that must pass before a change is merged.

use std::time::Instant;

use crate::components::{self, Profile, WASM};
use crate::console_test::ConsoleTest;
use crate::run::{cargo, run, say};
use crate::test::Length;
use crate::{
    cluster::Cluster, conformance, deny, engines, fuzz, languages, package, postgres, registries, reproduce,
    sdk, test, torture,
};

/// Torture rounds for each change. Every run uses a new seed, so many runs cover as much as one long run.
const ROUNDS: u32 = 10;
/// Torture rounds before a release or before an issue is closed.
const ROUNDS_IN_FULL: u32 = 200;

/// Runs every check, quick ones first, and prints the outcome of each at the end. `full` adds the long checks, which
/// rarely start to fail: components in other languages, registries, PostgreSQL, hosts behind a load balancer,
/// reproducible builds, a long ledger on the console, a self-test of the torture, and a long torture.
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
    components::build_packs(Profile::Dev)?;
    components::build_guests()?;
    step("clippy, native");
    let warnings = ["--", "--deny", "warnings"];
    run(cargo()
        .args(["clippy", "--workspace", "--exclude", "guests", "--all-targets"])
        .args(["--features", "tollgate-sql/test-postgres"])
        .args(warnings))?;
    step("clippy, components");
    // With the profile of the components, whose macros are built already.
    let clippy = ["clippy", "--target", WASM, "--profile", Profile::Dev.component()];
    run(cargo()
        .args(clippy)
        .arg("--lib")
        .args(components::packages())
        .args(warnings))?;
    run(cargo()
        .args(clippy)
        .args(["--package", "guests", "--examples"])
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
        step("torture, self-test");
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
