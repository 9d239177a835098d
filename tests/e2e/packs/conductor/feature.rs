//! The conductor through the whole host: a feature from the idea to the end, on a real Python project, with
//! two clients and a server that is killed in between.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use expect_test::expect;
use serde_json::{Value, json};

use crate::gate::person;
use crate::harness::Session;
use crate::packs::conductor::project::{Project, step};

fn steps() -> Value {
    let tests = || json!({"gate": "tests_passed", "command": ["default"]});
    let mut checkpoint = step(
        "Checkpoint: run the full tests, update the docs, suggest cleanup",
        &["the full suite passes", "README mentions the command"],
        json!([tests(), {"gate": "no_uncommitted_changes"}, {"gate": "human_approval"}]),
    );
    checkpoint["checkpoint"] = json!(true);
    json!([
        step(
            "Find where CLI commands are registered",
            &["the place is named"],
            json!([])
        ),
        step(
            "Add the command skeleton with its help text",
            &["`report export` is known", "the help mentions it"],
            json!([tests(), {"gate": "changed_files_allowlist", "paths": ["report/*.py"]}, {"gate": "commit_exists"}]),
        ),
        step(
            "Implement the CSV export",
            &["fields with commas are quoted", "the header is there"],
            json!([tests(), {"gate": "forbid_paths", "paths": ["report/data.py"]}]),
        ),
        step(
            "Add unit tests",
            &["the export is covered", "output is deterministic"],
            json!([tests(), {"gate": "changed_files_minimum", "min": 1}, {"gate": "file_exists", "paths": ["tests/test_export.py"]}]),
        ),
        checkpoint,
    ])
}

/// Client A: plans a job, and returns only its id.
pub(crate) async fn plan(session: &Session) -> String {
    let begun = session
        .ok(
            "conductor_init",
            json!({
                "title": "CSV export", "goal": "A CLI command that exports the report as CSV, with tests",
                "repo_root": "app",
                "policies": {"require_devlog_per_step": true, "require_tests_evidence": true, "allow_batch_commits": true,
                    "require_repo_snapshot_on_init": true},
            }),
        )
        .await;
    let job = begun["job_id"].as_str().unwrap().to_owned();
    assert!(begun["next_questions"].as_array().unwrap().len() > 3);
    assert_eq!(begun.get("warnings"), None, "{begun}");
    let answers = json!({"out_of_scope": ["other formats"], "target_environment": "Python 3, Linux", "tests_expected": ["unit tests"],
        "user_constraints": ["does not read code well"], "entrypoints": ["report/cli.py"], "key_files": ["report/cli.py"],
        "failure_modes": ["quoting by hand"], "hidden_dependencies": [], "smallest_proof": ["one row"], "decide_now": []});
    let call = async |tool: &str, mut arguments: Value| {
        arguments["job_id"] = json!(job);
        session.ok(tool, arguments).await
    };
    call("conductor_answer", json!({"answers": answers})).await;
    let map = call("repo_map_update", json!({})).await;
    assert_eq!(
        (&map["files"], &map["languages"][0]["missing"]),
        (&json!(6), &json!(0)),
        "{map}"
    );
    let dispatch = call("repo_map_query", json!({"importers_of": "report/cli.py"})).await;
    assert_eq!(dispatch["files"][0]["path"], "tests/test_cli.py", "{dispatch}");
    let map = "report/cli.py: `main` dispatches on argv\nreport/data.py: the rows";
    let map = call(
        "context_add_block",
        json!({"block_type": "REPO_MAP", "content": map}),
    )
    .await;
    call(
        "plan_set_deliverables",
        json!({"deliverables": ["`report export`", "tests", "README.md"]}),
    )
    .await;
    call(
        "plan_set_invariants",
        json!({"invariants": ["patches only", "tests must pass", "no new dependencies"]}),
    )
    .await;
    let mut proposed = steps();
    proposed[1]["context_refs"] = json!([map["context_id"]]);
    proposed[2]["required_evidence"] = json!({});
    call("plan_propose_steps", json!({"steps": proposed})).await;
    let refused = session.refused("job_set_ready", json!({"job_id": job})).await;
    let codes: Vec<_> = refused["blockers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gap| gap["code"].clone())
        .collect();
    assert_eq!(codes, ["DEFINITION_OF_DONE_MISSING", "STEP_EVIDENCE_MISSING"]);
    call(
        "plan_set_definition_of_done",
        json!({"definition_of_done": ["the suite passes", "README shows the command"]}),
    )
    .await;
    let next = &refused["blockers"][1]["next_call"];
    session.follow(next).await;
    let ready = call("job_set_ready", json!({})).await;
    assert_eq!(
        ready["warnings"],
        json!(["a person must approve steps with step_approve"])
    );
    job
}

/// Client B: knows only the id, and logs the replies.
struct Executor<'a> {
    session: Session,
    job: &'a str,
    log: String,
}

impl Executor<'_> {
    async fn call(&mut self, tool: &str, mut arguments: Value) -> Value {
        arguments["job_id"] = json!(self.job);
        self.session.ok(tool, arguments).await
    }

    /// Requests the prompt, submits a result, and logs the outcome.
    async fn submit(&mut self, files: Value, more: Value) -> Value {
        let prompt = self.call("job_next_step_prompt", json!({})).await;
        let criteria = prompt["acceptance_criteria"].as_array().unwrap().len();
        let checklist: Value = (1..=criteria)
            .map(|number| (format!("c{number}"), json!(true)))
            .collect();
        let mut arguments = json!({
            "step_id": prompt["step_id"], "model_claim": "MET", "summary": "did what the step asks for",
            "devlog_line": format!("{} done", prompt["step_id"].as_str().unwrap()),
            "evidence": {"changed_files": files, "commands_run": ["pytest -q"], "tests_run": ["pytest -q"], "tests_passed": true,
                "diff_summary": "see the files that are listed", "criteria_checklist": checklist,
                "invariants_checked": true},
        });
        for (key, value) in more.as_object().unwrap() {
            match key.as_str() {
                "evidence" => arguments["evidence"]
                    .as_object_mut()
                    .unwrap()
                    .extend(value.as_object().unwrap().clone()),
                _ => arguments[key] = value.clone(),
            }
        }
        let reply = self.call("job_submit_step_result", arguments).await;
        let reasons: Vec<String> = reply["rejection_reasons"]
            .as_array()
            .unwrap()
            .iter()
            .map(|reason| {
                reason
                    .as_str()
                    .unwrap()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(90)
                    .collect()
            })
            .collect();
        self.log += &format!(
            "{} {} {} {}\n",
            reply["step_id"].as_str().unwrap(),
            reply["next_action"].as_str().unwrap(),
            reply["missing_fields"],
            reasons.join("; ")
        );
        reply
    }

    async fn commit(&mut self, summary: &str, paths: Value) -> Value {
        self.call("git_commit", json!({"summary": summary, "paths": paths}))
            .await["commit_hash"]
            .clone()
    }
}

pub(crate) const SKELETON: &str = "def main(argv):\n    if argv == [\"count\"]:\n        from .data import ROWS\n        return str(len(ROWS))\n    if argv == [\"export\"]:\n        return \"\"\n    return \"usage: report count|export\"\n";
pub(crate) const EXPORT: &str = "import csv\nimport io\n\n\ndef export(rows):\n    out = io.StringIO()\n    writer = csv.DictWriter(out, [\"name\", \"total\"], lineterminator=\"\\n\")\n    writer.writeheader()\n    writer.writerows(rows)\n    return out.getvalue()\n";
const BROKEN_TEST: &str = "from report.export import export\n\n\ndef test_quotes():\n    assert export([{\"name\": \"b, c\", \"total\": 2}]) == \"name,total\\nb, c,2\\n\"\n";
pub(crate) const TEST: &str = "from report.export import export\n\n\ndef test_quotes():\n    assert export([{\"name\": \"b, c\", \"total\": 2}]) == 'name,total\\n\"b, c\",2\\n'\n";

#[tokio::test]
async fn the_example_runs_from_an_idea_to_a_finished_feature() {
    let project = Project::new();
    let planner = project.place.serve(&[]).await;
    let job = plan(&planner).await;
    planner.close().await;

    let mut executor = Executor {
        session: project.place.serve(&[]).await,
        job: &job,
        log: String::new(),
    };
    executor.call("job_start", json!({})).await;
    let first = json!({"evidence": {"notes": "report/cli.py dispatches on argv", "tests_run": [], "tests_passed": null}});
    executor
        .submit(json!([]), json!({"evidence": {"diff_summary": null}}))
        .await;
    executor.submit(json!([]), first).await;

    project.write("report/cli.py", SKELETON);
    project.write("notes.txt", "planning junk\n");
    executor.submit(json!(["report/cli.py"]), json!({})).await;
    std::fs::remove_file(project.root.join("notes.txt")).unwrap();
    // The server is killed and the client with it: the next one goes on by the id alone.
    executor.session.kill();
    executor.session = project.place.serve(&[]).await;
    let commit = executor.commit("export skeleton", json!(["report"])).await;
    executor
        .submit(json!(["report/cli.py"]), json!({"commit_hash": commit}))
        .await;

    project.write("report/export.py", EXPORT);
    executor
        .submit(json!(["report/export.py", "report/ghost.py"]), json!({}))
        .await;
    executor.submit(json!(["report/export.py"]), json!({})).await;

    project.write("tests/test_export.py", BROKEN_TEST);
    let not_met = json!({"model_claim": "NOT_MET", "evidence": {"tests_passed": false}});
    executor.submit(json!(["tests/test_export.py"]), not_met).await;
    // Claiming does not help: the gate runs the tests itself.
    let rejected = executor.submit(json!(["tests/test_export.py"]), json!({})).await;
    let draft = &rejected["mistake_draft"];
    let mut lesson = draft["arguments"].clone();
    lesson["lesson"] = json!("fields with commas are quoted");
    executor.session.ok("mistake_record", lesson).await;
    project.write("tests/test_export.py", TEST);
    executor.submit(json!(["tests/test_export.py"]), json!({})).await;

    project.write("README.md", "# report\n\n`report export` prints CSV.\n");
    executor.submit(json!(["README.md"]), json!({})).await;
    executor
        .commit(
            "export with tests and docs",
            json!(["report", "tests", "README.md"]),
        )
        .await;
    let approval = json!({"job_id": job, "step_id": "S5", "approved_by": "Ada"});
    person::approve(&project.place, &executor.session, &approval).await;
    let done = executor.submit(json!(["README.md"]), json!({})).await;
    assert_eq!(
        (&done["accepted"], &done["status"]),
        (&json!(true), &json!("COMPLETE")),
        "{done}"
    );
    expect![[r#"
        S1 RETRY [] diff_summary must be of type string, not null
        S1 NEXT_STEP_AVAILABLE [] 
        S2 RETRY [] gate changed_files_allowlist: changed outside of report/*.py: notes.txt; gate commit_exists: commit_hash is missing
        S2 NEXT_STEP_AVAILABLE [] 
        S3 RETRY [] changed_files lists files that Git does not show as changed: report/ghost.py
        S3 NEXT_STEP_AVAILABLE [] 
        S4 RETRY [] the claim is NOT_MET: fix what is missing and submit again
        S4 RETRY [] gate tests_passed: `default`: it ended with exit code 1: …==========================
        S4 NEXT_STEP_AVAILABLE [] 
        S5 RETRY [] gate no_uncommitted_changes: not committed: README.md, report/export.py, tests/test_export; gate human_approval: nobody has approved the step
        S5 JOB_COMPLETE [] 
    "#]].assert_eq(&executor.log);
    assert_eq!(
        project.git(&["log", "--format=%s", "-2"]),
        "S5: export with tests and docs\nS2: export skeleton"
    );

    let map = executor.call("repo_map_update", json!({})).await;
    assert_eq!(map["languages"][0]["missing"], 0, "{map}");
    let export = executor.call("job_export_bundle", json!({"format": "md"})).await;
    let document = export["content"].as_str().unwrap();
    for wanted in [
        "`report export`",
        "`report/export.py` (imported by ",
        "no new dependencies",
        "Prompt of S3",
        "fields with commas are quoted",
        "S4 done",
        "rejected at",
        "evidence_schema_mode",
    ] {
        assert!(document.contains(wanted), "{wanted} is missing from\n{document}");
    }
    executor.session.close().await;
}
