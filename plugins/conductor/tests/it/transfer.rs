//! Export and import.

use std::collections::BTreeMap;

use expect_test::{expect, expect_file};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::{Bench, result, step};

/// A half-finished job with records of every kind.
fn halfway() -> Bench {
    let bench = Bench::new().started(json!([
        step("one", json!([])),
        step("two", json!([{"gate": "human_approval"}]))
    ]));
    bench.run(
        r#"
        - context_add_block {"block_type": "REPO_MAP", "content": "export.py: the exporter"}
        - context_add_block {"block_type": "NOTES", "content": "a fence:\n```\ncode\n```", "tags": ["x"]}
        - decision_record {"decision": "Use the csv module", "rationale": "no new dependency"}
        - job_next_step_prompt {}
        "#,
    );
    let mut rejected = result("S1");
    rejected["model_claim"] = json!("PARTIAL");
    let reply = bench.reply("job_submit_step_result", rejected);
    bench.learn(&reply, "look at both criteria");
    bench.reply("git_commit", json!({"defer_reason": "together"}));
    bench.reply("job_submit_step_result", result("S1"));
    bench.run(r#"- step_approve {"step_id": "S2", "approved_by": "Ada"}"#);
    bench
}

fn exported(bench: &Bench, format: &str) -> String {
    let reply = bench.reply("job_export_bundle", json!({"format": format}));
    assert_eq!(reply["parts"], 1);
    reply["content"].as_str().unwrap().to_owned()
}

#[test]
fn the_document_tells_the_whole_job() {
    let bench = halfway();
    let document = exported(&bench, "md").replace(&bench.job, "JOB");
    expect_file!["snapshots/export.md"].assert_eq(&document);
}

#[test]
fn the_archive_lists_its_files_with_their_hashes() {
    let bench = halfway();
    let reply = bench.reply("job_export_bundle", json!({"format": "zip_manifest"}));
    let files = reply["files"].as_array().unwrap();
    let names: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    for wanted in [
        "README.md",
        "job.json",
        "policies.json",
        "prompts/S1.md",
        "DEVLOG.md",
        "DECISIONS.md",
        "MISTAKES.md",
    ] {
        assert!(names.contains(&wanted), "{names:?}");
    }
    assert!(
        names.iter().any(|name| name.starts_with("context/repo_map-CTX-")),
        "{names:?}"
    );
    assert_eq!(
        names
            .iter()
            .filter(|name| name.starts_with("attempts/S1-ATT-"))
            .count(),
        2
    );
    for file in files {
        assert_eq!(
            usize::try_from(file["bytes"].as_u64().unwrap()).unwrap(),
            file["content"].as_str().unwrap().len()
        );
        assert_eq!(file["sha256"].as_str().unwrap().len(), 64);
    }
}

#[test]
fn an_imported_job_goes_on_where_it_was() {
    let bench = halfway();
    let bundle: Value = serde_json::from_str(&exported(&bench, "json")).unwrap();
    let other = Bench::new();
    let imported = other.reply("job_import", json!({"bundle": bundle}));
    assert_eq!(
        (imported["status"].as_str(), imported["attempts"].as_u64()),
        (Some("EXECUTING"), Some(2))
    );
    let job = imported["job_id"].clone();
    let again: Value = {
        let reply = other.reply("job_export_bundle", json!({"job_id": job, "format": "json"}));
        serde_json::from_str(reply["content"].as_str().unwrap()).unwrap()
    };
    for key in ["steps", "policies", "mistakes", "batches"] {
        let count = |bundle: &Value| bundle[key].as_array().map(Vec::len);
        assert_eq!(count(&again), count(&bundle), "{key}");
    }
    assert_eq!(again["job"]["plan"], bundle["job"]["plan"]);
    let mut submission = result("S2");
    submission["job_id"] = job.clone();
    other.reply("job_next_step_prompt", json!({"job_id": job}));
    submission["commit_hash"] = json!("abcdef0");
    // An approval in a file is nobody's; a person approves again.
    other.reply(
        "step_approve",
        json!({"job_id": job, "step_id": "S2", "approved_by": "Ada"}),
    );
    assert_eq!(
        other.reply("job_submit_step_result", submission)["next_action"],
        "JOB_COMPLETE"
    );
    // Where the id is taken the job gets another, and so do its records.
    let renamed = bench.reply("job_import", json!({"bundle": bundle}));
    assert_eq!(renamed["renamed_from"], json!(bench.job));
    assert_ne!(renamed["job_id"], json!(bench.job));
}

#[test]
fn what_is_named_follows_new_ids_and_identities_stay_behind() {
    let bench = halfway();
    let mut bundle: Value = serde_json::from_str(&exported(&bench, "json")).unwrap();
    let token = bundle["batches"][0]["token"].clone();
    bundle["attempts"][1]["batch_commit_token"] = token.clone();
    bundle["steps"][1]["approval"]["identity"] = json!("ada@example.org");
    // An import makes these anew.
    for key in ["prompts", "effective_policies"] {
        bundle.as_object_mut().unwrap().remove(key).unwrap();
    }
    let job = bench.reply("job_import", json!({"bundle": bundle}))["job_id"].clone();
    let reply = bench.reply("job_export_bundle", json!({"job_id": job, "format": "json"}));
    let again: Value = serde_json::from_str(reply["content"].as_str().unwrap()).unwrap();
    assert_ne!(again["batches"][0]["token"], token);
    assert_eq!(
        again["attempts"][1]["batch_commit_token"],
        again["batches"][0]["token"]
    );
    assert_eq!(
        again["mistakes"][0]["attempt_id"],
        again["attempts"][0]["attempt_id"]
    );
    assert_eq!(again["steps"][1]["approval"], Value::Null);
    assert_eq!(again["prompts"].as_array().unwrap().len(), 2);
}

#[test]
fn a_file_that_holds_no_bundle_is_refused() {
    let bench = Bench::with_repository();
    bench.write("part.json", r#"{"format": "tollgate-conductor-job", "vers"#);
    bench.write("more.json", "{} {}");
    bench.write(
        "other.json",
        r#"{"format": "tollgate-conductor-job", "version": 2, "jobs": []}"#,
    );
    bench.write("large.json", &" ".repeat((16 << 20) + 1));
    let mut log = String::new();
    for arguments in [
        json!({}),
        json!({"bundle": {}, "path": "main/part.json"}),
        json!({"path": "main"}),
        json!({"path": "main/../part.json"}),
        json!({"path": "elsewhere/part.json"}),
        json!({"path": "main/none.json"}),
        json!({"path": "main/part.json"}),
        json!({"path": "main/more.json"}),
        json!({"path": "main/other.json"}),
        json!({"path": "main/large.json"}),
    ] {
        let err = bench.call("job_import", arguments.clone()).unwrap_err();
        log += &format!("{arguments}: {err}\n");
    }
    expect![[r#"
        {}: INVALID_ARGUMENTS: bundle is missing; pass it or `path`
        {"bundle":{},"path":"main/part.json"}: INVALID_ARGUMENTS: path cannot be combined with `bundle`
        {"path":"main"}: INVALID_ARGUMENTS: path "main" is not a path in a workspace
        {"path":"main/../part.json"}: INVALID_ARGUMENTS: path "main/../part.json" is not a path in a workspace
        {"path":"elsewhere/part.json"}: WORKSPACE_UNKNOWN: workspace `elsewhere` does not exist or is not granted to this pack
        {"path":"main/none.json"}: FILE_NOT_FOUND: `none.json` does not exist
        {"path":"main/part.json"}: BUNDLE_INVALID: the bundle is invalid: EOF while parsing a string at line 1 column 42
        {"path":"main/more.json"}: BUNDLE_INVALID: the bundle's format is missing, not tollgate-conductor-job
        {"path":"main/other.json"}: BUNDLE_INVALID: the bundle's version is 2; this pack reads version 1
        {"path":"main/large.json"}: INVALID_ARGUMENTS: path is a file of more than 16777216 bytes
    "#]].assert_eq(&log);
    let jobs = bench.reply("job_list", json!({}))["jobs"].clone();
    assert_eq!(jobs.as_array().unwrap().len(), 1);
}

#[test]
fn a_long_job_is_imported_from_a_file() {
    const ENTRIES: usize = 4_200;
    let bench = Bench::with_repository();
    bench.reply("conductor_init", json!({"title": "Long", "goal": "A goal"}));
    let exported = bench.reply("job_export_bundle", json!({"format": "json"}));
    let mut bundle: Value = serde_json::from_str(exported["content"].as_str().unwrap()).unwrap();
    let content = |number: usize| format!("{number}: {}", "ä".repeat(1_800));
    let entries = (0..ENTRIES).map(|number| {
        json!({
            "log_id": format!("LOG-{number:04}"),
            "log_type": "DEVLOG",
            "at": "2026-01-01T00:00:00.000Z",
            "content": content(number),
        })
    });
    bundle["log"] = entries.collect();
    let written = bundle.to_string();
    assert!(written.len() > 14 << 20, "{} bytes", written.len());
    bench.write("long.json", &written);
    bench.reply("job_import", json!({"path": "main/long.json"}));
    let rows = bench
        .session
        .sql("SELECT content FROM conductor_logs WHERE log_type = 'DEVLOG' ORDER BY rowid");
    assert_eq!(rows.len(), ENTRIES);
    for (number, row) in rows.iter().enumerate() {
        let stored: String = row.get(0).unwrap();
        assert!(stored == content(number), "entry {number}");
    }
}

#[test]
fn what_gates_ran_is_in_every_export() {
    let gates = json!([{"gate": "command_exit_0", "command": ["pass"]}]);
    let bench = Bench::with_repository().started(json!([step("one", gates)]));
    bench.run("- job_next_step_prompt {}");
    let submitted = bench.reply("job_submit_step_result", result("S1"));
    let commands = json!({"pass": "exit code 0"});
    assert_eq!(submitted["commands"], commands, "{submitted}");
    let bundle: Value = serde_json::from_str(&exported(&bench, "json")).unwrap();
    assert_eq!(bundle["attempts"][0]["commands"], commands);
    let document = exported(&bench, "md");
    assert!(document.contains("- `pass`: exit code 0"), "{document}");
    let other = Bench::new();
    let copy = other.reply("job_import", json!({"bundle": bundle}))["job_id"].clone();
    let again = other.reply("job_get", json!({"job_id": copy, "attempts": 1}));
    assert_eq!(again["attempts"][0]["commands"], commands);
}

#[test]
fn a_mistake_learns_from_a_submission_of_its_own_job() {
    let bench = halfway();
    let bundle: Value = serde_json::from_str(&exported(&bench, "json")).unwrap();
    let attempt = bundle["attempts"][0]["attempt_id"].clone();
    let other = bench.reply(
        "conductor_init",
        json!({"title": "Other", "goal": "Another goal"}),
    );
    let mut mistake = json!({"title": "x", "what_happened": "a", "why": "b", "lesson": "c",
        "avoid_next_time": "d", "attempt_id": attempt});
    bench.reply("mistake_record", mistake.clone());
    mistake["job_id"] = other["job_id"].clone();
    let err = bench.call("mistake_record", mistake).unwrap_err();
    assert_eq!(err.code, "NOT_FOUND");
}

#[test]
fn many_new_ids_do_not_meet() {
    const ENTRIES: usize = 4_000;
    let bench = halfway();
    let mut bundle: Value = serde_json::from_str(&exported(&bench, "json")).unwrap();
    let entries = (0..ENTRIES).map(|number| {
        json!({
            "log_id": format!("LOG-{number:04}"),
            "log_type": "DEVLOG",
            "at": "2026-01-01T00:00:00.000Z",
            "content": "x",
        })
    });
    bundle["log"] = entries.collect();
    let other = Bench::new();
    for _ in 0..2 {
        other.reply("job_import", json!({"bundle": bundle}));
    }
    let rows = other.session.sql("SELECT count(*) FROM conductor_logs");
    let count: i64 = rows[0].get(0).unwrap();
    // Each import adds a line about its origin and one about the person who allowed it.
    assert_eq!(usize::try_from(count), Ok(2 * (ENTRIES + 2)));
}

#[test]
fn a_bundle_that_no_job_could_have_is_refused() {
    let bench = halfway();
    let good: Value = serde_json::from_str(&exported(&bench, "json")).unwrap();
    let mut log = String::new();
    for (path, value) in [
        ("/version", json!(2)),
        ("/version", json!("1")),
        ("/format", json!("other")),
        ("/job/status", json!("DREAMING")),
        ("/job/status", json!("READY")),
        ("/job/status", json!("COMPLETE")),
        ("/job/id", json!("job-1")),
        ("/job/repo_root", json!("../etc")),
        ("/steps/0/status", json!("PENDING")),
        ("/steps/1/step_id", json!("S1")),
        ("/steps/1/gates", json!([{"gate": "nope"}])),
        ("/attempts/0/at", json!("yesterday")),
        ("/steps", json!([])),
        ("/steps/1/step_id", json!("S02")),
        ("/steps/1/acceptance_criteria", json!([])),
        ("/steps/1/context_refs", json!(["CTX-GONE"])),
        ("/job/plan/deliverables", json!([])),
        ("/job/baseline", json!({"commit": "--output=x"})),
        ("/attempts/0/accepted", json!(true)),
        ("/attempts/1/model_claim", json!("PARTIAL")),
        ("/attempts/0/attempt_id", json!("../../x")),
        (
            "/attempts/1/attempt_id",
            good["attempts"][0]["attempt_id"].clone(),
        ),
        ("/attempts/0/step_id", json!("../S1")),
        ("/batches/0/steps", json!(["S2"])),
        ("/surprise", json!(1)),
        ("/job/surprise", json!(1)),
        ("/job/plan/surprise", json!(1)),
        ("/job/policies/surprise", json!(1)),
        ("/steps/0/surprise", json!(1)),
        ("/steps/1/gates/0/surprise", json!(1)),
        ("/steps/1/approval/surprise", json!(1)),
        ("/attempts/0/surprise", json!(1)),
        ("/context/0/surprise", json!(1)),
        ("/log/0/surprise", json!(1)),
        ("/mistakes/0/surprise", json!(1)),
        ("/batches/0/surprise", json!(1)),
        ("/repository/surprise", json!(1)),
    ] {
        let mut bundle = good.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        match bundle.pointer_mut(parent).unwrap() {
            Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
            object => object[key] = value,
        }
        let err = bench.call("job_import", json!({"bundle": bundle})).unwrap_err();
        log += &format!("{path}: {err}\n");
    }
    let err = bench.call("job_import", json!({"bundle": {}})).unwrap_err();
    log += &format!("empty: {err}\n");
    expect_file!["snapshots/refused_bundles.txt"].assert_eq(&log);
    assert_eq!(
        bench.reply("job_list", json!({}))["jobs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn large_exports_come_in_parts() {
    let bench = halfway();
    for _ in 0..4 {
        let block = json!({"block_type": "OUTPUT", "content": "é".repeat(100_000)});
        bench.reply("context_add_block", block);
    }
    for format in ["md", "json"] {
        let mut whole = String::new();
        let first = bench.reply("job_export_bundle", json!({"format": format}));
        let parts = first["parts"].as_u64().unwrap();
        assert!(parts > 1);
        for part in 1..=parts {
            let reply = bench.reply("job_export_bundle", json!({"format": format, "part": part}));
            assert!(reply.to_string().len() < 1 << 20);
            whole += reply["content"].as_str().unwrap();
        }
        assert_eq!(whole.matches('é').count(), 400_000, "{format}");
        if format == "json" {
            let bundle: Value = serde_json::from_str(&whole).unwrap();
            Bench::new().reply("job_import", json!({"bundle": bundle}));
            let other = Bench::with_repository();
            other.write("out/job.json", &whole);
            let imported = other.reply("job_import", json!({"path": "main/out/job.json"}));
            assert_eq!(imported["attempts"], 2);
        }
    }
    let mut files: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for part in 1.. {
        let asked = json!({"format": "zip_manifest", "part": part});
        let reply = bench.reply("job_export_bundle", asked);
        assert!(reply.to_string().len() < 1 << 20);
        for file in reply["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap().to_owned();
            let (pieces, whole) = files.entry(path).or_default();
            *pieces += 1;
            *whole += file["content"].as_str().unwrap();
            assert_eq!(file["piece"].as_u64().unwrap_or(1), *pieces);
            if file["bytes"].as_u64() == u64::try_from(whole.len()).ok() {
                let digest = Sha256::digest(whole.as_bytes());
                let hex = digest.iter().map(|byte| format!("{byte:02x}"));
                assert_eq!(file["sha256"], json!(hex.collect::<String>()));
            } else {
                assert!(file["piece"].is_u64(), "{}", file["path"]);
            }
        }
        if reply["parts"] == part {
            break;
        }
    }
    let (pieces, whole) = &files["job.json"];
    assert!(*pieces > 2 && serde_json::from_str::<Value>(whole).is_ok());
    let beyond = bench.call("job_export_bundle", json!({"part": 99})).unwrap_err();
    assert_eq!(beyond.code, "INVALID_ARGUMENTS");
}
