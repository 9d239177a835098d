//! Page of one call: outcome, verdicts, arguments, result, and position in the chain.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use maud::{Markup, html};
use serde_json::Value;
use tollgate_store::artifact::ArtifactKind;
use tollgate_store::ledger::report::explain;
use tollgate_store::storage::{
    OperationFilter, SaidByPolicy, Session, StoreResult, StoredApproval, StoredArtifact, StoredOperation,
};

use super::{Shown, parts};
use crate::Console;
use crate::access::Viewer;
use crate::address::{Name, nothing};
use crate::diff;
use crate::layout::{self, Page, pill};
use crate::rows::{micros, path_part, short_id, told, who};
use crate::visible;

/// Bytes of an artifact that are shown.
const MAX_ARTIFACT_BYTES: usize = 256 << 10;

/// A call with everything that its page shows.
struct Whole {
    operation: StoredOperation,
    seen: i64,
    label: Option<String>,
    artifacts: Vec<StoredArtifact>,
    previous_hash: Option<String>,
    /// Request for approval that the call made, if any.
    asked: Option<StoredApproval>,
    /// Current time, in milliseconds since 1970 UTC.
    now_ms: i64,
    /// Previous and next calls, in the ledger and in the envelope.
    around: [Option<i64>; 4],
}

/// Serves the page of a call, by its id or its position in the ledger.
pub(crate) async fn show(
    State(console): State<Arc<Console>>,
    Extension(viewer): Extension<Viewer>,
    Name(id): Name,
) -> Shown {
    let (_, waiting) = parts::current(&console).await?;
    let wanted = id.clone();
    let now_ms = console.clock.now_ms();
    let read = console.reader.read(move |session| read(session, &wanted, now_ms));
    let Some(whole) = read.await? else {
        return Ok(nothing(
            "There is no such call",
            &format!("No row has the id {id}. Rows that are older than the ledger keeps are pruned."),
        ));
    };
    let contents = contents(&console, &whole).await;
    let title = format!("#{} {}", whole.operation.seq, whole.operation.tool);
    let page = Page {
        title: &title,
        section: "Live",
        refreshes: false,
        waiting,
        body: body(&whole, &contents),
    };
    Ok(page.show(&console.access, &viewer))
}

fn read(session: &Session, id: &str, now_ms: i64) -> StoreResult<Option<Whole>> {
    let mut filter = OperationFilter::default();
    match id.parse::<i64>() {
        Ok(seq) => (filter.after, filter.before) = (Some(seq.saturating_sub(1)), Some(seq.saturating_add(1))),
        Err(_) => filter.op_id = Some(id.to_owned()),
    }
    let Some(operation) = session.operations().list(&filter, 1)?.pop() else {
        return Ok(None);
    };
    let ids = operation.artifact_ids.iter().flatten();
    let artifacts = ids
        .map(|id| session.artifacts().get(id))
        .collect::<StoreResult<Vec<_>>>()?;
    let label = match &operation.envelope_id {
        Some(id) => session.envelopes().get(id)?.and_then(|envelope| envelope.label),
        None => None,
    };
    let next_to = |envelope_id: Option<String>, is_later: bool| -> StoreResult<Option<i64>> {
        let filter = OperationFilter {
            envelope_id,
            after: is_later.then_some(operation.seq),
            before: (!is_later).then_some(operation.seq),
            ..OperationFilter::default()
        };
        Ok(session
            .operations()
            .list(&filter, 1)?
            .pop()
            .map(|found| found.seq))
    };
    let envelope = &operation.envelope_id;
    let inside = |is_later| {
        envelope
            .as_ref()
            .map_or(Ok(None), |id| next_to(Some(id.clone()), is_later))
    };
    Ok(Some(Whole {
        seen: match &operation.failure_fingerprint {
            Some(fingerprint) => session.evidence().times_seen(fingerprint, operation.seq)?,
            None => 0,
        },
        now_ms,
        previous_hash: session.ledger().hash_of(operation.seq - 1)?,
        around: [
            next_to(None, false)?,
            next_to(None, true)?,
            inside(false)?,
            inside(true)?,
        ],
        asked: session.approvals().of_call(&operation.op_id)?,
        artifacts: artifacts.into_iter().flatten().collect(),
        label,
        operation,
    }))
}

/// Content of an artifact, or the reason why it is missing.
struct Content {
    kind: ArtifactKind,
    id: String,
    size: i64,
    text: Result<String, &'static str>,
    is_cut: bool,
}

async fn contents(console: &Console, whole: &Whole) -> Vec<Content> {
    let mut contents = Vec::new();
    for stored in &whole.artifacts {
        let artifact = stored.artifact.clone();
        let (reader, hash) = (console.reader.clone(), artifact.hash.clone());
        let bytes = match stored.collected {
            true => None,
            false => tokio::task::spawn_blocking(move || reader.artifact(&hash, MAX_ARTIFACT_BYTES))
                .await
                .ok()
                .flatten(),
        };
        contents.push(Content {
            is_cut: artifact.total_size > i64::try_from(MAX_ARTIFACT_BYTES).unwrap_or(i64::MAX),
            text: match bytes.map(text_of) {
                Some(Some(text)) => Ok(text),
                Some(None) => Err("This content is not text."),
                None => Err("The content was deleted when its retention period ended."),
            },
            kind: artifact.kind,
            id: artifact.id,
            size: artifact.total_size,
        });
    }
    contents
}

/// Text up to the last complete character, if the bytes are text.
fn text_of(mut bytes: Vec<u8>) -> Option<String> {
    if let Err(err) = std::str::from_utf8(&bytes) {
        if err.error_len().is_some() {
            return None;
        }
        bytes.truncate(err.valid_up_to());
    }
    String::from_utf8(bytes).ok()
}

fn body(whole: &Whole, contents: &[Content]) -> Markup {
    let operation = &whole.operation;
    let told = told(operation, whole.seen);
    let [previous, next, previous_inside, next_inside] = whole.around;
    html! {
        div.title {
            p.crumbs {
                a href="/console/" { "Ledger" } " / #" (operation.seq)
                @if let Some(id) = &operation.envelope_id {
                    " / " a href=(format!("/console/envelopes/{}", path_part(id))) {
                        (whole.label.as_deref().map_or_else(|| short_id(id), |label| visible::short(label, 60)))
                    }
                }
            }
            h1 { (visible::short(&operation.tool, 80)) " " (pill(told.state, &visible::cell(&told.words))) }
            p.about { (layout::date(&operation.timestamp)) " · " (layout::took(operation.duration_ms)) " · " (operation.effect) }
        }
        nav.pages aria-label="Neighbours" {
            @if let Some(seq) = previous { a rel="prev" href=(format!("/console/operations/{seq}")) { "← #" (seq) } }
            @if let Some(seq) = next { a rel="next" href=(format!("/console/operations/{seq}")) { "#" (seq) " →" } }
            @if let Some(seq) = previous_inside { a href=(format!("/console/operations/{seq}")) { "← in the envelope" } }
            @if let Some(seq) = next_inside { a href=(format!("/console/operations/{seq}")) { "in the envelope →" } }
        }
        div.columns.even {
            (caller(operation))
            (verdicts(&operation.verdicts))
            (outcome(whole))
        }
        @for content in contents { (artifact(content)) }
        @if contents.is_empty() {
            section.card {
                header { h2 { "Arguments and result" } }
                (layout::empty(
                    "The ledger has their hashes; their content was not kept.",
                    "[artifacts] enabled = true, arguments = true and results = true in the configuration keep it for calls that policies let through.",
                ))
            }
        }
        (chain(whole))
    }
}

fn caller(operation: &StoredOperation) -> Markup {
    let who = who(operation);
    html! {
        section.card aria-labelledby="caller-title" {
            header { h2 #caller-title { "Call" } }
            dl.facts {
                dt { "Tool" } dd { code { (visible::line(&operation.pack)) } " / " code { (visible::line(&operation.tool)) } }
                dt { "Who" } dd {
                    @if let Some(name) = who.icon { (layout::icon(name)) }
                    @if operation.actor.is_some() { (who.text) br; span.meta { (who.hint.unwrap_or_default()) } }
                    @else if operation.client.is_none() { (layout::none(&who.text)) }
                    @else { (layout::none("no name recorded")) }
                }
                dt { "Client" } dd {
                    @match operation.client.as_deref() { Some(client) => (visible::short(client, 80)), None => (layout::none("none")) }
                }
                dt { "Id" } dd { code { (visible::line(&operation.op_id)) } }
                @for note in operation.notes.iter().take(6) { dt { "Note" } dd { (visible::short(note, 400)) } }
            }
            (members(operation))
        }
    }
}

/// Calls inside a batch.
fn members(operation: &StoredOperation) -> Markup {
    let members: Vec<Value> = operation
        .members
        .as_deref()
        .and_then(|members| serde_json::from_str(members).ok())
        .unwrap_or_default();
    html! {
        @if !members.is_empty() {
            h3 { "Calls inside" }
            ul.plain.tight {
                @for member in members.iter().take(50) {
                    li { code { (visible::cell(member.get("tool").and_then(Value::as_str).unwrap_or("?"))) } }
                }
            }
        }
    }
}

fn verdicts(verdicts: &[SaidByPolicy]) -> Markup {
    html! {
        section.card aria-labelledby="verdicts-title" {
            header { h2 #verdicts-title { "Policies" } span.count { (verdicts.len()) } }
            @if verdicts.is_empty() { (layout::empty("No policy evaluated this call.", "To add a policy, run tollgate policies add.")) }
            @else {
                div.scroll { table {
                    thead { tr { th scope="col" { "Policy" } th scope="col" { "Verdict" } th scope="col" { "Mode" } th.ms scope="col" { "Time" } } }
                    tbody { @for said in verdicts {
                        tr {
                            td { a href=(format!("/console/?q=policy:{}", path_part(&said.policy))) { (visible::short(&said.policy, 48)) } }
                            td {
                                (pill(kind(said), &visible::short(&said.verdict, 24)))
                                @for more in [&said.code, &said.cause, &said.answer].into_iter().flatten() { " " (visible::short(more, 60)) }
                                @if said.excused { " · failed open" }
                            }
                            td { (visible::short(&said.mode, 16)) " · " (visible::short(&said.phase, 16)) }
                            td.ms { (said.us.map_or_else(|| "–".to_owned(), micros)) }
                        }
                    } }
                } }
            }
        }
    }
}

fn kind(said: &SaidByPolicy) -> &'static str {
    match (said.verdict.as_str(), said.mode.as_str()) {
        ("pass", _) => "good",
        ("deny" | "failed", "audit") | ("ask" | "amend", _) => "warn",
        ("deny" | "failed", _) => "bad",
        _ => "plain",
    }
}

fn outcome(whole: &Whole) -> Markup {
    let (operation, seen) = (&whole.operation, whole.seen);
    html! {
        section.card aria-labelledby="outcome-title" {
            header { h2 #outcome-title { "Outcome" } }
            dl.facts {
                @if let Some(code) = &operation.error_code { dt { "Code" } dd { strong { (visible::short(code, 64)) } } }
                @if let Some(asked) = &whole.asked {
                    dt { "Approval" } dd {
                        a href=(format!("/console/approvals/{}", path_part(&asked.approval.id))) { (visible::short(&asked.title, 90)) }
                        " · " (asked.status(whole.now_ms).as_str())
                    }
                }
                @if let Some(class) = &operation.failure_class { dt { "Failure" } dd { (visible::short(class, 40)) } }
                @if let Some(limit) = &operation.limit_triggered { dt { "Limit" } dd { (visible::short(&in_words(limit), 100)) } }
                @if let Some(tests) = &operation.outcome { dt { "Tests" } dd { (visible::short(&tests.in_words(), 400)) } }
                @for test in operation.failing_tests.iter().flatten().take(12) { dt { "Failing" } dd { (visible::short(test, 200)) } }
                @if let Some(hash) = &operation.failure_fingerprint {
                    dt { "Failure seen" } dd { a href=(format!("/console/?q=fingerprint:{hash}")) { (layout::hash(hash)) } " · " (seen) "× so far" }
                }
                @if let Some(diff) = &operation.short_diff { dt { "Change" } dd { pre.text { (visible::lines(diff)) } } }
                @else if let Some(paths) = &operation.changed_paths {
                    @for path in paths.iter().take(20) { dt { "Changed" } dd { code { (visible::short(path, 120)) } } }
                }
                @if let Some(hash) = &operation.mutation_fingerprint { dt { "Fingerprint of the change" } dd { (layout::hash(hash)) } }
                @if operation.error_code.is_none() && operation.outcome.is_none() && operation.changed_paths.is_none() {
                    dt { "Result" } dd { @match operation.success { Some(true) => "ok", Some(false) => "failed", None => "unknown: the host ended during the call" } }
                }
            }
        }
    }
}

/// Meaning of a limit that stopped a call, or its code if it is unknown.
fn in_words(limit: &str) -> String {
    explain(limit).unwrap_or(limit).to_owned()
}

fn artifact(content: &Content) -> Markup {
    let (title, is_open) = match content.kind {
        ArtifactKind::Arguments => ("Arguments", true),
        ArtifactKind::Result => ("Result", true),
        ArtifactKind::Diff => ("Diff", true),
        ArtifactKind::Log => ("Output", false),
    };
    html! {
        details.card open[is_open] {
            summary { (title) span.meta { " · " (layout::number(content.size)) " bytes · " code { (visible::line(&content.id)) } } }
            @match (&content.text, content.kind) {
                (Err(why), _) => p.hint { (why) },
                (Ok(text), ArtifactKind::Diff) => (diff::diff(text)),
                (Ok(text), ArtifactKind::Log) => (diff::text(text)),
                (Ok(text), ArtifactKind::Arguments | ArtifactKind::Result) => (diff::json(text)),
            }
            @if content.is_cut { p.hint { "Only the beginning is shown; artifact_get returns all." } }
        }
    }
}

fn chain(whole: &Whole) -> Markup {
    let operation = &whole.operation;
    html! {
        section.card aria-labelledby="chain-title" {
            header { h2 #chain-title { "Chain" } span.meta { "each row's hash covers the one before it" } }
            dl.facts.wide {
                dt { "Row before" } dd { code { (whole.previous_hash.as_deref().unwrap_or("pruned, or this is the first row")) } }
                dt { "This row" } dd { code { (operation.hash) } }
                dt { "Arguments" } dd { code { (operation.args_hash) } }
                @if let Some(hash) = &operation.result_hash { dt { "Result" } dd { code { (hash) } } }
                @if let Some(hash) = &operation.repo_before_hash { dt { "Work tree before" } dd { code { (hash) } } }
                @if let Some(hash) = &operation.repo_after_hash { dt { "Work tree after" } dd { code { (hash) } } }
            }
            p.hint { code { "tollgate ledger verify" } " follows the whole chain." }
        }
    }
}
