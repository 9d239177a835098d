//! Deliverables at the end of a job, and data that tests read.

use serde_json::{Value, json};

use crate::cheats::{accepted, caught, planned};
use crate::harness::{Bench, READY, step};

#[test]
fn deliverables_are_there_when_the_job_ends() {
    let bench = Bench::with_repository();
    bench.run(READY);
    let answers = json!({"deliverables": ["export.py", "GET /reports.csv", "a short README"]});
    bench.reply("conductor_answer", json!({"answers": answers}));
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    bench.run("- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
    caught(&bench, "deliverables are missing: export.py is missing");
    bench.write("export.py", "x\n");
    accepted(&bench);
}

/// A job with these deliverables at its only step.
fn delivering(deliverables: Value) -> Bench {
    let bench = Bench::with_repository();
    bench.run(READY);
    bench.reply(
        "conductor_answer",
        json!({"answers": {"deliverables": deliverables}}),
    );
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    bench.run(r#"- job_update_policies {"policies": {"max_retries_per_step": 50}}"#);
    bench.run("- job_set_ready {}\n- job_start {}\n- job_next_step_prompt {}");
    bench
}

#[test]
fn deliverables_are_files_with_content() {
    let bench = delivering(json!(["export.py", "docs/"]));
    std::fs::create_dir_all(bench.path("docs")).unwrap();
    for blank in ["", " \n\n", "# later\n", "\"\"\"The exporter.\"\"\"\npass\n"] {
        bench.write("export.py", blank);
        caught(&bench, "export.py has no content");
    }
    caught(&bench, "docs/ has no content");
    std::fs::remove_file(bench.path("export.py")).unwrap();
    std::os::unix::fs::symlink("a.txt", bench.path("export.py")).unwrap();
    caught(&bench, "export.py is a link");
    std::fs::remove_file(bench.path("export.py")).unwrap();
    std::fs::create_dir(bench.path("export.py")).unwrap();
    caught(&bench, "export.py is a directory, not a file");
    std::fs::remove_dir(bench.path("export.py")).unwrap();
    bench.write("export.py", "x = 1\n");
    bench.write("docs/export.md", "# Export\n");
    accepted(&bench);
}

#[test]
fn sentences_do_not_hide_paths_and_empty_files_need_a_word_in_the_plan() {
    let bench = delivering(json!([
        "the exporter in src/export.py",
        "pkg/py.typed (allow_empty)"
    ]));
    caught(&bench, "src/export.py is missing, pkg/py.typed is missing");
    bench.write("src/export.py", "x = 1\n");
    bench.write("pkg/py.typed", "");
    accepted(&bench);
    let bench = Bench::with_repository();
    bench.run(READY);
    bench.reply("plan_propose_steps", json!({"steps": [step("one", json!([]))]}));
    let warnings = bench.reply("job_set_ready", json!({}))["warnings"].to_string();
    assert!(warnings.contains("no deliverable names a path"), "{warnings}");
}

#[test]
fn data_that_tests_read_is_a_part_of_the_tests() {
    let bench = || {
        let bench = Bench::with_repository();
        bench.write("tests/t.py", "assert total() == load('golden/total.json')\n");
        bench.write("golden/total.json", "3\n");
        bench.write("golden/other.json", "3\n");
        bench.commit_all("tests");
        bench
    };
    let bench_of = |gates: Value| planned(bench(), gates);
    let guarded = bench_of(json!([{"gate": "tests_unchanged"}]));
    guarded.write("golden/total.json", "4\n");
    guarded.write("golden/other.json", "4\n");
    caught(
        &guarded,
        "data that tests read changed: golden/total.json (named in tests/t.py); restore these files, or let a person name",
    );
    guarded.write("golden/total.json", "3\n");
    accepted(&guarded);
    // An honest correction of data is planned as such.
    let named =
        json!([{"gate": "tests_unchanged"}, {"gate": "changed_files_allowlist", "paths": ["golden/*.json"]}]);
    let planned = bench_of(named);
    planned.write("golden/total.json", "4\n");
    accepted(&planned);
}
