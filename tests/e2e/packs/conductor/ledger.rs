//! Rows of the conductor's calls: tests that gates ran, commits, entities, callers, and suggestions within reach.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use serde_json::{Value, json};

use crate::harness::Session;
use crate::packs::conductor::project::{Project, step};

const PASSES: &str = "running 2 tests\ntest t0 ... ok\ntest t1 ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
const FAILS: &str = "running 2 tests\ntest t0 ... FAILED\ntest t1 ... ok\n\nfailures:\n\n---- t0 stdout ----\n\nthread 't0' panicked at src/lib.rs:3:5:\nassertion failed: quoted\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";

fn project() -> Project {
    Project::of(
        "app",
        &[("a.txt", "one\n"), ("suite", PASSES)],
        "tests.default = [\"sh\", \"-c\", \"cat suite; ! grep -q FAILED suite\"]\n",
    )
}

/// A job with one step, ready to start.
async fn planned(session: &Session) -> String {
    let init = json!({"title": "Quote", "goal": "Quote fields", "repo_root": "app",
        "policies": {"require_diff_summary": false, "max_retries_per_step": 20}});
    let job = session.ok("conductor_init", init).await["job_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let answers = json!({"deliverables": ["quoted fields"], "definition_of_done": ["the tests pass"], "invariants": []});
    session
        .ok("conductor_answer", json!({"job_id": job, "answers": answers}))
        .await;
    let steps = json!([step(
        "Quote",
        &["fields are quoted"],
        json!([{"gate": "tests_passed"}])
    )]);
    session
        .ok("plan_propose_steps", json!({"job_id": job, "steps": steps}))
        .await;
    job
}

async fn started(session: &Session) -> String {
    let job = planned(session).await;
    for tool in ["job_set_ready", "job_start", "job_next_step_prompt"] {
        session.ok(tool, json!({"job_id": job})).await;
    }
    job
}

async fn submit(session: &Session, job: &str) -> Value {
    let evidence = json!({"changed_files": ["suite"], "commands_run": [], "tests_run": ["default"], "tests_passed": true,
        "criteria_checklist": {"c1": true}});
    let arguments = json!({"job_id": job, "step_id": "S1", "model_claim": "MET", "summary": "quoted the fields",
        "devlog_line": "fields are quoted", "evidence": evidence});
    session.ok("job_submit_step_result", arguments).await
}

#[tokio::test]
async fn tests_of_gates_are_test_runs_of_the_ledger() {
    let project = project();
    let session = project.place.serve(&["--tier", "full"]).await;
    let envelope = session.ok("envelope_open", json!({})).await["id"].clone();
    let job = started(&session).await;
    project.write("suite", FAILS);
    assert_eq!(submit(&session, &job).await["accepted"], false);
    let flags = async || session.ok("envelope_get", json!({"envelope_id": envelope})).await["flags"].clone();
    assert_eq!(flags().await["non_progress"], false);
    project.write("a.txt", "two\n");
    let stuck = submit(&session, &job).await;
    assert!(
        stuck["notes"]
            .to_string()
            .contains("no progress: `default` fails in the same way as before, 2 times"),
        "{stuck:#}"
    );
    let flags = flags().await;
    assert_eq!(
        (&flags["non_progress"], &flags["failure_seen"]),
        (&json!(true), &json!(2)),
        "{flags:#}"
    );
    // The same failure has one fingerprint, whoever ran the tests.
    let ran = session.ok("test_run", json!({"workspace": "app"})).await;
    let failure = ran["failure_fingerprint"].as_str().unwrap().to_owned();
    let found = session
        .ok(
            "ledger_query",
            json!({"failure_fingerprint": failure, "fields": ["all"]}),
        )
        .await;
    let rows = found["operations"].as_array().unwrap();
    let tools: Vec<&str> = rows.iter().filter_map(|row| row["tool"].as_str()).collect();
    let submits = tools
        .iter()
        .filter(|tool| **tool == "job_submit_step_result")
        .count();
    assert_eq!((submits, tools.len()), (2, 3), "{tools:?}");
    session.close().await;

    let row = project.place.sql(
        "SELECT outcome || ' ' || failing_tests || ' ' || failure_class FROM core_operations \
         WHERE tool = 'job_submit_step_result' ORDER BY seq LIMIT 1",
    );
    assert_eq!(
        row,
        [
            r#"{"result":"failed","failed":1,"total":2,"message":"t0: assertion failed: quoted","runs":[{"workspace":"app","test":"default","result":"failed"}]} ["t0"] test_failure"#
        ]
    );
    let tail = project.place.run(&["ledger", "tail"]);
    let tail = String::from_utf8_lossy(&tail.stdout).into_owned();
    let line = tail
        .lines()
        .find(|line| line.contains("job_submit_step_result"))
        .unwrap();
    assert!(line.contains("failed 1 of 2"), "{tail}");
    let report = project.place.run(&["ledger", "report"]);
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(
        report.contains("3 times over 1 edit in app, by job_submit_step_result, test_run"),
        "{report}"
    );
    assert!(project.place.run(&["ledger", "verify"]).status.success());
}

#[tokio::test]
async fn a_commit_names_its_files_and_the_states_of_the_work_tree() {
    let project = project();
    let session = project.place.serve(&["--tier", "full"]).await;
    let job = planned(&session).await;
    let commit = async |text: &str| {
        project.write("a.txt", text);
        project.write("b.txt", text);
        let arguments = json!({"job_id": job, "summary": "change a", "paths": ["a.txt"]});
        session.ok("git_commit", arguments).await
    };
    commit("outside of envelopes\n").await;
    session.ok("envelope_open", json!({})).await;
    commit("inside of one\n").await;
    session.close().await;
    let rows = project.place.sql(
        "SELECT changed_paths || ' ' || length(mutation_fingerprint) || ' ' || length(repo_before_hash) || ' '
             || CAST(repo_before_hash = repo_after_hash AS INTEGER)
         FROM core_operations WHERE tool = 'git_commit' ORDER BY seq",
    );
    let expected = format!(r#"["a.txt","conductor/{job}"] 64 64 1"#);
    assert_eq!(rows, [expected.clone(), expected]);
    let told = project
        .place
        .sql("SELECT CAST(instr(events, '\"git.committed\"') > 0 AS INTEGER) FROM core_operations WHERE tool = 'git_commit'");
    assert_eq!(told, ["1", "1"]);
}

#[tokio::test]
async fn rows_name_entities_and_callers() {
    let project = project();
    let session = project.place.serve(&["--tier", "full"]).await;
    let job = started(&session).await;
    session
        .ok(
            "devlog_append",
            json!({"job_id": job, "content": "a line", "actor": "ada"}),
        )
        .await;
    session.ok("job_list", json!({"actor": "ada"})).await;
    let refusal = session.refused("job_list", json!({"actor": 7})).await;
    assert_eq!(refusal["code"], "INVALID_ARGUMENTS", "{refusal}");
    let tools = session.client().list_all_tools().await.unwrap();
    let devlog = tools.iter().find(|tool| tool.name == "devlog_append").unwrap();
    assert!(
        !devlog.input_schema["properties"]
            .as_object()
            .unwrap()
            .contains_key("actor")
    );
    submit(&session, &job).await;
    session.close().await;
    let changed = |tool: &str| {
        let sql =
            format!("SELECT changed_paths FROM core_operations WHERE tool = '{tool}' ORDER BY seq LIMIT 1");
        project.place.sql(&sql).concat()
    };
    assert_eq!(
        changed("plan_propose_steps"),
        format!(r#"["conductor/{job}/S1","conductor/{job}"]"#)
    );
    assert!(changed("job_submit_step_result").contains(&format!("conductor/{job}/S1/ATT-")));
    assert!(
        !project
            .place
            .sql("SELECT changed_paths FROM core_operations")
            .concat()
            .contains("conductor_")
    );
    let actors = project
        .place
        .sql("SELECT tool || ' ' || actor FROM core_operations WHERE actor IS NOT NULL ORDER BY seq");
    assert_eq!(actors, ["devlog_append claimed:ada", "job_list claimed:ada"]);
}

#[tokio::test]
async fn suggestions_of_the_conductor_are_within_reach() {
    let project = project();
    let hidden = "job_start,job_next_step_prompt,repo_map_update,repo_map_export,repo_map_query";
    let session = project
        .place
        .serve(&["--tier", "full", "--exclude-tools", hidden])
        .await;
    let job = planned(&session).await;
    let ready = session.ok("job_set_ready", json!({"job_id": job})).await;
    assert_eq!(
        (&ready["status"], ready.get("next_call")),
        (&json!("READY"), None),
        "{ready:#}"
    );
    let taken = session.ok("repo_snapshot", json!({"job_id": job})).await;
    assert_eq!(taken.get("next_call"), None, "{taken:#}");
    session.close().await;

    let all = project.place.serve(&["--tier", "full"]).await;
    let started = all.ok("job_start", json!({"job_id": job})).await;
    assert_eq!(
        started["next_call"]["tool"], "job_next_step_prompt",
        "{started:#}"
    );
    project.write("old.py", "import os\n");
    all.ok("repo_map_update", json!({"job_id": job})).await;
    all.close().await;

    let session = project
        .place
        .serve(&["--tier", "full", "--exclude-tools", "repo_map_query"])
        .await;
    let stale = session
        .ok("repo_find_stale_candidates", json!({"job_id": job}))
        .await;
    let candidates = stale["candidates"].as_array().unwrap();
    assert!(!candidates.is_empty(), "{stale:#}");
    assert!(
        candidates
            .iter()
            .all(|candidate| candidate.get("next_call").is_none()),
        "{stale:#}"
    );
    session.close().await;
}

#[tokio::test]
async fn tests_of_gates_count_in_the_window_of_the_jobs_workspace() {
    let project = Project::of(
        "app",
        &[("a.txt", "one\n"), ("suite", FAILS)],
        "tests.default = [\"sh\", \"-c\", \"cat suite; ! grep -q FAILED suite\"]\n\
         [[envelope.window]]\nby = \"workspace\"\nper = \"1h\"\nmax_test_runs = 1\n",
    );
    let session = project.place.serve(&["--tier", "full"]).await;
    let job = started(&session).await;
    // However the id is written that the pack accepts.
    for id in [job.clone(), job.to_lowercase(), format!("  {job} ")] {
        assert_eq!(submit(&session, &id).await["accepted"], false);
    }
    let refusal = session.refused("test_run", json!({"workspace": "app"})).await;
    assert_eq!(refusal["code"], "WINDOW_EXHAUSTED", "{refusal:#}");
    session.close().await;
    let ran = project.place.sql(
        "SELECT tool || ' ' || workspace || ' ' || coalesce(outcome ->> '$.runs[0].result', '-') FROM core_operations
         WHERE tool IN ('job_start', 'job_submit_step_result') ORDER BY seq",
    );
    assert_eq!(
        ran,
        [
            "job_start app failed",
            "job_submit_step_result app -",
            "job_submit_step_result app -",
            "job_submit_step_result app -"
        ]
    );
}

/// Tools of all packs that declare a row with their workspace, and that accept other spellings of its key.
#[tokio::test]
async fn calls_of_a_job_count_in_the_window_of_its_workspace_however_its_id_is_written() {
    let project = Project::of(
        "app",
        &[("a.txt", "one\n"), ("suite", FAILS)],
        "tests.default = [\"sh\", \"-c\", \"cat suite; ! grep -q FAILED suite\"]\n\
         [[envelope.window]]\nby = \"workspace\"\nper = \"1h\"\nmax_mutations = 8\n",
    );
    let session = project.place.serve(&["--tier", "full"]).await;
    let begun = session
        .ok(
            "conductor_init",
            json!({"title": "T", "goal": "g", "repo_root": "app/"}),
        )
        .await;
    let job = begun["job_id"].as_str().unwrap();
    let spellings = [
        job.to_owned(),
        job.to_lowercase(),
        format!(" {job}"),
        format!("{}\t", job.to_lowercase()),
    ];
    let note = |id: &str| json!({"job_id": id, "content": "c"});
    for id in spellings.iter().cycle().take(8) {
        session.ok("devlog_append", note(id)).await;
    }
    for id in &spellings {
        let refusal = session.refused("devlog_append", note(id)).await;
        assert_eq!(refusal["code"], "WINDOW_EXHAUSTED", "{id:?}: {refusal:#}");
    }
    session.close().await;
    let workspaces = project
        .place
        .sql("SELECT DISTINCT workspace FROM core_operations WHERE tool = 'devlog_append'");
    assert_eq!(workspaces, ["app"]);
}
