//! Stories of jobs that end well: a feature, a bug, a dependency, a clean-up, and the walkthrough of the page.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use serde_json::{Value, json};

use crate::gate::person;
use crate::harness::{Place, Session};
use crate::packs::conductor::feature::{EXPORT, SKELETON, TEST, plan};
use crate::packs::conductor::project::Project;
use crate::packs::conductor::prompt_reader::Reader;

/// A job in the workspace `app` that is ready: from a template, or with steps.
pub(crate) async fn ready(session: &Session, goal: &str, chain: (&str, Value)) -> String {
    let begun = json!({"title": goal, "goal": goal, "repo_root": "app"});
    let begun = session.ok("conductor_init", begun).await;
    let job = begun["job_id"].as_str().unwrap().to_owned();
    let answers = json!({"deliverables": ["it works"], "definition_of_done": ["it works"], "invariants": [],
        "failure_modes": [], "hidden_dependencies": [], "smallest_proof": [], "decide_now": []});
    session
        .ok("conductor_answer", json!({"job_id": job, "answers": answers}))
        .await;
    let (tool, mut arguments) = chain;
    arguments["job_id"] = json!(job);
    session.ok(tool, arguments).await;
    session.ok("job_set_ready", json!({"job_id": job})).await;
    job
}

#[tokio::test]
async fn a_client_that_knows_the_id_alone_finishes_the_csv_job() {
    let project = Project::new();
    let planner = project.place.serve(&[]).await;
    let job = plan(&planner).await;
    planner.close().await;

    let mut reader = Reader::begin(&project.place, &job).await;
    reader
        .step(&[], "report/cli.py compares argv with each command")
        .await;
    reader
        .step(&[("report/cli.py", SKELETON)], "add the command export")
        .await;
    // Another client goes on by the id.
    let refused = std::mem::take(&mut reader.refusals);
    reader.session.kill();
    let mut reader = Reader::begin(&project.place, &job).await;
    assert!(
        reader.prompt.contains("report/cli.py compares argv"),
        "{}",
        reader.prompt
    );
    reader
        .step(&[("report/export.py", EXPORT)], "write rows with the csv module")
        .await;
    reader
        .step(&[("tests/test_export.py", TEST)], "test that commas are quoted")
        .await;
    let form = reader
        .work(&[("README.md", README)], "show the command in README.md")
        .await;
    let all = json!({"summary": "export with tests", "paths": ["report", "tests", "README.md"]});
    reader.call("git_commit", all).await;
    assert!(
        reader
            .prompt
            .contains("a person has approved the step with step_approve"),
        "{}",
        reader.prompt
    );
    let approval = json!({"job_id": job, "step_id": form["step_id"], "approved_by": "Ada"});
    person::allows(&project.place, "step_approve", &approval);
    let done = reader.submit(form).await;
    assert_eq!(done["status"], "COMPLETE", "{done:#}");
    // Nothing was refused, so that nothing had to be learned from a refusal.
    assert_eq!((refused, reader.refusals), (Vec::new(), Vec::new()));
    reader.session.close().await;
}

const README: &str = "# report\n\n`report export` prints CSV.\n";
const BUGGY: &str = "def total(rows):\n    return sum(row[\"total\"] for row in rows[1:])\n";
const FIXED: &str = "def total(rows):\n    return sum(row[\"total\"] for row in rows)\n";
const BUG_TEST: &str = "from report.total import total\n\n\ndef test_total():\n    assert total([{\"total\": 1}, {\"total\": 2}]) == 3\n";

#[tokio::test]
async fn a_bug_is_fixed_without_a_lie_and_not_without_a_fix() {
    let project = Project::new();
    project.write("report/total.py", BUGGY);
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "-m", "totals"]);
    let planner = project.place.serve(&["--tier", "full"]).await;
    let template = json!({"name": "bug_fix", "variables": {"bug": "the wrong total"}});
    let job = ready(&planner, "Fix the total", ("template_apply", template)).await;
    planner.close().await;

    let mut reader = Reader::begin(&project.place, &job).await;
    // The red test is reported as red.
    let form = reader
        .work(
            &[("tests/test_total.py", BUG_TEST)],
            "total([1, 2]) is 2 instead of 3",
        )
        .await;
    assert_eq!(form["evidence"]["tests_passed"], false, "{form:#}");
    let reply = reader.submit(form).await;
    assert_eq!(reply["accepted"], true, "{reply:#}");
    let decision = json!({"decision": "report/total.py:2 skips the first row", "rationale": "rows[1:]"});
    reader.call("decision_record", decision).await;
    reader.step(&[], "report/total.py:2 skips the first row").await;
    assert!(
        reader.prompt.contains("report/total.py:2 skips the first row"),
        "{}",
        reader.prompt
    );
    assert_eq!(reader.refusals, Vec::<String>::new());

    // A fix that is claimed and not there.
    let mut lie = reader.work(&[], "fixed it, all tests pass").await;
    lie["evidence"]["tests_passed"] = json!(true);
    let reply = reader.submit(lie).await;
    let reasons = reply["rejection_reasons"].to_string();
    for gate in ["gate fail_to_pass", "gate changed_files_minimum"] {
        assert!(reasons.contains(gate), "{reasons}");
    }
    // A test that is changed instead of the code.
    let easy = BUG_TEST.replace("== 3", "== 2");
    project.write("tests/test_total.py", &easy);
    let reply = {
        let form = reader.work(&[], "fixed it, all tests pass").await;
        reader.submit(form).await
    };
    assert!(
        reply["rejection_reasons"]
            .to_string()
            .contains("gate tests_unchanged"),
        "{reply:#}"
    );
    project.write("tests/test_total.py", BUG_TEST);
    reader.next().await;
    assert!(
        reader
            .prompt
            .contains("The last submission of this step was rejected"),
        "{}",
        reader.prompt
    );
    let done = reader
        .step(&[("report/total.py", FIXED)], "count the first row, too")
        .await;
    assert_eq!(done["status"], "COMPLETE", "{done:#}");
    reader.session.close().await;
}

#[tokio::test]
async fn a_dependency_is_raised_over_an_approval_a_pause_and_a_restart() {
    let project = Project::new();
    project.write("requirements.txt", "requests==2.0\n");
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "-m", "requirements"]);
    let planner = project.place.serve(&["--tier", "full"]).await;
    let template =
        json!({"name": "dependency_upgrade", "variables": {"dependency": "requests", "version": "3.0"}});
    let job = ready(&planner, "Raise requests", ("template_apply", template)).await;
    let gates = json!([{"gate": "tests_passed"}, {"gate": "human_approval"}]);
    let edit = json!({"op": "update", "step_id": "S3", "set": {"gates": gates}});
    planner
        .ok("plan_refine_steps", json!({"job_id": job, "edits": [edit]}))
        .await;
    planner.ok("job_set_ready", json!({"job_id": job})).await;
    planner.close().await;

    let mut reader = Reader::begin(&project.place, &job).await;
    assert!(
        reader.prompt.contains("context_add_block as NOTES"),
        "{}",
        reader.prompt
    );
    let notes = json!({"block_type": "NOTES", "content": "3.0 drops nothing that is used here"});
    let block = reader.call("context_add_block", notes).await["context_id"].clone();
    // Nothing changes in these steps, so that there is nothing to commit.
    reader.step(&[], "3.0 breaks nothing that is used here").await;
    assert!(
        reader.prompt.contains(block.as_str().unwrap()),
        "{}",
        reader.prompt
    );
    reader.step(&[], "git revert undoes the next step").await;
    reader.call("job_pause", json!({"reason": "lunch"})).await;
    let mut refusals = std::mem::take(&mut reader.refusals);
    reader.session.kill();
    let session = project.place.serve(&["--tier", "full"]).await;
    session.ok("job_resume", json!({"job_id": job})).await;
    session.close().await;

    let mut reader = Reader::begin(&project.place, &job).await;
    let form = reader
        .work(
            &[("requirements.txt", "requests==3.0\n")],
            "raise requests to 3.0",
        )
        .await;
    let approval = json!({"job_id": job, "step_id": form["step_id"], "approved_by": "Ada"});
    person::approve(&project.place, &reader.session, &approval).await;
    let raised = reader.submit(form).await;
    assert_eq!(raised["accepted"], true, "{raised:#}");
    let done = reader.step(&[], "ran report count, no warnings").await;
    assert_eq!(done["status"], "COMPLETE", "{done:#}");
    refusals.append(&mut reader.refusals);
    assert_eq!(refusals, Vec::<String>::new());
    assert_eq!(
        project.git(&["log", "--format=%s", "-1"]),
        "S3: raise requests to 3.0"
    );
    reader.session.close().await;
}

const PAGE: &str = include_str!("../../../../docs/conductor.md");

/// Texts of the blocks of a kind on the page, in order.
fn blocks(kind: &str) -> Vec<&'static str> {
    let start = format!("\n```{kind}\n");
    let blocks = PAGE.split(start.as_str()).skip(1);
    blocks
        .map(|rest| rest.split_once("\n```").expect("the block ends").0)
        .collect()
}

#[test]
fn every_command_of_the_page_succeeds() {
    let place = Place::with("");
    let folder = place.path().join("work");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("tollgate.toml"), blocks("toml")[0]).unwrap();
    let setup = "git init --quiet\ngit config user.name Ada\ngit config user.email ada@example.org\n\
        git add tollgate.toml\ngit commit --quiet -m first";
    let commands = blocks("sh");
    assert_eq!(commands.len(), 4, "the page has four blocks of commands");
    let script = format!("set -e\n{setup}\n{}", commands.join("\n"));
    let output = place
        .bash(&script)
        .current_dir(&folder)
        .env("HOME", place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{log}");
    assert!(
        said.contains("S1 is accepted") || said.contains("JOB_COMPLETE"),
        "{said}"
    );
    let exported = std::fs::read_to_string(folder.join("report-job.md")).unwrap();
    assert!(exported.contains("wrote report.csv"), "{exported}");
    let map = std::fs::read_to_string(folder.join("REPO_MAP.md")).unwrap();
    assert!(map.contains("report/rows.py"), "{map}");
}
