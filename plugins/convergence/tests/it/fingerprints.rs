//! The same failure has the same fingerprint in both checkouts, and another has another.

use std::collections::BTreeMap;

use convergence::{Ended, Failure, Normaliser, TestReport, fingerprint};

use crate::harness::{self, Fixture, TOOLS};

/// Cases that are the same failure, told in another style.
const SAME: &[(&str, &str, &str)] = &[
    ("cargo-test", "fail", "fail-color"),
    ("cargo-test", "fail", "fail-quiet"),
    ("cargo-test", "fail", "fail-streams"),
    ("cargo-test", "fail", "fail-nocapture"),
    ("nextest", "fail", "fail-color"),
    ("nextest", "fail", "retry"),
    ("pytest", "fail", "fail-color"),
    ("pytest", "fail", "fail-quiet"),
    ("pytest", "fail", "fail-verbose"),
    ("pytest", "fail", "fail-short"),
    ("pytest", "fail", "fail-native"),
    ("pytest", "exception", "exception-native"),
    ("unittest", "fail", "fail-verbose"),
    ("unittest", "fail", "fail-streams"),
    ("jest", "fail", "fail-color"),
    ("jest", "fail", "fail-verbose"),
    ("vitest", "fail", "fail-color"),
    ("vitest", "fail", "fail-verbose"),
    ("node-test", "spec-fail", "spec-fail-color"),
    ("node-test", "spec-fail", "tap-fail"),
    ("node-test", "spec-fail", "dot-fail"),
    ("node-test", "spec-exception", "tap-exception"),
    ("node-test", "spec-many", "tap-many"),
    ("node-test", "spec-other", "tap-other"),
    ("go-test", "fail", "fail-verbose"),
    ("go-test", "fail", "fail-json"),
    ("go-test", "other", "other-json"),
    ("go-test", "panic", "panic-json"),
    ("go-test", "compile", "compile-json"),
];

/// Runs of the same tests by different runners and reporters.
const ACROSS: &[&[(&str, &str)]] = &[
    &[
        ("cargo-test", "fail"),
        ("nextest", "fail"),
        ("junit-xml", "nextest-fail"),
    ],
    &[
        ("pytest", "fail"),
        ("pytest", "fail-quiet"),
        ("pytest", "fail-verbose"),
        ("junit-xml", "pytest-fail"),
    ],
    &[("pytest", "exception"), ("junit-xml", "pytest-exception")],
    &[
        ("node-test", "spec-fail"),
        ("node-test", "tap-fail"),
        ("junit-xml", "node-fail"),
    ],
    &[("node-test", "spec-exception"), ("junit-xml", "node-exception")],
    &[("vitest", "fail"), ("junit-xml", "vitest-fail")],
    &[("vitest", "exception"), ("junit-xml", "vitest-exception")],
];

#[test]
fn the_runner_and_the_reporter_do_not_matter() {
    for same in ACROSS {
        let print = |(tool, case): &(&str, &str)| {
            let report = Fixture::of(tool, case, "a").read();
            (fingerprint::failure(&report).expect("a failure"), report)
        };
        let (first, told) = print(&same[0]);
        for other in *same {
            let (found, report) = print(other);
            assert_eq!(found, first, "{other:?}: {report:#?} {told:#?}");
        }
    }
}

#[test]
fn how_a_run_ended_is_part_of_its_failure() {
    let ended = |ended| {
        let mut report = TestReport::from_names(["a"], None);
        report.ended = ended;
        fingerprint::failure(&report).expect("a failure")
    };
    let all = [
        ended(Ended::Exited(1)),
        ended(Ended::Signalled(9)),
        ended(Ended::Signalled(15)),
        ended(Ended::TimedOut),
        ended(Ended::Unknown),
    ];
    let different: std::collections::BTreeSet<&String> = all.iter().collect();
    assert_eq!(different.len(), all.len());
}

/// The name under which a failure is compared: those of [`SAME`] share one.
fn group<'a>(tool: &str, case: &'a str) -> &'a str {
    let same = SAME.iter().find(|(of, _, other)| *of == tool && *other == case);
    same.map_or(case, |(_, case, _)| case)
}

#[test]
fn two_checkouts_agree() {
    for (tool, _) in TOOLS {
        for b in harness::all(tool)
            .into_iter()
            .filter(|fixture| fixture.site == "b")
        {
            let (a, case) = (Fixture::of(tool, &b.case, "a"), b.case.clone());
            let without_root =
                |fixture: &Fixture| fixture.read_with(&Normaliser::default(), &fixture.header.command);
            for (a, b) in [(a.read(), b.read()), (without_root(&a), without_root(&b))] {
                let what = format!("{tool}/{case}: {a:#?} {b:#?}");
                assert_eq!(a.outcome, b.outcome, "{what}");
                assert_eq!(keys(&a.failing_tests), keys(&b.failing_tests), "{what}");
                assert_eq!(keys(&a.errors), keys(&b.errors), "{what}");
                assert_eq!(fingerprint::failure(&a), fingerprint::failure(&b), "{what}");
                assert_eq!(fingerprint::detail(&a), fingerprint::detail(&b), "{what}");
            }
        }
    }
}

type Key<'a> = (&'a str, Option<&'a str>, &'a [String]);

/// Fields that the fingerprint covers.
fn keys(failures: &[Failure]) -> Vec<Key<'_>> {
    failures
        .iter()
        .map(|failure| {
            (
                failure.name.as_str(),
                failure.exception_type.as_deref(),
                failure.stack.as_slice(),
            )
        })
        .collect()
}

/// Messages are not in the fingerprint of a test, but whoever reads two of them should not see a
/// difference where there is none.
#[test]
fn messages_agree_too() {
    for (tool, _) in TOOLS {
        for b in harness::all(tool)
            .into_iter()
            .filter(|fixture| fixture.site == "b")
        {
            let a = Fixture::of(tool, &b.case, "a");
            let messages = |report: TestReport| -> Vec<String> {
                let failures = report.failing_tests.into_iter().chain(report.errors);
                failures.map(|failure| failure.message_head).collect()
            };
            assert_eq!(messages(a.read()), messages(b.read()), "{tool}/{}", b.case);
        }
    }
}

#[test]
fn different_failures_differ() {
    for (tool, _) in TOOLS {
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for fixture in harness::all(tool) {
            let Some(print) = fingerprint::failure(&fixture.read()) else {
                continue;
            };
            let case = group(tool, &fixture.case);
            let earlier = seen.entry(print).or_insert_with(|| case.to_owned());
            assert_eq!(earlier, case, "{tool}: two failures look the same");
        }
    }
}

#[test]
fn the_style_of_a_report_does_not_matter() {
    for (tool, case, other) in SAME {
        let print = |case| fingerprint::failure(&Fixture::of(tool, case, "a").read());
        assert_eq!(print(case), print(other), "{tool}: {case}, {other}");
    }
}

#[test]
fn what_passes_has_no_fingerprint() {
    for (tool, _) in TOOLS {
        for fixture in harness::all(tool) {
            let passing = fixture.case == "pass" || fixture.case.contains("pass");
            assert_eq!(
                fingerprint::failure(&fixture.read()).is_none(),
                passing || fixture.header.exit == 0,
                "{tool}/{}",
                fixture.case
            );
        }
    }
}

/// The encoding is part of what is stored: it must not change unnoticed.
#[test]
fn a_fingerprint_is_pinned() {
    let report = TestReport::from_names(["b", "a"], Some(1));
    let print = fingerprint::failure(&report).expect("a failure");
    assert_eq!(
        print,
        "f8b61b1e30a1d462e84e5f82056f5fcb0695fdd9f04945366babf76b6acafd1b"
    );
}

#[test]
fn fields_do_not_run_into_each_other() {
    let print =
        |names: &[&str], code| fingerprint::failure(&TestReport::from_names(names.iter().copied(), code));
    assert_eq!(print(&["a", "b"], Some(1)), print(&["b", "a"], Some(1)));
    assert_ne!(print(&["a", "b"], Some(1)), print(&["ab"], Some(1)));
    assert_ne!(print(&["a"], Some(1)), print(&["a", "a"], Some(1)));
    assert_ne!(print(&["a"], Some(1)), print(&["a"], Some(2)));
    assert_ne!(print(&["a"], Some(0)), print(&["a"], None));
    assert_eq!(print(&[], Some(0)), None);
}
