//! Whatever comes in: nothing panics, and what must not matter does not.

use convergence::git::{RepoPath, parse_diff, parse_numstat, parse_paths, parse_status};
use convergence::readers::{self, Reader, Run};
use convergence::{Normaliser, Outcome, PACK, TestReport, fingerprint};
use proptest::prelude::*;
use serde_json::json;
use tollgate_kit_test::{Arguments, cases, edges_never_fail, never_panics};

use crate::harness::{self, TOOLS};
use crate::place::Place;
use crate::runs::FAILING;

const GIT: &[&str] = &[
    "status",
    "status-renames",
    "status-merge",
    "numstat",
    "numstat-renames",
    "diff",
    "diff-quoted",
    "diff-merge",
    "others",
];

/// Reads with the reader that is named or found, and checks what holds of every report.
fn read(output: &[u8], command: &str, reader: Option<Reader>) {
    let run = Run {
        output,
        exit_code: Some(1),
        command,
        reader,
    };
    let report = readers::read(&run, &Normaliser::new(["/srv/proj"]));
    assert_eq!(
        fingerprint::failure(&report).is_some(),
        report.outcome != Outcome::Passed
    );
    for failure in report.failing_tests.iter().chain(&report.errors) {
        assert!(failure.name.chars().count() <= 310 && failure.message_head.chars().count() <= 300);
        assert!(
            failure.stack.len() <= 30 && failure.stack.iter().all(|frame| frame.chars().count() <= 200),
            "{failure:?}"
        );
    }
}

fn read_by_all(output: &[u8]) {
    TOOLS
        .iter()
        .for_each(|(_, reader)| read(output, "", Some(*reader)));
}

fn parse_by_all(output: &[u8]) {
    let diff = parse_diff(output);
    let counts = [
        parse_status(output).entries.len(),
        parse_numstat(output).entries.len(),
        parse_paths(output).entries.len(),
        diff.symbols.len() + diff.submodules.len(),
    ];
    assert!(counts.iter().all(|count| *count <= output.len()));
}

/// Pieces that normalising looks for, and pieces of such pieces.
fn volatile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "/tmp/fixture-a/proj/src/lib.rs:25:9",
        "/home/ada/x",
        "0x7f73db89dbc0",
        "0x",
        "5548e879-0da9-443c-bc3f-ebefe2b22ee7",
        "2026-11-21T01:15:29.465+00:00",
        "01:15:29",
        "1.5ms",
        "3 s",
        "pid 22187",
        "pid=",
        "thread 'a' (17)",
        "ThreadId(3)",
        "\u{1b}[31m",
        "\u{1b}",
        "seed: 42",
        "C:\\Users\\a\\b.py",
        "file:///srv/proj/a.js:1:2",
        "file://",
        "line 12",
        "(10:26)",
        "127.0.0.1:49152",
        "tmpeuajq0f6",
        "-c6626fb655a8d231",
        "::hc6626fb655a8d231",
        ".rs",
        ":12",
        "//",
        "/",
        " ",
        "\n",
        "1",
        "a",
        "/srv/proj",
        "node_modules/",
        "/site-packages/",
        "../",
        "==12==",
        "<time>",
        "<path>",
        "'",
        "\"",
        "größe",
        "1760000000",
    ]);
    let anything = prop_oneof![4 => pieces.prop_map(str::to_owned), 1 => "\\PC{0,6}"];
    prop::collection::vec(anything, 0..16).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_normal_stays_as_it_is(text in volatile()) {
        let normaliser = Normaliser::new(["/srv/proj", "/tmp/fixture-a/proj"]);
        for normalise in [Normaliser::text, Normaliser::name, Normaliser::kind] {
            let once = normalise(&normaliser, &text);
            prop_assert_eq!(normalise(&normaliser, &once), once);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn readers_take_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_by_all(&bytes);
        parse_by_all(&bytes);
    }

    #[test]
    fn readers_take_any_mixture_of_lines(lines in prop::collection::vec(line(), 0..40)) {
        read_by_all(lines.join("\n").as_bytes());
    }

    #[test]
    fn git_is_read_wherever_it_was_cut(name in prop::sample::select(GIT), cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut output = harness::git(name);
        let at = at.index(output.len());
        output[at] = byte;
        parse_by_all(&output[..cut.index(output.len())]);
    }

    #[test]
    fn the_order_of_failing_tests_does_not_matter(names in prop::collection::vec("[a-c]{0,3}", 0..12), swaps in prop::collection::vec(any::<prop::sample::Index>(), 0..12)) {
        let mut report = TestReport::from_names(names.iter().map(String::as_str), Some(1));
        for (position, failure) in report.failing_tests.iter_mut().enumerate() {
            failure.message_head = format!("message {position}");
            failure.stack = vec![format!("frame {}", position % 2)];
        }
        let print = fingerprint::failure(&report);
        let count = report.failing_tests.len();
        for (position, swap) in swaps.iter().enumerate().take(count) {
            report.failing_tests.swap(position, swap.index(count));
        }
        prop_assert_eq!(fingerprint::failure(&report), print);
    }

    #[test]
    fn paths_stay_different(a in prop::collection::vec(any::<u8>(), 1..6), b in prop::collection::vec(any::<u8>(), 1..6)) {
        prop_assert_eq!(RepoPath::from_bytes(&a) == RepoPath::from_bytes(&b), a == b);
    }
}

/// Lines of any tool, so that they meet in orders that no tool has.
fn line() -> impl Strategy<Value = String> {
    let mut lines: Vec<String> = Vec::new();
    for (tool, _) in TOOLS {
        for fixture in harness::all(tool) {
            lines.extend(
                String::from_utf8_lossy(&fixture.output)
                    .lines()
                    .map(str::to_owned),
            );
        }
    }
    lines.sort();
    lines.dedup();
    prop::sample::select(lines)
}

/// Every reader reads every recording, cut at its head and at its tail in many places.
#[test]
fn readers_take_any_part_of_a_recording() {
    for (tool, _) in TOOLS {
        for fixture in harness::all(tool)
            .into_iter()
            .filter(|fixture| fixture.site == "a")
        {
            let step = fixture.output.len() / 60 + 1;
            for cut in (0..fixture.output.len()).step_by(step) {
                let (head, tail) = fixture.output.split_at(cut);
                for output in [head, tail] {
                    read(output, &fixture.header.command, None);
                }
            }
        }
    }
}

/// Every byte of the shortest failing recording of each tool.
#[test]
fn readers_take_a_recording_cut_at_any_byte() {
    for (tool, reader) in TOOLS {
        let all = harness::all(tool);
        let failing = all
            .iter()
            .filter(|fixture| fixture.header.exit != 0 && !fixture.output.is_empty());
        let shortest = failing
            .min_by_key(|fixture| fixture.output.len())
            .expect("a failing run");
        for cut in 0..shortest.output.len() {
            let (head, tail) = shortest.output.split_at(cut);
            for output in [head, tail] {
                read(output, "", Some(*reader));
            }
        }
    }
}

/// A repository whose tests fail.
fn failing() -> Place {
    let place = Place::repository();
    place.tests_print(FAILING);
    place
}

#[test]
fn whatever_the_arguments_are_the_answer_is_a_reply_or_a_refusal() {
    let place = failing();
    let words = &[
        "default",
        "tests::adds",
        "test tests::adds ... FAILED",
        "cargo test",
        "/srv/proj",
    ];
    let arguments = Arguments::of(words).fixed("workspace", json!("default"));
    never_panics(&PACK, cases(64), &arguments, || place.session());
}

#[test]
fn edges_of_arguments_are_taken_or_refused() {
    let place = failing();
    let arguments = Arguments::of(&["default"]).fixed("workspace", json!("default"));
    edges_never_fail(&PACK, &arguments, || place.session());
}
