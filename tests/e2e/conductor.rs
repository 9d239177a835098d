//! The conductor through the whole host: Document 6's example on a real Python project, and every tool.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use expect_test::expect;
use rmcp::model::GetPromptRequestParams;
use serde_json::{Value, json};

use crate::harness::{Place, Session};

/// A Python package without an export, with one test, in a repository of its own.
const PROJECT: &[(&str, &str)] = &[
    (".gitignore", "__pycache__/\n.pytest_cache/\n"),
    ("README.md", "# report\n"),
    ("report/__init__.py", ""),
    (
        "report/data.py",
        "ROWS = [{\"name\": \"a\", \"total\": 1}, {\"name\": \"b, c\", \"total\": 2}]\n",
    ),
    (
        "report/cli.py",
        "def main(argv):\n    if argv == [\"count\"]:\n        from .data import ROWS\n        return str(len(ROWS))\n    return \"usage: report count\"\n",
    ),
    (
        "tests/test_cli.py",
        "from report.cli import main\n\n\ndef test_count():\n    assert main([\"count\"]) == \"2\"\n",
    ),
];

/// A workspace `app` with that project, whose tests are pytest.
struct Project {
    place: Place,
    root: PathBuf,
}

impl Project {
    fn new() -> Project {
        let root = tempfile::tempdir().unwrap().keep();
        let python =
            std::env::var("TOLLGATE_TEST_PYTHON").expect("`cargo xtask test` sets TOLLGATE_TEST_PYTHON");
        let place = Place::with(&format!(
            "[workspaces.app]\npath = {root:?}\ngit = \"write\"\ntests.default = [{python:?}, \"-m\", \"pytest\", \"-q\", \"-p\", \"no:cacheprovider\"]\n"
        ));
        let project = Project { place, root };
        for (path, content) in PROJECT {
            project.write(path, content);
        }
        for arguments in [
            &["init", "--quiet", "--initial-branch=main"][..],
            &["config", "user.name", "Ada"],
            &["config", "user.email", "ada@example.org"],
            &["add", "."],
            &["commit", "--quiet", "-m", "first"],
        ] {
            project.git(arguments);
        }
        project
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .args(arguments)
            .current_dir(&self.root)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn step(title: &str, criteria: &[&str], gates: Value) -> Value {
    json!({
        "title": title,
        "instruction_prompt": format!("{title}. Touch nothing else."),
        "acceptance_criteria": criteria,
        "required_evidence": {"changed_files": "array", "commands_run": "array"},
        "remediation_prompt": "Undo what is unrelated, isolate the failing test, fix the least, run the tests again.",
        "gates": gates,
    })
}

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

/// Thread A: plans, and gives nothing away but the id.
async fn plan(session: &Session) -> String {
    let begun = session
        .ok(
            "conductor_init",
            json!({
                "title": "CSV export", "goal": "A CLI command that exports the report as CSV, with tests",
                "repo_root": "app",
                "policies": {"require_devlog_per_step": true, "require_tests_evidence": true, "allow_batch_commits": true},
            }),
        )
        .await;
    let job = begun["job_id"].as_str().unwrap().to_owned();
    assert!(begun["next_questions"].as_array().unwrap().len() > 3);
    assert_eq!(begun.get("warnings"), None, "{begun}");
    let answers = json!({"out_of_scope": ["other formats"], "target_environment": "Python 3, Linux", "tests_expected": ["unit tests"],
        "user_constraints": ["does not read code well"], "entrypoints": ["report/cli.py"], "key_files": ["report/cli.py"]});
    let call = async |tool: &str, mut arguments: Value| {
        arguments["job_id"] = json!(job);
        session.ok(tool, arguments).await
    };
    call("conductor_answer", json!({"answers": answers})).await;
    let map = "report/cli.py: `main` dispatches on argv\nreport/data.py: the rows";
    let map = call(
        "context_add_block",
        json!({"block_type": "REPO_MAP", "content": map}),
    )
    .await;
    call(
        "plan_set_deliverables",
        json!({"deliverables": ["`report export`", "tests", "README"]}),
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
    session
        .ok(next["tool"].as_str().unwrap(), next["arguments"].clone())
        .await;
    let ready = call("job_set_ready", json!({})).await;
    assert_eq!(
        ready["warnings"],
        json!(["a person has to approve steps with step_approve"])
    );
    job
}

/// Thread B: knows the id, and a log of what it was told.
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

    /// Asks for the prompt and submits; logs what became of it.
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
                "diff_summary": "see the files that are listed", "criteria_checklist": checklist},
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

const SKELETON: &str = "def main(argv):\n    if argv == [\"count\"]:\n        from .data import ROWS\n        return str(len(ROWS))\n    if argv == [\"export\"]:\n        return \"\"\n    return \"usage: report count|export\"\n";
const EXPORT: &str = "import csv\nimport io\n\n\ndef export(rows):\n    out = io.StringIO()\n    writer = csv.DictWriter(out, [\"name\", \"total\"], lineterminator=\"\\n\")\n    writer.writeheader()\n    writer.writerows(rows)\n    return out.getvalue()\n";
const BROKEN_TEST: &str = "from report.export import export\n\n\ndef test_quotes():\n    assert export([{\"name\": \"b, c\", \"total\": 2}]) == \"name,total\\nb, c,2\\n\"\n";
const TEST: &str = "from report.export import export\n\n\ndef test_quotes():\n    assert export([{\"name\": \"b, c\", \"total\": 2}]) == 'name,total\\n\"b, c\",2\\n'\n";

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
    executor
        .call("step_approve", json!({"step_id": "S5", "approved_by": "Ada"}))
        .await;
    let done = executor.submit(json!(["README.md"]), json!({})).await;
    assert_eq!(
        (&done["accepted"], &done["status"]),
        (&json!(true), &json!("COMPLETE")),
        "{done}"
    );
    expect![[r#""#]].assert_eq(&executor.log);
    assert_eq!(
        project.git(&["log", "--format=%s", "-2"]),
        "S5: export with tests and docs\nS2: export skeleton"
    );

    let export = executor.call("job_export_bundle", json!({"format": "md"})).await;
    let document = export["content"].as_str().unwrap();
    for wanted in [
        "`report export`",
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

#[tokio::test]
async fn prompts_are_listed_said_and_recorded() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let prompts = session.client().list_all_prompts().await.unwrap();
    let listed: Vec<String> = prompts
        .iter()
        .map(|prompt| {
            let arguments = prompt.arguments.iter().flatten();
            let arguments: Vec<_> = arguments
                .map(|argument| format!("{} {:?}", argument.name, argument.required))
                .collect();
            format!("{}({})", prompt.name, arguments.join(", "))
        })
        .collect();
    assert_eq!(
        listed,
        ["execute_job(job_id Some(true))", "plan_job(goal Some(true))"]
    );
    let ask = async |name: &str, arguments: Value| {
        let mut request = GetPromptRequestParams::new(name);
        request.arguments = arguments.as_object().cloned();
        match session.client().get_prompt(request).await {
            Ok(result) => serde_json::to_value(&result.messages[0].content).unwrap()["text"]
                .as_str()
                .unwrap()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
            Err(err) => err.to_string(),
        }
    };
    let mut log = String::new();
    for (name, arguments) in [
        ("plan_job", json!({"goal": "Export reports"})),
        ("plan_job", json!({})),
        ("execute_job", json!({"job_id": "JOB-NONE"})),
        ("job_get", json!({"job_id": "JOB-NONE"})),
    ] {
        log += &ask(name, arguments).await;
        log += "\n";
    }
    // A prompt is no tool.
    let called = session
        .client()
        .call_tool(crate::harness::params("plan_job", json!({"goal": "x"})))
        .await;
    log += &called.unwrap_err().to_string();
    session.close().await;
    expect![[r#""#]].assert_eq(&log);
    assert_eq!(
        place.ledger(),
        [
            "plan_job read ok",
            "plan_job read INVALID_ARGUMENTS",
            "execute_job read NOT_FOUND"
        ]
    );
}

/// The families of the pack.
const FAMILIES: &[&str] = &[
    "conductor_",
    "context_",
    "plan_",
    "job_",
    "step_",
    "devlog_",
    "decision_",
    "mistake_",
    "git_",
    "template_",
];

#[tokio::test]
async fn every_tool_answers_a_real_client() {
    let project = Project::new();
    let session = project.place.serve(&["--tier", "full"]).await;
    let listed = session.client().list_all_tools().await.unwrap();
    let of_pack = |name: &&str| FAMILIES.iter().any(|family| name.starts_with(family));
    let listed: BTreeSet<String> = listed
        .iter()
        .map(|tool| tool.name.as_ref())
        .filter(of_pack)
        .map(str::to_owned)
        .collect();
    let begun = session
        .ok(
            "conductor_init",
            json!({"title": "All", "goal": "Use everything", "repo_root": "app"}),
        )
        .await;
    let job = begun["job_id"].clone();
    let mut called = BTreeSet::from(["conductor_init".to_owned()]);
    let mut call = async |tool: &str, mut arguments: Value| {
        called.insert(tool.to_owned());
        if !matches!(tool, "job_list" | "job_import" | "template_list") {
            arguments["job_id"] = job.clone();
        }
        session.ok(tool, arguments).await
    };
    plan_with_everything(&mut call).await;
    project.write("report/new.py", "X = 1\n");
    execute_with_everything(&mut call).await;
    // The one way to end a job that this one did not take.
    let doomed = session
        .ok("conductor_init", json!({"title": "Doomed", "goal": "Fail"}))
        .await;
    session
        .ok(
            "job_fail",
            json!({"job_id": doomed["job_id"], "reason": "not needed"}),
        )
        .await;
    called.insert("job_fail".to_owned());
    session.close().await;
    assert_eq!(called, listed);
}

async fn plan_with_everything(call: &mut impl AsyncFnMut(&str, Value) -> Value) {
    call("conductor_next_questions", json!({"all": true})).await;
    call("conductor_answer", json!({"answers": {"deliverables": ["x"]}})).await;
    let block = call(
        "context_add_block",
        json!({"block_type": "NOTES", "content": "a note"}),
    )
    .await["context_id"]
        .clone();
    call(
        "context_update_block",
        json!({"context_id": block, "content": "another note"}),
    )
    .await;
    assert_eq!(
        call("context_get_block", json!({"context_id": block})).await["content"],
        "another note"
    );
    assert_eq!(
        call("context_search", json!({"query": "another"})).await["total"],
        1
    );
    call("context_delete_block", json!({"context_id": block})).await;
    call("plan_set_deliverables", json!({"deliverables": ["y"]})).await;
    call("plan_set_invariants", json!({"invariants": []})).await;
    call("plan_set_constraints", json!({"constraints": ["small"]})).await;
    call("plan_set_assumptions", json!({"assumptions": []})).await;
    call(
        "plan_set_definition_of_done",
        json!({"definition_of_done": ["z"]}),
    )
    .await;
    call(
        "plan_set_risks",
        json!({"risks": [{"risk": "slow", "mitigation": "measure"}]}),
    )
    .await;
    call("template_list", json!({})).await;
    call(
        "template_apply",
        json!({"name": "tdd_loop", "variables": {"behaviour": "x"}}),
    )
    .await;
    call(
        "plan_propose_steps",
        json!({"steps": [step("one", &["c"], json!([])), step("two", &["c"], json!([]))]}),
    )
    .await;
    call(
        "plan_refine_steps",
        json!({"edits": [{"op": "remove", "step_id": "S2"}]}),
    )
    .await;
    call(
        "job_update_policies",
        json!({"policies": {"require_tests_evidence": false, "require_diff_summary": false}}),
    )
    .await;
    call("job_set_ready", json!({})).await;
}

async fn execute_with_everything(call: &mut impl AsyncFnMut(&str, Value) -> Value) {
    call("job_start", json!({})).await;
    call("job_pause", json!({"reason": "lunch"})).await;
    call("job_resume", json!({})).await;
    call("job_next_step_prompt", json!({})).await;
    call("step_approve", json!({"step_id": "S1", "approved_by": "Ada"})).await;
    call("step_revoke_approval", json!({"step_id": "S1"})).await;
    assert_eq!(call("git_status", json!({})).await["total"], 1);
    assert_eq!(call("git_diff_summary", json!({})).await["lines"], 1);
    call("git_branch", json!({"name": "work"})).await;
    let commit = call(
        "git_commit",
        json!({"summary": "new file", "paths": ["report/new.py"]}),
    )
    .await;
    call("git_tag", json!({"name": "v1"})).await;
    assert_eq!(
        call("git_log", json!({})).await["commits"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    call("devlog_append", json!({"content": "a line"})).await;
    call(
        "decision_record",
        json!({"decision": "so", "rationale": "because"}),
    )
    .await;
    call(
        "mistake_record",
        json!({"title": "t", "what_happened": "w", "why": "y", "lesson": "l", "avoid_next_time": "a"}),
    )
    .await;
    call("mistake_list", json!({})).await;
    let submitted = call(
        "job_submit_step_result",
        json!({"step_id": "S1", "model_claim": "MET", "summary": "done with care", "devlog_line": "one",
            "commit_hash": commit["commit_hash"], "evidence": {"changed_files": ["report/new.py"], "commands_run": []}}),
    )
    .await;
    assert_eq!(submitted["next_action"], "JOB_COMPLETE", "{submitted}");
    call("devlog_list", json!({})).await;
    call("devlog_export", json!({})).await;
    call("job_get", json!({"attempts": 5, "step_id": "S1"})).await;
    call("job_list", json!({})).await;
    call("template_save", json!({"name": "mine", "summary": "saved"})).await;
    let bundle = call("job_export_bundle", json!({"format": "json"})).await;
    let bundle: Value = serde_json::from_str(bundle["content"].as_str().unwrap()).unwrap();
    let copy = call("job_import", json!({"bundle": bundle})).await;
    assert_eq!(copy["status"], "COMPLETE");
    call("job_archive", json!({})).await;
}
