//! Fuzzing of parsers and other readers of untrusted input.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::Args;

use crate::components::{self, Profile};
use crate::run::{root, run, say, target};

/// Longest input, in bytes.
const MAX_LENGTH: u32 = 16 << 10;
/// Seconds after which an input counts as an endless loop.
const ENDLESS: u32 = 10;
/// Memory limit of a target, in MiB.
const MEMORY_MIB: u32 = 2048;

#[derive(Debug, Args)]
pub(crate) struct Fuzz {
    /// Time to fuzz each target, in seconds
    #[arg(long, default_value_t = 600)]
    seconds: u32,
    /// Only this target
    #[arg(long)]
    target: Option<String>,
    /// Add inputs that reach new code to the corpora, minimised
    #[arg(long)]
    keep: bool,
}

impl Fuzz {
    /// Fuzzes each target. Inputs that break a target are stored in `target/fuzz`.
    pub(crate) fn all(&self) -> anyhow::Result<()> {
        let corpora = root().join("tests/fuzz/corpus");
        let mut names: Vec<String> = folders(&corpora)?;
        names.retain(|name| self.target.as_ref().is_none_or(|wanted| wanted == name));
        ensure!(!names.is_empty(), "no target has this name");
        let guided = build()?;
        let mut broken = Vec::new();
        for name in names {
            say(&format!("== {name}, {} s", self.seconds));
            if !self.drive(&guided, &name, &corpora.join(&name))? {
                broken.push(name);
            }
        }
        ensure!(
            broken.is_empty(),
            "broken: {}; target/fuzz has the inputs",
            broken.join(", ")
        );
        Ok(())
    }

    /// Fuzzes one target. Returns whether it passed.
    fn drive(&self, guided: &Path, name: &str, corpus: &Path) -> anyhow::Result<bool> {
        let work = target().join("fuzz").join(name);
        let (found, broken) = (work.join("found"), work.join("broken"));
        for folder in [&found, &broken] {
            std::fs::create_dir_all(folder)?;
        }
        let fuzzer = || {
            let mut fuzzer = Command::new(guided);
            fuzzer.env("FUZZ_TARGET", name).current_dir(root());
            fuzzer.args([format!("-max_len={MAX_LENGTH}"), format!("-timeout={ENDLESS}")]);
            fuzzer.arg(format!("-rss_limit_mb={MEMORY_MIB}"));
            fuzzer
        };
        let mut driving = fuzzer();
        driving.arg(format!("-max_total_time={}", self.seconds));
        driving.arg(format!("-artifact_prefix={}/", broken.display()));
        driving.args(["-verbosity=1", "-print_final_stats=1", "-close_fd_mask=1"]);
        driving.args([&found, corpus]).args(recordings(name));
        let held = driving.status().context("cannot run the fuzzer")?.success();
        if held && self.keep {
            run(fuzzer().arg("-merge=1").args([corpus, &found]))?;
        }
        Ok(held)
    }
}

/// Recordings that serve as additional inputs of a target.
fn recordings(name: &str) -> Vec<PathBuf> {
    let fixtures = root().join("plugins/convergence/fixtures");
    match name {
        "tests" => vec![fixtures],
        "git" => vec![fixtures.join("git")],
        _ => Vec::new(),
    }
}

/// Number of inputs that the corpus test replays.
pub(crate) fn replayed() -> anyhow::Result<String> {
    let corpora = root().join("tests/fuzz/corpus");
    let names = folders(&corpora)?;
    let mut inputs = 0;
    for name in &names {
        inputs += folders(&corpora.join(name))?.len();
    }
    Ok(format!("{inputs} inputs of {} targets replayed", names.len()))
}

/// Builds the targets with the fuzzer. Only the project's own crates are instrumented, so everything else is built
/// once, with the features of the whole workspace.
fn build() -> anyhow::Result<PathBuf> {
    components::build_packs(Profile::Dev)?;
    run(components::program_build(Profile::Dev, "guided")
        .args(["--features", "fuzz/guided"])
        // Parsing of long output is many times faster, and overflows still panic.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .env("RUSTC_WORKSPACE_WRAPPER", root().join("tests/fuzz/with-coverage")))?;
    Ok(Profile::Dev.folder().join("guided"))
}

fn folders(path: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
