//! Measures how many of a tree's imports are resolved and how long that takes, next to Git.
//!
//! `cargo run --release -p conductor-repo --example measure -- DIRECTORY…`. `--missing` lists unresolved
//! imports, `--sample N` lists every Nth resolved one, `--map` prints the map, `--made N` creates a repository
//! of N files to measure.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for people, on their disk"
)]

#[path = "../../tests/it/disk.rs"]
mod disk;
mod made;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use conductor_repo::facts::FactBook;
use conductor_repo::map::{MarkdownLimits, Notes, RepoMap};
use conductor_repo::snapshot::{Limits, Snapshot, take};
use disk::Disk;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let number = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1)?.parse::<usize>().ok()
    };
    let mut roots: Vec<PathBuf> = arguments
        .iter()
        .map(PathBuf::from)
        .filter(|path| path.is_dir())
        .collect();
    let made = number("--made").map(made::repository);
    roots.extend(made.iter().map(|made| made.path().to_owned()));
    for root in roots {
        let map = measure(&root);
        accuracy(&map);
        if has("--missing") {
            for missing in &map.graph.missing {
                println!("  missing {}:{} {}", missing.path, missing.line, missing.import);
            }
        }
        if let Some(each) = number("--sample") {
            let imports = map.export().imports.into_iter();
            let pairs = imports.flat_map(|(from, to)| to.into_iter().map(move |to| (from.clone(), to)));
            pairs
                .step_by(each.max(1))
                .for_each(|(from, to)| println!("  {from} -> {to}"));
        }
        if has("--map") {
            println!("{}", map.markdown(MarkdownLimits::default()));
        }
    }
}

/// Measures Git's listing and reading, the first snapshot with facts, the map, and a second snapshot.
fn measure(root: &Path) -> RepoMap {
    let tree = Disk {
        root: root.to_owned(),
    };
    let limits = Limits::default();
    // The first round fills the page cache for both.
    let baseline = (0..5).filter_map(|_| git(root)).min();
    let (mut best_first, mut best_bare) = (Duration::MAX, Duration::MAX);
    let mut found = None;
    for _ in 0..3 {
        let mut book = FactBook::default();
        let (first, time) = timed(|| {
            take(&tree, &limits, None, now(), &mut |file, bytes| {
                book.learn(file, bytes)
            })
        });
        best_first = best_first.min(time);
        let (bare, time) = timed(|| take(&tree, &limits, None, now(), &mut |_, _| {}));
        best_bare = best_bare.min(time);
        assert_eq!(
            bare.map(|bare| bare.snapshot.files.len()).ok(),
            first.as_ref().ok().map(|first| first.snapshot.files.len())
        );
        found = first.ok().map(|first| (first, book));
    }
    let (first, book) = found.expect("the tree can be read");
    let (map, map_time) = timed(|| RepoMap::build(&first.snapshot, &book, &Notes::default()));
    // As if the snapshot were taken well after the last change.
    let settled = Snapshot {
        taken: i64::MAX,
        ..first.snapshot.clone()
    };
    let again = || timed(|| take(&tree, &limits, Some(&settled), now(), &mut |_, _| {}));
    let (second, second_time) = (0..3)
        .map(|_| again())
        .min_by_key(|(_, time)| *time)
        .expect("three rounds");
    let second = second.expect("the tree can be read");
    println!(
        "{}: {} files, {} bytes read, {} problems",
        root.display(),
        first.snapshot.files.len(),
        first.effort.bytes,
        first.snapshot.problems.len()
    );
    println!(
        "  snapshot {best_bare:.1?}, with facts {best_first:.1?}, map {map_time:.1?}; second snapshot {second_time:.1?} ({} read)",
        second.effort.read
    );
    if let Some(git) = baseline {
        let ratio = |time: Duration| time.as_secs_f64() / git.as_secs_f64();
        println!(
            "  git ls-files and reading {git:.1?}; snapshot {:.2}, with facts and map {:.2} times that; second {:.3} of the first, {:.3} with facts",
            ratio(best_bare),
            ratio(best_first + map_time),
            second_time.as_secs_f64() / best_bare.as_secs_f64(),
            second_time.as_secs_f64() / best_first.as_secs_f64()
        );
    }
    map
}

fn accuracy(map: &RepoMap) {
    for (language, counts) in &map.graph.counts {
        let all = counts.resolved + counts.external + counts.missing + counts.unknown;
        println!(
            "  {}: {} files, {all} imports: {} resolved, {} external, {} missing, {} unknown",
            language.name(),
            counts.files,
            counts.resolved,
            counts.external,
            counts.missing,
            counts.unknown
        );
    }
    println!(
        "  {} entry points, {} stale candidates",
        map.entry_points.len(),
        map.stale.len()
    );
}

/// Measures listing and reading the files only; `None` outside of Git. Git is a separate process, so its part
/// is wall-clock time.
fn git(root: &Path) -> Option<Duration> {
    let start = Instant::now();
    let listing = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .ok()?;
    let listed = start.elapsed();
    let (bytes, read) = timed(|| {
        let names = listing
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty());
        let names = names.filter_map(|name| std::str::from_utf8(name).ok());
        names
            .map(|name| std::fs::read(root.join(name)).map_or(0, |content| content.len()))
            .sum::<usize>()
    });
    (bytes > 0).then_some(listed + read)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = processor();
    let result = work();
    (result, processor().saturating_sub(start))
}

/// CPU time of this thread, which other work on the machine does not lengthen.
fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
