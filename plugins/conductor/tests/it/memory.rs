//! Memory of a repository: shared by its jobs, kept when a job is deleted, migrated from earlier versions.

use expect_test::expect;
use serde_json::{Value, json};
use tollgate_sdk::native::Session;
use tollgate_sdk::{Pack, migration};

use crate::harness::{Bench, result, step};

fn another(bench: &Bench, root: &str) -> String {
    let init = json!({"title": "Second", "goal": "Go on", "repo_root": root});
    let begun = bench.session.call("conductor_init", &init.to_string()).unwrap();
    let begun: Value = serde_json::from_str(&begun.structured).unwrap();
    begun["job_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_second_job_knows_what_the_first_one_learned() {
    let bench = Bench::with_repository();
    bench.run(
        r#"
        - mistake_record {"title": "Quotes", "what_happened": "a", "why": "b", "lesson": "use the csv module", "avoid_next_time": "writing quotes by hand", "tags": ["csv"]}
        - repo_file_descriptions_update {"descriptions": {"a.txt": "Two numbers as words"}}
        - repo_map_update {}
        "#,
    );
    let init = json!({"title": "Second", "goal": "Go on", "repo_root": "main/"});
    let begun = bench.session.call("conductor_init", &init.to_string()).unwrap();
    let begun: Value = serde_json::from_str(&begun.structured).unwrap();
    assert_eq!(
        begun["lessons"],
        json!(["Avoid: writing quotes by hand / Instead: use the csv module"])
    );
    let second = Bench {
        job: begun["job_id"].as_str().unwrap().to_owned(),
        session: bench.session,
        dir: bench.dir,
    };
    let log = second.run(
        r#"
        mistake_list {} ? mistakes.0.title mistakes.0.lesson
        repo_map_query {"text": "numbers"} ? files.0.path
        repo_file_descriptions_update {"descriptions": {"a.txt": "Numbers, one a line"}} ? described
        "#,
    );
    expect![[r#"
        ok mistakes.0.title="Quotes" mistakes.0.lesson="use the csv module"
        ok files.0.path="a.txt"
        ok described=1
    "#]]
    .assert_eq(&log);
    let mut tagged = step("one", json!([]));
    tagged["tags"] = json!(["csv"]);
    let second = second.started(json!([tagged]));
    let prompt = second.reply("job_next_step_prompt", json!({}));
    assert_eq!(
        prompt["relevant_mistakes"],
        json!(["Avoid: writing quotes by hand / Instead: use the csv module"])
    );
}

#[test]
fn a_rejection_is_remembered_without_a_lesson_that_nobody_wrote() {
    let mut first = step("one", json!([{"gate": "file_exists", "paths": ["b.txt"]}]));
    first["tags"] = json!(["files"]);
    let mut second = step("two", json!([]));
    second["tags"] = json!(["files"]);
    let bench = Bench::with_repository().started(json!([first, second]));
    bench.run("- job_next_step_prompt {}");
    let rejected = bench.reply("job_submit_step_result", result("S1"));
    let size = rejected.to_string().len();
    assert!(size < 4 * 170, "{size} characters: {rejected}");
    let reason = rejected["rejection_reasons"][0].as_str().unwrap();
    assert_eq!(rejected.to_string().matches(reason).count(), 1, "{rejected}");
    bench.reply("job_submit_step_result", result("S1"));
    let mut log = bench.run("mistake_list {} ? mistakes.0.what_happened mistakes.0.automatic mistakes.1");
    bench.write("b.txt", "there\n");
    let mut accepted = result("S1");
    accepted["summary"] = json!("wrote b.txt first");
    bench.reply("job_submit_step_result", accepted);
    log += &bench.run(
        r#"
        job_next_step_prompt {} ? relevant_mistakes
        mistake_list {} ? mistakes.0.lesson mistakes.0.why
        "#,
    );
    expect![[r#"
        ok mistakes.0.what_happened="gate file_exists: b.txt does not exist" mistakes.0.automatic=true mistakes.1=null
        ok relevant_mistakes=["Avoid: gate file_exists: b.txt does not exist"]
        ok mistakes.0.lesson="" mistakes.0.why=""
    "#]]
    .assert_eq(&log);
}

#[test]
fn a_deleted_job_leaves_its_memory_and_a_line_in_the_ledger() {
    let bench = Bench::with_repository();
    bench.run(r#"- mistake_record {"title": "Quotes", "what_happened": "a", "why": "b", "lesson": "c", "avoid_next_time": "d"}"#);
    bench.run(r#"- repo_file_descriptions_update {"descriptions": {"a.txt": "Two numbers as words"}}"#);
    let other = another(&bench, "main");
    let running = bench.started(json!([step("one", json!([]))]));
    let mut log = running.run(
        r#"
        job_delete {}
        job_pause {} ? status
        job_delete {}
        job_fail {"reason": "not wanted"} ? status
        job_delete {"reason": "a trial"} ? title from steps attempts
        job_get {}
        "#,
    );
    let events = running.session.events();
    let event = events
        .into_iter()
        .find(|event| event.event_type == "job.deleted")
        .unwrap();
    log += &format!("{} {}\n", event.event_type, event.note.unwrap()).replace(&running.job, "JOB");
    let left = Bench {
        job: other,
        session: running.session,
        dir: running.dir,
    };
    log += &left.run(
        "mistake_list {} ? mistakes.0.title\nrepo_map_query {\"text\": \"numbers\"} ? total files.0.path",
    );
    expect![[r#"
        err WRONG_STATUS: the job cannot be deleted while the job is EXECUTING {"status":"EXECUTING","allowed_statuses":["PLANNING","READY","COMPLETE","FAILED","ARCHIVED"]}
          - WRONG_STATUS: the job cannot be deleted while the job is EXECUTING -> job_fail {"job_id":"JOB","reason":"<why the job is given up>"}
        ok status="PAUSED"
        err WRONG_STATUS: the job cannot be deleted while the job is PAUSED {"status":"PAUSED","allowed_statuses":["PLANNING","READY","COMPLETE","FAILED","ARCHIVED"]}
          - WRONG_STATUS: the job cannot be deleted while the job is PAUSED -> job_fail {"job_id":"JOB","reason":"<why the job is given up>"}
        ok status="FAILED"
        ok title="Export" from="FAILED" steps=1 attempts=0
        err NOT_FOUND: there is no job JOB
          - NOT_FOUND: there is no job JOB -> job_list {}
        job.deleted JOB "Export" (FAILED, 1 step, 0 submissions) deleted: a trial
        ok mistakes.0.title="Quotes"
        ok total=1 files.0.path="a.txt"
    "#]].assert_eq(&log);
}

#[test]
fn memory_of_earlier_versions_is_kept() {
    const OLD: Pack = Pack {
        migrations: &[
            migration!("../../../../migrations/conductor", "0001_init"),
            migration!("../../../../migrations/conductor", "0002_repository"),
            migration!("../../../../migrations/conductor", "0003_facts"),
            migration!("../../../../migrations/conductor", "0004_commands"),
        ],
        ..conductor::PACK
    };
    let session = Session::new(&OLD);
    let job = |id: &str, root: &str| {
        session.sql(&format!(
            "INSERT INTO conductor_jobs (id, title, goal, status, repo_root, tags_json, policies_json, plan_json, \
             created_at, updated_at) VALUES ('{id}', 't', 'g', 'PLANNING', {root}, '[]', '{{}}', '{{}}', 'a', 'b')"
        ));
    };
    job("JOB-AAAA", "'main/ '");
    job("JOB-BBBB", "'main'");
    job("JOB-CCCC", "NULL");
    for (number, id) in [(1, "JOB-AAAA"), (2, "JOB-CCCC")] {
        session.sql(&format!(
            "INSERT INTO conductor_mistakes (number, id, job_id, title, what_happened, why, lesson, avoid_next_time, \
             tags_json, at) VALUES ({number}, 'MIS-{number}', '{id}', 't', 'w', 'y', 'l', 'a', '[]', 'c')"
        ));
    }
    for (id, said, at) in [
        ("JOB-AAAA", "older", "1"),
        ("JOB-BBBB", "newer", "2"),
        ("JOB-CCCC", "own", "0"),
    ] {
        session.sql(&format!(
            "INSERT INTO conductor_descriptions VALUES ('{id}', 'a.py', '{said}', '{at}')"
        ));
    }
    let sql = include_str!("../../../../migrations/conductor/0006_memory.sql");
    let lines: Vec<&str> = sql
        .lines()
        .filter(|line| !line.trim_start().starts_with("--"))
        .collect();
    for statement in lines.join("\n").split(';').filter(|text| !text.trim().is_empty()) {
        session.sql(statement);
    }
    let text = |sql: &str| {
        let rows = session.sql(sql);
        let rows = rows.iter().map(|row| {
            format!(
                "{} {}",
                row.get::<String>(0).unwrap(),
                row.get::<String>(1).unwrap()
            )
        });
        rows.collect::<Vec<_>>()
    };
    assert_eq!(
        text("SELECT id, place FROM conductor_lessons ORDER BY number"),
        ["MIS-1 main", "MIS-2 JOB-CCCC"]
    );
    assert_eq!(
        text("SELECT place, description FROM conductor_file_notes ORDER BY place"),
        ["JOB-CCCC own", "main newer"]
    );
    assert_eq!(
        text("SELECT id, repo_root FROM conductor_jobs WHERE repo_root IS NOT NULL ORDER BY id"),
        ["JOB-AAAA main", "JOB-BBBB main"]
    );
}
