//! Stories, as they are told.

use expect_test::expect;
use tollgate_core::envelope::{Limits, Standing};

use super::super::Teller;
use super::*;
use crate::storage::{Outcome, Ran, StoredOperation};

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
        last_mutation_fingerprint: None,
        last_failure_fingerprint: None,
        host_id: "h".to_owned(),
        connection: "c".to_owned(),
        identity: None,
        parent: None,
        closed_actor: None,
        detached_until_ms: None,
        index_version: None,
        restart_moved: None,
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
        Opened 2026-03-01T23:59:00.000Z, closed 2026-03-02T00:05:30.500Z after 7 min, as failed: its mutations were used up.
        The repository was at aaaa before, and at bbbb after.
        Limits: 3 of 3 mutations, 2 test runs (no limit), 600 s at most.
        7 operations, which took 10 ms together; 3 were refused or failed. The outcome of 2 is unknown: the host ended meanwhile.

        What happened:
          23:59:10  #1     edit by ada, 2 times: done
          2026-03-02T00:01:00  #3     test_run by ada: TESTS_FAILED
          2026-03-02T00:01:00  #4     edit: outcome unknown
          2026-03-02T00:01:00  #5     test_run by ada: TESTS_FAILED
          2026-03-02T00:01:00  #6     edit: outcome unknown
          2026-03-02T00:01:00  #7     edit by ada: MUTATION_BUDGET_EXHAUSTED (its mutations were used up)

        What was refused or failed, and why:
          TESTS_FAILED, 2 times: test_run (#3 to #5)
          MUTATION_BUDGET_EXHAUSTED, once: edit (#7) — all mutations were used; this closed the envelope

        What failed in the same way again:
          failure ffffffffffff 2 times over 1 mutation, by test_run: parser::reads

        What was changed in the same way again:
          change mmmmmmmmmmmm 2 times over 1 mutation, by edit

        What was changed:
          src/parser.rs by 2 calls (edit)

        Its owner's last words: gave up[31m"#]].assert_eq(&story.text(&envelope(), 0));
}

#[test]
fn a_success_that_no_test_run_shows_is_told() {
    let closed = |state: State, test_runs: i64, edits: i64| {
        let mut envelope = envelope();
        envelope.standing.state = state;
        (envelope.standing.test_runs, envelope.standing.edits) = (test_runs, edits);
        envelope
    };
    let run = |seq: i64, result: Option<Ran>| StoredOperation {
        op_type: "test_run".to_owned(),
        success: result.map(|_| true),
        outcome: result.map(|result| Outcome {
            result,
            ..Outcome::default()
        }),
        ..operation(seq, "test_run", "2026-03-01T23:59:10.000Z")
    };
    let told = |runs: &[Option<Ran>], envelope: &Envelope| {
        let mut teller = Teller::default();
        for (seq, result) in (1..).zip(runs) {
            teller.hear(&run(seq, *result));
        }
        teller.hear(&operation(9, "edit", "2026-03-01T23:59:20.000Z"));
        let story = teller.finish();
        let summary = story.summary(envelope, 0);
        let lines: Vec<&str> = summary
            .lines()
            .filter(|line| line.contains("as a success, but"))
            .collect();
        assert_eq!(
            story.text(envelope, 0).contains("as a success, but"),
            !lines.is_empty()
        );
        lines.join("\n")
    };
    let success = closed(State::ClosedSuccess, 2, 1);
    assert_eq!(
        told(&[Some(Ran::Passed), Some(Ran::Failed)], &success),
        "It was closed as a success, but its last test run (#2) did not pass: failed."
    );
    assert_eq!(
        told(&[Some(Ran::NoTests)], &success),
        "It was closed as a success, but its last test run (#1) did not pass: no tests."
    );
    assert_eq!(
        told(&[Some(Ran::Passed), None], &success),
        "It was closed as a success, but its last test run (#2) did not pass: outcome unknown."
    );
    assert_eq!(
        told(&[], &closed(State::ClosedSuccess, 0, 1)),
        "It was closed as a success, but no test ran in it, although its work tree was edited."
    );
    for (runs, envelope) in [
        (vec![Some(Ran::Failed), Some(Ran::Passed)], &success),
        (vec![], &closed(State::ClosedSuccess, 0, 0)),
        (vec![], &closed(State::ClosedSuccess, 1, 1)),
        (vec![Some(Ran::Failed)], &closed(State::ClosedFailed, 1, 1)),
    ] {
        assert_eq!(told(&runs, envelope), "");
    }
}

#[test]
fn what_repeats_is_counted_in_edits_where_somebody_saw_them() {
    let mut repeated = Repeated {
        fingerprint: "f".repeat(64),
        count: 7,
        mutations_between: 0,
        edits_between: Some(6),
        first_seq: 1,
        last_seq: 13,
        tools: BTreeSet::from(["test_run".to_owned()]),
        failing_tests: BTreeSet::new(),
    };
    let told = tell_repeated(&repeated, "failure");
    assert_eq!(told, "failure ffffffffffff 7 times over 6 edits, by test_run");
    repeated.edits_between = None;
    let told = tell_repeated(&repeated, "failure");
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
