//! Choice of the reader for an output, and outputs that differ from those that a tool wrote.

use convergence::readers::{self, Reader, Run};
use convergence::{MAX_FAILING_TESTS, Normaliser, Outcome, TestReport};

use crate::harness::{self, Fixture, TOOLS};

fn read(output: &[u8], exit_code: Option<i32>, command: &str, reader: Option<Reader>) -> TestReport {
    readers::read(
        &Run {
            output,
            exit_code,
            command,
            reader,
        },
        &Normaliser::default(),
    )
}

#[test]
fn the_output_alone_names_its_reader() {
    for (tool, _) in TOOLS {
        for fixture in harness::all(tool) {
            let by_content = read(&fixture.output, Some(fixture.header.exit), "", None).reader;
            let expected = match fixture.case.as_str() {
                // It says nothing of itself.
                "spec-none" => Reader::Generic,
                _ => fixture.read().reader,
            };
            assert_eq!(by_content, expected, "{tool}/{}", fixture.case);
        }
    }
}

#[test]
fn every_tool_is_read_by_its_reader() {
    for (tool, reader) in TOOLS {
        for fixture in harness::all(tool) {
            let expected = if fixture.case.starts_with("tap-") {
                Reader::Tap
            } else {
                *reader
            };
            assert_eq!(fixture.read().reader, expected, "{tool}/{}", fixture.case);
        }
    }
}

#[test]
fn the_caller_knows_better_than_the_command_and_the_command_than_the_output() {
    let fixture = Fixture::of("cargo-test", "fail", "a");
    let by = |command, reader| read(&fixture.output, Some(101), command, reader).reader;
    assert_eq!(by("cargo test", Some(Reader::Generic)), Reader::Generic);
    assert_eq!(by("cargo test", None), Reader::CargoTest);
    // A wrapper that is called like a tool and runs another.
    assert_eq!(by("pytest", None), Reader::CargoTest);
    assert_eq!(
        read(b"nothing to see", Some(1), "pytest", None).reader,
        Reader::Pytest
    );
}

fn with(fixture: &Fixture, output: impl Into<Vec<u8>>) -> TestReport {
    let output = output.into();
    Fixture {
        output,
        ..fixture.clone()
    }
    .read()
}

#[test]
fn line_ends_and_stray_bytes_do_not_matter() {
    for (tool, _) in TOOLS {
        for fixture in harness::all(tool)
            .into_iter()
            .filter(|fixture| fixture.site == "a")
        {
            let (report, what) = (fixture.read(), format!("{tool}/{}", fixture.case));
            let text = String::from_utf8(fixture.output.clone()).expect("text");
            assert_eq!(with(&fixture, text.replace('\n', "\r\n")), report, "{what}: CRLF");
            assert_eq!(with(&fixture, format!("\u{feff}{text}")), report, "{what}: BOM");
            let stray = with(
                &fixture,
                [fixture.output.as_slice(), b"\n\xff\xfe stray \xc3\n"].concat(),
            );
            assert_eq!(stray.failing_tests, report.failing_tests, "{what}: stray bytes");
            assert_eq!(stray.outcome, report.outcome, "{what}: stray bytes");
        }
    }
}

#[test]
fn a_cut_output_still_names_tests() {
    for (tool, case, keep_head) in [
        ("cargo-test", "fail", true),
        ("cargo-test", "fail", false),
        ("nextest", "fail", true),
        ("pytest", "fail", true),
        ("unittest", "fail", true),
        ("jest", "fail", true),
        ("vitest", "fail", true),
        ("node-test", "spec-fail", true),
        ("node-test", "spec-fail", false),
        ("go-test", "fail-verbose", true),
        ("junit-xml", "nextest-fail", true),
        ("tap", "tape-fail", true),
    ] {
        let mut fixture = Fixture::of(tool, case, "a");
        let middle = fixture.output.len() * 7 / 10;
        fixture.output = match keep_head {
            true => fixture.output[..middle].to_vec(),
            false => fixture.output[fixture.output.len() - middle..].to_vec(),
        };
        let report = fixture.read();
        assert_eq!(report.outcome, Outcome::Failed, "{tool}/{case}");
        assert_eq!(
            report.failing_tests.len(),
            1,
            "{tool}/{case}: {:?}",
            report.failing_tests
        );
        assert!(
            report.failing_tests[0].name.to_lowercase().contains("adds"),
            "{tool}/{case}: {:?}",
            report.failing_tests
        );
    }
}

#[test]
fn silence_is_judged_by_the_exit_code() {
    for command in ["cargo test", "pytest", "npx jest", "go test", "make check"] {
        let outcome = |exit_code| read(b"", exit_code, command, None).outcome;
        assert_eq!(outcome(Some(0)), Outcome::Passed, "{command}");
        assert!(
            matches!(outcome(Some(1)), Outcome::Failed | Outcome::Error),
            "{command}"
        );
        assert_eq!(outcome(None), Outcome::Error, "{command}: killed");
    }
    assert_eq!(read(b"all good", Some(0), "", None).outcome, Outcome::Passed);
}

#[test]
fn a_plan_of_no_tests_is_no_pass() {
    for output in [
        "1..0\n",
        "1..0 # SKIP none\n",
        "> shop@1.0.0 test\n\n1..0\n",
        "TAP version 14\n1..0\n",
    ] {
        for command in ["", "sh run.sh", "node --test"] {
            let report = read(output.as_bytes(), Some(0), command, None);
            assert_eq!(report.outcome, Outcome::NoTests, "{output} {command}");
        }
    }
    // A number in a text, and a plan in the output of a test of another tool.
    assert_eq!(read(b"page 1..0\n", Some(0), "", None).outcome, Outcome::Passed);
    let mut passing = Fixture::of("jest", "pass", "a");
    passing.output.splice(0..0, b"1..0\n".iter().copied());
    assert_eq!(passing.read().outcome, Outcome::Passed);
    // A tool that failed.
    assert_eq!(
        read(b"1..0\nerror: no server\n", Some(1), "", None).outcome,
        Outcome::Failed
    );
}

#[test]
fn failing_tests_beat_an_exit_code_that_was_lost() {
    let fixture = Fixture::of("pytest", "fail", "a");
    assert_eq!(
        read(&fixture.output, Some(0), "pytest | tee log", None).outcome,
        Outcome::Failed
    );
    let passing = Fixture::of("pytest", "pass", "a");
    assert_eq!(
        read(&passing.output, None, "pytest", None).outcome,
        Outcome::Passed
    );
    assert_eq!(
        read(&passing.output, Some(1), "pytest --cov-fail-under=90", None).outcome,
        Outcome::Error
    );
}

#[test]
fn no_more_names_are_kept_than_anybody_reads() {
    let mut output = String::from("running 2000 tests\n");
    for test in 0..2000 {
        output += &format!("test tests::case_{test:04} ... FAILED\n");
    }
    let report = read(output.as_bytes(), Some(101), "cargo test", None);
    assert_eq!(report.failing_tests.len(), MAX_FAILING_TESTS);
    assert_eq!(report.more_failing_tests, 1500);
    assert_eq!(report.failing_tests[499].name, "tests::case_0499");
}

#[test]
fn lines_may_be_as_long_as_they_like() {
    let long = "x".repeat(3 << 20);
    let output =
        format!("running 1 test\ntest {long} ... FAILED\nthread '{long}' panicked at {long}:1:1:\n{long}\n");
    let report = read(output.as_bytes(), Some(101), "", None);
    assert_eq!(report.failing_tests.len(), 1);
    assert!(report.failing_tests[0].name.len() < 1000);
    for (_, reader) in TOOLS {
        read(output.as_bytes(), Some(1), "", Some(*reader));
    }
}

#[test]
fn a_panic_as_old_rust_told_it_is_read() {
    let output = b"running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\n\
        thread 'a' panicked at 'assertion failed: x', src/lib.rs:3:5\n\n";
    let report = read(output, Some(101), "cargo test", None);
    let failure = &report.failing_tests[0];
    assert_eq!(failure.exception_type.as_deref(), Some("panic: assertion failed"));
    assert_eq!(
        (failure.message_head.as_str(), failure.stack.as_slice()),
        ("assertion failed: x", ["src/lib.rs".to_owned()].as_slice())
    );
}

#[test]
fn a_name_with_a_dash_is_told_from_its_message() {
    let output = b"=== short test summary info ===\nFAILED t.py::test_x[a - b] - AssertionError: 1 - 2\n=== 1 failed in 0.01s ===\n";
    let report = read(output, Some(1), "pytest", None);
    assert_eq!(report.failing_tests[0].name, "t.py::test_x[a - b]");
    assert_eq!(report.failing_tests[0].message_head, "1 - 2");
}

#[test]
fn where_a_run_was_killed_is_chance() {
    let print = |output: &[u8]| convergence::fingerprint::failure(&read(output, None, "make check", None));
    assert_eq!(print(b"step 1\nstep 2\n"), print(b"step 1\nstep 2\nstep 3\n"));
}
