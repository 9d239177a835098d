//! Tests of reports in text form.

use std::collections::BTreeMap;

use expect_test::expect;
use tollgate_core::envelope::{Limits, Standing};

use super::super::{Teller, Untested};
use super::*;
use crate::storage::{Ran, SaidByPolicy, StoredOperation, StoredTestOutcome, TestRow, TestRun};

fn envelope() -> Envelope {
    Envelope {
        id: "env_1".to_owned(),
        standing: Standing {
            state: State::ClosedFailed,
            limits: Limits {
                max_mutations: Some(3),
                max_test_runs: None,
                max_duration_sec: Some(600),
                max_edits: None,
            },
            mutations: 3,
            test_runs: 2,
            edits: 0,
            opened_boot_ms: 0,
        },
        workspace: Some("notes".to_owned()),
        label: Some("fix the parser".to_owned()),
        note: Some("gave up\u{1b}[31m".to_owned()),
        opened_at: "2026-03-01T23:59:00.000Z".to_owned(),
        closed_at: Some("2026-03-02T00:05:30.500Z".to_owned()),
        closed_by: Some("MUTATION_BUDGET_EXHAUSTED".to_owned()),
        git_head: Some("aaaa".to_owned()),
        closed_git_head: Some("bbbb".to_owned()),
        host_id: "h".to_owned(),
        connection: "c".to_owned(),
        ..Envelope::default()
    }
}

fn operation(seq: i64, tool: &str, time: &str) -> StoredOperation {
    StoredOperation {
        seq,
        timestamp: time.to_owned(),
        duration_ms: 1.5,
        op_type: "mutation".to_owned(),
        success: Some(true),
        tool: tool.to_owned(),
        actor: Some("ada".to_owned()),
        ..StoredOperation::default()
    }
}

#[test]
fn a_story_reads_like_one() {
    let (day, night) = ("2026-03-01T23:59:10.000Z", "2026-03-02T00:01:00.000Z");
    let mut teller = Teller::default();
    for seq in 1..=2 {
        teller.hear(&StoredOperation {
            changed_paths: Some(vec!["src/parser.rs".to_owned()]),
            mutation_fingerprint: Some("m".repeat(64)),
            ..operation(seq, "edit", day)
        });
    }
    for seq in [3, 5] {
        teller.hear(&StoredOperation {
            op_type: "test_run".to_owned(),
            success: Some(false),
            error_code: Some("TESTS_FAILED".to_owned()),
            failure_fingerprint: Some("f".repeat(64)),
            failing_tests: Some(vec!["parser::reads".to_owned()]),
            ..operation(seq, "test_run", night)
        });
        teller.hear(&StoredOperation {
            success: None,
            actor: None,
            ..operation(seq + 1, "edit", night)
        });
    }
    teller.hear(&StoredOperation {
        success: Some(false),
        error_code: Some("MUTATION_BUDGET_EXHAUSTED".to_owned()),
        limit_triggered: Some("MUTATION_BUDGET_EXHAUSTED".to_owned()),
        ..operation(7, "edit", night)
    });
    let story = teller.finish();
    expect![[r#"
        Envelope env_1 "fix the parser" in notes
        Opened 2026-03-01T23:59:00.000Z, closed as failed at 2026-03-02T00:05:30.500Z after 7 min: its mutations were used up.
        The repository was at aaaa before, and at bbbb after.
        Limits: 3 of 3 mutations, 2 test runs (no limit), at most 600 s.
        7 operations, which took 10 ms in total; 3 were refused or failed. The outcome of 2 is unknown: the host ended during the call.

        What happened:
          23:59:10  #1     edit by ada, 2 times: done
          2026-03-02T00:01:00  #3     test_run by ada: TESTS_FAILED
          2026-03-02T00:01:00  #4     edit: outcome unknown
          2026-03-02T00:01:00  #5     test_run by ada: TESTS_FAILED
          2026-03-02T00:01:00  #6     edit: outcome unknown
          2026-03-02T00:01:00  #7     edit by ada: MUTATION_BUDGET_EXHAUSTED (its mutations were used up)

        Refused or failed, and why:
          TESTS_FAILED, 2 times: test_run (#3 to #5)
          MUTATION_BUDGET_EXHAUSTED, once: edit (#7) — all mutations were used up; this closed the envelope

        Repeated failures:
          failure ffffffffffff 2 times over 1 mutation, by test_run: parser::reads

        Repeated changes:
          change mmmmmmmmmmmm 2 times over 1 mutation, by edit

        What was changed:
          src/parser.rs by 2 calls (edit)

        Its owner's closing note: gave up[31m"#]].assert_eq(&story.text(&envelope(), 0));
}

#[test]
fn a_question_of_a_policy_is_told_as_asked_and_not_as_refused() {
    let mut teller = Teller::default();
    let night = "2026-03-02T00:01:00.000Z";
    let said = |answer: &str| SaidByPolicy {
        policy: "careful".to_owned(),
        phase: "request".to_owned(),
        mode: "enforce".to_owned(),
        verdict: "ask".to_owned(),
        code: Some("NOT_ALLOWED".to_owned()),
        answer: Some(answer.to_owned()),
        ..SaidByPolicy::default()
    };
    for (seq, answer) in [(1, "none"), (2, "yes"), (3, "none"), (4, "no")] {
        teller.hear(&StoredOperation {
            success: Some(answer == "yes"),
            error_code: (answer != "yes").then(|| "NOT_ALLOWED".to_owned()),
            verdicts: vec![said(answer)],
            ..operation(seq, "edit", night)
        });
    }
    let story = teller.finish();
    assert_eq!((story.operations, story.asked, story.failed), (4, 2, 1));
    let text = story.text(&envelope(), 0);
    for line in [
        "; 1 was refused or failed. 2 ended because a policy asked the user.\n",
        "#1     edit by ada: asked the user\n",
        "NOT_ALLOWED, once: edit (#4)",
        "careful asked about edit 4 times (NOT_ALLOWED)",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Row of a test run. A run by the host has a workspace and a test, such as `shop/lint`.
fn row(seq: i64, run: &str, result: Option<Ran>) -> TestRow {
    let named = run.split_once('/');
    let runs = named.zip(result).map(|((workspace, test), result)| TestRun {
        workspace: workspace.to_owned(),
        test: test.to_owned(),
        result,
    });
    TestRow {
        seq,
        envelope_id: if run.starts_with("part") { "env_2" } else { "env_1" }.to_owned(),
        workspace: Some(named.map_or("shop", |(workspace, _)| workspace).to_owned()),
        outcome: result.map(|result| StoredTestOutcome {
            result,
            runs: runs.into_iter().collect(),
            ..StoredTestOutcome::default()
        }),
        is_run: run != "claim",
        ..TestRow::default()
    }
}

/// Runs of test `default` of `shop`, in these states of the work tree, of which the last is the present one.
fn runs_in(rows: &[(&str, Option<Ran>)], now: &str) -> String {
    let rows = (1..).zip(rows).map(|(seq, (state, result))| TestRow {
        before: Some((*state).to_owned()),
        after: Some((*state).to_owned()),
        started: result.is_none().then(|| "default".to_owned()),
        ..row(
            seq,
            if result.is_none() {
                "unnamed"
            } else {
                "shop/default"
            },
            *result,
        )
    });
    let now = BTreeMap::from([("shop".to_owned(), now.to_owned())]);
    let runs = evidence::newest_runs("env_1", &rows.collect::<Vec<_>>(), &now);
    let lines = evidence::doubts(&runs, &[], Some("shop"));
    lines.join("\n")
}

#[test]
fn a_run_in_the_present_state_outweighs_newer_ones_in_others() {
    let (passed, failed) = (Some(Ran::Passed), Some(Ran::Failed));
    assert_eq!(runs_in(&[("A", passed), ("B", failed)], "A"), "");
    assert_eq!(
        runs_in(&[("A", passed), ("B", failed)], "B"),
        "the newest run of test default in shop (#2) did not pass: failed"
    );
    assert_eq!(
        runs_in(&[("A", failed), ("B", passed)], "A"),
        "test default did not pass in its last run on the current state of the work tree of shop (#1): failed"
    );
    assert_eq!(runs_in(&[("A", failed), ("B", passed), ("A", passed)], "A"), "");
    // A state in which nothing ran.
    assert_eq!(runs_in(&[("A", failed), ("B", passed)], "C"), "");
    assert_eq!(
        runs_in(&[("A", passed), ("B", failed)], "C"),
        "the newest run of test default in shop (#2) did not pass: failed"
    );
}

#[test]
fn only_the_same_test_settles_one_whose_host_died() {
    let told = |settling: &str| {
        let mut died = row(1, "unnamed", None);
        died.started = Some("slow".to_owned());
        let rows = [died, row(2, settling, Some(Ran::Passed))];
        let runs = evidence::newest_runs("env_1", &rows, &BTreeMap::new());
        evidence::doubts(&runs, &[], Some("shop")).join("\n")
    };
    assert_eq!(
        told("shop/default"),
        "the newest run of test slow in shop (#1) did not pass: outcome unknown"
    );
    assert_eq!(told("shop/slow"), "");
}

#[test]
fn a_failing_test_of_a_gate_is_told_with_its_numbers_and_message() {
    let told = |runs: &[(&str, Ran)]| {
        let runs = runs.iter().map(|(test, result)| TestRun {
            workspace: "shop".to_owned(),
            test: (*test).to_owned(),
            result: *result,
        });
        let row = TestRow {
            outcome: Some(StoredTestOutcome {
                result: Ran::Failed,
                failed: Some(2),
                total: Some(14),
                message: Some("adds: boom".to_owned()),
                runs: runs.collect(),
            }),
            ..row(1, "unnamed", None)
        };
        let runs = evidence::newest_runs("env_1", &[row], &BTreeMap::new());
        evidence::doubts(&runs, &[], Some("shop")).join("\n")
    };
    let (passed, failed) = (Ran::Passed, Ran::Failed);
    let of_default = "the newest run of test default in shop (#1) did not pass: failed 2";
    // One test under two names of its command.
    assert_eq!(
        told(&[("default", failed), ("default", failed)]),
        format!("{of_default} of 14: adds: boom")
    );
    assert_eq!(
        told(&[("default", failed), ("lint", passed)]),
        format!("{of_default}: adds: boom")
    );
    assert_eq!(
        told(&[("default", failed), ("lint", failed)]),
        "the newest run of test default in shop (#1) did not pass: failed\n\
         the newest run of test lint in shop (#1) did not pass: failed"
    );
}

#[test]
fn a_success_that_no_test_run_shows_is_told() {
    let told = |rows: &[(&str, Option<Ran>)], untested: &[Untested], state: State| {
        let rows: Vec<TestRow> = (1..)
            .zip(rows)
            .map(|(seq, (run, result))| row(seq, run, *result))
            .collect();
        let story = Story {
            tests: evidence::newest_runs("env_1", &rows, &BTreeMap::new()),
            untested: untested.to_vec(),
            ..Story::default()
        };
        let mut envelope = envelope();
        envelope.standing.state = state;
        let summary = story.summary(&envelope, 0);
        let lines: Vec<&str> = summary
            .lines()
            .filter_map(|line| line.strip_prefix("It was closed as a success, but "))
            .collect();
        let text = story.text(&envelope, 0);
        let all: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("It was closed as a success, but "))
            .collect();
        assert_eq!(all.get(..lines.len()), Some(&lines[..]));
        let more = all.len() - lines.len();
        let said = summary
            .lines()
            .find_map(|line| line.strip_prefix("The whole report has "));
        assert_eq!(
            said.is_some_and(|said| said.starts_with(&more.to_string())),
            more > 0
        );
        lines.join("\n")
    };
    let (passed, failed) = (Some(Ran::Passed), Some(Ran::Failed));
    let success = |rows: &[(&str, Option<Ran>)]| told(rows, &[], State::ClosedSuccess);
    let of_default = "the newest run of test default in shop (#1) did not pass: failed";
    let claimed = "no test that the host ran in shop has passed since the caller reported a failing test run (#1): failed";
    // Another command, another workspace and a claim prove nothing of the one that fails.
    assert_eq!(
        success(&[("shop/default", failed), ("shop/lint", passed)]),
        format!("{of_default}.")
    );
    assert_eq!(
        success(&[("shop/default", failed), ("js/default", passed)]),
        format!("{of_default}.")
    );
    assert_eq!(
        success(&[("shop/default", failed), ("claim", passed)]),
        format!("{of_default}; a passing run (#2) was only reported by the caller.")
    );
    assert_eq!(success(&[("shop/default", failed), ("shop/default", passed)]), "");
    assert_eq!(
        success(&[("part/default", failed)]),
        "the newest run of test default in part (#1, in child envelope env_2) did not pass: failed."
    );
    assert_eq!(success(&[("claim", failed)]), format!("{claimed}."));
    // The caller alone says that it is mended.
    assert_eq!(
        success(&[("claim", failed), ("claim", passed)]),
        format!("{claimed}; a passing run (#2) was only reported by the caller.")
    );
    assert_eq!(success(&[("claim", failed), ("shop/lint", passed)]), "");
    assert_eq!(success(&[("unnamed", None), ("shop/lint", passed)]), "");
    assert_eq!(
        success(&[("shop/default", Some(Ran::NoTests)), ("unnamed", None)]),
        "the newest test run in shop (#2) did not pass: outcome unknown.\n\
         the newest run of test default in shop (#1) did not pass: no tests."
    );
    let edited = |passed: Option<(&str, i64)>| Untested {
        workspace: "shop".to_owned(),
        test: passed.map(|(test, _)| test.to_owned()),
        edits: 2,
        passed_seq: passed.map(|(_, seq)| seq),
        in_run: None,
    };
    let success =
        |rows: &[(&str, Option<Ran>)], untested: &[Untested]| told(rows, untested, State::ClosedSuccess);
    let of_default =
        "test default was not run again after 2 edits of shop; its last run (#1), before these edits, passed";
    let default = Some(("default", 1));
    assert_eq!(
        success(&[("shop/default", passed)], &[edited(default)]),
        format!("{of_default}.")
    );
    // Neither another command nor a claim says anything about the edits.
    assert_eq!(
        success(
            &[("shop/default", passed), ("shop/lint", failed)],
            &[edited(default)]
        ),
        format!("the newest run of test lint in shop (#2) did not pass: failed.\n{of_default}.")
    );
    assert_eq!(
        success(&[("shop/default", passed), ("claim", passed)], &[edited(default)]),
        format!("{of_default}; a passing run (#2) was only reported by the caller.")
    );
    assert_eq!(
        success(&[("claim", passed)], &[edited(None)]),
        "the host ran no test in shop, although its work tree was edited; a passing run (#1) was only \
         reported by the caller."
    );
    assert_eq!(
        success(&[], &[edited(None)]),
        "no test ran in shop, although its work tree was edited."
    );
    // The envelope's own tests come first, then the newest.
    let many = ["shop/a", "shop/default", "shop/b", "notes/default", "js/default"];
    let many = many.map(|run| (run, failed));
    let lines = success(&many, &[]);
    let tests: Vec<&str> = lines
        .lines()
        .map(|line| line.split(['(', ')']).nth(1).unwrap())
        .collect();
    assert_eq!(tests, ["#4", "#5", "#3"]);
    assert_eq!(
        told(&[("shop/default", failed)], &[edited(None)], State::ClosedFailed),
        ""
    );
    assert_eq!(success(&[], &[]), "");
}

#[test]
fn an_envelope_whose_time_is_over_is_not_open() {
    let mut envelope = envelope();
    envelope.standing.state = State::Open;
    (envelope.closed_at, envelope.closed_by) = (None, None);
    let told = |envelope: &Envelope, boot_ms: i64| {
        let text = Story::default().text(envelope, boot_ms);
        let told = |line: &str, sign: &str| line.rsplit_once(sign).unwrap().1.to_owned();
        let mut lines = text.lines().skip(1);
        let opened = lines.next().unwrap().split_once(", ").unwrap().1.to_owned();
        let limits = lines.find(|line| line.starts_with("Limits:")).unwrap();
        format!("{opened} {}", told(limits, ", "))
    };
    assert_eq!(told(&envelope, 599_000), "still open. 599 of 600 s.");
    envelope.over_boot_ms = Some(600_000);
    for (state, by, expected) in [
        (
            State::ClosedFailed,
            "DURATION_EXCEEDED",
            "closed as failed: its time ran out. at most 600 s.",
        ),
        (
            State::ClosedInterrupted,
            "PARENT_CLOSED",
            "closed as interrupted: the time of a parent envelope ran out. at most 600 s.",
        ),
    ] {
        envelope.standing.state = state;
        envelope.closed_by = Some(by.to_owned());
        assert_eq!(told(&envelope, 999_000), expected);
    }
}

#[test]
fn calls_of_another_workspace_and_parts_and_circles_are_named() {
    let mut teller = Teller::default();
    for (seq, workspace) in [(1, "notes"), (2, "js"), (3, "js"), (4, "notes")] {
        teller.hear(&StoredOperation {
            workspace: Some(workspace.to_owned()),
            failure_fingerprint: Some("f".repeat(64)),
            ..operation(seq, "test_run", "2026-03-01T23:59:10.000Z")
        });
    }
    let mut story = teller.finish();
    story.circles = vec![Circle {
        workspace: "js".to_owned(),
        count: 2,
        period: 2,
    }];
    story.parts = vec![Part {
        envelope_id: "env_2".to_owned(),
        state: "CLOSED_INTERRUPTED".to_owned(),
        closed_by: Some("PARENT_CLOSED".to_owned()),
        test_runs: 1,
        ..Part::default()
    }];
    let text = story.text(&envelope(), 0);
    for line in [
        "#1     test_run by ada: done",
        "#2     test_run in js by ada, 2 times: done",
        "failure ffffffffffff 2 times over 3 mutations, by test_run",
        "failure ffffffffffff 2 times over 1 mutation in js, by test_run",
        "js returned to an earlier state 2 times, the last time after 2 edits",
        "env_2 as interrupted (its parent envelope was closed), 0 mutations, 1 test run, 0 observed edits",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn what_repeats_is_counted_in_edits_where_somebody_saw_them() {
    let mut repeated = Repeated {
        fingerprint: "f".repeat(64),
        workspace: Some("js".to_owned()),
        count: 7,
        mutations_between: 0,
        edits_between: Some(6),
        first_seq: 1,
        last_seq: 13,
        tools: BTreeSet::from(["test_run".to_owned()]),
        failing_tests: BTreeSet::new(),
    };
    let told = tell_repeated(&repeated, "failure", &envelope());
    assert_eq!(
        told,
        "failure ffffffffffff 7 times over 6 edits in js, by test_run"
    );
    repeated.edits_between = None;
    repeated.workspace = None;
    let told = tell_repeated(&repeated, "failure", &envelope());
    assert_eq!(told, "failure ffffffffffff 7 times over 0 mutations, by test_run");
}

#[test]
fn a_long_story_says_how_much_it_leaves_out() {
    let mut teller = Teller::default();
    for seq in 0..400 {
        let tool = if seq % 2 == 0 { "one" } else { "other" };
        teller.hear(&operation(seq, tool, "2026-03-01T23:59:10.000Z"));
    }
    let text = teller.finish().text(&envelope(), 0);
    assert!(text.contains("… and 250 more operations"), "{text}");
    assert!(text.len() < 40 << 10);
}
