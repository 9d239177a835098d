//! Every gate with facts that meet it, facts that do not, and no facts at all.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use super::decide::{Said, unmet};
use super::known::{Change, Commit, CommitFacts, Facts, GitFacts, Presence, Run};
use super::{Gate, GateKind, GateSpec};
use crate::repo::reach::Reach;
use crate::store::job::Tally;

fn gate(spec: Value) -> Gate {
    let spec: GateSpec = serde_json::from_value(spec).unwrap();
    spec.parse().unwrap()
}

/// One of each kind, and the variants that take a command or a file.
fn gates() -> Vec<Gate> {
    [
        json!({"gate": "tests_passed"}),
        json!({"gate": "tests_passed", "command": ["pytest"]}),
        json!({"gate": "tests_fail"}),
        json!({"gate": "tests_fail", "command": ["pytest"]}),
        json!({"gate": "fail_to_pass"}),
        json!({"gate": "fail_to_pass", "command": ["pytest"]}),
        json!({"gate": "tests_unchanged"}),
        json!({"gate": "lint_passed"}),
        json!({"gate": "lint_passed", "command": ["pytest"]}),
        json!({"gate": "evidence_bool_true", "key": "reviewed"}),
        json!({"gate": "criteria_checklist_complete"}),
        json!({"gate": "changed_files_allowlist", "paths": ["src/**", "README.md"]}),
        json!({"gate": "forbid_paths", "paths": ["*.lock", "secret/**"]}),
        json!({"gate": "changed_files_minimum", "min": 2}),
        json!({"gate": "file_exists", "paths": ["a", "b"]}),
        json!({"gate": "file_not_exists", "paths": ["c", "d"]}),
        json!({"gate": "file_contains", "path": "out.json", "contains": "["}),
        json!({"gate": "file_lacks", "path": "out.json", "regex": "[a-z]"}),
        json!({"gate": "reachable", "paths": ["a"]}),
        json!({"gate": "no_uncommitted_changes"}),
        json!({"gate": "diff_max_lines", "max": 10}),
        json!({"gate": "diff_min_lines", "min": 5}),
        json!({"gate": "commit_exists"}),
        json!({"gate": "command_exit_0", "command": ["pytest"]}),
        json!({"gate": "command_output_contains", "command": ["pytest"], "contains": "passed"}),
        json!({"gate": "command_output_regex", "command": ["pytest"], "regex": "[0-9]+ passed"}),
        json!({"gate": "json_schema_valid", "key": "report", "schema": {"type": "object", "required": ["rows"]}}),
        json!({"gate": "json_schema_valid", "path": "out.json", "schema": {"type": "array"}}),
        json!({"gate": "human_approval"}),
    ]
    .into_iter()
    .map(gate)
    .collect()
}

fn change(path: &str, lines: u64) -> Change {
    Change {
        path: path.to_owned(),
        lines,
        ..Change::default()
    }
}

fn facts(git: GitFacts, there: [bool; 4], run: Run, content: &str, approved: bool) -> Facts {
    let names = ["a", "b", "c", "d"].map(str::to_owned);
    let there = there.map(|there| if there { Presence::File } else { Presence::Missing });
    let red = Tally {
        failed: true,
        ..Tally::default()
    };
    let reach = Reach {
        lone: [].into(),
        files: ["a".to_owned()].into(),
        apart: if approved {
            [].into()
        } else {
            ["a".to_owned()].into()
        },
    };
    Facts {
        git: Some(Ok(git)),
        paths: names.into_iter().zip(there.map(Ok)).collect(),
        contents: BTreeMap::from([("out.json".to_owned(), Ok(content.to_owned()))]),
        commands: BTreeMap::from([(vec!["pytest".to_owned()], Ok(run))]),
        approved,
        before: BTreeMap::from([("pytest".to_owned(), red)]),
        unreachable: Some(Ok(reach)),
        ..Facts::default()
    }
}

fn verdicts(evidence: &Value, facts: &Facts) -> String {
    let said = Said {
        evidence: evidence.as_object().unwrap(),
        commit: Some("abcdef1"),
        criteria: 2,
    };
    let mut log = String::new();
    for gate in gates() {
        match unmet(&gate, &said, facts) {
            None => {
                let _ = writeln!(log, "{}: holds", gate.kind());
            }
            Some(reason) => {
                let _ = writeln!(log, "{reason}");
            }
        }
    }
    log
}

#[test]
fn there_is_a_case_for_every_kind() {
    let seen: Vec<GateKind> = gates().iter().map(Gate::kind).collect();
    for kind in GateKind::ALL {
        assert!(seen.contains(kind), "{kind}");
    }
}

#[test]
fn all_hold() {
    let evidence = json!({"tests_run": ["pytest"], "tests_passed": true, "lint_run": true, "lint_passed": true,
        "reviewed": true, "criteria_checklist": {"c1": true, "c2": true}, "report": {"rows": 3}});
    let git = GitFacts {
        changed: vec![change("src/a.py", 4), change("README.md", 3)],
        commit: Some(CommitFacts {
            standing: Commit::New,
            ..CommitFacts::default()
        }),
        ..GitFacts::default()
    };
    let run = Run {
        exit: Some(0),
        output: "12 passed\n".to_owned(),
        ..Run::default()
    };
    let met = verdicts(
        &evidence,
        &facts(git, [true, true, false, false], run, "[1]", true),
    );
    let red = |line: &&str| line.contains("tests_fail: ");
    assert!(
        met.lines()
            .filter(|line| !red(line))
            .all(|line| line.ends_with(": holds")),
        "{met}"
    );
    assert!(
        met.lines()
            .filter(red)
            .all(|line| line.contains("tests_passed is not false")),
        "{met}"
    );
}

#[test]
fn none_holds() {
    let evidence = json!({"tests_run": ["pytest"], "tests_passed": false, "lint_run": true, "lint_passed": false,
        "reviewed": "yes", "criteria_checklist": {"c1": true, "c2": false}, "report": {"columns": 3}});
    let many = (0..12).map(|number| change(&format!("secret/{number}\n"), 1));
    let git = GitFacts {
        changed: many.clone().collect(),
        uncommitted: many.map(|change| change.path).collect(),
        commit: Some(CommitFacts {
            standing: Commit::Elsewhere,
            ..CommitFacts::default()
        }),
        ..GitFacts::default()
    };
    let run = Run {
        exit: Some(1),
        output: "1 failed\n".to_owned(),
        ..Run::default()
    };
    let all = facts(git, [true, false, false, true], run, "{\"a\": 1}", false);
    expect![[r#"
        gate tests_passed: tests_passed is false
        gate tests_passed: tests_passed is false
        tests_fail: holds
        gate tests_fail: `pytest`: the run broke before a test failed; let the tests start and fail, for example by importing what is missing inside the test: 1 failed
        gate fail_to_pass: tests_passed is false
        gate fail_to_pass: tests_passed is false
        tests_unchanged: holds
        gate lint_passed: lint_passed is false
        gate lint_passed: lint_passed is false
        gate evidence_bool_true: reviewed is "yes"
        gate criteria_checklist_complete: criteria_checklist is not true for c2
        gate changed_files_allowlist: changed outside of src/**, README.md: "secret/0\n", "secret/1\n", "secret/2\n", "secret/3\n", "secret/4\n", "secret/5\n", "secret/6\n", "secret/7\n", "secret/8\n", "secret/9\n", "secret/10\n", "secret/11\n"
        gate forbid_paths: these must not change: "secret/0\n", "secret/1\n", "secret/2\n", "secret/3\n", "secret/4\n", "secret/5\n", "secret/6\n", "secret/7\n", "secret/8\n", "secret/9\n", "secret/10\n", "secret/11\n"
        changed_files_minimum: holds
        gate file_exists: b does not exist
        gate file_not_exists: d exists
        gate file_contains: out.json does not contain "["
        gate file_lacks: out.json contains something that matches /[a-z]/
        gate reachable: a cannot be reached from any entry point
        gate no_uncommitted_changes: not committed: "secret/0\n", "secret/1\n", "secret/2\n", "secret/3\n", "secret/4\n", "secret/5\n", "secret/6\n", "secret/7\n", "secret/8\n", "secret/9\n", "secret/10\n", "secret/11\n"
        gate diff_max_lines: 12 lines changed; at most 10 may change
        diff_min_lines: holds
        gate commit_exists: commit abcdef1 is not part of the current branch
        gate command_exit_0: `pytest`: it ended with exit code 1: 1 failed
        gate command_output_contains: `pytest`: it ended with exit code 1: 1 failed
        gate command_output_regex: `pytest`: it ended with exit code 1: 1 failed
        gate json_schema_valid: report does not match the schema: "rows" is a required property at /
        gate json_schema_valid: out.json does not match the schema: {"a":1} is not of type "array" at /
        gate human_approval: nobody has approved the step
    "#]].assert_eq(&verdicts(&evidence, &all));
    let few = facts(GitFacts::default(), [false; 4], Run::default(), "no json", false);
    expect![[r#"
        gate tests_passed: tests_run lists no tests
        gate tests_passed: tests_run lists no tests
        gate tests_fail: tests_run lists no tests
        gate tests_fail: tests_run lists no tests
        gate fail_to_pass: tests_run lists no tests
        gate fail_to_pass: tests_run lists no tests
        tests_unchanged: holds
        gate lint_passed: lint_run is missing
        gate lint_passed: lint_run is missing
        gate evidence_bool_true: reviewed is missing
        gate criteria_checklist_complete: criteria_checklist is not true for c1, c2
        changed_files_allowlist: holds
        forbid_paths: holds
        gate changed_files_minimum: 0 files changed; at least 2 must change
        gate file_exists: a does not exist; b does not exist
        file_not_exists: holds
        gate file_contains: out.json does not contain "["
        gate file_lacks: out.json contains something that matches /[a-z]/
        gate reachable: a cannot be reached from any entry point
        no_uncommitted_changes: holds
        diff_max_lines: holds
        gate diff_min_lines: 0 lines changed; at least 5 must change
        gate commit_exists: commit abcdef1 is not in the repository
        gate command_exit_0: `pytest`: it was killed: 
        gate command_output_contains: `pytest`: it was killed: 
        gate command_output_regex: `pytest`: it was killed: 
        gate json_schema_valid: report is missing
        gate json_schema_valid: out.json is not JSON: expected ident at line 1 column 2
        gate human_approval: nobody has approved the step
    "#]]
    .assert_eq(&verdicts(&json!({}), &few));
}

#[test]
fn without_a_grant_what_has_to_be_looked_up_fails_closed() {
    let why = || "workspace main is not granted".to_owned();
    let denied = Facts {
        git: Some(Err(why())),
        paths: BTreeMap::from(["a", "b", "c", "d"].map(|path| (path.to_owned(), Err(why())))),
        contents: BTreeMap::from([("out.json".to_owned(), Err(why()))]),
        commands: BTreeMap::from([(vec!["pytest".to_owned()], Err("not allowed: pytest".to_owned()))]),
        approved: true,
        ..Facts::default()
    };
    let evidence = json!({"tests_run": ["pytest"], "tests_passed": true, "lint_run": true, "lint_passed": true,
        "reviewed": true, "criteria_checklist": {"c1": true, "c2": true}, "report": {"rows": 3}});
    for said in [
        verdicts(&evidence, &denied),
        verdicts(
            &evidence,
            &Facts {
                approved: true,
                ..Facts::default()
            },
        ),
    ] {
        let held: Vec<&str> = said
            .lines()
            .filter_map(|line| line.strip_suffix(": holds"))
            .collect();
        assert_eq!(
            held,
            [
                "tests_passed",
                "fail_to_pass",
                "lint_passed",
                "evidence_bool_true",
                "criteria_checklist_complete",
                "json_schema_valid",
                "human_approval"
            ],
            "{said}"
        );
    }
}

#[test]
fn gates_that_cannot_be_are_refused_with_every_fault() {
    let mut log = String::new();
    for spec in [
        json!({"gate": "tests_pass"}),
        json!({"gate": "human_approval", "min": 1, "paths": ["a"]}),
        json!({"gate": "file_exists", "paths": ["../a", "/etc/passwd", "ok"]}),
        json!({"gate": "forbid_paths", "paths": ["a[", "b"]}),
        json!({"gate": "command_output_regex", "regex": "("}),
        json!({"gate": "json_schema_valid", "path": "a", "key": "b"}),
        json!({"gate": "json_schema_valid", "path": "a", "schema": {"type": 3}}),
        json!({"gate": "diff_max_lines"}),
        json!({"gate": "command_exit_0", "command": [""]}),
    ] {
        let spec: GateSpec = serde_json::from_value(spec).unwrap();
        let _ = writeln!(log, "{:?}", spec.parse().unwrap_err());
    }
    expect![[r#"
        [Unknown("\"tests_pass\" is not a gate; use one of tests_passed, tests_fail, fail_to_pass, tests_unchanged, lint_passed, evidence_bool_true, criteria_checklist_complete, changed_files_allowlist, forbid_paths, changed_files_minimum, file_exists, file_not_exists, file_contains, file_lacks, reachable, no_uncommitted_changes, diff_max_lines, diff_min_lines, commit_exists, command_exit_0, command_output_contains, command_output_regex, json_schema_valid, human_approval")]
        [Parameter("human_approval does not accept paths"), Parameter("human_approval does not accept min")]
        [Parameter("file_exists has a path outside the repository: \"../a\""), Parameter("file_exists has a path outside the repository: \"/etc/passwd\"")]
        [Parameter("forbid_paths has an invalid glob: error parsing glob 'a[': unclosed character class; missing ']'")]
        [Parameter("command_output_regex has an invalid regex: found open group without closing ')'"), Parameter("command_output_regex requires a command: a program and its arguments")]
        [Parameter("json_schema_valid requires schema"), Parameter("json_schema_valid requires either path or key")]
        [Parameter("json_schema_valid has an invalid schema: 3 is not valid under any of the schemas listed in the 'anyOf' keyword")]
        [Parameter("diff_max_lines requires max")]
        [Parameter("command_exit_0 requires a command: a program and its arguments")]
    "#]].assert_eq(&log);
}
