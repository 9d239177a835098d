//! Caches in the work tree that Git ignores and runners of tests would trust.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::process::Command;

use serde_json::{Value, json};

use crate::packs::conductor::project::Project;
use crate::packs::conductor::stories::ready;

const BUGGY: &str = "def total(rows):\n    return sum(rows[1:])\n";
const TEST: &str = "from report.total import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n";
/// Compiles other code than that of `report/total.py`, as bytecode that Python loads without a look at the source.
const FORGE: &str = "\
import importlib.util, os, pathlib, py_compile, tempfile
good = pathlib.Path(tempfile.mkdtemp()) / 'total.py'
good.write_text('def total(rows):\\n    return sum(rows)\\n')
target = importlib.util.cache_from_source('report/total.py')
os.makedirs(os.path.dirname(target), exist_ok=True)
py_compile.compile(str(good), cfile=target, doraise=True,
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
";

fn python(project: &Project, arguments: &[&str]) -> bool {
    let python = std::env::var("TOLLGATE_TEST_PYTHON").expect("`cargo xtask test` sets TOLLGATE_TEST_PYTHON");
    let status = Command::new(python)
        .args(arguments)
        .current_dir(&project.root)
        .env_remove("PYTHONPYCACHEPREFIX")
        .status();
    status.unwrap().success()
}

#[tokio::test]
async fn forged_bytecode_makes_no_suite_green() {
    let project = Project::new();
    project.write("report/total.py", BUGGY);
    project.write("tests/test_total.py", TEST);
    project.git(&["add", "."]);
    project.git(&["commit", "--quiet", "-m", "totals"]);
    let session = project.place.serve(&["--tier", "full"]).await;
    let step = json!({
        "title": "Fix it", "instruction_prompt": "Fix the total.", "acceptance_criteria": ["the total is right"],
        "required_evidence": {"notes": "string"}, "gates": [{"gate": "tests_passed"}],
    });
    let job = ready(
        &session,
        "Fix the total",
        ("plan_propose_steps", json!({"steps": [step]})),
    )
    .await;
    session.ok("job_start", json!({"job_id": job})).await;
    session.ok("job_next_step_prompt", json!({"job_id": job})).await;

    assert!(python(&project, &["-c", FORGE]));
    let pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
    assert!(python(&project, &pytest), "Python takes the forged bytecode");
    let submission = json!({
        "job_id": job, "step_id": "S1", "model_claim": "MET", "summary": "fixed the total of all rows",
        "devlog_line": "the total counts every row",
        "evidence": {"notes": "fixed", "changed_files": [], "diff_summary": "the total counts every row",
            "tests_run": ["default"], "tests_passed": true, "criteria_checklist": {"c1": true}},
    });
    let reply: Value = session.ok("job_submit_step_result", submission.clone()).await;
    let reasons = reply["rejection_reasons"].to_string();
    assert!(
        reasons.contains("gate tests_passed: `default`: it ended with exit code 1"),
        "{reply:#}"
    );
    // Nothing was written beside the sources either.
    let cached = std::fs::read_dir(project.root.join("tests/__pycache__"));
    let by_gates = cached.into_iter().flatten().flatten();
    let names: Vec<_> = by_gates.map(|entry| entry.file_name()).collect();
    assert!(names.len() <= 1, "{names:?}");

    project.write("report/total.py", &BUGGY.replace("[1:]", ""));
    let reply = session.ok("job_submit_step_result", submission).await;
    assert_eq!(reply["status"], "COMPLETE", "{reply:#}");
    session.close().await;
}
