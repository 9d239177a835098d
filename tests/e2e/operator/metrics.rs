//! Metrics under `/metrics`, and the files in `deploy/` for metrics and for a server.
#![allow(clippy::disallowed_methods, reason = "tests read files of the project")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{HttpServer, Place, Session, terminate, until};
use crate::transport::http_auth::{ADA, knock, place_with_tokens};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn file(path: &str) -> String {
    std::fs::read_to_string(project().join(path)).unwrap()
}

/// The metrics of a server.
pub(crate) async fn scrape(server: &HttpServer, token: &str) -> String {
    let request = reqwest::Client::new().get(server.at("/metrics"));
    let response = request
        .header("authorization", format!("Bearer {token}"))
        .send()
        .await;
    let response = response.unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    response.text().await.unwrap()
}

/// The value of a sample.
pub(crate) fn value(figures: &str, sample: &str) -> f64 {
    let line = figures
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{sample} ")));
    line.unwrap_or_else(|| panic!("{sample} in {figures}"))
        .parse()
        .unwrap()
}

/// Ends of the names of a metric's samples, by its type.
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "histogram" => &["_bucket", "_sum", "_count"],
        _ => &[""],
    }
}

const CONFIG: &str = r#"
[server.auth]
token_file = "tokens"

[policies.closed]
source = "builtin:cel"
limits.time_ms = 10000
tools = ["task_list"]
config = { when = "true", code = "CLOSED", message = "it is closed", remediation = "Come back." }
"#;

#[tokio::test]
async fn sessions_refusals_envelopes_denials_and_the_database_are_counted() {
    let place = place_with_tokens(CONFIG);
    let server = place.serve_http(&[]);
    let session = Session::over_http_as(&server, ADA).await;
    session.ok("envelope_open", json!({})).await;
    for _ in 0..2 {
        assert_eq!(
            session.call_raw("task_list", json!({})).await.is_error,
            Some(true)
        );
    }
    assert!(knock(&server, None).await.starts_with("401"));
    assert!(knock(&server, Some("wrong")).await.starts_with("401"));
    let elsewhere = reqwest::Client::new()
        .get(server.at("/healthz"))
        .header("host", "evil.example");
    assert_eq!(elsewhere.send().await.unwrap().status().as_u16(), 403);
    let figures = scrape(&server, ADA).await;
    for (sample, least, most) in [
        ("tollgate_http_refusals_total{status=\"401\"}", 2.0, 2.0),
        ("tollgate_http_refusals_total{status=\"403\"}", 1.0, 1.0),
        ("tollgate_policy_denials_total{policy=\"closed\"}", 2.0, 2.0),
        ("tollgate_policy_instances_ready{policy=\"closed\"}", 0.0, 2.0),
        ("tollgate_envelopes_open", 1.0, 1.0),
        ("tollgate_ledger_rows", 3.0, 3.0),
        ("tollgate_database_bytes", 4096.0, 1e9),
        ("tollgate_writer_queue_jobs", 0.0, 10.0),
        ("process_resident_memory_bytes", 1e6, 1e11),
        ("process_start_time_seconds", 1.7e9, 1e11),
    ] {
        let found = value(&figures, sample);
        assert!((least..=most).contains(&found), "{sample} {found}");
    }
    // Metrics are declared once each, and before their samples.
    let mut known = BTreeSet::new();
    for line in figures.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (metric, kind) = declared.split_once(' ').unwrap();
            for end in suffixes(kind) {
                assert!(known.insert(format!("{metric}{end}")), "{line}");
            }
        } else if !line.starts_with("# HELP ") {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(known.contains(name), "{line}");
        }
    }
    for path in ["deploy/grafana.json", "deploy/alerts.yaml"] {
        let text = file(path);
        let mut names = BTreeSet::new();
        for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            if word.starts_with("tollgate_") || word.starts_with("process_") {
                names.insert(word.to_owned());
            }
        }
        assert!(names.len() > 10, "{path}: {names:?}");
        let unknown: Vec<_> = names.difference(&known).collect();
        assert!(unknown.is_empty(), "{path} names what is not there: {unknown:?}");
    }
    let _: Value = serde_json::from_str(&file("deploy/grafana.json")).unwrap();
}

/// The instructions of the last stage of the Containerfile.
fn instructions() -> Vec<(String, String)> {
    let text = file("deploy/Containerfile").replace("\\\n", " ");
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let all: Vec<(String, String)> = lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, rest)| (name.to_owned(), rest.trim().to_owned()))
        .collect();
    let last = all.iter().rposition(|(name, _)| name == "FROM").unwrap();
    all[last..].to_vec()
}

fn said(of: &[(String, String)], name: &str) -> String {
    let found = of.iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("{name}")).1.clone()
}

#[tokio::test]
async fn what_the_container_runs_starts_and_is_healthy_and_stops() {
    let last = instructions();
    let place = Place::new();
    let data = place.data();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let settings: BTreeMap<String, String> = said(&last, "ENV")
        .split_whitespace()
        .map(|pair| pair.split_once('=').unwrap())
        .map(|(name, value)| {
            let value = value
                .replace("/data", data.to_str().unwrap())
                .replace("8765", &port.to_string());
            (name.to_owned(), value)
        })
        .collect();
    let run = |arguments: &[String]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.current_dir(&data).envs(&settings).args(arguments);
        command.stderr(Stdio::null()).stdout(Stdio::null());
        command
    };
    let list = |text: &str| -> Vec<String> { serde_json::from_str(text).unwrap() };
    let program = list(&said(&last, "ENTRYPOINT"));
    let copied = said(&last, "COPY");
    assert_eq!(
        copied.split_whitespace().last(),
        program.first().map(String::as_str)
    );
    let check = said(&last, "HEALTHCHECK");
    let check = list(check.split_once("CMD ").unwrap().1);
    assert_eq!(check[..1], program[..]);
    assert!(!run(&check[1..]).status().unwrap().success(), "nothing runs yet");
    let mut server = run(&list(&said(&last, "CMD"))).spawn().unwrap();
    until(async || run(&check[1..]).status().unwrap().success()).await;
    assert!(data.join("tokens").exists(), "a token was made");
    terminate(server.id());
    assert!(server.wait().unwrap().success());
    // The first stage builds what the last one copies.
    let all = file("deploy/Containerfile");
    assert!(all.contains("cargo xtask build --dist") && all.contains("/src/target/dist/tollgate"));
    assert!(
        all.contains(&format!("docker.io/library/rust:{}", toolchain())),
        "{}",
        toolchain()
    );
}

/// The compiler that the project names, such as `1.95`.
fn toolchain() -> String {
    let text = file("rust-toolchain.toml");
    let channel = text
        .lines()
        .find_map(|line| line.strip_prefix("channel = "))
        .unwrap();
    let parts: Vec<&str> = channel.trim_matches('"').split('.').collect();
    parts[..2].join(".")
}

#[test]
fn the_unit_starts_a_command_that_there_is_with_what_wasmtime_needs() {
    let unit = file("deploy/tollgate.service");
    let key = |name: &str| {
        let found = unit
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        found.unwrap_or_else(|| panic!("{name}"))
    };
    let start = key("ExecStart");
    let mut words = start.split_whitespace();
    assert_eq!(words.next(), Some("/usr/local/bin/tollgate"));
    let help = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(words)
        .arg("--help")
        .output()
        .unwrap();
    assert!(help.status.success(), "{start}");
    assert_eq!(key("Type"), "exec");
    assert_eq!(key("ExecReload"), "/bin/kill -HUP $MAINPID");
    assert_eq!(
        key("MemoryDenyWriteExecute"),
        "no",
        "wasmtime makes code at run time"
    );
    assert!(unit.contains("\nLimitAS=infinity\n"));
    let stop: u64 = key("TimeoutStopSec").parse().unwrap();
    assert!(stop > 30, "longer than calls may take to drain");
    for hardened in [
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=\n",
        "PrivateTmp=yes",
    ] {
        assert!(unit.contains(hardened), "{hardened}");
    }
}
