//! Telemetry of calls to an OpenTelemetry collector. Calls never wait for a collector.
#![allow(clippy::disallowed_methods, reason = "the tests write files")]

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use expect_test::expect;
use opentelemetry_proto::tonic::trace::v1::Span;
use rmcp::model::{GetPromptRequestParams, RequestParamsMeta as _};
use serde_json::{Value, json};

use crate::harness::{Place, Session, hang_up, params, until};
use crate::https;
use crate::operator::collector::{Collector, Mood, named};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Beginning of the only warning about an outage.
const AWAY: &str = "the collector does not accept telemetry";

/// A place whose host sends telemetry to a collector, with more lines of configuration.
fn place(url: &str, more: &str) -> Place {
    Place::with(&format!("[telemetry]\notlp = {url:?}\n{more}"))
}

async fn call(session: &Session, tool: &str, arguments: Value, traceparent: &str) {
    let mut params = params(tool, arguments);
    params.set_traceparent(traceparent);
    session.client().call_tool(params).await.unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The one span of an operation.
fn of<'a>(spans: &'a [Span], op_id: &str) -> &'a Span {
    let mut found = spans
        .iter()
        .filter(|span| named(&span.attributes)["tollgate.op_id"] == op_id);
    let span = found.next().unwrap();
    assert!(found.next().is_none(), "{op_id} came twice");
    span
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_hears_of_every_call_and_of_nothing_that_is_in_one() {
    let collector = Collector::start(Mood::Takes).await;
    let place = place(
        &collector.url,
        "interval_sec = 1\nservice_name = \"gate\"\nheaders = { authorization = \"file:token\" }\n",
    );
    let token = place.path().join("token");
    std::fs::write(&token, "Bearer hidden\n").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = place.serve_http(&["--tier", "full"]);
    let session = Session::over_http(&server).await;
    let envelope = session.ok("envelope_open", json!({})).await;
    let task = json!({
        "title": "private words", "spec_markdown": "private words", "workspace": "w",
        "initial_phase": "spec_draft", "actor": "private", "actor_role": "orchestrator",
        "envelope_id": envelope["id"],
    });
    call(&session, "task_create", task, PARENT).await;
    session
        .refused("task_get", json!({"task_id": "private words"}))
        .await;
    let other = json!({"envelope_id": "private words"});
    call(&session, "task_list", other, "private words").await;
    // A caller that records nothing is recorded all the same, in a trace of its own.
    call(&session, "task_list", json!({}), &PARENT.replace("-01", "-00")).await;
    let prompt = GetPromptRequestParams::new("plan_job");
    session.client().get_prompt(prompt).await.unwrap_err();
    until(async || collector.spans().len() == 6 && collector.timed("task_list") == Some(2)).await;

    let spans = collector.spans();
    let rows = place.sql("SELECT op_id || ' ' || tool FROM core_operations ORDER BY seq");
    let row = |tool: &str| {
        let row = rows.iter().find_map(|row| row.strip_suffix(&format!(" {tool}")));
        row.unwrap_or_else(|| panic!("{tool} in {rows:?}"))
    };
    let created = of(&spans, row("task_create"));
    assert_eq!(created.name, "tools/call task_create");
    assert_eq!(created.kind, 2);
    assert_eq!(hex(&created.trace_id), PARENT[3..35]);
    assert_eq!(hex(&created.parent_span_id), PARENT[36..52]);
    assert_eq!(created.status, None);
    let in_trace = spans.iter().filter(|span| hex(&span.trace_id) == PARENT[3..35]);
    assert_eq!(in_trace.count(), 1);
    assert!(created.start_time_unix_nano < created.end_time_unix_nano);
    let attributes = named(&created.attributes);
    assert_eq!(attributes["mcp.method.name"], "tools/call");
    assert_eq!(attributes["gen_ai.tool.name"], "task_create");
    assert_eq!(attributes["tollgate.pack"], "task-store");
    assert_eq!(attributes["tollgate.effect"], "write");
    assert_eq!(attributes["tollgate.envelope_id"], envelope["id"]);
    let refused = of(&spans, row("task_get"));
    let status = refused.status.as_ref().unwrap();
    assert_eq!(status.code, 2);
    assert_eq!(status.message, named(&refused.attributes)["error.type"]);
    let listed = of(&spans, row("task_list"));
    assert!(listed.parent_span_id.is_empty());
    let prompt = of(&spans, row("plan_job"));
    assert_eq!(prompt.name, "prompts/get plan_job");
    assert_eq!(named(&prompt.attributes)["gen_ai.prompt.name"], "plan_job");
    assert!(!format!("{spans:?}").contains("private"), "{spans:#?}");

    let calls = |tool, outcome| {
        let labels = [("pack", "task-store"), ("tool", tool), ("outcome", outcome)];
        collector.value("tollgate.calls", &labels)
    };
    assert_eq!(calls("task_create", "ok"), Some(1));
    assert_eq!(calls("task_get", "error"), Some(1));
    assert_eq!(calls("task_get", "ok"), Some(0));
    assert_eq!(
        calls("task_list", "ok").zip(calls("task_list", "error")),
        Some((1, 1))
    );
    assert_eq!(collector.value("tollgate.packs", &[("state", "failed")]), Some(0));
    assert_eq!(collector.value("tollgate.spans_dropped", &[]), Some(0));
    let resource = collector.resource();
    assert_eq!(resource["service.name"], "gate");
    assert_eq!(
        place.sql("SELECT DISTINCT host_id FROM core_operations"),
        [resource["service.instance.id"].as_str()]
    );
    let sent = collector.headers("authorization");
    assert!(sent.iter().all(|value| value == "Bearer hidden"), "{sent:?}");
    let log = server.stop();
    assert!(!log.contains("hidden") && !log.contains(AWAY), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_goes_out_when_the_client_leaves() {
    let collector = Collector::start(Mood::Takes).await;
    let place = place(&collector.url, "interval_sec = 3600\n");
    let session = place.serve(&[]).await;
    session.ok("task_list", json!({})).await;
    assert_eq!(collector.requests(), 0);
    session.close().await;
    until(async || collector.spans().len() == 1 && collector.timed("task_list") == Some(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_busy_collector_did_not_take_comes_later() {
    let collector = Collector::start(Mood::Busy).await;
    let place = place(&collector.url, "metrics = false\n");
    let server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    for _ in 0..3 {
        session.ok("task_list", json!({})).await;
    }
    until(async || collector.requests() >= 1).await;
    collector.change(Mood::Takes);
    until(async || collector.spans().len() == 3).await;
    let ids = place.sql("SELECT op_id FROM core_operations");
    let spans = collector.spans();
    assert!(ids.iter().all(|id| of(&spans, id).status.is_none()));
    let log = server.stop();
    assert_eq!(log.matches(AWAY).count(), 1, "{log}");
    assert!(log.contains("it answers 503"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_that_nobody_wants_are_counted() {
    let collector = Collector::start(Mood::Counts).await;
    let place = place(&collector.url, "interval_sec = 1\n");
    let server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    for _ in 0..3 {
        session.ok("task_list", json!({})).await;
    }
    until(async || collector.value("tollgate.spans_dropped", &[]) == Some(3)).await;
    assert_eq!(collector.timed("task_list"), Some(3));
    let metrics = reqwest::get(server.at("/metrics")).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(
        metrics.contains("\ntollgate_spans_dropped_total 3\n"),
        "{metrics}"
    );
    let log = server.stop();
    assert_eq!(log.matches(AWAY).count(), 1, "{log}");
    assert!(log.contains("it answers 404"), "{log}");
}

/// Checks that calls continue, that each kind of message has one warning, and that the host stops without waiting.
async fn holds_nothing_up(url: &str, was_asked_again: impl AsyncFnMut() -> bool) {
    let place = place(url, "interval_sec = 1\n");
    let server = place.serve_http(&[]);
    let session = Session::over_http(&server).await;
    session.ok("task_list", json!({})).await;
    until(async || server.log().matches(AWAY).count() == 2).await;
    for _ in 0..5 {
        session.ok("task_list", json!({})).await;
    }
    until(was_asked_again).await;
    session.ok("task_list", json!({})).await;
    session.close().await;
    let asked = Instant::now();
    let log = server.stop();
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    assert_eq!(log.matches(AWAY).count(), 2, "{log}");
    assert_eq!(place.ledger(), ["task_list read ok"; 7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_collector_holds_nothing_up() {
    let collector = Collector::start(Mood::Busy).await;
    holds_nothing_up(&collector.url, async || collector.requests() >= 6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_hangs_holds_nothing_up() {
    let collector = Collector::start(Mood::Hangs).await;
    holds_nothing_up(&collector.url, async || true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_not_there_holds_nothing_up() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    holds_nothing_up(&url, async || true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_waits_for_the_next_start() {
    let place = Place::new();
    let server = place.serve_http(&[]);
    let collector = Collector::start(Mood::Takes).await;
    let config = format!("[telemetry]\notlp = {:?}\n", collector.url);
    std::fs::write(place.config(), config).unwrap();
    hang_up(server.pid());
    until(async || {
        let log = server.log();
        log.contains("a change of telemetry takes effect at the next start")
    })
    .await;
    server.stop();
    assert_eq!(collector.requests(), 0);
}

#[test]
fn a_header_that_cannot_be_had_keeps_the_host_from_starting() {
    let place = place(
        "http://127.0.0.1:4318",
        "headers = { authorization = \"env:TOLLGATE_NOT_SET\" }\n",
    );
    let output = place.run(&["serve"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("telemetry.headers.authorization: the variable TOLLGATE_NOT_SET is not set"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_asks_the_collector() {
    let collector = Collector::start(Mood::Takes).await;
    let place = place(&collector.url, "metrics = false\n");
    let said = |place: &Place| {
        let output = place.run(&["doctor"]);
        let said = String::from_utf8(output.stdout).unwrap();
        let lines = said.lines().filter(|line| line.contains(" telemetry: "));
        lines
            .collect::<Vec<_>>()
            .join("\n")
            .replace(&collector.url, "URL")
    };
    expect!["ok       telemetry: URL/v1/traces accepts telemetry"].assert_eq(&said(&place));
    collector.change(Mood::Busy);
    expect!["warning  telemetry: URL/v1/traces does not accept telemetry: it answers 503"]
        .assert_eq(&said(&place));
    assert!(collector.spans().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_is_reached_over_https_if_it_is_trusted() {
    let server = https::serve(Vec::new()).await;
    let url = server.url().replace("/component.wasm", "");
    let place = place(&url, "metrics = false\n");
    let mut command = place.command(&["doctor"]);
    let trusting = command.env("SSL_CERT_FILE", server.certificate());
    let said = String::from_utf8(trusting.output().unwrap().stdout).unwrap();
    assert!(
        said.contains("/v1/traces does not accept telemetry: it answers 404"),
        "{said}"
    );
    let said = String::from_utf8(place.run(&["doctor"]).stdout).unwrap();
    assert!(said.contains("/v1/traces does not accept telemetry: "), "{said}");
    assert_eq!(server.requests(), 1);
}
