//! Fuzzing targets for untrusted bytes, one function for each parser. No parser may panic, and each target documents
//! its further checks.
//!
//! `guided` lets a fuzzer choose the bytes. The test `corpus` replays inputs that were found before.

mod config;
mod ledger;
mod manifest;
mod output;
mod sql;
mod wire;

/// A parser under test.
#[derive(Debug)]
pub struct Target {
    /// Name of the target and of its folder in `corpus/`.
    pub name: &'static str,
    /// Folder of recordings that are additional inputs, below the workspace's folder.
    pub recordings: Option<&'static str>,
    /// Parses bytes, and panics if a check fails.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "wire",
        recordings: None,
        run: wire::run,
    },
    Target {
        name: "component",
        recordings: None,
        run: manifest::component,
    },
    Target {
        name: "manifest",
        recordings: None,
        run: manifest::manifest,
    },
    Target {
        name: "config",
        recordings: None,
        run: config::run,
    },
    Target {
        name: "sql",
        recordings: None,
        run: sql::run,
    },
    Target {
        name: "rows",
        recordings: None,
        run: ledger::rows,
    },
    Target {
        name: "head",
        recordings: None,
        run: ledger::head,
    },
    Target {
        name: "tests",
        recordings: Some("plugins/convergence/fixtures"),
        run: output::tests,
    },
    Target {
        name: "git",
        recordings: Some("plugins/convergence/fixtures/git"),
        run: output::git,
    },
];

/// The target with this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
