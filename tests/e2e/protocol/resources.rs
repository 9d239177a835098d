//! Resources with URIs, and completion of their parameters, in both eras of the protocol.

use rmcp::ServiceError;
use rmcp::model::{
    ArgumentInfo, CompleteRequestParams, ErrorData, ReadResourceRequestParams, ReadResourceResult, Reference,
    ResourceContents,
};
use serde_json::{Value, json};

use crate::harness::{Place, Session, guest, until};
use crate::transport::http::{NEWEST, post, stateless};

async fn read(session: &Session, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let asked = session
        .client()
        .read_resource(ReadResourceRequestParams::new(uri))
        .await;
    match asked {
        Ok(result) => Ok(result),
        Err(ServiceError::McpError(err)) => Err(err),
        Err(err) => panic!("{err}"),
    }
}

/// Text at a URI, its MIME type, and the URI of the next part.
async fn text(session: &Session, uri: &str) -> (String, String, Option<String>) {
    let mut result = read(session, uri).await.unwrap();
    assert_eq!(result.contents.len(), 1);
    let ResourceContents::TextResourceContents {
        text,
        mime_type,
        meta,
        ..
    } = result.contents.remove(0)
    else {
        panic!("{uri} is no text");
    };
    let next = meta.and_then(|meta| meta.0.get("tollgate/next_uri")?.as_str().map(str::to_owned));
    (text, mime_type.unwrap(), next)
}

async fn complete(session: &Session, reference: Reference, argument: &str, typed: &str) -> Vec<String> {
    let argument: ArgumentInfo = serde_json::from_value(json!({"name": argument, "value": typed})).unwrap();
    let asked = session
        .client()
        .complete(CompleteRequestParams::new(reference, argument))
        .await;
    asked.unwrap().completion.values
}

#[tokio::test]
async fn an_envelope_is_told_under_its_address() {
    let place = Place::new();
    let session = place.serve(&["--compact"]).await;
    let mut ids = Vec::new();
    for label in ["first", "second"] {
        let opened = session.ok("envelope_open", json!({"label": label})).await;
        ids.push(opened["id"].as_str().unwrap().to_owned());
    }
    let resources = session.client().list_all_resources().await.unwrap();
    let uris: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
    let report = format!("tollgate://core/envelopes/{}/report.txt", ids[1]);
    assert!(uris.contains(&report.as_str()), "{uris:?}");
    assert!(uris.contains(&"tollgate://core/operations.json"), "{uris:?}");
    let (told, kind, _) = text(&session, &report).await;
    assert!(told.contains("second"), "{told}");
    assert_eq!(kind, "text/plain");
    let (json, kind, _) = text(&session, &report.replace("report.txt", "report.json")).await;
    assert_eq!(
        serde_json::from_str::<Value>(&json).unwrap()["envelope"]["id"],
        ids[1].as_str()
    );
    assert_eq!(kind, "application/json");

    let template = Reference::for_resource("tollgate://core/envelopes/{envelope_id}/report.txt");
    assert_eq!(
        complete(&session, template.clone(), "envelope_id", "").await,
        [ids[1].as_str(), &ids[0]]
    );
    assert_eq!(
        complete(&session, template.clone(), "envelope_id", &ids[0]).await,
        [ids[0].as_str()]
    );
    assert!(
        complete(&session, template.clone(), "envelope_id", "zebra")
            .await
            .is_empty()
    );
    assert!(complete(&session, template, "nonsense", "").await.is_empty());
    let states = Reference::for_resource("tollgate://core/envelopes.json{?state,workspace,cursor,limit}");
    let closed = complete(&session, states, "state", "closed").await;
    assert_eq!(closed, ["CLOSED_SUCCESS", "CLOSED_FAILED", "CLOSED_INTERRUPTED"]);

    let (page, _, next) = text(&session, "tollgate://core/envelopes.json?limit=1").await;
    assert_eq!(
        serde_json::from_str::<Value>(&page).unwrap()["envelopes"][0]["id"],
        ids[1].as_str()
    );
    let (page, _, next) = text(&session, &next.unwrap()).await;
    assert_eq!(
        serde_json::from_str::<Value>(&page).unwrap()["envelopes"][0]["id"],
        ids[0].as_str()
    );
    assert_eq!(next, None);
    session.close().await;
    // Whoever reads an address calls a tool, and the ledger says so.
    let rows = place.ledger();
    assert!(rows.contains(&"ledger_report read ok".to_owned()), "{rows:?}");
}

#[tokio::test]
async fn stored_content_is_read_slice_by_slice() {
    let place = Place::with("[artifacts]\nenabled = true\narguments = true\n");
    let session = place.serve(&[]).await;
    let arguments = json!({"title": "é".repeat(40), "spec_markdown": "# Goal\ng", "workspace": "w",
        "initial_phase": "spec_draft", "actor": "ada", "actor_role": "orchestrator"});
    session.ok("task_create", arguments.clone()).await;
    let template = Reference::for_resource("tollgate://core/artifacts/{artifact_id}{?offset,limit}");
    let mut ids = Vec::new();
    until(async || {
        ids = complete(&session, template.clone(), "artifact_id", "").await;
        !ids.is_empty()
    })
    .await;
    let mut whole = String::new();
    let mut next = Some(format!(
        "tollgate://core/artifacts/{}?limit=50",
        ids.last().unwrap()
    ));
    while let Some(uri) = next {
        let (slice, kind, following) = text(&session, &uri).await;
        assert_eq!(kind, "text/plain");
        assert!(slice.len() <= 50);
        whole.push_str(&slice);
        next = following;
    }
    assert_eq!(serde_json::from_str::<Value>(&whole).unwrap(), arguments);
    session.close().await;
}

#[tokio::test]
async fn packs_offer_their_exports() {
    let place = Place::new();
    let session = place.serve(&[]).await;
    let begun = session
        .ok(
            "conductor_init",
            json!({"title": "CSV export", "goal": "Export the report as CSV"}),
        )
        .await;
    let job = begun["job_id"].as_str().unwrap();
    let resources = session.client().list_all_resources().await.unwrap();
    let uri = format!("tollgate://conductor/jobs/{job}.md");
    assert!(
        resources.iter().any(|resource| resource.uri == uri),
        "{resources:?}"
    );
    let (told, kind, _) = text(&session, &uri).await;
    assert!(told.contains("CSV export"), "{told}");
    assert_eq!(kind, "text/markdown");
    let (exported, _, _) = text(&session, &format!("tollgate://conductor/jobs/{job}.json")).await;
    assert_eq!(
        serde_json::from_str::<Value>(&exported).unwrap()["job"]["title"],
        "CSV export"
    );
    let (devlog, _, _) = text(&session, &format!("tollgate://conductor/jobs/{job}/devlog.md")).await;
    assert!(devlog.starts_with("# Devlog: CSV export"), "{devlog}");
    let prompt = Reference::for_prompt("execute_job");
    assert_eq!(complete(&session, prompt, "job_id", "job-").await, [job]);
    session.close().await;
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let place = Place::new();
    let session = place.serve(&["--exclude-tools", "artifact_get"]).await;
    for uri in [
        "tollgate://core/envelopes/env_x/report.txt",
        "tollgate://core/artifacts/art_x",
        "tollgate://nobody/x",
        "file:///etc/passwd",
        "",
    ] {
        let refusal = read(&session, uri).await.unwrap_err();
        assert!([-32002, -32602].contains(&refusal.code.0), "{uri}: {refusal:?}");
    }
    let refusal = read(&session, "tollgate://core/envelopes/env_x/report.txt")
        .await
        .unwrap_err();
    assert_eq!(refusal.data.unwrap()["error"]["code"], "UNKNOWN_ENVELOPE");
    let refusal = read(&session, "tollgate://core/operations.json?limit=many")
        .await
        .unwrap_err();
    assert_eq!(refusal.data.unwrap()["error"]["code"], "INVALID_ARGUMENTS");
    let templates = session.client().list_all_resource_templates().await.unwrap();
    assert!(templates.iter().all(|template| template.name != "artifact"));
    session.close().await;
}

#[tokio::test]
async fn both_eras_read_the_same() {
    let place = Place::new();
    let mut wire = place.wire(&[]);
    let begun = wire.initialize("2025-11-25");
    assert!(begun["result"]["capabilities"]["resources"].is_object());
    assert!(begun["result"]["capabilities"]["completions"].is_object());
    let ask =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let uri = "tollgate://core/envelopes.json";
    let old = wire.ask(&ask("resources/read", json!({"uri": uri})));
    let missing = wire.ask(&ask("resources/read", json!({"uri": "tollgate://core/x"})));
    assert_eq!(missing["error"]["code"], -32002);

    let server = place.serve_http(&[]);
    let newest = async |method: &str, name: &str, params: Value| {
        let headers = [NEWEST, ("mcp-method", method), ("mcp-name", name)];
        let (status, text) = post(&server, &headers, stateless(method, params)).await;
        let json = text
            .lines()
            .find_map(|line| line.strip_prefix("data: "))
            .unwrap_or(&text)
            .to_owned();
        (status, serde_json::from_str::<Value>(&json).unwrap())
    };
    let (status, new) = newest("resources/read", uri, json!({"uri": uri})).await;
    assert_eq!(
        (status, &new["result"]["contents"]),
        (200, &old["result"]["contents"])
    );
    assert_eq!(new["result"]["cacheScope"], "private");
    let (_, missing) = newest(
        "resources/read",
        "tollgate://core/x",
        json!({"uri": "tollgate://core/x"}),
    )
    .await;
    assert_eq!(missing["error"]["code"], -32602);
    let (status, listed) = newest("resources/templates/list", "", json!({})).await;
    assert_eq!(status, 200);
    let templates = listed["result"]["resourceTemplates"].as_array().unwrap();
    assert!(
        templates
            .iter()
            .any(|template| template["name"] == "envelope_report"),
        "{listed:#}"
    );
}

#[test]
fn a_pack_that_names_a_tool_of_others_to_list_values_is_refused() {
    let place = Place::with_guests(&["resource-foreign"]);
    let checked = place.run(&["packs", "check", guest("resource-foreign").to_str().unwrap()]);
    let listed = place.run(&["packs", "list"]);
    let said = [checked.stdout, checked.stderr, listed.stdout, listed.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let told = "argument id: x-values: `envelope_open` is not a tool of the pack";
    assert!(said.contains(told), "{said}");
    assert!(said.contains("envelope_list"), "it says what is allowed: {said}");
}
