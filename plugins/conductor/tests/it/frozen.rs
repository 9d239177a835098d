//! Plans of running jobs: whatever loosens them needs a person.

use serde_json::{Value, json};
use tollgate_sdk::{Action, Answer, TERMINAL};

use crate::cheats::{accepted_with, submit};
use crate::harness::{Bench, result, step};

fn running() -> Bench {
    let bench = Bench::with_repository().started(json!([
        step(
            "one",
            json!([{"gate": "file_exists", "paths": ["b.txt"]}, {"gate": "diff_max_lines", "max": 9}])
        ),
        step("two", json!([])),
    ]));
    bench.run("- job_next_step_prompt {}");
    bench.as_agent();
    bench
}

fn refine(edit: Value) -> (&'static str, Value) {
    ("plan_refine_steps", json!({"edits": [edit]}))
}

fn set(field: &str, value: Value) -> (&'static str, Value) {
    refine(json!({"op": "update", "step_id": "S1", "set": {field: value}}))
}

fn policies(name: &str, value: Value) -> (&'static str, Value) {
    ("job_update_policies", json!({"policies": {name: value}}))
}

/// Every way to be accepted more easily.
fn loosening() -> Vec<(&'static str, Value)> {
    vec![
        set("gates", json!([])),
        set(
            "gates",
            json!([{"gate": "file_exists", "paths": ["a.txt"]}, {"gate": "diff_max_lines", "max": 9}]),
        ),
        set(
            "gates",
            json!([{"gate": "file_exists", "paths": ["b.txt"]}, {"gate": "diff_max_lines", "max": 900}]),
        ),
        set("acceptance_criteria", json!(["it works"])),
        set("required_evidence", json!({"summary_of_it": "string"})),
        set("instruction_prompt", json!("Do nothing.")),
        set("max_attempts", json!(50)),
        refine(json!({"op": "remove", "step_id": "S1"})),
        refine(json!({"op": "remove", "step_id": "S2"})),
        policies("require_devlog_per_step", json!(false)),
        policies("max_retries_per_step", json!(50)),
        policies("commit_message_template", json!("{summary}")),
        ("step_approve", json!({"step_id": "S1", "approved_by": "Ada"})),
    ]
}

#[test]
fn a_client_alone_cannot_loosen_anything() {
    for (tool, arguments) in loosening() {
        let bench = running();
        let before = bench.run("job_get {\"step_id\": \"S1\"} ? steps step policies");
        let refused = bench.call(tool, arguments.clone()).unwrap_err();
        assert_eq!(refused.code, "PERSON_REQUIRED", "{tool} {arguments}");
        assert!(refused.remediation.contains(&format!("tollgate call {tool}")));
        assert_eq!(
            bench.run("job_get {\"step_id\": \"S1\"} ? steps step policies"),
            before
        );
        // An answer that nobody asked for is none.
        let allow = Answer {
            key: "consent".to_owned(),
            action: Action::Accept,
            content: json!({"allow": true}),
        };
        bench.session.set_answers(vec![allow.clone()], None);
        assert_eq!(
            bench.call(tool, arguments.clone()).unwrap_err().code,
            "PERSON_REQUIRED"
        );
        let state = refused.asking.unwrap().state.unwrap();
        let no = Answer {
            content: json!({"allow": false}),
            ..allow.clone()
        };
        bench.session.set_answers(vec![no], Some(&state));
        assert_eq!(
            bench.call(tool, arguments.clone()).unwrap_err().code,
            "PERSON_DECLINED"
        );
        bench.session.set_answers(vec![allow], Some(&state));
        bench.call(tool, arguments).unwrap();
    }
}

#[test]
fn a_terminal_without_an_answer_allows_nothing() {
    for (tool, arguments) in loosening() {
        let bench = running();
        bench.session.set_client(TERMINAL);
        let refused = bench.call(tool, arguments.clone()).unwrap_err();
        assert_eq!(refused.code, "PERSON_REQUIRED", "{tool} {arguments}");
        // Names that clients give themselves.
        for name in ["tollgate call", "claimed:tollgate terminal"] {
            bench.session.set_client(name);
            let refused = bench.call(tool, arguments.clone()).unwrap_err();
            assert_eq!(refused.code, "PERSON_REQUIRED", "{name}: {tool} {arguments}");
        }
    }
}

#[test]
fn an_answer_allows_the_change_that_was_asked_about_and_no_other() {
    let bench = running();
    let (tool, small) = set("acceptance_criteria", json!(["it works"]));
    let state = bench
        .call(tool, small)
        .unwrap_err()
        .asking
        .unwrap()
        .state
        .unwrap();
    let allow = Answer {
        key: "consent".to_owned(),
        action: Action::Accept,
        content: json!({"allow": true}),
    };
    bench.session.set_answers(vec![allow], Some(&state));
    let (tool, large) = set("gates", json!([]));
    assert_eq!(bench.call(tool, large).unwrap_err().code, "PERSON_REQUIRED");
}

#[test]
fn a_person_at_a_terminal_may_and_it_is_logged_with_before_and_after() {
    let bench = running();
    bench.as_person();
    let (tool, arguments) = set("gates", json!([]));
    bench.reply(tool, arguments);
    let (tool, arguments) = policies("max_retries_per_step", json!(5));
    bench.reply(tool, arguments);
    bench.as_agent();
    let changes = bench.plan_changes();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(
        changes[0].contains("a person at the terminal: S1.gates: [{\"gate\":\"file_exists\""),
        "{changes:?}"
    );
    assert!(changes[0].ends_with("becomes []"), "{changes:?}");
    assert!(
        changes[1].ends_with("policy max_retries_per_step: 2 becomes 5"),
        "{changes:?}"
    );
    let exported = bench
        .reply("job_export_bundle", json!({"format": "md"}))
        .to_string();
    assert!(exported.contains("policy max_retries_per_step: 2 becomes 5"));
}

#[test]
fn tightening_is_free_and_logged() {
    let bench = running();
    let (tool, arguments) = set(
        "gates",
        json!([
            {"gate": "file_exists", "paths": ["b.txt", "c.txt"]}, {"gate": "diff_max_lines", "max": 5},
            {"gate": "criteria_checklist_complete"},
        ]),
    );
    bench.reply(tool, arguments);
    let (tool, arguments) = refine(json!({"op": "insert", "after": "S2", "step": step("three", json!([]))}));
    bench.reply(tool, arguments);
    let (tool, arguments) = policies("evidence_schema_mode", json!("strict"));
    bench.reply(tool, arguments);
    let view = bench.reply("job_get", json!({}));
    let changes = view["plan_changes"].to_string();
    for part in [
        "plan changed: S1.gates",
        "S3 \\\"three\\\" is added",
        "evidence_schema_mode",
    ] {
        assert!(changes.contains(part), "{part}: {changes}");
    }
}

#[test]
fn pausing_and_resuming_gives_no_new_attempts() {
    let bench = running();
    let not_met = || {
        let mut arguments = result("S1");
        arguments["model_claim"] = json!("NOT_MET");
        bench.reply("job_submit_step_result", arguments)
    };
    not_met();
    bench.run("- job_pause {}\n- job_resume {}");
    assert_eq!(
        bench.run("job_next_step_prompt {} ? attempts_left"),
        "ok attempts_left=2\n"
    );
    not_met();
    assert_eq!(not_met()["status"], json!("PAUSED"));
    assert_eq!(
        bench.call("job_resume", json!({})).unwrap_err().code,
        "PERSON_REQUIRED"
    );
    bench.as_person();
    bench.reply("job_resume", json!({}));
    assert_eq!(
        bench.run("job_next_step_prompt {} ? attempts_left"),
        "ok attempts_left=3\n"
    );
}

#[test]
fn approvals_of_a_bundle_do_not_count() {
    let bench = Bench::with_repository().started(json!([step("one", json!([{"gate": "human_approval"}]))]));
    bench.run("- job_next_step_prompt {}");
    bench.as_person();
    bench.reply("step_approve", json!({"step_id": "S1", "approved_by": "Ada"}));
    bench.as_agent();
    let exported = bench.reply("job_export_bundle", json!({"format": "json"}));
    let bundle: Value = serde_json::from_str(exported["content"].as_str().unwrap()).unwrap();
    // Without a person a bundle replaces no frozen plan.
    let refused = bench.call("job_import", json!({"bundle": bundle})).unwrap_err();
    assert_eq!(refused.code, "PERSON_REQUIRED");
    bench.as_person();
    let imported = bench.reply("job_import", json!({"bundle": bundle}));
    let view = bench.reply("job_get", json!({"job_id": imported["job_id"]}));
    assert_eq!(view["steps"][0]["approved"], json!(false), "{view}");
    assert!(
        view["plan_changes"].to_string().contains("imported as EXECUTING"),
        "{view}"
    );
}

/// A running job whose first step leaves the tests alone.
fn guarded() -> Bench {
    let mut first = step("one", json!([{"gate": "tests_unchanged"}]));
    first["expected_outputs"] = json!(["a report"]);
    let bench = Bench::with_repository().started(json!([first, step("two", json!([]))]));
    bench.run("- job_next_step_prompt {}");
    bench.as_agent();
    bench
}

#[test]
fn texts_that_are_added_after_the_start_open_no_files() {
    for (field, text) in [
        (
            "acceptance_criteria",
            json!(["it works", "it is tested", ".envrc and iniconfig.py are there"]),
        ),
        (
            "instruction_prompt",
            json!("Do this: one. Write .envrc and iniconfig.py."),
        ),
        (
            "gates",
            json!([{"gate": "tests_unchanged"}, {"gate": "changed_files_allowlist", "paths": [".envrc", "iniconfig.py"]}]),
        ),
        (
            "gates",
            json!([{"gate": "tests_unchanged"}, {"gate": "file_exists", "paths": [".envrc", "iniconfig.py"]}]),
        ),
    ] {
        let bench = guarded();
        let (tool, arguments) = set(field, text);
        bench.reply(tool, arguments);
        bench.run("- job_next_step_prompt {}");
        bench.write(".envrc", "x\n");
        bench.write("iniconfig.py", "x = 1\n");
        let reasons = submit(&bench, json!({}));
        for path in [".envrc", "iniconfig.py"] {
            assert!(reasons.contains(path), "{field} {path}: {reasons}");
        }
    }
}

#[test]
fn outputs_that_name_files_need_a_person_once_a_job_runs() {
    let bench = guarded();
    for named in ["iniconfig.py", "conftest.py with fixtures", "Makefile", "src/**"] {
        let (tool, arguments) = set("expected_outputs", json!(["a report", named]));
        assert_eq!(
            bench.call(tool, arguments).unwrap_err().code,
            "PERSON_REQUIRED",
            "{named}"
        );
    }
    let (tool, arguments) = set("expected_outputs", json!(["a report", "a table of the results"]));
    bench.reply(tool, arguments);
    bench.write("iniconfig.py", "x = 1\n");
    bench.write("conftest.py", "x = 1\n");
    bench.run("- job_next_step_prompt {}");
    bench.as_person();
    let outputs = json!(["a report", "a table of the results", "iniconfig.py"]);
    let (tool, arguments) = set("expected_outputs", outputs);
    bench.reply(tool, arguments);
    bench.as_agent();
    bench.run("- job_next_step_prompt {}");
    let reasons = submit(&bench, json!({}));
    assert!(
        reasons.contains("conftest.py") && !reasons.contains("iniconfig.py"),
        "{reasons}"
    );
    // Later edits without a person keep what a person allowed.
    let criteria = json!(["it works", "it is tested", "conftest.py is there"]);
    let (tool, arguments) = set("acceptance_criteria", criteria);
    bench.reply(tool, arguments);
    bench.run("- job_next_step_prompt {}");
    std::fs::remove_file(bench.path("conftest.py")).unwrap();
    let mut arguments = result("S1");
    arguments["evidence"]["criteria_checklist"]["c3"] = json!(true);
    let reply = bench.reply("job_submit_step_result", arguments);
    assert_eq!(reply["accepted"], json!(true), "{reply}");
}

#[test]
fn a_step_that_is_added_after_the_start_opens_no_files_by_itself() {
    let bench = guarded();
    let mut added = step("three", json!([{"gate": "tests_unchanged"}]));
    added["expected_outputs"] = json!(["iniconfig.py", "conftest.py"]);
    let (tool, arguments) = refine(json!({"op": "insert", "step": added}));
    bench.reply(tool, arguments);
    bench.run("- job_next_step_prompt {}");
    bench.write("iniconfig.py", "x = 1\n");
    bench.write("conftest.py", "x = 1\n");
    let reasons = submit(&bench, json!({"step_id": "S3"}));
    for path in ["conftest.py", "iniconfig.py"] {
        assert!(reasons.contains(path), "{path}: {reasons}");
    }
    bench.as_person();
    let outputs = json!({"expected_outputs": ["iniconfig.py", "conftest.py"]});
    let (tool, arguments) = refine(json!({"op": "update", "step_id": "S3", "set": outputs}));
    bench.reply(tool, arguments);
    bench.run("- job_next_step_prompt {}");
    accepted_with(&bench, json!({"step_id": "S3"}));
}
