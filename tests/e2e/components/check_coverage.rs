//! Honesty of `packs check`: it exercises what a component offers, lists what it did not exercise, and fails if that is
//! everything.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files")]

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Place, guest};
use crate::https;

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn check(place: &Place, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = place.run(&[&["--json"], arguments].concat());
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

/// Outcomes of a tool's calls.
fn outcomes<'a>(report: &'a Value, tool: &str) -> Vec<&'a str> {
    let calls = report["calls"].as_array().unwrap().iter();
    let of_tool = calls.filter(|call| call["tool"] == tool);
    of_tool.map(|call| call["outcome"].as_str().unwrap()).collect()
}

/// Findings of a kind, one a line.
fn lines(report: &Value, kind: &str) -> String {
    let findings = report[kind].as_array().unwrap().iter();
    let line = |finding: &Value| {
        format!(
            "{}: {}\n",
            finding["about"].as_str().unwrap(),
            finding["found"].as_str().unwrap()
        )
    };
    findings.map(line).collect()
}

#[test]
fn a_policy_that_judged_nothing_is_wrong_and_one_that_judged_is_not() {
    let place = Place::new();
    // It denies without a list to go by, and the list that is made up is empty.
    let (code, report) = check(&place, &["policies", "check", "builtin:path-guard"]);
    assert_eq!((code, &report["judged"]), (Some(1), &json!(0)), "{report:#}");
    assert!(
        lines(&report, "problems").contains("the policy evaluated no call"),
        "{report:#}"
    );
    let settings = r#"{"deny": ["secret/**"]}"#;
    let told = ["policies", "check", "builtin:path-guard", "--settings", settings];
    let (code, report) = check(&place, &told);
    assert_eq!((code, &report["judged"]), (Some(0), &json!(2)), "{report:#}");
    assert!(
        lines(&report, "untried").contains("calls that run programs were not evaluated"),
        "{report:#}"
    );
    let output = place.run(&told);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("evaluated 2 of 2 calls; no problems"), "{said}");
    assert!(said.contains("not tried: "), "{said}");
    // Every evaluation fails: that is no verdict.
    let trap = json!({ "before": "trap" }).to_string();
    let faulty = guest("policy-faults");
    let (code, report) = check(&place, &["policy", "check", path(&faulty), "--settings", &trap]);
    assert_eq!((code, &report["judged"]), (Some(1), &json!(0)), "{report:#}");
}

#[test]
fn workspaces_that_a_tool_names_by_default_are_there_and_named_ones_are_copies() {
    let place = Place::new();
    let file = guest("workspace-access");
    // Its tools work in `main` if nobody says otherwise.
    let (_, report) = check(&place, &["pack", "check", path(&file), "--programs"]);
    assert!(
        outcomes(&report, "workspace_access_look").contains(&"ok"),
        "{report:#}"
    );
    assert!(
        outcomes(&report, "workspace_access_run").contains(&"ok"),
        "{report:#}"
    );
    let directory = place.path().join("mine");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("x"), "mine").unwrap();
    std::os::unix::fs::symlink("/etc", directory.join("out")).unwrap();
    let flag = format!("main={}", path(&directory));
    let (_, report) = check(&place, &["packs", "check", path(&file), "--workspace", &flag]);
    let calls = report["calls"].as_array().unwrap().iter();
    let written = calls.filter(|call| call["tool"] == "workspace_access_write" && call["outcome"] == "ok");
    let arguments: Vec<&Value> = written.map(|call| &call["arguments"]).collect();
    assert!(
        arguments.iter().any(|made| made["files"][0]["path"] == "x"),
        "the file was written: {report:#}"
    );
    assert_eq!(std::fs::read_to_string(directory.join("x")).unwrap(), "mine");
    assert!(
        lines(&report, "untried").contains("workspace main: links and special files that were not copied: 1"),
        "{report:#}"
    );
    assert!(
        lines(&report, "untried").contains("programs: no program was started"),
        "{report:#}"
    );
    let missing = [
        "packs",
        "check",
        path(&file),
        "--workspace",
        "main=/nowhere/at/all",
    ];
    let output = place.run(&missing);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("workspace main"),
        "{said}"
    );
}

#[test]
fn resources_are_read_and_values_asked_for() {
    let place = Place::new();
    let (code, report) = check(&place, &["packs", "check", "conductor"]);
    assert_eq!(code, Some(0), "{report:#}");
    let calls = report["calls"].as_array().unwrap().iter();
    let read: Vec<&str> = calls.filter_map(|call| call["address"].as_str()).collect();
    assert!(
        read.iter()
            .any(|address| address.starts_with("tollgate://conductor/jobs/") && address.ends_with(".md")),
        "{read:?}"
    );
    let (_, report) = check(&place, &["packs", "check", "gsd"]);
    let untried = lines(&report, "untried");
    assert!(untried.contains("all calls were refused with"), "{untried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_at_an_address_is_inspected_and_checked_without_being_added() {
    let place = Place::new();
    let server = https::serve(std::fs::read(guest("sql-access")).unwrap()).await;
    let url = server.url();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command
            .env("SSL_CERT_FILE", server.certificate())
            .output()
            .unwrap()
    };
    let inspected = run(&["packs", "inspect", &url]);
    let said = String::from_utf8_lossy(&inspected.stdout);
    assert!(
        inspected.status.success() && said.contains("sql-access"),
        "{said}"
    );
    let checked = run(&["--json", "packs", "check", &url]);
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(report["name"], "sql-access");
    assert_eq!(server.requests(), 2);
    let kept = std::fs::read_dir(place.data().join("components")).map_or(0, Iterator::count);
    assert_eq!(kept, 0);
    for scheme in ["http", "ftp"] {
        let output = run(&["packs", "check", &url.replacen("https", scheme, 1)]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("cannot be downloaded"),
            "{said}"
        );
    }
}
